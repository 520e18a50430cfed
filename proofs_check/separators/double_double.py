"""Sums of products at twice the working precision, so that a gap of 1e-15 can be told from rounding.

A number is an unevaluated sum hi + lo of two float64 numbers, |lo| <= ulp(hi) / 2. Products are split
exactly (Veltkamp and Dekker), sums are exact two by two (Knuth) and reduced as a tree, so a sum of n
products carries an error below about 4 u^2 log2(n) sum |a_i b_i| with u = 2^-53: far below the rounding of
the float64 data themselves. No fused multiply-add and no extended registers are needed, hence the same
bits everywhere.

References
----------
.. [1] T. Ogita, S. M. Rump, S. Oishi. Accurate sum and dot product. SIAM J. Sci. Comput. 26 (2005).
"""

from __future__ import annotations

import numpy as np

from marginlab.theory.validation import Float

DoubleDouble = tuple[Float, Float]

# Veltkamp's constant 2^27 + 1 cuts the 53-bit significand in two halves of at most 26 bits.
_SPLIT = 134217729.0

# Entries of a product array that are formed at once: 8 temporaries of this size stay near 64 MiB.
CHUNK = 1 << 20


def two_sum(a: Float, b: Float) -> DoubleDouble:
    """a + b = s + e exactly (Knuth)."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def _halves(a: Float) -> DoubleDouble:
    c = _SPLIT * a
    high = c - (c - a)
    return high, a - high


def two_product(a: Float, b: Float) -> DoubleDouble:
    """a * b = p + e exactly, barring overflow and underflow (Dekker)."""
    p = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


def add(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """Sum of two double-doubles."""
    s, e = two_sum(a[0], b[0])
    return two_sum(s, e + (a[1] + b[1]))


def negate(a: DoubleDouble) -> DoubleDouble:
    return -a[0], -a[1]


def times(a: Float, b: DoubleDouble) -> DoubleDouble:
    """Product of a float64 array and a double-double, with broadcasting."""
    p, e = two_product(a, b[0])
    return two_sum(p, e + a * b[1])


def total(a: DoubleDouble, axis: int) -> DoubleDouble:
    """Sum along one axis as a tree."""
    high, low = np.moveaxis(a[0], axis, 0), np.moveaxis(a[1], axis, 0)
    if len(high) == 0:
        return np.zeros(high.shape[1:]), np.zeros(high.shape[1:])
    while len(high) > 1:
        half = len(high) // 2
        s = add((high[:half], low[:half]), (high[half : 2 * half], low[half : 2 * half]))
        if len(high) % 2:
            s = np.concatenate([s[0], high[-1:]]), np.concatenate([s[1], low[-1:]])
        high, low = s
    return high[0], low[0]


def matrix_vector(A: Float, x: DoubleDouble) -> DoubleDouble:
    """A x for an (m, k) float64 matrix and a (k,) double-double vector."""
    step = max(1, CHUNK // max(1, A.shape[1]))
    parts = [
        total(times(A[i : i + step], (x[0][None, :], x[1][None, :])), axis=1) for i in range(0, len(A), step)
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def vector_matrix(x: DoubleDouble, A: Float) -> DoubleDouble:
    """x^T A for a (m,) double-double vector and an (m, k) float64 matrix."""
    step = max(1, CHUNK // max(1, A.shape[1]))
    result = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    for i in range(0, len(A), step):
        piece = x[0][i : i + step, None], x[1][i : i + step, None]
        result = add(result, total(times(A[i : i + step], piece), axis=0))
    return result


def norm(a: DoubleDouble) -> float:
    """Euclidean norm of all entries, relative error below 2u."""
    high, low = a[0].ravel(), a[1].ravel()
    square, error = two_product(high, high)
    s = total((square, error + 2.0 * high * low), axis=0)
    return float(np.sqrt(s[0] + s[1]))
