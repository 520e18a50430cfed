"""What the claims measure and predict, on trajectories that are known by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import marginlab
from marginlab.proofs_check.claims.match_copy.asymptotics import approach_to_separator
from marginlab.proofs_check.claims.match_copy.problems import least_slack, problem_of, settled_problem
from marginlab.proofs_check.claims.match_copy.rivals import constraint_sum, equal_margins
from marginlab.proofs_check.claims.match_copy.trained import (
    PAPER_DATA,
    SETTLED_DATA,
    TrainedRun,
)
from marginlab.proofs_check.engine.claim import CannotForm, Instance, Verdict
from marginlab.proofs_check.engine.judge import judge
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy.geometry import smallest_alignments

STEPS = np.unique(np.round(np.geomspace(1, 40_000, 200)).astype(int))


def _instance(problem: Problem, W: np.ndarray) -> Instance:
    zeros = np.zeros(len(STEPS))
    arrays = {"steps": STEPS, "W": W, "log_loss": zeros, "log_grad_norm": zeros, "min_margin": zeros}
    run = TrainedRun(problem, {**arrays, "valid_until": np.array(-1)}, 1e-3)
    return Instance(label="by hand", data=run, config={"descent": {"rule": "gd"}})


def _drifting(problem: Problem, slope: float, power: float) -> np.ndarray:
    """W = slope log(10 t) w_hat + an orthogonal part that makes 1 - cos decay like ||W||^-power."""
    separator = TrainedRun.untrained(problem).separator.W
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(separator.shape)
    unit = separator / np.linalg.norm(separator)
    noise -= (noise * unit).sum() * unit
    noise *= np.linalg.norm(separator) / np.linalg.norm(noise)
    size = slope * np.log(10 * STEPS)
    # tan(angle) = c size^(-power / 2), so that 1 - cos is about c^2 / 2 size^-power.
    across = 0.2 * size * (size / size[0]) ** (-power / 2)
    return size[:, None, None] * separator + across[:, None, None] * noise


@pytest.mark.parametrize(
    ("power", "verdict"), [(2.0, Verdict.PASS), (1.3, Verdict.PASS), (0.5, Verdict.FAIL), (0.0, Verdict.FAIL)]
)
def test_direction_asks_for_a_decay_at_least_like_the_norm(power: float, verdict: Verdict) -> None:
    claim = marginlab.claims()["match-copy/direction"]
    problem = problem_of(PAPER_DATA, 0, 0)
    instance = _instance(problem, _drifting(problem, 0.5, power))
    result = judge(claim, claim.measure(instance), claim.predict(instance, claim.constants))
    assert result.verdict is verdict, result.reason


@pytest.mark.parametrize(
    ("slope", "verdict"),
    [
        (0.5, Verdict.PASS),
        (0.46, Verdict.PASS),
        (0.43, Verdict.FAIL),
        (0.57, Verdict.FAIL),
        (1.0, Verdict.FAIL),
    ],
)
def test_norm_growth_tells_slopes_outside_its_stated_band(slope: float, verdict: Verdict) -> None:
    claim = marginlab.claims()["match-copy/norm-growth"]
    problem = problem_of(PAPER_DATA, 0, 0)
    instance = _instance(problem, _drifting(problem, slope, 2.0))
    result = judge(claim, claim.measure(instance), claim.predict(instance, claim.constants))
    assert result.verdict is verdict, result.reason


def test_a_reviewer_that_disagrees_decides_nothing() -> None:
    """The enclosures of the two oracles are compared, each from its own solution."""
    claim = marginlab.claims()["match-copy/direction"]
    problem = problem_of(PAPER_DATA, 0, 0)
    instance = _instance(problem, _drifting(problem, 0.5, 2.0))
    run: TrainedRun = instance.data
    assert (run.separator.oracle, run.reviewer.oracle) == ("working-set", "cvxpy")
    turned = run.reviewer.W + 1e-3 * np.linalg.norm(run.reviewer.W) * np.eye(16)
    run.__dict__["reviewer"] = replace(run.reviewer, W=turned)
    result = judge(claim, approach_to_separator(instance), claim.predict(instance, claim.constants))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "separators disagree" in result.reason


def test_settled_draws_satisfy_their_condition_and_are_the_first_that_do() -> None:
    for seed in range(3):
        problem, rejected = settled_problem(SETTLED_DATA, 0, seed)
        assert smallest_alignments(problem).min() > 0
        assert least_slack(problem) >= SETTLED_DATA["slack"]
        again, count = settled_problem(SETTLED_DATA, 0, seed)
        assert count == rejected
        assert np.array_equal(again.keys, problem.keys)
    with pytest.raises(CannotForm, match="none of 100 draws"):
        settled_problem({**SETTLED_DATA, "slack": 1e9, "n": 40}, 0, 0)


def _one_sample(keys: list[list[float]]) -> Any:
    values = np.zeros((1, len(keys), 1))
    return Problem(np.array([keys]), np.array([[1.0, 0.0]]), values, np.array([0])).constraints()


def test_equal_margins_is_the_interpolator_and_not_the_separator() -> None:
    constraints = _one_sample([[0.0, 0.0], [-1.0, 0.0], [-3.0, -1.0]])  # differences (1, 0) and (3, 1)
    rival = equal_margins(constraints)
    # m = 1 on both: w_1 = 1, 3 w_1 + w_2 = 1, so w = (1, -2), while the separator is (1, 0).
    assert np.allclose(rival.W, [[1.0, 0.0], [-2.0, 0.0]], atol=1e-12)
    assert 0 <= rival.angle_bound < 1e-12
    assert np.allclose(constraint_sum(constraints).W, [[4.0, 0.0], [1.0, 0.0]])
    with pytest.raises(CannotForm, match="dependent"):
        equal_margins(_one_sample([[0.0, 0.0], [-1.0, 0.0], [-2.0, 0.0]]))
