"""The arrays of a problem in the layouts that the compiled kernels read."""

from __future__ import annotations

import numpy as np

from marginlab.simulations.attention import Problem


def frame_data(problem: Problem) -> tuple[np.ndarray, ...]:
    """What `_frame.descend` takes as `data`."""
    diffs = np.ascontiguousarray(problem.key_diffs)
    with np.errstate(over="ignore", invalid="ignore"):  # the kernel reports what is not finite
        gram = problem.queries @ problem.queries.T
        diff_norm = np.linalg.norm(diffs, axis=2).max(axis=1)
        query_norm = np.linalg.norm(problem.queries, axis=1)
    return (
        diffs,
        np.ascontiguousarray(diffs.transpose(0, 2, 1)),
        problem.queries.copy(),
        np.ascontiguousarray(0.5 * (gram + gram.T)),
        problem.values.copy(),
        problem.targets.copy(),
        problem.match.copy(),
        diff_norm,
        query_norm,
    )


def textbook_data(problem: Problem) -> tuple[np.ndarray, ...]:
    """Keys, queries, values, targets, match; bounds on ||k_t||, ||v_s - v_t|| and ||v_t|| + ||target||."""
    selected = problem.values[np.arange(len(problem.values)), problem.match]
    with np.errstate(over="ignore", invalid="ignore"):
        key_norm = np.linalg.norm(problem.keys, axis=2).max(axis=1)
        diameter = 2 * np.linalg.norm(problem.values - selected[:, None], axis=2).max(axis=1)
        value_norm = np.linalg.norm(problem.values, axis=2).max(axis=1)
        value_norm = value_norm + np.linalg.norm(problem.targets, axis=1)
    return (
        problem.keys.copy(),
        problem.queries.copy(),
        problem.values.copy(),
        problem.targets.copy(),
        problem.match.copy(),
        key_norm,
        diameter,
        value_norm,
    )
