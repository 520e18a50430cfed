"""Which direction is it? The end of normalised descent against rivals of the max-margin separator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.proofs_check.certificates import CosineEnclosure, alignment
from marginlab.proofs_check.claims.match_copy.assumptions import A1, A4_ALONE, A5, TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.numerics import normalised_runs
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.values import Interval, Ranking
from marginlab.proofs_check.tolerances import enclosed, gamma
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.validation import Float

#: Rivals within this angle (radians) of the separator are the same direction for the purpose of this claim.
SAME_DIRECTION = 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """A direction W, known to an angle (radians)."""

    W: Float
    angle_bound: float


def equal_margins(constraints: RankOneConstraints) -> Direction:
    """The least-norm W whose margins are all equal: the interpolator, and the separator if all constraints support.

    With Gram matrix K it is the combination of the constraints with weights K^-1 1. Residuals r of its margins put it
    within ||r|| / sqrt(lambda_min(K)) of the exact one.

    Raises
    ------
    CannotForm
        The constraint vectors are dependent as far as float64 can tell.
    """
    gram = constraints.gram()
    values = np.linalg.eigvalsh(gram)
    least = float(values[0] - gamma(10 * len(gram)) * values[-1])  # the rounding of K and of its eigenvalues
    if least <= 0:
        raise CannotForm("the constraint vectors are dependent, so that no W gives all of them one margin.")
    W = constraints.combine(np.linalg.solve(gram, np.ones(len(gram))).astype(np.float64))
    size = float(np.linalg.norm(W))
    rounding = gamma(sum(constraints.shape) + 2) * float(np.linalg.norm(constraints.norms())) * size
    residual = float(np.linalg.norm(constraints.margins(W) - 1)) + rounding
    return Direction(W, float(np.arcsin(min(1.0, residual / np.sqrt(least) / size))))


def constraint_sum(constraints: RankOneConstraints) -> Direction:
    """The sum of all constraint vectors: the first step of descent on the cross-entropy from zero."""
    W = constraints.combine(np.ones(len(constraints)))
    size = float(constraints.norms().sum() / np.linalg.norm(W))
    return Direction(W, gamma(len(constraints) + sum(constraints.shape) + 4) * size)


def _off(cosine: CosineEnclosure, what: str) -> Interval:
    return enclosed(cosine.one_minus_lower, cosine.one_minus_upper, what)


def _rivals(run: TrainedRun) -> list[Direction]:
    constraints = run.problem.constraints()
    return [equal_margins(constraints), constraint_sum(constraints)]


def rivals_differ(instance: Instance) -> Answer:
    """Whether every rival makes an angle with the separator that can be seen."""
    run: TrainedRun = instance.data
    cosines = [alignment(rival.W, run.certificate) for rival in _rivals(run)]
    angle = min(float(np.arccos(np.clip(c.upper, -1, 1))) for c in cosines)
    status = Status.HOLDS if angle >= SAME_DIRECTION else Status.FAILS
    return Answer(status, f"the nearest rival is {np.degrees(angle):.3g} degrees from the separator", angle)


def distances_at_the_end(instance: Instance) -> Ranking:
    """1 - cos of the last W to the separator and to the nearest of its rivals."""
    run: TrainedRun = instance.data
    last = run.W[-1]
    rivals = [_off(alignment(last, rival), "rounding of the rival") for rival in _rivals(run)]
    return Ranking(
        values={
            "max-margin": _off(alignment(last, run.certificate), "certified separator"),
            "nearest rival": min(rivals, key=lambda interval: float(interval.lo)),
        }
    )


def order(instance: Instance, constants: Mapping[str, Any]) -> tuple[str, ...]:
    """Names from the nearest to the farthest."""
    del instance
    return tuple(constants["order"])


direction_rivals = Claim(
    id="match-copy/direction-rivals",
    title="Normalised descent ends nearer to the max-margin separator than to its rivals",
    paper=PAPER,
    where="Theorem D.2, which direction",
    source=Source.DERIVED,
    kind=Kind.ORDERING,
    evidence=Evidence.NUMERICAL,
    statement=(
        r"At the end of normalised descent $1 - \cos(w, \hat w)$ is smaller than $1 - \cos$ to the least-norm "
        r"interpolator of equal margins and to the sum of all constraint vectors."
    ),
    assumes=(
        A1,
        A4_ALONE,
        A5,
        TRUSTED,
        Assumption(
            name="rivals-differ",
            statement="every rival direction makes an angle of at least 0.01 with the separator",
            check=rivals_differ,
        ),
    ),
    depends_on=("match-copy/direction-normalised",),
    constants={"order": ("max-margin", "nearest rival")},
    instances=normalised_runs,
    predict=order,
    measure=distances_at_the_end,
    group="match-copy/normalised-run",
    controls=(Plant(name="the interpolator first", constants={"order": ("nearest rival", "max-margin")}),),
    notes=(
        "Fixed-step descent approaches its limit like 1/log t, and after 40 000 steps cannot tell directions a few "
        "degrees apart; normalised descent on the same data ends within about a tenth of a degree. Where every "
        "constraint supports the margin the interpolator is the separator, and the claim says nothing. The separator "
        "is certified; the rivals are float64, with their rounding bounded. No control here shows that A4 is needed."
    ),
)

CLAIMS = (direction_rivals,)
