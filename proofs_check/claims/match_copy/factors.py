"""Separate key and query matrices: towards the separator of least nuclear norm, not of least Frobenius norm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    Break,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Ranking
from marginlab.proofs_check.separators import MaxMargin, max_margin
from marginlab.proofs_check.tolerances import enclosed, gamma
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run as descend
from marginlab.simulations.factorised import run_factorised, small_factors
from marginlab.theory.validation import Float

DATA = {"kind": "template", "T": 4, "d": 8, "n": 6, "coordinate_std": 8**-0.5}

#: Joint normalised descent from small factors. Looked at early and late.
DESCENT = {"rule": "normalised", "step": 2e-3, "steps": 100_000, "record": [20_000, 100_000]}
SCALE = 1e-2

SEEDS = 8

#: Below this excess of the Frobenius separator the two separators cannot be told apart by their nuclear norms.
TOLD_APART = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class FactoredRun:
    """W at an early and a late step, with the two separators that it could tend to.

    Attributes
    ----------
    problem : Problem
    W : (2, d, d) array
    valid_until : int or None
    factored : bool
        Whether both factors were trained, and not their product.
    """

    problem: Problem
    W: Float
    valid_until: int | None
    factored: bool

    @cached_property
    def nuclear(self) -> MaxMargin:
        """Separator of least nuclear norm, by cvxpy; bounds from its own primal and dual points."""
        return max_margin(self.problem.constraints(), oracle="cvxpy", norm="nuclear")

    @cached_property
    def frobenius(self) -> MaxMargin:
        """Separator of least Frobenius norm."""
        return max_margin(self.problem.constraints())

    def excess(self, W: Float) -> tuple[float, float]:
        """(nuclear norm / smallest margin) over its optimum, less 1: bounds."""
        constraints = self.problem.constraints()
        norm, margins = float(np.linalg.norm(W, "nuc")), constraints.margins(W)
        least = float(margins.min())
        # Singular values are right to a few d u ||W||, margins to gamma ||k|| ||q|| ||W||.
        rounding = gamma(20 * len(W)) * norm
        slip = gamma(3 * len(W)) * float(constraints.norms().max()) * norm
        low = (norm - rounding) / (least + slip) * self.nuclear.margin_lower - 1
        high = (norm + rounding) / (least - slip) * self.nuclear.margin_upper - 1
        return low, high

    def share(self, W: Float) -> tuple[float, float]:
        """Excess of W over that of the Frobenius separator: bounds."""
        own, rival = self.excess(W), self.excess(self.frobenius.W)
        return own[0] / rival[1], own[1] / rival[0]


def runs(run: Run) -> Iterable[Instance]:
    """Both factors trained together from small Gaussian entries."""
    for seed in run.seeds(SEEDS):
        config = {"data": DATA, "descent": DESCENT, "scale": SCALE, "root": run.config.root_seed}

        def make(config: Mapping[str, Any] = config, seed: int = seed) -> Instance:
            problem = problem_of(DATA, run.config.root_seed, seed)
            W_K, W_Q = small_factors(
                DATA["d"], DATA["d"], SCALE, run.stream({"factors": DATA, "scale": SCALE}, seed)
            )
            path = run_factorised(problem, W_K0=W_K, W_Q0=W_Q, **DESCENT)
            data = FactoredRun(problem=problem, W=path.W, valid_until=path.valid_until, factored=True)
            return Instance(label=f"seed {seed}", data=data, seed=seed, config=config)

        yield run.once(("factors", repr(config), seed), make)


def merged_runs(run: Run) -> Iterable[Instance]:
    """The same data and rule with the merged matrix trained."""
    for seed in range(3):
        problem = problem_of(DATA, run.config.root_seed, seed)
        path = descend(problem, **DESCENT)
        data = FactoredRun(problem=problem, W=path.W, valid_until=path.valid_until, factored=False)
        config = {"data": DATA, "descent": DESCENT, "root": run.config.root_seed}
        yield Instance(label=f"merged, seed {seed}", data=data, seed=seed, config=config)


def trained_apart(instance: Instance) -> Answer:
    """Whether the factors were trained."""
    status = Status.HOLDS if instance.data.factored else Status.FAILS
    return Answer(
        status, "both factors are trained" if instance.data.factored else "their product is trained"
    )


def trusted(instance: Instance) -> Answer:
    """Every gradient right to 1e-6 by the engine's bound."""
    first = instance.data.valid_until
    if first is None:
        return Answer(Status.HOLDS, "the engine's error bound stays below 1e-6 at every step")
    return Answer(Status.FAILS, f"past the trusted range from step {first} on", float(first))


