"""Named tolerances against exact rationals, exact enumeration, other methods, and simulated coverage."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import optimize, stats

from marginlab.proofs_check.tolerances import (
    UNIT_ROUNDOFF,
    enclosed,
    gamma,
    mean_interval,
    proportion_interval,
    rounded,
    truncated,
)
from marginlab.theory.errors import InvalidInput

relaxed = settings(deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)

#: Probability that one of the simulated tests below fails although all is well.
FALSE_ALARM = 1e-9


def test_gamma_is_higham_s() -> None:
    for k in (0, 1, 7, 1000, 10**12):
        u = Fraction(1, 2**53)
        exact = k * u / (1 - k * u)
        assert abs(Fraction(gamma(k)) - exact) <= 4 * u * exact  # product, difference, quotient: 3 roundings
    assert np.finfo(np.float64).eps / 2 == UNIT_ROUNDOFF
    for k in (-1, 2**53, 2**54):
        with pytest.raises(ValueError, match="gamma_k needs"):
            gamma(k)


@relaxed
@given(seed=seeds)
def test_rounded_holds_the_exact_sum(seed: int) -> None:
    """Naive sums with heavy cancellation; the exact value in rationals lies inside."""
    rng = np.random.default_rng(seed)
    terms = rng.standard_normal(int(rng.integers(2, 40))) * 10.0 ** rng.integers(-8, 8)
    terms = np.concatenate([terms, -terms * (1 + rng.standard_normal() * 1e-9)])
    total = 0.0
    for term in terms:
        total += term
    interval = rounded(total, operations=len(terms) - 1, magnitude=np.abs(terms).sum())
    exact = sum(map(Fraction, terms.tolist()), Fraction(0))
    assert Fraction(float(interval.lo)) <= exact <= Fraction(float(interval.hi))
    assert float(interval.hi - interval.lo) < 1e-12 * np.abs(terms).sum()  # and it is no wider than it says


def test_rounded_by_default_takes_its_own_size() -> None:
    value = rounded([2.0, -4.0], operations=3)
    np.testing.assert_allclose(value.hi - value.lo, 2 * 3 * UNIT_ROUNDOFF * np.array([2, 4]), rtol=0.7)
    assert "3 float64 operations" in value.rule


def test_enclosed_and_truncated_carry_their_reason() -> None:
    gap = enclosed(1.0, 2.0, "margin")
    assert (float(gap.lo), float(gap.hi), gap.rule) == (1.0, 2.0, "solver gap: margin")
    band = truncated(1.0, 3.0)
    np.testing.assert_allclose([band.lo, band.hi], [0.8, 1.2], rtol=1e-15)
    assert band.rule.startswith("truncation: within 10%")
    np.testing.assert_array_equal(truncated(1.0, 3.0).lo, truncated(1.0, -1.0).lo)  # the side is no matter
    for share in (0.0, 0.5, -0.1, np.nan):
        with pytest.raises(ValueError, match="a share between"):
            truncated(1.0, 3.0, share=share)


@relaxed
@given(n=st.integers(0, 30), data=st.data(), level=st.sampled_from([1e-6, 1e-3, 0.05, 0.3]))
def test_proportion_interval_is_clopper_pearson(n: int, data: st.DataObject, level: float) -> None:
    """The ends solve P(X >= k) = level/2 and P(X <= k) = level/2, summed term by term in many digits."""
    k = data.draw(st.integers(0, n))
    interval = proportion_interval(np.array([1.0] * k + [0.0] * (n - k)), level)
    with mp.workdps(50):

        def at_least(j: int, p: float) -> Any:
            q = mpf(p)
            return mp.fsum(comb(n, i) * q**i * (1 - q) ** (n - i) for i in range(j, n + 1))

        def allowed(p: float) -> float:
            """64 ulps of p, through |d log P| <= n dp / min(p, 1 - p)."""
            return n * 2.0**-47 / min(p, 1 - p)

        lo, hi = float(interval.lo), float(interval.hi)
        if k == 0:
            assert lo == 0.0
        else:
            assert abs(at_least(k, lo) / (level / 2) - 1) < allowed(lo)
        if k == n:
            assert hi == 1.0
        else:
            assert abs((1 - at_least(k + 1, hi)) / (level / 2) - 1) < allowed(hi)


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("n", [5, 12, 25])
def test_proportion_covers_by_enumeration(n: int, p: float) -> None:
    """All 2^n samples, grouped by k: the interval misses p with probability at most its level."""
    level = 0.05
    missed = 0.0
    for k in range(n + 1):
        interval = proportion_interval(np.array([1.0] * k + [0.0] * (n - k)), level)
        if not interval.lo <= p <= interval.hi:
            missed += comb(n, k) * p**k * (1 - p) ** (n - k)
    assert missed <= level


def _p_value(values: Any, mean: float) -> float:
    result: Any = stats.ttest_1samp(values, mean)
    return float(result.pvalue)


@relaxed
@given(seed=seeds, level=st.sampled_from([1e-6, 1e-3, 0.05]))
def test_mean_interval_inverts_the_t_test(seed: int, level: float) -> None:
    """At its ends the two-sided p-value of scipy's t-test is the level; found again by root finding."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(int(rng.integers(5, 20))) * 3 + rng.standard_normal()
    interval = mean_interval(values, level)
    assert interval.lo <= values.mean() <= interval.hi
    for end in (interval.lo, interval.hi):
        p_value = _p_value(values, float(end))
        assert p_value == pytest.approx(level, rel=1e-6)
    wide = values.mean() + 100 * values.std()
    root = optimize.brentq(lambda m: np.log(_p_value(values, m) / level), values.mean() + 1e-9, wide)
    assert float(interval.hi) == pytest.approx(root, rel=1e-6, abs=1e-9)


def test_mean_interval_covers() -> None:
    """Gaussian samples of five: the number of misses is binomial, judged at the stated false-alarm level."""
    level, repeats = 0.05, 4000
    samples = np.random.default_rng(20260101).standard_normal((repeats, 5)) * 2 + 1
    intervals = [mean_interval(row, level) for row in samples]
    missed = sum(not i.lo <= 1.0 <= i.hi for i in intervals)
    assert stats.binomtest(missed, repeats, level).pvalue > FALSE_ALARM


def test_mean_of_equal_values_has_no_interval() -> None:
    with pytest.raises(InvalidInput, match=r"1000 replications all gave 0\.1: without any spread"):
        mean_interval(np.full(1000, 0.1), 1e-3)


def test_mean_of_nearly_equal_values_allows_for_rounding() -> None:
    values = np.append(np.full(999, 0.1), np.nextafter(0.1, 1.0))
    interval = mean_interval(values, 1e-3)
    assert interval.lo <= 0.1 <= interval.hi
    assert 0 < float(interval.hi - interval.lo) < 1e-12


@pytest.mark.parametrize("n", [0, 1])
def test_mean_of_fewer_than_two_says_nothing(n: int) -> None:
    interval = mean_interval(np.ones(n), 1e-3)
    assert (float(interval.lo), float(interval.hi)) == (-np.inf, np.inf)
