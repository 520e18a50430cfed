"""Double-double sums against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import double_double as dd
from marginlab.proofs_check.separators.scaled import scaled_problem
from marginlab.theory.constraints import RankOneConstraints

SEEDS = st.integers(0, 2**32 - 1)
U = Fraction(1, 2**53)


def exact(a: dd.DoubleDouble) -> list[Fraction]:
    return [Fraction(float(h)) + Fraction(float(e)) for h, e in zip(a[0].ravel(), a[1].ravel(), strict=True)]


def cancelling(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Entries over ten decades, so that float64 sums lose most of their digits."""
    return rng.standard_normal(shape) * 10.0 ** rng.uniform(-5, 5, shape)


@given(seed=SEEDS)
@settings(deadline=None, max_examples=50)
def test_sum_and_product_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = cancelling(rng, (20,)), cancelling(rng, (20,))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert exact(dd.two_sum(a, b)) == [Fraction(x) + Fraction(y) for x, y in pairs]
    assert exact(dd.two_product(a, b)) == [Fraction(x) * Fraction(y) for x, y in pairs]


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_products_with_a_matrix_keep_twice_the_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(1, 9)), int(rng.integers(1, 40))
    A, x, v = cancelling(rng, (m, k)), cancelling(rng, (k,)), cancelling(rng, (m,))
    low = x * 2.0**-54 * rng.uniform(-1, 1, k)
    rows = [[Fraction(t) for t in row] for row in A.tolist()]
    pair = [Fraction(a) + Fraction(b) for a, b in zip(x.tolist(), low.tolist(), strict=True)]
    for row, got in zip(rows, exact(dd.matrix_vector(A, (x, low))), strict=True):
        terms = [a * b for a, b in zip(row, pair, strict=True)]
        # A product errs by 4 u^2 of itself, each of log2(k) + 1 levels of the tree by 4 u^2 of its terms.
        assert abs(got - sum(terms)) <= 4 * (k.bit_length() + 2) * U**2 * sum(map(abs, terms))
    weights = [Fraction(t) for t in v.tolist()]
    for column, got in zip(zip(*rows, strict=True), exact(dd.vector_matrix((v, 0 * v), A)), strict=True):
        terms = [a * b for a, b in zip(weights, column, strict=True)]
        assert abs(got - sum(terms)) <= 4 * (m.bit_length() + 2) * U**2 * sum(map(abs, terms))


@given(seed=SEEDS)
@settings(deadline=None, max_examples=40)
def test_rank_one_products_agree_with_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    N, n, d_k, d_q = (int(v) for v in rng.integers(1, 6, 4))
    constraints = RankOneConstraints(
        cancelling(rng, (N, d_k)), cancelling(rng, (n, d_q)), rng.integers(0, n, N)
    )
    problem = scaled_problem(constraints)
    W, y, rows = cancelling(rng, (d_k, d_q)), cancelling(rng, (N,)), np.arange(N)
    # Row i of the scaled problem is beta_i scale z_i with both factors powers of two: exact.
    powers = [Fraction(b) * Fraction(problem.scale) for b in problem.beta.tolist()]
    vectors = [
        [Fraction(a) * Fraction(b) * c for a in key for b in constraints.queries[s].tolist()]
        for key, s, c in zip(constraints.key_diffs.tolist(), constraints.sample, powers, strict=True)
    ]
    flat = [Fraction(t) for t in W.ravel().tolist()]
    for vector, got in zip(vectors, exact(problem.margins_dd((W, 0 * W), rows)), strict=True):
        terms = [a * b for a, b in zip(flat, vector, strict=True)]
        assert abs(got - sum(terms)) <= 32 * U**2 * sum(map(abs, terms))
    weights = [Fraction(t) for t in y.tolist()]
    for column, got in zip(
        zip(*vectors, strict=True), exact(problem.combine_dd((y, 0 * y), rows)), strict=True
    ):
        terms = [a * b for a, b in zip(weights, column, strict=True)]
        assert abs(got - sum(terms)) <= 32 * U**2 * sum(map(abs, terms))


def test_norm_sees_the_low_part() -> None:
    assert dd.norm((np.array([3.0, 4.0]), np.zeros(2))) == 5.0
    # (1, 2^-60) and (1 + 2^-60, 0) have norms that differ below u, and 1 + 2^-52 does not.
    assert dd.norm((np.array([1.0]), np.array([2.0**-53]))) in (1.0, 1.0 + 2.0**-52)
    assert dd.norm((np.zeros(3), np.zeros(3))) == 0.0
