"""Sizes at the ends of float64 and beyond: a certificate that the checker accepts, or one clear sentence."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import CertificateError, certify, certify_non_separable
from marginlab.proofs_check.certificates.verify import verify
from marginlab.theory.constraints import RankOneConstraints

SEEDS = st.integers(0, 2**32 - 1)


class Given(NamedTuple):
    """A separator and dual weights from anywhere."""

    W: np.ndarray
    dual: np.ndarray


def checked(certificate):
    """The certificate, once the checker has accepted its document."""
    verdict = verify(certificate.document)
    assert verdict.accepted, verdict.failed_inequality
    return certificate


@pytest.mark.parametrize("rows", [16, 40])
def test_exact_optimum_whose_integers_exceed_the_float_range(reference, rows):
    """The Gram determinant of 16 rows of 53-bit entries has some 1600 bits; float() of it overflows."""
    Z = np.random.default_rng(rows).normal(size=(rows, 2 * rows))
    solution = reference.nnls_solution(Z)
    certificate = checked(certify(Z, solution, exact=True))
    assert certificate.kind == "exact"
    # an independent route: exact elimination on the support alone, whose other margins the checker has seen
    exact = [reference.fractions_of(Z)[i] for i in certificate.active]
    if rows == 16:  # Gauss-Jordan in fractions is slow beyond
        p = reference.solve([[reference.dot(a, b) for b in exact] for a in exact], [Fraction(1)] * len(exact))
        assert p is not None
        assert min(p) > 0
        assert certificate.margin_squared == 1 / sum(p)
        W = [sum(q * z[c] for q, z in zip(p, exact, strict=True)) for c in range(2 * rows)]
        off = [Fraction(float(a)) - b for a, b in zip(certificate.centre, W, strict=True)]
        assert reference.dot(off, off) <= Fraction(certificate.radius) ** 2
    assert certificate.angle_bound < 1e-14  # W is the solution in float64


def test_exact_optimum_of_integer_rows_with_many_supports(reference):
    rng = np.random.default_rng(3)
    Z = rng.integers(-9, 10, size=(120, 160)).astype(float)
    certificate = checked(certify(Z, reference.nnls_solution(Z), exact=True))
    assert certificate.kind == "exact"
    assert len(certificate.active) > 80


def test_a_separator_whose_angle_is_a_right_one_to_float64():
    """cos = 1e-40: the sine is 1 to 2**-265, and 256 bits of Arb would round it beyond 1."""
    certificate = checked(certify(np.array([[0.0, 1.0]]), Given(W=np.array([1.0, 1e-40]), dual=np.ones(1))))
    assert np.pi / 2 * (1 - 1e-15) < certificate.angle_bound <= np.pi / 2 * (1 + 1e-15)
    assert certificate.margin_lower == certificate.margin_upper == 1.0


LARGE = RankOneConstraints(np.array([[1e200]]), np.array([[1e200]]), np.array([0]))
SMALL = RankOneConstraints(np.array([[1e-200]]), np.array([[1e-200]]), np.array([0]))


@pytest.mark.parametrize(
    ("constraints", "W", "dual"),
    [
        ([[1e100, 0.0]], [1e250, 0.0], [1.0]),
        ([[1e-300, 0.0]], [1.0, 0.0], [1.0]),
        ([[1e-300, 0.0]], [1e-320, 0.0], [5e-324]),
        ([[1e300, 1.0], [1e-300, 0.0]], [1.0, 0.0], [1.0, 1e300]),
        (LARGE, [[1.0]], [1.0]),
        (LARGE, [[1e300]], [1e-320]),
        ([[1.7e308, 1.7e308]], [1.0, 1.0], [1.0]),
    ],
    ids=range(7),
)
def test_sizes_far_from_one(constraints, W, dual):
    constraints = constraints if isinstance(constraints, RankOneConstraints) else np.array(constraints)
    certificate = checked(certify(constraints, Given(W=np.array(W), dual=np.array(dual))))
    assert certificate.kind == "active-set"
    assert 0 < certificate.margin_lower <= certificate.margin_upper


@pytest.mark.parametrize(
    ("constraints", "W", "words"),
    [
        ([[1e200, 0.0]], [-1e200, 0.0], "smallest margin of W is -9.99999e399"),
        ([[5e-324, 0.0]], [1.0, 0.0], r"within the range of float64, its norm is 2.02\d+e323"),
        (SMALL, [[1.0]], r"within the range of float64, its norm is 1.0\d+e400"),
    ],
    ids=range(3),
)
def test_what_float64_cannot_hold_is_said_in_one_sentence(constraints, W, words):
    constraints = constraints if isinstance(constraints, RankOneConstraints) else np.array(constraints)
    with pytest.raises(CertificateError, match=words):
        certify(constraints, Given(W=np.array(W), dual=np.ones(1)))


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, rank_one=st.booleans())
def test_nothing_else_is_ever_raised(reference, seed, rank_one):
    """Rows, separators and weights of sizes 2**-1000 to 2**1000, right up to a positive factor or not at all."""
    rng = np.random.default_rng(seed)
    Z = reference.separable(rng, 4, 3, integer=False)
    solution = reference.nnls_solution(Z)
    rows = np.ldexp(
        1.0, rng.integers(-1000, 1001, size=4) if rng.random() < 0.5 else rng.integers(-1000, 1001)
    )
    Z = Z * np.reshape(np.broadcast_to(rows, 4), (4, 1))
    W = np.ldexp(solution.W, int(rng.integers(-1000, 1000)))
    dual = np.ldexp(solution.dual, rng.integers(-1000, 1000, size=4) * (rng.random() < 0.5))
    constraints = RankOneConstraints(
        Z, np.ldexp(np.ones((1, 1)), int(rng.integers(-1000, 1000))), np.zeros(4, int)
    )
    for exact in (False, True):
        with contextlib.suppress(CertificateError):  # the only exception that is allowed
            if rank_one:
                checked(certify(constraints, Given(W=W[:, None], dual=dual), exact=exact))
            else:
                checked(certify(Z, Given(W=W, dual=dual), exact=exact))
    with contextlib.suppress(CertificateError):
        checked(certify_non_separable(constraints if rank_one else Z, np.maximum(dual, 5e-324)))


def test_non_separability_of_tiny_rows():
    certificate = checked(certify_non_separable(np.array([[1e-300, 1e-310]]), np.ones(1)))
    assert certificate.kind == "norm-bound"
    assert certificate.margin_upper == pytest.approx(1e-300, rel=1e-15)
    certificate = checked(certify_non_separable(np.array([[1e300], [-1e-300]]), np.ones(2)))
    assert certificate.kind == "not-separable"


def test_a_certificate_keeps_its_own_copy_of_the_data(reference):
    """What it says must not change with the caller's arrays, nor they with it."""
    Z = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.5]])
    queries = np.array([[1.0, 2.0], [2.0, 1.0]])
    pair = RankOneConstraints(np.ones((2, 1)), queries, np.arange(2))
    dense, factored = certify(Z, reference.nnls_solution(Z)), certify(pair, reference.nnls_solution(pair))
    nothing = np.array([[1.0], [-1.0]])
    none = certify_non_separable(nothing, np.ones(2))
    nothing *= 0.5
    Z *= 0.5
    queries *= 0.5
    for certificate, wanted in ((dense, [[1.0, 2.0], [2.0, 1.0], [3.0, 3.5]]), (none, [[1.0], [-1.0]])):
        assert isinstance(certificate.constraints, np.ndarray)
        assert certificate.constraints.tolist() == wanted
        assert not certificate.constraints.flags.writeable
        checked(certificate)
    checked(factored)
    assert isinstance(factored.constraints, RankOneConstraints)
    assert factored.constraints.queries.tolist() == [[1.0, 2.0], [2.0, 1.0]]
    assert not factored.constraints.key_diffs.flags.writeable
