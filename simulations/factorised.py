"""Descent on both factors of the key-query matrix, W = W_K^T W_Q, as a model with separate keys and queries trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginlab.simulations.attention import Problem
from marginlab.simulations.threads import single_threaded
from marginlab.simulations.trajectory import RULES, TRUSTED, Descent
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.attention import min_margin
from marginlab.theory.match_copy.losses import LOSSES, log_loss
from marginlab.theory.validation import Float, Int, frozen, shaped_array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorisedTrajectory:
    """Recorded steps of one run on the factors; all arrays are read-only.

    Attributes
    ----------
    config : Descent
    steps : (R,) array of int
    W_K, W_Q : (R, d_h, d) arrays
    W : (R, d, d) array
        W_K^T W_Q.
    log_loss : (R,) array
        Natural logarithm of the loss at W = W_K^T W_Q.
    log_grad_norm : (R,) array
        Of the joint gradient, sqrt(||grad_K||^2 + ||grad_Q||^2), as the engine computed it.
    min_margin : (R,) array
    error_bound : (R,) array
        Bound on the relative error of the joint gradient; NaN where the engine has none ("torch").
    valid_until : int or None
        First step, recorded or not, at which that bound exceeds 1e-6; None if there is none, or no bound.
    """

    config: Descent
    steps: Int
    W_K: Float
    W_Q: Float
    W: Float
    log_loss: Float
    log_grad_norm: Float
    min_margin: Float
    error_bound: Float
    valid_until: int | None

    def __len__(self) -> int:
        return len(self.steps)


def small_factors(d: int, d_h: int, scale: float, seed: int | np.random.SeedSequence) -> tuple[Float, Float]:
    """Independent Gaussian W_K and W_Q, entries of standard deviation `scale`, each (d_h, d)."""
    rng = np.random.default_rng(seed)
    W_K, W_Q = scale * rng.standard_normal((2, d_h, d))
    return W_K, W_Q


def run_factorised(
    problem: Problem,
    *,
    W_K0: ArrayLike,
    W_Q0: ArrayLike,
    loss: str = "mse",
    rule: str = "gd",
    step: float,
    steps: int,
    record: Any,
    engine: str = "numba",
) -> FactorisedTrajectory:
    """Trajectory of (normalised) gradient descent on W_K and W_Q together.

    Parameters
    ----------
    problem : Problem
    W_K0, W_Q0 : (d_h, d) arrays
        Start. Zero is a saddle point at which nothing moves.
    loss, rule, step, steps, record
        As for `marginlab.simulations.descent.run`; norms are those of the joint gradient.
    engine : "numba" or "torch"
        Frame-scaled and compiled, trusted at any margin; or the textbook loop with autograd, the reference.

    Raises
    ------
    InvalidInput
        An argument breaks its rule, or the gradient overflows float64.

    Examples
    --------
    >>> from marginlab.theory.match_copy import MatchCopyTask, sample
    >>> data = sample(MatchCopyTask.template(T=4, d=8), n=6, seed=0)
    >>> W_K, W_Q = small_factors(8, 8, 1e-2, seed=0)
    >>> how = {"rule": "normalised", "step": 1e-2, "steps": 2_000, "record": [2_000]}
    >>> run_factorised(Problem.from_match_copy(data), W_K0=W_K, W_Q0=W_Q, **how).W.shape
    (1, 8, 8)
    """
    if engine not in ("numba", "torch"):
        raise InvalidInput(f"engine must be one of numba, torch; got {engine!r}.")
    config = Descent(loss=loss, rule=rule, step=step, steps=steps, record=record, engine=engine)
    d = problem.shape[2]
    W_K = shaped_array(W_K0, "W_K0", (None, d))
    W_Q = shaped_array(W_Q0, "W_Q0", W_K.shape)
    with single_threaded():
        descended = _compiled if engine == "numba" else _autograd
        W_K, W_Q, log_norm, bound, valid_until = descended(problem, config, W_K, W_Q)
        W = np.swapaxes(W_K, 1, 2) @ W_Q
        return FactorisedTrajectory(
            config=config,
            steps=frozen(np.array(config.record, dtype=np.intp)),
            W_K=frozen(W_K),
            W_Q=frozen(W_Q),
            W=frozen(W),
            log_loss=frozen(log_loss(problem, W, config.loss)),
            log_grad_norm=frozen(log_norm),
            min_margin=frozen(min_margin(problem, W)),
            error_bound=frozen(bound),
            valid_until=valid_until,
        )


def _compiled(
    problem: Problem, config: Descent, W_K: Float, W_Q: Float
) -> tuple[Float, Float, Float, Float, int | None]:
    from marginlab.simulations import _frame
    from marginlab.simulations._packing import frame_data

    R = len(config.record)
    path_K, path_Q = np.empty((R, *W_K.shape)), np.empty((R, *W_K.shape))
    log_norm, bound = np.empty(R), np.empty(R)
    valid_until, overflow = _frame.descend_factors(
        frame_data(problem),
        W_K.copy(),
        W_Q.copy(),
        LOSSES.index(config.loss),
        RULES.index(config.rule),
        config.step,
        config.steps,
        TRUSTED,
        np.array(config.record, dtype=np.intp),
        path_K,
        path_Q,
        log_norm,
        bound,
    )
    if overflow >= 0:
        raise InvalidInput(
            f"keys, queries, values and factors must be scaled so that the gradient stays finite in float64, which "
            f"it did not at step {overflow}."
        )
    return path_K, path_Q, log_norm, bound, None if valid_until < 0 else int(valid_until)


def _autograd(
    problem: Problem, config: Descent, W_K: Float, W_Q: Float
) -> tuple[Float, Float, Float, Float, int | None]:
    from marginlab.simulations._autograd import descend_factors_autograd

    return descend_factors_autograd(problem, config, W_K, W_Q)
