"""A1-A9 on instances where the answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

from marginlab.proofs_check.claims.match_copy import assumptions
from marginlab.proofs_check.claims.match_copy.broken import INTEGERS_DATA
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Instance, Status
from marginlab.simulations.attention import Problem


def _instance(problem: Problem, **arrays: np.ndarray) -> Instance:
    d = problem.shape[2]
    steps = np.unique(np.round(np.geomspace(1, 40_000, 120)).astype(int))
    full = {
        "steps": steps,
        "W": np.zeros((len(steps), d, d)),
        "log_loss": -np.log(steps),
        "log_grad_norm": -np.log(steps),
        "min_margin": np.zeros(len(steps)),
        "valid_until": np.array(-1),
        **arrays,
    }
    return Instance(label="by hand", data=TrainedRun(problem, full, 1e-3))


def _problem(values: list[list[float]], keys: list[list[float]] | None = None) -> Problem:
    """One sample whose match is the first key; the query is (1, 0)."""
    keys = keys or [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
    return Problem(np.array([keys]), np.array([[1.0, 0.0]]), np.array([values]), np.array([0]))


def test_the_integer_instance_keeps_a1_to_a3_and_breaks_a4_by_minus_ten() -> None:
    instance = _instance(problem_of(INTEGERS_DATA, 0, None))
    assert assumptions.A1.check(instance).status is Status.HOLDS
    assert assumptions.A2.check(instance).status is Status.HOLDS
    assert assumptions.A3.check(instance).status is Status.HOLDS
    answer = assumptions.A4.check(instance)
    assert (answer.status, answer.value) == (Status.FAILS, -10.0)


def test_a3_fails_for_a_target_between_two_values_and_holds_outside() -> None:
    inside = _problem([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    outside = _problem([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    assert assumptions.A3.check(_instance(inside)).status is Status.FAILS
    answer = assumptions.A3.check(_instance(outside))
    assert answer.status is Status.HOLDS
    assert answer.value == pytest.approx(1.0, abs=1e-12)


def test_a4_at_a_right_angle_fails_since_it_is_strict() -> None:
    right_angle = _problem([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    acute = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert assumptions.A4.check(_instance(right_angle)).status is Status.FAILS
    assert assumptions.A4.check(_instance(acute)).status is Status.HOLDS


def test_a4_within_rounding_is_undecided() -> None:
    tiny = np.sqrt(2.0) - np.sqrt(np.float64(2.0) * (1 - 2.0**-52))  # the two terms cancel to rounding
    nearly = _problem([[0.0, 0.0], [1.0, 1.0], [1.0, -1.0 + tiny]])
    assert assumptions.A4.check(_instance(nearly)).status is Status.UNDECIDED


def test_a1_fails_where_the_matched_key_stands_twice() -> None:
    doubled = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], keys=[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    answer = assumptions.A1.check(_instance(doubled))
    assert answer.status is Status.FAILS
    assert "separator" in answer.witness


@pytest.mark.parametrize(
    ("power", "status"),
    [
        (-1.0, Status.HOLDS),
        (-0.51, Status.HOLDS),
        (-0.3, Status.UNDECIDED),
        (-0.01, Status.FAILS),
        (0.1, Status.FAILS),
    ],
)
def test_a5_by_the_power_of_the_loss(power: float, status: Status) -> None:
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    steps = np.unique(np.round(np.geomspace(1, 40_000, 120)).astype(int))
    instance = _instance(problem, log_loss=power * np.log(steps))
    assert assumptions.A5.check(instance).status is status


@pytest.mark.parametrize(
    ("power", "status"),
    [(-2.0, Status.HOLDS), (-1.51, Status.HOLDS), (-1.2, Status.UNDECIDED), (-1.0, Status.FAILS)],
)
def test_a6_by_the_power_of_the_squared_gradient(power: float, status: Status) -> None:
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    steps = np.unique(np.round(np.geomspace(1, 40_000, 120)).astype(int))
    instance = _instance(problem, log_grad_norm=0.5 * power * np.log(steps))
    assert assumptions.A6.check(instance).status is status


def _along(problem: Problem, direction: np.ndarray) -> Instance:
    steps = np.unique(np.round(np.geomspace(1, 40_000, 120)).astype(int))
    return _instance(problem, W=0.5 * np.log(steps)[:, None, None] * direction)


def test_a9_fails_for_a_sample_without_support_and_by_the_power_along_the_separator() -> None:
    # Two samples with orthogonal queries: the separator's margins are all 1, but the second rival of the first
    # sample has more room. Along the separator its share decays exactly with the predicted power.
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], keys=[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    run = TrainedRun.untrained(problem)
    answer = assumptions.A9.check(_along(problem, run.separator.W))
    assert answer.status is Status.HOLDS
    assert answer.value == pytest.approx(-0.5, rel=1e-6)  # slack 1, power -1/2
    stalled = assumptions.A9.check(_along(problem, np.zeros((2, 2))))
    assert stalled.status is Status.FAILS

    unsupported = Problem(
        np.array([[[1.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [0.0, 0.0]]]),
        np.array([[1.0, 0.0], [1.0, 0.0]]),
        np.array([[[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]),
        np.array([0, 0]),
    )
    answer = assumptions.A9.check(_along(unsupported, np.eye(2)))
    assert answer.status is Status.FAILS
    assert "sample 1 has no supporting constraint" in answer.witness


@pytest.mark.parametrize(
    ("scale", "status"),
    [(0.5, Status.HOLDS), (0.3, Status.HOLDS), (0.2, Status.UNDECIDED), (0.01, Status.FAILS)],
)
def test_a9_compares_with_half_of_the_predicted_power(scale: float, status: Status) -> None:
    """One unsupported rival of slack 1: its share falls with the power -scale, and -1/2 is predicted."""
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], keys=[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    separator = TrainedRun.untrained(problem).separator.W
    answer = assumptions.A9.check(_along(problem, 2 * scale * separator))
    assert answer.status is status
    assert answer.value == pytest.approx(-scale, rel=1e-6)


def test_a9_with_almost_no_slack_is_undecided() -> None:
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], keys=[[1.0, 0.0], [0.0, 0.0], [-0.02, 0.0]])
    separator = TrainedRun.untrained(problem).separator.W
    answer = assumptions.A9.check(_along(problem, separator))
    assert answer.status is Status.UNDECIDED
    assert "too little to be told from none" in answer.witness


def test_a8_holds_below_one_half_and_is_undecided_above() -> None:
    """Two supporting rivals; where attention sits on the first, h is negative for the second."""
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [-0.9, 0.3]], keys=[[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]])
    steps = np.unique(np.round(np.geomspace(1, 40_000, 120)).astype(int))
    half = 0.5 * np.log(steps)
    for far, status in ((20.0, Status.UNDECIDED), (0.0, Status.HOLDS)):
        W = np.zeros((len(steps), 2, 2))
        W[:, 0, 0] = 0.0 if far else half
        W[:, 1, 0] = far if far else half
        answer = assumptions.A8.check(_instance(problem, W=W))
        assert answer.status is status, answer
        assert answer.value == (1.0 if far else pytest.approx(0.0, abs=0.49))


def test_a7_tells_a_settling_trajectory_from_a_wandering_one() -> None:
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    steps = np.unique(np.round(np.geomspace(1, 40_000, 120)).astype(int))
    twist = np.array([[0.0, 0.0], [1.0, 0.0]])
    # A tenth of h at most may be left to come: a slow but shrinking drift decides nothing.
    slow = _instance(problem, W=(np.log(steps) ** 0.9)[:, None, None] / 10 * twist)
    assert assumptions.A7.check(slow).status is Status.UNDECIDED
    settling = _instance(problem, W=(steps**-0.5)[:, None, None] * twist)
    wandering = _instance(problem, W=np.cosh(np.log(steps) - 6)[:, None, None] / 40 * twist)
    assert assumptions.A7.check(settling).status is Status.HOLDS
    assert assumptions.A7.check(wandering).status is Status.UNDECIDED


def test_trusted_gradient_names_the_first_untrusted_step() -> None:
    problem = _problem([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    answer = assumptions.TRUSTED.check(_instance(problem, valid_until=np.array(17)))
    assert answer.status is Status.FAILS
    assert "step 17" in answer.witness
