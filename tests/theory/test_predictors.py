"""Predictors of match-and-copy against enumerated posteriors, exact matches and large samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import (
    MatchCopyTask,
    attention_predict,
    bayes_predict,
    hard_match_predict,
    sample,
    squared_errors,
    uniform_copy_error,
    uniform_copy_predict,
    zero_error,
    zero_predict,
)


def drawn_task(seed: int, T: int, d: int) -> MatchCopyTask:
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((d, d))
    C *= rng.uniform(0.2, 0.95) / np.linalg.norm(C, 2)
    return MatchCopyTask(
        T=T, d_in=d, d_out=2, C=tuple(map(tuple, C.tolist())), coordinate_std=rng.uniform(0.3, 2)
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 4))
def test_posterior_by_enumeration_of_joint_densities(seed: int, T: int, d: int) -> None:
    """The joint law of context and query given the match is Gaussian: scipy's density of all T + 1 tokens at once."""
    task = drawn_task(seed, T, d)
    data = sample(task, 3, seed)
    prediction, posterior = bayes_predict(task, data)
    C, s2 = task.match_matrix, task.coordinate_std**2
    for i in range(3):
        densities = []
        for t in range(T - 1):
            covariance = s2 * np.eye((T + 1) * d)
            block = slice(t * d, (t + 1) * d)
            covariance[T * d :, block] = s2 * C
            covariance[block, T * d :] = s2 * C.T
            point = np.concatenate([data.tokens[i].ravel(), data.query[i]])
            law = multivariate_normal(np.zeros(len(point)), covariance)  # type: ignore[arg-type]
            densities.append(law.logpdf(point))
        weights = np.exp(np.array(densities) - max(densities))
        weights /= weights.sum()
        assert np.abs(posterior[i] - weights).max() < 1e-7
        expected = sum(w * (data.W_V @ data.tokens[i, t + 1]) for t, w in enumerate(weights))
        assert np.abs(prediction[i] - expected).max() < 1e-6


def test_an_exact_match_leaves_no_doubt() -> None:
    task = MatchCopyTask.template(T=6, d=4)
    data = sample(task, 50, 0)
    prediction, posterior = bayes_predict(task, data)
    assert np.array_equal(posterior, np.eye(5)[data.match])
    assert np.array_equal(prediction, data.target)


def test_two_equal_tokens_share_the_posterior() -> None:
    task = MatchCopyTask.template(T=5, d=3)
    data = sample(task, 1, 0)
    tokens = np.array(data.tokens)
    other = (int(data.match[0]) + 1) % 4
    tokens[0, other] = tokens[0, data.match[0]]
    _, posterior = bayes_predict(task, replace(data, tokens=tokens))
    assert sorted(posterior[0].tolist()) == [0.0, 0.0, 0.5, 0.5]


def test_a_partly_exact_match_decides_by_its_exact_part() -> None:
    """C keeps the first coordinate exactly and nothing else: the first coordinate alone tells the match."""
    C = ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    task = MatchCopyTask(T=6, d_in=3, C=C)
    data = sample(task, 40, 1)
    assert np.array_equal(bayes_predict(task, data)[1].argmax(axis=1), data.match)
    assert np.array_equal(bayes_predict(task, data)[1].max(axis=1), np.ones(40))


def test_large_dimensions_do_not_overflow() -> None:
    task = MatchCopyTask(T=4, d_in=600, c=1.001, noise=0.0)
    data = sample(task, 3, 0)
    _, posterior = bayes_predict(task, data)
    assert np.array_equal(posterior, np.eye(3)[data.match])


def test_the_posterior_is_calibrated() -> None:
    """Among sequences to whose likeliest match the posterior gives p, a share p has it right."""
    task = MatchCopyTask(T=8, d_in=8, c=1.3)
    data = sample(task, 20_000, 3)
    _, posterior = bayes_predict(task, data)
    top = posterior.max(axis=1)
    right = posterior.argmax(axis=1) == data.match
    for low, high in ((0.2, 0.5), (0.5, 0.8), (0.8, 0.95)):
        chosen = (top >= low) & (top < high)
        # Five standard errors of a proportion.
        assert abs(right[chosen].mean() - top[chosen].mean()) < 5 * 0.5 / np.sqrt(chosen.sum())


def test_no_rule_beats_the_posterior_mean() -> None:
    task = MatchCopyTask(T=8, d_in=16, c=1.2)
    data = sample(task, 20_000, 5)
    best = squared_errors(bayes_predict(task, data)[0], data)
    scale = 1 / task.coordinate_std**2
    rivals = [attention_predict(data, b * scale * np.eye(16)) for b in (0.5, 1, 2, 4)]
    rivals += [hard_match_predict(task, data)[0], uniform_copy_predict(data), zero_predict(data)]
    for rival in rivals:
        gain = squared_errors(rival, data) - best
        assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))


def test_closed_form_errors() -> None:
    task = MatchCopyTask(T=5, d_in=6, d_out=3, c=1.2, noise=0.3, coordinate_std=0.7)
    data = sample(task, 60_000, 2)
    for prediction, expected in (
        (zero_predict(data), zero_error(task)),
        (uniform_copy_predict(data), uniform_copy_error(task)),
    ):
        errors = squared_errors(prediction, data)
        assert abs(errors.mean() - expected) < 5 * errors.std() / np.sqrt(len(errors))


def test_attention_limits() -> None:
    task = MatchCopyTask(T=6, d_in=5, c=1.1)
    data = sample(task, 10, 0)
    assert np.allclose(attention_predict(data, np.zeros((5, 5))), uniform_copy_predict(data))
    prediction, position = hard_match_predict(task, data)
    assert np.allclose(attention_predict(data, 1e8 * np.eye(5)), prediction)
    rows = np.arange(10)
    assert np.allclose(prediction, data.tokens[rows, position + 1] @ data.W_V.T)


def test_bad_input() -> None:
    task = MatchCopyTask(T=6, d_in=5, c=1.1)
    data = sample(task, 4, 0)
    with pytest.raises(InvalidInput, match="sizes"):
        bayes_predict(MatchCopyTask(T=7, d_in=5, c=1.1), data)
    with pytest.raises(InvalidInput, match="W_V"):
        bayes_predict(MatchCopyTask(T=6, d_in=5, c=1.1, copy_seed=3), data)
    with pytest.raises(InvalidInput, match="query of sample 0"):
        bayes_predict(MatchCopyTask(T=6, d_in=5, exact=True), data)
    with pytest.raises(InvalidInput, match="W must"):
        attention_predict(data, np.eye(4))
    with pytest.raises(InvalidInput, match="prediction"):
        squared_errors(np.zeros((4, 4)), data)
    with pytest.raises(InvalidInput, match="query must"):
        bayes_predict(task, replace(data, query=np.full((4, 5), np.nan)))
    bad: Any = np.zeros((4, 5))
    bad[0, 0] = np.nan
    with pytest.raises(InvalidInput, match="prediction"):
        squared_errors(bad, data)
