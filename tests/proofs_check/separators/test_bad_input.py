"""What max_margin refuses, in one sentence that names the rule and the value."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import marginlab.proofs_check.separators as separators
from marginlab.proofs_check.separators import NotSeparable, OracleFailed, RankOneConstraints, max_margin
from marginlab.theory.errors import InvalidInput, MethodUnavailable

ORACLES = ("working-set", "nnls", "cvxpy", "first-order")
SQUARE = [[1.0, 0.5], [0.5, 1.0]]


def rank_one(keys: Any, queries: Any, sample: Any) -> RankOneConstraints:
    """Constraints from anything array-like, as users pass it."""
    return RankOneConstraints(keys, queries, sample)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (np.zeros((0, 3)), r"at least one constraint and one dimension, got shape \(0, 3\)"),
        (np.zeros((3, 0)), r"at least one constraint and one dimension, got shape \(3, 0\)"),
        ([[1.0, np.nan]], r"must be finite, got nan at index \(0, 1\)"),
        ([[1.0, 2.0], [np.inf, 0.0]], r"must be finite, got inf at index \(1, 0\)"),
        ([[True, False]], "must hold real numbers, got dtype bool"),
        ([[1j, 0]], "must hold real numbers, got dtype complex128"),
        ([["a"]], "must hold real numbers"),
        ([1.0, 2.0], r"must have 2 dimension\(s\), got shape \(2,\)"),
        (np.zeros((2, 2, 2)), r"must have 2 dimension\(s\), got shape \(2, 2, 2\)"),
        (3.0, "must have 2 dimension"),
        ([[1.0], [1.0, 2.0]], "rectangular array"),
        ([[1e200, 0.0]], "norms between 2"),
        ([[1e-200, 0.0]], "norms between 2"),
    ],
)
@pytest.mark.parametrize("oracle", ORACLES)
def test_constraints(constraints: Any, message: str, oracle: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        max_margin(constraints, oracle=oracle)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"oracle": "simplex"}, "oracle must be one of working-set, nnls, cvxpy, first-order; got 'simplex'"),
        ({"norm": "l1"}, "norm must be one of frobenius, nuclear; got 'l1'"),
        ({"tolerance": 0.0}, "tolerance must be positive and finite, got 0.0"),
        ({"tolerance": True}, "tolerance must be a positive number, got True"),
        ({"norm": "nuclear", "oracle": "cvxpy"}, "nuclear norm needs RankOneConstraints"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        max_margin(SQUARE, **options)


def test_a_method_that_does_not_exist_names_those_that_do() -> None:
    constraints = rank_one([[1.0, 0.0]], [[1.0, 1.0]], [0])
    with pytest.raises(MethodUnavailable, match="use cvxpy or first-order"):
        max_margin(constraints, norm="nuclear")


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_zero_row_is_its_own_certificate(oracle: str) -> None:
    with pytest.raises(NotSeparable, match="constraint vector 1 is zero") as caught:
        max_margin([[1.0, 0.0], [0.0, 0.0]], oracle=oracle)
    assert np.array_equal(caught.value.certificate.weights, [0.0, 1.0])
    query_zero = rank_one([[1.0], [2.0]], [[1.0], [0.0]], [0, 1])
    with pytest.raises(NotSeparable, match="constraint vector 1 is zero"):
        max_margin(query_zero, oracle=oracle)


def test_integers_are_taken_as_floats() -> None:
    assert np.array_equal(max_margin(np.array([[3, 4]])).W, max_margin([[3.0, 4.0]]).W)


def test_an_unused_query_may_be_zero() -> None:
    constraints = rank_one([[1.0]], [[2.0], [0.0]], [0])
    assert np.allclose(max_margin(constraints).W, [[0.5]])


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_tolerance_below_rounding_is_refused_by_the_recomputed_gap(oracle: str) -> None:
    with pytest.raises(OracleFailed, match="gap of"):
        max_margin([[1.0, 0.3], [0.2, 1.0]], oracle=oracle, tolerance=1e-18)


def test_the_input_is_left_as_it_was() -> None:
    Z = np.array([[1.0, 0.3], [0.2, 1.0]])
    before = Z.copy()
    max_margin(Z)
    assert np.array_equal(Z, before)


def test_the_certificate_survives_pickling() -> None:
    with pytest.raises(NotSeparable) as caught:
        max_margin([[1.0], [-1.0]])
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert np.array_equal(again.certificate.weights, caught.value.certificate.weights)


def test_public_names_resolve_and_load_nothing_early() -> None:
    for name in dir(separators):
        assert getattr(separators, name) is not None
    code = (
        "import sys, marginlab.proofs_check.separators; "
        "sys.exit(any(m in sys.modules for m in ('cvxpy', 'scipy', 'daqp', 'torch', 'flint')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        separators.nothing  # noqa: B018
