"""Judgement by kind: from what was measured and what was predicted to a verdict with its reason."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from marginlab.proofs_check.engine.claim import Claim, Kind, Verdict
from marginlab.proofs_check.engine.judgement import (
    Judgement,
    broadcast,
    componentwise,
    digits_apart,
    ends,
    excess,
    scalar,
    show,
    show_apart,
)
from marginlab.proofs_check.engine.trajectories import direction, emergence, limit, rate
from marginlab.proofs_check.engine.trajectories import slopes as slopes
from marginlab.proofs_check.engine.values import Approach, Curve, Emergence, Interval, Ranking, Sample
from marginlab.proofs_check.tolerances import mean_interval, proportion_interval
from marginlab.theory.errors import InvalidInput

#: Least number of replications behind a Student interval, and of any claim whose unit is the seed.
LEAST_REPLICATIONS = 5


def judge(claim: Claim, measured: Any, predicted: Any, level: float | None = None) -> Judgement:
    """Judge one instance of `claim`.

    Parameters
    ----------
    measured, predicted : values of `engine.values`
        What the claim's own functions returned.
    level : float, optional
        Error level of one statistical judgement; needed when a `Sample` was measured.

    Raises
    ------
    InvalidInput
        The claim's functions returned values that its kind cannot compare.
    """
    if isinstance(measured, Sample):
        measured = _sample_interval(claim, measured, level)
    rule, wants_measured, wants_predicted = _RULES[claim.kind]
    if not (isinstance(measured, wants_measured) and isinstance(predicted, wants_predicted)):
        raise InvalidInput(
            f"claim {claim.id!r} of kind {claim.kind} compares {wants_measured.__name__} with "
            f"{wants_predicted.__name__}, got {type(measured).__name__} and {type(predicted).__name__}."
        )
    return rule(claim, measured, predicted)


def _sample_interval(claim: Claim, sample: Sample, level: float | None) -> Interval:
    if level is None:
        raise InvalidInput("a sample was measured by a claim that declares no statistical judgement.")
    if sample.unit != claim.unit:
        raise InvalidInput(
            f"claim {claim.id!r} names the unit of replication {claim.unit!r}, its sample {sample.unit!r}."
        )
    n = len(sample.values)
    if n < LEAST_REPLICATIONS and (sample.law == "mean" or sample.unit == "seed"):
        raise InvalidInput(
            f"claim {claim.id!r} needs at least {LEAST_REPLICATIONS} replications ({sample.unit}), got {n}."
        )
    if sample.law == "mean" and np.isin(sample.values, (0.0, 1.0)).all():
        # Student's interval of a few zeros is [0, 0], whatever the probability of a one.
        raise InvalidInput(
            f"claim {claim.id!r} measured zeros and ones only: a sample of these has law='proportion'."
        )
    interval = proportion_interval if sample.law == "proportion" else mean_interval
    return interval(sample.values, level)


def _identity(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """Two enclosures of one number must overlap; the claim's controls show that they are narrow enough.

    An enclosure that is unbounded on a side would overlap for free: it decides nothing. Nor do two infinities,
    since nothing tells an infinite value from an overflow.
    """
    del claim
    measured, predicted = broadcast(measured, predicted)
    apart = np.maximum(excess(measured.lo, predicted.hi), excess(predicted.lo, measured.hi))
    broken = (measured.lo > predicted.hi) | (predicted.lo > measured.hi)
    holds = ~broken & measured.bounded & predicted.bounded
    return componentwise(measured, predicted, holds=holds, broken=broken, size=apart, relation="predicted")


def _upper(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """Everything measured lies below the bound; an infinite side, an overflow perhaps, decides nothing."""
    del claim
    measured, predicted = broadcast(measured, predicted)
    return componentwise(
        measured,
        predicted,
        holds=(measured.hi <= predicted.lo) & np.isfinite(predicted.lo) & (measured.hi > -np.inf),
        broken=measured.lo > predicted.hi,
        size=excess(measured.hi, predicted.lo),
        relation="upper bound",
    )


def _lower(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """Everything measured lies above the bound; an infinite side, an overflow perhaps, decides nothing."""
    del claim
    measured, predicted = broadcast(measured, predicted)
    return componentwise(
        measured,
        predicted,
        holds=(measured.lo >= predicted.hi) & np.isfinite(predicted.hi) & (measured.lo < np.inf),
        broken=measured.hi < predicted.lo,
        size=excess(predicted.hi, measured.lo),
        relation="lower bound",
    )


def _tight(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """An upper bound that is also attained: no component is above it for sure, and the best one touches it.

    Touching means that the enclosures overlap, as for an identity, so that a component that attains the
    bound straddles it; the claim's controls show that the enclosures are narrow enough.
    """
    bound = _upper(claim, measured, predicted)
    measured, predicted = broadcast(measured, predicted)
    if bound.verdict is Verdict.FAIL or measured.lo.size == 0:
        return bound
    reach = excess(measured.hi, predicted.lo)
    bounded = measured.bounded & predicted.bounded
    touching = bounded & (measured.hi >= predicted.lo)
    # A component without both ends touches nothing, and must stay below the bound for sure.
    undecided = ~bounded & (measured.hi >= predicted.lo)
    shown = undecided if undecided.any() else touching
    worst = int(np.argmax(np.where(shown, reach, -np.inf) if shown.any() else reach))
    index = tuple(int(i) for i in np.unravel_index(worst, reach.shape))
    best, limits = ends(measured, index), ends(predicted, index)
    ours, theirs = show_apart(best, limits)
    if undecided.any():
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"measured {ours}, bound {theirs}: an unbounded interval decides nothing",
            best,
            limits,
        )
    if not touching.any():
        return Judgement(
            Verdict.FAIL,
            f"the bound holds but is not attained: at best measured {ours} below {theirs}",
            best,
            limits,
        )
    return Judgement(Verdict.PASS, f"attained: measured {ours}, bound {theirs}", best, limits)


def _ordering(claim: Claim, measured: Ranking, predicted: tuple[str, ...]) -> Judgement:
    """Neighbours in the predicted order have intervals apart; no pair is the other way round for sure."""
    del claim
    if len(predicted) < 2 or len(set(predicted)) != len(predicted):
        raise InvalidInput(f"an order names at least two different quantities, got {predicted}.")
    if missing := set(predicted) - set(measured.values):
        raise InvalidInput(f"the ranking lacks {sorted(missing)}.")
    if extra := set(measured.values) - set(predicted):
        raise InvalidInput(f"an order says where every measured quantity stands, not {sorted(extra)}.")
    values = [(name, scalar(measured.values[name], f"the ranked {name!r}")) for name in predicted]
    digits = max(digits_apart(low, high) for (_, low), (_, high) in combinations(values, 2))
    text = " < ".join(f"{name} {show(pair, digits)}" for name, pair in values)
    if any(low[0] >= high[1] for (_, low), (_, high) in combinations(values, 2)):
        return Judgement(Verdict.FAIL, f"not in order: {text}")
    if all(low[1] < high[0] for (_, low), (_, high) in pairwise(values)):
        return Judgement(Verdict.PASS, text)
    return Judgement(Verdict.INCONCLUSIVE, f"intervals overlap: {text}")


def _estimate(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """Reports the value; judged by the stated range only, inside which it must lie.

    Infinite ends of the range state nothing. A measured interval without any finite end reports nothing,
    and so decides nothing.
    """
    del claim
    measured, predicted = broadcast(measured, predicted)
    known = np.isfinite(measured.lo) | np.isfinite(measured.hi)
    return componentwise(
        measured,
        predicted,
        holds=known & (measured.lo >= predicted.lo) & (measured.hi <= predicted.hi),
        broken=(measured.lo > predicted.hi) | (measured.hi < predicted.lo),
        size=np.maximum(excess(measured.hi, predicted.hi), excess(predicted.lo, measured.lo)),
        relation="stated range",
    )


_RULES: dict[Kind, tuple[Callable[[Claim, Any, Any], Judgement], type, type]] = {
    Kind.IDENTITY: (_identity, Interval, Interval),
    Kind.LIMIT: (limit, Curve, Interval),
    Kind.TIGHT: (_tight, Interval, Interval),
    Kind.UPPER: (_upper, Interval, Interval),
    Kind.LOWER: (_lower, Interval, Interval),
    Kind.RATE: (rate, Curve, Interval),
    Kind.DIRECTION: (direction, Approach, Interval),
    Kind.ORDERING: (_ordering, Ranking, tuple),
    Kind.EMERGENCE: (emergence, Curve, Emergence),
    Kind.ESTIMATE: (_estimate, Interval, Interval),
}
