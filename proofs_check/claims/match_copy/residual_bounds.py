"""Residuals between two multiples of 1 - a_y (Lemma G.3), in exact rationals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.rational import TOTAL, RationalSample, dot, exact_floats
from marginlab.proofs_check.engine.claim import (
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHull:
    """A sample whose squared distance gamma^2 of the target to the rivals' hull is known by construction."""

    sample: RationalSample
    squared_distance: int


def _sample(errors: list[tuple[int, ...]], weights: tuple[int, ...]) -> RationalSample:
    """Match first, at the origin of the values; keys and query do not matter for the residual."""
    d = len(errors[0])
    values = ((0,) * d, *errors)
    return RationalSample(
        keys=tuple((t, 0) for t in range(len(values))), query=(1, 0), values=values, match=0, weights=weights
    )


def known_hulls(run: Run) -> Iterable[Instance]:
    """Rivals p + u_t with u_t orthogonal to p and sum_t c_t u_t = 0, c > 0: the nearest point of their hull is p.

    The first weights are proportional to c, where the lower bound is attained; the others are drawn.
    """
    p = (1, 2, 2)  # gamma^2 = 9
    offsets, c = ((2, -1, 0), (2, -1, 0), (-4, 2, 0)), (4, 4, 4)
    errors = [tuple(a + b for a, b in zip(p, u, strict=True)) for u in offsets]
    for seed in [None, *run.seeds(4)]:
        if seed is None:
            weights, label = c, "weights of the nearest point"
        else:
            rng = np.random.default_rng(run.stream({"kind": "known hull"}, seed))
            weights, label = tuple(int(w) for w in rng.integers(1, 10, 3)), f"weights of seed {seed}"
        sample = _sample(errors, (TOTAL - sum(weights), *weights))
        yield Instance(
            label=label,
            data=KnownHull(sample=sample, squared_distance=dot(p, p).numerator),
            seed=seed,
            config={"p": p, "offsets": offsets, "weights": weights},
        )


def single_errors(run: Run) -> Iterable[Instance]:
    """The same samples, and one with a single rival, where the upper bound is attained."""
    yield from known_hulls(run)
    sample = _sample([(1, 2, 2)], (20, 12))
    yield Instance(
        label="one rival", data=KnownHull(sample=sample, squared_distance=9), config={"weights": [20, 12]}
    )


def squared_residual(instance: Instance) -> Interval:
    """||sum_t a_t v_t - v_y||^2, from the definition of the model."""
    r = instance.data.sample.residual
    return Interval.exact(exact_floats([dot(r, r)]))


def _missing(sample: RationalSample) -> Fraction:
    """1 - a_y."""
    return 1 - sample.attention[sample.match]


def squared_lower_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(1 - a_y)^2 gamma^2, times a factor."""
    hull: KnownHull = instance.data
    value = Fraction(constants["factor"]) * _missing(hull.sample) ** 2 * hull.squared_distance
    return Interval.exact(exact_floats([value]))


def squared_upper_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(1 - a_y)^2 C^2 with C = max_t ||d_t||, times a factor."""
    sample: RationalSample = instance.data.sample
    reach = max(dot(sample.errors[t], sample.errors[t]) for t in sample.rivals)
    return Interval.exact(exact_floats([Fraction(constants["factor"]) * _missing(sample) ** 2 * reach]))


residual_lower = Claim(
    id="match-copy/residual-lower",
    title="The residual is at least (1 - a) times the target's distance to the other values",
    paper=PAPER,
    where="Lemma G.3",
    source=Source.REPORTED,
    kind=Kind.LOWER,
    evidence=Evidence.EXACT,
    statement=(
        r"$\|r_i\| \ge (1 - a_{T_0})\, \gamma_i$ with $\gamma_i$ the distance of $e_{T_0}$ to the hull of the "
        r"distractors."
    ),
    constants={"factor": 1},
    group="match-copy/exact",
    instances=known_hulls,
    predict=squared_lower_bound,
    measure=squared_residual,
    controls=(Plant(name="1 % more", constants={"factor": 1.0078125}),),
    notes=(
        "Squares of both sides, in exact rationals; the distance is known by construction, and attained at the first "
        "weights. So under A3 the loss of a sample vanishes only as attention becomes hard, and is positive at every "
        "finite W."
    ),
)


residual_upper = Claim(
    id="match-copy/residual-upper",
    title="The residual is at most (1 - a) times the largest error",
    paper=PAPER,
    where="Lemma G.3",
    source=Source.REPORTED,
    kind=Kind.UPPER,
    evidence=Evidence.EXACT,
    statement=r"$\|r_i\| \le (1 - a_{T_0})\, C_i$ with $C_i = \max_t \|d_{i,t}\|$.",
    constants={"factor": 1},
    group="match-copy/exact",
    instances=single_errors,
    predict=squared_upper_bound,
    measure=squared_residual,
    controls=(Plant(name="1 % less", constants={"factor": 0.9921875}),),
    notes="Squares of both sides, in exact rationals; attained with one rival.",
)

CLAIMS = (
    residual_lower,
    residual_upper,
)
