"""Separable or not, where rounding cannot tell: never the wrong word, and no easy case left undecided."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import NotSeparable, OracleFailed, RankOneConstraints, max_margin
from marginlab.proofs_check.separators.decision import moved_to_zero, null_weights_near
from marginlab.proofs_check.separators.scaled import scaled_problem

SEEDS = st.integers(0, 2**32 - 1)
ORACLES = ("working-set", "nnls", "cvxpy", "first-order")


def turn(a: np.ndarray, b: np.ndarray) -> Fraction:
    """Twice the signed area of (0, a, b), exactly."""
    return Fraction(float(a[0])) * Fraction(float(b[1])) - Fraction(float(a[1])) * Fraction(float(b[0]))


def inner(a: np.ndarray, b: np.ndarray) -> Fraction:
    return sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True)), Fraction(0))


def separable_in_the_plane(Z: np.ndarray) -> bool:
    """Nonzero vectors of the plane lie in an open half-plane: no opposite pair, no triple around the origin."""
    for a, b in combinations(Z, 2):
        if turn(a, b) == 0 and inner(a, b) < 0:
            return False
    for a, b, c in combinations(Z, 3):
        signs = (turn(a, b), turn(b, c), turn(c, a))
        if min(signs) > 0 or max(signs) < 0:
            return False
    return True


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("bits", [30, 52, 54, 60, 100])
def test_two_rows_a_power_of_two_apart(oracle: str, bits: int) -> None:
    """Rows (1, h) and (-1, h) have the margin h, however small."""
    height = 2.0**-bits
    solution = max_margin([[1.0, height], [-1.0, height]], oracle=oracle)
    assert solution.margin_lower <= height <= solution.margin_upper
    assert solution.gap < 1e-6


@pytest.mark.parametrize("oracle", ORACLES)
@given(seed=SEEDS, bits=st.sampled_from([0, 20, 53, 60, 80]))
@settings(deadline=None, max_examples=25)
@example(seed=0, bits=60)
def test_the_plane_seen_edge_on(oracle: str, seed: int, bits: int) -> None:
    """Small integers, squeezed towards an axis by 2^-bits: the exact truth is known, and met or left open."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(-3, 4, (int(rng.integers(1, 6)), 2)).astype(float)
    if rng.random() < 0.6:
        Z[:, 1] = np.abs(Z[:, 1])
    Z = Z[Z.any(axis=1)] * [1.0, 2.0**-bits]
    if len(Z) == 0:
        return
    if separable_in_the_plane(Z):
        solution = max_margin(Z, oracle=oracle, tolerance=1.0)
        assert solution.margin_lower > 0
    else:
        with pytest.raises(NotSeparable):
            max_margin(Z, oracle=oracle)


@pytest.mark.parametrize("rows", [[[1, 1], [1, 1], [0, -1], [0, 1]], [[2, 1], [-4, -2]], [[1], [-3]]])
@pytest.mark.parametrize("oracle", ORACLES)
def test_integers_are_decided(oracle: str, rows: list[list[int]]) -> None:
    with pytest.raises(NotSeparable, match="exactly zero") as caught:
        max_margin(rows, oracle=oracle)
    weights = caught.value.certificate.weights
    assert np.abs(weights @ np.array(rows)).max() <= 4 * np.finfo(float).eps


