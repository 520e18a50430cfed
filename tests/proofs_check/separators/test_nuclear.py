"""Nuclear-norm separators: closed forms, two solver families, and the spectral bound formed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import NotSeparable, RankOneConstraints, max_margin
from marginlab.proofs_check.separators.nuclear import NUCLEAR_GAP

SEEDS = st.integers(0, 2**32 - 1)


def rank_one(keys: Any, queries: Any, sample: Any) -> RankOneConstraints:
    """Constraints from anything array-like, as users pass it."""
    return RankOneConstraints(keys, queries, sample)


def attention(rng: np.random.Generator, n: int, K: int, d: int) -> RankOneConstraints:
    keys = rng.standard_normal((n, K, d))
    match = rng.integers(0, K, n)
    queries = keys[np.arange(n), match]
    rivals = np.arange(K)[None] != match[:, None]
    return rank_one((queries[:, None] - keys)[rivals], queries, np.repeat(np.arange(n), K - 1))


@pytest.mark.parametrize("oracle", NUCLEAR_GAP)
def test_one_constraint_has_margin_equal_to_its_norm(oracle: str) -> None:
    # max <U, k q^T> over ||U||_* <= 1 is the spectral norm |k| |q| = 5 * 13.
    solution = max_margin(rank_one([[3, 4]], [[5, 12]], [0]), oracle=oracle, norm="nuclear")
    assert solution.margin_lower <= 65 * (1 + NUCLEAR_GAP[oracle])
    assert solution.margin_lower >= 65 * (1 - 2 * NUCLEAR_GAP[oracle])
    assert solution.margin_upper >= 65 * (1 - 1e-15)


@pytest.mark.parametrize("oracle", NUCLEAR_GAP)
def test_orthogonal_constraints(oracle: str) -> None:
    # W_11 >= 1 and W_22 >= 1: the identity, of nuclear norm 2; its dual p = (1/2, 1/2) has spectral norm 1/2.
    solution = max_margin(rank_one(np.eye(2), np.eye(2), [0, 1]), oracle=oracle, norm="nuclear")
    assert solution.margin_lower <= 0.5 <= solution.margin_upper
    assert solution.gap <= NUCLEAR_GAP[oracle]
    # The separator is unique, but the norm is not strongly convex: sqrt of the gap at best.
    assert np.allclose(solution.W, np.eye(2), atol=np.sqrt(NUCLEAR_GAP[oracle]))


@given(seed=SEEDS)
@settings(deadline=None, max_examples=8)
def test_two_families_overlap_and_the_dual_norm_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraints = attention(rng, 5, 3, 6)
    a = max_margin(constraints, oracle="cvxpy", norm="nuclear")
    b = max_margin(constraints, oracle="first-order", norm="nuclear")
    assert max(a.margin_lower, b.margin_lower) <= min(a.margin_upper, b.margin_upper)
    for solution in (a, b):
        p = solution.dual / solution.dual.sum()
        spectral = np.linalg.norm(
            sum(
                w * np.outer(k, q)
                for w, k, q in zip(
                    p, constraints.key_diffs, constraints.queries[constraints.sample], strict=True
                )
            ),
            2,
        )
        assert np.isclose(solution.margin_upper, spectral, rtol=1e-12)
        achieved = constraints.margins(solution.W).min() / np.linalg.norm(solution.W, "nuc")
        assert np.isclose(solution.margin_lower, achieved, rtol=1e-12)
    # The Frobenius ball contains the nuclear ball: its margin is at least as large.
    assert max_margin(constraints).margin_upper >= a.margin_lower


@pytest.mark.parametrize("oracle", NUCLEAR_GAP)
def test_inseparable(oracle: str) -> None:
    constraints = rank_one([[1.0, 2.0], [-1.0, -2.0]], [[1.0, 1.0]], [0, 0])
    with pytest.raises(NotSeparable) as caught:
        max_margin(constraints, oracle=oracle, norm="nuclear")
    assert np.allclose(caught.value.certificate.weights, [0.5, 0.5])
