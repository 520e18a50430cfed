"""The compiled engine behind `run(engine="numba")`."""

from __future__ import annotations

import numpy as np

from marginlab.simulations import _frame_descent
from marginlab.simulations._packing import packed, query_gram
from marginlab.simulations.attention import Problem
from marginlab.simulations.trajectory import RULES, Descent
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.losses import LOSSES
from marginlab.theory.validation import Float


def descend_frame(problem: Problem, config: Descent, W0: Float) -> tuple[Float, Float, Float, int | None]:
    """Run the frame-scaled kernel; returns (W, log ||gradient||, error bound, valid_until)."""
    n, _, d, _ = problem.shape
    R = len(config.record)
    W, log_norm, bound = np.empty((R, d, d)), np.empty(R), np.empty(R)
    # n^2 d multiplications a step in the span of the queries, 2 n d^2 in W: with n > d samples the queries
    # are dependent, and norms in their span would cancel.
    valid_until, overflow = _frame_descent.descend(
        packed(problem),
        problem.queries.copy(),
        query_gram(problem),
        W0,
        LOSSES.index(config.loss),
        RULES.index(config.rule),
        config.step,
        config.steps,
        np.array(config.record, dtype=np.intp),
        n <= d,
        W,
        log_norm,
        bound,
    )
    if overflow >= 0:
        largest = max(np.abs(a).max() for a in (problem.keys, problem.queries, problem.values))
        raise InvalidInput(
            f"keys, queries and values must be scaled so that the gradient stays finite in float64, which it "
            f"did not at step {overflow}; their largest entry is {largest:.3g}."
        )
    return W, log_norm, bound, None if valid_until < 0 else int(valid_until)
