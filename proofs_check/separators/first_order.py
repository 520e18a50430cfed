"""Oracle `first-order`: accelerated projected gradient and conjugate gradients, nothing factored.

The least-distance program min_{y >= 0} ||sum y_i (x_i, beta_i) - (0, 1)||^2 is solved with products by
the rows and their transpose alone, on a growing set of rows. Memory is the data, a copy of the set and a few vectors.
Each round over all the rows gives a two-sided bound for nothing: the combination sum y_i x_i and its margins.

References
----------
.. [1] Y. Nesterov. A method of solving a convex programming problem with convergence rate O(1/k^2). 1983.
.. [2] B. O'Donoghue, E. Candes. Adaptive restart for accelerated gradient schemes. FoCM 15 (2015).
.. [3] J. J. More, G. Toraldo. On the solution of large quadratic programming problems with bound constraints.
   SIAM J. Optim. 1 (1991): gradient steps find the support, conjugate gradients solve on it.
"""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.separators.evaluation import (
    UNIT_ROUNDOFF,
    hull_distance,
    max_margin_of,
    no_separator_below,
    not_separable,
)
from marginlab.proofs_check.separators.polish import undecided
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed
from marginlab.theory.validation import Float, Int

ORACLE = "first-order"

# What an accelerated method reaches in some thousands of steps on data of moderate condition, where conjugate
# gradients have not ended it at rounding before. A smaller tolerance may be asked for.
FIRST_ORDER_GAP = 1e-6


def projected_gradient(problem: ScaledProblem, target: float, *, rounds: int = 100) -> MaxMargin:
    """Max-margin separator by first-order steps on a growing set of rows.

    Parameters
    ----------
    target : float
        Stop at this relative gap.

    Raises
    ------
    NotSeparable
        The combination vanished to rounding.
    OracleFailed
        The gap was not reached.
    """
    size = min(len(problem), problem.dimension + 1)
    mean = problem.combine(np.ones(len(problem)), np.arange(len(problem)))
    margins = problem.margins(mean)
    rows = _smallest(margins - problem.beta * float(margins.max()), 4 * size)
    y = np.zeros(len(problem))
    best: MaxMargin | None = None
    accuracy = min(target, FIRST_ORDER_GAP) / 4
    for iteration in range(1, rounds + 1):
        part = problem.subset(rows)
        inner, ended = _least_distance(part, y[rows], accuracy)
        y = np.zeros(len(problem))
        y[rows] = inner
        if not y.any():
            break
        if hull_distance(problem, y) <= no_separator_below():
            raise not_separable(problem, y)
        w = part.combine(inner, np.arange(len(rows)))
        candidate = max_margin_of(problem, w, y, oracle=ORACLE, iterations=iteration)
        if candidate is not None and (best is None or candidate.gap < best.gap):
            best = candidate
        if best is not None and best.gap <= target:
            return best
        tau = float(np.vdot(w, w)) / float(problem.beta @ y)
        slack = problem.margins(w) - problem.beta * tau
        outside = slack < 0
        outside[rows] = False
        if outside.any():
            index = np.flatnonzero(outside)
            rows = np.concatenate([rows, index[_smallest(slack[index], 4 * size)]])
        elif not ended or accuracy <= UNIT_ROUNDOFF:
            break
        else:
            accuracy /= 16
    if best is None:
        raise undecided(problem, y, ORACLE)
    raise OracleFailed(
        f"oracle {ORACLE} reached a gap of {best.gap:.2e}, recomputed from the data, not {target:.2e}."
    )


def _smallest(values: Float, count: int) -> Int:
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


