"""The gradient at one W, with its scale as a logarithm and a bound on its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import engine_named
from marginlab.simulations.threads import single_threaded
from marginlab.simulations.trajectory import Descent
from marginlab.theory.validation import Float, frozen, shaped_array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogGradient:
    """gradient = exp(log_norm) * direction.

    Attributes
    ----------
    direction : (d, d) array of Frobenius norm 1; zero if the gradient is exactly zero
    log_norm : float
        -inf if the gradient is exactly zero.
    error_bound : float
        Bound on the relative error in the Frobenius norm; inf where the gradient could be zero.
    """

    direction: Float
    log_norm: float
    error_bound: float


def log_gradient(problem: Problem, W: ArrayLike, *, loss: str = "mse", engine: str = "numba") -> LogGradient:
    """Gradient of the loss at W by one of the engines of `marginlab.simulations.descent.run`.

    Parameters
    ----------
    problem : Problem
    W : (d, d) array
    loss : "mse" or "cross-entropy"
    engine : "numba", "torch" or "naive"

    Raises
    ------
    InvalidInput
        W of another shape, NaN, an unknown loss or engine, or a gradient that overflows float64.
    """
    d = problem.shape[2]
    config = Descent(loss=loss, step=1.0, steps=0, record=(0,), engine=engine)
    engine_run = engine_named(config.engine)
    with single_threaded():
        output = engine_run(problem, config, shaped_array(W, "W", (d, d)))
    size = np.linalg.norm(output.gradient)
    return LogGradient(
        direction=frozen(output.gradient / size if size > 0 else np.zeros((d, d))),
        log_norm=float(output.log_grad_norm[0]),
        error_bound=float(output.error_bound[0]),
    )
