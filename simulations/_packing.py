"""The arrays of a problem in the layout that the compiled kernels read."""

from __future__ import annotations

import numpy as np

from marginlab.simulations.attention import Problem
from marginlab.theory.validation import Float

Packed = tuple[np.ndarray, ...]


def packed(problem: Problem) -> Packed:
    """(key differences, the same with axes (n, d, K), values, targets, match, max ||difference||, ||q||)."""
    diffs = np.ascontiguousarray(problem.key_diffs)
    return (
        diffs,
        np.ascontiguousarray(diffs.transpose(0, 2, 1)),
        problem.values.copy(),
        problem.targets.copy(),
        problem.match.copy(),
        np.linalg.norm(diffs, axis=2).max(axis=1),
        np.linalg.norm(problem.queries, axis=1),
    )


def query_gram(problem: Problem) -> Float:
    """<q_i, q_j>, shape (n, n), symmetric to the last bit."""
    gram = problem.queries @ problem.queries.T
    return np.ascontiguousarray(0.5 * (gram + gram.T))
