"""How often Gaussian data violate the half-space condition (A4): exactly for one pair, and bounds for a whole draw."""

from __future__ import annotations

from math import comb, expm1, log, log1p

from scipy.special import betainc

from marginlab.theory.validation import count

#: c_1 and c_2 of P(A4 fails) <= c_1 n T^2 exp(-c_2 d), Proposition G.2 (3): (3/4)^(d/2) for each pair, and fewer
#: than T^2 / 2 pairs a sample.
UNION_FACTOR, UNION_RATE = 0.5, 0.5 * log(4 / 3)


def pair_violation_probability(d: int) -> float:
    r"""P(<d_s, d_t> <= 0) for two error directions of one sample of Gaussian tokens in dimension d.

    .. math:: P = P(F_{d,d} \le 1/3) = I_{1/4}(d/2, d/2)

    with I the regularised incomplete beta function; whatever the scale of the tokens.

    Parameters
    ----------
    d : int
        Dimension of the values, at least 1.

    Raises
    ------
    InvalidInput
        `d` is no positive integer.

    Notes
    -----
    The coordinates of x = d_s and y = d_t are Gaussian with correlation 1/2, since both hold the matched value. As
    4 <x, y> = ||x + y||^2 - ||x - y||^2 with independent terms of variances 3 : 1 a coordinate, the product is at
    most 0 exactly where their quotient, 3 F with F of the F distribution with (d, d) degrees, is at most 1.
    """
    half = count(d, "d") / 2
    return float(betainc(half, half, 0.25))


def pair_violation_bound(d: int) -> float:
    """Chernoff's bound (3/4)^(d/2) of `pair_violation_probability`, from E exp(-<x, y> / 3) at unit variance.

    Raises
    ------
    InvalidInput
        `d` is no positive integer.
    """
    return 0.75 ** (count(d, "d") / 2)


def halfspace_violation_bound(n: int, T: int, d: int) -> float:
    """Union bound n C(T - 2, 2) I_{1/4}(d/2, d/2) of the probability that a draw of n samples violates A4.

    A sample has T - 2 error directions; a product of one with itself is positive almost surely.

    Parameters
    ----------
    n : int
        Number of samples, at least 1.
    T : int
        Context length, at least 3.
    d : int
        Dimension of the values, at least 1.

    Raises
    ------
    InvalidInput
        A number that is no integer, or below its least value.
    """
    return count(n, "n") * comb(count(T, "T", least=3) - 2, 2) * pair_violation_probability(d)


def halfspace_violation_probability(n: int, d: int) -> float:
    """1 - (1 - p)^n: the exact probability that a draw with T = 4, one pair a sample, violates A4.

    Raises
    ------
    InvalidInput
        A number that is no positive integer.
    """
    return -expm1(count(n, "n") * log1p(-pair_violation_probability(d)))
