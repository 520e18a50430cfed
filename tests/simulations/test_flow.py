"""Gradient flow in log time against a Taylor integrator in 40 digits, descent in tiny steps, and closed forms."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.separators import max_margin
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run
from marginlab.simulations.flow import gradient_flow
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import MatchCopyTask, margins, sample
from marginlab.theory.match_copy.losses import LOSSES
from marginlab.theory.match_copy.stability import correction_margins

TIMES = (5.0, 20.0, 69.0)


def template(seed: int, *, T: int = 4, d: int = 16, n: int = 8, std: float | None = None) -> Problem:
    return Problem.from_match_copy(sample(MatchCopyTask.template(T=T, d=d, coordinate_std=std), n, seed))


def taylor_flow(problem: Problem, log_t: tuple[float, ...], loss: str) -> list[tuple[Any, list[Any]]]:
    """(log of the Frobenius norm, margins) at each time, by Taylor series of order 26 in u = log(1 + t), 40 digits.

    State: coefficients beta with W = sum beta_j x_j, beta' = pi (Lemma F.1: pi_t = a_t (<d_t, r> - |r|^2), or a_t for
    cross-entropy), margins m = K beta. All series are built order by order from products alone.
    """
    order, length = 26, mpmath.mpf(1) / 5
    with mpmath.workdps(40):
        exact = [
            (i, [mpmath.mpf(float(a)) - mpmath.mpf(float(b)) for a, b in zip(keys[y], keys[t], strict=True)],
             [mpmath.mpf(float(a)) - mpmath.mpf(float(b)) for a, b in zip(values[t], values[y], strict=True)])
            for i, (keys, values, y) in enumerate(zip(problem.keys, problem.values, problem.match, strict=True))
            for t in range(len(keys)) if t != y
        ]  # fmt: skip
        queries = [[mpmath.mpf(float(x)) for x in q] for q in problem.queries]
        N = range(len(exact))
        K = [[mpmath.fdot(exact[j][1], exact[k][1]) * mpmath.fdot(queries[exact[j][0]], queries[exact[k][0]])
              for k in N] for j in N]  # fmt: skip
        own = [[k for k in N if exact[k][0] == exact[j][0]] for j in N]
        D = [[mpmath.fdot(exact[j][2], exact[k][2]) for k in N] for j in N]
        beta, u = [mpmath.mpf(0)] * len(exact), mpmath.mpf(0)
        found = []
        for target in log_t:
            end = mpmath.log1p(mpmath.exp(mpmath.mpf(target)))
            while u < end:
                h = min(length, end - u)
                beta = _taylor_step(K, D, own, beta, u, h, order, loss)
                u += h
            m = [mpmath.fdot(row, beta) for row in K]
            norm = mpmath.sqrt(mpmath.fdot(beta, m))
            found.append((mpmath.log(norm), m))
        return found


def _taylor_step(K: Any, D: Any, own: Any, beta: Any, u: Any, h: Any, order: int, loss: str) -> list[Any]:
    N = range(len(beta))
    b = [[x] for x in beta]
    m: list[list[Any]] = [[] for _ in N]
    E: list[list[Any]] = [[] for _ in N]
    A: list[list[Any]] = [[] for _ in N]
    pull: list[list[Any]] = [[] for _ in N]
    pi: list[list[Any]] = [[] for _ in N]
    time = [mpmath.exp(u)]

    def product(x: list[Any], y: list[Any], k: int) -> Any:
        return mpmath.fdot(x[: k + 1], y[k::-1])

    for k in range(order):
        for j in N:
            m[j].append(mpmath.fdot(K[j], [b[i][k] for i in N]))
        for j in N:
            first = mpmath.exp(-m[j][0])
            E[j].append(
                first if k == 0 else -mpmath.fsum(i * m[j][i] * E[j][k - i] for i in range(1, k + 1)) / k
            )
        for j in N:
            total = [mpmath.fsum(E[i][q] for i in own[j]) for q in range(k + 1)]
            tail = mpmath.fsum(total[i] * A[j][k - i] for i in range(1, k + 1))
            A[j].append((E[j][k] - tail) / (1 + total[0]))
        if loss == "mse":
            for j in N:
                pull[j].append(mpmath.fsum(D[j][i] * A[i][k] for i in own[j]))
            for j in N:
                square = [mpmath.fsum(product(A[i], pull[i], q) for i in own[j]) for q in range(k + 1)]
                pi[j].append(product(A[j], [p - s for p, s in zip(pull[j], square, strict=True)], k))
        else:
            for j in N:
                pi[j].append(A[j][k])
        for j in N:
            b[j].append(product(time, pi[j], k) / (k + 1))
        time.append(time[-1] / (k + 1))
    return [mpmath.polyval(series[::-1], h) for series in b]


@pytest.mark.parametrize("loss", LOSSES)
def test_norm_and_margins_agree_with_forty_digits(loss: str) -> None:
    """A draw without A4 for the squared error: some coefficients are negative on the way."""
    problem = template(1, T=4, d=3, n=2)
    flow = gradient_flow(problem, log_t=TIMES, loss=loss)
    for r, (log_norm, expected) in enumerate(taylor_flow(problem, TIMES, loss)):
        assert abs(np.log(np.linalg.norm(flow.W[r])) - float(log_norm)) <= 1e-8 * abs(float(log_norm))
        for ours, theirs in zip(flow.margins[r][problem.rivals], expected, strict=True):
            assert ours == pytest.approx(float(theirs), rel=1e-8)
    assert flow.valid_until is None


def test_both_coordinates_agree() -> None:
    problem = template(0, T=5, d=6, n=4)
    start = np.random.default_rng(0).standard_normal((6, 6))
    flows = [
        gradient_flow(problem, log_t=TIMES, W0=start, coordinates=coordinates)
        for coordinates in ("span", "full")
    ]
    # Each is right to about 1e-10 of its size.
    assert np.abs(flows[0].W - flows[1].W).max() <= 1e-8 * np.abs(flows[0].W).max()
    # Outside the span nothing moves.
    rows = problem.constraints().dense()
    moved = (flows[0].W[-1] - start).ravel()
    rest = moved - rows.T @ np.linalg.lstsq(rows.T, moved, rcond=None)[0]
    assert np.linalg.norm(rest) <= 1e-9 * np.linalg.norm(moved)


@pytest.mark.parametrize("loss", LOSSES)
def test_descent_in_small_steps_tends_to_the_flow(loss: str) -> None:
    """Explicit Euler: the distance at a fixed time halves with the step."""
    problem = template(2)
    flow = gradient_flow(problem, log_t=[np.log(20.0)], loss=loss)
    gaps = []
    for step in (2e-3, 1e-3):
        steps = round(20 / step)
        gaps.append(
            np.linalg.norm(run(problem, loss=loss, step=step, steps=steps, record=[steps]).W[-1] - flow.W[0])
        )
    assert gaps[0] < 1e-3 * np.linalg.norm(flow.W[0])
    assert gaps[1] / gaps[0] == pytest.approx(0.5, abs=0.01)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(LOSSES))
def test_recorded_quantities_belong_to_the_recorded_matrices(seed: int, loss: str) -> None:
    problem = template(seed, T=4, d=6, n=3)
    flow = gradient_flow(problem, log_t=[-2.0, 3.0, 40.0], loss=loss)
    assert np.abs(flow.margins - margins(problem, flow.W)).max() <= 1e-9 * (1 + np.abs(flow.margins).max())
    assert (np.diff(flow.log_loss) < 0).all()
    assert len(flow) == 3
    # What is asked for in between changes nothing by more than the integrator's tolerance.
    alone = gradient_flow(problem, log_t=[40.0], loss=loss)
    assert np.abs(alone.W[0] - flow.W[2]).max() <= 1e-9 * np.abs(flow.W[2]).max()


def test_far_beyond_any_float_time() -> None:
    problem = template(0)
    flow = gradient_flow(problem, log_t=[100.0, 690.0, 2000.0])
    assert flow.valid_until is None
    norm = 1 / max_margin(problem.constraints()).margin_upper
    slope = np.diff(np.linalg.norm(flow.W, axis=(1, 2))) / np.diff(flow.log_t)
    assert slope[1] == pytest.approx(norm / 2, rel=1e-4)
    # t L -> ||W_hat||^2 / 4
    assert flow.log_loss[2] + 2000 == pytest.approx(np.log(norm**2 / 4), abs=1e-3)


def _distance_from_correction(problem: Problem, log_t: list[float]) -> Any:
    """Largest |m - (1/2) log t + log p| on the support, at each time."""
    separator = max_margin(problem.constraints())
    support, offsets = correction_margins(problem, separator.active, separator.dual, 1.0)
    flow = gradient_flow(problem, log_t=log_t)
    assert flow.valid_until is None
    return np.abs(flow.margins - flow.log_t[:, None, None] / 2 - offsets)[:, support].max(axis=1)


def test_supporting_margins_at_t_1e30() -> None:
    """n = 6, T = 8, d = 12. How soon margins come to their limit is the draw's own rate.

    Seed 93 is the first of 400 whose slowest power of t is above 0.15 (`support_rates`, slack): 1e30^-0.17 is below
    1e-5. On the first draws the power is about 0.01, and the same limit is reached at log t of thousands.
    """
    assert _distance_from_correction(template(93, T=8, d=12, n=6, std=1.0), [30 * np.log(10)])[0] < 1e-6
    for seed in range(2):
        distance = _distance_from_correction(template(seed, T=8, d=12, n=6, std=1.0), [69.0, 690.0, 1400.0])
        assert (np.diff(distance) < 0).all()
        assert distance[2] < 0.1 * distance[0]


def test_a_finite_minimum_is_kept_and_marked() -> None:
    """Target noise: the loss has a minimum at finite W, from which the gradient is lost in its rounding."""
    problem = template(0, T=5, d=16, n=8)
    noise = 0.05 * np.random.default_rng(0).standard_normal(problem.targets.shape)
    noisy = Problem(problem.keys, problem.queries, problem.values, problem.match, problem.targets + noise)
    flow = gradient_flow(noisy, log_t=[2.0, 6.0, 8.0, 16.0, 24.0])
    assert flow.valid_until is not None
    late = flow.log_t >= flow.valid_until
    assert late.any()
    # Slow directions may still creep where the loss no longer changes.
    assert np.ptp(flow.log_loss[late]) < 1e-2


def test_an_absurd_time_is_marked_and_not_hung_on() -> None:
    flow = gradient_flow(template(0, T=3, d=4, n=1), log_t=[100.0, 1e7])
    assert flow.valid_until in (None, 1e7)
    assert np.isfinite(flow.W).all()


def test_nothing_moves_without_a_gradient() -> None:
    problem = Problem(np.eye(2)[None], np.ones((1, 2)), np.ones((1, 2, 1)), np.array([0]))
    flow = gradient_flow(problem, log_t=[0.0, 50.0], W0=np.eye(2))
    assert np.array_equal(flow.W, [np.eye(2), np.eye(2)])
    assert flow.valid_until == 0.0
    assert np.array_equal(flow.log_grad_norm, [-np.inf, -np.inf])


@pytest.mark.parametrize("factor", [-5.0, -60.0])
def test_a_start_at_the_wrong_keys_turns_round(factor: float) -> None:
    """A plateau with the wrong keys selected at a gap up to 60 is left after a time of the order of e^gap."""
    problem = template(3, T=3, d=5, n=1)
    start = factor * max_margin(problem.constraints()).W
    flow = gradient_flow(problem, log_t=np.linspace(-5, 250, 60), W0=start)
    assert flow.valid_until is None
    assert flow.margins[0][problem.rivals].min() < factor / 2
    assert flow.margins[-1][problem.rivals].min() > 30
    leaves = flow.log_t[np.argmax(flow.log_loss < flow.log_loss[0] - 1)]
    assert leaves == pytest.approx(-factor, abs=15)


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**20])
def test_units_only_rescale_time(scale: float) -> None:
    """Keys times s make W/s and time s^-2: the same flow to rounding."""
    problem = template(4)
    scaled = Problem(scale * problem.keys, problem.queries, problem.values, problem.match)
    one = gradient_flow(problem, log_t=[10.0, 60.0])
    other = gradient_flow(scaled, log_t=np.array([10.0, 60.0]) - 2 * np.log(scale))
    assert np.abs(one.margins - other.margins).max() < 1e-8


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"log_t": []}, "log_t must be a non-empty"),
        ({"log_t": [2.0, 1.0]}, "strictly increasing"),
        ({"log_t": [1.0, 1.0]}, "strictly increasing"),
        ({"log_t": [np.nan]}, "log_t"),
        ({"log_t": [np.inf]}, "log_t"),
        ({"log_t": 3.0}, "log_t"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"W0": np.zeros((2, 2))}, "W0"),
        ({"W0": np.full((16, 16), np.nan)}, "W0"),
        ({"coordinates": "polar"}, "coordinates must be one of"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], match: str) -> None:
    how: dict[str, Any] = {"log_t": [1.0], **change}
    with pytest.raises(InvalidInput, match=match):
        gradient_flow(template(0), **how)
