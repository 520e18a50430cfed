"""Add-alpha, its evidence and its risk against integrals, exact fractions and many digits; a start that breaks it."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.ngrams.bayes import (
    bayes_risk,
    excess_risk,
    log_evidence,
    log_rising,
    posterior_mean,
    stationary_start_mean,
    transition_counts,
)

seeds = st.integers(0, 2**32)
concentrations = st.floats(0.01, 50.0)


def drawn_tokens(seed, shape, V):
    return np.random.default_rng(seed).integers(0, V, size=shape)


# ---- Counts ----


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 4), st.integers(0, 3), st.integers(0, 12), seeds)
def test_counts_by_a_loop(V, k, extra, seed):
    tokens = drawn_tokens(seed, (3, max(k + extra, 1)), V)
    expected = np.zeros((3, V**k, V), int)
    for i, x in enumerate(tokens.tolist()):
        for s in range(k, len(x)):
            code = sum(x[s - lag] * V ** (lag - 1) for lag in range(1, k + 1))
            expected[i, code, x[s]] += 1
    assert np.array_equal(transition_counts(tokens, V, k), expected)
    assert np.array_equal(transition_counts(tokens[1].astype(np.uint64), V, k), expected[1])


# ---- Evidence and mean ----


@settings(deadline=None, max_examples=100)
@given(st.floats(-30, 30) | st.floats(3.2, 5.0), st.integers(0, 10) | st.integers(0, 10**6))
def test_rising_factorial(exponent, n):
    a = float(mp.mpf(2) ** exponent)
    with mp.workdps(40):
        expected = mp.loggamma(mp.mpf(a) + n) - mp.loggamma(mp.mpf(a))
        assert abs(log_rising(a, n) - expected) <= 1e-14 * (1 + abs(expected))


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 4), st.integers(1, 2), st.integers(0, 30), st.integers(1, 8), seeds)
def test_evidence_is_the_product_of_the_urns(V, k, extra, quarters, seed):
    """Each row as a Polya urn, token by token, in fractions."""
    tokens, alpha = drawn_tokens(seed, k + extra, V), Fraction(quarters, 4)
    urns: dict[tuple[int, ...], list[Fraction]] = {}
    expected, x = Fraction(1), tokens.tolist()
    for s in range(k, len(x)):
        urn = urns.setdefault(tuple(x[s - k : s]), [alpha] * V)
        expected *= urn[x[s]] / sum(urn)
        urn[x[s]] += 1
    found = log_evidence(transition_counts(tokens, V, k), float(alpha))
    assert found == pytest.approx(float(mp.log(mp.mpf(expected.numerator) / expected.denominator)), abs=1e-12)


@pytest.mark.parametrize(("counts", "alpha"), [((0, 0), 0.4), ((3, 1), 0.5), ((7, 20), 2.5)])
def test_one_row_by_integrals(counts, alpha):
    """Evidence and mean of a row of two symbols as integrals over the row."""

    def integral(more):
        first, second = counts[0] + alpha - 1, counts[1] + more + alpha - 1
        halves = ((first, second), (second, first))  # p = s^5 near 0, 1 - p = s^5 near 1: no singularity
        parts = [
            mp.quad(lambda s, a=a, b=b: 5 * (1 - s**5) ** a * s ** (5 * b + 4), [0, 0.5**0.2])
            for a, b in halves
        ]
        return mp.fsum(parts) / mp.beta(alpha, alpha)

    row = np.array([counts])
    assert float(log_evidence(row, alpha)) == pytest.approx(float(mp.log(integral(0))), abs=1e-10)
    assert posterior_mean(counts, alpha)[1] == pytest.approx(float(integral(1) / integral(0)), rel=1e-10)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 5), concentrations, seeds)
def test_mean_is_a_ratio_of_evidences(V, alpha, seed):
    counts = np.random.default_rng(seed).poisson(3.0, size=(4, V))
    mean = posterior_mean(counts, alpha)
    for m in range(V):
        more = counts.copy()
        more[2, m] += 1
        ratio = np.exp(log_evidence(more, alpha) - log_evidence(counts, alpha))
        assert ratio == pytest.approx(mean[2, m], rel=1e-11)


# ---- Risk ----


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 20) | st.integers(0, 10**8), min_size=2, max_size=5),
    st.floats(0.01, 50.0) | st.sampled_from([1e-12, 1e6]),
)
def test_risk_to_many_digits(counts, alpha):
    with mp.workdps(60):
        a = [mp.mpf(n) + mp.mpf(alpha) for n in counts]
        total = mp.fsum(a)
        expected = mp.fsum(
            x / total * (mp.digamma(x + 1) - mp.digamma(total + 1) - mp.log(x / total)) for x in a
        )
        assert abs(bayes_risk(counts, alpha) - expected) <= 1e-13 * (len(a) + 1) / total


@pytest.mark.parametrize(("counts", "alpha"), [((0, 0), 1.0), ((5, 2), 0.5), ((40, 3), 2.0)])
def test_risk_by_its_definition(counts, alpha):
    """E[KL(P || mean)] and E[KL(P || q)] as integrals over a row of two symbols."""

    def expected_loss(q):
        def loss(p):
            return (p * np.log(p / q[1]) + (1 - p) * np.log((1 - p) / q[0])) * stats.beta.pdf(
                p, counts[1] + alpha, counts[0] + alpha
            )

        value, error = integrate.quad(loss, 0, 1, epsabs=1e-11, epsrel=1e-10, limit=200)
        assert error < 1e-8
        return value

    mean, other = posterior_mean(counts, alpha), np.array([0.3, 0.7])
    assert bayes_risk(counts, alpha) == pytest.approx(expected_loss(mean), abs=1e-8)
    excess = expected_loss(other) - expected_loss(mean)
    assert excess_risk(counts, alpha, other) == pytest.approx(excess, abs=1e-8)


def test_risk_by_sampling():
    counts, alpha = np.array([3, 0, 1, 7]), 0.6
    rows = np.random.default_rng(0).dirichlet(counts + alpha, size=200_000)
    losses = np.sum(rows * np.log(np.maximum(rows, 1e-300) / posterior_mean(counts, alpha)), axis=1)
    assert abs(losses.mean() - bayes_risk(counts, alpha)) < 5 * losses.std() / len(losses) ** 0.5


def test_risk_falls_like_the_number_of_parameters():
    """(V - 1) / (2 A) to first order, without loss of digits at a thousand million."""
    counts = np.full(3, 10**9)
    assert bayes_risk(counts, 1.0) == pytest.approx(2 / (2 * 3e9), rel=1e-8)
    assert bayes_risk(np.stack([counts, counts // 10]), 1.0).shape == (2,)


def test_excess_risk_is_least_at_the_mean():
    rng = np.random.default_rng(3)
    counts = rng.poisson(2.0, size=(50, 4))
    assert np.abs(excess_risk(counts, 0.5, posterior_mean(counts, 0.5))).max() == 0
    assert excess_risk(counts, 0.5, rng.dirichlet(np.ones(4), size=50)).min() > 0
    assert np.isposinf(excess_risk(counts[0], 0.5, [0.5, 0.5, 0.0, 0.0]))


# ---- A start from the stationary law ----


def by_triangles(counts, first, alpha):
    """Integer alpha: polynomials over 1 + t on the triangles a < b (a = b t) and b < a, by Gauss-Legendre."""
    x, w = np.polynomial.legendre.leggauss(80)
    t, w = (1 + x) / 2, w / 2
    small, large = np.meshgrid(t, t, indexing="ij")
    weight = np.outer(w, w) * large
    totals = np.zeros((3, 2))
    for a, b in ((small * large, large), (large, small * large)):
        start = (b if first == 0 else a) / (a + b)
        density = start * weight * a ** (counts[0][1] + alpha - 1) * (1 - a) ** (counts[0][0] + alpha - 1)
        density = density * b ** (counts[1][0] + alpha - 1) * (1 - b) ** (counts[1][1] + alpha - 1)
        totals += [[density.sum(), 0], [(density * (1 - a)).sum(), (density * a).sum()],
                   [(density * b).sum(), (density * (1 - b)).sum()]]  # fmt: skip
    return totals[1:] / totals[0, 0]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 25), min_size=4, max_size=4), st.integers(0, 1), st.integers(1, 3))
def test_stationary_start_with_integer_alpha(counts, first, alpha):
    array = np.reshape(counts, (2, 2))
    found = stationary_start_mean(array, first, alpha)
    assert np.allclose(found, by_triangles(array, first, alpha), rtol=1e-11, atol=0)
    swapped = stationary_start_mean(array[::-1, ::-1], 1 - first, alpha)
    assert np.allclose(found, swapped[::-1, ::-1], rtol=1e-12, atol=0)


@pytest.mark.parametrize(("counts", "alpha"), [([[3, 2], [1, 4]], 0.5), ([[0, 0], [2, 0]], 0.25)])
def test_stationary_start_by_laplace_transforms(counts, alpha):
    """1 / (a + b) as the integral of exp(-s (a + b)): a product of Kummer functions."""

    def moment(i, k):  # E[a^i b^k b / (a + b)], up to a constant
        a, b = (
            (counts[0][1] + alpha + i, counts[0][0] + alpha),
            (counts[1][0] + alpha + k + 1, counts[1][1] + alpha),
        )

        def integrand(u):
            s = mp.exp(u)
            return s * mp.hyp1f1(a[0], sum(a), -s) * mp.hyp1f1(b[0], sum(b), -s)

        return mp.beta(*a) * mp.beta(*b) * mp.quad(integrand, [-40, -10, 0, 5, 10, 25])

    found = stationary_start_mean(counts, 0, alpha)
    assert found[0, 1] == pytest.approx(float(moment(1, 0) / moment(0, 0)), rel=1e-9)
    assert found[1, 0] == pytest.approx(float(moment(0, 1) / moment(0, 0)), rel=1e-9)


def test_add_alpha_is_not_bayes_after_a_stationary_start():
    """The first token alone moves both rows; with many transitions its weight is lost."""
    nothing = stationary_start_mean(np.zeros((2, 2), int), 0, 1.0)
    assert nothing[0, 0] > 0.55
    assert nothing[1, 0] > 0.55
    many = np.array([[6000, 4000], [3000, 7000]])
    assert np.allclose(stationary_start_mean(many, 0, 1.0), posterior_mean(many, 1.0), rtol=0, atol=1e-4)


# ---- Refusals ----

ROW = np.array([1, 2])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: transition_counts([0, 1, 2], 2, 1), "vocabulary"),
        (lambda: transition_counts([0, 1], 2, 3), "at least order"),
        (lambda: transition_counts([0.0, 1.0], 2, 1), "integers"),
        (lambda: transition_counts([], 2, 0), "integers"),
        (lambda: transition_counts(np.zeros((0, 3), int), 2, 1), "not be empty"),
        (lambda: transition_counts(np.zeros((1, 2, 3), int), 2, 1), "shape"),
        (lambda: transition_counts([0] * 40, 2, 30), "table of counts"),
        (lambda: posterior_mean([0.5, 1.0], 1.0), "integers"),
        (lambda: posterior_mean([3], 1.0), "at least 2 symbols"),
        (lambda: posterior_mean(3, 1.0), "at least 1 dim"),
        (lambda: posterior_mean([1, -1], 1.0), "got -1 at index"),
        (lambda: posterior_mean([1, 2**54], 1.0), "2\\^53"),
        (lambda: posterior_mean(ROW, 0.0), "alpha must be positive"),
        (lambda: posterior_mean(ROW, float("nan")), "alpha must be positive"),
        (lambda: posterior_mean(ROW, 1e-200), "alpha must lie"),
        (lambda: bayes_risk(ROW, 1e200), "alpha must lie"),
        (lambda: bayes_risk(np.zeros((0, 2), int), 1.0), "no empty axis"),
        (lambda: log_evidence(ROW, 1.0), "at least 2 dim"),
        (lambda: excess_risk(ROW, 1.0, [0.5, 0.6]), "laws"),
        (lambda: excess_risk(ROW, 1.0, [1.5, -0.5]), "laws"),
        (lambda: excess_risk(ROW, 1.0, [0.2, 0.3, 0.5]), "2 entries"),
        (lambda: excess_risk(ROW, 1.0, [0.5, float("nan")]), "finite"),
        (lambda: excess_risk(np.ones((3, 2), int), 1.0, np.full((2, 2), 0.5)), "must fit"),
        (lambda: stationary_start_mean(np.ones((3, 3), int), 0, 1.0), "shape \\(2, 2\\)"),
        (lambda: stationary_start_mean(np.ones((2, 2), int), 2, 1.0), "first_token"),
        (lambda: stationary_start_mean(np.ones((2, 2), int), True, 1.0), "first_token"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        call()


def test_too_flat_for_the_rule():
    with pytest.raises(MethodUnavailable, match="sample the posterior"):
        stationary_start_mean(np.zeros((2, 2), int), 0, 1e-3)


def test_import_is_light():
    code = (
        "import sys; import marginlab.theory.ngrams.bayes, marginlab.theory.ngrams.hierarchical, "
        "marginlab.theory.ngrams.gibbs; assert not {'numba', 'sympy', 'mpmath'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