@pytest.mark.parametrize("oracle", ["working-set", "nnls", "first-order"])
@given(seed=SEEDS)
@settings(deadline=None, max_examples=5)
def test_many_dependent_rows_are_decided(oracle: str, seed: int) -> None:
    """Opposite rows among many others, dense and rank one: the combination is degenerate, and small or large."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-2, 3, (60, 30)).astype(float)
    A = A[A.any(axis=1)]
    with pytest.raises(NotSeparable, match="exactly zero"):
        max_margin(np.concatenate([A, -2 * A[:30]]), oracle=oracle)
    keys = rng.standard_normal((40, 5))
    sample = np.repeat(np.arange(10), 4)
    queries = rng.standard_normal((10, 6))
    constraints = RankOneConstraints(
        np.concatenate([keys, -keys[:8]]), queries, np.concatenate([sample, sample[:8]])
    )
    with pytest.raises(NotSeparable, match="exactly zero"):
        max_margin(constraints, oracle=oracle)


@pytest.mark.parametrize("oracle", ["working-set", "nnls", "first-order"])
def test_what_cannot_be_decided_is_not_called_inseparable(oracle: str) -> None:
    """40 unknowns, 300 rows in a slab of height 2^-60: separable by that height, and too large for rationals."""
    flat = np.random.default_rng(3).standard_normal((150, 39))
    Z = np.column_stack([np.concatenate([flat, -flat]), np.full(300, 2.0**-60)])
    with pytest.raises(
        OracleFailed, match=r"could not decide separability.*no W has a relative margin"
    ) as caught:
        max_margin(Z, oracle=oracle)
    bound = float(str(caught.value).rsplit(" ", 1)[1].rstrip("."))
    # Attained by the axis, if not by more: rows are scaled by powers of two, to norms of at least a half.
    best = 2.0**-60 / (2 * np.linalg.norm(Z, axis=1).max())
    assert best <= bound < 1e-12


def in_the_hull(rng: np.random.Generator, N: int, D: int) -> tuple[Any, np.ndarray]:
    """A problem whose rows combine to zero up to rounding, with positive weights."""
    Z = rng.standard_normal((N, D))
    p = rng.dirichlet(np.ones(N))
    Z[0] = -(p[1:] @ Z[1:]) / p[0]
    problem = scaled_problem(Z)
    return problem, p / (problem.beta * problem.scale)


@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_rows_that_span_the_space_prove_it_and_so_do_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, y = in_the_hull(rng, int(rng.integers(8, 20)), int(rng.integers(1, 7)))
    found = null_weights_near(problem, np.arange(len(problem)), y)
    if moved_to_zero(problem, y):
        assert found is not None  # the exact solve moves by as little, up to the choice of rows
    if found is not None:
        combination = problem.select_given(found.rows)
        total = [Fraction(0)] * combination.shape[1]
        bits = np.frexp(np.linalg.norm(combination, axis=1))[1] - 1  # its rows have norms in [1, 2)
        for row, power, weight in zip(combination, bits, found.numerators, strict=True):
            scaled = Fraction(int(weight)) / Fraction(2) ** int(power)
            total = [t + scaled * Fraction(float(v)) for t, v in zip(total, row, strict=True)]
        assert min(found.numerators) > 0
        assert all(t == 0 for t in total)


def test_a_combination_that_is_too_long_proves_nothing() -> None:
    """The proof needs ||v|| / sigma < min y: two rows e, -e on the line, one weight off by more than it has."""
    problem = scaled_problem(np.array([[0.75], [-0.75]]))
    assert moved_to_zero(problem, np.array([1.0, 1.0 + 2.0**-20]))
    # sigma = 0.75 sqrt 2, v = 0.75 off: off / sqrt 2 < 1 is the limit.
    assert moved_to_zero(problem, np.array([1.0, 1.0 + 1.4]))
    assert not moved_to_zero(problem, np.array([1.0, 1.0 + 1.5]))
    assert not moved_to_zero(scaled_problem(np.array([[0.75], [0.5]])), np.ones(2))
    # Rows that do not span: no proof, whatever the weights.
    assert not moved_to_zero(scaled_problem(np.array([[1.0, 0.0], [-1.0, 0.0]])), np.ones(2))
    assert not moved_to_zero(
        scaled_problem(np.array([[1.0, 2.0**-60], [-1.0, 2.0**-60], [1, 0]])), np.ones(3)
    )


@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_separable_rows_are_never_proved_inseparable(seed: int) -> None:
    rng = np.random.default_rng(seed)
    D = int(rng.integers(1, 6))
    Z = rng.standard_normal((int(rng.integers(D + 1, 20)), D)) * 10.0 ** -rng.uniform(0, 20, D)
    Z[:, 0] = np.abs(Z[:, 0])
    problem = scaled_problem(Z)
    y = rng.random(len(Z)) * 10.0 ** rng.uniform(-3, 3, len(Z))
    assert not moved_to_zero(problem, y)
    assert null_weights_near(problem, np.arange(len(Z)), y) is None
