"""Hierarchical Bayes: table sums, quadrature and Gibbs against exact fractions, limits and one another."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.ngrams.bayes import posterior_mean
from marginlab.theory.ngrams.gibbs import gibbs_mean
from marginlab.theory.ngrams.hierarchical import (
    MOST_CUSTOMERS,
    parent_mean,
    posterior_mean_exact,
    sibling_counts,
    sibling_log_evidence,
    sibling_posterior,
    table_log_pmf,
)
from marginlab.theory.ngrams.sampling import sample
from marginlab.theory.ngrams.task import NGramTask

seeds = st.integers(0, 2**32)
fractions = st.fractions(Fraction(1, 4), 6, max_denominator=4)


def hierarchical(V, order, base_order, *concentrations, alpha=1.0):
    return NGramTask(
        vocab_size=V,
        order=order,
        prior="hierarchical",
        base_order=base_order,
        concentrations=concentrations,
        alpha=alpha,
    )


def log(fraction):
    with mp.workdps(40):
        return float(mp.log(mp.mpf(fraction.numerator) / fraction.denominator))


def rising(x, n):
    product = Fraction(1)
    for i in range(n):
        product *= x + i
    return product


# ---- References in exact arithmetic ----


@cache
def stirling(n: int, t: int) -> int:
    """Unsigned Stirling numbers of the first kind."""
    if t < 0 or t > n:
        return 0
    return 1 if n == 0 else stirling(n - 1, t - 1) + (n - 1) * stirling(n - 1, t)


def by_enumeration(counts, row, alpha, c):
    """Evidence of the siblings and law of the next token: all numbers of tables, one after the other."""
    V = len(counts)
    cells = [(b, m) for b in range(V) for m in range(V)]
    evidence, parent = Fraction(0), [Fraction(0)] * V
    for tables in itertools.product(*(range(counts[b][m] + 1) for b, m in cells)):
        weight, t = Fraction(1), [0] * V
        for (b, m), number in zip(cells, tables, strict=True):
            weight *= stirling(counts[b][m], number) * c**number
            t[m] += number
        for number in t:
            weight *= rising(alpha, number)
        weight /= rising(alpha * V, sum(t))
        evidence += weight
        for m in range(V):
            parent[m] += weight * (alpha + t[m]) / (alpha * V + sum(t))
    own = counts[row]
    law = [(own[m] + c * parent[m] / evidence) / (sum(own) + c) for m in range(V)]
    for b in range(V):
        evidence /= rising(c, sum(counts[b]))
    return evidence, law


def multiply(p, q):
    out = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        for j, y in enumerate(q):
            out[i + j] += x * y
    return out


def rising_polynomial(factor, shift, n):
    """Coefficients of prod_{i<n} (shift + factor p + i)."""
    out = [Fraction(1)]
    for i in range(n):
        out = multiply(out, [shift + i, factor])
    return out


def binary_evidence(tokens, k, r0, concentrations, alpha, more=None):
    """Evidence of a binary sequence with any base order, as polynomials in the parents: no tables, no sampling.

    The likelihood of a subtree is a polynomial in P(1) of its root. Given the parent's p, P(1) is
    Beta(c p, c (1 - p)), with the moments E[P^j] = (c p)_j / (c)_j: again polynomials.
    """
    counts: dict[tuple[int, ...], list[int]] = {}
    steps = [(tuple(tokens[s - 1 : s - k - 1 : -1] if s > k else tokens[s - 1 :: -1]), tokens[s])
             for s in range(k, len(tokens))]  # fmt: skip
    if more is not None:
        steps.append((tuple(tokens[: -k - 1 : -1]), more))
    for context, m in steps:
        counts.setdefault(context, [0, 0])[m] += 1

    def children(context):
        product = [Fraction(1)]
        for b in (0, 1):
            product = multiply(product, subtree((*context, b)))
        return product

    def subtree(context):
        c = concentrations[len(context) - r0 - 1]
        if len(context) == k:
            n0, n1 = counts.get(context, (0, 0))
            product = multiply(rising_polynomial(c, Fraction(0), n1), rising_polynomial(-c, c, n0))
            return [x / rising(c, n0 + n1) for x in product]
        out = [Fraction(0)]
        for j, q in enumerate(children(context)):
            moment = rising_polynomial(c, Fraction(0), j)
            out += [Fraction(0)] * (len(moment) - len(out))
            for i, x in enumerate(moment):
                out[i] += q * x / rising(c, j)
        return out

    evidence = Fraction(1)
    for context in itertools.product((0, 1), repeat=r0):
        evidence *= sum(q * rising(alpha, j) / rising(2 * alpha, j) for j, q in enumerate(children(context)))
    return evidence


def binary_law(tokens, k, r0, concentrations, alpha):
    evidence = binary_evidence(tokens, k, r0, concentrations, alpha)
    return [float(binary_evidence(tokens, k, r0, concentrations, alpha, more=m) / evidence) for m in (0, 1)]


def test_the_reference_agrees_with_enumeration():
    """Polynomials and table counts meet in exact arithmetic: a k = 1 sequence has one group of siblings."""
    tokens, alpha, c = [0, 1, 1, 0, 0, 0, 1, 0], Fraction(3, 2), Fraction(5, 2)
    counts, row = sibling_counts([tokens], 2, 1)
    evidence, law = by_enumeration(counts[0].tolist(), int(row[0]), alpha, c)
    assert binary_evidence(tokens, 1, 0, [c], alpha) == evidence
    assert [binary_evidence(tokens, 1, 0, [c], alpha, more=m) / evidence for m in (0, 1)] == law


# ---- Tables ----


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 60), fractions)
def test_table_law_by_stirling_numbers(n, c):
    found = table_log_pmf(n, float(c))
    for t in range(n + 1):
        exact = stirling(n, t) * c**t / rising(c, n)
        if exact == 0:
            assert found[t] == -np.inf
        else:
            assert found[t] == pytest.approx(log(exact), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("c", [1e-100, 1e-3, 1.0, 300.0, 1e100])
def test_table_law_of_many_customers(c):
    """Sums to one, with the mean sum_i c / (c + i), however far the tails reach down."""
    law = np.exp(table_log_pmf(1000, c))
    assert law.sum() == pytest.approx(1, abs=1e-11)
    i = np.arange(1000)
    assert law @ np.arange(1001) == pytest.approx(np.sum(c / (c + i)), rel=1e-11)


# ---- Siblings ----


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 3), fractions, fractions, seeds)
def test_tables_by_enumeration(V, alpha, c, seed):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(rng.integers(0, 14 if V == 2 else 8), np.ones(V * V) / V**2).reshape(V, V)
    row = int(rng.integers(V))
    evidence, law = by_enumeration(counts.tolist(), row, alpha, c)
    arguments = (float(alpha), float(c))
    assert sibling_posterior(counts, row, *arguments) == pytest.approx([float(p) for p in law], rel=1e-13)
    assert sibling_log_evidence(counts, *arguments) == pytest.approx(log(evidence), abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.5, 20.0), st.floats(0.01, 100.0), st.integers(0, 300), seeds)
def test_tables_against_quadrature(alpha, c, total, seed):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(total, rng.dirichlet(np.ones(4)), size=3).reshape(3, 2, 2)
    for call in (parent_mean, lambda *a, **k: sibling_posterior(a[0], [0, 1, 1], *a[1:], **k)):
        tables, quadrature = (call(counts, alpha, c, method=m) for m in ("tables", "quadrature"))
        assert np.allclose(tables, quadrature, rtol=0, atol=1e-12)
    evidences = [sibling_log_evidence(counts, alpha, c, method=m) for m in ("tables", "quadrature")]
    assert np.allclose(*evidences, rtol=1e-12, atol=1e-11)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 5), st.floats(0.05, 5.0), st.floats(0.05, 50.0), seeds)
def test_chain_rule(V, alpha, c, seed):
    """One more transition multiplies the evidence by its predictive probability."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(2.0, size=(V, V))
    b = int(rng.integers(V))
    law = sibling_posterior(counts, b, alpha, c)
    more = np.tile(counts, (V, 1, 1))
    more[np.arange(V), b, np.arange(V)] += 1
    ratios = np.exp(sibling_log_evidence(more, alpha, c) - sibling_log_evidence(counts, alpha, c))
    assert ratios == pytest.approx(law, rel=1e-10)


