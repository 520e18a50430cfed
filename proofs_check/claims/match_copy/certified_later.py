"""What was proved at one iterate, followed later: along gradient flow, and along descent where A4 does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates import alignment, certify
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.certified_run import DATA
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.regimes import cell
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, PAPER_DESCENT
from marginlab.proofs_check.convergence import ConvergenceProof, first_proof
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.separators import max_margin
from marginlab.proofs_check.tolerances import rounded
from marginlab.simulations.descent import run as descend
from marginlab.simulations.flow import gradient_flow
from marginlab.simulations.trajectory import TRUSTED
from marginlab.theory.match_copy.geometry import smallest_alignments
from marginlab.theory.match_copy.gradient import mse_coefficients
from marginlab.theory.validation import Float

#: Recorded log t of the flows: proofs are looked for, and bounds judged, at each.
LOG_TIMES = np.linspace(-6.0, 60.0, 67)

#: Steps of descent, each recorded: sums run over all of them.
STEPS = 5_000

#: Small draws, most of which violate A4, with a step that brings them to their limit in as many updates.
SMALL_DATA, SMALL_STEP = cell(6, 5, 4), 0.2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Followed:
    """A proof, and each of its bounds as a ratio that must not exceed 1 at later iterates.

    Attributes
    ----------
    proof : ConvergenceProof or None
    ratios : mapping of bound to array
    """

    proof: ConvergenceProof | None
    ratios: Mapping[str, Float]


def flows(run: Run) -> Iterable[Instance]:
    """Gradient flow on draws of the paper's sizes with A4; the time of the first proof stands in the label."""
    for seed in run.seeds(3):

        def make(seed: int = seed) -> Instance:
            problem = problem_of(DATA, run.config.root_seed, seed)
            path = gradient_flow(problem, log_t=LOG_TIMES)
            found = first_proof(problem, path.W, None)
            config = {"data": DATA, "flow": "log t from -6 to 60", "root": run.config.root_seed}
            if found is None or path.valid_until is not None:
                return Instance(
                    label=f"seed {seed}, no proof", data=Followed(proof=None, ratios={}), seed=seed
                )
            k, proof = found
            later = np.exp(path.log_t[k:]) - np.exp(path.log_t[k])
            losses, norms = np.exp(path.log_loss[k:]), np.linalg.norm(path.W[k:], axis=(1, 2))
            cosines = alignment(path.W[k:], certify(problem.constraints(), max_margin(problem.constraints())))
            loss_bounds = np.array([proof.loss_bounds(float(t)) for t in later])
            norm_bounds = np.array([proof.norm_bounds(float(t)) for t in later])
            angles = np.array([proof.one_minus_cos_bound(float(x)) for x in norms])
            margins = np.where(problem.rivals, path.margins[k:], np.inf).min(axis=(1, 2))
            ratios = {
                "loss, from above": losses / loss_bounds[:, 1],
                "loss, from below": loss_bounds[:, 0] / losses,
                "norm, from above": norms / norm_bounds[:, 1],
                "norm, from below": norm_bounds[:, 0] / norms,
                "angle": cosines.one_minus_upper / angles,
                "margins": proof.constants["margin"][0] / margins,
            }
            label = f"seed {seed}, proof at log t = {path.log_t[k]:.3g}"
            return Instance(label=label, data=Followed(proof=proof, ratios=ratios), seed=seed, config=config)

        yield run.once(("proved flow", seed), make)


