"""The attention problem: what it checks, what it derives, and how sampled data become one."""

from __future__ import annotations

import numpy as np
import pytest

from marginlab.simulations.attention import Problem
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import MatchCopyTask, sample

GOOD = {
    "keys": np.arange(12.0).reshape(2, 3, 2),
    "queries": np.ones((2, 2)),
    "values": np.arange(24.0).reshape(2, 3, 4),
    "match": np.array([0, 2]),
}


def test_targets_are_the_selected_values_unless_given():
    assert np.array_equal(Problem(**GOOD).targets, [[0, 1, 2, 3], [20, 21, 22, 23]])
    assert np.array_equal(Problem(**GOOD, targets=np.zeros((2, 4))).targets, np.zeros((2, 4)))


def test_constraints_come_sample_by_sample_without_the_match():
    constraints = Problem(**GOOD).constraints()
    assert np.array_equal(constraints.sample, [0, 0, 1, 1])
    assert np.array_equal(constraints.key_diffs, [[-2, -2], [-4, -4], [4, 4], [2, 2]])
    W = np.array([[1.0, 2.0], [3.0, 5.0]])
    by_hand = [
        (GOOD["keys"][i, y] - GOOD["keys"][i, t]) @ W @ GOOD["queries"][i]
        for i, y in enumerate(GOOD["match"])
        for t in range(3)
        if t != y
    ]
    assert np.array_equal(constraints.margins(W), by_hand)


def test_a_problem_does_not_follow_later_changes_of_its_arguments():
    keys = GOOD["keys"].copy()
    problem = Problem(**GOOD | {"keys": keys})
    keys[:] = 0
    assert np.array_equal(problem.keys, GOOD["keys"])
    with pytest.raises(ValueError, match="read-only"):
        problem.values[0, 0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": np.zeros((2, 3))}, "keys must have 3 dimension"),
        ({"keys": np.zeros((2, 1, 2)), "values": np.zeros((2, 1, 4))}, "at least 2 keys .* got K = 1"),
        ({"keys": np.zeros((0, 3, 2))}, "keys must have shape .* no empty axis"),
        ({"queries": np.zeros((2, 3))}, r"queries must have shape \(2, 2\)"),
        ({"queries": np.array([[1, np.nan], [0, 0]])}, r"queries must be finite, got nan at index \(0, 1\)"),
        ({"values": np.zeros((2, 2, 4))}, r"values must have shape \(2, 3, \*\)"),
        ({"values": np.full((2, 3, 4), np.inf)}, "values must be finite"),
        ({"match": np.array([0, 3])}, "match must lie in 0..2, got 3 at index 1"),
        ({"match": np.array([0.0, 1.0])}, "match must hold integers"),
        ({"match": np.array([0])}, r"match must have shape \(2,\)"),
        ({"targets": np.zeros((2, 3))}, r"targets must have shape \(2, 4\)"),
    ],
)
def test_bad_problems_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        Problem(**GOOD | change)


def test_match_copy_data_become_shifted_keys_and_copied_values():
    data = sample(MatchCopyTask(T=5, d_in=3, d_out=2, c=1.2, noise=0.2), 6, 0)
    problem = Problem.from_match_copy(data)
    assert problem.shape == (6, 4, 3, 2)
    assert np.array_equal(problem.keys, data.tokens[:, :4])
    assert np.array_equal(problem.queries, data.query)
    assert np.array_equal(problem.targets, data.target)
    for i in range(6):
        assert np.allclose(problem.values[i], data.tokens[i, 1:] @ data.W_V.T, rtol=0, atol=1e-14)


@pytest.mark.parametrize("copy", ["identity", "gaussian"])
def test_without_target_noise_the_target_is_the_selected_value_to_the_bit(copy):
    data = sample(MatchCopyTask(T=5, d_in=3, c=1.2, noise=0.0, copy=copy), 6, 0)
    problem = Problem.from_match_copy(data)
    assert np.array_equal(problem.targets, problem.values[np.arange(6), data.match])
    assert np.allclose(problem.targets, data.target, rtol=0, atol=1e-14)


def test_two_tokens_leave_nothing_to_select():
    with pytest.raises(InvalidInput, match="at least 2 keys"):
        Problem.from_match_copy(sample(MatchCopyTask.template(T=2, d=3), 2, 0))


@pytest.mark.parametrize("size", [1e-162, 1e-80, 1e-32, 1e31, 1e80, 1e200])
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("keys", "key differences"),
        ("queries", "queries"),
        ("values", "value differences"),
        ("targets", "differences of values and targets"),
    ],
)
def test_sizes_that_products_cannot_hold_are_refused(name, what, size):
    parts = GOOD | {"targets": np.array([[0.0, 1, 2, 3], [20, 21, 22, 23]])}
    if name == "targets":
        if size < 1:  # v - target can be that small only around zero
            parts["values"] = parts["values"] * [[[0.0]], [[1.0]]]
            parts["targets"] = np.array([[size, 0, 0, 0], [20, 21, 22, 23]])
        else:
            parts["targets"] = parts["targets"] + size * np.array([[1.0], [0.0]])
    else:
        factor = np.array([size, 1.0]).reshape((2,) + (1,) * (parts[name].ndim - 1))
        parts[name] = parts[name] * factor
        if name == "values":
            parts["targets"] = parts["targets"] * [[size], [1.0]]
    with pytest.raises(InvalidInput, match=rf"{what} must be zero or of a size .* got .* in sample 0"):
        Problem(**parts)


@pytest.mark.parametrize("exponent", [-98, 94])
def test_zero_and_the_ends_of_the_range_are_accepted(exponent):
    zero = Problem(**(GOOD | {"queries": np.zeros((2, 2)), "values": np.zeros((2, 3, 4))}))
    assert not zero.queries.any()
    scaled = {name: np.ldexp(GOOD[name], exponent) for name in ("keys", "queries", "values")}
    assert np.array_equal(Problem(**(GOOD | scaled)).keys, scaled["keys"])


def test_differences_that_overflow_are_refused_without_a_warning():
    keys = np.array([[[1.7e308], [-1.7e308]]])
    with pytest.raises(InvalidInput, match=r"key differences must be .* got inf in sample 0"):
        Problem(keys, [[1.0]], [[[0.0], [1.0]]], [0])