@settings(deadline=None, max_examples=20)
@given(st.integers(2, 5), st.floats(0.1, 5.0), seeds)
def test_limits_of_the_concentration(V, alpha, seed):
    """Children equal to their parent: add-alpha of pooled counts. Scattered children: one table for each dish."""
    counts = np.random.default_rng(seed).poisson(1.0, size=(V, V))
    pooled = posterior_mean(counts.sum(axis=0), alpha)
    assert parent_mean(counts, alpha, 1e14) == pytest.approx(pooled, rel=1e-10)
    assert sibling_posterior(counts, 0, alpha, 1e14) == pytest.approx(pooled, rel=1e-10)
    types = posterior_mean((counts > 0).sum(axis=0), alpha)
    assert parent_mean(counts, alpha, 1e-14) == pytest.approx(types, rel=1e-10)


def test_many_transitions_neither_overflow_nor_underflow():
    counts = np.zeros((3, 4, 4), int)
    counts[0, 0, 0] = 700  # one cell
    counts[1] = 43  # all alike
    counts[2, :, 2] = 150  # one symbol
    for c in (1e-100, 1e-3, 5.0, 1e3, 1e100):
        for alpha in (1e-100, 0.5, 1e100):
            law = sibling_posterior(counts, 1, alpha, c)
            assert np.isfinite(law).all()
            assert law.min() >= 0
            assert np.abs(law.sum(axis=1) - 1).max() < 1e-12
            assert np.isfinite(sibling_log_evidence(counts, alpha, c)).all()
            assert law[1] == pytest.approx(np.full(4, 0.25), rel=1e-10)


