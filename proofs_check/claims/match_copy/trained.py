"""Trained instances of the minimal model: the paper's run, its variations, and what is certified about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates import Certificate, CosineEnclosure, alignment, certify
from marginlab.proofs_check.claims.match_copy.problems import problem_of, settled_problem
from marginlab.proofs_check.engine.claim import CannotForm, Instance
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.separators import MaxMargin, NotSeparable, max_margin
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run as descend
from marginlab.theory.validation import Float, Int

#: The paper's own run: d = 16, T = 4, n = 8, unit-variance tokens, full-batch GD on eq. (19) from zero.
PAPER_DATA = {"kind": "template", "T": 4, "d": 16, "n": 8, "coordinate_std": 1.0}
PAPER_DESCENT = {"loss": "mse", "rule": "gd", "step": 1e-3, "steps": 40_000, "record": 200, "engine": "numba"}

#: The same, drawn until A4 holds and every constraint off the support has separator margin at least 1.3 (or all
#: constraints support). A token with slack theta keeps a share t^(-theta/2) of the gradient, so that with less slack
#: 40 000 steps decide neither A7 nor A9. The condition is on the data, before anything is trained.
SETTLED_DATA = {**PAPER_DATA, "kind": "settled", "slack": 0.3}

#: Fits are read off the last decade of the paper's run.
LAST_DECADE = (4_000.0, 40_000.0)

#: Seeds 0..7 by default.
SEEDS = 8


class TrainedRun:
    """A problem, its recorded trajectory, and the certified separators of its constraints.

    Attributes
    ----------
    problem : Problem
    steps : (R,) array, from 1 on
        Steps of descent, or times of a flow.
    W : (R, d, d) array
    log_loss, log_grad_norm, min_margin : (R,) arrays
    valid_until : float or None
        First step (or time) whose gradient is past the trusted range of its engine.
    step : float
        Step size; 1 for a flow.
    """

    def __init__(self, problem: Problem, arrays: Mapping[str, np.ndarray], step: float) -> None:
        self.problem = problem
        self.step = step
        self.steps: Int = arrays["steps"]
        self.W: Float = arrays["W"]
        self.log_loss: Float = arrays["log_loss"]
        self.log_grad_norm: Float = arrays["log_grad_norm"]
        self.min_margin: Float = arrays["min_margin"]
        last = float(arrays["valid_until"])
        self.valid_until = None if last < 0 else last

    @classmethod
    def untrained(cls, problem: Problem) -> TrainedRun:
        """The problem at W = 0, for claims about its constraints alone."""
        d = problem.shape[2]
        zero = {name: np.zeros(1) for name in ("steps", "log_loss", "log_grad_norm", "min_margin")}
        return cls(problem, {**zero, "W": np.zeros((1, d, d)), "valid_until": np.array(-1)}, step=1.0)

    @property
    def norm(self) -> Float:
        """||W||_F along the run, shape (R,)."""
        return np.linalg.norm(self.W, axis=(-2, -1))

    @cached_property
    def separator(self) -> MaxMargin:
        """Max-margin separator (11), by the working-set oracle.

        Raises
        ------
        CannotForm
            The margin constraints cannot be satisfied.
        """
        return self._oracle("working-set")

    @cached_property
    def reviewer(self) -> MaxMargin:
        """The same separator by cvxpy with Clarabel, an oracle of another family."""
        return self._oracle("cvxpy")

    @cached_property
    def certificate(self) -> Certificate:
        """Rigorous enclosure of the separator's margin and direction."""
        return certify(self.problem.constraints(), self.separator)

    @cached_property
    def cosines(self) -> CosineEnclosure:
        """Enclosure of cos(W, separator) along the run, from the certificate."""
        return alignment(self.W, self.certificate)

    @cached_property
    def reviewed_cosines(self) -> CosineEnclosure:
        """The same enclosure from the reviewing oracle's duality gap."""
        return alignment(self.W, self.reviewer)

    def _oracle(self, name: str) -> MaxMargin:
        try:
            return max_margin(self.problem.constraints(), oracle=name)
        except NotSeparable as reason:
            raise CannotForm(f"no separator exists: {reason}") from None


def descended(config: Mapping[str, Any], seed: int | None) -> dict[str, np.ndarray]:
    """Recorded trajectory of the run that `config` (keys data, descent, root) describes, as arrays."""
    options = dict(config["descent"])
    trajectory = descend(problem_of(config["data"], config["root"], seed), **options)
    later = trajectory.steps > 0
    return {
        "steps": trajectory.steps[later],
        "W": trajectory.W[later],
        "log_loss": trajectory.log_loss[later],
        "log_grad_norm": trajectory.log_grad_norm[later],
        "min_margin": trajectory.min_margin[later],
        "valid_until": np.array(-1 if trajectory.valid_until is None else trajectory.valid_until),
    }


def trained(
    run: Run, data: Mapping[str, Any], descent: Mapping[str, Any], seed: int | None, label: str
) -> Instance:
    """Instance of one trained run; computed once per run of the engine, and shared by the claims."""
    config = {"data": data, "descent": descent, "root": run.config.root_seed}

    def make() -> Instance:
        arrays = run.recall(descended, config, seed)
        object_ = TrainedRun(problem_of(data, run.config.root_seed, seed), arrays, float(descent["step"]))
        return Instance(label=label, data=object_, seed=seed, config=config)

    return run.once(("trained", label, repr(config), seed), make)


def settled_runs(run: Run) -> Iterable[Instance]:
    """The paper's run on draws with A4 and slack, for every seed; rejected draws are counted in the label."""
    for seed in run.seeds(SEEDS):
        rejected = settled_problem(SETTLED_DATA, run.config.root_seed, seed)[1]
        yield trained(run, SETTLED_DATA, PAPER_DESCENT, seed, f"seed {seed}, {rejected} draws rejected")


def paper_runs(run: Run) -> Iterable[Instance]:
    """The paper's run for every seed."""
    return [trained(run, PAPER_DATA, PAPER_DESCENT, s, f"seed {s}") for s in run.seeds(SEEDS)]
