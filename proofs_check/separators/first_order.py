"""Oracle `first-order`: accelerated projected gradient and conjugate gradients, nothing factored.

The least-distance program min_{y >= 0} ||sum y_i (x_i, beta_i) - (0, 1)||^2 is solved with products by
the rows and their transpose alone, on a growing set of rows. Memory is the data, a copy of the set and a
few vectors. Each round over all the rows gives a two-sided bound for nothing: the combination sum y_i x_i
and its margins.

References
----------
.. [1] Y. Nesterov. A method of solving a convex programming problem with convergence rate O(1/k^2). 1983.
.. [2] B. O'Donoghue, E. Candes. Adaptive restart for accelerated gradient schemes. FoCM 15 (2015).
.. [3] J. J. More, G. Toraldo. On the solution of large quadratic programming problems with bound constraints.
   SIAM J. Optim. 1 (1991): gradient steps find the support, conjugate gradients solve on it.
"""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.separators.decision import decided
from marginlab.proofs_check.separators.evaluation import (
    UNIT_ROUNDOFF,
    hull_distance,
    max_margin_of,
    no_separator_below,
)
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed
from marginlab.theory.validation import Float, Int

ORACLE = "first-order"

# What an accelerated method reaches in some thousands of steps on data of moderate condition, where conjugate
# gradients have not ended it at rounding before. A smaller tolerance may be asked for.
FIRST_ORDER_GAP = 1e-6

# Steps without a tenth off the best gap after which a run is given up: float64 products have nothing more to
# give, as for data whose squared margin is near the unit roundoff.
_STALLED = 20_000


def projected_gradient(problem: ScaledProblem, target: float, *, steps: int = 200_000) -> MaxMargin:
    """Max-margin separator by first-order steps on a growing set of rows.

    Parameters
    ----------
    target : float
        Stop at this relative gap.
    steps : int
        Gradient steps in all, over every set of rows.

    Raises
    ------
    NotSeparable
        A convex combination of some rows is exactly zero.
    OracleFailed
        The gap was not reached, or separability could not be decided.
    """
    size = min(len(problem), problem.dimension + 1)
    mean = problem.combine(np.ones(len(problem)), np.arange(len(problem)))
    margins = problem.margins(mean)
    rows = _smallest(margins - problem.beta * float(margins.max()), 4 * size)
    y = np.zeros(len(problem))
    best: MaxMargin | None = None
    # A set is solved ten times as closely as its answer fits the other rows, no closer: it is going to grow.
    accuracy, used = 0.1, 0
    while used < steps:
        part = problem.subset(rows)
        inner, spent = _least_distance(part, y[rows], accuracy, steps - used)
        used += spent
        y = np.zeros(len(problem))
        y[rows] = inner
        if not y.any():
            break
        if hull_distance(problem, y) <= no_separator_below():
            return decided(problem, y, oracle=ORACLE, iterations=used)
        w = part.combine(inner, np.arange(len(rows)))
        candidate = max_margin_of(problem, w, y, oracle=ORACLE, iterations=used)
        halved = candidate is not None and (best is None or candidate.gap < best.gap / 2)
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
        elif accuracy <= UNIT_ROUNDOFF or (used > _STALLED and not halved):
            break
        accuracy = min(accuracy, (1.0 if candidate is None else candidate.gap) / 10)
        if not outside.any():
            accuracy /= 4
    if best is None:
        return decided(problem, y, oracle=ORACLE, iterations=used)
    raise OracleFailed(
        f"oracle {ORACLE} reached a gap of {best.gap:.2e}, recomputed from the data, not {target:.2e}."
    )


def _smallest(values: Float, count: int) -> Int:
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]


def _least_distance(part: ScaledProblem, y: Float, accuracy: float, steps: int) -> tuple[Float, int]:
    """Weights y >= 0 of the least-distance program on all rows of `part`, and the steps taken.

    Ends at `accuracy`, after `steps`, or when the gap has not fallen for `_STALLED` steps.
    """
    lipschitz = _largest_eigenvalue(part)
    ahead, momentum = y, 1.0
    before, slope_before = np.zeros(len(part)), -part.beta
    settled, last_support, patience = 0, y > 0, 20
    least, least_at = np.inf, 0
    for step in range(1, steps + 1):
        slope = _gradient(part, ahead)
        moved = float(np.linalg.norm(ahead - before))
        if moved > 0:  # the curvature just seen: the power iteration may have missed a leading direction
            curvature = float(np.linalg.norm(slope - slope_before)) / moved
            if curvature > lipschitz:
                lipschitz, momentum = 1.1 * curvature, 1.0
        before, slope_before = ahead, slope
        new = np.maximum(ahead - slope / lipschitz, 0.0)
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
            patience = min(2 * patience, 100)  # a support that was wrong is not solved for again at once
        elif step % 50:
            continue
        gap = _float_gap(part, y)
        if gap < 0.9 * least:
            least, least_at = gap, step
        if gap <= accuracy or step - least_at > _STALLED:
            return y, step
    return y, steps


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
    quotient after 30 steps plus 10 % is above the eigenvalue unless the start misses a leading
    direction; the steps then see its curvature and correct the estimate.
    """
    v = np.ones(len(part)) / np.sqrt(len(part))
    value = 1.0
    for _ in range(30):
        product = _gradient(part, v) + part.beta
        value = float(np.linalg.norm(product))
        v = product / value
    return 1.1 * value


def _on_face(part: ScaledProblem, y: Float) -> Float:
    """A better point on the face of y: rows whose weight turns negative leave together, if that descends."""
    start = rows = np.flatnonzero(y > 0)
    first: Float | None = None
    for _ in range(10):  # halving at least the wrong ones each time; projected gradient goes on from there
        z = _conjugate_gradients(part.subset(rows), y[rows])
        first = z if first is None else first
        keep = z > 0
        if keep.all():
            result = np.zeros_like(y)
            result[rows] = z
            if _objective(part, result) <= _objective(part, y):
                return result
            break
        if not keep.any():
            break
        rows = rows[keep]
    # Cut the first step at the boundary of the orthant: the objective falls along the whole segment.
    result = y.copy()
    if first is not None:
        falling = first < 0
        ratios = y[start][falling] / (y[start][falling] - first[falling])
        step = float(ratios.min(initial=1.0))
        result[start] = np.maximum(y[start] + step * (first - y[start]), 0.0)
    return result


def _objective(part: ScaledProblem, y: Float) -> float:
    """||sum y_i (x_i, beta_i) - (0, 1)||^2."""
    g = part.combine(y, np.arange(len(y)))
    return float(np.vdot(g, g)) + (1.0 - float(part.beta @ y)) ** 2


def _conjugate_gradients(part: ScaledProblem, z: Float) -> Float:
    """Solution of H z = beta on all rows of `part`, signs not forced."""
    residual = -_gradient(part, z)
    direction, size = residual, float(residual @ residual)
    # Each entry of a residual carries a rounding error of about k u max|H| |z|.
    floor = len(z) * (len(z) * UNIT_ROUNDOFF * float(np.abs(z).max(initial=0.0))) ** 2
    for _ in range(min(len(z), part.dimension + 1) + 10):
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
    return z
