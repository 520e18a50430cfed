"""The compiled control behind `run(engine="naive")`."""

from __future__ import annotations

import numpy as np

from marginlab.simulations import _naive
from marginlab.simulations.attention import Problem
from marginlab.simulations.trajectory import RULES, Descent
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.losses import LOSSES
from marginlab.theory.validation import Float


def naive_data(problem: Problem) -> tuple[np.ndarray, ...]:
    """Arrays for the kernel; the last three bound ||k_t||, ||v_s - v_t|| and ||v_t|| + ||target||, each (n,)."""
    selected = problem.values[np.arange(len(problem.values)), problem.match]
    return (
        problem.keys.copy(),
        problem.queries.copy(),
        problem.values.copy(),
        problem.targets.copy(),
        problem.match.copy(),
        np.linalg.norm(problem.keys, axis=2).max(axis=1),
        2 * np.linalg.norm(problem.values - selected[:, None], axis=2).max(axis=1),
        np.linalg.norm(problem.values, axis=2).max(axis=1) + np.linalg.norm(problem.targets, axis=1),
    )


def descend_naive(problem: Problem, config: Descent, W0: Float) -> tuple[Float, Float, Float, int | None]:
    """Run the textbook kernel; returns (W, log ||gradient||, error bound, valid_until)."""
    d, R = problem.shape[2], len(config.record)
    W, log_norm, bound = np.empty((R, d, d)), np.empty(R), np.empty(R)
    valid_until, overflow = _naive.descend(
        naive_data(problem),
        W0,
        LOSSES.index(config.loss),
        RULES.index(config.rule),
        config.step,
        config.steps,
        np.array(config.record, dtype=np.intp),
        W,
        log_norm,
        bound,
    )
    if overflow >= 0:
        raise InvalidInput(f"the gradient must stay finite in float64, it is not at step {overflow}.")
    return W, log_norm, bound, None if valid_until < 0 else int(valid_until)
