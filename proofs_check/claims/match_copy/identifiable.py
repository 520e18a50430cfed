"""What needs no A4: from one small loss on, A3 and equal margins give a vanishing loss; and the Hessian's bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.broken import INTEGERS_DATA
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.rational import (
    TOTAL,
    RationalSample,
    dot,
    drawn_samples,
    squared_error_derivatives,
)
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, PAPER_DESCENT, SEEDS
from marginlab.proofs_check.convergence import ConvergenceProof, first_proof, prove_convergence
from marginlab.proofs_check.engine.claim import CannotForm, Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.streams import stream
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import enclosed, gamma
from marginlab.simulations.descent import run as descend
from marginlab.theory.match_copy.geometry import smallest_alignments

WHERE = "derived for this project (docs/convergence.md)"

#: Steps of the paper's run at which a proof is looked for.
STEPS = np.unique(np.geomspace(1, 20_000, 60).round().astype(int))


def runs_without_a4(run: Run) -> Iterable[Instance]:
    """The integer instance at W = 0 under gradient flow, and the paper's run on its draws without A4."""
    problem = problem_of(INTEGERS_DATA, run.config.root_seed, None)
    proof = prove_convergence(problem, np.zeros((3, 3)), None)
    yield Instance(label="integer instance, flow from W = 0", data=proof, config=dict(INTEGERS_DATA))
    for seed in run.seeds(SEEDS):
        config = {"data": PAPER_DATA, "root": run.config.root_seed}
        problem = problem_of(PAPER_DATA, run.config.root_seed, seed)
        if smallest_alignments(problem).min() > 0:
            continue
        options = {key: PAPER_DESCENT[key] for key in ("loss", "rule", "step", "engine")}
        path = descend(problem, **options, steps=int(STEPS[-1]), record=STEPS.tolist())
        found = first_proof(problem, path.W, PAPER_DESCENT["step"], "loss_to_zero")
        if found is None:
            reason = prove_convergence(problem, path.W[-1], PAPER_DESCENT["step"])
            yield Instance(label=f"seed {seed}, no proof", data=reason, seed=seed, config=config)
        else:
            step = int(path.steps[found[0]])
            label = f"seed {seed}, proof at step {step}"
            yield Instance(label=label, data=found[1], seed=seed, config={**config, "proof_step": step})


def share_of_gap(instance: Instance) -> Interval:
    """2 L / gamma^2, enclosed by the proof; direction and norm must not be claimed."""
    proof: ConvergenceProof = instance.data
    if not proof.loss_to_zero:
        raise CannotForm(f"no proof: {'; '.join(proof.failed)}.")
    if proof.direction or proof.norm_growth:
        raise CannotForm("the proof claims a direction, which A3 alone does not give.")
    loss, distance = proof.constants["loss"], proof.constants["hull_distance"]
    rounding = gamma(4)
    return enclosed(
        2 * loss[0] / distance[1] ** 2 * (1 - rounding),
        2 * loss[1] / distance[0] ** 2 * (1 + rounding),
        "balls",
    )


