"""Oracle `nnls`: least-distance programming by SciPy's non-negative least squares, on all rows at once."""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.separators.decision import decided
from marginlab.proofs_check.separators.dense_qp import coordinates, nonnegative_weights
from marginlab.proofs_check.separators.evaluation import hull_distance, no_separator_below
from marginlab.proofs_check.separators.polish import finished
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed


def nonnegative_least_squares(problem: ScaledProblem) -> MaxMargin:
    """Max-margin separator by Lawson and Hanson's least-distance programming.

    Raises
    ------
    NotSeparable, OracleFailed
    """
    rows = np.arange(len(problem))
    y = nonnegative_weights(coordinates(problem, rows), problem.beta)
    if not y.any():
        raise OracleFailed("oracle nnls returned no weights.")
    if hull_distance(problem, y) <= no_separator_below():
        return decided(problem, y, oracle="nnls")
    return finished(problem, np.flatnonzero(y), y, oracle="nnls", iterations=0)
