"""The two enclosures of the Gram system against exact elimination."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates.problem import gamma, scaled_problem
from marginlab.proofs_check.certificates.rows import IntegerRows
from marginlab.proofs_check.certificates.support import _arb_solutions, solution_radius
from marginlab.theory.constraints import RankOneConstraints

SEEDS = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, k=st.integers(1, 6), condition=st.integers(0, 50))
def test_radius_contains_the_exact_solution(reference, seed, k, condition):
    """Whenever it says something, for Gram matrices up to singular; the given point may be anywhere."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(k, k + 1))
    rows[-1] = rows[0] * (k > 1) + 2.0 ** -float(condition) * rows[-1]
    exact = reference.fractions_of(rows)
    true = [[reference.dot(a, b) for b in exact] for a in exact]
    gram = rows @ rows.T
    point = rng.normal(size=k)
    left = [1 - reference.dot(row, [Fraction(float(p)) for p in point]) for row in true]
    residual = np.array([abs(float(v)) for v in left]) * (1 + 1e-12)
    try:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    except np.linalg.LinAlgError:
        return
    radius = solution_radius(
        gram, gamma(k + 5), np.linalg.norm(rows, axis=1) * (1 + 1e-12), inverse, residual
    )
    if radius is None:
        assert condition > 10, "well-conditioned systems are decided"
        return
    solution = reference.solve(true, [Fraction(1)] * k)
    assert solution is not None
    for p, centre, y in zip(solution, point, radius, strict=True):
        assert abs(p - Fraction(float(centre))) <= Fraction(float(y))


@pytest.mark.parametrize("k", [2, 3, 8])
def test_a_singular_matrix_is_never_proved_regular(k):
    rng = np.random.default_rng(k)
    rows = rng.integers(-4, 5, size=(k, 3)).astype(float)
    rows[-1] = rows[0]  # exactly dependent
    gram = rows @ rows.T
    inverse = np.linalg.pinv(gram) + rng.normal(size=(k, k))
    for matrix in (inverse, 1e16 * inverse, np.asarray(np.linalg.inv(gram + 1e-13 * np.eye(k)), float)):
        assert solution_radius(gram, gamma(8), np.linalg.norm(rows, axis=1) + 1, matrix, np.ones(k)) is None


def test_a_gram_matrix_that_is_singular_but_for_its_rounding_is_never_proved_regular():
    """c = a + b exactly, with 30-bit entries: the float Gram matrix is regular, its inverse of size 1e16."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        a, b = np.ldexp(rng.integers(2**29, 2**30, size=(2, 4)).astype(float), -30)
        problem = scaled_problem(np.array([a, b, a + b]))
        rows = np.arange(3)
        gram, error = problem.gram(rows)
        try:
            inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        except np.linalg.LinAlgError:
            continue
        assert solution_radius(gram, error, problem.norms, inverse, np.ones(3)) is None, seed


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, k=st.integers(1, 5), power=st.integers(0, 60))
def test_balls_contain_the_exact_solution(reference, seed, k, power):
    rng = np.random.default_rng(seed)
    rows = np.ones((k, k)) + 2.0**-power * rng.integers(-100, 101, size=(k, k))
    problem = scaled_problem(rows)
    exact = reference.fractions_of(problem.keys)
    solution = reference.solve(
        [[reference.dot(a, b) for b in exact] for a in exact], [Fraction(2) ** int(b) for b in problem.bits]
    )
    found = next(_arb_solutions(problem.integer_rows(np.arange(k)), problem.bits), None)
    assert (found is None) == (solution is None)
    if found is None or solution is None:
        return
    _, values, exponent, radius = found
    for p, value, y in zip(solution, values, radius, strict=True):
        assert abs(p - int(value) * Fraction(2) ** exponent) <= Fraction(float(y))
        assert Fraction(float(y)) <= abs(p) / 2**20


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, N=st.integers(1, 6), n=st.integers(1, 3), d=st.integers(1, 3))
def test_integer_rows_are_exact(reference, seed, N, n, d):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-5, 5, size=(N, 1))
    constraints = RankOneConstraints(
        scale * rng.normal(size=(N, d)), rng.normal(size=(n, d + 1)), rng.integers(n, size=N)
    )
    problem = scaled_problem(constraints)
    rows: IntegerRows = problem.integer_rows(np.arange(N))
    dense = [
        [
            Fraction(float(a)) * Fraction(float(b))
            for a in problem.keys[i]
            for b in problem.queries[problem.sample[i]]
        ]
        for i in range(N)
    ]
    unscaled = [
        [
            Fraction(float(a)) * Fraction(float(b))
            for a in constraints.key_diffs[i]
            for b in constraints.queries[constraints.sample[i]]
        ]
        for i in range(N)
    ]
    for i in range(N):
        factor = Fraction(2) ** int(problem.shift - problem.bits[i])
        assert [factor * v for v in dense[i]] == unscaled[i]
    weights = np.array([int(w) for w in rng.integers(0, 2**60, size=N)], dtype=object)
    V = rows.combine(weights, -60)
    W = [
        sum((Fraction(int(w), 2**60) * z[c] for w, z in zip(weights, dense, strict=True)), Fraction(0))
        for c in range(len(dense[0]))
    ]
    unit = Fraction(2) ** V.exponent
    assert [int(v) * unit for v in V.matrix.entries()] == W
    assert V.norm_squared() == reference.dot(W, W)
    values, exponent = rows.margins(V)
    margins = [reference.dot(W, z) for z in dense]
    assert [int(v) * Fraction(2) ** exponent for v in values] == margins
    gram = rows.gram()
    for i in range(N):
        for j in range(N):
            assert gram[i][j] * Fraction(4) ** rows.exponent == reference.dot(dense[i], dense[j])
    low, high = problem.margin_bounds(V)
    assert all(
        Fraction(float(a)) <= m <= Fraction(float(b)) for a, m, b in zip(low, margins, high, strict=True)
    )
    assert problem.smallest_margin(V) == min(
        m / Fraction(2) ** int(b) for m, b in zip(margins, problem.bits, strict=True)
    )
    gram_float, error = problem.gram(np.arange(N))
    norms = problem.norms
    for i in range(N):
        assert reference.dot(dense[i], dense[i]) <= Fraction(float(norms[i])) ** 2
        for j in range(N):
            off = abs(Fraction(float(gram_float[i, j])) - reference.dot(dense[i], dense[j]))
            assert off <= Fraction(error) * Fraction(float(norms[i])) * Fraction(float(norms[j]))
