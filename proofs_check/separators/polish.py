"""From the supporting rows to a bound at machine precision: refine, exchange, evaluate."""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.separators import double_double as dd
from marginlab.proofs_check.separators.active_set import Support, support_system
from marginlab.proofs_check.separators.decision import decided
from marginlab.proofs_check.separators.dense_qp import least_distance
from marginlab.proofs_check.separators.evaluation import (
    UNIT_ROUNDOFF,
    max_margin_of,
    no_separator_below,
)
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin
from marginlab.theory.validation import Float, Int

# A gap that moving the rounded W inside its constraints would not improve visibly.
_FINE = 32 * UNIT_ROUNDOFF


def finished(
    problem: ScaledProblem, support: Int, weights: Float, *, oracle: str, iterations: int, exchanges: int = 20
) -> MaxMargin:
    """The best result that the supporting rows' exact system gives.

    Parameters
    ----------
    support : indices of the rows with positive weight
    weights : (N,) weights y >= 0 that led to them, used as they are if the exact system gives no separator
    exchanges : int
        How often the problem may be solved again on the rows that double-double evidence adds to the
        support: ones it violates, or ones whose weight turned out negative.

    Raises
    ------
    NotSeparable
        A convex combination of some rows is exactly zero.
    OracleFailed
        Separability could not be decided.
    """
    best: MaxMargin | None = None
    pool = np.sort(support)
    for _ in range(exchanges):
        system = support_system(problem, support)
        positive = np.maximum(system.weights, 0.0)
        negative = system.weights < 0
        if not negative.any() and dd.norm(system.g) <= no_separator_below() * float(positive.sum()):
            y = _spread(problem, system.rows, positive)
            return decided(problem, y, oracle=oracle, iterations=iterations)
        added = _violated_by(problem, system)
        if not negative.any() and len(added) == 0:
            candidate = _evaluated(problem, system, positive, oracle, iterations)
            return (
                candidate
                if candidate is not None and (best is None or candidate.gap < best.gap)
                else (best or _as_given(problem, weights, oracle, iterations))
            )
        candidate = _evaluated(problem, system, positive, oracle, iterations)
        if candidate is not None and (best is None or candidate.gap < best.gap):
            best = candidate
        pool = np.union1d(pool, np.concatenate([system.rows, added]))
        start = np.flatnonzero(np.isin(pool, system.rows))
        support = pool[least_distance(problem, pool, start) > 0]
        if np.array_equal(support, np.sort(system.rows)):
            # Wrong by less than float64 shows: exchange on the double-double evidence.
            support = system.rows[~negative] if negative.any() else np.concatenate([system.rows, added])
        if len(support) == 0:
            break
    return best or _as_given(problem, weights, oracle, iterations)


def _as_given(problem: ScaledProblem, weights: Float, oracle: str, iterations: int) -> MaxMargin:
    w = problem.combine(weights, np.arange(len(problem)))
    candidate = max_margin_of(problem, w, weights, oracle=oracle, iterations=iterations)
    if candidate is None:
        return decided(problem, weights, oracle=oracle, iterations=iterations)
    return candidate


def _spread(problem: ScaledProblem, rows: Int, weights: Float) -> Float:
    y = np.zeros(len(problem))
    y[rows] = weights
    return y


def _evaluated(
    problem: ScaledProblem, system: Support, positive: Float, oracle: str, iterations: int
) -> MaxMargin | None:
    y = _spread(problem, system.rows, positive)
    best = max_margin_of(problem, system.separator, y, oracle=oracle, iterations=iterations)
    if best is not None and best.gap <= _FINE:
        return best
    inside = max_margin_of(problem, system.rounded_separator(), y, oracle=oracle, iterations=iterations)
    if best is None or (inside is not None and inside.gap < best.gap):
        return inside
    return best


def _violated_by(problem: ScaledProblem, system: Support) -> Int:
    """Rows that the exact solution of the support's system violates, decided in double-double."""
    g = system.separator
    length = float(np.linalg.norm(g))
    tau = length**2 / float(problem.beta[system.rows] @ system.weights)
    error = (problem.dimension + 2) * UNIT_ROUNDOFF * length
    suspects = problem.margins(g) - problem.beta * tau < error
    suspects[system.rows] = False
    index = np.flatnonzero(suspects)
    if len(index) == 0:
        return index
    high, low = problem.margins_dd(system.g, index)
    # g is known to second order; what is left is the rounding of tau.
    allowed = 8 * UNIT_ROUNDOFF * abs(tau) * problem.beta[index]
    return index[(high + low) - problem.beta[index] * tau < -allowed]