def _least_distance(
    part: ScaledProblem, y: Float, accuracy: float, *, steps: int = 20_000
) -> tuple[Float, bool]:
    """Weights y >= 0 of the least-distance program on all rows of `part`, and whether `accuracy` was met."""
    lipschitz = _largest_eigenvalue(part)
    ahead, momentum = y, 1.0
    settled, last_support, patience = 0, y > 0, 20
    for step in range(1, steps + 1):
        new = np.maximum(ahead - _gradient(part, ahead) / lipschitz, 0.0)
        if float((ahead - new) @ (new - y)) > 0:  # uphill: restart, as in [2]
            momentum = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + ((momentum - 1.0) / faster) * (new - y)
        y, momentum = new, faster
        support = y > 0
        settled = settled + 1 if np.array_equal(support, last_support) else 0
        last_support = support
        if settled >= patience:
            y = _on_face(part, y)
            ahead, momentum, settled = y, 1.0, 0
            patience = min(2 * patience, 500)  # a support that was wrong is not solved for again at once
            if _float_gap(part, y) <= accuracy:
                return y, True
        elif step % 50 == 0 and _float_gap(part, y) <= accuracy:
            return y, True
    return y, False


def _gradient(part: ScaledProblem, y: Float) -> Float:
    """H y - beta for H = X X^T + beta beta^T."""
    g = part.combine(y, np.arange(len(y)))
    return part.margins(g) - part.beta * (1.0 - float(part.beta @ y))


def _float_gap(part: ScaledProblem, y: Float) -> float:
    """Relative gap on the set in float64, to steer by; zero for a combination that vanishes to rounding."""
    total = float(part.beta @ y)
    if total == 0:
        return np.inf
    g = part.combine(y, np.arange(len(y)))
    square = float(np.vdot(g, g))
    if np.sqrt(square) <= no_separator_below() * float(y.sum()):
        return 0.0
    # lower = min margin / ||g||, upper = ||g|| / sum beta_i y_i
    return 1.0 - float((part.margins(g) / part.beta).min()) * total / square


def _largest_eigenvalue(part: ScaledProblem) -> float:
    """Upper estimate of the largest eigenvalue of H by power iteration.

    Separable rows point one way, so a start of ones is close to the leading eigenvector. The Rayleigh
    quotient after 30 steps plus 10 % is above the eigenvalue unless several leading ones are nearly equal, where a
    step that is slightly too long does no harm to a restarted scheme that is judged by its gap.
    """
    v = np.ones(len(part)) / np.sqrt(len(part))
    value = 1.0
    for _ in range(30):
        product = _gradient(part, v) + part.beta
        value = float(np.linalg.norm(product))
        v = product / value
    return 1.1 * value


def _on_face(part: ScaledProblem, y: Float) -> Float:
    """The least point on the face of y, or of the smaller face that the way there runs into."""
    while True:
        new = _on_support(part, y, np.flatnonzero(y > 0))
        if np.array_equal(new > 0, y > 0) or not new.any():
            return new
        y = new


def _on_support(part: ScaledProblem, y: Float, rows: Int) -> Float:
    """Conjugate gradients for H z = beta on the support, cut where a weight would turn negative."""
    part = part.subset(rows)
    start = z = y[rows]
    residual = -_gradient(part, z)
    direction, size = residual, float(residual @ residual)
    # A residual below k u |H| |z| is rounding.
    floor = (len(rows) * UNIT_ROUNDOFF * float(np.abs(z).sum())) ** 2 / max(1, len(rows))
    for _ in range(min(len(rows), part.dimension + 1) + 10):
        if size <= floor:
            break
        image = _gradient(part, direction) + part.beta
        curvature = float(direction @ image)
        if curvature <= 0:
            break
        z = z + (size / curvature) * direction
        residual = residual - (size / curvature) * image
        new = float(residual @ residual)
        direction, size = residual + (new / size) * direction, new
    negative = z < 0
    if negative.any():  # stop at the boundary of the orthant: the objective falls along the whole segment
        ratios = np.full(len(z), np.inf)
        ratios[negative] = start[negative] / (start[negative] - z[negative])
        z = start + float(ratios.min()) * (z - start)
        z[ratios <= float(ratios.min())] = 0.0
    result = np.zeros_like(y)
    result[rows] = np.maximum(z, 0.0)
    return result
