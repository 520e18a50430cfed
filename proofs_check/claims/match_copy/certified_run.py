"""The paper's run, recorded at every step, with the first step from which its convergence is proved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates import alignment, certify
from marginlab.proofs_check.claims.match_copy.problems import problem_of, settled_problem
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, PAPER_DESCENT
from marginlab.proofs_check.convergence import first_proof
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    CannotForm,
    Instance,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.separators import max_margin
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run as descend
from marginlab.theory.match_copy.attention import attention_weights, min_margin, rivals
from marginlab.theory.match_copy.convergence import HalfSpaceConstants
from marginlab.theory.match_copy.gradient import mse_coefficients
from marginlab.theory.validation import Float

#: The paper's sizes, drawn until A4 holds.
DATA = {**PAPER_DATA, "kind": "settled", "slack": 0.0}

#: Every step is recorded, since path lengths and increments are sums over steps.
DESCENT = {key: PAPER_DESCENT[key] for key in ("loss", "rule", "step", "engine")} | {"steps": 20_000}

#: Runs judged by default.
SEEDS = 4

#: Draws of the paper's own data on which a proof is looked for, and steps that are looked at.
PAPER_SEEDS, LOOKED_AT = 8, 4_000

#: The second start, from which the bounds are judged once more: there x_0 is small, and the bounds are sharp.
SECOND_START = 2_000

#: The cosine is enclosed, and a first step with a proof is looked for, at these steps alone: both cost much.
SPARSE = np.unique(np.geomspace(1, 20_000, 120).round().astype(int))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """A run whose convergence is proved from one step on, and what the theorem speaks of at every step.

    Attributes
    ----------
    problem : Problem
    constants : HalfSpaceConstants
        With a certified upper bound of ||w_hat||.
    W : (d, d) array
        The first of the steps `SPARSE` from which convergence is proved.
    first : int
        That step, or -1 if there is none.
    step : float
    loss, grad_norm, norm, margin, least_pi : (R,) arrays
        At every step from 0 on; `least_pi` is min over i, t of pi / (a q), an average of alignments.
    one_minus_cos : array
        Upper ends of 1 - cos(W, w_hat) at `SPARSE`.
    """

    problem: Problem
    constants: HalfSpaceConstants
    W: Float
    first: int
    step: float
    loss: Float
    grad_norm: Float
    norm: Float
    margin: Float
    least_pi: Float
    one_minus_cos: Float

    @property
    def starts(self) -> tuple[int, int]:
        """The first step with a proof, and a later one from which the bounds are sharp."""
        return self.first, max(SECOND_START, self.first)

    def path(self, start: int) -> Float:
        """Length of the path from `start` to each later step."""
        return np.concatenate([[0.0], np.cumsum(self.step * self.grad_norm[start:-1])])

    def correction_sum(self, start: int) -> Float:
        """Sum of (1 - eta B L / 2) Delta / ||w_hat|| from `start` to before each step after it."""
        c = self.constants
        steps = self.step * self.grad_norm[start:-1] / c.separator_norm
        return np.cumsum((1 - self.step * c.curvature * self.loss[start:-1] / 2) * steps)


def measured_steps(config: Mapping[str, Any], seed: int | None) -> dict[str, np.ndarray]:
    """Quantities of every step of the run that `config` describes, as arrays."""
    problem = problem_of(config["data"], config["root"], seed)
    path = descend(problem, **config["descent"], record=range(config["descent"]["steps"] + 1))
    certificate = certify(problem.constraints(), max_margin(problem.constraints()))
    mask = rivals(problem)
    a = np.where(mask, attention_weights(problem, path.W), 1.0)
    off = np.where(mask, a, 0.0).sum(axis=-1, keepdims=True)
    least = np.where(mask, mse_coefficients(problem, path.W) / (a * off), np.inf)
    found = first_proof(problem, path.W[SPARSE], config["descent"]["step"])
    first = -1 if found is None else int(SPARSE[found[0]])
    return {
        "loss": np.exp(path.log_loss),
        "grad_norm": np.exp(path.log_grad_norm),
        "norm": np.linalg.norm(path.W, axis=(1, 2)),
        "margin": min_margin(problem, path.W),
        "least_pi": least.min(axis=(1, 2)),
        "one_minus_cos": alignment(path.W[SPARSE], certificate).one_minus_upper,
        "separator_norm": np.array(1 / certificate.margin_lower),
        "first": np.array(first),
        "W": path.W[first],
        "valid_until": np.array(-1 if path.valid_until is None else path.valid_until),
    }


def ledgers(run: Run) -> Iterable[Instance]:
    """The paper's run on draws with A4, for each seed; rejected draws and the first step with a proof in the label."""
    for seed in run.seeds(SEEDS):
        config = {"data": DATA, "descent": DESCENT, "root": run.config.root_seed}

        def make(config: Mapping[str, Any] = config, seed: int = seed) -> Instance:
            problem, rejected = settled_problem(DATA, config["root"], seed)
            arrays = dict(run.recall(measured_steps, config, seed))
            if arrays.pop("valid_until") >= 0:
                raise CannotForm(f"seed {seed}: a gradient of the run is past its engine's trusted range.")
            norm, first = float(arrays.pop("separator_norm")), int(arrays.pop("first"))
            constants = HalfSpaceConstants.of(problem, norm)
            ledger = Ledger(problem=problem, constants=constants, first=first, step=DESCENT["step"], **arrays)
            label = f"seed {seed}, {rejected} draws rejected, proof at step {first}"
            return Instance(label=label, data=ledger, seed=seed, config=config)

        yield run.once(("ledger", repr(config), seed), make)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProvedRun:
    """A problem and the first iterate of its run from which convergence is proved, with explicit bounds.

    Attributes
    ----------
    problem : Problem
    W : (d, d) array
        That iterate; the last one looked at if there is no proof.
    first : int
        Its step, or -1.
    step : float
    """

    problem: Problem
    W: Float
    first: int
    step: float


def paper_proofs(run: Run) -> Iterable[Instance]:
    """The paper's run on its own draws, every step looked at: the step of the first proof stands in the label."""
    for seed in run.seeds(PAPER_SEEDS):
        config = {"data": PAPER_DATA, "descent": DESCENT | {"steps": LOOKED_AT}, "root": run.config.root_seed}

        def make(config: Mapping[str, Any] = config, seed: int = seed) -> Instance:
            problem = problem_of(config["data"], config["root"], seed)
            path = descend(problem, **config["descent"], record=range(LOOKED_AT + 1))
            found = first_proof(problem, path.W, DESCENT["step"])
            index, first = (-1, -1) if found is None else (found[0], int(path.steps[found[0]]))
            data = ProvedRun(problem=problem, W=path.W[index], first=first, step=DESCENT["step"])
            said = f"proof at step {first}" if found else f"no explicit proof in {LOOKED_AT} steps"
            return Instance(label=f"seed {seed}, {said}", data=data, seed=seed, config=config)

        yield run.once(("paper proofs", seed), make)


def proved(instance: Instance) -> Answer:
    """Whether the theorem's conditions are proved in ball arithmetic at one of the steps looked at."""
    first = instance.data.first
    if first < 0:
        return Answer(Status.FAILS, "no proof at any step looked at")
    return Answer(Status.HOLDS, f"convergence is proved from step {first} on", first)


PROVED = Assumption(
    name="small-loss",
    check=proved,
    statement=r"A1, A4, $L(w_{\tau_0})\le L^\star(\frac23)$ and $\eta BL(w_{\tau_0})\le1$, proved in balls",
)
