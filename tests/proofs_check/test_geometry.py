"""A1-A4 of a problem against linear programs and integer arithmetic, and on instances known by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from marginlab.proofs_check.certificates import Certificate
from marginlab.proofs_check.claims.match_copy.rational import (
    constraint_vectors,
    drawn_samples,
    dyadic_integers,
    error_vectors,
    exact_rank,
    squared_error_derivatives,
    unit_matrices,
)
from marginlab.proofs_check.engine.claim import Status
from marginlab.proofs_check.geometry import check_geometry
from marginlab.proofs_check.separators import NonSeparability
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy.gradient import gradient

seeds = st.integers(0, 2**32)


def integer_problem(seed: int) -> Problem:
    """Small integers, among which ties and dependences are common."""
    rng = np.random.default_rng(seed)
    n, K, d = (int(x) for x in (rng.integers(1, 4), rng.integers(2, 5), rng.integers(1, 4)))
    keys, values = rng.integers(-2, 3, (2, n, K, d)).astype(float)
    return Problem(keys, rng.integers(-2, 3, (n, d)).astype(float), values, rng.integers(K, size=n))


def feasible(problem: Problem) -> bool:
    rows = problem.constraints().dense()
    return linprog(np.zeros(rows.shape[1]), A_ub=-rows, b_ub=-np.ones(len(rows)), bounds=(None, None)).success


def in_hull(points: np.ndarray) -> bool:
    system = np.vstack([points.T, np.ones(len(points))])
    return linprog(np.zeros(len(points)), A_eq=system, b_eq=np.r_[np.zeros(points.shape[1]), 1.0]).success


@settings(deadline=None, max_examples=120)
@given(seeds)
def test_conditions_against_linear_programs_and_integers(seed):
    problem = integer_problem(seed)
    report = check_geometry(problem)
    n, K, _, d_v = problem.shape
    errors = problem.values[problem.rivals].reshape(n, K - 1, d_v) - problem.targets[:, None]
    assert report.separability.status is (Status.HOLDS if feasible(problem) else Status.FAILS)
    assert (report.identifiability.status is Status.HOLDS) == (not any(in_hull(e) for e in errors))
    products = np.einsum("itj,isj->its", errors, errors)  # integers: exact
    # A zero whose terms cancel is within their rounding, and so undecided; any other integer is not.
    expected = {1: (Status.HOLDS,), 0: (Status.FAILS, Status.UNDECIDED), -1: (Status.FAILS,)}
    assert report.half_space.status in expected[int(np.sign(products.min()))]
    assert report.half_space.value == products.min()
    assert products[report.half_space.where] == products.min()
    if report.independence.status is Status.HOLDS:
        assert isinstance(report.certificate, Certificate)
        rows = problem.constraints().dense()[report.certificate.active]
        assert np.linalg.matrix_rank(rows) == len(rows) == report.independence.value


def test_the_witness_of_no_separator_combines_the_constraints_to_zero():
    keys = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]])
    problem = Problem(keys, np.array([[1.0, 0.0], [1.0, 0.0]]), keys, np.array([0, 0]))
    report = check_geometry(problem)
    assert report.separability.status is Status.FAILS
    assert report.independence.status is Status.UNDECIDED
    assert isinstance(report.certificate, NonSeparability)
    combined = report.certificate.weights @ problem.constraints().dense()
    assert (
        np.abs(combined).max() <= report.certificate.residual + 1e-15
    )  # two products and a sum of order one
    assert not report.holds


def test_a_zero_multiplier_leaves_a2_undecided_or_held_by_the_rest():
    # Vectors (1, 0) and (1, 1): both support, and the second has multiplier zero.
    keys = np.array([[[0.0, 0.0], [-1.0, 0.0], [-1.0, -1.0]]])
    values = np.array([[[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]])
    report = check_geometry(Problem(keys, np.array([[1.0, 0.0]]), values, np.array([0])))
    assert report.separability.status is Status.HOLDS
    assert report.half_space.value == 1.0
    assert report.independence.status in (Status.UNDECIDED, Status.HOLDS)


def test_all_four_on_an_orthant():
    keys = np.array([[[0.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]])
    values = np.array([[[0.0, 0.0, 0.0], [2.0, 1.0, 0.0], [1.0, 2.0, 0.0]]])
    report = check_geometry(Problem(keys, np.array([[0.0, 0.0, 3.0]]), values, np.array([0])))
    assert report.holds
    assert report.half_space.value == 4.0
    assert report.identifiability.value == pytest.approx(np.sqrt(4.5), abs=1e-13)
    assert report.independence.value == 2.0
    # Two orthogonal vectors of length 3: the largest margin is 3 / sqrt 2.
    assert report.separability.value == pytest.approx(3 / np.sqrt(2), abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 5), st.integers(1, 5))
def test_exact_rank_against_symbolic_elimination(seed, rows, columns):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, 2, (rows, columns)) * 2.0 ** rng.integers(-40, 40)
    assert (
        exact_rank(dyadic_integers(matrix))
        == sympy.Matrix(matrix.astype(object)).applyfunc(sympy.Rational).rank()
    )


def test_exact_rank_sees_what_float64_does_not():
    tiny = 2.0**-52
    assert exact_rank(dyadic_integers(np.array([[1.0, 1.0], [1.0, 1.0 + tiny]]))) == 2
    assert exact_rank(dyadic_integers(np.array([[1e300, 1e-300], [2e300, 2e-300]]))) == 1


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_exact_vectors_are_proportional_to_the_problems_own(seed):
    problem = integer_problem(seed)
    problem = Problem(problem.keys / 8, problem.queries / 4, problem.values / 2, problem.match)
    vectors = constraint_vectors(problem).astype(float)
    dense = problem.constraints().dense()
    scale = np.abs(vectors).max() / np.abs(dense).max() if dense.any() else 1.0
    assert np.array_equal(vectors, scale * dense)
    errors = error_vectors(problem).astype(float)
    own = problem.values[problem.rivals].reshape(errors.shape) - problem.targets[:, None]
    scale = np.abs(errors).max() / np.abs(own).max() if own.any() else 1.0
    assert np.array_equal(errors, scale * own)


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_differentiated_loss_against_the_gradient_of_theory(seed):
    """W is chosen to give the sample's weights: its logits are their logarithms up to rounding."""
    (sample,) = drawn_samples(np.random.SeedSequence(seed), n=1, K=4, d=5)
    keys, query = np.array(sample.keys, float), np.array(sample.query, float)
    if np.linalg.matrix_rank(keys) < 4 or not query.any():
        return
    logits = np.log(np.array(sample.weights, float))
    W = np.outer(np.linalg.pinv(keys) @ logits, query) / (query @ query)
    problem = Problem(keys[None], query[None], np.array([sample.values], float), np.array([sample.match]))
    exact = [float(squared_error_derivatives(sample, sample.logit_changes(U))[0]) for U in unit_matrices(5)]
    found = gradient(problem, W)
    # The pseudo-inverse amplifies rounding by its condition number, squared to be safe, in d = 5 dimensions.
    allowed = 100 * np.finfo(float).eps * np.linalg.cond(keys) ** 2 * max(1.0, np.abs(exact).max())
    assert np.abs(found.ravel() - exact).max() <= allowed
    assert isinstance(squared_error_derivatives(sample, [Fraction(1)] * 4)[0], Fraction)
    assert squared_error_derivatives(sample, [Fraction(1)] * 4) == (0, 0)  # logits matter by differences only
