"""The sampler of Definition 1.1: its rules, its streams, its law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import MatchCopyTask, sample
from marginlab.theory.match_copy.task import query_noise_factor

ERROR_LEVEL = 1e-6  # chance that a correct sampler fails one Monte Carlo test, for ever since seeds are fixed

sizes = st.tuples(st.integers(2, 7), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32))


def arrays(data):
    return {name: getattr(data, name) for name in ("tokens", "query", "target", "match", "W_V")}


@settings(deadline=None, max_examples=30)
@given(sizes)
def test_the_same_seed_gives_the_same_data_and_a_larger_n_only_appends(size):
    T, d, n, seed = size
    task = MatchCopyTask(T=T, d_in=d, d_out=d + 1, c=1.2)
    small, again, large = sample(task, n, seed), sample(task, n, seed), sample(task, n + 3, seed)
    for name, array in arrays(small).items():
        assert np.array_equal(array, arrays(again)[name])
        if name not in ("W_V", "target", "query"):
            assert np.array_equal(array, arrays(large)[name][:n])
    assert np.array_equal(small.W_V, large.W_V)
    # Matrix products of another shape may round differently: K-term sums, a few units in the last place.
    for name in ("query", "target"):
        assert np.allclose(arrays(small)[name], arrays(large)[name][:n], rtol=0, atol=1e-13)


def test_a_seed_sequence_is_read_and_not_spawned_from():
    task, root = MatchCopyTask(T=5, d_in=3, c=1.5), np.random.SeedSequence(3)
    first, second = sample(task, 4, root), sample(task, 4, root)
    assert root.n_children_spawned == 0
    assert np.array_equal(first.tokens, second.tokens)
    assert np.array_equal(first.tokens, sample(task, 4, 3).tokens)
    assert not np.array_equal(first.tokens, sample(task, 4, root.spawn(1)[0]).tokens)


def test_the_copy_matrix_belongs_to_the_task():
    task = MatchCopyTask(T=5, d_in=3, d_out=2, c=1.5)
    assert np.array_equal(sample(task, 2, 0).W_V, sample(task, 9, 1).W_V)
    other = MatchCopyTask(T=5, d_in=3, d_out=2, c=1.5, copy_seed=1)
    assert not np.array_equal(task.copy_matrix, other.copy_matrix)
    assert np.array_equal(sample(task, 4, 0).tokens, sample(other, 4, 0).tokens)


def test_switching_noise_off_leaves_the_rest_as_it_is():
    noisy, clean = (MatchCopyTask(T=6, d_in=4, c=1.1, noise=noise) for noise in (0.3, 0.0))
    one, two = sample(noisy, 10, 0), sample(clean, 10, 0)
    assert np.array_equal(one.tokens, two.tokens)
    assert np.array_equal(one.query, two.query)
    assert not np.array_equal(one.target, two.target)


@settings(deadline=None, max_examples=20)
@given(sizes)
def test_the_template_copies_exactly(size):
    T, d, n, seed = size
    data = sample(MatchCopyTask.template(T=T, d=d, coordinate_std=1.0), n, seed)
    rows = np.arange(n)
    assert data.match.min() >= 0
    assert data.match.max() <= T - 2
    assert np.array_equal(data.query, data.tokens[rows, data.match])
    assert np.array_equal(data.target, data.tokens[rows, data.match + 1])
    assert np.array_equal(data.W_V, np.eye(d))


def test_data_are_read_only():
    data = sample(MatchCopyTask.template(T=3, d=2), 1, 0)
    with pytest.raises(ValueError, match="read-only"):
        data.tokens[0, 0, 0] = 1.0


def test_the_two_conventions_for_the_scale_of_tokens():
    paper, unit = MatchCopyTask(T=4, d_in=16, c=1.2), MatchCopyTask(T=4, d_in=16, c=1.2, coordinate_std=1)
    assert paper.coordinate_std == 0.25
    assert paper.token_std == 1.0
    assert unit.token_std == 4.0
    assert np.array_equal(sample(paper, 3, 0).tokens * 4, sample(unit, 3, 0).tokens)


def covariance_is(samples_x, samples_y, covariance, std):
    """Every entry of the sample covariance of (x, y) within its normal quantile, Bonferroni over entries.

    For jointly Gaussian x_a, y_b of standard deviation std the product has variance at most 2 std^4.
    """
    n = len(samples_x)
    measured = samples_x.T @ samples_y / n
    quantile = stats.norm.isf(ERROR_LEVEL / (2 * measured.size))
    return bool(np.all(np.abs(measured - covariance) <= quantile * np.sqrt(2.0 / n) * std**2))


@pytest.fixture(scope="module")
def match_matrix():
    rng = np.random.default_rng(11)
    U, _, V = np.linalg.svd(rng.standard_normal((3, 3)))
    return U @ np.diag([1.0, 0.7, 0.2]) @ V


def test_query_correlates_with_the_match_by_its_matrix_and_with_nothing_else(match_matrix):
    task = MatchCopyTask(T=4, d_in=3, C=match_matrix, coordinate_std=2.0, noise=0.0)
    data = sample(task, 40_000, 0)
    rows = np.arange(len(data))
    matched = data.tokens[rows, data.match]
    other = data.tokens[rows, (data.match + 1) % 4]
    assert covariance_is(data.query, matched, 4.0 * match_matrix, 2.0)
    assert covariance_is(data.query, other, np.zeros((3, 3)), 2.0)
    assert covariance_is(data.query, data.query, 4.0 * np.eye(3), 2.0)
    # the test can fail: the transpose is another matrix
    assert not covariance_is(data.query, matched, 4.0 * match_matrix.T, 2.0)


def test_c_means_its_inverse_square():
    data = sample(MatchCopyTask(T=3, d_in=2, c=2.0, coordinate_std=1.0), 40_000, 1)
    matched = data.tokens[np.arange(len(data)), data.match]
    assert covariance_is(data.query, matched, np.eye(2) / 4, 1.0)
    assert not covariance_is(data.query, matched, np.eye(2) / 2, 1.0)


def test_target_noise_and_match_have_their_laws():
    task = MatchCopyTask(T=6, d_in=2, d_out=3, c=1.2, noise=0.1)
    data = sample(task, 40_000, 2)
    noise = data.target - data.tokens[np.arange(len(data)), data.match + 1] @ data.W_V.T
    assert covariance_is(noise, noise, 0.01 * np.eye(3), 0.1)
    assert stats.chisquare(np.bincount(data.match, minlength=5)).pvalue > ERROR_LEVEL
    entries = MatchCopyTask(T=6, d_in=60, d_out=60, c=1.2).copy_matrix.ravel()
    assert stats.kstest(entries, "norm").pvalue > ERROR_LEVEL


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 2**32))
def test_query_noise_factor_is_a_square_root(d, seed):
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((d, d))
    C /= np.linalg.norm(C, 2) * rng.uniform(1.0, 2.0)
    S = query_noise_factor(C)
    assert np.allclose(S @ S.T + C @ C.T, np.eye(d), atol=20 * d * np.finfo(float).eps, rtol=0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"T": 1, "c": 1.1}, "T must be at least 2, got 1"),
        ({"d_in": 0, "c": 1.1}, "d_in must be at least 1"),
        ({"d_out": 2.5, "c": 1.1}, "d_out must be an integer"),
        ({}, "exactly one of exact=True, c and C"),
        ({"c": 1.1, "exact": True}, "exactly one of exact=True, c and C"),
        ({"c": 0.9}, "c must be at least 1 .* got 0.9"),
        ({"c": np.nan}, "c must be positive and finite, got nan"),
        ({"C": np.eye(3)}, r"C must have shape \(2, 2\)"),
        ({"C": 1.001 * np.eye(2)}, "C C.T must be at most the identity, its largest eigenvalue is 1.002"),
        ({"c": 1.1, "noise": -0.1}, "noise must be finite and >= 0"),
        ({"c": 1.1, "coordinate_std": 0.0}, "coordinate_std must be positive"),
        ({"c": 1.1, "copy": "none"}, "copy must be one of gaussian, identity"),
        ({"c": 1.1, "copy": "identity", "d_out": 3}, "identity copy needs d_out = d_in"),
        ({"c": 1.1, "copy_seed": -1}, "copy_seed must be at least 0"),
        ({"exact": 1}, "exact must be True or False"),
    ],
)
def test_bad_tasks_are_refused(fields, message):
    with pytest.raises(InvalidInput, match=message):
        MatchCopyTask(**{"T": 4, "d_in": 2} | fields)


@pytest.mark.parametrize(("n", "seed"), [(0, 0), (1.5, 0), (2, None), (2, -1), (2, "a")])
def test_bad_sizes_and_seeds_are_refused(n, seed):
    with pytest.raises(InvalidInput):
        sample(MatchCopyTask(T=3, d_in=2, c=1.1), n, seed)
