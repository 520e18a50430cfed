"""The ball-arithmetic gradient against mpmath's finite differences of the loss, far beyond float64."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from marginlab.proofs_check.claims.match_copy.exact_gradient import (
    PrecisionExhausted,
    exact_gradient_direction,
)
from marginlab.simulations.attention import Problem


def _loss(problem: Problem, W: Any) -> Any:
    n, K, d, d_v = problem.shape
    total = mpmath.mpf(0)
    for i in range(n):
        scores = [
            mpmath.fsum(
                mpmath.mpf(float(problem.keys[i, t, a])) * W[a, b] * mpmath.mpf(float(problem.queries[i, b]))
                for a in range(d)
                for b in range(d)
            )
            for t in range(K)
        ]
        weights = [mpmath.exp(s) for s in scores]
        for j in range(d_v):
            output = mpmath.fsum(
                w * float(problem.values[i, t, j]) for t, w in enumerate(weights)
            ) / mpmath.fsum(weights)
            total += (output - mpmath.mpf(float(problem.targets[i, j]))) ** 2 / 2
    return total


@pytest.mark.parametrize("scale", [0.5, 20.0])
def test_direction_against_central_differences(scale: float) -> None:
    rng = np.random.default_rng(3)
    keys, values = rng.standard_normal((2, 2, 3, 2))
    problem = Problem(keys, rng.standard_normal((2, 2)), values, np.array([0, 2]))
    W = scale * rng.standard_normal((2, 2))
    with mpmath.workdps(200):
        h = mpmath.mpf(10) ** -60
        slopes = np.empty((2, 2), dtype=object)
        for a in range(2):
            for b in range(2):
                up, down = mpmath.matrix(W.tolist()), mpmath.matrix(W.tolist())
                up[a, b] += h
                down[a, b] -= h
                slopes[a, b] = (_loss(problem, up) - _loss(problem, down)) / (2 * h)
        norm = mpmath.sqrt(mpmath.fsum(s**2 for s in slopes.ravel()))
        expected = np.array([[float(s / norm) for s in row] for row in slopes])
    assert np.abs(exact_gradient_direction(problem, W) - expected).max() <= 2.0**-50


def test_a_zero_gradient_is_an_error_and_not_a_direction() -> None:
    same = np.ones((1, 2, 2))  # two equal values: the output does not depend on W
    problem = Problem(np.array([[[1.0, 0.0], [0.0, 1.0]]]), np.ones((1, 2)), same, np.array([0]))
    with pytest.raises(PrecisionExhausted, match="not resolved"):
        exact_gradient_direction(problem, np.eye(2))
