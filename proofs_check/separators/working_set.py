"""Oracle `working-set`: an active-set method on the few rows that matter, grown by the rows it violates.

Few unknowns and many rows: the set is warm-started by the separator of a random tenth of the rows. By
Clarkson's sampling lemma the optimum of r random rows out of N violates on average at most
D (N - r) / (r + 1) of the others, about 9 D for a tenth, so two or three passes over all the rows are left.

References
----------
.. [1] K. L. Clarkson. Las Vegas algorithms for linear and integer programming when the dimension is small.
   J. ACM 42 (1995).
"""

from __future__ import annotations

import math

import numpy as np

from marginlab.proofs_check.separators.active_set import block_pivoting
from marginlab.proofs_check.separators.decision import decided
from marginlab.proofs_check.separators.dense_qp import least_distance
from marginlab.proofs_check.separators.evaluation import UNIT_ROUNDOFF, no_separator_below
from marginlab.proofs_check.separators.polish import finished
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed
from marginlab.theory.validation import Float, Int

ORACLE = "working-set"

# Up to this many unknowns DAQP on the rows themselves is faster than block pivoting on their Gram matrix
# (measured: 4 ms against 14 ms on 1000 rows of 100 unknowns); beyond, no row of W's size is ever formed.
DENSE_DIMENSION = 256

# One row in this many is sampled for a warm start.
_SAMPLING = 10


def working_set(problem: ScaledProblem, *, rounds: int = 500) -> MaxMargin:
    """Max-margin separator by a growing set of rows.

    Each round solves the problem exactly on the set, by DAQP (dense dual active set) or by block pivoting on
    the Gram matrix, keeps the supporting rows and adds the worst violated ones. The margin of the set
    decreases strictly, so the rounds end.

    Raises
    ------
    NotSeparable
        A convex combination of some rows is exactly zero.
    OracleFailed
        Not ended within `rounds`, or separability could not be decided.
    """
    support, weights, used = _solution_support(problem, _first_rows(problem, rounds), rounds)
    if _distance(problem, support, weights) <= no_separator_below():
        return decided(problem, _spread(problem, support, weights), oracle=ORACLE, iterations=used)
    return finished(problem, support, _spread(problem, support, weights), oracle=ORACLE, iterations=used)


def _batch(problem: ScaledProblem) -> int:
    """Rows added per round: they must pay for a pass over the data, and the set's solve grows with them."""
    size = _rank(problem)
    return 4 * size if problem.dimension <= DENSE_DIMENSION else max(16, size // 4)


def _rank(problem: ScaledProblem) -> int:
    """The largest number of supporting rows that are independent as (x_i, beta_i)."""
    return min(len(problem), problem.dimension + 1)


def _first_rows(problem: ScaledProblem, rounds: int) -> Int:
    n, batch = len(problem), _batch(problem)
    if n >= 4 * _SAMPLING * _rank(problem):
        # A fixed seed: the answer does not depend on the sample, the time does.
        chosen = np.sort(np.random.default_rng(0).choice(n, n // _SAMPLING, replace=False))
        part = problem.subset(chosen)
        support, _, _ = _solution_support(part, _first_rows(part, rounds), rounds)
        return chosen[support]
    mean = problem.combine(np.ones(n), np.arange(n))
    margins = problem.margins(mean)
    return _worst(margins - problem.beta * float(margins.max()), np.ones(n, dtype=bool), batch)


def _worst(slack: Float, among: np.ndarray, count: int) -> Int:
    index = np.flatnonzero(among)
    if len(index) <= count:
        return index
    return index[np.argpartition(slack[index], count)[:count]]


def _spread(problem: ScaledProblem, rows: Int, weights: Float) -> Float:
    y = np.zeros(len(problem))
    y[rows] = weights
    return y


def _distance(problem: ScaledProblem, rows: Int, weights: Float) -> float:
    """||sum y_i x_i|| / sum y_i; formed in double-double only where float64 shows that it is small."""
    total = math.fsum(weights)
    distance = float(np.linalg.norm(problem.combine(weights, rows))) / total
    # A float64 combination of k rows of norm at most 1 is wrong by at most (k + 1) u sum y.
    if distance > (len(rows) + 1) * UNIT_ROUNDOFF + no_separator_below():
        return distance
    high, low = problem.combine_dd((weights, np.zeros_like(weights)), rows)
    return float(np.linalg.norm(high + low)) / total


def _solution_support(problem: ScaledProblem, rows: Int, rounds: int) -> tuple[Int, Float, int]:
    """Supporting rows, their weights y > 0, and the rounds used."""
    dense = problem.dimension <= DENSE_DIMENSION
    batch = _batch(problem)
    # Rows once added are kept while that is cheap: dropped ones come back.
    capacity = 8 * _rank(problem) if dense else 2 * _rank(problem)
    start = np.arange(0)
    H = np.zeros((0, 0)) if dense else _program(problem, rows)
    for used in range(1, rounds + 1):
        beta = problem.beta[rows]
        y = None if dense else block_pivoting(H, beta, start, block=max(16, _rank(problem) // 8))
        if y is None:
            y = least_distance(problem, rows, start)
        held = np.flatnonzero(y > 0)
        support, weights = rows[held], y[held]
        if len(held) == 0:
            raise OracleFailed(f"oracle {ORACLE} lost every supporting row in round {used}.")
        if _distance(problem, support, weights) <= no_separator_below():
            return support, weights, used
        g = problem.combine(weights, support)
        tau = float(np.vdot(g, g)) / float(problem.beta[support] @ weights)
        slack = problem.margins(g) - problem.beta * tau
        # g and its products with rows of norm at most 1 are wrong by at most this much.
        noise = (problem.dimension + 2 + len(support)) * UNIT_ROUNDOFF * float(weights.sum())
        violated = slack < -noise
        violated[rows] = False
        if not violated.any():
            return support, weights, used
        added = _worst(slack, violated, batch)
        if len(rows) + len(added) > capacity:
            rows, H = support, H if dense else H[np.ix_(held, held)]
            held = np.arange(len(support))
        if not dense:
            H = _bordered(problem, H, rows, added)
        rows, start = np.concatenate([rows, added]), held
    raise OracleFailed(f"oracle {ORACLE} still found violated rows after {rounds} rounds.")


def _program(problem: ScaledProblem, rows: Int) -> Float:
    """H = X X^T + beta beta^T on `rows`."""
    H = problem.gram(rows, rows)
    H += np.multiply.outer(problem.beta[rows], problem.beta[rows])
    return H


def _bordered(problem: ScaledProblem, H: Float, rows: Int, added: Int) -> Float:
    """H with `added` rows and columns, at the price of those alone."""
    m, k = len(rows), len(added)
    result = np.empty((m + k, m + k))
    result[:m, :m] = H
    cross = problem.gram(added, rows)
    cross += np.multiply.outer(problem.beta[added], problem.beta[rows])
    result[m:, :m] = cross
    result[:m, m:] = cross.T
    result[m:, m:] = _program(problem, added)
    return result
