"""What the claims on large times measure, against brute force and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.claims.match_copy import flow_runs, measured_stability, proof_steps
from marginlab.proofs_check.claims.match_copy.domination_gaps import Spikes, summable
from marginlab.proofs_check.claims.match_copy.measured_run import partial_sums
from marginlab.proofs_check.claims.match_copy.problems import problem_of, rate_of, regular_problem
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import CannotForm, Instance, Status
from marginlab.proofs_check.separators import max_margin
from marginlab.simulations.descent import run as descend
from marginlab.theory.match_copy import attention_weights, mse_coefficients, smallest_alignments

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.05, 3), st.integers(1, 50), seeds)
def test_partial_sums_enclose_the_sum_over_every_step(power: float, first: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = first + np.concatenate([[0], np.cumsum(rng.integers(1, 40, 12))])
    value = steps.astype(np.float64) ** -power
    enclosure = partial_sums(steps, value, value)
    every = np.arange(first, steps[-1], dtype=np.float64)
    sums = np.cumsum(every ** (-power - 1))[steps[1:] - first - 1]
    assert (enclosure.lo <= sums).all()
    assert (sums <= enclosure.hi).all()
    # Each span is at most 40 steps from `first` on: the enclosure says something.
    assert (enclosure.hi / enclosure.lo)[-1] <= (1 + 40 / first) ** power * (1 + 1 / first) * (1 + 1e-9) + 1


@pytest.mark.parametrize("rest", ["none", "some"])
def test_regular_problems_are_what_they_say(rest: str) -> None:
    data = {**flow_runs.SOME_SUPPORT, "rest": rest}
    problem, rejected = regular_problem(data, 0, 0)
    again, _ = regular_problem(data, 0, 0)
    separator = max_margin(problem.constraints())
    assert rejected >= 0
    assert np.array_equal(problem.keys, again.keys)
    assert np.array_equal(problem_of(data, 0, 0).keys, problem.keys)
    assert smallest_alignments(problem).min() > 0
    assert rate_of(problem, separator, "mse") >= data["rate"]
    assert (len(separator.active) < len(problem.constraints())) == (rest == "some")


def test_a_rate_that_no_draw_has_cannot_be_formed() -> None:
    with pytest.raises(CannotForm, match=r"at least 0\.9"):
        regular_problem({**flow_runs.SOME_SUPPORT, "rate": 0.9}, 0, 0)  # weights alone give 1/2


def _run(W: np.ndarray, steps: np.ndarray, data: dict, step: float) -> TrainedRun:
    zero = np.zeros(len(steps))
    arrays = {"steps": steps, "W": W, "log_loss": zero, "log_grad_norm": zero, "min_margin": zero}
    return TrainedRun(problem_of(data, 0, 0), {**arrays, "valid_until": np.array(-1)}, step)


def test_offsets_of_a_run_and_of_the_data_agree_on_the_ray() -> None:
    """w = (1/2) log t w_hat + w_infinity, built here by least squares on the margins."""
    data = flow_runs.ALL_SUPPORT
    problem = problem_of(data, 0, 0)
    constraints = problem.constraints()
    separator = max_margin(constraints)
    steps = np.exp(np.array([50.0, 100.0]))
    wanted = flow_runs.limit_margins(problem, np.sort(separator.active), separator.dual)
    dense = np.stack([constraints.combine(row) for row in np.eye(len(constraints))]).reshape(
        len(constraints), -1
    )
    offset = np.linalg.lstsq(dense, wanted, rcond=None)[0].reshape(separator.W.shape)
    run = _run(0.5 * np.log(steps)[:, None, None] * separator.W + offset, steps, data, 1.0)
    ours, theirs = flow_runs.offset_from_data(run, "mse"), flow_runs.offset_from_run(run, "mse", 100.0)
    assert theirs.along == pytest.approx(ours.along, rel=1e-8)
    assert theirs.across == pytest.approx(ours.across, rel=1e-8)


def test_the_pull_is_the_drift_of_the_margins() -> None:
    """tau D of Lemma E.3 against the gradient itself, late on a long descent."""
    data = flow_runs.ALL_SUPPORT
    problem = problem_of(data, 0, 0)
    trajectory = descend(problem, step=1e-3, steps=20_000, record=[10_000, 20_000])
    run = _run(trajectory.W[-2:], np.array([10_000, 20_000]), data, 1e-3)
    _, u, h, p = proof_steps._residuals(run)
    pull = -proof_steps.restoring_pull(Instance(label="by hand", data=run)).mid
    # <r, change of r> of one step in the span is sum u (eta tau pi - alpha / 2), with the gradient's coefficients pi;
    # alpha / 2 = eta h_infinity p sum p, where the present h stands in D: what it still moves is another term (A7).
    pi = mse_coefficients(problem, run.W[-len(u) :])
    tau = run.steps[-len(u) :, None, None]
    kept = p * p.sum(axis=1, keepdims=True)
    drift = run.step * (u * (tau * pi - h * kept)).sum(axis=(1, 2))
    # Weights are neglected against 1 in each of the two terms that nearly cancel.
    neglected = run.step * (np.abs(u) * h * kept).sum(axis=(1, 2)) * 2 * run_weights(run)[-len(u) :]
    assert (np.abs(pull - drift) <= neglected).all()
    assert (neglected <= np.abs(pull)).all()


def run_weights(run: TrainedRun) -> np.ndarray:
    """max (1 - a_y) at each record."""
    a = attention_weights(run.problem, run.W)
    return np.where(run.problem.rivals, a, 0.0).sum(axis=-1).max(axis=-1)


def test_sparse_spikes_by_hand() -> None:
    spikes = Spikes(base=2, number=5)
    assert [tau for tau in range(1, 33) if spikes.height(tau)] == [1, 2, 4, 8, 16, 32]
    assert spikes.tail(3) == Fraction(1, 4)
    assert spikes.partial(3) == Fraction(7, 4)
    assert summable(Instance(label="by hand", data=spikes)).status is Status.HOLDS


def test_deviation_of_h_is_zero_at_its_limit_and_large_at_the_start() -> None:
    data = flow_runs.ALL_SUPPORT
    problem = problem_of(data, 0, 0)
    constraints = problem.constraints()
    separator = max_margin(constraints)
    active = np.sort(separator.active)
    limits = flow_runs.limit_margins(problem, active, separator.dual)
    weights = np.linalg.solve(constraints.gram(), limits + 100.0)
    W = np.stack([constraints.combine(np.asarray(weights, dtype=np.float64)), np.zeros(separator.W.shape)])
    value = measured_stability.coefficient_deviation(_run(W, np.array([1, 2]), data, 1.0))
    assert value.lo[0] <= value.hi[0] <= 1e-9
    assert value.lo[1] > 1e-4
