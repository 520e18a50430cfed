"""Exact integers behind float64 arrays, and outward rounding back to floats and decimals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from marginlab.theory.validation import Float

Integers = NDArray[np.object_]

#: Significant decimal digits of a stated bound: a refined certificate's gap is near 1e-30, so that 24 digits
#: lose nothing that a reader could use.
DIGITS = 24


def common_exponent(array: Float) -> int:
    """Largest e for which every entry of `array` is an integer times 2**e (0 for an array of zeros)."""
    mantissa, exponent = np.frexp(array)
    nonzero = mantissa != 0
    if not nonzero.any():
        return 0
    scaled = np.ldexp(mantissa[nonzero], 53).astype(np.int64)  # exact: |mantissa| < 1 with 53 bits
    lowest_bit = np.frexp((scaled & -scaled).astype(np.float64))[1] - 1
    return int((exponent[nonzero] - 53 + lowest_bit).min())


def integers(array: Float, exponent: int) -> Integers:
    """`array` / 2**exponent as Python integers; `exponent` must be at most `common_exponent(array)`."""
    mantissa, power = np.frexp(array)
    scaled = np.ldexp(mantissa, 53).astype(np.int64)
    shift = np.where(scaled == 0, 0, power - 53 - exponent)
    if shift.size and shift.min() >= 0 and shift.max() < 10:  # |scaled| < 2**53: the shift fits into int64
        return np.left_shift(scaled, shift).astype(np.object_)
    low = np.minimum(shift, 0)  # only trailing zero bits are shifted out
    return np.right_shift(scaled, -low).astype(np.object_) << (shift - low).astype(np.object_)


def rounded(values: Integers, exponent: int) -> Float:
    """values * 2**exponent as float64, each within a relative 2**-52 or within 2**-1000 of the largest."""
    flat = [int(v) for v in values.ravel()]
    bits = max((abs(v).bit_length() for v in flat), default=0)
    drop = max(0, bits - 1000)  # float() of an integer above 2**1024 overflows
    result = np.array([float(v >> drop) for v in flat]).reshape(values.shape)
    with np.errstate(over="ignore", under="ignore"):  # beyond the range: infinite, or zero
        return np.ldexp(result, exponent + drop)


def rounded_quotients(values: Integers, scale: Fraction) -> Float:
    """values * scale as float64 for scale > 0, each within a relative 2**-51 or 2**-900 of the largest.

    Integers of any length on either side, and at the cost of one division each (no common divisors are taken).
    """
    flat = [int(v) * scale.numerator for v in values.ravel()]
    bits = max((abs(v).bit_length() for v in flat), default=0)
    # the largest quotient has about 960 bits, so that the floor's unit is below 2**-950 of it
    shift = 960 - bits + scale.denominator.bit_length()
    quotients = [
        (v << shift) // scale.denominator if shift >= 0 else v // (scale.denominator << -shift) for v in flat
    ]
    return rounded(np.array(quotients, dtype=np.object_).reshape(values.shape), -shift)


def rounded_over(values: Integers, exponent: int, denominator: int) -> Float:
    """values * 2**exponent / denominator as float64, each the nearest one (infinite beyond the range)."""
    scale = power_of_two(exponent) / denominator
    return np.array([_nearest(int(v) * scale) for v in values])


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def power_of_two(exponent: int) -> Fraction:
    """2**exponent, exactly."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_float(value: Fraction) -> float:
    """Largest float64 <= value (values beyond the float range give -inf or the largest float)."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.nextafter(math.inf, 0) if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def ceil_float(value: Fraction) -> float:
    """Smallest float64 >= value."""
    return 0.0 - floor_float(-value)  # 0.0, not -0.0, for zero


def floor_root(square: Fraction) -> Fraction:
    """A lower bound of sqrt(square), relative error below 10**-40; exact for squares of short rationals."""
    if square <= 0:
        return Fraction(0)
    n, d = square.numerator, square.denominator
    root_n, root_d = math.isqrt(n), math.isqrt(d)
    if root_n * root_n == n and root_d * root_d == d:
        return Fraction(root_n, root_d)
    # s**2 = n 4**k / d has at least 2 * 140 bits, so that the floor's unit is below 2**-139 of the root
    k = max(0, (d.bit_length() - n.bit_length()) // 2 + 142)
    return Fraction(math.isqrt((n << 2 * k) // d), 1 << k)


def ceil_root(square: Fraction) -> Fraction:
    """An upper bound of sqrt(square), relative error below 10**-40; exact for squares of short rationals."""
    low = floor_root(square)
    return low if low * low >= square else low * (1 + Fraction(1, 1 << 136))


def decimal(value: Fraction, *, up: bool, digits: int = DIGITS) -> str:
    """`value` >= 0 as a decimal string with `digits` significant digits, rounded up or down."""
    if value < 0:
        raise ValueError(f"a stated bound must be >= 0, got {float(value)}.")
    if value == 0:
        return "0"
    n, d = value.numerator, value.denominator
    power = math.floor((n.bit_length() - d.bit_length()) * math.log10(2))  # 10**power within a factor 20
    for p in (power + 1, power, power - 1):  # the place of the leading digit
        scale = digits - 1 - p
        top, bottom = (n * 10**scale, d) if scale >= 0 else (n, d * 10**-scale)
        mantissa, rest = divmod(top, bottom)
        if mantissa >= 10 ** (digits - 1):
            break
    mantissa += int(up and rest > 0)
    text = str(mantissa)
    exponent = len(text) - 1 + (p - digits + 1)
    head, tail = text[0], text[1:].rstrip("0")
    return head + ("." + tail if tail else "") + (f"e{exponent}" if exponent else "")


def short(value: Fraction) -> str:
    """`value` for a message, of either sign and of any size (float() of it may overflow)."""
    return ("-" if value < 0 else "") + decimal(abs(value), up=value > 0, digits=6)


def fraction_of_arb(value: Any) -> Fraction:
    """The exact value of a finite arb with radius zero."""
    mantissa, exponent = value.man_exp()
    return int(mantissa) * power_of_two(int(exponent))


def angle_upper(sine_squared: Fraction) -> Fraction:
    """An upper bound of arcsin(sqrt(sine_squared)) in Arb balls, relative error below 2**-100.

    Exactly 0 for 0. Arguments near or above 1 (no information) give an upper bound of pi/2.
    """
    with flint.ctx.workprec(256):
        if sine_squared <= 0:
            return Fraction(0)
        # within 2**-200 of 1 (pi/2 is then off by 2**-100) a ball of 256 bits would reach beyond 1, to no arcsine
        if 1 - sine_squared <= Fraction(1, 1 << 200):
            ball = flint.arb.pi() / 2
        else:
            q = flint.fmpq(sine_squared.numerator, sine_squared.denominator)
            ball = flint.arb(q).sqrt().asin()
        return fraction_of_arb(ball.abs_upper())
