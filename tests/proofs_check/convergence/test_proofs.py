"""What is proved must hold on runs, and what is false must not be proved."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from marginlab.proofs_check.convergence import ConvergenceProof, first_proof, prove_convergence
from marginlab.proofs_check.separators import alignment, max_margin
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import MatchCopyTask, error_radii, feature_radii, sample, smallest_alignments
from marginlab.theory.match_copy.geometry import hull_distances
from marginlab.theory.match_copy.losses import squared_error

STEP = 1e-3

#: Relative rounding of a float64 run and of the bounds' own float64 evaluation, far above both.
ROUNDING = 1e-9


def test_bounds_hold_along_the_run(half_space: tuple[Problem, Any, int, ConvergenceProof]) -> None:
    problem, run_, start, proof = half_space
    assert (proof.loss_to_zero, proof.direction, proof.norm_growth, proof.failed) == (True, True, True, ())
    separator = max_margin(problem.constraints())
    assert proof.constants["separator_norm"][0] <= 1 / separator.margin_upper * (1 + ROUNDING)
    assert proof.constants["separator_norm"][1] >= 1 / separator.margin_upper
    losses, norms = np.exp(run_.log_loss), np.linalg.norm(run_.W, axis=(1, 2))
    cosines = alignment(run_.W[start:], separator)
    for k, r in enumerate(range(start, len(losses))):
        later = int(run_.steps[r] - run_.steps[start])
        low, high = proof.loss_bounds(later)
        assert low * (1 - ROUNDING) <= losses[r] <= high * (1 + ROUNDING)
        low, high = proof.norm_bounds(later)
        assert low * (1 - ROUNDING) <= norms[r] <= high * (1 + ROUNDING)
        assert cosines.one_minus_lower[k] <= proof.one_minus_cos_bound(float(norms[r]))
        assert run_.min_margin[r] >= proof.constants["margin"][0] * (1 - ROUNDING)
    # Along consecutive steps: squared gradients and the path's length.
    dense = np.flatnonzero(np.diff(run_.steps) == 1)
    dense = dense[dense >= start]
    length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(run_.W[dense], axis=0), axis=(1, 2)))]
    assert (length <= (norms[dense] + proof.constants["excess"][1]) * (1 + ROUNDING)).all()
    assert np.exp(2 * run_.log_grad_norm[dense]).sum() <= proof.constants["squared_gradients"][1]


def test_the_first_proof_is_the_first(half_space: tuple[Problem, Any, int, ConvergenceProof]) -> None:
    problem, run_, start, _ = half_space
    assert start > 0
    before = prove_convergence(problem, run_.W[start - 1], STEP)
    assert not before.explicit
    assert any("theta" in text or "step B L" in text for text in before.failed)


def test_constants_agree_with_float64(half_space: tuple[Problem, Any, int, ConvergenceProof]) -> None:
    problem, run_, start, proof = half_space
    W = run_.W[start]
    g, R, X = smallest_alignments(problem), error_radii(problem), feature_radii(problem)
    loss = float(squared_error(problem, W))
    expected = {
        "loss": loss,
        "alignment": g.min(),
        "smoothness": 4 * (R**2 * X**2 / g).max(),
        "theta": np.sqrt(2 * loss / (g**3 / R**4).min()),
        "x": np.sqrt(2 * loss / g.min()),
        "start_norm": np.linalg.norm(W),
    }
    for name, value in expected.items():
        low, high = proof.constants[name]
        assert low <= high
        assert low == pytest.approx(value, rel=1e-10), name


def test_flow_needs_no_step(half_space: tuple[Problem, Any, int, ConvergenceProof]) -> None:
    problem, run_, start, _ = half_space
    flow = first_proof(problem, run_.W, None)
    assert flow is not None
    assert flow[0] <= start
    assert flow[1].constants["c0"] == (0.0, 0.0)
    assert "gradient flow" in flow[1].statement


def test_without_half_space_only_the_loss(without_a4: Problem) -> None:
    run_ = run(without_a4, step=STEP, steps=3_000, record=400)
    found = first_proof(without_a4, run_.W, STEP, "loss_to_zero")
    assert found is not None
    index, proof = found
    assert proof.kind == "identifiable"
    assert (proof.direction, proof.norm_growth) == (False, False)
    assert any(text.startswith("A4") for text in proof.failed)
    losses = np.exp(run_.log_loss)
    for r in range(index, len(losses)):
        assert losses[r] <= proof.loss_bounds(float(run_.steps[r] - run_.steps[index]))[1] * (1 + ROUNDING)
    assert first_proof(without_a4, run_.W, STEP, "direction") is None
    with pytest.raises(InvalidInput, match="no explicit bound of the norm"):
        proof.norm_bounds(1.0)
    gamma = min(d.lower for d in hull_distances(without_a4))
    assert proof.constants["hull_distance"][0] == pytest.approx(gamma, rel=1e-9)


def test_the_integer_instance(integers: Problem) -> None:
    """Proved: the loss (gamma^2/2 = 5/11 > L(0) = 2/9). Not proved, and false: the direction."""
    for step in (1e-3, None):
        proof = prove_convergence(integers, np.zeros((3, 3)), step)
        assert (proof.loss_to_zero, proof.direction) == (True, False)
        low, high = proof.constants["loss"]
        assert low <= 2 / 9 <= high
        assert proof.constants["hull_distance"][0] ** 2 / 2 == pytest.approx(5 / 11, rel=1e-12)
        assert proof.constants["equal_margins_norm"][0] ** 2 == pytest.approx(10, rel=1e-12)
    large = prove_convergence(integers, np.zeros((3, 3)), 1e3)
    assert not large.loss_to_zero
    assert any("step B_gamma L <= 1" in text for text in large.failed)


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_a_spurious_minimum_is_not_proved_away(delta: float) -> None:
    """A1-A3 hold, and flow from 0 stops at a local minimum: nothing may be proved at 0, nor where it stops."""
    tokens = np.array(
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [-1 - 0.99 * delta**0.5, delta**0.5 * (1 - 0.99**2) ** 0.5]]
    )
    problem = Problem(tokens[None, :3], tokens[None, 0], tokens[None, 1:], [0])
    for W in (np.zeros((2, 2)), run(problem, step=0.1, steps=2_000, record=1).W[-1]):
        for step in (0.1, None):
            proof = prove_convergence(problem, W, step)
            assert (proof.loss_to_zero, proof.direction, proof.norm_growth) == (False, False, False)
            assert proof.document is None
            assert proof.failed
    with pytest.raises(InvalidInput, match="nothing is proved"):
        proof.write("never.json")


def test_inexact_targets_are_not_covered(without_a4: Problem) -> None:
    p = without_a4
    noisy = Problem(p.keys, p.queries, p.values, p.match, p.targets + 1e-9)
    proof = prove_convergence(noisy, np.zeros((16, 16)), STEP)
    assert not proof.loss_to_zero
    assert "exact targets" in proof.failed[0]


@pytest.mark.parametrize(
    ("W", "step", "match"),
    [
        (np.zeros((2, 2)), 1e-3, "W must"),
        (np.full((16, 16), np.nan), 1e-3, "W"),
        (np.zeros((16, 16)), 0.0, "step"),
        (np.zeros((16, 16)), -1.0, "step"),
        (np.zeros((16, 16)), np.inf, "step"),
    ],
)
def test_bad_input(without_a4: Problem, W: Any, step: float, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        prove_convergence(without_a4, W, step)


def test_unknown_conclusion(without_a4: Problem) -> None:
    with pytest.raises(InvalidInput, match="no conclusion 'failed'"):
        first_proof(without_a4, np.zeros((1, 16, 16)), STEP, "failed")


def test_large_margins_lose_nothing() -> None:
    """A margin of 1000: the loss is e^-2000, and the proof as good as any."""
    problem = Problem.from_match_copy(
        sample(MatchCopyTask.template(T=4, d=32, coordinate_std=1.0), n=8, seed=0)
    )
    W = 1000 * max_margin(problem.constraints()).W
    proof = prove_convergence(problem, W, 1e-3)
    assert proof.explicit
    assert proof.constants["margin"][0] > 995


def _hessian_ratio(problem: Problem, W: Any, u: Any) -> Any:
    """Second derivative of the loss along u divided by B L |u|^2, by high-precision differences."""
    with mpmath.workdps(60):
        g, R, X = smallest_alignments(problem), error_radii(problem), feature_radii(problem)
        B = mpmath.mpf(float(4 * (R**2 * X**2 / g).max()))
        h = mpmath.mpf(10) ** -15

        def loss(s: Any) -> Any:
            total = mpmath.mpf(0)
            M = [[mpmath.mpf(float(a)) + s * mpmath.mpf(float(b)) for a, b in zip(r, q, strict=True)]
                 for r, q in zip(W, u, strict=True)]  # fmt: skip
            for keys, q, values, y in zip(
                problem.keys, problem.queries, problem.values, problem.match, strict=True
            ):
                turned = [mpmath.fdot(row, q.tolist()) for row in M]
                scores = [mpmath.fdot(k.tolist(), turned) for k in keys]
                weights = [mpmath.exp(s_ - scores[y]) for s_ in scores]
                r = [
                    mpmath.fdot(weights, [float(v[j]) - mpmath.mpf(float(values[y][j])) for v in values])
                    / mpmath.fsum(weights)
                    for j in range(values.shape[1])
                ]
                total += mpmath.fdot(r, r) / 2
            return total

        second = (loss(h) - 2 * loss(mpmath.mpf(0)) + loss(-h)) / h**2
        return float(second / (B * loss(mpmath.mpf(0)) * mpmath.mpf(float(np.sum(u**2)))))


@pytest.mark.parametrize("seed", range(4))
def test_the_hessian_is_bounded_by_the_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = Problem.from_match_copy(
        sample(MatchCopyTask.template(T=4, d=24, coordinate_std=1.0), n=2, seed=seed)
    )
    assert smallest_alignments(problem).min() > 0
    features = problem.constraints().combine(np.ones(len(problem.constraints())))
    for scale, u in ((0.01, features), (0.05, rng.standard_normal((24, 24)))):
        W = scale * rng.standard_normal((24, 24))
        assert -1 <= _hessian_ratio(problem, W, u) <= 1


def test_the_bound_of_the_hessian_is_attained() -> None:
    """One distractor, q -> 0, along its own feature: half of B would be too small."""
    problem = Problem([[[1.0, 0.0], [0.0, 0.0]]], [[1.0, 0.0]], [[[0.0], [1.0]]], [0])
    W = np.array([[20.0, 0.0], [0.0, 0.0]])
    ratio = _hessian_ratio(problem, W, np.array([[1.0, 0.0], [0.0, 0.0]]))
    assert 0.99 < ratio <= 1
