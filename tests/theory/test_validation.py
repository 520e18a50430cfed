"""Argument checks: what passes comes out canonical, what does not is named in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from marginlab.theory import validation
from marginlab.theory.errors import InvalidInput, MarginlabError


def test_an_invalid_input_is_a_value_error_and_ours():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(InvalidInput, MarginlabError)


def test_float_array_converts_and_makes_contiguous():
    result = validation.float_array(np.arange(6, dtype=np.float32).reshape(2, 3).T, "x", ndim=2)
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    assert result.shape == (3, 2)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0], [1.0, 2.0]], "x must be a rectangular array"),
        ([True, False], "x must hold real numbers, got dtype bool"),
        (["a"], "x must hold real numbers"),
        ([1j], "x must hold real numbers, got dtype complex128"),
        ([1.0, np.nan], r"x must be finite, got nan at index \(1,\)"),
        ([-np.inf, 1.0], r"x must be finite, got -inf at index \(0,\)"),
        ([[1.0]], r"x must have 1 dimension\(s\), got shape \(1, 1\)"),
    ],
)
def test_float_array_refuses(value, message):
    with pytest.raises(InvalidInput, match=message):
        validation.float_array(value, "x", ndim=1)


@pytest.mark.parametrize("shape", [(2, 4), (0, 3), (2,)])
def test_shaped_array_refuses_another_shape(shape):
    with pytest.raises(InvalidInput, match="x must have"):
        validation.shaped_array(np.zeros(shape), "x", (None, 3))


def test_shaped_array_leaves_free_axes_free():
    assert validation.shaped_array(np.zeros((7, 3)), "x", (None, 3)).shape == (7, 3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0.0, 1.0], "y must hold integers, got dtype float64"),
        ([0], r"y must have shape \(2,\), got \(1,\)"),
        ([0, 3], "y must lie in 0..2, got 3 at index 1"),
        ([-1, 0], "y must lie in 0..2, got -1 at index 0"),
    ],
)
def test_index_array_refuses(value, message):
    with pytest.raises(InvalidInput, match=message):
        validation.index_array(value, "y", length=2, below=3)


@pytest.mark.parametrize("value", [True, "1", None, np.nan, np.inf, 0.0, -1])
def test_positive_refuses(value):
    with pytest.raises(InvalidInput, match="s must be"):
        validation.positive(value, "s")


@pytest.mark.parametrize("value", [True, "1", None, np.nan, np.inf, -1e-300])
def test_non_negative_refuses(value):
    with pytest.raises(InvalidInput, match="s must be"):
        validation.non_negative(value, "s")


def test_non_negative_takes_zero():
    assert validation.non_negative(np.int64(0), "s") == 0.0


@pytest.mark.parametrize("value", [0, 1, "True", None])
def test_flag_refuses_what_is_not_a_boolean(value):
    with pytest.raises(InvalidInput, match="f must be True or False"):
        validation.flag(value, "f")


@pytest.mark.parametrize("value", [True, 2.0, "2", 0])
def test_count_refuses(value):
    with pytest.raises(InvalidInput, match="n must be"):
        validation.count(value, "n")


def test_one_of_lists_the_choices():
    with pytest.raises(InvalidInput, match="loss must be one of a, b; got 'c'"):
        validation.one_of("c", "loss", ("a", "b"))


@pytest.mark.parametrize("value", [None, 1.5, -1, True, "0", [1, 2]])
def test_seed_sequence_refuses(value):
    with pytest.raises(InvalidInput, match="seed must be"):
        validation.seed_sequence(value)


def test_named_streams_do_not_depend_on_what_was_spawned_before():
    root = np.random.SeedSequence(5)
    before = validation.named_stream(root, 2).standard_normal(4)
    root.spawn(7)
    assert np.array_equal(before, validation.named_stream(root, 2).standard_normal(4))
    assert not np.array_equal(before, validation.named_stream(root, 3).standard_normal(4))


def test_frozen_arrays_cannot_be_changed_through_their_base():
    base = np.zeros(4)
    view = base[1:]
    view.flags.writeable = False
    kept = validation.frozen(view)
    base[:] = 1.0
    assert np.array_equal(kept, np.zeros(3))
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 1.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([2**53 + 1, 0]), r"exact in float64, got 9007199254740993 at index \(0,\)"),
        (np.array([0, -(2**60) - 1]), r"exact in float64, got -1152921504606846977 at index \(1,\)"),
        (np.array([2**64 - 1], dtype=np.uint64), "exact in float64, got 18446744073709551615"),
        (np.array([np.longdouble(1) + np.longdouble(2) ** -60]), "exact in float64"),
        (np.array([np.longdouble(2) ** 2000]), "exact in float64, got .* rounds to inf"),
    ],
)
def test_float_array_rounds_nothing_in_silence(value, message):
    with pytest.raises(InvalidInput, match=message):
        validation.float_array(value, "x", ndim=1)
    with pytest.raises(InvalidInput, match=message):
        validation.shaped_array(value, "x", (None,))


def test_float_array_takes_whatever_float64_holds():
    whole = np.array([2**53, -(2**53), 2**62, 3 * 2**60])
    assert [int(v) for v in validation.float_array(whole, "x")] == whole.tolist()
    wide = np.array([1, 2**63], dtype=np.uint64)
    assert [int(v) for v in validation.float_array(wide, "x")] == wide.tolist()
    extended = np.array([0.1, -2.5], dtype=np.longdouble)
    assert np.array_equal(validation.float_array(extended, "x"), [0.1, -2.5])
    assert np.isnan(validation.float_array(np.array([np.nan], dtype=np.longdouble), "x", finite=False)).all()


@pytest.mark.parametrize("value", [19, 19.0, np.int64(2**53), np.float32(0.5)])
def test_a_single_number_keeps_its_shape(value: object) -> None:
    array = validation.float_array(value, "n")
    assert array.shape == ()
    assert array.dtype == np.float64
    assert array.item() == value


def test_a_single_integer_that_float64_does_not_hold() -> None:
    with pytest.raises(InvalidInput, match="n must be exact in float64"):
        validation.float_array(2**53 + 1, "n")
