"""Order-k chains: stationary laws against exact fractions, walks against their laws, streams, refusals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from marginlab.theory import markov
from marginlab.theory.errors import InvalidInput
from marginlab.theory.markov import (
    context_codes,
    entropy_rate,
    sample_chains,
    stationary_distribution,
)
from marginlab.theory.validation import named_stream

ERROR_LEVEL = 1e-6  # chance that a correct sampler fails one Monte Carlo test, for ever since seeds are fixed
EPS = float(np.finfo(np.float64).eps)

sizes = st.sampled_from([(2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (5, 1), (9, 1), (2, 0), (4, 0)])
seeds = st.integers(0, 2**32)


def exact_law(rows, V):
    """Stationary law as fractions by Gauss-Jordan elimination of the balance equations, None if it is not unique."""
    S = len(rows)
    balance = [[Fraction(0)] * S for _ in range(S)]  # row j: flow into j minus flow out of j
    for i in range(S):
        for m in range(V):
            j = (i * V + m) % S
            if i != j:
                balance[j][i] += Fraction(float(rows[i, m]))
                balance[i][i] -= Fraction(float(rows[i, m]))
    pivots = []
    for column in range(S):
        found = next((r for r in range(len(pivots), S) if balance[r][column] != 0), None)
        if found is None:
            continue
        r = len(pivots)
        balance[r], balance[found] = balance[found], balance[r]
        balance[r] = [x / balance[r][column] for x in balance[r]]
        for other in range(S):
            if other != r and balance[other][column] != 0:
                factor = balance[other][column]
                balance[other] = [x - factor * y for x, y in zip(balance[other], balance[r], strict=True)]
        pivots.append(column)
    free = [c for c in range(S) if c not in pivots]
    if len(free) != 1:
        return None
    law = [Fraction(0)] * S
    law[free[0]] = Fraction(1)
    for r, column in enumerate(pivots):
        law[column] = -balance[r][free[0]]
    total = sum(law)
    return [x / total for x in law]


def random_rows(rng, V, k, *, decades=0.0, zeros=0.0, chains=()):
    """Rows with entries spread over `decades` powers of ten and a share `zeros` of zeros."""
    rows = rng.dirichlet(np.ones(V), (*chains, V**k)) * 10 ** -rng.uniform(
        0, max(decades, 1e-9), (*chains, V**k, V)
    )
    keep = rng.integers(0, V, (*chains, V**k, 1)) == np.arange(V)
    rows = np.where(keep, 1.0 if decades else rows, np.where(rng.random(rows.shape) < zeros, 0.0, rows))
    return rows / rows.sum(axis=-1, keepdims=True)


def relative_errors(law, exact):
    return np.array([
        0.0 if x == e == 0 else float(abs(Fraction(float(x)) - e) / e) if e else np.inf
        for x, e in zip(law, exact, strict=True)
    ])  # fmt: skip


# ---- Stationary laws ----


@settings(deadline=None, max_examples=60)
@given(sizes, st.sampled_from([0.0, 3.0, 12.0]), st.sampled_from([0.0, 0.3, 0.8]), seeds)
def test_every_entry_has_its_relative_accuracy(size, decades, zeros, seed):
    """Exact fractions, chains that nearly fall apart and chains that do."""
    (V, k), rng = size, np.random.default_rng(seed)
    rows = random_rows(rng, V, k, decades=decades, zeros=zeros)
    exact = exact_law(rows, V)
    if exact is None:
        with pytest.raises(InvalidInput, match="closed classes"):
            stationary_distribution(rows, V)
        return
    law = stationary_distribution(rows, V)
    assert law.shape == (V**k,)
    assert relative_errors(law, exact).max() <= 8 * V**k * EPS


def test_a_general_solver_loses_what_elimination_without_subtraction_keeps():
    """The comparison above can fail: LAPACK on the same equations is off by more than the law itself."""
    rows = np.array([[1.0, 1e-12], [1e-3, 0.999], [0.5, 0.5], [1e-14, 1.0]])
    rows /= rows.sum(axis=1, keepdims=True)
    exact = exact_law(rows, 2)
    assert exact is not None
    P = np.zeros((4, 4))
    for i in range(4):
        for m in range(2):
            P[i, (2 * i + m) % 4] += rows[i, m]
    equations = np.vstack([P.T[:-1] - np.eye(4)[:-1], np.ones(4)])
    solved = np.linalg.solve(equations, [0.0, 0.0, 0.0, 1.0])
    assert relative_errors(solved, exact).max() > 1e-6
    assert relative_errors(stationary_distribution(rows, 2), exact).max() < 1e-14


@settings(deadline=None, max_examples=20)
@given(st.sampled_from([(2, 6), (3, 3), (6, 2), (40, 1)]), st.sampled_from([0.0, 12.0]), seeds)
def test_flows_balance_to_rounding(size, decades, seed):
    """Sizes beyond exact fractions: what enters a context leaves it, relative to itself; and pi P = pi."""
    (V, k), rng = size, np.random.default_rng(seed)
    rows, S = random_rows(rng, V, k, decades=decades), V**k
    law = stationary_distribution(rows, V)
    target = (np.arange(S)[:, None] * V + np.arange(V)) % S
    moves = target != np.arange(S)[:, None]
    inflow, outflow, after = np.zeros(S), np.zeros(S), np.zeros(S)
    np.add.at(inflow, target[moves], (law[:, None] * rows)[moves])
    np.add.at(outflow, np.nonzero(moves)[0], (law[:, None] * rows)[moves])
    np.add.at(after, target, law[:, None] * rows)
    assert law.min() > 0
    assert abs(law.sum() - 1) <= S * EPS
    assert np.max(np.abs(inflow - outflow) / outflow) <= 8 * S * EPS
    assert np.max(np.abs(after - law) / law) <= 8 * S * EPS


@settings(deadline=None, max_examples=40)
@given(st.sampled_from([(2, 1), (2, 2), (3, 1), (2, 3), (5, 1)]), seeds)
def test_rates_beyond_the_range_of_products(size, seed):
    """Entries down to 1e-300: products of them underflow, the law does not."""
    (V, k), rng = size, np.random.default_rng(seed)
    rows = random_rows(rng, V, k, decades=300.0)
    exact = exact_law(rows, V)
    assert exact is not None
    law = stationary_distribution(rows, V)
    normal = np.array([e > Fraction(1, 10**300) for e in exact])
    # Logarithms up to 700 a factor: that many more roundings.
    assert (
        relative_errors(law[normal], [e for e, n in zip(exact, normal, strict=True) if n]).max()
        <= 4096 * 8 * EPS
    )
    assert law[~normal].max(initial=0.0) <= 2e-300


def test_a_product_that_underflows_is_not_lost():
    """The way back from 1 to 0 is 1 -> 2 -> 0 of chance 1e-320, a subnormal number; the law itself is in range."""
    rows = np.array([[1, 1e-200, 0], [0, 1, 1e-160], [1e-160, 1, 0]])
    exact = exact_law(rows, 3)
    assert exact is not None
    assert float(exact[0]) == pytest.approx(1e-120, rel=1e-12)
    assert relative_errors(stationary_distribution(rows, 3), exact).max() < 1e-12


def test_transient_contexts_have_no_mass():
    rows = np.array([[1.0, 0.0], [0.5, 0.5], [0.25, 0.75], [0.9, 0.1]])  # 0 after (0, 0): absorbing
    assert stationary_distribution(rows, 2).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_a_cycle_is_uniform_and_has_no_entropy():
    """A de Bruijn cycle of order 3 visits its 8 contexts in turn, with period 8."""
    cycle = [0, 0, 0, 1, 0, 1, 1, 1]
    rows = np.zeros((8, 2))
    for i in range(8):
        code = sum(cycle[(i + 2 - lag) % 8] << lag for lag in range(3))
        rows[code, cycle[(i + 3) % 8]] = 1.0
    assert np.allclose(stationary_distribution(rows, 2), 1 / 8, rtol=8 * EPS, atol=0)
    assert entropy_rate(rows, 2) == 0.0
    tokens = sample_chains(rows, 200, seed=0, n=1, start=cycle[:3])
    assert tokens[0].tolist() == (cycle * 25)


def test_leading_axes_are_chains():
    rng = np.random.default_rng(0)
    rows = random_rows(rng, 3, 2, decades=4.0, chains=(2, 5))
    laws, rates = stationary_distribution(rows, 3), entropy_rate(rows, 3)
    assert laws.shape == (2, 5, 9)
    assert rates.shape == (2, 5)
    for i in np.ndindex(2, 5):
        assert np.array_equal(laws[i], stationary_distribution(rows[i], 3))
        assert rates[i] == entropy_rate(rows[i], 3)


@settings(deadline=None, max_examples=20)
@given(st.floats(0.001, 1), st.floats(0.001, 1))
def test_entropy_rate_of_two_states(a, b):
    """Closed form for the two-state chain that leaves 0 with probability a and 1 with probability b."""

    def h(p):
        return -sum(x * np.log(x) for x in (p, 1 - p) if x > 0)

    rows = np.array([[1 - a, a], [b, 1 - b]])
    expected = (b * h(a) + a * h(b)) / (a + b)
    assert entropy_rate(rows, 2) == pytest.approx(expected, rel=1e-12)
    # The same chain written with order 3: rows that depend on lag 1 alone.
    assert entropy_rate(np.tile(rows, (4, 1)), 2) == pytest.approx(expected, rel=1e-12)


def test_a_rows_entropy_is_the_rate_of_independent_tokens():
    assert entropy_rate([[0.25, 0.25, 0.5]], 3) == pytest.approx(1.5 * np.log(2), rel=1e-15)
    assert stationary_distribution([[0.25, 0.25, 0.5]], 3).tolist() == [1.0]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 5), st.integers(0, 4), st.integers(0, 6), seeds)
def test_codes_have_lag_one_as_their_least_significant_digit(V, k, more, seed):
    tokens = np.random.default_rng(seed).integers(0, V, (2, k + more))
    codes = context_codes(tokens, V, k)
    assert codes.shape == (2, more + 1)
    for i in range(2):
        for t in range(k, k + more + 1):
            assert codes[i, t - k] == sum(int(tokens[i, t - lag]) * V ** (lag - 1) for lag in range(1, k + 1))


# ---- Walks ----


def transition_counts(tokens, V, k):
    codes = context_codes(tokens, V, k)[:, :-1]
    counts = np.zeros((V**k, V))
    np.add.at(counts, (codes, tokens[:, k:]), 1)
    return counts


def transitions_fit(tokens, rows):
    """Chi-square of transition counts given how often each context was left; cells of probability 0 stay empty."""
    S, V = rows.shape
    counts = transition_counts(tokens, V, round(np.log(S) / np.log(V)))
    expected = counts.sum(axis=1, keepdims=True) * rows
    if counts[rows == 0].any():
        return False
    cells = rows > 0
    statistic = float(((counts - expected)[cells] ** 2 / expected[cells]).sum())
    return bool(stats.chi2.sf(statistic, cells.sum() - S) > ERROR_LEVEL)


@pytest.mark.parametrize(
    ("V", "k", "zeros"), [(2, 0, 0.0), (3, 1, 0.0), (3, 2, 0.4), (2, 4, 0.0), (6, 2, 0.5)]
)
def test_transitions_follow_the_rows(V, k, zeros):
    rng = np.random.default_rng(V + k)
    rows = random_rows(rng, V, k, zeros=zeros)
    tokens = sample_chains(rows, 500, seed=3, n=400)
    assert tokens.shape == (400, 500)
    assert transitions_fit(tokens, rows)
    if k > 0:  # the test can fail: other contexts, other rows
        assert not transitions_fit(tokens, np.roll(rows, 1, axis=0))
        assert not transitions_fit(tokens[:, ::-1], rows) or (V, k) == (2, 1)


def test_each_sequence_follows_its_own_chain():
    rows = random_rows(np.random.default_rng(1), 3, 2, chains=(3,))
    tokens = sample_chains(rows, 40_000, seed=0)
    for i in range(3):
        assert transitions_fit(tokens[i : i + 1], rows[i])
        assert not transitions_fit(tokens[i : i + 1], rows[i - 1])


def codes_fit(tokens, V, k, law):
    """Chi-square of the contexts in tokens (n, k)."""
    law = np.asarray(law, dtype=float)
    counts = np.bincount(context_codes(tokens, V, k)[:, 0], minlength=len(law))
    if counts[law == 0].any():
        return False
    kept = law > 0
    return bool(
        stats.chisquare(counts[kept], counts.sum() * law[kept] / law[kept].sum()).pvalue > ERROR_LEVEL
    )


def test_starts_have_their_laws():
    V, k, n = 3, 2, 40_000
    rows = random_rows(np.random.default_rng(5), V, k)
    exact = exact_law(rows, V)
    assert exact is not None
    pi, uniform = np.array([float(x) for x in exact]), np.full(9, 1 / 9)
    law = np.array([0, 0.1, 0.2, 0.05, 0, 0.3, 0.15, 0.2, 0])
    for start, expected in (("uniform", uniform), ("stationary", pi), (law, law)):
        first = sample_chains(rows, k, seed=8, n=n, start=start)
        assert codes_fit(first, V, k, expected)
        for other in (uniform, pi, law):
            assert other is expected or not codes_fit(first, V, k, other)


def test_the_law_stays_stationary_and_a_long_walk_finds_it():
    V, k, n = 3, 2, 40_000
    rows = random_rows(np.random.default_rng(6), V, k)
    exact = exact_law(rows, V)
    assert exact is not None
    pi = [float(x) for x in exact]
    assert codes_fit(sample_chains(rows, 7, seed=1, n=n, start="stationary")[:, -k:], V, k, pi)
    assert not codes_fit(sample_chains(rows, 3, seed=1, n=n)[:, -k:], V, k, pi)
    assert codes_fit(sample_chains(rows, 150, seed=1, n=n)[:, -k:], V, k, pi)


def test_stationary_starts_are_those_of_each_chain():
    rows = np.array([[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    assert sample_chains(rows, 3, seed=0, start="stationary").tolist() == [[1, 1, 1], [0, 0, 0]]
    laws = [[1.0, 0.0], [0.0, 1.0]]
    assert sample_chains(rows, 3, seed=0, start=laws).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert sample_chains(rows, 3, seed=0, start=[[1], [0]]).tolist() == [[1, 1, 1], [0, 0, 0]]


@settings(deadline=None, max_examples=30)
@given(sizes, st.integers(0, 140), st.integers(1, 140), st.sampled_from(["uniform", "stationary"]), seeds)
def test_more_tokens_and_more_sequences_only_append(size, length, more, start, seed):
    V, k = size
    rows = random_rows(np.random.default_rng(seed), V, k, chains=(5,))
    T = max(k, 1) + length
    few = sample_chains(rows[:3], T, seed=seed, start=start)
    assert np.array_equal(few, sample_chains(rows[:3], T, seed=np.random.SeedSequence(seed), start=start))
    assert np.array_equal(few, sample_chains(rows, T + more, seed=seed, start=start)[:3, :T])


def test_no_token_of_probability_zero_by_rounding():
    """Probabilities may sum to a little less than 1; a uniform number above their sum is the last possible token."""
    from marginlab.theory._markov import pick_each

    picked = np.full(2, -1)
    pick_each(np.array([[0.5, 0.5 - 4 * EPS, 0.0]]), np.array([1 - EPS / 2, 0.0]), picked)
    assert picked.tolist() == [1, 0]


def test_no_two_random_quantities_share_a_stream(monkeypatch):
    used = []

    def recorded(seed, key):
        used.append((seed.entropy, *seed.spawn_key, key))
        return named_stream(seed, key)

    monkeypatch.setattr(markov, "named_stream", recorded)
    sample_chains([[0.5, 0.5]] * 4, 300, seed=7, n=2)
    assert len(used) == len(set(used)) == 1 + 5  # the start, and 298 steps in stretches of 64


def test_a_shared_chain_is_the_same_as_its_copies():
    rows = random_rows(np.random.default_rng(2), 3, 2)
    copies = np.tile(rows, (4, 1, 1))
    for start in ("uniform", "stationary"):
        one = sample_chains(rows, 100, seed=3, n=4, start=start)
        assert np.array_equal(one, sample_chains(copies, 100, seed=3, start=start))
        assert not np.array_equal(one, sample_chains(rows, 100, seed=4, n=4, start=start))
        assert not np.array_equal(one[0, 10:], one[1, 10:])
