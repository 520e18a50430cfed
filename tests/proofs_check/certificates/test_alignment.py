"""Enclosures of the cosine against mpmath at 80 digits and exact optima."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import alignment, certify
from marginlab.proofs_check.certificates.problem import gamma
from marginlab.theory.errors import InvalidInput


class Pointer(NamedTuple):
    """A direction with a claimed bound of its angle to the true one."""

    W: np.ndarray
    angle_bound: float
    norm: str = "frobenius"


SEEDS = st.integers(0, 2**32 - 1)


def one_minus_cosine(U, W):
    """1 - cos of two vectors of floats or fractions, to 80 digits."""
    with mpmath.workdps(120):
        u = [mpmath.mpf(Fraction(v).numerator) / Fraction(v).denominator for v in U]
        w = [mpmath.mpf(Fraction(v).numerator) / Fraction(v).denominator for v in W]
        norms = mpmath.sqrt(mpmath.fdot(u, u) * mpmath.fdot(w, w))
        return max(mpmath.mpf(0), 1 - mpmath.fdot(u, w) / norms)  # rounding may leave -1e-121


def contains(enclosure, truth, index=()) -> bool:
    with mpmath.workdps(120):
        inside = mpmath.mpf(float(enclosure.one_minus_lower[index])) <= truth
        inside &= truth <= mpmath.mpf(float(enclosure.one_minus_upper[index]))
        inside &= mpmath.mpf(float(enclosure.lower[index])) <= 1 - truth
        return bool(inside & (1 - truth <= mpmath.mpf(float(enclosure.upper[index]))))


@settings(deadline=None, max_examples=80)
@given(seed=SEEDS, size=st.integers(1, 40), closeness=st.integers(0, 60), power=st.integers(-300, 300))
def test_encloses_the_cosine_to_the_given_matrix(seed, size, closeness, power):
    """With angle bound 0 the only error is rounding; any scale, any closeness, either sign."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=size)
    U = (W + 2.0**-closeness * rng.normal(size=size)) * 10.0**power
    both = alignment(np.array([U, -U]), Pointer(W=W, angle_bound=0.0))
    truth = one_minus_cosine(map(float, U), map(float, W))
    assert contains(both, truth, 0)
    assert contains(both, 2 - truth, 1)
    # the chord h is known to 2 g + g h, g = gamma_{n+8}, so h^2 / 2 has width 4 g h + 2 g h^2; the roundings that
    # follow add 24 u h^2 < 3 g h^2; and h <= 2
    chord, unit = np.sqrt(2 * float(truth)), gamma(size + 8)
    assert both.one_minus_upper[0] - both.one_minus_lower[0] <= 16 * unit * (chord + unit)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, closeness=st.integers(0, 40), N=st.integers(1, 6), D=st.integers(1, 3))
def test_encloses_the_cosine_to_the_exact_separator(reference, seed, closeness, N, D):
    rng = np.random.default_rng(seed)
    Z = reference.separable(rng, N, D, integer=False)
    truth = reference.brute_force(reference.fractions_of(Z))
    solution = reference.nnls_solution(Z)
    U = solution.W + 2.0**-closeness * rng.normal(size=(3, 2, D))
    certificate = certify(Z, solution)
    enclosure = alignment(U, certificate)
    assert enclosure.lower.shape == (3, 2)
    for index in np.ndindex(3, 2):
        assert contains(enclosure, one_minus_cosine(map(float, U[index]), truth.W), index)


def test_the_angle_bound_of_a_poor_separator_widens_the_enclosure(reference):
    """A separator that is off by 0.1 rad, and says so, still encloses the cosine to the exact one."""
    truth = np.array([1.0, 0.0])
    W = np.array([np.cos(0.1), np.sin(0.1)])
    for angle in (0.0, 0.05, 0.1, 2.0, 3.1):
        U = np.array([np.cos(angle), np.sin(angle)])
        honest = alignment(U, Pointer(W=W, angle_bound=0.1001))
        assert contains(honest, one_minus_cosine(map(float, U), map(float, truth)))
        assert not contains(
            alignment(U, Pointer(W=W, angle_bound=0.0)),
            one_minus_cosine(map(float, U), map(float, truth)),
        ) or angle == pytest.approx(0.05)


def test_a_difference_of_1e_12_is_resolved(reference):
    """1 - cos = 1e-12 in 1024 dimensions, where 1 - (u . v) in float64 has three digits left."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(32, 32))
    side = rng.normal(size=(32, 32))
    side -= (side * W).sum() / (W * W).sum() * W
    U = W / np.linalg.norm(W) + np.sqrt(2e-12) * side / np.linalg.norm(side)
    enclosure = alignment(U, Pointer(W=W, angle_bound=1e-15))
    assert contains(enclosure, one_minus_cosine(map(float, U.ravel()), map(float, W.ravel())))
    width = enclosure.one_minus_upper - enclosure.one_minus_lower
    assert width < 1e-6 * enclosure.one_minus_lower


def test_subnormal_and_huge_entries():
    W = np.array([3e-320, 4e-320])
    enclosure = alignment(np.array([3e300, 4e300]), Pointer(W=W, angle_bound=0.0))
    assert contains(enclosure, one_minus_cosine([3e300, 4e300], map(float, W)))
    assert enclosure.one_minus_upper < 1e-6  # 3e-320 has 13 bits


def test_zero_has_no_direction():
    enclosure = alignment(np.zeros((2, 3)), Pointer(W=np.ones(3), angle_bound=0.0))
    assert enclosure.lower.tolist() == [-1.0, -1.0]
    assert enclosure.upper.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("W", "solution", "words"),
    [
        (np.ones(2), Pointer(W=np.ones(3), angle_bound=0.0), r"shape \(\.\.\., 3\)"),
        (np.ones((3, 2)), Pointer(W=np.ones((2, 3)), angle_bound=0.0), r"shape \(\.\.\., 2, 3\)"),
        (np.ones(3), Pointer(W=np.zeros(3), angle_bound=0.0), "must not be zero"),
        (np.ones(3), Pointer(W=np.ones(3), angle_bound=np.nan), "angle bound must be >= 0"),
        (np.full(3, np.nan), Pointer(W=np.ones(3), angle_bound=0.0), "W must be finite"),
        (np.ones(3), Pointer(W=np.ones(3), angle_bound=0.0, norm="nuclear"), "nuclear"),
    ],
)
def test_refusals(W, solution, words):
    with pytest.raises(InvalidInput, match=words):
        alignment(W, solution)


def test_takes_an_oracles_answer(reference):
    Z = reference.separable(np.random.default_rng(3), 20, 4, integer=False)
    solution = reference.nnls_solution(Z)
    loose, tight = alignment(solution.W, solution), alignment(solution.W, certify(Z, solution))
    assert tight.one_minus_upper <= loose.one_minus_upper
    assert tight.lower <= 1.0 == tight.upper
