"""Soft matching in one pass against its definition, plain loops, and 60-digit arithmetic."""

from __future__ import annotations

import tracemalloc
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.ngrams import (
    batch_counts,
    counting,
    katz,
    log_loss,
    overlap_counts,
    soft_match,
    soft_match_definition,
    soft_match_law,
)

SEEDS = st.integers(0, 10**6)


def model(seed: int, scale: float) -> tuple[list[int], int, np.ndarray, dict[str, Any]]:
    """A sequence and a model whose scales are of the given size, some zero, some negative."""
    rng = np.random.default_rng(seed)
    V, k, T = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(0, 40))
    beta = scale * rng.normal(size=k) * (rng.random(k) < 0.85)
    kappa = -np.inf if rng.random() < 0.4 else float(scale * rng.normal())
    base = rng.dirichlet(np.ones(V)) if rng.random() < 0.5 else None
    how = {"kappa": kappa, "base": base, "boundary": ("interior", "padded")[int(rng.integers(2))]}
    return [int(x) for x in rng.integers(0, V, T)], V, beta, how


def high_precision(
    x: list[int], V: int, beta: np.ndarray, kappa: float, base: Any, boundary: str
) -> list[list[Any]]:
    """The definition in plain loops and mpmath."""
    k = len(beta)
    law = [mpmath.mpf(1) / V] * V if base is None else [mpmath.mpf(float(b)) for b in base]
    rows = []
    for t in range(len(x) + 1):
        bos = mpmath.mpf(0) if kappa == -np.inf else mpmath.exp(mpmath.mpf(kappa))
        sums = [bos * b for b in law]
        for s in range(k if boundary == "interior" else 0, t):
            score = mpmath.mpf(0)
            for lag in range(1, k + 1):
                if s - lag >= 0 and t - lag >= 0 and x[s - lag] == x[t - lag]:
                    score += mpmath.mpf(float(beta[lag - 1]))
            sums[x[s]] += mpmath.exp(score)
        total = mpmath.fsum(sums)
        rows.append([p / total if total else mpmath.nan for p in sums])
    return rows


@settings(max_examples=150)
@given(
    seed=SEEDS, scale=st.sampled_from([0.01, 1.0, 10.0, 400.0]), method=st.sampled_from(["dense", "hashed"])
)
def test_one_pass_is_the_definition(seed: int, scale: float, method: str) -> None:
    x, V, beta, how = model(seed, scale)
    np.testing.assert_allclose(
        soft_match(x, V, beta, method=method, **how),
        soft_match_definition(x, V, beta, **how),
        rtol=1e-11,
        atol=1e-12,
    )


@settings(max_examples=60)
@given(seed=SEEDS, scale=st.sampled_from([1.0, 10.0, 400.0]), method=st.sampled_from(["dense", "hashed"]))
def test_sixty_digits(seed: int, scale: float, method: str) -> None:
    """Rows and log-probabilities; with beta k of several hundred logarithms reach far below the float range."""
    x, V, beta, how = model(seed, scale)
    with mpmath.workdps(60):
        exact = high_precision(x, V, beta, **how)
        logs = [
            float(mpmath.log(exact[t][m])) if exact[t][m] > 0 else -np.inf if exact[t][m] == 0 else np.nan
            for t, m in enumerate(x)
        ]
    rows = soft_match(x, V, beta, method=method, **how)
    # exp(w) of a w of size |beta|_1 + |kappa| has a relative error of that many half ulps.
    size = np.abs(beta).sum() + (abs(how["kappa"]) if np.isfinite(how["kappa"]) else 0.0)
    np.testing.assert_allclose(
        rows, np.array([[float(p) for p in row] for row in exact]), rtol=(size + 200) * 2e-16, atol=1e-300
    )
    got = log_loss(x, V, beta, method=method, **how)
    np.testing.assert_allclose(got, np.array(logs), rtol=1e-13, atol=(size + 200) * 2e-16)


def test_the_order_of_evaluation_does_not_overflow() -> None:
    """beta k = 6 000 overflows any product of e^beta; the longest match must win, without NaN."""
    rows = soft_match([0, 1, 2, 0, 1, 2, 0, 1], 3, [1500.0] * 4, kappa=5000.0)
    np.testing.assert_array_equal(rows[-1], [0.0, 0.0, 1.0])
    assert log_loss([0, 1, 2, 0, 1, 2, 0, 1, 1], 3, [1500.0] * 4)[-1] < -1000


@settings(max_examples=60)
@given(seed=SEEDS)
def test_counts_by_listing_positions(seed: int) -> None:
    """Cumulative and exact-overlap counts of a batch, every row, by plain loops."""
    rng = np.random.default_rng(seed)
    V, k, T, n = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(0, 15)), 3
    x = rng.integers(0, V, (n, T))
    boundary = ("interior", "padded")[seed % 2]
    K, _ = batch_counts(x, V, k, first=0, boundary=boundary)
    N = overlap_counts(K)
    beta = rng.normal(size=k)
    assert K.shape == (n, T + 1, 2**k, V)
    for i in range(n):
        np.testing.assert_allclose(
            soft_match_law(K[i], beta, kappa=0.3),
            soft_match(x[i], V, beta, kappa=0.3, boundary=boundary),
            rtol=1e-14,
        )
        for t in range(T + 1):
            want = np.zeros((2**k, V), int)
            for s in range(k if boundary == "interior" else 0, t):
                mask = 0
                for lag in range(1, k + 1):
                    if s >= lag and t >= lag and x[i, s - lag] == x[i, t - lag]:
                        mask |= 1 << (lag - 1)
                want[mask, x[i, s]] += 1
            np.testing.assert_array_equal(N[i, t], want)