# ---- Sequences ----


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 4), st.integers(1, 3), st.integers(0, 40), seeds)
def test_sibling_counts_by_a_loop(V, k, extra, seed):
    tokens = np.random.default_rng(seed).integers(0, V, size=(3, k + extra))
    expected = np.zeros((3, V, V), int)
    for i, x in enumerate(tokens.tolist()):
        for s in range(k, len(x)):
            if x[s - k + 1 : s] == x[len(x) - k + 1 :]:
                expected[i, x[s - k], x[s]] += 1
    for dtype in (np.int64, np.uint8, np.uint64):
        counts, row = sibling_counts(tokens.astype(dtype), V, k)
        assert np.array_equal(counts, expected)
        assert np.array_equal(row, tokens[:, -k])


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), st.integers(0, 14), fractions, fractions, seeds)
def test_exact_mean_of_binary_sequences(k, extra, alpha, c, seed):
    tokens = np.random.default_rng(seed).integers(0, 2, size=(2, k + extra))
    found = posterior_mean_exact(tokens, 2, k, float(alpha), float(c))
    for x, law in zip(tokens.tolist(), found, strict=True):
        assert law == pytest.approx(binary_law(x, k, k - 1, [c], alpha), rel=1e-12)


# ---- Gibbs ----


@pytest.mark.parametrize(("V", "T", "seed"), [(2, 40, 0), (3, 25, 1), (4, 64, 2)])
def test_gibbs_against_the_exact_mean(V, T, seed):
    task = hierarchical(V, 2, 1, 4.0)
    tokens = sample(task, 20, T, seed).tokens
    exact = posterior_mean_exact(tokens, V, 2, task.alpha, 4.0)
    mean, error = gibbs_mean(task, tokens, seed=seed, sweeps=8000, burn_in=200)
    gap = np.abs(mean - exact)
    assert gap.max() < 5e-3
    assert (gap <= 5 * error + 1e-12).all()
    assert error.max() < 2e-3


