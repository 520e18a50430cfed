"""The dynamics of the support against a plain integrator of the definition, and against its own limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.simulations.support_flow import support_flow
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import margin_correction


def drawn(seed: int, k: int) -> tuple[Any, Any, Any]:
    """K and alpha with K alpha = 1, and a Gram matrix D of positive vectors (strictly copositive)."""
    rng = np.random.default_rng(seed)
    d = np.abs(rng.standard_normal((k, k + 1)))
    alpha = rng.uniform(0.2, 1.0, k)
    B = rng.standard_normal((k, k + 2))
    K = B @ B.T / k
    # A rank-one correction in the direction K alpha makes K alpha = 1 and keeps K positive definite.
    b, one = K @ alpha, np.ones(k)
    K = K - np.outer(b, b) / (alpha @ b) + np.outer(one, one) / alpha.sum()
    return K, d @ d.T, alpha


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_plain_integrator_agrees(seed: int, k: int) -> None:
    """Classical Runge-Kutta in 8000 steps on dz/ds = 1/2 - K (e^z o D e^z)."""
    K, D, alpha = drawn(seed, k)
    z = start = np.random.default_rng(seed).standard_normal(k) - 1
    steps, h = 8_000, 2.0 / 8_000

    def velocity(x: Any) -> Any:
        p = np.exp(x)
        return 0.5 - K @ (p * (D @ p))

    for _ in range(steps):
        k1 = velocity(z)
        k2 = velocity(z + h / 2 * k1)
        k3 = velocity(z + h / 2 * k2)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(z + h * k3))
    assert np.abs(support_flow(K, D, alpha, start, [2.0])[0] - z).max() < 1e-7


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_every_start_ends_at_the_correction(seed: int, k: int) -> None:
    K, D, alpha = drawn(seed, k)
    limit = np.log(margin_correction(D, alpha / 2))
    rate = (
        np.linalg.eigvals(K @ (np.diag(alpha) + 2 * np.exp(limit)[:, None] * D * np.exp(limit))).real.min()
        / 2
    )
    for start in (np.zeros(k), np.full(k, -3.0)):
        assert np.abs(support_flow(K, D, alpha, start, [60 / rate])[0] - limit).max() < 1e-7


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"times": []}, "times must be non-empty"),
        ({"times": [2.0, 1.0]}, "increase strictly"),
        ({"times": [-1.0]}, "from 0 on"),
        ({"start": [0.0, 0.0]}, "start"),
        ({"gram": np.eye(2)}, "gram"),
        ({"errors": [[np.nan]]}, "errors"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], match: str) -> None:
    how: dict[str, Any] = {
        "gram": [[1.0]],
        "errors": [[1.0]],
        "multipliers": [1.0],
        "start": [0.0],
        "times": [1.0],
    }
    with pytest.raises(InvalidInput, match=match):
        support_flow(**how | change)
