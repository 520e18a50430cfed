"""The n-gram tasks: laws of the rows under both priors, streams, true next-token laws, refusals."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from marginlab.theory import markov
from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.markov import stationary_distribution
from marginlab.theory.ngrams import sampling
from marginlab.theory.ngrams.sampling import sample
from marginlab.theory.ngrams.task import NGramTask
from marginlab.theory.validation import named_stream

ERROR_LEVEL = 1e-6  # chance that a correct sampler fails one Monte Carlo test, for ever since seeds are fixed
Z = float(stats.norm.isf(ERROR_LEVEL / 200))  # shared by up to 100 means of one test

INDEPENDENT = NGramTask(vocab_size=3, order=2, alpha=0.7)
HIERARCHICAL = [
    NGramTask(vocab_size=3, order=2, prior="hierarchical", base_order=1, concentrations=(4.0,), alpha=0.8),
    NGramTask(vocab_size=3, order=2, prior="hierarchical", base_order=0, concentrations=(6.0, 3.0)),
    NGramTask(vocab_size=2, order=3, prior="hierarchical", base_order=1, concentrations=(5.0, 0.5)),
]
tasks = st.sampled_from([INDEPENDENT, *HIERARCHICAL])
# Chains of the last task (concentration 0.5) may fall apart in float64 and then have no single stationary law.
starts = st.one_of(
    st.tuples(tasks, st.just("uniform")),
    st.tuples(st.sampled_from([INDEPENDENT, *HIERARCHICAL[:2]]), st.just("stationary")),
)
seeds = st.integers(0, 2**32)


def uniform(values):
    return bool(stats.kstest(values, "uniform").pvalue > ERROR_LEVEL)


def beta_cdf(rows, m, a, b):
    """Distribution function of Beta(a, b) at entry m; an entry that rounds to 1 is read by the rest of its row."""
    x, rest = rows[..., m], np.delete(rows, m, axis=-1).sum(axis=-1)
    return np.where(x < 0.5, stats.beta.cdf(x, a, b), stats.beta.sf(rest, b, a))


# ---- Rows ----


@settings(deadline=None, max_examples=20)
@given(tasks, st.sampled_from([1.0, 1e-3, 1e-100]), seeds)
def test_levels_have_their_shapes_and_rows_are_laws(task, factor, seed):
    """However small the concentrations are: entries may be 0, none is NaN."""
    small = tuple(max(factor * c, 1e-100) for c in task.concentrations)
    fields = {name: getattr(task, name) for name in ("vocab_size", "order", "prior", "base_order")}
    task = NGramTask(**fields, alpha=max(factor * task.alpha, 1e-100), concentrations=small)
    data, V, k = sample(task, 6, 9, seed), task.vocab_size, task.order
    first = k if task.base_order is None else task.base_order
    assert [level.shape for level in data.levels] == [(6, V**r, V) for r in range(first, k + 1)]
    assert data.rows is data.levels[-1]
    for level in data.levels:
        assert level.min() >= 0
        assert np.allclose(level.sum(axis=-1), 1, rtol=0, atol=1e-14)


@pytest.mark.parametrize("alpha", [0.02, 0.5, 1.0, 30.0])
@pytest.mark.parametrize("V", [2, 5])
def test_independent_rows_are_dirichlet(V, alpha):
    """An entry is Beta(a, (V - 1) a); entries covary as those of a Dirichlet law, and rows not at all."""
    task = NGramTask(vocab_size=V, order=1, alpha=alpha)
    rows = sample(task, 20_000, 1, 4).rows
    for code, m in ((0, 0), (1, V - 1)):
        assert uniform(beta_cdf(rows[:, code], m, alpha, (V - 1) * alpha))
    centred = rows - 1 / V
    scale = (V - 1) / (V**2 * (alpha * V + 1))  # variance of an entry
    for x, y, expected in (
        (centred[:, 0, 0], centred[:, 0, 1], -1 / (V**2 * (alpha * V + 1))),
        (centred[:, 0, 0], centred[:, 0, 0], scale),
        (centred[:, 0, 0], centred[:, 1, 0], 0.0),
    ):
        product = x * y
        assert abs(product.mean() - expected) <= Z * product.std() / np.sqrt(len(product))


@pytest.mark.parametrize("task", HIERARCHICAL)
def test_rows_of_longer_contexts_scatter_around_those_of_their_suffix(task):
    """Given its parent P an entry is Beta(c P, c (1 - P)): mean P, variance P (1 - P) / (c + 1), and the whole law."""
    data, V = sample(task, 20_000, 3, 11), task.vocab_size
    assert uniform(beta_cdf(data.levels[0][:, -1], 0, task.alpha, (V - 1) * task.alpha))
    for r, c in enumerate(task.concentrations, start=task.base_order + 1):
        parents, rows = data.levels[r - task.base_order - 1], data.levels[r - task.base_order]
        for code in range(V**r):
            lags = [code // V**lag % V for lag in range(r)]  # lag 1 first; the suffix drops the oldest
            suffix = sum(u * V**lag for lag, u in enumerate(lags[:-1]))
            for m in range(V):
                P, x = parents[:, suffix, m], rows[:, code, m]
                assert abs((x - P).mean()) <= Z * (x - P).std() / np.sqrt(len(x))
                squared = (x - P) ** 2 - P * (1 - P) / (c + 1)
                assert abs(squared.mean()) <= Z * squared.std() / np.sqrt(len(x))
        # Parents so small that the entry is 0 in float64 are left out.
        P, x = parents[:, 0, 0], rows[:, 0]
        wide = np.minimum(P, 1 - P) > 0.05
        assert uniform(beta_cdf(x[wide], 0, c * P[wide], c * (1 - P[wide])))
        assert not uniform(beta_cdf(x[wide], 0, 2 * c * P[wide], 2 * c * (1 - P[wide])))


def test_siblings_are_independent_given_their_parent():
    data = sample(HIERARCHICAL[0], 20_000, 2, 5)
    parent, rows = data.levels[0][:, 1, 2], data.rows[..., 2]
    product = (rows[:, 1] - parent) * (rows[:, 4] - parent)  # contexts (1, 0) and (1, 1)
    assert abs(product.mean()) <= Z * product.std() / np.sqrt(len(product))
    # ... and cousins, contexts (1, 0) and (2, 0), are independent altogether
    product = (rows[:, 1] - 1 / 3) * (rows[:, 2] - 1 / 3)
    assert abs(product.mean()) <= Z * product.std() / np.sqrt(len(product))


def test_large_concentrations_copy_the_parent():
    task = NGramTask(vocab_size=4, order=2, prior="hierarchical", base_order=1, concentrations=(1e20,))
    data = sample(task, 50, 2, 0)
    assert np.allclose(data.rows, np.tile(data.levels[0], (1, 4, 1)), rtol=1e-6, atol=1e-9)


# ---- Tokens ----


@pytest.mark.parametrize("task", [INDEPENDENT, *HIERARCHICAL])
def test_tokens_are_drawn_from_the_true_laws(task):
    """Each token given the past has the law at its position: sums of centred indicators are martingales."""
    data, k = sample(task, 4000, 40, 2), task.order
    laws = np.stack([data.laws_at(t) for t in range(k, 40)], axis=1)
    hits = data.tokens[:, k:, None] == np.arange(task.vocab_size)
    variance = (laws * (1 - laws)).sum(axis=(0, 1))
    assert np.all(np.abs((hits - laws).sum(axis=(0, 1))) <= Z * np.sqrt(variance))
    weighted = ((hits - laws) * laws).sum()  # a wrong context would pass the line above
    assert abs(weighted) <= Z * np.sqrt((laws**3 * (1 - laws)).sum() * task.vocab_size)
    assert abs(((hits - laws[::-1]) * laws[::-1]).sum()) > 10 * abs(weighted)
    counts = np.bincount(data.tokens[:, :k].ravel(), minlength=task.vocab_size)
    assert stats.chisquare(counts).pvalue > ERROR_LEVEL


@settings(deadline=None, max_examples=20)
@given(tasks, seeds)
def test_the_law_at_a_position_is_the_row_of_its_context(task, seed):
    data, V, k = sample(task, 3, 7, seed), task.vocab_size, task.order
    for t in range(k, 8):
        for i in range(3):
            code = sum(int(data.tokens[i, t - lag]) * V ** (lag - 1) for lag in range(1, k + 1))
            assert np.array_equal(data.laws_at(t)[i], data.rows[i, code])
    assert np.array_equal(data.next_rows, data.laws_at(7))


def test_a_stationary_start_is_the_chains_own():
    """The chance of the first context, summed over sequences, against the exact solution of each chain."""
    task = NGramTask(vocab_size=2, order=1, alpha=0.5, start="stationary")
    data = sample(task, 20_000, 1, 3)
    leave0, leave1 = data.rows[:, 0, 1], data.rows[:, 1, 0]
    chance = np.array([
        float(Fraction(a) / (Fraction(a) + Fraction(b))) for a, b in zip(leave0.tolist(), leave1.tolist(), strict=True)
    ])  # fmt: skip
    assert np.allclose(stationary_distribution(data.rows, 2)[:, 1], chance, rtol=1e-15, atol=0)
    residual = data.tokens[:, 0] - chance
    spread = np.sqrt((chance * (1 - chance)).sum())
    assert abs(residual.sum()) <= Z * spread
    assert abs((residual * chance).sum()) <= Z * np.sqrt((chance**3 * (1 - chance)).sum())
    uniform_start = sample(NGramTask(vocab_size=2, order=1, alpha=0.5), 20_000, 1, 3)
    assert np.array_equal(uniform_start.rows, data.rows)  # another start, the same rows
    residual = uniform_start.tokens[:, 0] - chance
    assert abs((residual * chance).sum()) > Z * spread


@settings(deadline=None, max_examples=30)
@given(starts, st.integers(1, 100), st.integers(0, 100), seeds)
def test_a_larger_sample_only_appends(case, n, length, seed):
    task, start = case
    fields = ("vocab_size", "order", "prior", "alpha", "base_order", "concentrations")
    task = NGramTask(**{name: getattr(task, name) for name in fields}, start=start)
    T = task.order + length
    small = sample(task, n, T, seed)
    for other in (sample(task, n, T, np.random.SeedSequence(seed)), sample(task, n + 7, T + 90, seed)):
        assert np.array_equal(small.tokens, other.tokens[:n, :T])
        for one, two in zip(small.levels, other.levels, strict=True):
            assert np.array_equal(one, two[:n])
    assert len(small) == n


def test_seeds_are_read_and_tell_samples_apart():
    root = np.random.SeedSequence(3)
    one, two = sample(INDEPENDENT, 5, 50, root), sample(INDEPENDENT, 5, 50, root)
    assert root.n_children_spawned == 0
    assert np.array_equal(one.tokens, two.tokens)
    other = sample(INDEPENDENT, 5, 50, root.spawn(1)[0])
    assert not np.array_equal(one.tokens, other.tokens)
    assert not np.array_equal(one.rows, other.rows)


def test_no_two_random_quantities_share_a_stream(monkeypatch):
    used = []

    def recorded(seed, key):
        used.append((seed.entropy, *seed.spawn_key, key))
        return named_stream(seed, key)

    for module in (markov, sampling):
        monkeypatch.setattr(module, "named_stream", recorded)
    sample(HIERARCHICAL[1], 2, 200, np.random.SeedSequence(7, spawn_key=(1,)))
    # three levels with two streams each; the start, and 198 steps in stretches of 64
    assert len(used) == len(set(used)) == 6 + 1 + 4


def test_data_are_read_only():
    data = sample(HIERARCHICAL[0], 2, 4, 0)
    for array in (data.tokens, *data.levels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_imports_load_no_compiler():
    code = (
        "import sys, marginlab.theory.markov, marginlab.theory.ngrams.sampling; "
        "assert not {'numba', 'sympy', 'torch'} & set(sys.modules), 'heavy imports'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---- Tasks ----


def test_tasks_have_one_canonical_form():
    listed: Any = [4, np.float64(2.0)]
    one = NGramTask(vocab_size=3, order=2, prior="hierarchical", base_order=0, concentrations=listed, alpha=1)
    two = NGramTask(
        vocab_size=int(np.int64(3)),
        order=2,
        prior="hierarchical",
        base_order=0,
        concentrations=(4.0, 2.0),
        alpha=1.0,
    )
    assert one == two
    assert one.config_hash == two.config_hash
    assert one.config_hash != NGramTask(vocab_size=3, order=2).config_hash
    assert (one.contexts, one.first_order) == (9, 0)
    assert NGramTask(vocab_size=3, order=2).first_order == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"vocab_size": 1}, "vocab_size must be at least 2, got 1"),
        ({"vocab_size": 2.5}, "vocab_size must be an integer"),
        ({"order": 0}, "order must be at least 1"),
        ({"prior": "flat"}, "prior must be one of independent, hierarchical"),
        ({"alpha": 0.0}, "alpha must be positive"),
        ({"alpha": np.nan}, "alpha must be positive and finite, got nan"),
        ({"alpha": 1e-200}, "alpha must be at least 1e-100, got 1e-200"),
        ({"start": "zero"}, "start must be one of uniform, stationary"),
        ({"base_order": 1}, "belong to the hierarchical prior, got base_order=1"),
        ({"concentrations": (1.0,)}, "belong to the hierarchical prior"),
        ({"prior": "hierarchical"}, r"base_order must lie in 0..1, below the order 2, got None"),
        ({"prior": "hierarchical", "base_order": 2, "concentrations": ()}, "got 2"),
        ({"prior": "hierarchical", "base_order": -1}, "base_order must be at least 0"),
        ({"prior": "hierarchical", "base_order": True}, "base_order must be an integer"),
        (
            {"prior": "hierarchical", "base_order": 0, "concentrations": (4,)},
            "2 number.s., one for each order 1..2",
        ),
        (
            {"prior": "hierarchical", "base_order": 1, "concentrations": (0,)},
            r"concentrations\[0\] must be positive",
        ),
        ({"prior": "hierarchical", "base_order": 1, "concentrations": 4.0}, "must be a sequence"),
        ({"prior": "hierarchical", "base_order": 1, "concentrations": "4"}, "must be a sequence"),
        ({"prior": "hierarchical", "base_order": 1, "concentrations": (np.inf,)}, "finite"),
    ],
)
def test_bad_tasks_are_refused(fields, message):
    with pytest.raises(InvalidInput, match=message):
        NGramTask(**{"vocab_size": 3, "order": 2} | fields)


@pytest.mark.parametrize(
    ("n", "length", "seed", "message"),
    [
        (0, 5, 0, "n must be at least 1"),
        (2, 1, 0, "length must be at least the order 2, got 1"),
        (2, 5.0, 0, "length must be an integer"),
        (2, 5, None, "seed must be an integer"),
        (2, 5, -1, "seed must be at least 0"),
        (10**9, 5, 0, "at most 1073741824 entries"),
    ],
)
def test_bad_sizes_are_refused(n, length, seed, message):
    with pytest.raises(InvalidInput, match=message):
        sample(INDEPENDENT, n, length, seed)


@pytest.mark.parametrize("t", [1, 6, 2.0, -1, True])
def test_positions_without_a_law_are_refused(t):
    with pytest.raises(InvalidInput, match="t must"):
        sample(INDEPENDENT, 2, 5, 0).laws_at(t)


def test_a_stationary_start_that_does_not_exist_is_refused():
    """With concentrations this small every row is one token for sure, and chains fall apart."""
    fields = {"vocab_size": 3, "order": 2, "start": "stationary"}
    with pytest.raises(InvalidInput, match="closed classes"):
        sample(NGramTask(**fields, alpha=1e-6), 200, 5, 0)
    with pytest.raises(MethodUnavailable, match="at most 4096 contexts"):
        sample(NGramTask(vocab_size=2, order=13, start="stationary"), 1, 13, 0)
