"""Constants of the convergence theorem against integers, and the Hessian bound against mpmath."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from marginlab.simulations.attention import Problem
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.convergence import HalfSpaceConstants, smoothness

#: One sample whose constants are integers: differences of keys (3, 0) and (0, 4), query (2, 0), errors (1, 1), (3, 0).
KEYS = np.array([[[0.0, 0.0], [-3.0, 0.0], [0.0, -4.0]]])
VALUES = np.array([[[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]]])
INTEGERS = Problem(KEYS, np.array([[2.0, 0.0]]), VALUES, np.array([0]))


def test_constants_of_integers() -> None:
    """g = 2, R = 3, X = 8, so B = 4 * 9 * 64 / 2 and L* = theta^2 / 2 * 8 / 81."""
    c = HalfSpaceConstants.of(INTEGERS, 1.0)
    assert (c.g, c.feature_radius) == (2.0, 8.0)
    assert c.curvature == pytest.approx(1152.0, rel=8 * np.finfo(float).eps)
    assert c.largest_loss(0.5) == pytest.approx(1 / 81, rel=8 * np.finfo(float).eps)
    assert c.mu(1 / 9) == pytest.approx(np.log(2.0), rel=8 * np.finfo(float).eps)  # x = 1/3
    assert c.applies(np.array([1e-4, 1e-3]), 1.0).tolist() == [True, False]
    assert c.applies(1e-3, 0.0)


def test_a4_and_theta_are_needed() -> None:
    """Without A4, or with theta outside (0, 1), there is no bound."""
    values = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])
    with pytest.raises(InvalidInput, match="A4"):
        HalfSpaceConstants.of(Problem(KEYS, np.array([[2.0, 0.0]]), values, np.array([0])), 1.0)
    with pytest.raises(InvalidInput, match="norm"):
        HalfSpaceConstants.of(INTEGERS, 0.0)
    with pytest.raises(InvalidInput, match="theta"):
        HalfSpaceConstants.of(INTEGERS, 1.0).largest_loss(1.0)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_curvature_bounds_second_differences(seed: int) -> None:
    """The second derivative along random unit directions stays within B L, by mpmath's own differentiation."""
    rng = np.random.default_rng(seed)
    c = HalfSpaceConstants.of(INTEGERS, 1.0)
    W, U = rng.standard_normal((2, 2, 2))
    U /= np.linalg.norm(U)

    def loss(s: object) -> object:
        m = [KEYS[0, 0] - KEYS[0, t] for t in (1, 2)]
        at = [mp.mpf(float(k @ W @ [2.0, 0.0])) + s * mp.mpf(float(k @ U @ [2.0, 0.0])) for k in m]  # type: ignore[operator]
        odds = [mp.exp(-x) for x in at]
        a = [o / (1 + sum(odds)) for o in odds]
        return (
            sum((a[0] * mp.mpf(x) + a[1] * mp.mpf(y)) ** 2 for x, y in zip((1, 1), (3, 0), strict=True)) / 2
        )

    with mp.workdps(40):
        second, value = mp.diff(loss, 0, 2), loss(mp.mpf(0))
        assert abs(second) <= c.curvature * value  # type: ignore[operator]
        assert abs(second) <= smoothness(INTEGERS)  # type: ignore[operator]


def test_smoothness_of_integers() -> None:
    """Values are at most 3 apart, keys 5, the query is 2 long: 100 (9 / 8 + 9 / 4)."""
    assert smoothness(INTEGERS) == pytest.approx(337.5, rel=8 * np.finfo(float).eps)
