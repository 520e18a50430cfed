"""Least-distance programs by finite active-set solvers: DAQP, and non-negative least squares."""

from __future__ import annotations

import daqp
import numpy as np
from scipy.optimize import nnls

from marginlab.proofs_check.separators.evaluation import UNIT_ROUNDOFF
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import OracleFailed
from marginlab.theory.validation import Float, Int

# Bounds at or beyond this count as absent in DAQP; bit 1 of a constraint's sense starts it as active.
_NO_BOUND = 1e30
_ACTIVE = 1

# DAQP's tolerance on <x_i, w> >= beta_i: some thousands of roundings of a product of unit vectors. What it
# leaves is removed by the refined linear system of the active set.
_DAQP_PRIMAL = 1e-12


def coordinates(problem: ScaledProblem, rows: Int) -> Float:
    """The rows as vectors in a space of the smallest dimension, with the same inner products.

    That is the rows themselves, or their triangular factor R^T of X^T = Q R where there are fewer rows than
    unknowns.
    """
    X = problem.dense(rows)
    if len(rows) < problem.dimension:
        return np.asarray(np.linalg.qr(X.T, mode="r")).T
    return X


def least_distance(problem: ScaledProblem, rows: Int, start: Int) -> Float:
    """Weights y >= 0 with sum y_i (x_i, beta_i) closest to (0, 1).

    DAQP where the rows are separable, warm-started with `start` (positions in `rows`) active; where it finds
    no solution, non-negative least squares, whose weights show it if there is none.
    """
    X, beta = coordinates(problem, rows), problem.beta[rows]
    for active in (start, start[:0]) if len(start) else (start,):
        a = _daqp_weights(X, beta, active)
        if a is not None:
            return a / (1.0 + float(beta @ a))  # y = tau a with tau = 1 - sum beta_i y_i
    return nonnegative_weights(X, beta)


def _daqp_weights(X: Float, beta: Float, active: Int) -> Float | None:
    """a >= 0 with w = sum a_i x_i the shortest w such that X w >= beta, or None if DAQP found none."""
    m, d = X.shape
    sense = np.zeros(m, dtype=np.int32)
    sense[active] = _ACTIVE
    _, _, flag, info = daqp.solve(
        np.eye(d),
        np.zeros(d),
        -X,
        -beta,
        np.full(m, -_NO_BOUND),
        sense,
        primal_tol=_DAQP_PRIMAL,
        iter_limit=100 * (m + d),
    )
    a = np.abs(info["lam"])
    return a if flag == 1 and np.isfinite(a).all() and a.any() else None


def nonnegative_weights(X: Float, beta: Float) -> Float:
    """The same weights by SciPy's non-negative least squares.

    Raises
    ------
    OracleFailed
        Its iteration limit was reached.
    """
    E = np.concatenate([X, beta[:, None]], axis=1).T
    target = np.zeros(len(E))
    target[-1] = 1.0
    try:
        y, _ = nnls(E, target, maxiter=30 * max(E.shape))
    except RuntimeError as error:
        raise OracleFailed(f"non-negative least squares did not end: {error}.") from None
    y[y < UNIT_ROUNDOFF * y.max(initial=0.0)] = 0.0
    return y
