"""Limits of soft matching against the estimator itself far out, plain counting, and long simulated chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.errors import InvalidInput
from marginlab.theory.markov import sample_chains
from marginlab.theory.ngrams import batch_counts, overlap_counts, soft_match
from marginlab.theory.ngrams.limits import (
    additive_distance_bounds,
    back_off_error_bound,
    back_off_gap,
    back_off_law,
    fixed_scale_limit,
    scale_separation_law,
    single_lag_concentration,
)

SEEDS = st.integers(0, 10**6)


def case(seed: int, k: int) -> tuple[np.random.Generator, np.ndarray, int, np.ndarray]:
    rng = np.random.default_rng(seed)
    V = int(rng.integers(2, 4))
    x = rng.integers(0, V, int(rng.integers(k + 2, 30)))
    return rng, x, V, overlap_counts(batch_counts(x[None], V, k)[0])[0, 0]


def best_overlap(x: np.ndarray, V: int, k: int, key: Any) -> np.ndarray:
    """Symbols pooled over the positions whose set of matching lags is the best by `key`."""
    T = len(x)
    matches = [(tuple(x[s - lag] == x[T - lag] for lag in range(1, k + 1)), x[s]) for s in range(k, T)]
    best = max(key(m) for m, _ in matches)
    counts = np.bincount([y for m, y in matches if key(m) == best], minlength=V)
    return counts / counts.sum()


@settings(max_examples=60)
@given(seed=SEEDS, k=st.integers(1, 4))
def test_back_off_by_listing(seed: int, k: int) -> None:
    """Equal directions: the largest number of matching lags. Super-decreasing ones: lexicographic in the lags."""
    _, x, V, N = case(seed, k)
    np.testing.assert_allclose(back_off_law(N, np.ones(k)), best_overlap(x, V, k, sum), rtol=1e-15)
    steep = 3.0 ** -np.arange(k)
    np.testing.assert_allclose(back_off_law(N, steep), best_overlap(x, V, k, lambda m: m), rtol=1e-15)


@settings(max_examples=60)
@given(seed=SEEDS, k=st.integers(1, 4), tau=st.sampled_from([0.5, 2.0, 8.0, 30.0]))
def test_back_off_error(seed: int, k: int, tau: float) -> None:
    rng, x, V, N = case(seed, k)
    b = rng.uniform(0.2, 2.0, k)
    distance = np.abs(soft_match(x, V, tau * b)[-1] - back_off_law(N, b)).sum() / 2
    assert distance <= back_off_error_bound(N, b, tau) + 1e-13
    assert back_off_gap(N, b) > 0


@settings(max_examples=60)
@given(seed=SEEDS, k=st.integers(1, 4), beta=st.sampled_from([0.3, 2.0, 5.0, 10.0]))
def test_distance_to_additive_smoothing(seed: int, k: int, beta: float) -> None:
    rng, x, V, N = case(seed, k)
    alpha = float(rng.uniform(0.05, 3))
    soft = soft_match(x, V, np.full(k, beta), kappa=k * beta + np.log(alpha * V))[-1]
    additive = (N[-1] + alpha) / (N[-1].sum() + alpha * V)
    sharp, simple = additive_distance_bounds(N, alpha, beta)
    assert np.abs(soft - additive).sum() / 2 <= sharp + 1e-13
    assert sharp <= simple * (1 + 1e-14)


@settings(max_examples=40)
@given(seed=SEEDS, k=st.integers(2, 4))
def test_separated_scales(seed: int, k: int) -> None:
    rng, x, V, N = case(seed, k)
    beta, kappa = float(rng.uniform(0.2, 4)), float(rng.normal())
    scales = np.append(np.full(k - 1, 45.0), beta)
    soft = soft_match(x, V, scales, kappa=kappa + 45.0 * (k - 1))[-1]
    np.testing.assert_allclose(scale_separation_law(N, beta, kappa), soft, atol=1e-13)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_one_lag_is_dirichlet_smoothing(seed: int) -> None:
    rng, x, V, N = case(seed, 1)
    beta, kappa = float(rng.uniform(0.1, 6)), float(rng.normal())
    n = N.sum()
    c = single_lag_concentration(n, beta, kappa)
    unigram = (N.sum(0) + np.exp(kappa) / V) / (n + np.exp(kappa))
    want = (N[1] + c * unigram) / (N[1].sum() + c)
    np.testing.assert_allclose(soft_match(x, V, [beta], kappa=kappa)[-1], want, rtol=1e-12)


@pytest.mark.parametrize(
    ("seed", "k", "beta"), [(0, 1, [1.0]), (1, 2, [1.0, 2.0]), (2, 2, [-1.0, 0.5]), (3, 3, [1.0] * 3)]
)
def test_long_chains_reach_the_fixed_scale_limit(seed: int, k: int, beta: list[float]) -> None:
    """A million tokens: averages are off by a few thousandths at most, and 5e-3 would show a wrong term."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(2), 2**k)
    x = sample_chains(P, 1_000_000, seed=seed, n=1)[0]
    limit = fixed_scale_limit(P, 2, beta, x[: -k - 1 : -1])
    for kappa in (-np.inf, 3.0):
        np.testing.assert_allclose(soft_match(x, 2, beta, kappa=kappa)[-1], limit, atol=5e-3)
    assert np.abs(limit - P[int(sum(x[-lag] * 2 ** (lag - 1) for lag in range(1, k + 1)))]).max() > 5e-3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: back_off_law(np.ones((3, 2)), [1.0]), r"counts must have shape \(..., 2, V\), got \(3, 2\)"),
        (lambda: back_off_law(-np.ones((2, 2)), [1.0]), "counts must not be negative, got -1"),
        (lambda: back_off_law(np.ones((2, 2)), [0.0]), "b must hold positive numbers"),
        (lambda: back_off_error_bound(np.ones((2, 2)), [1.0], 0.0), "tau must be positive"),
        (lambda: additive_distance_bounds(np.ones((2, 2)), -1.0, 1.0), "alpha must be positive"),
        (lambda: scale_separation_law(np.ones((2, 2)), 1.0, 0.0), "scales can separate for two lags or more"),
        (lambda: single_lag_concentration(np.inf, 1.0), "n must be finite"),
        (lambda: fixed_scale_limit(np.full((2, 2), 0.5), 2, [1.0, 1.0], [0]), "one scale for each of the 1 lags"),
        (lambda: fixed_scale_limit(np.full((2, 2), 0.5), 2, [1.0], [2]), r"context must hold 1 tokens of 0\.\.1"),
        (lambda: fixed_scale_limit(np.eye(2), 2, [1.0], [0]), "stationary"),
    ],
)  # fmt: skip
def test_errors(call: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()


def test_no_evidence_is_nan() -> None:
    N = np.zeros((2, 3))
    assert np.isnan(back_off_law(N, [1.0])).all()
    assert np.isnan(back_off_error_bound(N, [1.0], 1.0))
