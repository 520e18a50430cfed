"""Oracle `first-order`: accelerated projected gradient on the least-distance program, matrix-free.

Memory is the data and a few vectors of length N and D. Each step needs one product with the rows and one with
their transpose, and gives a two-sided bound for nothing: the combination sum y_i x_i and its margins.

References
----------
.. [1] Y. Nesterov. A method of solving a convex programming problem with convergence rate O(1/k^2). 1983.
.. [2] B. O'Donoghue, E. Candes. Adaptive restart for accelerated gradient schemes. FoCM 15 (2015).
"""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.separators.evaluation import (
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

# What some thousands of steps of an accelerated method reach on data of moderate condition; a smaller
# tolerance may be asked for and costs steps in proportion to its logarithm.
FIRST_ORDER_GAP = 1e-6


def projected_gradient(problem: ScaledProblem, target: float, *, steps: int = 20_000) -> MaxMargin:
    """Max-margin separator by restarted accelerated gradient on min_{y >= 0} ||sum y_i (x_i, beta_i) - (0, 1)||^2.

    Whenever the support has been the same for a while, conjugate gradients solve its equations, again with
    products alone; that ends the run on most data.

    Parameters
    ----------
    target : float
        Stop at this relative gap.

    Raises
    ------
    NotSeparable
        The combination vanished to rounding.
    OracleFailed
        `steps` were not enough.
    """
    every = np.arange(len(problem))
    lipschitz = _largest_eigenvalue(problem, every)
    y = np.zeros(len(problem))
    ahead, momentum = y, 1.0
    best: MaxMargin | None = None
    settled, last_support, patience = 0, np.zeros(len(problem), dtype=bool), 20
    for step in range(1, steps + 1):
        g = problem.combine(ahead, every)
        gradient = problem.margins(g) - problem.beta * (1.0 - float(problem.beta @ ahead))
        new = np.maximum(ahead - gradient / lipschitz, 0.0)
        if float(gradient @ (new - y)) > 0:  # uphill: restart, as in [2]
            momentum = 1.0
        faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + ((momentum - 1.0) / faster) * (new - y)
        y, momentum = new, faster
        support = y > 0
        settled = settled + 1 if np.array_equal(support, last_support) else 0
        last_support = support
        if settled >= patience:
            y = _on_support(problem, y, np.flatnonzero(support))
            ahead, momentum, settled = y, 1.0, 0
            patience = min(2 * patience, 500)  # a support that was wrong is not solved for again at once
            best = _judged(problem, y, best, step)
        elif step % 50 == 0:
            best = _judged(problem, y, best, step)
        if best is not None and best.gap <= target:
            return best
    if best is None:
        raise undecided(problem, y, ORACLE)
    raise OracleFailed(f"oracle {ORACLE} reached a gap of {best.gap:.2e} in {steps} steps, not {target:.2e}.")


def _largest_eigenvalue(problem: ScaledProblem, every: Int) -> float:
    """Upper estimate of the largest eigenvalue of H = X X^T + beta beta^T by power iteration.

    The matrix of these rows is near non-negative (separable rows point one way), so a start of ones is close
    to the leading eigenvector; the Rayleigh quotient after 30 steps plus 10 % is above the eigenvalue unless
    the spectrum has a cluster of leading values, where a slightly long step does no harm to a restarted scheme.
    """
    v = np.ones(len(every)) / np.sqrt(len(every))
    value = 1.0
    for _ in range(30):
        product = problem.margins(problem.combine(v, every)) + problem.beta * float(problem.beta @ v)
        value = float(np.linalg.norm(product))
        v = product / value
    return 1.1 * value


def _judged(problem: ScaledProblem, y: Float, best: MaxMargin | None, step: int) -> MaxMargin | None:
    if not y.any():
        return best
    if hull_distance(problem, y) <= no_separator_below():
        raise not_separable(problem, y)
    candidate = max_margin_of(
        problem, problem.combine(y, np.arange(len(y))), y, oracle=ORACLE, iterations=step
    )
    if candidate is None or (best is not None and best.gap <= candidate.gap):
        return best
    return candidate


def _on_support(problem: ScaledProblem, y: Float, rows: Int) -> Float:
    """Conjugate gradients for H z = beta on the support, cut where a weight would turn negative."""
    part = problem.subset(rows)
    every = np.arange(len(rows))
    z = y[rows]

    def product(v: Float) -> Float:
        return part.margins(part.combine(v, every)) + part.beta * float(part.beta @ v)

    residual = part.beta - product(z)
    direction, size = residual, float(residual @ residual)
    floor = size * float(np.finfo(np.float64).eps) ** 2  # relative residual u: nothing more to gain
    start = z
    for _ in range(min(len(rows), part.dimension + 1) + 10):
        if size <= floor:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0:
            break
        z = z + (size / curvature) * direction
        residual = residual - (size / curvature) * image
        new = float(residual @ residual)
        direction, size = residual + (new / size) * direction, new
    result = np.zeros_like(y)
    negative = z < 0
    if negative.any():  # stop at the boundary of the orthant: the objective falls along the whole segment
        drop = start[negative] - z[negative]
        z = start + float(np.min(start[negative] / drop)) * (z - start)
    result[rows] = np.maximum(z, 0.0)
    return result
