"""Probability of the half-space condition against ball arithmetic, an F distribution and a closed form."""

from __future__ import annotations

from math import comb, isclose

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.probability import (
    UNION_FACTOR,
    UNION_RATE,
    halfspace_violation_bound,
    halfspace_violation_probability,
    pair_violation_bound,
    pair_violation_probability,
)

#: The claims allow this many roundings of the incomplete beta function.
ROUNDINGS = 100 * 2.0**-53


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 600))
def test_pair_probability_against_ball_arithmetic(d):
    half = arb(d) / 2
    exact = float((arb(1) / 4).beta_lower(half, half, True))
    # (1/4)^(d/2) is the exponential of -0.69 d, whose own rounding is that many units of roundoff.
    assert isclose(pair_violation_probability(d), exact, rel_tol=ROUNDINGS + 2 * d * 2.0**-53)
    assert exact <= pair_violation_bound(d)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 50])
def test_pair_probability_is_that_of_an_f_quotient(d):
    # scipy's F distribution is accurate to about 1e-13, which is far below what a wrong d would change
    assert isclose(pair_violation_probability(d), float(stats.f.cdf(1 / 3, d, d)), rel_tol=1e-12)


def test_one_dimension_is_a_third_and_two_a_quarter():
    # d = 1: the matched value is the middle one of three; d = 2: I_{1/4}(1, 1) = 1/4.
    assert isclose(pair_violation_probability(1), 1 / 3, rel_tol=ROUNDINGS)
    assert isclose(pair_violation_probability(2), 1 / 4, rel_tol=ROUNDINGS)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 1000), st.integers(3, 1000), st.integers(1, 400))
def test_bounds_are_ordered(n, T, d):
    union = halfspace_violation_bound(n, T, d)
    assert isclose(union, n * comb(T - 2, 2) * pair_violation_probability(d), rel_tol=ROUNDINGS)
    assert union <= UNION_FACTOR * n * T**2 * 2.718281828459045 ** (-UNION_RATE * d)
    if T == 4:
        assert halfspace_violation_probability(n, d) <= union


def test_probability_of_a_draw_by_complements():
    p = pair_violation_probability(16)
    kept = 1.0
    for _ in range(8):
        kept *= 1 - p
    assert isclose(halfspace_violation_probability(8, 16), 1 - kept, rel_tol=1e3 * ROUNDINGS)


def test_rare_violations_are_not_lost_to_rounding():
    assert isclose(
        halfspace_violation_probability(1, 600), pair_violation_probability(600), rel_tol=ROUNDINGS
    )
    assert 0 < pair_violation_probability(600) < 1e-37


@pytest.mark.parametrize("d", [0, -1, 1.5, True, "8"])
def test_dimensions_are_positive_integers(d):
    with pytest.raises(InvalidInput, match="d"):
        pair_violation_probability(d)


def test_a_context_has_at_least_three_tokens():
    with pytest.raises(InvalidInput, match="T"):
        halfspace_violation_bound(1, 2, 4)
