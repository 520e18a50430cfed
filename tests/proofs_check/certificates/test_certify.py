"""Certificates against exact brute force over all supports."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import Certificate, CertificateError, certify
from marginlab.proofs_check.certificates.verify import verify
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput


class Given(NamedTuple):
    """A separator and dual weights from anywhere."""

    W: np.ndarray
    dual: np.ndarray
    norm: str = "frobenius"


SEEDS = st.integers(0, 2**32 - 1)


def exact_angle(reference, W, truth):
    """The angle between a float matrix and exact fractions, to 60 digits."""
    U = [Fraction(float(v)) for v in np.ravel(W)]
    inner, norms = reference.dot(U, truth), reference.dot(U, U) * reference.dot(truth, truth)
    sine = 1 - inner**2 / norms
    with mpmath.workdps(80):
        angle = mpmath.asin(mpmath.sqrt(mpmath.mpf(sine.numerator) / sine.denominator))
        return angle if inner > 0 else mpmath.pi - angle


def check_against(reference, Z, certificate: Certificate, truth) -> None:
    """Every attribute of a certificate holds for the exact optimum `truth`."""
    assert Fraction(certificate.margin_lower) ** 2 <= truth.margin_squared
    assert truth.margin_squared <= Fraction(certificate.margin_upper) ** 2
    rows = reference.fractions_of(Z)
    U = [Fraction(float(v)) for v in np.ravel(certificate.W)]
    margin = min(reference.dot(U, z) for z in rows)
    achieved = Fraction(certificate.achieved)
    assert achieved**2 * reference.dot(U, U) <= margin**2
    assert margin**2 >= truth.margin_squared * (1 - Fraction(certificate.gap)) ** 2 * reference.dot(U, U)
    with mpmath.workdps(80):
        assert exact_angle(reference, certificate.W, truth.W) <= mpmath.mpf(certificate.angle_bound)
    off = [Fraction(float(a)) - b for a, b in zip(np.ravel(certificate.centre), truth.W, strict=True)]
    assert reference.dot(off, off) <= Fraction(certificate.radius) ** 2
    support = tuple(certificate.active.tolist())
    if certificate.kind == "active-set":
        assert certificate.unproved is None
        assert support in truth.supports
        assert all(m > 1 for i, m in enumerate(truth.margins) if i not in support)
    if certificate.kind == "exact":
        assert certificate.margin_squared == truth.margin_squared
    verdict = verify(certificate.document)
    assert verdict.accepted, verdict.failed_inequality
    assert verdict.statement == certificate.statement
    assert certificate.gap >= 0
    assert verdict.gap is not None
    assert margin**2 >= truth.margin_squared * (1 - Fraction(verdict.gap)) ** 2 * reference.dot(U, U)
    assert verdict.gap <= certificate.gap + 1e-300 or verdict.gap == pytest.approx(certificate.gap)


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, integer=st.booleans(), N=st.integers(1, 7), D=st.integers(1, 4))
def test_encloses_the_exact_optimum(reference, seed, integer, N, D):
    Z = reference.separable(np.random.default_rng(seed), N, D, integer=integer)
    truth = reference.brute_force(reference.fractions_of(Z))
    solution = reference.nnls_solution(Z)
    certificate = certify(Z, solution)
    check_against(reference, Z, certificate, truth)
    strict = any(all(m > 1 for i, m in enumerate(truth.margins) if i not in S) for S in truth.supports)
    assert (certificate.kind == "active-set") == strict
    # refined weights: the separator of float64 entries is the only thing that is not exact to 1e-30
    relative = Fraction(certificate.claims["margin_upper"]) / Fraction(certificate.claims["margin_lower"]) - 1
    assert relative < Fraction(1, 10**20)


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, integer=st.booleans(), N=st.integers(1, 7), D=st.integers(1, 4))
def test_exact_rationals_are_the_optimum(reference, seed, integer, N, D):
    Z = reference.separable(np.random.default_rng(seed), N, D, integer=integer)
    truth = reference.brute_force(reference.fractions_of(Z))
    certificate = certify(Z, reference.nnls_solution(Z), exact=True)
    assert certificate.kind == "exact"
    check_against(reference, Z, certificate, truth)


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS, n=st.integers(1, 3), T=st.integers(2, 3), d=st.integers(1, 2))
def test_rank_one_equals_dense(reference, seed, n, T, d):
    rng = np.random.default_rng(seed)
    keys, queries = (
        rng.integers(-3, 4, size=(n * (T - 1), d)).astype(float),
        rng.integers(1, 4, size=(n, d)).astype(float),
    )
    keys[:, 0] = np.abs(keys[:, 0]) + 1
    keys[:, 1:] = np.abs(keys[:, 1:])
    constraints = RankOneConstraints(keys, queries, np.repeat(np.arange(n), T - 1))
    truth = reference.brute_force(reference.fractions_of(constraints.dense()))
    certificate = certify(constraints, reference.nnls_solution(constraints))
    assert certificate.W.shape == (d, d)
    check_against(reference, constraints.dense(), certificate, truth)


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS)
def test_rows_of_very_different_size(reference, seed):
    rng = np.random.default_rng(seed)
    Z = reference.separable(rng, 6, 3, integer=False) * 10.0 ** rng.uniform(-8, 8, size=(6, 1))
    truth = reference.brute_force(reference.fractions_of(Z))
    check_against(reference, Z, certify(Z, reference.nnls_solution(Z)), truth)


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS)
def test_bounds_hold_for_any_weights(reference, seed):
    """Nothing of a solution is believed: arbitrary weights still give bounds that hold."""
    rng = np.random.default_rng(seed)
    Z = reference.separable(rng, 6, 3, integer=False)
    truth = reference.brute_force(reference.fractions_of(Z))
    solution = reference.nnls_solution(Z)
    W = solution.W + 0.01 * rng.normal(size=3) * np.linalg.norm(solution.W)
    if (Z @ W).min() <= 0:
        W = solution.W
    certificate = certify(Z, Given(W=W, dual=rng.random(6) * (rng.random(6) < 0.6) + 1e-9))
    check_against(reference, Z, certificate, truth)


@pytest.mark.parametrize("delta", [2.0**-40, -(2.0**-40), 2.0**-52])
def test_nearly_a_tie_is_decided(reference, delta):
    Z = np.array([[1.0, 1.0], [1.0, -1.0], [1.0 + delta, 0.0]])
    truth = reference.brute_force(reference.fractions_of(Z))
    certificate = certify(Z, reference.nnls_solution(Z))
    check_against(reference, Z, certificate, truth)
    assert certificate.kind == "active-set"
    assert certificate.active.tolist() == ([0, 1] if delta > 0 else [2])


@pytest.mark.parametrize(
    "Z",
    [
        [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]],  # dependent supporting constraints
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]],  # a duplicate
        [[1.0, 0.0], [1.0, 1.0]],  # dual weight exactly 0
        [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, -1.0]],  # a square: duals not unique
    ],
)
def test_ties_fall_back_to_the_gap_and_say_why(reference, Z):
    Z = np.array(Z)
    truth = reference.brute_force(reference.fractions_of(Z))
    interior = np.full(len(Z), 1.0 / len(Z)) / float(truth.margin_squared)
    for dual in (reference.nnls_solution(Z).dual, interior):
        W = np.array([float(v) for v in truth.W])
        certificate = certify(Z, reference.as_solution(Z, W, dual))
        check_against(reference, Z, certificate, truth)
        assert certificate.kind == "gap"
        assert certificate.unproved is not None
        assert "> 1" in certificate.unproved
        assert certificate.angle_bound < 1e-15


def test_one_constraint_in_one_dimension(reference):
    certificate = certify(np.array([[4.0]]), reference.nnls_solution(np.array([[4.0]])), exact=True)
    assert (certificate.margin_lower, certificate.margin_upper) == (4.0, 4.0)
    assert certificate.margin_squared == 16
    assert certificate.angle_bound == certificate.gap == certificate.radius == 0


def test_arb_takes_over_where_float64_cannot_invert_the_gram_matrix(reference):
    """Condition number near 2**100: the support is proved, and the plain float64 test could not."""
    Z = np.eye(3) * 2.0**-25 + 1.0
    Z[0, 1] += 2.0**-30
    truth = reference.brute_force(reference.fractions_of(Z))
    gram = np.array(Z @ Z.T)
    assert np.linalg.cond(gram) > 1e14
    certificate = certify(Z, reference.nnls_solution(Z))
    check_against(reference, Z, certificate, truth)
    assert certificate.kind == "active-set"


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, exponent=st.integers(-40, 0))
def test_nearly_inseparable_data(reference, seed, exponent):
    """Margins down to 1e-12 of the rows, from the rounded optimum: its support is proved all the same."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(5, 2))
    Z[:, 0] = 2.0**exponent * (1 + rng.random(5))
    truth = reference.brute_force(reference.fractions_of(Z))
    W = np.array([float(v) for v in truth.W])
    dual = np.zeros(5)
    support = list(truth.supports[0])
    rows = [reference.fractions_of(Z)[i] for i in support]
    gram = [[reference.dot(a, b) for b in rows] for a in rows]
    dual[support] = [float(v) for v in reference.solve(gram, [Fraction(1)] * len(rows))]
    check_against(reference, Z, certify(Z, reference.as_solution(Z, W, dual)), truth)


