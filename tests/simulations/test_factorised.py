"""Descent on the factors of W = W_K^T W_Q: compiled against autograd, and against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run
from marginlab.simulations.factorised import run_factorised, small_factors
from marginlab.simulations.trajectory import RULES
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import MatchCopyTask, sample
from marginlab.theory.match_copy.losses import LOSSES, cross_entropy, squared_error


def template(seed: int) -> Problem:
    return Problem.from_match_copy(sample(MatchCopyTask.template(T=4, d=8), 6, seed))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("d_h", [1, 5, 8])
def test_the_compiled_engine_follows_autograd(loss: str, rule: str, d_h: int) -> None:
    problem = template(0)
    W_K, W_Q = small_factors(8, d_h, 0.3, 1)
    how = {"loss": loss, "rule": rule, "step": 1e-2, "steps": 150, "record": [0, 1, 40, 150]}
    ours = run_factorised(problem, W_K0=W_K, W_Q0=W_Q, **how)
    reference = run_factorised(problem, W_K0=W_K, W_Q0=W_Q, **how, engine="torch")
    # 150 steps with gradients that differ by 1e-13 of their norm, on weights of order one.
    assert np.abs(ours.W_K - reference.W_K).max() < 1e-10
    assert np.abs(ours.W_Q - reference.W_Q).max() < 1e-10
    assert np.abs(ours.log_grad_norm - reference.log_grad_norm).max() < 1e-9
    assert np.isnan(reference.error_bound).all()
    assert (ours.error_bound < 1e-9).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_step_descends_along_finite_differences(loss: str) -> None:
    problem = template(2)
    W_K, W_Q = small_factors(8, 3, 0.5, 4)
    value = {"mse": squared_error, "cross-entropy": cross_entropy}[loss]
    path = run_factorised(problem, W_K0=W_K, W_Q0=W_Q, loss=loss, step=1.0, steps=1, record=[0, 1])
    moves = path.W_K[1] - path.W_K[0], path.W_Q[1] - path.W_Q[0]
    for which, size in ((0, W_K), (1, W_Q)):
        for index in ((0, 0), (2, 5), (1, 7)):
            h = np.zeros_like(size)
            h[index] = 1e-5
            ends = [
                float(value(problem, (W_K + (which == 0) * s * h).T @ (W_Q + (which == 1) * s * h)))
                for s in (1, -1)
            ]
            slope = (ends[0] - ends[1]) / 2e-5
            # Central differences: an error of order h^2 with third derivatives of order one.
            assert moves[which][index] == pytest.approx(-slope, abs=1e-8)
    joint = np.sqrt(sum(np.sum(move**2) for move in moves))
    assert path.log_grad_norm[0] == pytest.approx(np.log(joint), abs=1e-12)


def test_equal_starts_keep_their_balance() -> None:
    """W_K W_K^T - W_Q W_Q^T is conserved by the flow, and by descent up to the square of its step."""
    problem = template(1)
    W_K, W_Q = small_factors(8, 8, 0.2, 0)
    drifts = []
    for step, steps in ((1e-2, 100), (1e-3, 1_000)):
        path = run_factorised(problem, W_K0=W_K, W_Q0=W_Q, step=step, steps=steps, record=[0, steps])
        balance = path.W_K @ np.swapaxes(path.W_K, 1, 2) - path.W_Q @ np.swapaxes(path.W_Q, 1, 2)
        drifts.append(np.abs(balance[1] - balance[0]).max())
    assert drifts[1] < drifts[0] / 5


def test_trusted_far_beyond_the_gap_of_37() -> None:
    problem = template(0)
    W_K, W_Q = small_factors(8, 8, 1e-2, 0)
    path = run_factorised(
        problem, W_K0=W_K, W_Q0=W_Q, rule="normalised", step=1e-2, steps=20_000, record=[20_000]
    )
    assert path.valid_until is None
    assert path.min_margin[0] > 1000
    assert path.log_loss[0] < -2000


def test_the_merged_model_is_another_dynamics() -> None:
    problem = template(0)
    W_K, W_Q = small_factors(8, 8, 0.3, 0)
    apart = run_factorised(problem, W_K0=W_K, W_Q0=W_Q, step=0.1, steps=100, record=[100])
    merged = run(problem, W0=W_K.T @ W_Q, step=0.1, steps=100, record=[100])
    assert np.linalg.norm(apart.W - merged.W) > 1e-2


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"W_K0": np.zeros((2, 3))}, "W_K0"),
        ({"W_Q0": np.zeros((3, 8))}, "W_Q0"),
        ({"W_K0": np.full((2, 8), np.nan)}, "W_K0"),
        ({"engine": "naive"}, "engine must be one of numba, torch"),
        ({"rule": "adam"}, "rule must be one of"),
        ({"step": 0.0}, "step"),
        ({"W_K0": np.full((2, 8), 1e200), "W_Q0": np.full((2, 8), 1e200)}, "finite"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], match: str) -> None:
    how: dict[str, Any] = {
        "W_K0": np.ones((2, 8)),
        "W_Q0": np.ones((2, 8)),
        "step": 0.1,
        "steps": 1,
        "record": 1,
    }
    with pytest.raises(InvalidInput, match=match):
        run_factorised(template(0), **how | change)


def test_zero_factors_stay() -> None:
    path = run_factorised(
        template(0),
        W_K0=np.zeros((2, 8)),
        W_Q0=np.zeros((2, 8)),
        rule="loss-scaled",
        step=0.1,
        steps=3,
        record=[3],
    )
    assert not path.W.any()
    assert path.log_grad_norm[0] == -np.inf
