"""The judge of the engines: the textbook gradient in as many digits as the logit gap needs."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy import MatchCopyTask, sample


def _exact_gradient(problem: Problem, W: np.ndarray, loss: str) -> tuple[np.ndarray, float]:
    n, K, d, d_v = problem.shape
    scores = np.einsum("itj,jk,ik->it", problem.keys, W, problem.queries)
    gap = float(np.ptp(scores, axis=1).max())
    # The residual loses gap / ln 10 digits and the backward pass as many again; forty are left.
    with mpmath.workdps(int(2 * gap / np.log(10)) + 40):
        G = [[mpmath.mpf(0)] * d for _ in range(d)]
        for i in range(n):
            query, values = problem.queries[i].tolist(), problem.values[i].tolist()
            x = [mpmath.fdot(row, query) for row in W.tolist()]
            exponentials = [mpmath.exp(mpmath.fdot(key, x)) for key in problem.keys[i].tolist()]
            total = mpmath.fsum(exponentials)
            a = [e / total for e in exponentials]
            if loss == "mse":
                columns = problem.values[i].T.tolist()
                r = [mpmath.fdot(a, columns[j]) - problem.targets[i, j] for j in range(d_v)]
                inner = [mpmath.fdot(value, r) for value in values]
                mean = mpmath.fdot(a, inner)
                g = [a[t] * (inner[t] - mean) for t in range(K)]
            else:
                g = [a[t] - (t == problem.match[i]) for t in range(K)]
            for k, column in enumerate(problem.keys[i].T.tolist()):
                pull = mpmath.fdot(g, column)
                for j in range(d):
                    G[k][j] += pull * query[j]
        flat = [entry for row in G for entry in row]
        norm = mpmath.sqrt(mpmath.fdot(flat, flat))
        direction = np.array([float(entry / norm) for entry in flat]).reshape(d, d)
        return direction, float(mpmath.log(norm))


@pytest.fixture(scope="session")
def exact_gradient() -> Callable[[Problem, np.ndarray, str], tuple[np.ndarray, float]]:
    """(problem, W, loss) -> (unit direction of the gradient, natural logarithm of its norm), by mpmath."""
    return _exact_gradient


def _saturated(seed: int, gap: float, *, T: int = 5, d: int = 10, n: int = 5) -> tuple[Problem, np.ndarray]:
    task = MatchCopyTask.template(T=T, d=d, coordinate_std=1.0)
    problem = Problem.from_match_copy(sample(task, n, seed))
    rows = problem.constraints().dense()
    unit = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0]
    return problem, gap * unit.reshape(d, d)


@pytest.fixture(scope="session")
def saturated() -> Callable[..., tuple[Problem, np.ndarray]]:
    """(seed, gap) -> noiseless match-and-copy data and a W whose every margin is `gap`."""
    return _saturated
