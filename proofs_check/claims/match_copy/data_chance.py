"""How often drawn data satisfy A1 and A3 where no rank argument says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.data_geometry import GROUP, template_data
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.engine.claim import (
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.separators import NotSeparable, max_margin
from marginlab.proofs_check.tolerances import rounded
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy.losses import error_directions

#: (d, T, n) whose separability is counted: 12, 6 and 10.7 constraints for each of the d^2 unknowns; and how many
#: draws: enough for a Clopper-Pearson interval at a run's error level to lie on one side of one half.
CROWDED = ((8, 8, 128, 40), (4, 8, 16, 200), (3, 8, 16, 60))


def line_draws(run: Run) -> Iterable[Instance]:
    """20 000 samples of T = 4 tokens in one dimension, d = T - 3."""
    data = template_data(1, 4, 20_000)
    problem = problem_of(data, run.config.root_seed, 0)
    yield Instance(
        label="d = 1, T = 4", data=problem, seed=0, config={"data": data, "root": run.config.root_seed}
    )


def target_between(instance: Instance) -> Sample:
    """Whether v_y lies between the values of the two rivals: A3 fails."""
    problem: Problem = instance.data
    errors = error_directions(problem)[problem.rivals].reshape(-1, 2)
    return Sample(
        values=(errors.min(axis=1) <= 0) & (errors.max(axis=1) >= 0), unit="sample", law="proportion"
    )


def median_probability(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1/3: each of three exchangeable numbers is the middle one equally often."""
    del instance
    third = 1 / constants["of"]
    return rounded(third, operations=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separability:
    """Draws of one size, each decided by a certificate."""

    d: int
    outcomes: tuple[bool, ...]


def _separable(problem: Problem) -> bool:
    """By a separator with its recomputed gap, or by a combination of constraints that is proved to vanish."""
    try:
        return max_margin(problem.constraints()).margin_lower > 0
    except NotSeparable:
        return False


def crowded_outcomes(run: Run) -> Iterable[Instance]:
    """Separability of the draws of each crowded size."""
    root = run.config.root_seed
    for d, T, n, draws in CROWDED:
        data = template_data(d, T, n)
        outcomes = tuple(_separable(problem_of(data, root, seed)) for seed in range(draws))
        yield Instance(
            label=f"{n * (T - 2) / d**2:.3g} constraints for each of d^2 = {d * d} unknowns",
            data=Separability(d=d, outcomes=outcomes),
            config={"data": data, "root": root, "draws": draws},
        )


def separable_share(instance: Instance) -> Sample:
    """The draws, 1 where separable."""
    return Sample(values=np.array(instance.data.outcomes, dtype=float), unit="draw", law="proportion")


def stated_share(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """More than half of the draws, or fewer."""
    most = instance.data.d in constants["mostly separable"]
    ends = (0.5, 1.0) if most else (0.0, 0.5)
    return Interval(np.array(ends[0]), np.array(ends[1]), "stated range: a side of one half")


identifiable_tight = Claim(
    id="match-copy/identifiable-tight",
    title="With d = T - 3 = 1 A3 fails in a third of the samples",
    paper=PAPER,
    where="beside Proposition G.2 (2)",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"For $T = 4$, $d = 1$: $P(v_y \in \mathrm{conv}\{v_t\}) = \frac13$.",
    constants={"of": 3},
    group=GROUP,
    instances=line_draws,
    predict=median_probability,
    measure=target_between,
    unit="sample",
    judgements=1,
    controls=(Plant(name="one in four", constants={"of": 4}),),
    notes="So d >= T - 2 cannot be weakened. Exchangeability: the target is the middle one of three numbers.",
)


separable_beyond = Claim(
    id="match-copy/separable-beyond",
    title="Separators exist far beyond one constraint an unknown, and no longer in three dimensions",
    paper=PAPER,
    where="beside Proposition G.2 (1)",
    source=Source.DERIVED,
    kind=Kind.ESTIMATE,
    evidence=Evidence.STATISTICAL,
    statement=(
        r"Most draws are separable at $n (T - 2) / d^2 = 12$ for $d = 8$ and at 6 for $d = 4$, and fewer than half at "
        r"10.7 for $d = 3$."
    ),
    constants={"mostly separable": (8, 4)},
    group=GROUP,
    instances=crowded_outcomes,
    predict=stated_share,
    measure=separable_share,
    unit="draw",
    judgements=len(CROWDED),
    controls=(Plant(name="three dimensions too", constants={"mostly separable": (8, 4, 3)}),),
    notes=(
        "Each draw is decided by a separator whose gap is recomputed, or by a combination of its constraints that is "
        "proved to be zero. Unlike independent labels, the constraints share the query, so that many more than two "
        "an unknown can be met. An observation: no law of this share is known to us."
    ),
)

CLAIMS = (
    identifiable_tight,
    separable_beyond,
)