@pytest.mark.parametrize(
    ("k", "r0", "concentrations", "alpha"),
    [
        (1, 0, (3,), Fraction(1, 2)),
        (2, 0, (4, 4), Fraction(1)),
        (2, 0, (1, Fraction(1, 2)), Fraction(1, 2)),
        (3, 1, (2, 5), Fraction(1)),
        (3, 0, (6, 2, 3), Fraction(3, 2)),
    ],
)
def test_gibbs_of_any_base_order(k, r0, concentrations, alpha):
    task = hierarchical(2, k, r0, *(float(c) for c in concentrations), alpha=float(alpha))
    tokens = sample(task, 6, 16, k).tokens
    exact = [binary_law(x, k, r0, [Fraction(c) for c in concentrations], alpha) for x in tokens.tolist()]
    mean, error = gibbs_mean(task, tokens, seed=5, sweeps=20_000, burn_in=200)
    gap = np.abs(mean - exact)
    assert gap.max() < 5e-3
    assert (gap <= 5 * error + 1e-12).all()


def test_the_stated_error_is_the_error_made():
    """Over many sequences the gaps to the exact mean are as large as stated, at the default numbers of sweeps."""
    task = hierarchical(3, 2, 1, 4.0)
    tokens = sample(task, 400, 64, 7).tokens
    mean, error = gibbs_mean(task, tokens, seed=11)
    moved = error.min(axis=1) > 1e-12  # nothing is random unless a symbol followed a sibling twice
    assert moved.mean() > 0.8
    scores = ((mean - posterior_mean_exact(tokens, 3, 2, 1.0, 4.0))[moved] / error[moved]) ** 2
    assert 0.8 < scores.mean() ** 0.5 < 1.4


def test_gibbs_does_not_depend_on_the_batch():
    task = hierarchical(3, 2, 0, 2.0, 4.0)
    tokens = sample(task, 5, 30, 3).tokens
    mean, error = gibbs_mean(task, tokens, seed=4, sweeps=60, burn_in=10)
    few_mean, few_error = gibbs_mean(task, tokens[:2], seed=np.random.SeedSequence(4), sweeps=60, burn_in=10)
    assert np.array_equal(mean[:2], few_mean)
    assert np.array_equal(error[:2], few_error)
    other, _ = gibbs_mean(task, tokens, seed=5, sweeps=60, burn_in=10)
    assert (mean != other).any()


def test_nothing_seen_is_uniform():
    mean, error = gibbs_mean(hierarchical(3, 2, 0, 2.0, 4.0), [[0, 1], [2, 2]], seed=0)
    assert mean == pytest.approx(np.full((2, 3), 1 / 3), rel=1e-14)
    assert np.abs(error).max() < 1e-15
    assert posterior_mean_exact([[0, 1], [2, 2]], 3, 2, 1.0, 4.0) == pytest.approx(np.full((2, 3), 1 / 3))


