"""The dynamics of the supporting margins alone, in log time: its limit is the correction of the margins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from marginlab.simulations.threads import single_threaded
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, float_array, shaped_array

#: Relative tolerance of the integrator.
TOLERANCE = 1e-11


def support_flow(
    gram: ArrayLike, errors: ArrayLike, multipliers: ArrayLike, start: ArrayLike, times: ArrayLike
) -> Float:
    r"""z(s), shape (R, k), of the dynamics that gradient flow has on the supporting constraints alone.

    With z = (1/2) log t - m and s = log t, where only the k supporting constraints exist and their weights are small,

    .. math:: \frac{dz}{ds} = \tfrac12 1 - K \big(e^z \circ D e^z\big) = -K \nabla F(z), \quad
              F(z) = \tfrac12 (e^z)^\top D e^z - c^\top z, \quad c = \alpha / 2,

    since K alpha = 1 on the support.

    Parameters
    ----------
    gram : (k, k) array, positive definite
        K, the Gram matrix of the supporting constraint vectors.
    errors : (k, k) array
        D: inner products of the error directions within a sample, zero between samples.
    multipliers : (k,) array > 0
        alpha of the separator.
    start : (k,) array
        z at s = 0.
    times : (R,) strictly increasing array, >= 0

    Raises
    ------
    InvalidInput
        Shapes that do not fit, times that do not increase from 0 on, or an integration that failed.
    """
    c = float_array(multipliers, "multipliers", ndim=1) / 2
    k = len(c)
    K, D = shaped_array(gram, "gram", (k, k)), shaped_array(errors, "errors", (k, k))
    s = float_array(times, "times", ndim=1)
    if not len(s) or s[0] < 0 or (np.diff(s) <= 0).any():
        raise InvalidInput(f"times must be non-empty and increase strictly from 0 on, got {times!r}.")

    def velocity(_: float, z: Float) -> Float:
        weights = np.exp(z)
        return -K @ (weights * (D @ weights) - c)

    def jacobian(_: float, z: Float) -> Float:
        weights = np.exp(z)
        return -K @ (np.diag(weights * (D @ weights)) + weights[:, None] * D * weights)

    with single_threaded():
        solution = solve_ivp(
            velocity,
            (0.0, float(s[-1])),
            shaped_array(start, "start", (k,)),
            method="LSODA",
            t_eval=s,
            jac=jacobian,
            rtol=TOLERANCE,
            atol=TOLERANCE,
        )
    if solution.status != 0:
        raise InvalidInput(f"the dynamics must have a solution up to s = {s[-1]:g}: {solution.message}")
    return solution.y.T