def test_attention_problem_of_the_oracles(reference):
    from marginlab.proofs_check.separators import max_margin

    constraints = reference.attention(np.random.default_rng(1), 8, 4, 16)
    solution = max_margin(constraints)
    certificate = certify(constraints, solution)
    assert certificate.kind == "active-set"
    assert certificate.margin_lower <= certificate.margin_upper
    assert certificate.gap < 1e-12
    verdict = verify(certificate.document)
    assert verdict.accepted
    # float bounds of the oracle carry rounding of their own: a few units of the 256 unknowns
    slack = 1 + 1e3 * 2.0**-52
    assert solution.margin_lower <= certificate.margin_upper * slack
    assert certificate.margin_lower <= solution.margin_upper * slack


class TestRefusals:
    Z = np.eye(2)

    def refuse(self, error, words, *, Z=None, W=(1.0, 1.0), dual=(1.0, 1.0), **more):
        with pytest.raises(error, match=words):
            certify(
                self.Z if Z is None else Z,
                Given(W=np.array(W), dual=np.array(dual), **more),
            )

    def test_a_matrix_that_does_not_separate(self):
        self.refuse(CertificateError, r"min_i <W, z_i> > 0", W=(1.0, -1.0))

    def test_a_zero_row(self):
        self.refuse(CertificateError, "margin of constraint 1 > 0", Z=[[1.0, 0.0], [0.0, 0.0]])

    def test_no_dual_weight(self):
        self.refuse(CertificateError, "all zero", dual=(0.0, 0.0))

    def test_a_negative_dual_weight(self):
        self.refuse(InvalidInput, "-1.0 for constraint 1", dual=(1.0, -1.0))

    def test_another_norm(self):
        self.refuse(InvalidInput, "nuclear", norm="nuclear")

    def test_shapes(self):
        self.refuse(InvalidInput, r"solution.W must have shape \(2\)", W=(1.0,))
        self.refuse(InvalidInput, r"solution.dual must have shape \(2\)", dual=(1.0,))

    def test_not_finite(self):
        self.refuse(InvalidInput, "finite", Z=[[1.0, np.nan], [0.0, 1.0]])
        self.refuse(InvalidInput, "finite", W=(1.0, np.inf))

    def test_nothing_to_separate(self):
        self.refuse(InvalidInput, "at least one constraint", Z=np.zeros((0, 2)))

    def test_exact_must_be_a_flag(self):
        with pytest.raises(InvalidInput, match="exact must be True or False"):
            certify(self.Z, Given(W=np.ones(2), dual=np.ones(2)), exact=1)  # type: ignore[arg-type]

    def test_inseparable_data_with_exact_says_so(self):
        self.refuse(CertificateError, "margin", Z=[[1.0, 0.0], [-1.0, 0.0]])
        with pytest.raises(CertificateError, match="combine to exactly zero"):
            certify(np.array([[1.0], [-1.0]]), Given(W=np.ones(1), dual=np.ones(2)), exact=True)