@pytest.mark.parametrize("alpha", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("c", [1e-100, 1e-3, 1e100])
def test_extreme_concentrations_give_laws(c, alpha):
    tokens = np.random.default_rng(0).integers(0, 4, size=(5, 50))
    for task in (hierarchical(4, 3, 0, c, c, c, alpha=alpha), hierarchical(4, 1, 0, c, alpha=alpha)):
        mean, error = gibbs_mean(task, tokens, seed=1, sweeps=40, burn_in=5)
        assert np.isfinite(error).all()
        assert mean.min() >= 0
        assert np.abs(mean.sum(axis=1) - 1).max() < 1e-12


# ---- Refusals ----

COUNTS, TASK = np.ones((2, 2), int), hierarchical(2, 2, 1, 4.0)
TOKENS = [[0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: table_log_pmf(-1, 1.0), "customers must"),
        (lambda: table_log_pmf(MOST_CUSTOMERS + 1, 1.0), "customers must be at most"),
        (lambda: table_log_pmf(2, float("inf")), "c must"),
        (lambda: sibling_posterior(np.ones((2, 3), int), 0, 1.0, 1.0), "siblings by symbols"),
        (lambda: sibling_posterior(COUNTS / 2, 0, 1.0, 1.0), "integers"),
        (lambda: sibling_posterior(-COUNTS, 0, 1.0, 1.0), "got -1"),
        (lambda: sibling_posterior(COUNTS, 2, 1.0, 1.0), "row must lie in 0..1, got 2"),
        (lambda: sibling_posterior(COUNTS, 0.0, 1.0, 1.0), "row must be"),
        (lambda: sibling_posterior(COUNTS, [0, 1], 1.0, 1.0), "row must be"),
        (lambda: sibling_posterior(COUNTS, 0, 0.0, 1.0), "alpha must"),
        (lambda: sibling_posterior(COUNTS, 0, 1.0, -1.0), "c must"),
        (lambda: sibling_posterior(COUNTS, 0, 1.0, 1.0, method="exact"), "method must"),
        (lambda: posterior_mean_exact([0, 1, 1], 2, 1, 1.0, 1.0), "shape \\(n, T\\)"),
        (lambda: posterior_mean_exact(np.zeros((0, 4), int), 2, 1, 1.0, 1.0), "not be empty"),
        (lambda: posterior_mean_exact([[0, 1, 2]], 2, 1, 1.0, 1.0), "vocabulary"),
        (lambda: posterior_mean_exact([[0, 1]], 2, 3, 1.0, 1.0), "at least order"),
        (lambda: posterior_mean_exact(TOKENS, 2, 0, 1.0, 1.0), "order must"),
        (lambda: gibbs_mean(TASK, [0, 1, 1], seed=0), "shape \\(n, T\\)"),
        (lambda: gibbs_mean(TASK, [[0, 1, 2]], seed=0), "vocabulary"),
        (lambda: gibbs_mean(TASK, [[0]], seed=0), "at least order"),
        (lambda: gibbs_mean(TASK, [[0.0, 1.0, 1.0]], seed=0), "integers"),
        (lambda: gibbs_mean(TASK, np.zeros((2, 0), int), seed=0), "not be empty"),
        (lambda: gibbs_mean(TASK, TOKENS, seed=None), "seed must"),  # type: ignore[arg-type]
        (lambda: gibbs_mean(TASK, TOKENS, seed=0, sweeps=79), "at least burn_in \\+ 20"),
        (lambda: gibbs_mean(TASK, TOKENS, seed=0, burn_in=-1), "burn_in must"),
        (lambda: gibbs_mean(NGramTask(vocab_size=2, order=2), TOKENS, seed=0), "hierarchical prior"),
        (lambda: gibbs_mean("task", TOKENS, seed=0), "an NGramTask"),  # type: ignore[arg-type]
        (lambda: gibbs_mean(hierarchical(2, 1, 0, 1e200), TOKENS, seed=0), "concentrations must"),
        (
            lambda: gibbs_mean(
                NGramTask(
                    vocab_size=2,
                    order=1,
                    prior="hierarchical",
                    base_order=0,
                    concentrations=(1.0,),
                    start="stationary",
                ),
                TOKENS,
                seed=0,
            ),
            "uniform start",
        ),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        call()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sibling_posterior(COUNTS * 600, 0, 1.0, 1.0), "use quadrature"),
        (lambda: sibling_posterior(COUNTS * 600, 0, 1.0, 1.0, method="quadrature"), "use Gibbs"),
        (lambda: sibling_posterior(np.ones((3, 3), int), 0, 1.0, 1.0, method="quadrature"), "needs V = 2"),
        (lambda: sibling_posterior(COUNTS, 0, 0.01, 1.0, method="quadrature"), "alpha between"),
    ],
)
def test_unavailable(call: Any, match: str) -> None:
    with pytest.raises(MethodUnavailable, match=match):
        call()
