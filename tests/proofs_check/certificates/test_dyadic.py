"""Exact conversions and outward rounding, against fractions and mpmath."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import dyadic

FLOATS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
RATIONALS = st.fractions(min_value=0, max_value=10**30, max_denominator=10**30)


@settings(deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=6))
def test_integers_times_a_power_of_two_are_the_floats(values):
    array = np.array(values)
    exponent = dyadic.common_exponent(array)
    exact = dyadic.integers(array, exponent)
    scale = Fraction(2) ** exponent
    assert [v * scale for v in exact] == [Fraction(v) for v in values]
    assert not any(exact) or any(v % 2 for v in exact), "no common factor of two is left"
    assert dyadic.rounded(exact, exponent).tolist() == [abs(v) if v == 0 else v for v in values] or (
        # entries 2**-1000 below the largest may lose bits
        max(map(abs, values)) * 2.0**-900 > min(abs(v) for v in values if v)
    )


@settings(deadline=None)
@given(st.fractions())
def test_nearest_floats_on_both_sides(value):
    low, high = dyadic.floor_float(value), dyadic.ceil_float(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert high in (low, math.nextafter(low, math.inf))
    assert (low == high) == (Fraction(float(value)) == value)


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_the_float_range(sign):
    value = sign * Fraction(10) ** 400
    low, high = dyadic.floor_float(value), dyadic.ceil_float(value)
    assert (low, high) == (
        (1.7976931348623157e308, math.inf) if sign > 0 else (-math.inf, -1.7976931348623157e308)
    )


@settings(deadline=None)
@given(RATIONALS)
def test_roots(square):
    low, high = dyadic.floor_root(square), dyadic.ceil_root(square)
    assert low**2 <= square <= high**2
    assert high - low <= low / 10**40
    assert dyadic.floor_root(square**2) == square == dyadic.ceil_root(square**2)


@settings(deadline=None)
@given(RATIONALS, st.integers(1, 30))
def test_decimals_are_rounded_outward(value, digits):
    low, high = (dyadic.decimal(value, up=up, digits=digits) for up in (False, True))
    assert Fraction(low) <= value <= Fraction(high)
    assert Fraction(high) - Fraction(low) <= value * Fraction(10, 10**digits)
    assert len(low.split("e")[0].replace(".", "")) <= digits


def test_a_negative_bound_is_refused():
    with pytest.raises(ValueError, match="must be >= 0"):
        dyadic.decimal(Fraction(-1), up=True)


@settings(deadline=None)
@given(st.fractions(min_value=0, max_value=1), st.integers(0, 60))
def test_angles(base, power):
    square = base / 10**power
    bound = dyadic.angle_upper(square)
    with mpmath.workdps(120):
        exact = mpmath.asin(mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator))
        value = mpmath.mpf(bound.numerator) / bound.denominator
        assert exact <= value <= exact * (1 + mpmath.mpf(2) ** -100)


def test_angles_at_the_ends():
    assert dyadic.angle_upper(Fraction(0)) == 0
    assert float(dyadic.angle_upper(Fraction(3))) == pytest.approx(math.pi / 2, rel=1e-15)
