"""The gradient of the squared error in ball arithmetic, by the textbook formula: the reference for the engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from marginlab.simulations.attention import Problem
from marginlab.theory.errors import MarginlabError
from marginlab.theory.validation import Float


class PrecisionExhausted(MarginlabError):
    """Ball arithmetic could not resolve a gradient at the precision that its logit gap asks for."""


def exact_gradient_direction(problem: Problem, W: Float) -> Float:
    r"""gradient / ||gradient|| of eq. (19) at W, every entry rounded from a ball of relative radius below 2^-60.

    .. math:: \nabla = \sum_i E_i J(a_i) V_i^\top (V_i a_i - v_i)\, q_i^\top, \quad J(a) = \mathrm{diag}(a) - a a^\top

    with E_i the keys and V_i the values of sample i as columns (Lemma F.1): raw logits, values not centred. Its
    entries are exp(-2 gap) of sums of order one, which is why the precision follows the gap.

    Parameters
    ----------
    problem : Problem
    W : (d, d) array

    Raises
    ------
    PrecisionExhausted
        The gradient is not resolved: it is zero, or far smaller than the logits suggest.
    """
    from flint import ctx

    spread = float(np.ptp(np.einsum("ita,ab,ib->it", problem.keys, W, problem.queries), axis=1).max())
    saved = ctx.prec
    try:
        ctx.prec = 200 + int(8 * spread / math.log(2))
        balls = _gradient_balls(problem, W)
        return _unit(balls, W.shape)
    finally:
        ctx.prec = saved


def _gradient_balls(problem: Problem, W: Float) -> Any:
    from flint import arb, arb_mat

    def exact(array: Float) -> Any:
        return arb_mat([[arb(float(x)) for x in row] for row in np.atleast_2d(array)])

    n, K, d, d_v = problem.shape
    total = arb_mat(d, d)
    matrix = exact(W)
    for i in range(n):
        keys, values = exact(problem.keys[i]), exact(problem.values[i])  # (K, d), (K, d_v)
        query = exact(problem.queries[i]).transpose()  # (d, 1)
        scores = keys * (matrix * query)
        exponentials = [scores[t, 0].exp() for t in range(K)]
        partition = sum(exponentials, arb(0))
        a = [e / partition for e in exponentials]
        residual = [
            sum((a[t] * values[t, j] for t in range(K)), arb(0)) - arb(float(problem.targets[i, j]))
            for j in range(d_v)
        ]
        pulls = [sum((values[t, j] * residual[j] for j in range(d_v)), arb(0)) for t in range(K)]
        mean = sum((a[t] * pulls[t] for t in range(K)), arb(0))
        weights = arb_mat([[a[t] * (pulls[t] - mean)] for t in range(K)])  # (K, 1)
        total += (keys.transpose() * weights) * query.transpose()
    return total


def _unit(balls: Any, shape: tuple[int, ...]) -> Float:
    from flint import arb

    rows, columns = shape
    norm = sum((balls[a, b] ** 2 for a in range(rows) for b in range(columns)), arb(0)).sqrt()
    if not norm > 0:
        raise PrecisionExhausted("the gradient is not resolved from zero at this precision.")
    unit = np.empty(shape)
    for a in range(rows):
        for b in range(columns):
            entry = balls[a, b] / norm
            if not entry.rad() < 2.0**-60:
                raise PrecisionExhausted(f"entry ({a}, {b}) of the gradient is known only to {entry.rad()}.")
            unit[a, b] = float(entry.mid())
    return unit
