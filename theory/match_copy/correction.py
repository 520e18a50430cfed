r"""The self-consistent correction: the limit of margins minus half of log tau on supporting constraints.

Under gradient descent on the squared error, m_{i,t}(tau) = (1/2) log tau - log p_{i,t} + o(1) on the support,
where p_i solves

.. math:: p_i \circ (D_i p_i) = c_i, \quad D_i = (\langle d_{i,t}, d_{i,s}\rangle)_{t,s \in SV(i)},
          \quad c_i = \alpha_i / (2 \eta) .

This removes the unknown limit h^infinity of the paper's (A7), eq. (24): h^infinity = (D p) / sum p.
"""

from __future__ import annotations

import numpy as np

from marginlab.theory.errors import InvalidInput, MarginlabError
from marginlab.theory.validation import Float, float_array, shaped_array

#: Damped Newton takes tens of steps even for multipliers that differ by a factor 1e12; more means divergence.
_MAX_STEPS = 500

#: Six digits. Where more cancels in D p, x runs off along a near-null direction of D.
_ACCURACY = 2.0**-20


class NoFixedPoint(MarginlabError):
    """p o (D p) = c has no positive solution that could be reached; the message says why."""


def margin_correction(D: Float, c: Float) -> Float:
    r"""The p > 0 with p_t (D p)_t = c_t, shape (k,), to rounding.

    .. math:: p = \arg\min_{p > 0} \tfrac12 p^\top D p - \sum_t c_t \log p_t .

    Parameters
    ----------
    D : (k, k) symmetric positive semi-definite array
        A Gram matrix of error directions.
    c : (k,) array, > 0

    Raises
    ------
    InvalidInput
        Shapes that do not fit, D not symmetric, a diagonal entry or a c that is not positive.
    NoFixedPoint
        No solution was reached: D is not strictly copositive, as where (A3) fails, or too close to that.

    Notes
    -----
    The objective is strictly convex; it is coercive, hence has its unique critical point, if and only if no
    p >= 0 other than 0 has p^T D p = 0. Divided by min c it is self-concordant: Newton steps are damped by
    backtracking while the decrement is at least 1/4, and full below, where they converge quadratically.
    """
    D, c = _checked(D, c)
    # x = p / s with s_t = sqrt(c_t / D_tt): each constraint alone would be solved by x_t = 1, the start.
    s = np.sqrt(c / np.diag(D))
    A = D * np.outer(s, s)
    x = np.ones(len(c))
    # Products and sums of k terms: k + 4 roundings each way, and the same again in the last Newton step.
    roundings = 4 * (len(c) + 4) * np.finfo(float).eps
    for _ in range(_MAX_STEPS):
        pull = A @ x
        slip = roundings * (x * (np.abs(A) @ x) + c)
        if np.all(np.abs(x * pull - c) <= slip) and np.all(slip <= _ACCURACY * c):
            return s * x
        slope = pull - c / x
        try:
            step = np.asarray(-np.linalg.solve(A + np.diag(c / x**2), slope), dtype=np.float64)
        except np.linalg.LinAlgError:  # x ran off along a null direction of D until c / x^2 rounded away
            break
        decrement = np.sqrt(max(-(slope @ step) / c.min(), 0.0))
        length = 1.0 if decrement < 0.25 else _armijo(A, c, x, step, float(slope @ step))
        x = x + length * step
    residual = float(np.max(np.abs(x * (A @ x) / c - 1)))
    raise NoFixedPoint(
        f"p o (D p) = c needs a strictly copositive D: the relative residual stayed at "
        f"{residual:.2g} and p reached {np.max(s * x):.2g}."
    )


def _armijo(A: Float, c: Float, x: Float, step: Float, slope: float) -> float:
    """Largest power of 1/2 that keeps x positive and gains a quarter of what the slope promises."""

    def objective(y: Float) -> float:
        return float(0.5 * y @ A @ y - c @ np.log(y))

    length, start = 1.0, objective(x)
    while np.any(x + length * step <= 0) or objective(x + length * step) > start + length * slope / 4:
        length /= 2
    return length


def _checked(D: Float, c: Float) -> tuple[Float, Float]:
    c = float_array(c, "c", ndim=1)
    D = shaped_array(D, "D", (len(c), len(c)))
    if not np.array_equal(D, D.T):
        where = tuple(int(i) for i in np.argwhere(D != D.T)[0])
        raise InvalidInput(f"D must be symmetric, got {D[where]} at {where} and {D.T[where]} at its mirror.")
    for name, values in (("the diagonal of D", np.diag(D)), ("c", c)):
        if not np.all(values > 0):
            where = int(np.argmin(values > 0))
            raise InvalidInput(f"{name} must be positive, got {values[where]} at index {where}.")
    return D, c