def descents(run: Run) -> Iterable[Instance]:
    """Descent on draws without A4, of the paper's sizes and of smaller ones; negative coefficients are counted."""
    for name, data, step in (("paper", PAPER_DATA, PAPER_DESCENT["step"]), ("small", SMALL_DATA, SMALL_STEP)):
        for seed in run.seeds(8):
            problem = problem_of(data, run.config.root_seed, seed)
            if smallest_alignments(problem).min() > 0:
                continue

            def make(
                problem: Any = problem,
                name: str = name,
                data: Mapping[str, Any] = data,
                step: float = step,
                seed: int = seed,
            ) -> Instance:
                path = descend(problem, step=step, steps=STEPS, record=range(STEPS + 1))
                found = first_proof(problem, path.W, step, "loss_to_zero")
                config = {"data": dict(data), "step": step, "steps": STEPS, "root": run.config.root_seed}
                if found is None or path.valid_until is not None:
                    return Instance(
                        label=f"{name}, seed {seed}, no proof",
                        data=Followed(proof=None, ratios={}),
                        seed=seed,
                        config=config,
                    )
                k, proof = found
                losses = np.exp(path.log_loss[k:])
                highest = np.array([proof.loss_bounds(j)[1] for j in range(len(losses))])
                squares = np.cumsum(np.exp(2 * path.log_grad_norm[k:]))
                negative = int((mse_coefficients(problem, path.W[k:]) < 0).sum())
                ratios = {
                    "loss": losses / highest,
                    "fall of the loss": losses[1:] / losses[:-1],
                    "squared gradients": squares / proof.constants["squared_gradients"][1],
                }
                label = f"{name}, seed {seed}, proof at step {k}, {negative} negative coefficients later"
                return Instance(
                    label=label, data=Followed(proof=proof, ratios=ratios), seed=seed, config=config
                )

            yield run.once(("proved descent", name, seed), make)


def proved(instance: Instance) -> Answer:
    """Whether there is a proof."""
    proof = instance.data.proof
    if proof is None:
        return Answer(Status.FAILS, "no proof at any iterate looked at, or a gradient that is not trusted")
    return Answer(Status.HOLDS, f"proved: {proof.kind}")


def all_ratios(instance: Instance) -> Interval:
    """Every ratio, in one vector. Flows are right to 1e-10, sums to their number of terms; bounds are float64."""
    values = np.concatenate(list(instance.data.ratios.values()))
    return rounded(values, operations=STEPS + 1_000)


def unit(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1, times the constant; ratios start at 1, and runs are trusted to 1e-6."""
    del instance
    return Interval.exact(constants["factor"] * (1 + TRUSTED))


_SHARED: dict[str, Any] = {
    "paper": PAPER,
    "where": "derived for this project (docs/convergence.md)",
    "source": Source.DERIVED,
    "kind": Kind.UPPER,
    "evidence": Evidence.NUMERICAL,
    "assumes": (Assumption(name="proved", statement="convergence is proved at one iterate", check=proved),),
    "constants": {"factor": 1.0},
    "predict": unit,
    "measure": all_ratios,
}

certified_flow = Claim(
    **_SHARED,
    id="match-copy/certified-flow",
    title="Along gradient flow every bound of the convergence theorem holds from the proof on",
    statement=r"For the flow, with $c_0 = 0$ and any $\theta < 1$: $\frac1{L_0} + \frac{4(1-x_0)^2}{\|\hat w\|^2} t "
    r"\le \frac1{L_t} \le \frac1{L_0} + 4 X^2 t$, and the bounds of norm, angle and margins that follow.",
    depends_on=("match-copy/convergence-proved",),
    group="match-copy/certified-later",
    instances=flows,
    controls=(Plant(name="bounds that are half as wide", constants={"factor": 0.5}),),
    notes="To log t = 60. Bounds from the constants of the proof, upper and lower, as ratios that must not exceed 1.",
)

identifiable_bounds = Claim(
    **_SHARED,
    id="match-copy/identifiable-bounds",
    title="Without A4 the loss keeps its proved bound, whatever the signs of the coefficients",
    statement=r"With A3 and $\bar w$ of equal margins: $L$ decreases, $\frac1{L_\tau} \ge \frac1{L_0} + "
    r"\frac{2 \eta (1 - \bar q)^2}{\|\bar w\|^2} (\tau - \tau_0)$ and $\sum \|\nabla L\|^2 \le 2 L_0 / \eta$.",
    depends_on=("match-copy/loss-to-zero-identifiable",),
    group="match-copy/certified-later",
    instances=descents,
    controls=(Plant(name="bounds that are half as wide", constants={"factor": 0.5}),),
    notes="Draws without A4 only, of the paper's sizes and of (6, 5, 4); the label counts coefficients below zero.",
)

CLAIMS = (certified_flow, identifiable_bounds)
