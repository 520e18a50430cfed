"""Oracle `working-set`: an active-set method on the few rows that matter, grown by the rows it violates."""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.separators.active_set import Support, block_pivoting, support_system
from marginlab.proofs_check.separators.dense_qp import least_distance
from marginlab.proofs_check.separators.evaluation import (
    UNIT_ROUNDOFF,
    hull_distance,
    max_margin_of,
    no_separator_below,
    not_separable,
)
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed
from marginlab.theory.validation import Float, Int

_ORACLE = "working-set"


def working_set(problem: ScaledProblem, *, rounds: int = 200) -> MaxMargin:
    """Max-margin separator by a growing set of rows.

    Each round solves the problem exactly on the set, by block pivoting on its Gram matrix (or, where that
    does not end, by the dense active-set solver), keeps the supporting rows and adds the worst violated ones.
    The margin of the set decreases strictly, so the rounds end.

    Raises
    ------
    NotSeparable
        The rows of the set already have a vanishing convex combination.
    OracleFailed
        Not ended within `rounds`.
    """
    every = np.arange(len(problem))
    mean = problem.combine(np.ones(len(problem)), every)
    margins = problem.margins(mean)
    slack = margins - problem.beta * float(margins.max())
    size = min(len(problem), problem.dimension + 1)
    rows = _worst(slack, np.ones(len(problem), dtype=bool), max(16, size // 8))
    start = np.arange(len(rows))
    for iteration in range(1, rounds + 1):
        y = solve_on(problem, rows, start)
        support = rows[y > 0]
        weights = np.zeros(len(problem))
        weights[rows] = y
        g = problem.combine(y[y > 0], support)
        total = float(y.sum())
        if hull_distance(problem, weights) <= no_separator_below():
            raise not_separable(problem, weights)
        slack = problem.margins(g) - problem.beta * (float(np.vdot(g, g)) / float(problem.beta @ weights))
        noise = (problem.dimension + 2 + len(support)) * UNIT_ROUNDOFF * total
        violated = slack < -noise
        violated[rows] = False
        if not violated.any():
            return finished(problem, support, weights, oracle=_ORACLE, iterations=iteration)
        added = _worst(slack, violated, max(16, size // 8))
        rows = np.concatenate([support, added])
        start = np.arange(len(rows))
    raise OracleFailed(f"oracle {_ORACLE} still found violated rows after {rounds} rounds.")


def _worst(slack: Float, among: np.ndarray, count: int) -> Int:
    index = np.flatnonzero(among)
    if len(index) <= count:
        return index
    return index[np.argpartition(slack[index], count)[:count]]


def solve_on(problem: ScaledProblem, rows: Int, start: Int) -> Float:
    """Weights y >= 0 of the least-distance program on `rows`."""
    H = problem.gram(rows, rows)
    beta = problem.beta[rows]
    H += np.multiply.outer(beta, beta)
    y = block_pivoting(H, beta, start)
    return least_distance(problem, rows) if y is None else y


def finished(
    problem: ScaledProblem, support: Int, weights: Float, *, oracle: str, iterations: int, exchanges: int = 20
) -> MaxMargin:
    """Solve the supporting rows' system to machine precision, exchange what it shows to be wrong, and bound.

    Raises
    ------
    NotSeparable
        The weights show that there is no separator.
    OracleFailed
        No positive margin was reached.
    """
    best: MaxMargin | None = None
    for _ in range(exchanges):
        system = support_system(problem, support)
        y = np.zeros(len(problem))
        y[system.rows] = np.maximum(system.weights, 0.0)
        if y.any() and hull_distance(problem, y) <= no_separator_below():
            raise not_separable(problem, y)
        best = _better(best, problem, system, y, oracle, iterations)
        negative = system.weights < 0
        if negative.any():
            support = system.rows[~negative]
            if len(support) == 0:
                break
            continue
        added = _violated_by(problem, system)
        if len(added) == 0:
            break
        support = np.concatenate([system.rows, added])
    if best is None:
        candidate = max_margin_of(
            problem, problem.combine(weights, np.arange(len(problem))), weights, oracle=oracle
        )
        if candidate is None:
            raise undecided(problem, weights, oracle)
        return candidate
    return best


def undecided(problem: ScaledProblem, weights: Float, oracle: str) -> OracleFailed:
    """Neither a positive margin nor a vanishing combination: the sentence that says so."""
    return OracleFailed(
        f"oracle {oracle} could not decide separability: no W with positive margins was found, and the best convex "
        f"combination of the rows, scaled to unit norm, has norm {hull_distance(problem, weights):.2e}, above "
        f"the {no_separator_below():.1e} that would show there is none."
    )


def _better(
    best: MaxMargin | None, problem: ScaledProblem, system: Support, y: Float, oracle: str, iterations: int
) -> MaxMargin | None:
    for w in (system.separator, system.rounded_separator()):
        candidate = max_margin_of(problem, w, y, oracle=oracle, iterations=iterations)
        if candidate is not None and (best is None or candidate.gap < best.gap):
            best = candidate
    return best


def _violated_by(problem: ScaledProblem, system: Support) -> Int:
    """Rows that the exact solution of the support's system violates, decided in double-double."""
    g = system.separator
    length = float(np.linalg.norm(g))
    tau = length**2 / float(problem.beta[system.rows] @ system.weights)
    error = (problem.dimension + 2) * UNIT_ROUNDOFF * length
    suspects = np.flatnonzero(problem.margins(g) - problem.beta * tau < error)
    suspects = np.setdiff1d(suspects, system.rows)
    if len(suspects) == 0:
        return suspects
    high, low = problem.margins_dd(system.g, suspects)
    # g itself is known to second order; what is left is the rounding of tau.
    return suspects[
        (high + low) - problem.beta[suspects] * tau < -8 * UNIT_ROUNDOFF * problem.beta[suspects] * tau
    ]
