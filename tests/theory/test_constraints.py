"""Rank-one constraints against the vectors that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput

SEEDS = st.integers(0, 2**32 - 1)


def rank_one(keys: Any, queries: Any, sample: Any) -> RankOneConstraints:
    """Constraints from anything array-like, as users pass it."""
    return RankOneConstraints(keys, queries, sample)


def integer_constraints(rng: np.random.Generator) -> tuple[RankOneConstraints, np.ndarray]:
    """Small integers, so that every product and sum is exact, and the vectors formed one by one."""
    N, n, d_k, d_q = rng.integers(1, 9), rng.integers(1, 5), rng.integers(1, 5), rng.integers(1, 5)
    keys = rng.integers(-9, 10, (N, d_k))
    queries = rng.integers(-9, 10, (n, d_q))
    sample = rng.integers(0, n, N)
    vectors = np.array([np.kron(keys[i], queries[sample[i]]) for i in range(N)], dtype=float)
    return rank_one(keys, queries, sample), vectors


@given(seed=SEEDS)
@settings(deadline=None)
def test_every_product_is_that_of_the_vectors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraints, vectors = integer_constraints(rng)
    W = rng.integers(-9, 10, constraints.shape).astype(float)
    weights = rng.integers(-9, 10, len(constraints)).astype(float)
    assert np.array_equal(constraints.dense(), vectors)
    assert np.array_equal(constraints.margins(W), vectors @ W.ravel())
    assert np.array_equal(constraints.combine(weights).ravel(), weights @ vectors)
    assert np.array_equal(constraints.gram(), vectors @ vectors.T)
    rows = rng.integers(0, len(constraints), 4)
    assert np.array_equal(constraints.gram(rows, rows[:2]), vectors[rows] @ vectors[rows[:2]].T)
    assert np.array_equal(constraints.select(rows).dense(), vectors[rows])
    # sqrt of exact integers: one rounding each for two roots and a product, against one root.
    assert np.allclose(
        constraints.norms(), np.sqrt((vectors**2).sum(1)), rtol=4 * np.finfo(float).eps, atol=0
    )


def test_combine_leaves_unused_samples_at_zero() -> None:
    constraints = rank_one([[1.0], [2.0], [4.0]], [[1.0, 0.0], [0.0, 1.0], [7.0, 7.0]], [1, 0, 1])
    assert np.array_equal(constraints.combine(np.ones(3)), [[2.0, 5.0]])


@pytest.mark.parametrize(
    ("keys", "queries", "sample", "message"),
    [
        ([[np.nan]], [[1.0]], [0], "key_diffs must be finite"),
        ([[1.0]], [[np.inf]], [0], "queries must be finite"),
        ([1.0], [[1.0]], [0], "key_diffs must have 2 dimension"),
        ([[True]], [[1.0]], [0], "key_diffs must hold real numbers"),
        (np.zeros((0, 2)), [[1.0]], [], "at least one constraint"),
        ([[1.0]], [[1.0]], [1], "sample must lie in 0..0"),
        ([[1.0]], [[1.0]], [0.0], "sample must hold integers"),
        ([[1.0]], [[1.0]], [0, 0], "sample must have shape"),
    ],
)
def test_bad_input_is_named(keys: Any, queries: Any, sample: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        rank_one(keys, queries, sample)


def test_neither_the_caller_nor_anyone_else_can_change_them() -> None:
    keys, queries, sample = np.eye(2), np.ones((1, 2)), np.zeros(2, dtype=np.intp)
    constraints = RankOneConstraints(keys, queries, sample)
    keys[0], queries[0], sample[0] = 7.0, 8.0, 5
    assert np.array_equal(constraints.key_diffs, np.eye(2))
    assert np.array_equal(constraints.queries, np.ones((1, 2)))
    assert np.array_equal(constraints.sample, [0, 0])
    for part in (constraints, constraints.select(np.array([1])), constraints.select(np.array([True, False]))):
        for array in (part.key_diffs, part.queries, part.sample):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
    base = np.eye(2)
    view = base[::-1]
    view.flags.writeable = False  # of an array that may still be written
    reversed_keys = RankOneConstraints(view, queries, [0, 0])
    base[0] = 9.0
    assert np.array_equal(reversed_keys.key_diffs, np.eye(2)[::-1])


def test_integers_that_float64_does_not_hold_are_refused() -> None:
    with pytest.raises(InvalidInput, match="key_diffs must be exact in float64, got 9007199254740993"):
        RankOneConstraints([[2**53 + 1]], [[1]], [0])
    with pytest.raises(InvalidInput, match="queries must be exact in float64"):
        RankOneConstraints([[1]], [[2**53 + 1]], [0])
