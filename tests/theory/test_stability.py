"""(A8) and (A9) against their definitions, term by term in plain loops and mpmath."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy.correction import NoFixedPoint
from marginlab.theory.match_copy.stability import (
    correction_margins,
    cross_term_fraction,
    support_domination,
    support_mask,
)

seeds = st.integers(0, 2**32 - 1)


def _drawn(seed: int, n: int = 3, K: int = 4, d: int = 5) -> tuple[Problem, np.random.Generator]:
    rng = np.random.default_rng(seed)
    keys, values = rng.standard_normal((2, n, K, d))
    return Problem(keys, rng.standard_normal((n, d)), values, rng.integers(0, K, n)), rng


def _pairs(problem: Problem) -> list[tuple[int, int]]:
    """(sample, key) of every constraint, in the order of the constraints."""
    n, K = problem.keys.shape[:2]
    return [(i, t) for i in range(n) for t in range(K) if t != problem.match[i]]


def _margin(problem: Problem, W: np.ndarray, i: int, t: int) -> float:
    return float((problem.keys[i, problem.match[i]] - problem.keys[i, t]) @ W @ problem.queries[i])


def _support(rng: np.random.Generator, problem: Problem) -> np.ndarray:
    pairs = len(_pairs(problem))
    return np.sort(rng.choice(pairs, size=rng.integers(1, pairs + 1), replace=False))


@settings(deadline=None, max_examples=50)
@given(seeds)
def test_support_domination_is_the_ratio_of_its_two_sums(seed: int) -> None:
    problem, rng = _drawn(seed)
    W = rng.standard_normal((2, 5, 5))
    active = _support(rng, problem)
    ratio = support_domination(problem, W, active)
    pairs = _pairs(problem)
    on = {pairs[k] for k in active}
    for r in range(2):
        for i in range(3):
            exps = {p: mpmath.exp(-mpmath.mpf(_margin(problem, W[r], *p))) for p in pairs if p[0] == i}
            top = sum((e for p, e in exps.items() if p not in on), mpmath.mpf(0))
            bottom = sum((e for p, e in exps.items() if p in on), mpmath.mpf(0))
            if bottom == 0:
                assert ratio[r, i] == np.inf
            else:
                assert ratio[r, i] == pytest.approx(
                    float(top / bottom), rel=1e-9
                )  # margins of size 30 in float64


def test_support_domination_is_zero_where_every_rival_supports() -> None:
    problem, rng = _drawn(0)
    everything = np.arange(len(_pairs(problem)))
    assert (support_domination(problem, rng.standard_normal((5, 5)), everything) == 0).all()


def test_support_mask_follows_the_order_of_the_constraints() -> None:
    problem, _ = _drawn(1)
    pairs = _pairs(problem)
    mask = support_mask(problem, np.array([0, 4, 8]))
    assert {tuple(p) for p in np.argwhere(mask).tolist()} == {pairs[0], pairs[4], pairs[8]}


@settings(deadline=None, max_examples=50)
@given(seeds)
def test_correction_margins_solve_the_fixed_point_on_each_sample(seed: int) -> None:
    problem, rng = _drawn(seed, d=8)  # d > K: Gram matrices of the error directions are nonsingular
    active = _support(rng, problem)
    pairs = _pairs(problem)
    dual = np.zeros(len(pairs))
    dual[active] = rng.uniform(0.5, 2.0, len(active))
    step = 0.3
    _, offsets = correction_margins(problem, active, dual, step)
    on = [pairs[k] for k in active]
    values, match = problem.values, problem.match
    for k in active:
        i, t = pairs[k]
        d_t = values[i, t] - values[i, match[i]]
        pull = sum(
            d_t @ (values[i, s] - values[i, match[i]]) * np.exp(-offsets[i, s]) for j, s in on if j == i
        )
        assert np.exp(-offsets[i, t]) * pull == pytest.approx(dual[k] / (2 * step), rel=1e-6)


@settings(deadline=None, max_examples=30)
@given(seeds)
def test_cross_term_fraction_against_a_sum_over_pairs(seed: int) -> None:
    problem, rng = _drawn(seed, d=8)
    active = _support(rng, problem)
    pairs = _pairs(problem)
    dual = np.zeros(len(pairs))
    dual[active] = rng.uniform(0.5, 2.0, len(active))
    W = 0.3 * rng.standard_normal((8, 8))
    tau, step = 50, 0.3
    _, offsets = correction_margins(problem, active, dual, step)
    on = [pairs[k] for k in active]
    n, K = problem.keys.shape[:2]
    d = problem.values - problem.values[np.arange(n), problem.match][:, None]
    wrong = total = 0.0
    for i in range(n):
        rivals = [t for t in range(K) if t != problem.match[i]]
        weight = {t: np.exp(-_margin(problem, W, i, t)) for t in rivals}
        mean = sum(weight[t] * d[i, t] for t in rivals) / sum(weight.values())
        u = {t: _margin(problem, W, i, t) - 0.5 * np.log(tau) - offsets[i, t] for t in rivals}
        h = {t: d[i, t] @ mean for t in rivals}
        for t in rivals:
            for s in rivals:
                if t == s or (i, t) not in on or (i, s) not in on:
                    continue
                U, H = u[t] + u[s], h[t] * u[t] + h[s] * u[s]
                term = np.exp(-offsets[i, t] - offsets[i, s]) * abs(H) * abs(np.exp(-U) - 1)
                total += term
                wrong += term if np.sign(H) != np.sign(U) else 0.0
    expected = wrong / total if total else 0.0
    found = cross_term_fraction(problem, W[None], np.array([tau]), active, dual, step)
    assert found.shape == (1,)
    assert found[0] == pytest.approx(expected, rel=1e-6, abs=1e-12)  # 1e-12: rounding of a zero numerator


def test_a_target_in_the_hull_has_no_correction() -> None:
    values = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])  # the match between its two rivals
    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((1, 3, 2)), rng.standard_normal((1, 2)), values, np.array([0]))
    with pytest.raises(NoFixedPoint):
        correction_margins(problem, np.array([0, 1]), np.array([1.0, 1.0]), 0.1)
