"""Trained instances of the minimal model: the paper's run, its variations, and what is certified about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates import Certificate, CosineEnclosure, alignment, certify
from marginlab.proofs_check.engine.claim import CannotForm, Instance
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.streams import stream
from marginlab.proofs_check.separators import MaxMargin, NotSeparable, max_margin
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run as descend
from marginlab.theory.match_copy import MatchCopyTask, sample, smallest_alignments
from marginlab.theory.validation import Float, Int

#: The paper's own run: d = 16, T = 4, n = 8, unit-variance tokens, full-batch GD on eq. (19) from zero.
PAPER_DATA = {"kind": "template", "T": 4, "d": 16, "n": 8, "coordinate_std": 1.0}
PAPER_DESCENT = {"loss": "mse", "rule": "gd", "step": 1e-3, "steps": 40_000, "record": 200, "engine": "numba"}

#: The same, drawn until A4 holds and every constraint off the support has separator margin at least 1.3 (or all
#: constraints support). A token with slack theta keeps a share t^(-theta/2) of the gradient, so that with less slack
#: 40 000 steps decide neither A7 nor A9. The condition is on the data, before anything is trained.
SETTLED_DATA = {**PAPER_DATA, "kind": "settled", "slack": 0.3}

#: About one draw in six is accepted; a hundred rejections in a row mean that something else is wrong.
MOST_DRAWS = 100

#: Fits are read off the last decade of the paper's run.
LAST_DECADE = (4_000.0, 40_000.0)

#: Seeds 0..7 by default.
SEEDS = 8


class TrainedRun:
    """A problem, its recorded trajectory, and the certified separators of its constraints.

    Attributes
    ----------
    problem : Problem
    steps : (R,) array of int, from 1 on
    W : (R, d, d) array
    log_loss, log_grad_norm, min_margin : (R,) arrays
    valid_until : int or None
        First step whose gradient is past the trusted range of its engine.
    step : float
        Step size.
    """

    def __init__(self, problem: Problem, arrays: Mapping[str, np.ndarray], step: float) -> None:
        self.problem = problem
        self.step = step
        self.steps: Int = arrays["steps"]
        self.W: Float = arrays["W"]
        self.log_loss: Float = arrays["log_loss"]
        self.log_grad_norm: Float = arrays["log_grad_norm"]
        self.min_margin: Float = arrays["min_margin"]
        last = int(arrays["valid_until"])
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


def problem_of(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """The problem that a data configuration describes.

    Kinds: "template" (noiseless template of eq. (6)), "mixture" (its targets replaced by
    0.7 v_a + 0.3 v_b, with a and b the first two distractors), "settled" (a template drawn until A4 holds and the
    slack is large enough), "integers" (arrays as listed).
    """
    if data["kind"] == "integers":
        arrays = {k: np.array(data[k], dtype=np.float64) for k in ("keys", "queries", "values")}
        return Problem(**arrays, match=np.array(data["match"]))
    if data["kind"] == "settled":
        return settled_problem(data, root, seed)[0]
    task = MatchCopyTask.template(T=data["T"], d=data["d"], coordinate_std=data["coordinate_std"])
    drawn = sample(task, data["n"], stream(root, {**data, "kind": "template"}, seed or 0))
    problem = Problem.from_match_copy(drawn)
    if data["kind"] == "mixture":
        n, K, _, d_v = problem.shape
        first_two = problem.values[problem.rivals].reshape(n, K - 1, d_v)[:, :2]
        targets = np.einsum("t,itj->ij", np.array([0.7, 0.3]), first_two)
        problem = Problem(problem.keys, problem.queries, problem.values, problem.match, targets)
    return problem


def settled_problem(data: Mapping[str, Any], root: int, seed: int | None) -> tuple[Problem, int]:
    """The first draw of this seed that satisfies the condition of `SETTLED_DATA`, and how many were rejected.

    Raises
    ------
    CannotForm
        None of the first `MOST_DRAWS` draws does.
    """
    task = MatchCopyTask.template(T=data["T"], d=data["d"], coordinate_std=data["coordinate_std"])
    draws = stream(root, data, seed or 0).spawn(MOST_DRAWS)
    for rejected, draw in enumerate(draws):
        problem = Problem.from_match_copy(sample(task, data["n"], draw))
        if smallest_alignments(problem).min() > 0 and least_slack(problem) >= data["slack"]:
            return problem, rejected
    raise CannotForm(f"none of {MOST_DRAWS} draws satisfies A4 with a slack of at least {data['slack']}.")


def least_slack(problem: Problem) -> float:
    """Smallest separator margin off the support, minus 1; infinite where every constraint supports."""
    constraints = problem.constraints()
    separator = max_margin(constraints)
    rest = np.setdiff1d(np.arange(len(constraints)), separator.active)
    return float(constraints.margins(separator.W)[rest].min() - 1) if len(rest) else np.inf


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
