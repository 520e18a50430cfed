"""Every engine's gradient against mpmath, and the error bounds that the engines give against the errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from marginlab.simulations import log_gradient
from marginlab.simulations.attention import Problem
from marginlab.simulations.trajectory import ENGINES
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import log_loss
from marginlab.theory.match_copy.gradient import gradient as closed_form

LOSSES = ("mse", "cross-entropy")
TARGETS = ("match", "other value", "mixture", "noise")
seeds = st.integers(0, 2**32)
sizes = st.tuples(st.integers(1, 4), st.integers(2, 5), st.integers(1, 4), st.integers(1, 4))


def random_problem(seed, size, target):
    """Gaussian data; the target is one of `TARGETS`. K > 2 d_v and n > d both occur."""
    rng = np.random.default_rng(seed)
    n, K, d, d_v = size
    values, match, rows = rng.standard_normal((n, K, d_v)), rng.integers(0, K, n), np.arange(n)
    selected, other = values[rows, match], values[rows, (match + 1) % K]
    goals = {
        "match": None,
        "other value": other,
        "mixture": 0.7 * selected + 0.3 * other,
        "noise": selected + 0.1 * rng.standard_normal((n, d_v)),
    }
    keys, queries = rng.standard_normal((n, K, d)), rng.standard_normal((n, d))
    return Problem(keys, queries, values, match, goals[target]), rng.standard_normal((d, d))


def error_of(found, exact):
    """Relative error of a gradient in the Frobenius norm; the truth is (direction, log norm)."""
    direction, log_norm = exact
    ratio = np.exp(found.log_norm - log_norm)
    return float(np.linalg.norm(ratio * found.direction - direction))


#: A bound on the error of turning log ||G|| and the unit direction back into a gradient: a few roundings,
#: and those of log_norm, which is a float of size up to 2000.
def bookkeeping(found):
    return 8 * np.finfo(float).eps * (1 + abs(found.log_norm))


@settings(deadline=None, max_examples=120)
@given(seeds, sizes, st.sampled_from(TARGETS), st.sampled_from(LOSSES), st.sampled_from([0.3, 1, 10, 300]))
@example(0, (2, 3, 2, 2), "match", "mse", 1.0)
def test_the_frame_gradient_is_within_its_bound_everywhere(exact_gradient, seed, size, target, loss, scale):
    """Saturated on right and wrong keys alike: random W of any size, targets of every kind."""
    problem, W = random_problem(seed, size, target)
    found = log_gradient(problem, scale * W, loss=loss)
    assume(np.isfinite(found.error_bound))  # otherwise the engine says that the gradient could be zero
    assert error_of(found, exact_gradient(problem, scale * W, loss)) <= found.error_bound + bookkeeping(found)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gap", [1.0, 40.0, 100.0, 700.0, 1500.0])
def test_the_frame_gradient_keeps_its_digits_at_any_gap(exact_gradient, saturated, loss, gap):
    problem, W = saturated(0, gap)
    found = log_gradient(problem, W, loss=loss)
    # Margins of size `gap` from terms of size ||k|| ||W|| ||q|| <= 10 gap, 30 roundings each: log a, and so
    # the gradient, is wrong by at most 300 u gap twice over.
    assert error_of(found, exact_gradient(problem, W, loss)) <= 600 * gap * 2.0**-53 + bookkeeping(found)
    assert found.error_bound < 1e-7
    if loss == "mse":
        assert found.log_norm < -1.9 * gap + 20


@settings(deadline=None, max_examples=40)
@given(seeds, sizes, st.sampled_from(TARGETS), st.sampled_from(LOSSES), st.sampled_from([0.1, 1, 3]))
def test_textbook_engines_are_within_their_bounds(exact_gradient, seed, size, target, loss, scale):
    problem, W = random_problem(seed, size, target)
    for engine in ("torch", "naive"):
        found = log_gradient(problem, scale * W, loss=loss, engine=engine)
        if np.isfinite(found.error_bound):
            error = error_of(found, exact_gradient(problem, scale * W, loss))
            assert error <= found.error_bound + bookkeeping(found)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("gap", [0.5, 5.0, 10.0, 20.0, 30.0])
def test_the_frame_gradient_agrees_with_autograd_up_to_gap_30(saturated, loss, gap):
    problem, W = saturated(1, gap)
    frame, torch = (log_gradient(problem, W, loss=loss, engine=e) for e in ("numba", "torch"))
    difference = np.linalg.norm(np.exp(frame.log_norm - torch.log_norm) * frame.direction - torch.direction)
    # Autograd's own relative error is of order u V / (A R), A = 4 e^-gap here: V / R < 2, and a factor of 50
    # for the 20 roundings of its sums over keys and coordinates.
    assert difference <= 50 * 2.0**-53 * np.exp(gap) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_the_textbook_gradient_fails_where_the_weight_rounds_to_one(exact_gradient, saturated, seed):
    """Direction error 1 - cos of the textbook form against gap, each side with a factor of ten to spare.

    A rounding of u in r against A R = e^-gap turns the direction by the angle u e^gap times a factor of order
    one: (2^-53 e^30)^2 / 2 = 7e-7. Beyond 53 ln 2 = 36.7 nothing of the selected token is left.
    """
    errors = {}
    for gap in (20.0, 30.0, 34.0, 36.0, 38.0, 100.0):
        problem, W = saturated(seed, gap)
        direction, _ = exact_gradient(problem, W, "mse")
        for engine in ENGINES:
            found = log_gradient(problem, W, engine=engine).direction
            errors[engine, gap] = 0.5 * float(np.sum((found - direction) ** 2))
    for engine in ("torch", "naive"):
        assert errors[engine, 20.0] < 1e-14
        assert 1e-9 < errors[engine, 30.0] < 1e-5
        assert 1e-6 < errors[engine, 34.0] < 1e-2
        assert 1e-4 < errors[engine, 36.0] < 1e-1
        assert errors[engine, 38.0] > 0.1
        assert errors[engine, 100.0] > 0.1
        assert errors[engine, 30.0] < errors[engine, 34.0] < errors[engine, 38.0]
    assert max(error for (engine, _), error in errors.items() if engine == "numba") < 1e-26


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("target", TARGETS)
def test_taylor_remainders_have_slope_two(loss, target):
    """log |f(W + h U) - f(W) - h <G, U>| against log h: slope 2 if and only if G is the gradient."""
    problem, W = random_problem(3, (3, 4, 4, 3), target)
    found = log_gradient(problem, W, loss=loss)
    G = np.exp(found.log_norm) * found.direction
    U = np.random.default_rng(1).standard_normal(W.shape)
    h = np.geomspace(1e-4, 1e-2, 9)

    def remainder(slope):
        f = np.exp([float(log_loss(problem, W + step * U, loss)) for step in [0.0, *h]])
        return np.abs(f[1:] - f[0] - h * slope)

    def order(slope):
        return np.polyfit(np.log(h), np.log(remainder(slope)), 1)[0]

    assert order(np.sum(G * U)) >= 1.9
    assert order(1.001 * np.sum(G * U)) < 1.9  # and it can fail


@settings(deadline=None, max_examples=40)
@given(seeds, sizes, st.sampled_from(TARGETS), st.sampled_from(LOSSES))
def test_all_engines_and_the_closed_form_agree(seed, size, target, loss):
    problem, W = random_problem(seed, size, target)
    exact = closed_form(problem, W, loss)
    for engine in ENGINES:
        found = log_gradient(problem, W, loss=loss, engine=engine)
        G = np.exp(found.log_norm) * found.direction
        norm = np.exp(found.log_norm)
        # both sides: the engine's own bound, and 1e-13 of the largest thing that cancels in the closed form
        size_of_terms = (1 + np.abs(problem.values).sum() + np.abs(problem.targets).sum()) ** 2
        size_of_terms *= np.abs(problem.keys).sum() * np.abs(problem.queries).sum()
        bound = min(found.error_bound, 1e-6) * norm + 1e-13 * size_of_terms
        assert np.linalg.norm(G - exact) <= bound


def test_a_gradient_that_is_exactly_zero_says_so():
    problem = Problem(np.eye(2)[None], np.ones((1, 2)), np.ones((1, 2, 1)), np.array([0]))
    found = log_gradient(problem, np.eye(2))
    assert found.log_norm == -np.inf
    assert np.array_equal(found.direction, np.zeros((2, 2)))
    assert found.error_bound == np.inf


@pytest.mark.parametrize(
    ("W", "options", "message"),
    [
        (np.zeros((3, 2)), {}, r"W must have shape \(2, 2\)"),
        (np.full((2, 2), np.nan), {}, "W must be finite"),
        (np.eye(2), {"loss": "hinge"}, "loss must be one of"),
        (np.eye(2), {"engine": "jax"}, "engine must be one of numba, torch, naive; got 'jax'"),
    ],
)
def test_bad_arguments_are_refused(W, options, message):
    problem, _ = random_problem(0, (2, 3, 2, 2), "match")
    with pytest.raises(InvalidInput, match=message):
        log_gradient(problem, W, **options)
