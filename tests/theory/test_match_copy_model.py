"""Closed forms of the minimal model against plain softmax, finite differences and many digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from marginlab.simulations.attention import Problem
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import (
    MatchCopyTask,
    attention_weights,
    cross_entropy,
    cross_entropy_coefficients,
    error_alignments,
    error_directions,
    log_attention,
    log_loss,
    margins,
    min_margin,
    mse_coefficients,
    residuals,
    sample,
    squared_error,
)
from marginlab.theory.match_copy.attention import log_sum_exp
from marginlab.theory.match_copy.gradient import gradient

seeds = st.integers(0, 2**32)
LOSSES = ("mse", "cross-entropy")


def random_problem(seed, *, exact=True):
    rng = np.random.default_rng(seed)
    n, K, d, d_v = rng.integers([1, 2, 1, 1], [5, 6, 6, 5])
    targets = None if exact else rng.standard_normal((n, d_v))
    problem = Problem(
        rng.standard_normal((n, K, d)),
        rng.standard_normal((n, d)),
        rng.standard_normal((n, K, d_v)),
        rng.integers(0, K, n),
        targets,  # type: ignore[arg-type]
    )
    return problem, rng.standard_normal((d, d)), rng


def plain_attention(problem, W):
    """Softmax straight from eq. (8)."""
    weights = []
    for keys, query in zip(problem.keys, problem.queries, strict=True):
        e = np.exp(keys @ W @ query)
        weights.append(e / e.sum())
    return np.array(weights)


def plain_loss(problem, W, loss):
    a = plain_attention(problem, W)
    if loss == "cross-entropy":
        return -np.sum(np.log(a[np.arange(len(a)), problem.match]))
    out = [w @ v for w, v in zip(a, problem.values, strict=True)]
    return 0.5 * np.sum((np.array(out) - problem.targets) ** 2)


@settings(deadline=None, max_examples=60)
@given(seeds, st.booleans())
def test_weights_margins_and_losses_agree_with_plain_softmax(seed, exact):
    problem, W, _ = random_problem(seed, exact=exact)
    a = plain_attention(problem, W)
    rows = np.arange(len(a))

    # Scores of size at most 60 here: exp carries 60 u times the 30 roundings of a score.
    def close(found, expected):
        return np.allclose(found, expected, rtol=1e-12, atol=1e-13)

    assert close(attention_weights(problem, W), a)
    assert close(log_attention(problem, W), np.log(a))
    assert close(np.exp(-margins(problem, W)), a / a[rows, problem.match][:, None])
    outputs = np.array([w @ v for w, v in zip(a, problem.values, strict=True)])
    assert close(residuals(problem, W), outputs - problem.targets)
    assert close(squared_error(problem, W), plain_loss(problem, W, "mse"))
    assert close(cross_entropy(problem, W), plain_loss(problem, W, "cross-entropy"))


@settings(deadline=None, max_examples=30)
@given(seeds)
def test_leading_axes_are_kept(seed):
    problem, W, rng = random_problem(seed)
    Ws = np.stack([[W, 2 * W, -W], rng.standard_normal((3, *W.shape))])
    for function in (margins, residuals, squared_error, cross_entropy, log_loss, min_margin, gradient):
        batched = function(problem, Ws)
        assert batched.shape[:2] == (2, 3)
        assert np.allclose(batched[1, 2], function(problem, Ws[1, 2]), rtol=1e-10, atol=1e-13)


@settings(deadline=None, max_examples=40)
@given(seeds, st.booleans(), st.sampled_from(LOSSES))
def test_the_gradient_agrees_with_finite_differences(seed, exact, loss):
    """Richardson-extrapolated central differences: error O(h^4) with h = 1e-3, rounding 1e-13/h."""
    problem, W, rng = random_problem(seed, exact=exact)
    U = rng.standard_normal(W.shape)
    U /= np.linalg.norm(U)

    def central(h):
        return (plain_loss(problem, W + h * U, loss) - plain_loss(problem, W - h * U, loss)) / (2 * h)

    h = 1e-3
    slope = (4 * central(h / 2) - central(h)) / 3
    exact_slope = np.sum(gradient(problem, W, loss) * U)
    # Fifth derivative along U: scores move by at most X = max ||k|| ||q||, residuals by the values' diameter.
    X = np.linalg.norm(problem.keys, axis=2).max() * np.linalg.norm(problem.queries, axis=1).max()
    size = len(problem.keys) * (1 + np.abs(problem.values).sum() + np.abs(problem.targets).sum()) ** 2
    assert abs(slope - exact_slope) <= size * (h**4 * (2 * X) ** 5 + 1e-15 / h)


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_the_sum_identity_and_the_paper_form_of_the_coefficients(seed):
    """Eq. (40) and (47), written with the quantities of the paper."""
    problem, W, _ = random_problem(seed)
    pi, a, r = mse_coefficients(problem, W), attention_weights(problem, W), residuals(problem, W)
    rows = np.arange(len(a))
    a_y = a[rows, problem.match]
    r2 = np.sum(r**2, axis=1)
    # u times the sum of the absolute values of what is added, at most (max ||d||)^2 a side
    slip = 1e-13 * (1 + np.sum(error_directions(problem) ** 2))
    assert np.allclose(pi.sum(axis=1), a_y * r2, rtol=0, atol=slip)
    h = error_alignments(problem, W)
    paper = a * ((1 - a_y)[:, None] * h - r2[:, None])
    paper[rows, problem.match] = 0.0
    assert np.allclose(pi, paper, rtol=0, atol=slip)
    assert np.all(pi[rows, problem.match] == 0)
    assert np.array_equal(cross_entropy_coefficients(problem, W).astype(bool), problem.rivals)


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_log_sum_exp_against_scipy(seed):
    rng = np.random.default_rng(seed)
    x = 10.0 ** rng.uniform(-2, 3) * rng.standard_normal((3, 4))
    x[rng.random((3, 4)) < 0.3] = -np.inf
    for keepdims in (False, True):
        expected = np.asarray(logsumexp(x, axis=-1, keepdims=keepdims))
        # a sum of four numbers in [0, 1] with one of them 1, and one rounding of the largest
        assert np.allclose(log_sum_exp(x, keepdims=keepdims), expected, rtol=4e-16, atol=2e-15)


def test_h_is_the_definition_of_the_paper():
    problem, W, _ = random_problem(5)
    d, a = error_directions(problem), plain_attention(problem, W)
    for i, y in enumerate(problem.match):
        for t in range(d.shape[1]):
            rest = [s for s in range(d.shape[1]) if s != y]
            h = sum(d[i, t] @ d[i, s] * a[i, s] for s in rest) / sum(a[i, s] for s in rest)
            assert error_alignments(problem, W)[i, t] == pytest.approx(h, rel=1e-12, abs=1e-12)


def mp_log_loss(problem, W, loss, digits):
    """The textbook loss in mpmath."""
    with mpmath.workdps(digits):
        total = mpmath.mpf(0)
        for keys, q, values, y, target in zip(
            problem.keys, problem.queries, problem.values, problem.match, problem.targets, strict=True
        ):
            x = [mpmath.fdot(row, q) for row in W.tolist()]
            e = [mpmath.exp(mpmath.fdot(k, x)) for k in keys.tolist()]
            z = mpmath.fsum(e)
            if loss == "cross-entropy":
                total -= mpmath.log(e[y] / z)
                continue
            for j, goal in enumerate(target.tolist()):
                total += (mpmath.fdot(e, values[:, j].tolist()) / z - goal) ** 2 / 2
        return float(mpmath.log(total))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1.0, 37.0, 200.0, -3.0, -60.0])
@pytest.mark.parametrize("target", ["match", "other value", "free"])
def test_the_log_loss_is_exact_far_below_the_smallest_float(loss, scale, target):
    problem = Problem.from_match_copy(sample(MatchCopyTask.template(T=4, d=6, coordinate_std=0.7), 2, 3))
    if target != "match":
        rows = np.arange(2)
        other = problem.values[rows, (problem.match + 1) % 3]
        goal = other if target == "other value" else other + 0.1
        problem = Problem(problem.keys, problem.queries, problem.values, problem.match, goal)
    W = scale * np.eye(6)
    digits = int(4 * np.abs(margins(problem, W)).max()) + 60  # twice e^{-2 gap}, and sixty more
    expected = mp_log_loss(problem, W, loss, digits)
    # log a is wrong by the rounding of a score, 20 u times its size, and log loss by twice that
    slip = 40 * np.finfo(float).eps * (np.abs(margins(problem, W)).max() + 10)
    assert log_loss(problem, W, loss) == pytest.approx(expected, abs=2 * slip, rel=1e-15)


def test_an_exactly_zero_loss_is_minus_infinity():
    problem = Problem(np.eye(2)[None], np.ones((1, 2)), np.ones((1, 2, 1)), np.array([0]))
    assert log_loss(problem, np.eye(2), "mse") == -np.inf


def test_an_unknown_loss_is_refused():
    problem, W, _ = random_problem(0)
    for function in (log_loss, gradient):
        with pytest.raises(InvalidInput, match="loss must be one of mse, cross-entropy; got 'hinge'"):
            function(problem, W, "hinge")


def test_the_numbers_of_one_sample_by_hand():
    """K = 2, scores 1 and 0, values 0 and 1: a = (e, 1)/(e + 1), r = a_2, pi = a_2 (r - r a_2)."""
    problem = Problem(np.array([[[1.0], [0.0]]]), np.ones((1, 1)), np.array([[[0.0], [1.0]]]), np.array([0]))
    a2 = 1 / (1 + np.e)
    W = np.ones((1, 1))
    assert squared_error(problem, W) == pytest.approx(a2**2 / 2, rel=1e-15)
    assert cross_entropy(problem, W) == pytest.approx(np.log1p(np.exp(-1)), rel=1e-15)
    assert gradient(problem, W)[0, 0] == pytest.approx(-(a2**2) * (1 - a2), rel=1e-15)
    assert gradient(problem, W, "cross-entropy")[0, 0] == pytest.approx(-a2, rel=1e-15)
