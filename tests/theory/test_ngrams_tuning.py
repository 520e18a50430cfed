"""Fits against finite differences, plain grids, and what theory says of the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams import (
    NGramTask,
    batch_counts,
    fit_smoothing,
    fit_soft_match,
    overlap_counts,
    sample,
    soft_match_law,
    tuning,
)
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics, add_alpha_law, ml_law
from marginlab.theory.ngrams.tuning import MOST_SCALE, SMOOTHINGS, cross_entropy, smoothing_law

INDEPENDENT = NGramTask(vocab_size=3, order=2)
HIERARCHICAL = NGramTask(vocab_size=3, order=2, prior="hierarchical", base_order=0, concentrations=(4.0, 4.0))


def rows(task: NGramTask, n: int, length: int, seed: int) -> tuple[Any, Any, ContextStatistics, Any]:
    """True laws, cumulative counts, suffix statistics, exact-overlap counts."""
    data = sample(task, n, length, seed)
    K = batch_counts(data.tokens, task.vocab_size, task.order)[0][:, 0]
    counts, customers = batch_counts(data.tokens, task.vocab_size, task.order, contexts="suffixes")
    return data.next_rows, K, ContextStatistics.of_rows(counts[:, 0], customers[:, 0]), overlap_counts(K)


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_no_grid_point_is_better(tied: bool, bos: bool) -> None:
    """The loss by the estimator itself, on a grid around and far from the fit."""
    P, K, _, N = rows(HIERARCHICAL, 400, 40, 0)
    floor = 1e-3
    fit = fit_soft_match(N, P, vocab_size=3, tied=tied, bos=bos, floor=floor)

    def loss(beta: Any, kappa: float) -> float:
        return float(cross_entropy(soft_match_law(K, beta, kappa=kappa), P, vocab_size=3, floor=floor).mean())

    assert fit.loss == pytest.approx(loss(fit.beta, fit.kappa), rel=1e-12)
    assert (fit.kappa > -np.inf) == bos
    assert not tied or fit.beta[0] == fit.beta[1]
    for first in (-1.0, 0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0):
        for second in (first,) if tied else (-1.0, 0.0, 1.0, 2.0, 4.0):
            for kappa in (-2.0, 0.0, 2.0, 4.0, 8.0) if bos else (-np.inf,):
                assert fit.loss <= loss([first, second], kappa) + 1e-7
    for step in (-0.01, 0.01):
        for lag in (0, 1):
            beta = fit.beta.copy()
            beta[lag] += step
            if tied:
                beta[:] = fit.beta[0] + step
            assert fit.loss <= loss(beta, fit.kappa) + 1e-9


def test_the_gradient_by_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    P, _, _, N = rows(HIERARCHICAL, 100, 30, 1)
    seen: list[Any] = []

    def spy(loss: Any, starts: Any, bounds: Any, *, gradient: bool = False) -> Any:
        del bounds
        assert gradient
        seen.append(loss)
        return starts[0]

    monkeypatch.setattr(tuning, "_least", spy)
    for how in ({"tied": True}, {"bos": False}, {}):
        fit_soft_match(N, P, vocab_size=3, floor=1e-3, **how)
    rng = np.random.default_rng(2)
    for loss, size in zip(seen, (2, 2, 3), strict=True):
        for _ in range(4):
            theta = rng.normal(1.0, 1.5, size)
            want: Any = approx_fprime(theta, lambda t, loss=loss: loss(t)[0], 1e-7)
            np.testing.assert_allclose(loss(theta)[1], want, atol=2e-6)


def test_the_flat_direction_of_full_matches() -> None:
    """Independent rows: the optimum is at infinity. The fit stays inside its bounds, near Bayes, at ln(alpha V)."""
    P, K, stats, N = rows(INDEPENDENT, 8_000, 64, 3)
    fit = fit_soft_match(N, P, vocab_size=3)
    assert (np.abs(fit.beta) < MOST_SCALE).all()
    assert fit.log_pseudo_count == pytest.approx(np.log(3), abs=0.15)
    bayes = cross_entropy(add_alpha_law(stats, 1.0), P, vocab_size=3).mean()
    assert fit.loss == pytest.approx(bayes, abs=1e-4)
    # Equally good scales much further out: the loss is flat there, and the fit did not run away to them.
    far = soft_match_law(K, [35.0, 35.0], kappa=70.0 + fit.log_pseudo_count)
    assert cross_entropy(far, P, vocab_size=3).mean() == pytest.approx(fit.loss, abs=2e-4)
    assert fit.beta.max() < 30


def test_recovered_alpha() -> None:
    P, _, stats, _ = rows(NGramTask(vocab_size=3, order=2, alpha=0.4), 8_000, 64, 4)
    fit = fit_smoothing("add-alpha", stats, P)
    assert fit.parameters["alpha"] == pytest.approx(0.4, abs=0.04)
    np.testing.assert_array_equal(fit.law(stats), add_alpha_law(stats, fit.parameters["alpha"]))


@pytest.mark.parametrize("name", SMOOTHINGS)
def test_no_perturbed_smoothing_is_better(name: str) -> None:
    P, _, stats, _ = rows(HIERARCHICAL, 600, 40, 5)
    floor = 1e-3
    fit = fit_smoothing(name, stats, P, floor=floor)
    law = fit.law(stats)
    np.testing.assert_allclose(law.sum(-1), 1.0, atol=1e-12)
    assert fit.loss == pytest.approx(cross_entropy(law, P, vocab_size=3, floor=floor).mean(), rel=1e-12)
    rng = np.random.default_rng(6)
    for _ in range(30):
        moved = {}
        for key, value in fit.parameters.items():
            array = np.asarray(value, dtype=float)
            if key in ("alpha", "concentrations"):
                moved[key] = array * np.exp(rng.normal(0, 0.3, array.shape))
            elif key == "edges":
                moved[key] = array
            elif array.ndim == 1 and key == "weights":
                other = array * np.exp(rng.normal(0, 0.3, array.shape))
                moved[key] = other / other.sum()
            else:
                moved[key] = np.clip(array + rng.normal(0, 0.1, array.shape), 0, 0.9999)
        loss = cross_entropy(smoothing_law(name, stats, moved), P, vocab_size=3, floor=floor).mean()
        assert fit.loss <= loss + 1e-6


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_realised_symbols_fit_like_one_hot_rows(seed: int) -> None:
    """W = 1 with totals gives the fit of whole rows whose target is one-hot."""
    rng = np.random.default_rng(seed)
    _, _, _, N = rows(HIERARCHICAL, 150, 25, seed)
    symbols = rng.integers(0, 3, 150)
    one_hot = np.eye(3)[symbols]
    whole = fit_soft_match(N, one_hot, vocab_size=3, floor=1e-3)
    single = fit_soft_match(
        N[np.arange(150), :, symbols][..., None],
        np.ones((150, 1)),
        vocab_size=3,
        totals=N.sum(-1),
        floor=1e-3,
    )
    assert single.loss == pytest.approx(whole.loss, abs=1e-7)


def test_cross_entropy_of_unknown_and_impossible() -> None:
    p = np.array([[np.nan, np.nan], [1.0, 0.0], [1.0, 0.0]])
    target = np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    np.testing.assert_allclose(cross_entropy(p, target, vocab_size=2)[:2], [np.log(2), 0.0])
    assert cross_entropy(p, target, vocab_size=2)[2] == np.inf
    assert cross_entropy(p, target, vocab_size=2, floor=0.5)[2] == pytest.approx(-0.5 * np.log(0.75 * 0.25))


def test_no_evidence_at_all() -> None:
    """Without a single count soft matching with BOS is its base law, and without BOS uniform; nothing is NaN."""
    N, P = np.zeros((5, 4, 2)), np.full((5, 2), 0.5)
    for bos in (True, False):
        assert fit_soft_match(N, P, vocab_size=2, bos=bos).loss == pytest.approx(np.log(2))
    stats = ContextStatistics.of_rows(np.zeros((5, 3, 2)), np.zeros((5, 3, 2)))
    assert np.isnan(ml_law(stats)).all()
    for name in SMOOTHINGS:
        assert fit_smoothing(name, stats, P).loss == pytest.approx(np.log(2))


NOTHING = ContextStatistics.of_rows(np.zeros((1, 2, 2)), np.zeros((1, 2, 2)))


def soft_fit(counts: tuple[int, ...], target: tuple[int, ...], value: float = 0.0) -> Any:
    return fit_soft_match(np.full(counts, value), np.ones(target), vocab_size=2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: soft_fit((2, 3, 2), (2, 2)), r"counts must have 2\^k masks, got 3"),
        (lambda: soft_fit((2, 4, 2), (3, 2)), r"target must have shape \(2, 2\)"),
        (lambda: soft_fit((0, 4, 2), (0, 2)), "with at least one row"),
        (lambda: soft_fit((2, 4, 1), (2, 1)), "totals must be given"),
        (lambda: soft_fit((2, 4, 2), (2, 2), np.nan), "counts must be finite"),
        (lambda: fit_smoothing("good-turing", NOTHING, np.ones((1, 2))), "name must be one of add-alpha"),
        (lambda: fit_smoothing("katz", NOTHING, np.ones((2, 2))), r"target must have shape \(1, 2\)"),
    ],
)  # fmt: skip
def test_errors(call: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()
