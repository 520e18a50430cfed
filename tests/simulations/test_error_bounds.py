"""The error bound of the frame engine where it is hardest to keep: long paths, mixed sizes, worst roundings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.simulations import log_gradient
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import engine_named
from marginlab.simulations.trajectory import Descent

U = 2.0**-53
seeds = st.integers(0, 2**32)


def relative_error(direction, log_norm, exact):
    """Relative error in the Frobenius norm; the truth is (direction, log norm)."""
    return float(np.linalg.norm(np.exp(log_norm - exact[1]) * direction - exact[0]))


def bookkeeping(log_norm):
    """What turning log ||G|| and the unit direction back into a gradient costs, as in test_gradient."""
    return 8 * np.finfo(float).eps * (1 + abs(log_norm))


def after_one_cancelling_step(seed, cancellation):
    """A first step along the difference of two opposite pulls, that leaves W of order one by cancellation.

    Two samples share a query and pull along D (1 + cancellation) and -D, half each: the step's terms are of
    size 1 / cancellation, their sum is one. What rounding they leave is in the margins at the next step.
    """
    rng = np.random.default_rng(seed)
    D, query = rng.standard_normal(3), rng.standard_normal(3)
    keys = np.array([[(1 + cancellation) * D, np.zeros(3)], [-D, np.zeros(3)]])
    problem = Problem(keys, np.array([query, query]), keys[:, :, :1], [0, 0])
    step = 1.0 / (np.linalg.norm(D) * np.linalg.norm(query))
    config = Descent(loss="cross-entropy", rule="normalised", step=float(step), steps=1, record=(1,))
    return problem, engine_named("numba")(problem, config, np.zeros((3, 3)))


def test_the_rounding_of_a_path_that_cancels_is_in_the_bound(exact_gradient):
    """Much larger than the rounding of W itself, it is seen in the true error, and bounded."""
    worst = 0.0
    for seed in range(8):
        problem, output = after_one_cancelling_step(seed, 1e-7)
        gradient = output.gradient / np.linalg.norm(output.gradient)
        exact = exact_gradient(problem, output.W[0], "cross-entropy")
        error = relative_error(gradient, output.log_grad_norm[0], exact)
        assert error <= output.error_bound[0] + bookkeeping(output.log_grad_norm[0])
        assert 0.1 < np.linalg.norm(output.W[0]) < 10  # nothing in W itself tells of the path
        worst = max(worst, error)
    # 1e7 terms of order one against sums of order one: the path shows, three orders above 8 u.
    assert worst > 1000 * 8 * U


@pytest.mark.parametrize("cancellation", [1e-3, 1e-7, 1e-10])
def test_the_bound_grows_with_the_path(cancellation):
    """Margins carry at least one rounding, u / 2, of each of the two terms that cancel."""
    problem, output = after_one_cancelling_step(0, cancellation)
    margin = float(output.W[0].ravel() @ problem.constraints().dense()[1])
    sensitivity = 1.0 / (1.0 + np.exp(-margin))  # of log a, a the rival's weight, to the margin: 1 - a
    terms = 2.0 / cancellation  # sum of ||step's terms|| ||D|| ||q||, each 1 / cancellation
    assert output.error_bound[0] >= 0.5 * U * terms * (1.0 - sensitivity)


def test_the_bound_covers_the_worst_roundings_of_the_margins():
    """A bound from below on what a sound bound must be, by hand, where every rounding may conspire.

    d = 1000 coordinates of equal size. Keys: the match at zero, p and t with signs that agree with x = W q on
    70 % and 55 % of the coordinates and with each other on 25 %; hence scores 0.4 and 0.1 of ||x||, the pivot
    p. The target is v_p and v_y = v_p, so that the gradient is a_t^2 R^2 (k_p - k_t) q^T up to a_y. Each
    coordinate of x, a sum of d products, may be wrong by d u |x_j|, and each score, another such sum, by
    d u ||x||: the scores of p and t may part by (2 * 0.75 + 2) d u ||x||, and a_t^2 change by a factor of
    e to twice that.
    """
    d, size = 1000, 100.0
    signs = np.ones(d)
    p, t = signs.copy(), signs.copy()
    p[:300], t[300:750] = -1, -1
    unit = 1.0 / np.sqrt(d)
    keys = np.array([[np.zeros(d), p * unit, t * unit]])
    query = signs[None] * unit
    values = np.array([[[0.0], [0.0], [1.0]]])
    problem = Problem(keys, query, values, [0], [[0.0]])
    W = size * np.outer(signs * unit, signs * unit)
    found = log_gradient(problem, W)
    assert found.error_bound >= 2 * (2 * 0.75 + 2) * d * U * size
    assert found.error_bound <= 1e-6  # and the bound is of use


def test_the_cross_entropy_bound_covers_the_worst_roundings_of_the_margins():
    """As above for one saturated rival: a_t (k_y - k_t) q^T changes by a factor of e to 2 d u ||x||."""
    d, size = 1000, 100.0
    unit = np.random.default_rng(0).choice([-1.0, 1.0], d) / np.sqrt(d)
    problem = Problem([[unit, np.zeros(d)]], unit[None], [[[1.0], [0.0]]], [0])
    found = log_gradient(problem, size * np.outer(unit, unit), loss="cross-entropy")
    assert 2 * d * U * size <= found.error_bound <= 1e-6


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from(["mse", "cross-entropy"]), st.sampled_from([1.0, 30.0, 300.0, 1000.0]))
def test_samples_of_very_different_sizes_are_within_the_bound(exact_gradient, seed, loss, gap):
    """Values of any size; keys and queries of inverse sizes, so that one W saturates every sample."""
    rng = np.random.default_rng(seed)
    n, K, d = int(rng.integers(1, 4)), int(rng.integers(2, 4)), int(rng.integers(1, 4))
    key_size, value_size = (2.0 ** rng.uniform(-90, 90, (n, 1, 1)) for _ in range(2))
    keys, queries = rng.standard_normal((n, K, d)) * key_size, rng.standard_normal((n, d)) / key_size[:, 0]
    values = rng.standard_normal((n, K, 2)) * value_size
    match = rng.integers(0, K, n)
    targets = values[np.arange(n), (match + rng.integers(0, 2)) % K]
    problem = Problem(keys, queries, values, match, targets)
    W = gap * rng.standard_normal((d, d))
    found = log_gradient(problem, W, loss=loss)
    if np.isfinite(found.error_bound):
        error = relative_error(found.direction, found.log_norm, exact_gradient(problem, W, loss))
        assert error <= found.error_bound + bookkeeping(found.log_norm)


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("gap", [1.0, 100.0, 400.0, 1000.0])
def test_a_tiny_sample_beside_a_saturated_one(exact_gradient, loss, gap):
    """At the end of the range a small sample outweighs a saturated one: its products must not vanish."""
    rng = np.random.default_rng(0)
    keys, queries = rng.standard_normal((2, 3, 2)), rng.standard_normal((2, 2))
    values = rng.standard_normal((2, 3, 2))
    keys[0], queries[0], values[0] = (2.0**-97 * part[0] for part in (keys, queries, values))
    problem = Problem(keys, queries, values, [0, 1])
    W = gap * np.outer(problem.key_diffs[1].sum(axis=0), queries[1])
    found = log_gradient(problem, W, loss=loss)
    assert np.isfinite(found.error_bound)
    error = relative_error(found.direction, found.log_norm, exact_gradient(problem, W, loss))
    assert error <= found.error_bound + bookkeeping(found.log_norm)
