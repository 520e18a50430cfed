"""Bounds at both ends of the range of norms, and the largest gap that rounding may excuse."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import OracleFailed, RankOneConstraints, max_margin
from marginlab.proofs_check.separators.evaluation import LARGEST_GAP, accepted
from marginlab.proofs_check.separators.scaled import scaled_problem
from marginlab.theory.errors import InvalidInput, MethodUnavailable

SEEDS = st.integers(0, 2**32 - 1)
ORACLES = ("working-set", "nnls", "cvxpy", "first-order")


def square(row: np.ndarray) -> Fraction:
    return sum((Fraction(float(v)) ** 2 for v in row), Fraction(0))


@pytest.mark.parametrize("oracle", ORACLES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=15)
def test_orthogonal_rows_of_any_size(oracle: str, seed: int) -> None:
    """Orthogonal rows: W = sum z_i / ||z_i||^2 and 1 / margin^2 = sum 1 / ||z_i||^2, in rationals."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 4))
    Z = np.zeros((N, 2 * N))
    for i in range(N):  # disjoint coordinates
        Z[i, 2 * i : 2 * i + 2] = rng.standard_normal(2) * 2.0 ** rng.uniform(-250, 250)
    if oracle != "working-set":  # the others are not meant for rows that far apart
        Z *= 2.0 ** -np.floor(np.log2(np.linalg.norm(Z, axis=1, keepdims=True)))
        Z *= 2.0 ** int(rng.integers(-250, 250))
    solution = max_margin(Z, oracle=oracle)
    inverse = sum((1 / square(row) for row in Z), Fraction(0))
    assert Fraction(solution.margin_lower) ** 2 <= 1 / inverse <= Fraction(solution.margin_upper) ** 2
    assert 0 <= solution.gap <= 1e-6
    assert (solution.dual > 0).any()


@pytest.mark.parametrize("k", [-240, -131, -130, 131, 240])
def test_units_are_powers_of_two_and_nothing_else(k: int) -> None:
    Z = np.array([[1.0, 0.3, 0.1], [0.2, 1.0, -0.4], [0.1, 0.1, 1.0]])
    plain, moved = max_margin(Z), max_margin(2.0**k * Z)
    assert np.array_equal(moved.W, np.ldexp(plain.W, -k))
    assert np.array_equal(moved.dual, np.ldexp(plain.dual, -2 * k))
    assert moved.margin_lower == np.ldexp(plain.margin_lower, k)
    assert moved.margin_upper == np.ldexp(plain.margin_upper, k)
    assert moved.gap == plain.gap
    assert moved.residuals.dual == plain.residuals.dual
    assert moved.residuals.strict == plain.residuals.strict


@pytest.mark.parametrize("size", [1.9e123, 1e80, 1e-80, 1e-123])
@pytest.mark.parametrize("oracle", ORACLES)
def test_norms_beyond_the_limits_are_refused(oracle: str, size: float) -> None:
    with pytest.raises(InvalidInput, match=r"norms between 2\^-256 and 2\^256"):
        max_margin([[size, -size / 5]], oracle=oracle)
    rank_one: Any = ([[size]], [[1.0]], [0])
    with pytest.raises(InvalidInput, match=r"norms between 2\^-256 and 2\^256"):
        max_margin(RankOneConstraints(*rank_one), oracle=oracle)


@pytest.mark.parametrize("gap", [np.nan, -1.36e-4])
@pytest.mark.parametrize("tolerance", [None, 0.5])
def test_what_is_not_a_gap_is_not_accepted(gap: float, tolerance: float | None) -> None:
    Z = np.array([[1.0, 0.5], [0.5, 1.0]])
    with pytest.raises(OracleFailed, match="not a lower and an upper bound"):
        accepted(replace(max_margin(Z), gap=gap), scaled_problem(Z), tolerance, 1e-12)


@pytest.mark.parametrize("height", [1e-15, -1e-15, 3e-13])
def test_rounding_excuses_no_gap_above_the_cap(height: float) -> None:
    """Rows in a slab around the origin: a float64 W cannot have margins near the best one."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((30, 5))
    Z[:, 0] = height * (1 + rng.random(30))
    with pytest.raises(OracleFailed, match=r"at most 1.00e-06 is accepted.*`certify`"):
        max_margin(Z)
    # Whoever asks for it has the candidate, with its honest bounds.
    solution = max_margin(Z, tolerance=1.0)
    assert solution.gap > LARGEST_GAP
    assert solution.margin_lower < solution.margin_upper


def test_a_nuclear_separator_has_no_angle_bound() -> None:
    keys: Any = ([[1.0, 0.0], [0.0, 1.0]], np.eye(2), [0, 1])
    solution = max_margin(RankOneConstraints(*keys), oracle="cvxpy", norm="nuclear")
    with pytest.raises(MethodUnavailable, match=r"needs the Frobenius norm.*got norm 'nuclear'"):
        _ = solution.angle_bound
