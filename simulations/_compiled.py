"""The compiled engines: frame-scaled (engine="numba") and textbook (engine="naive")."""

from __future__ import annotations

import numpy as np

from marginlab.simulations import _frame, _textbook
from marginlab.simulations._packing import frame_data, textbook_data
from marginlab.simulations.attention import Problem
from marginlab.simulations.trajectory import RULES, TRUSTED, Descent, EngineOutput
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.losses import LOSSES
from marginlab.theory.validation import Float


def descend_compiled(problem: Problem, config: Descent, W0: Float) -> EngineOutput:
    """Run the kernel of ``config.engine`` ("numba" or "naive")."""
    n, _, d, _ = problem.shape
    R = len(config.record)
    W, log_norm, bound, G = np.empty((R, d, d)), np.empty(R), np.empty(R), np.empty((d, d))
    how = (
        LOSSES.index(config.loss),
        RULES.index(config.rule),
        config.step,
        config.steps,
        TRUSTED,
    )
    out = (np.array(config.record, dtype=np.intp), W, log_norm, bound, G)
    if config.engine == "numba":
        # In the span of the queries a step costs n^2 d multiplications, in W 2 n d^2. With n > d the queries
        # are dependent, and norms in their span would cancel.
        valid_until, overflow = _frame.descend(frame_data(problem), W0.copy(), *how, n <= d, *out)
    else:
        valid_until, overflow = _textbook.descend(textbook_data(problem), W0.copy(), *how, *out)
    if overflow >= 0:
        raise InvalidInput(
            f"keys, queries, values and W0 must be scaled so that the gradient stays finite in float64, "
            f"which it did not at step {overflow}."
        )
    return EngineOutput(W, log_norm, bound, None if valid_until < 0 else int(valid_until), G)