@pytest.mark.parametrize(("V", "k", "T"), [(2, 12, 400), (300, 3, 2_000), (5_000, 2, 1_500), (26, 5, 800)])
def test_long_contexts_and_large_alphabets(V: int, k: int, T: int) -> None:
    """Where dense tables would not fit, hashed ones that grow several times give the definition."""
    rng = np.random.default_rng(V)
    x = np.minimum(rng.geometric(0.1, T) - 1, V - 1)
    beta = rng.normal(1.0, 1.0, k)
    got = log_loss(x, V, beta, kappa=0.5)
    rows = np.unique(rng.integers(0, T, 20))
    for t in rows:
        want = soft_match_definition(x[: t + 1], V, beta, kappa=0.5)[t, x[t]] if t < 60 else None
        if want is None:  # the last row only, from one scan of the prefix
            s = np.arange(k, t)
            score = sum(b * (x[s - lag] == x[t - lag]) for lag, b in enumerate(beta, start=1))
            weight = np.exp(score)
            want = (np.exp(0.5) / V + weight[x[s] == x[t]].sum()) / (np.exp(0.5) + weight.sum())
        assert got[t] == pytest.approx(np.log(want), rel=1e-11)


def test_log_loss_takes_little_memory() -> None:
    """O(T): far less than the (T + 1, V) rows."""
    x = np.random.default_rng(0).integers(0, 64, 100_000)
    log_loss(x[:100], 64, [1.0, 1.0])
    tracemalloc.start()
    log_loss(x, 64, [1.0, 1.0], kappa=0.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000 * 64 * 8 / 4


def test_tables_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_BYTES", 2**20)
    x = np.random.default_rng(0).integers(0, 1000, 50_000)
    with pytest.raises(MethodUnavailable, match="take a smaller order or a shorter sequence"):
        log_loss(x, 1000, [1.0] * 3)
    with pytest.raises(MethodUnavailable, match="count the sequences one by one"):
        batch_counts(x[None], 1000, 3)


@pytest.mark.parametrize("empty", [[], np.array([], dtype=np.int64)])
def test_an_empty_sequence_has_one_row(empty: Any) -> None:
    assert np.isnan(soft_match(empty, 3, [1.0])).all()
    np.testing.assert_allclose(soft_match(empty, 3, [1.0], kappa=0.0), np.full((1, 3), 1 / 3))
    assert log_loss(empty, 3, [1.0]).shape == (0,)


@pytest.mark.parametrize("function", [soft_match, log_loss, soft_match_definition])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tokens": [0, -1]}, r"tokens must lie in 0..1 \(the vocabulary\), got -1 at index 1"),
        ({"tokens": [0.0, 1.0]}, "tokens must hold integers, got dtype float64"),
        ({"tokens": [True, False]}, "tokens must hold integers, got dtype bool"),
        ({"tokens": [[0, 1]]}, "tokens must have 1 dimension"),
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"vocab_size": 2.0}, "vocab_size must be an integer"),
        ({"beta": []}, "the length of beta must be at least 1, got 0"),
        ({"beta": [0.0] * 13}, "the length of beta must be at most 12"),
        ({"beta": [np.nan]}, "beta must be finite, got nan"),
        ({"beta": [np.inf]}, "beta must be finite, got inf"),
        ({"kappa": np.nan}, "kappa must be a finite number, or -inf for no BOS, got nan"),
        ({"kappa": np.inf}, "kappa must be a finite number, or -inf for no BOS, got inf"),
        ({"kappa": "0"}, "kappa must be a number or -inf, got '0'"),
        ({"base": [0.5, 0.6]}, "base must be a law on the vocabulary, its entries sum to 1.1"),
        ({"base": [1.5, -0.5]}, "base must be a law on the vocabulary, got the negative entry -0.5"),
        ({"base": [1.0]}, r"base must have shape \(2\)"),
        ({"boundary": "wrap"}, "boundary must be one of interior, padded; got 'wrap'"),
    ],
)  # fmt: skip
def test_errors(function: Any, change: dict[str, Any], sentence: str) -> None:
    call: dict[str, Any] = {"tokens": [0, 1], "vocab_size": 2, "beta": [1.0], **change}
    with pytest.raises(InvalidInput, match=sentence):
        function(**call)


def test_counts_must_fit_the_lags() -> None:
    with pytest.raises(InvalidInput, match=r"counts must be integers of shape \(..., 4, V\) for 2 lags"):
        soft_match_law(np.zeros((3, 2), int), [1.0, 1.0])
    with pytest.raises(InvalidInput, match=r"first must be a row 0\.\.3, got 4"):
        batch_counts([[0, 1, 0]], 2, 1, first=4)


def test_rows_that_do_not_fit_are_refused_and_the_log_loss_is_not() -> None:
    with pytest.raises(MethodUnavailable, match="take log_loss"):
        soft_match([0, 1, 2**30 - 1], 2**30, [1.0])
    with pytest.raises(MethodUnavailable, match="take log_loss"):
        katz([0, 1, 2**30 - 1], 2**30, 1, [0.5, 0.5])
    got = log_loss([0, 1, 2**30 - 1, 0, 1], 2**30, [1.0], kappa=0.0)
    assert got[0] == pytest.approx(-30 * np.log(2))
    assert got[4] == pytest.approx(np.log((2**-30 + np.e) / (1 + np.e + 2)))
