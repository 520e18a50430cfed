"""Laws of large times against the dynamics they are derived from, mpmath, and brute force."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import max_margin
from marginlab.simulations.attention import Problem
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.gradient import error_alignments, gradient
from marginlab.theory.match_copy.laws import (
    Offset,
    limit_alignments,
    limit_margins,
    loss_constant,
    misalignment,
    norm_slope,
    slack_rate,
    squared_gradient_constant,
    support_offset,
    support_rates,
)
from marginlab.theory.match_copy.losses import log_loss

seeds = st.integers(0, 2**32 - 1)

LOSSES = (("mse", 2.0), ("cross-entropy", 1.0))


def _drawn(seed: int, n: int = 3, K: int = 3, d: int = 8) -> Problem:
    """Values far on one side of the match's, so that A4 holds; n (K - 1) <= d^2 constraints, all separable."""
    rng = np.random.default_rng(seed)
    keys, values = rng.standard_normal((2, n, K, d))
    match = rng.integers(0, K, n)
    shift = 4 * rng.standard_normal((n, d))
    values += shift[:, None] / np.linalg.norm(shift, axis=1)[:, None, None] * 8
    values[np.arange(n), match] = 0.0
    return Problem(keys, rng.standard_normal((n, d)), values, match)


def _on_the_ray(problem: Problem, log_time: float, loss: str, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """w_hat, and w = (1/kappa) log t w_hat + w_infinity with w_infinity in the span of the support."""
    constraints = problem.constraints()
    separator = max_margin(constraints)
    active = np.sort(separator.active)
    limits = limit_margins(problem, active, separator.dual, loss=loss)
    gram = constraints.gram()[np.ix_(active, active)]
    weights = np.zeros(len(constraints))
    weights[active] = np.linalg.solve(gram, limits)
    return separator.W, log_time / tail * separator.W + constraints.combine(weights)


@pytest.mark.parametrize(("loss", "tail"), LOSSES)
@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_the_ray_solves_the_flow_and_gives_its_constants(loss: str, tail: float, seed: int) -> None:
    """dw/dt = -grad L along w(t): t times the gradient is w_hat / kappa, up to the weights that are neglected."""
    problem = _drawn(seed)
    separator = max_margin(problem.constraints())
    # exp(-theta s / kappa) of the rivals off the support, and exp(-s / kappa) against 1.
    slack = slack_rate(problem, problem.constraints().margins(separator.W), separator.active, tail)
    rate = float(min(np.nanmin(slack, initial=np.inf), 1 / tail))
    assume(rate >= 0.05 and not np.isnan(slack).any())
    s = min(40.0 / rate, 300.0)
    w_hat, w = _on_the_ray(problem, s, loss, tail)
    scale = np.exp(s)
    velocity = -scale * gradient(problem, w, loss)
    # Constants in front of the neglected terms are ratios of multipliers and of error products.
    neglected = 1e6 * np.exp(-rate * s) + 1e-9
    size = float(np.linalg.norm(w_hat))
    assert np.linalg.norm(velocity - w_hat / tail) <= neglected * size
    assert scale**2 * np.sum(gradient(problem, w, loss) ** 2) == pytest.approx(
        squared_gradient_constant(size, tail, 1.0), rel=3 * neglected
    )
    assert np.exp(s + log_loss(problem, w, loss)) == pytest.approx(
        loss_constant(size, tail, 1.0), rel=3 * neglected
    )
    if loss == "mse":
        known, limit = limit_alignments(problem, separator.active, separator.dual)
        h = error_alignments(problem, w)
        np.testing.assert_allclose(h[known], limit[known], rtol=neglected)


@pytest.mark.parametrize(("loss", "tail"), LOSSES)
def test_the_step_shifts_time_only(loss: str, tail: float) -> None:
    problem = _drawn(3)
    separator = max_margin(problem.constraints())
    one, other = (
        limit_margins(problem, separator.active, separator.dual, loss=loss, step=step) for step in (1.0, 0.01)
    )
    np.testing.assert_allclose(other - one, np.log(0.01) / tail, rtol=1e-9)


@pytest.mark.parametrize(("loss", "tail"), LOSSES)
@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_rates_are_those_of_the_linearised_margins(loss: str, tail: float, seed: int) -> None:
    """Central differences of d m / d log t = t K pi(m) at the limit, by the gradient itself."""
    problem = _drawn(seed, n=2)
    constraints = problem.constraints()
    separator = max_margin(constraints)
    active = np.sort(separator.active)
    s = 60.0
    _, w = _on_the_ray(problem, s, loss, tail)
    gram = constraints.gram()
    assume(len(active) == len(constraints))  # rivals off the support would have to be followed too
    inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
    step = 1e-4
    jacobian = np.empty((len(active), len(active)))
    for k in range(len(active)):
        change = constraints.combine(inverse[:, k] * step)
        ahead, behind = (
            -np.exp(s) * constraints.margins(gradient(problem, w + sign * change, loss)) for sign in (1, -1)
        )
        jacobian[:, k] = (ahead - behind) / (2 * step)
    rates = support_rates(problem, gram, active, separator.dual, loss=loss)
    measured = np.sort(-np.linalg.eigvals(jacobian).real)
    # Differences of second order leave step^2 times third derivatives, of the size of the matrix itself.
    np.testing.assert_allclose(rates, measured, atol=1e-5 * rates[-1])
    assert np.abs(rates - 1).min() <= 1e-8  # a shift of time


@settings(deadline=None, max_examples=50)
@given(
    st.floats(0.01, 100),
    st.floats(-50, 50),
    st.floats(1e-30, 100),
    st.floats(10, 1e4),
    st.sampled_from([1.0, 2.0]),
)
def test_misalignment_is_the_cosine_of_the_two_parts(
    size: float, along: float, across: float, log_time: float, tail: float
) -> None:
    offset = Offset(along=along, across=across)
    total = mpmath.mpf(size) * mpmath.mpf(log_time) / mpmath.mpf(tail) + mpmath.mpf(along)
    if total <= 1e-3:
        with pytest.raises(InvalidInput, match="large times"):
            misalignment(np.array([0.0]), size, Offset(along=-1.0, across=across), tail)
        return
    with mpmath.workdps(150):
        exact = 1 - total / mpmath.sqrt(total**2 + mpmath.mpf(across) ** 2)
    value = float(misalignment(np.array([log_time]), size, offset, tail)[0])
    # The sum `along` may cancel: its relative error doubles in the squared tangent.
    cancelled = (size * log_time / tail + abs(along)) / float(total)
    assert value == pytest.approx(float(exact), rel=1e-14 * (1 + cancelled), abs=1e-300)


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_support_offset_is_that_of_the_matrix(seed: int) -> None:
    problem = _drawn(seed)
    constraints = problem.constraints()
    separator = max_margin(constraints)
    active = np.sort(separator.active)
    limits = limit_margins(problem, active, separator.dual)
    gram = constraints.gram()
    offset = support_offset(gram, active, separator.dual, limits)
    w_hat, w = _on_the_ray(problem, 0.0, "mse", 2.0)
    unit = w_hat / np.linalg.norm(w_hat)
    along = float(np.sum(w * unit))
    condition = np.linalg.cond(gram[np.ix_(active, active)])
    rel = 1e-13 * condition
    assert offset.along == pytest.approx(along, rel=rel, abs=rel * np.linalg.norm(w))
    assert offset.across == pytest.approx(
        np.linalg.norm(w - along * unit), rel=rel, abs=rel * np.linalg.norm(w)
    )


def test_slack_rate_by_hand() -> None:
    """Sample 0: rivals with margins 1 and 1.5; sample 1: both support; sample 2: none."""
    keys = np.zeros((3, 3, 2))
    problem = Problem(keys + np.arange(3)[:, None], np.ones((3, 2)), keys + np.arange(3)[:, None], [0, 1, 2])
    margins = np.array([1.0, 1.5, 1.0, 1.0, 2.0, 3.0])
    rates = slack_rate(problem, margins, np.array([0, 2, 3]))
    assert rates[0] == 0.25
    assert rates[1] == np.inf
    assert np.isnan(rates[2])


def test_constants_by_hand() -> None:
    assert norm_slope(3.0, 2.0) == 1.5
    assert loss_constant(3.0, 2.0, 0.5) == 4.5
    assert squared_gradient_constant(3.0, 1.0, 0.5) == 36.0


@pytest.mark.parametrize("call", [
    lambda: norm_slope(-1.0, 2.0),
    lambda: loss_constant(1.0, 2.0, 0.0),
    lambda: squared_gradient_constant(1.0, 0.0, 1.0),
    lambda: limit_margins(_drawn(0), np.array([0]), np.ones(6), loss="hinge"),
    lambda: limit_margins(_drawn(0), np.array([0]), np.ones(6), step=-1.0),
    lambda: support_rates(_drawn(0), np.zeros((6, 6)), np.array([0, 1]), np.ones(6)),
])  # fmt: skip
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        call()
