"""A6 for small steps: the loss is smooth everywhere, so that squared gradients are summable from the start on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, SEEDS
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.simulations.descent import run as descend
from marginlab.theory.match_copy.convergence import smoothness

STEPS = 3_000


def draws(run: Run) -> Iterable[Instance]:
    """The paper's data, whatever A4 says, for each seed."""
    for seed in run.seeds(SEEDS):
        problem = problem_of(PAPER_DATA, run.config.root_seed, seed)
        yield Instance(label=f"seed {seed}", data=problem, seed=seed, config=dict(PAPER_DATA))


def share(instance: Instance) -> Interval:
    """eta (1 - eta beta / 2) times the sum of squared gradients over L(w_0), with eta = 1 / beta."""
    problem = instance.data
    step = 1 / smoothness(problem)
    path = descend(problem, step=step, steps=STEPS, record=range(STEPS + 1))
    total = np.exp(2 * path.log_grad_norm).sum()
    return rounded(step / 2 * total / np.exp(path.log_loss[0]), operations=STEPS + 4 * PAPER_DATA["d"] ** 2)


def unit(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound that the share is held to."""
    del instance
    return Interval.exact(constants["factor"])


small_steps = Claim(
    id="match-copy/small-steps",
    title="With a small step the squared gradients sum to at most an explicit multiple of the first loss",
    paper=PAPER,
    where="derived for this project (docs/convergence.md)",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.NUMERICAL,
    statement=r"$\sum\|\nabla L\|^2\le L(w_0)/(\eta(1-\frac12\eta\beta))$ for $\eta=1/\beta$.",
    instances=draws,
    constants={"factor": 1.0},
    predict=unit,
    measure=share,
    controls=(Plant(name="a tenth of the bound", constants={"factor": 0.1}),),
    group="match-copy/identifiable",
    notes="The sum over 3000 steps from W = 0; A4 is not asked for. beta is proved on paper.",
)

CLAIMS = (small_steps,)