def told_apart(instance: Instance) -> Answer:
    """The Frobenius separator's nuclear norm is visibly above the optimum."""
    low, high = instance.data.excess(instance.data.frobenius.W)
    status = Status.HOLDS if low >= TOLD_APART else (Status.FAILS if high < TOLD_APART else Status.UNDECIDED)
    return Answer(status, f"the Frobenius separator's nuclear norm is {low:.3g} above the optimum", low)


def norm_ratios(instance: Instance) -> Ranking:
    """Excess of the nuclear norm at smallest margin 1: late in the run, and of the Frobenius separator."""
    run: FactoredRun = instance.data
    return Ranking(
        values={
            name: enclosed(*run.excess(W), what="cvxpy's primal and dual points")
            for name, W in (("run", run.W[1]), ("Frobenius separator", run.frobenius.W))
        }
    )


def order(instance: Instance, constants: Mapping[str, Any]) -> tuple[str, ...]:
    """Names from the smallest nuclear norm to the largest."""
    del instance
    return tuple(constants["order"])


def late_over_early(instance: Instance) -> Interval:
    """Excess after 100 000 steps over that after 20 000."""
    early, late = (instance.data.excess(W) for W in instance.data.W)
    return enclosed(late[0] / early[1], late[1] / early[0], "cvxpy's primal and dual points")


def factor(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound."""
    del instance
    return Interval.exact(constants["factor"])


def late_share(instance: Instance) -> Interval:
    """Excess of the run over the Frobenius separator's, after 100 000 steps."""
    low, high = instance.data.share(instance.data.W[1])
    return enclosed(low, high, "cvxpy's primal and dual points")


def range_of(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The stated range."""
    del instance
    return Interval(np.array(0.0), np.array(constants["most"]), "a stated range")


_ASSUMES = (
    Assumption(
        name="factored", statement="$W_K$ and $W_Q$ are trained, from small values", check=trained_apart
    ),
    Assumption(
        name="told-apart",
        statement="the Frobenius separator's nuclear norm exceeds the optimum by 1 %",
        check=told_apart,
    ),
    Assumption(
        name="trusted-gradient",
        statement="the joint gradient of every step is right to a relative error of 1e-6",
        check=trusted,
    ),
)

_SHARED: dict[str, Any] = {
    "paper": PAPER,
    "where": "Section 5, open question on unmerged matrices",
    "source": Source.DERIVED,
    "evidence": Evidence.NUMERICAL,
    "assumes": _ASSUMES,
    "group": "match-copy/factors",
    "instances": runs,
}

_NOTES = (
    "The paper leaves open what separate matrices do; this is an observation on these runs, for normalised steps and "
    "small Gaussian factors, and proves nothing. cvxpy's optimum is between its own primal and dual points. "
)

factored_nuclear = Claim(
    **_SHARED,
    id="match-copy/factored-nuclear",
    title="Separate key and query matrices lean to the separator of least nuclear norm",
    kind=Kind.ORDERING,
    statement=r"With $W = W_K^\top W_Q$ and both factors trained, $\|W\|_* / \min m$ ends nearer to its least value "
    r"over all separators than the Frobenius separator's.",
    constants={"order": ("run", "Frobenius separator")},
    predict=order,
    measure=norm_ratios,
    controls=(
        Plant(name="the Frobenius separator first", constants={"order": ("Frobenius separator", "run")}),
        Break(name="merged matrix", assumption="factored", instances=merged_runs),
    ),
    notes=_NOTES + "The merged matrix, trained by the same rule on the same data, ends on the other side.",
)

factored_falls = Claim(
    **_SHARED,
    id="match-copy/factored-falls",
    title="The nuclear norm's excess over the optimum goes on falling",
    kind=Kind.UPPER,
    statement=r"The excess of $\|W\|_* / \min m$ over its least value is smaller after $10^5$ steps than after "
    r"$2 \cdot 10^4$.",
    constants={"factor": 1.0},
    predict=factor,
    measure=late_over_early,
    controls=(Plant(name="down to a hundredth of it", constants={"factor": 0.01}),),
    notes=_NOTES,
)

factored_share = Claim(
    **_SHARED,
    id="match-copy/factored-share",
    title="How much of the way to the nuclear separator is left",
    kind=Kind.ESTIMATE,
    statement=r"The run's excess after $10^5$ steps is less than the Frobenius separator's.",
    constants={"most": 1.0},
    predict=range_of,
    measure=late_share,
    controls=(
        Plant(name="a share below one in ten thousand", constants={"most": 1e-4}),
        Break(name="merged matrix", assumption="factored", instances=merged_runs),
    ),
    notes=_NOTES
    + (
        "That a run is close to the nuclear separator would be an excess below a tenth of the Frobenius separator's: "
        "not all draws come so far in this many steps (docs/step-rules.md)."
    ),
)

CLAIMS = (factored_nuclear, factored_falls, factored_share)
