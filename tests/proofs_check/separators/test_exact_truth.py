"""Every oracle against exact rationals: all active sets of small integer problems, by brute force."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import (
    MaxMargin,
    NotSeparable,
    RankOneConstraints,
    max_margin,
)
from marginlab.proofs_check.separators.conic import CONIC_GAP
from marginlab.proofs_check.separators.evaluation import TARGET_GAP
from marginlab.proofs_check.separators.first_order import FIRST_ORDER_GAP

SEEDS = st.integers(0, 2**32 - 1)
ORACLES = ("working-set", "nnls", "cvxpy", "first-order")
GAPS = {
    "working-set": TARGET_GAP,
    "nnls": TARGET_GAP,
    "cvxpy": CONIC_GAP,
    "first-order": FIRST_ORDER_GAP,
}
Rational = list[Fraction]


def rank_one(keys: Any, queries: Any, sample: Any) -> RankOneConstraints:
    """Constraints from anything array-like, as users pass it."""
    return RankOneConstraints(keys, queries, sample)


def solve(A: list[Rational], b: Rational) -> Rational | None:
    """Gauss-Jordan elimination in rationals; None if singular."""
    n = len(b)
    rows = [[*A[i], b[i]] for i in range(n)]
    for c in range(n):
        pivot = next((r for r in range(c, n) if rows[r][c] != 0), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [v / rows[c][c] for v in rows[c]]
        for r in range(n):
            if r != c:
                rows[r] = [v - rows[r][c] * w for v, w in zip(rows[r], rows[c], strict=True)]
    return [row[-1] for row in rows]


def dot(a: Rational, b: Rational) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def exact_separator(Z: np.ndarray) -> Rational | None:
    """The max-margin separator: by Caratheodory some independent active set gives it; None if there is none."""
    rows = [[Fraction(int(v)) for v in row] for row in Z]
    for size in range(1, min(Z.shape) + 1):
        for chosen in combinations(rows, size):
            a = solve([[dot(x, y) for y in chosen] for x in chosen], [Fraction(1)] * size)
            if a is None or min(a) < 0:
                continue
            w = [dot(a, list(column)) for column in zip(*chosen, strict=True)]
            if all(dot(w, row) >= 1 for row in rows):
                return w
    return None


def agrees(solution: MaxMargin, w: Rational) -> None:
    square = 1 / dot(w, w)
    # The bounds hold as exact statements about the data, not up to a tolerance.
    assert Fraction(solution.margin_lower) ** 2 <= square <= Fraction(solution.margin_upper) ** 2
    assert solution.gap <= GAPS[solution.oracle] + 1e-14  # rounding of integers up to 9 in 3 dimensions
    exact = np.array([float(v) for v in w])
    angle = np.linalg.norm(solution.W.ravel() / np.linalg.norm(solution.W) - exact / np.linalg.norm(exact))
    # Chord below the angle, and the float64 chord itself is good to some units.
    assert angle <= solution.angle_bound + 8 * np.finfo(float).eps


def refuted(error: NotSeparable, Z: np.ndarray) -> None:
    p = error.certificate.weights
    assert (p >= 0).all()
    assert abs(p.sum() - 1) <= 4 * np.finfo(float).eps * len(p)
    largest = np.linalg.norm(Z, axis=1).max()
    # p is rounded to float64: u per weight, at most u max ||z|| together, and the same for its sum.
    assert np.linalg.norm(p @ Z) <= 16 * np.finfo(float).eps * largest
    # 4 u for rows scaled to norms in [1/4, 1), hence 16 u in units of the largest row, and u twice for p.
    assert error.certificate.residual <= 9 * np.finfo(float).eps


def refused(constraints: Any, Z: np.ndarray, oracle: str) -> None:
    """The oracle refuses data that are not separable, with a certificate."""
    with pytest.raises(NotSeparable) as caught:
        max_margin(constraints, oracle=oracle)
    refuted(caught.value, Z)


@pytest.mark.parametrize("oracle", ORACLES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=60)
def test_integer_problems(oracle: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    N, D = rng.integers(1, 7), rng.integers(1, 4)
    Z = rng.integers(-3, 4, (N, D))
    if rng.random() < 0.7:  # mostly one-sided, so that separable ones are common
        Z[:, 0] = np.abs(Z[:, 0]) + 1
    w = exact_separator(Z)
    if w is None:
        refused(Z, Z, oracle)
    else:
        agrees(max_margin(Z, oracle=oracle), w)


@pytest.mark.parametrize("oracle", ORACLES)
@given(seed=SEEDS)
@settings(deadline=None, max_examples=30)
def test_integer_rank_one_problems(oracle: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    N, n = rng.integers(1, 6), rng.integers(1, 4)
    constraints = rank_one(rng.integers(-2, 3, (N, 2)), rng.integers(-2, 3, (n, 2)), rng.integers(0, n, N))
    w = exact_separator(constraints.dense())
    if w is None:
        refused(constraints, constraints.dense(), oracle)
    else:
        solution = max_margin(constraints, oracle=oracle)
        assert solution.W.shape == (2, 2)
        agrees(solution, w)
