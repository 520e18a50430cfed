"""Parts of the work-horse that its fallbacks would hide: DAQP's weights, block pivoting, exchanges."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators.active_set import block_pivoting, independent_factor, support_system
from marginlab.proofs_check.separators.dense_qp import _daqp_weights, coordinates, nonnegative_weights
from marginlab.proofs_check.separators.evaluation import UNIT_ROUNDOFF
from marginlab.proofs_check.separators.polish import finished
from marginlab.proofs_check.separators.scaled import scaled_problem

SEEDS = st.integers(0, 2**32 - 1)


def separable(rng: np.random.Generator, N: int, D: int) -> np.ndarray:
    w = rng.standard_normal(D)
    w /= np.linalg.norm(w)
    rows = rng.standard_normal((N, D))
    along = rows @ w
    return rows + np.outer(np.abs(along) - along + 0.3, w)


@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_three_solvers_give_the_same_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = scaled_problem(separable(rng, 12, 20))  # fewer rows than unknowns: weights are unique
    rows = np.arange(12)
    X, beta = problem.dense(rows), problem.beta
    reference = nonnegative_weights(X, beta)
    none = np.arange(0)
    a = _daqp_weights(X, beta, none)
    assert a is not None
    # Solutions of systems of condition below 1e4 to float64, DAQP's to its tolerance of 1e-12.
    assert np.allclose(a / (1 + beta @ a), reference, atol=1e-8)
    pivoted = block_pivoting(X @ X.T + np.outer(beta, beta), beta, none, block=4)
    assert pivoted is not None
    assert np.allclose(pivoted, reference, atol=1e-10)
    C = coordinates(problem, rows)
    assert C.shape == (12, 12)
    assert np.allclose(C @ C.T, X @ X.T, atol=64 * UNIT_ROUNDOFF)


@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_polishing_repairs_a_wrong_support(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = scaled_problem(separable(rng, 30, 8))
    y = nonnegative_weights(problem.dense(np.arange(30)), problem.beta)
    right = np.flatnonzero(y)
    missing = right[1:] if len(right) > 1 else right
    others = np.setdiff1d(np.arange(30), right)
    extra = np.append(right, rng.choice(others)) if len(right) < 8 else right
    for wrong in (missing, extra):
        solution = finished(problem, wrong, y, oracle="polish", iterations=0)
        assert solution.gap <= 64 * UNIT_ROUNDOFF / solution.margin_lower  # rounding alone is left
        assert np.array_equal(solution.active, right)


def test_dependent_rows_are_dropped_from_a_factor() -> None:
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    L, kept = independent_factor(X @ X.T)
    assert len(kept) == 2
    block = (X @ X.T)[np.ix_(kept, kept)]
    assert np.allclose(np.tril(L) @ np.tril(L).T, block, atol=8 * UNIT_ROUNDOFF)


@given(seed=SEEDS)
@settings(deadline=None, max_examples=25)
def test_support_system_solves_to_twice_the_precision(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = scaled_problem(rng.standard_normal((6, 9)))
    system = support_system(problem, np.arange(6))
    high, low = problem.margins_dd(system.g, system.rows)
    tau = (high + low) / problem.beta[system.rows]
    # One common tau on all rows: g is good far below u, so what differs is the rounding of high + low.
    assert np.ptp(tau) <= 4 * UNIT_ROUNDOFF * np.abs(tau).max()
    lifted = problem.margins(system.lift)[system.rows] - 1.0
    ratio = lifted / problem.beta[system.rows]
    assert np.ptp(ratio) <= 1e-8 * (1 + np.abs(ratio).max())
