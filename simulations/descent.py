"""(Normalised) gradient descent on one-layer attention, recorded along the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginlab.simulations.attention import Problem
from marginlab.simulations.threads import single_threaded
from marginlab.simulations.trajectory import RULES, Descent, EngineOutput, Trajectory
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.attention import min_margin
from marginlab.theory.match_copy.losses import LOSSES, log_loss
from marginlab.theory.validation import Float, frozen, shaped_array


def run(
    problem: Problem,
    *,
    loss: str = "mse",
    rule: str = "gd",
    step: float,
    steps: int,
    record: Any,
    W0: ArrayLike | None = None,
    engine: str = "numba",
) -> Trajectory:
    """Trajectory of (normalised) gradient descent on the loss of `problem`.

    Parameters
    ----------
    problem : Problem
    loss : "mse" (sum of halves of squared errors, eq. 19) or "cross-entropy" (of the match, summed)
    rule : "gd", "normalised", "normalised-sqrt" or "loss-scaled"
        Fixed step; fixed step over ||G||_F; step / sqrt(s + 1) over ||G||_F; fixed step over the loss.
    step : float > 0
    steps : int >= 0
        Number of updates.
    record : int or increasing sequence of int
        A count of log-spaced steps beside step 0, or the steps themselves: see
        `marginlab.simulations.trajectory.recorded_steps`. What is recorded changes no number of the run.
    W0 : (d, d) array, optional
        Zero by default.
    engine : "numba", "torch" or "naive"
        "numba": hand-derived gradient in margin-difference form with its scale carried as a logarithm;
        trusted at any margin. "torch": the textbook loop with autograd in float64, the readable reference;
        its gradient is right to 1e-6 only while every attention weight that matters is far above 2^-53,
        and wrong beyond a logit gap of 53 ln 2 = 36.7 (`valid_until` says when). "naive": the same textbook
        softmax backward, compiled: the control that shows the artefact.

    Raises
    ------
    InvalidInput
        An argument breaks its rule, or the gradient overflows float64.

    Notes
    -----
    A normalised rule whose engine returns an exactly zero gradient stays where it is.

    Examples
    --------
    >>> from marginlab.theory.match_copy import MatchCopyTask, sample
    >>> data = sample(MatchCopyTask.template(T=4, d=16, coordinate_std=1.0), n=8, seed=0)
    >>> run(Problem.from_match_copy(data), step=1e-3, steps=100, record=4).steps.tolist()
    [0, 1, 5, 22, 100]
    """
    config = Descent(loss=loss, rule=rule, step=step, steps=steps, record=record, engine=engine)
    d = problem.shape[2]
    start = np.zeros((d, d)) if W0 is None else shaped_array(W0, "W0", (d, d))
    engine_run = engine_named(config.engine)  # imports first: pools that come with them are pinned too
    with single_threaded():
        output = engine_run(problem, config, start)
        return Trajectory(
            config=config,
            steps=frozen(np.array(config.record, dtype=np.intp)),
            W=frozen(output.W),
            log_loss=frozen(log_loss(problem, output.W, config.loss)),
            log_grad_norm=frozen(output.log_grad_norm),
            min_margin=frozen(min_margin(problem, output.W)),
            error_bound=frozen(output.error_bound),
            valid_until=output.valid_until,
        )


def run_batch(
    problems: Sequence[Problem], *, W0: ArrayLike | None = None, **options: Any
) -> tuple[Trajectory, ...]:
    """`run` for each of several problems of one shape, bit for bit the same as one by one.

    Parameters
    ----------
    problems : sequence of Problem, all of the same shape
    W0 : (d, d) or (B, d, d) array, optional
        One start for all, or one each.
    **options
        As for `run`.

    Raises
    ------
    InvalidInput
        No problem, problems of different shapes, or what `run` raises.
    """
    if not problems:
        raise InvalidInput("a batch needs at least one problem, got none.")
    shapes = sorted({problem.shape for problem in problems})
    if len(shapes) > 1:
        raise InvalidInput(f"the problems of a batch must have one shape (n, K, d, d_v), got {shapes}.")
    d = shapes[0][2]
    if W0 is None:
        starts = [None] * len(problems)
    elif np.ndim(W0) == 3:
        starts = list(shaped_array(W0, "W0", (len(problems), d, d)))
    else:
        starts = [shaped_array(W0, "W0", (d, d))] * len(problems)
    with single_threaded():
        return tuple(
            run(problem, W0=start, **options) for problem, start in zip(problems, starts, strict=True)
        )


def warm_up() -> None:
    """Compile every kernel that `run` and `run_factorised` can call, into numba's cache on disk."""
    from marginlab.simulations.factorised import run_factorised

    rng = np.random.default_rng(0)
    for n, d in ((2, 3), (3, 2)):
        keys, queries = rng.standard_normal((n, 2, d)), rng.standard_normal((n, d))
        problem = Problem(keys, queries, keys, np.zeros(n, dtype=int))
        for engine in ("numba", "naive"):
            for loss in LOSSES:
                for rule in RULES:
                    run(problem, loss=loss, rule=rule, step=0.1, steps=2, record=1, engine=engine)
        factors = rng.standard_normal((2, 2, d))
        run_factorised(problem, W_K0=factors[0], W_Q0=factors[1], step=0.1, steps=2, record=1)


def engine_named(name: str) -> Callable[[Problem, Descent, Float], EngineOutput]:
    """The function of an engine; its heavy imports happen here and not before."""
    if name == "torch":
        from marginlab.simulations._autograd import descend_autograd

        return descend_autograd
    from marginlab.simulations._compiled import descend_compiled

    return descend_compiled
