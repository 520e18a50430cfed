"""The max-margin separator (11): two oracles of different families and a certificate speak of one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, SEEDS, TrainedRun
from marginlab.proofs_check.engine.claim import (
    Break,
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import enclosed
from marginlab.simulations.attention import Problem


def _untrained(problem: Problem, label: str, seed: int, config: Mapping[str, Any]) -> Instance:
    return Instance(label=label, data=TrainedRun.untrained(problem), seed=seed, config=config)


def paper_problems(run: Run) -> Iterable[Instance]:
    """The paper's data for every seed, untrained."""
    root = run.config.root_seed
    for seed in run.seeds(SEEDS):
        config = {"data": PAPER_DATA, "root": root}
        yield _untrained(problem_of(PAPER_DATA, root, seed), f"seed {seed}", seed, config)


def doubled_match(run: Run) -> Iterable[Instance]:
    """The matched key of the first sample stands twice: no W can tell the two apart."""
    root = run.config.root_seed
    for seed in range(3):
        p = problem_of(PAPER_DATA, root, seed)
        keys = np.array(p.keys)
        keys[0, int(np.argmax(p.rivals[0]))] = keys[0, p.match[0]]
        doubled = Problem(keys, p.queries, p.values, p.match)
        config = {"data": PAPER_DATA, "root": root, "changed": "matched key doubled in sample 0"}
        yield _untrained(doubled, f"doubled match, seed {seed}", seed, config)


def certified_norm(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """factor ||W_hat||, from the rigorous certificate of the working-set solution."""
    certificate = instance.data.certificate
    return _inverse(
        certificate.margin_lower,
        certificate.margin_upper,
        constants["factor"],
        f"{certificate.kind} certificate",
    )


def reviewed_norm(instance: Instance) -> Interval:
    """||W_hat|| between cvxpy's own primal and dual points, both recomputed.

    Raises
    ------
    CannotForm
        There is no separator.
    """
    review = instance.data.reviewer
    if review.oracle == instance.data.separator.oracle:
        raise CannotForm("the reviewer is the oracle that it reviews")
    return _inverse(review.margin_lower, review.margin_upper, 1.0, "cvxpy's primal and dual points")


def _inverse(lower: float, upper: float, factor: float, what: str) -> Interval:
    """factor / margin for a margin in [lower, upper], rounded outward."""
    return enclosed(np.nextafter(factor / upper, 0.0), np.nextafter(factor / lower, np.inf), what)


separator = Claim(
    id="match-copy/separator",
    title="The margin constraints have one max-margin separator, and independent oracles agree on it",
    paper=PAPER,
    where="eq. (11), (A1)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.CERTIFIED,
    statement=(
        r"$\hat W = \arg\min \frac12 \|W\|_F^2$ subject to $m_{i,t}(W) \ge 1$ for all $i$, $t \ne y_i$, exists and "
        r"is unique; its norm is the same for every oracle."
    ),
    assumes=(A1,),
    constants={"factor": 1.0},
    group="match-copy/separator",
    certificate=lambda instance: instance.data.certificate.document,
    instances=paper_problems,
    predict=certified_norm,
    measure=reviewed_norm,
    controls=(
        Plant(name="a norm that is one part in a million larger", constants={"factor": 1 + 1e-6}),
        Break(name="the matched key stands twice", assumption="A1", instances=doubled_match),
    ),
    notes=(
        "Existence and uniqueness are proved for each instance by the certificate (ball arithmetic on the exact "
        "float64 data). The two enclosures of the norm must overlap; the planted part in a million shows that they "
        "are narrower than that. cvxpy's side is its primal and dual point in float64, with the gap recomputed here."
    ),
)

CLAIMS = (separator,)