def unit(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound that a ratio is held to."""
    del instance
    return Interval.exact(constants["factor"])


def proof_file(instance: Instance) -> Mapping[str, Any]:
    """The certificate file."""
    document = instance.data.document
    assert document is not None  # `share_of_gap` has asked for a proof
    return document


# ---- The Hessian's bound --------------------------------------------------------------------------------------------


def alignment_of(sample: RationalSample) -> Fraction:
    """g = min over rivals s, t of <d_s, d_t>."""
    errors = [sample.errors[t] for t in sample.rivals]
    return min(dot(a, b) for a in errors for b in errors)


def single_samples(run: Run) -> Iterable[Instance]:
    """Samples with one rival, whose weight is 1 to 31 of 32 (the bound's extremes), and drawn ones with A4."""
    for weight in (1, 2, 8, 31):
        sample = RationalSample(
            keys=((0, 0), (-1, -2)),
            query=(2, 1),
            values=((0, 0), (1, 1)),
            match=0,
            weights=(TOTAL - weight, weight),
        )
        yield Instance(label=f"one rival of weight {weight}/{TOTAL}", data=sample, config={"weight": weight})
    config = {"kind": "curvature", "n": 60, "K": 3, "d": 3}
    drawn = drawn_samples(stream(run.config.root_seed, config, 0), n=60, K=3, d=3)
    kept = [s for s in drawn if alignment_of(s) > 0 and any(s.query) and len(set(s.keys)) > 1]
    for index, sample in enumerate(kept):
        label = f"drawn sample {index} of {len(kept)} with A4 among 60"
        yield Instance(label=label, data=sample, seed=0, config={**config, "index": index})


def curvature_share(instance: Instance) -> Interval:
    """|d^2 L / ds^2| / (B L |U|^2) along every x~_t and every difference of two: norms squared are integers."""
    sample: RationalSample = instance.data
    q2 = dot(sample.query, sample.query)
    radius2 = max(dot(sample.errors[t], sample.errors[t]) for t in sample.rivals)
    reach2 = max(dot(sample.differences[t], sample.differences[t]) for t in sample.rivals) * q2
    total = sum(sample.weights)
    mean = [
        sum((Fraction(sample.weights[t], total) * sample.errors[t][j] for t in sample.rivals), Fraction(0))
        for j in sample.coordinates
    ]
    bound = 4 * radius2 * reach2 / alignment_of(sample) * dot(mean, mean) / 2
    ways = [sample.differences[t] for t in sample.rivals]
    ways += [[a - b for a, b in zip(u, v, strict=True)] for u in ways for v in ways if u is not v]
    shares = []
    for way in ways:
        size = dot(way, way) * q2
        if size == 0:
            continue
        direction = [[k * q for q in sample.query] for k in way]
        second = squared_error_derivatives(sample, sample.logit_changes(direction))[1]
        shares.append(float(abs(second) / (bound * size)))
    most = max(shares)
    return Interval.around(most, np.spacing(most), "rounding: a rational to the nearest float64")


loss_to_zero = Claim(
    id="match-copy/loss-to-zero-identifiable",
    title="Where A4 fails, A3 and equal margins still prove that the loss tends to zero",
    paper=PAPER,
    where=WHERE,
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.CERTIFIED,
    statement=r"$2L(w_{\tau_0})<\gamma^2$ and $\eta B_\gamma L(w_{\tau_0})\le1$: then $L\to0$ and $\min m\to\infty$.",
    instances=runs_without_a4,
    constants={"factor": 1.0},
    predict=unit,
    measure=share_of_gap,
    certificate=proof_file,
    controls=(Plant(name="a hundredth of the gap", constants={"factor": 0.01}),),
    group="match-copy/identifiable",
    notes=(
        "Measured: 2 L / gamma^2 at the first step looked at with a proof, in balls. Draws on which A4 holds are left "
        "out: match-copy/convergence-proved has such. The theorem is proved on paper (docs/convergence.md)."
    ),
)

hessian = Claim(
    id="match-copy/curvature-bound",
    title="The curvature of the loss is at most a constant times the loss",
    paper=PAPER,
    where=WHERE,
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.EXACT,
    statement=r"$|\langle u,\nabla^2L\,u\rangle|\le BL$ for unit $u$, $B=4\max_iR_i^2X_i^2/g_i$.",
    instances=single_samples,
    constants={"factor": 1.0},
    predict=unit,
    measure=curvature_share,
    controls=(Plant(name="B halved", constants={"factor": 0.5}),),
    group="match-copy/identifiable",
    notes="Second derivatives in rationals. One rival of weight q attains (1 - q)(1 - 3q/2) of the bound.",
)

CLAIMS = (loss_to_zero, hessian)
