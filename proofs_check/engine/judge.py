"""Judgement by kind: from what was measured and what was predicted to a verdict with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from marginlab.proofs_check.engine.claim import Claim, Kind, Verdict
from marginlab.proofs_check.engine.values import (
    Approach,
    Curve,
    Emergence,
    Float,
    Interval,
    Ranking,
    Sample,
)
from marginlab.proofs_check.tolerances import mean_interval, proportion_interval
from marginlab.theory.errors import InvalidInput

#: A window is cut into this many pieces of equal length; the pieces' slopes show whether it still drifts.
PIECES = 4


@dataclass(frozen=True, slots=True)
class Judgement:
    """Verdict on one instance.

    Parameters
    ----------
    verdict : Verdict
    reason : str
        One sentence with the numbers that decided.
    observed, expected : (float, float) or None
        The two intervals that were compared (the worst component of an array).
    """

    verdict: Verdict
    reason: str
    observed: tuple[float, float] | None = None
    expected: tuple[float, float] | None = None


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
        measured = _sample_interval(measured, level)
    rule, wants_measured, wants_predicted = _RULES[claim.kind]
    if not (isinstance(measured, wants_measured) and isinstance(predicted, wants_predicted)):
        raise InvalidInput(
            f"claim {claim.id!r} of kind {claim.kind} compares {wants_measured.__name__} with "
            f"{wants_predicted.__name__}, got {type(measured).__name__} and {type(predicted).__name__}."
        )
    return rule(claim, measured, predicted)


def slopes(x: Float, y: Interval, window: tuple[float, float], *, log_log: bool) -> tuple[Interval, Float]:
    """Slopes of y over the pieces of a window, each enclosed by the ends of y, and the pieces' edges.

    Pieces have equal length in x (in log x for a power law); edges are the nearest recorded points.

    Raises
    ------
    InvalidInput
        Fewer than PIECES + 1 recorded points inside the window.
    """
    inside = np.flatnonzero((x >= window[0]) & (x <= window[1]))
    if len(inside) < PIECES + 1:
        raise InvalidInput(
            f"the window {window} holds {len(inside)} recorded points and needs at least {PIECES + 1}."
        )
    scale = np.log if log_log else np.asarray
    u = scale(x[inside])
    lo, hi = (scale(end[inside]) for end in (y.lo, y.hi))
    edges = np.unique([int(np.argmin(np.abs(u - e))) for e in np.linspace(u[0], u[-1], PIECES + 1)])
    left, right = edges[:-1], edges[1:]
    length = u[right] - u[left]
    return Interval((lo[right] - hi[left]) / length, (hi[right] - lo[left]) / length, y.rule), x[inside][
        edges
    ]


def _sample_interval(sample: Sample, level: float | None) -> Interval:
    if level is None:
        raise InvalidInput("a sample was measured by a claim that declares no statistical judgement.")
    values = np.asarray(sample.values, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InvalidInput(f"a sample's values must be a finite vector, got shape {values.shape}.")
    if sample.law == "proportion":
        if not np.isin(values, (0.0, 1.0)).all():
            raise InvalidInput("a sample of a proportion holds zeros and ones only.")
        return proportion_interval(values, level)
    if sample.law != "mean":
        raise InvalidInput(f"a sample's law is 'mean' or 'proportion', not {sample.law!r}.")
    return mean_interval(values, level)


def _ends(interval: Interval, index: Any) -> tuple[float, float]:
    return float(interval.lo[index]), float(interval.hi[index])


def _show(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.6g}" if ends[0] == ends[1] else f"[{ends[0]:.6g}, {ends[1]:.6g}]"


def _worst(
    measured: Interval, predicted: Interval, excess: Float, certain: Float, relation: str
) -> Judgement:
    """PASS where `excess` <= 0 everywhere, FAIL where `certain` > 0 anywhere, else INCONCLUSIVE.

    `excess` is by how much the statement may be broken (unfavourable ends), `certain` by how much it is
    broken for sure (favourable ends).
    """
    if excess.size == 0:
        return Judgement(Verdict.INCONCLUSIVE, "nothing was measured (an empty array)")
    index = np.unravel_index(int(np.argmax(certain if (certain > 0).any() else excess)), excess.shape)
    observed, expected = _ends(measured, index), _ends(predicted, index)
    where = f" at {tuple(int(i) for i in index)}" if excess.size > 1 else ""
    text = f"measured {_show(observed)}, {relation} {_show(expected)}{where}"
    if (certain > 0).any():
        verdict = Verdict.FAIL
    elif (excess <= 0).all():
        verdict = Verdict.PASS
    else:
        verdict, text = Verdict.INCONCLUSIVE, text + ": the interval straddles the bound"
    return Judgement(verdict, text, observed, expected)


def _broadcast(measured: Interval, predicted: Interval) -> tuple[Interval, Interval]:
    try:
        shape = np.broadcast_shapes(measured.shape, predicted.shape)
    except ValueError:
        raise InvalidInput(
            f"measured values of shape {measured.shape} and predicted ones of shape {predicted.shape} "
            "do not fit together."
        ) from None

    def stretched(value: Interval) -> Interval:
        return Interval(np.broadcast_to(value.lo, shape), np.broadcast_to(value.hi, shape), value.rule)

    return stretched(measured), stretched(predicted)


def _identity(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """Two enclosures of one number must overlap; the claim's controls show that they are narrow enough."""
    del claim
    measured, predicted = _broadcast(measured, predicted)
    apart = np.maximum(measured.lo - predicted.hi, predicted.lo - measured.hi)
    return _worst(measured, predicted, apart, apart, "predicted")


def _upper(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    del claim
    measured, predicted = _broadcast(measured, predicted)
    return _worst(measured, predicted, measured.hi - predicted.lo, measured.lo - predicted.hi, "upper bound")


def _lower(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    del claim
    measured, predicted = _broadcast(measured, predicted)
    return _worst(measured, predicted, predicted.hi - measured.lo, predicted.lo - measured.hi, "lower bound")


def _tight(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """An upper bound that is also attained: the largest ratio over the instance comes up to it.

    The bound must hold for every component, and the best component's enclosures must overlap.
    """
    bound = _upper(claim, measured, predicted)
    if bound.verdict is not Verdict.PASS and bound.verdict is not Verdict.INCONCLUSIVE:
        return bound
    wide, limits = _broadcast(measured, predicted)
    short = limits.lo - wide.hi
    index = np.unravel_index(int(np.argmin(short)), short.shape)
    if short[index] > 0:
        return Judgement(
            Verdict.FAIL,
            f"the bound holds but is not attained: at best measured {_show(_ends(wide, index))} "
            f"below {_show(_ends(limits, index))}",
            _ends(wide, index),
            _ends(limits, index),
        )
    # Attained means touching, so the enclosures straddle the bound there, and only there.
    over = wide.lo - limits.hi
    if (over > 0).any():
        return bound
    return Judgement(
        Verdict.PASS,
        f"attained: measured {_show(_ends(wide, index))}, bound {_show(_ends(limits, index))}",
        _ends(wide, index),
        _ends(limits, index),
    )


def _within(observed: tuple[float, float], expected: tuple[float, float], text: str) -> Judgement:
    """PASS if `observed` lies inside `expected`, FAIL if they are disjoint, else INCONCLUSIVE."""
    if expected[0] <= observed[0] and observed[1] <= expected[1]:
        verdict = Verdict.PASS
    elif observed[0] > expected[1] or observed[1] < expected[0]:
        verdict = Verdict.FAIL
    else:
        verdict, text = Verdict.INCONCLUSIVE, text + ": the interval straddles the bound"
    return Judgement(verdict, text, observed, expected)


def _window(claim: Claim) -> tuple[float, float]:
    assert claim.window is not None  # the claim's own rules: a rate, limit or direction states it
    return claim.window


def _rate(claim: Claim, measured: Curve, predicted: Interval) -> Judgement:
    """All slopes over the pieces of the window lie inside the predicted interval."""
    pieces, edges = slopes(measured.x, measured.y, _window(claim), log_log=measured.log_log)
    observed = float(pieces.lo.min()), float(pieces.hi.max())
    each = ", ".join(f"{m:.5g}" for m in pieces.mid)
    return _within(
        observed,
        _ends(predicted, ()),
        f"slopes over {len(pieces.lo)} pieces of [{edges[0]:.5g}, {edges[-1]:.5g}]: {each}; "
        f"predicted {_show(_ends(predicted, ()))}",
    )


def _limit(claim: Claim, measured: Curve, predicted: Interval) -> Judgement:
    """All values in the window lie inside the predicted interval, and the last piece is not farther off."""
    lo, hi = _window(claim)
    inside = (measured.x >= lo) & (measured.x <= hi)
    if inside.sum() < 2:
        raise InvalidInput(f"the window {_window(claim)} holds {inside.sum()} recorded points, needs two.")
    observed = float(measured.y.lo[inside].min()), float(measured.y.hi[inside].max())
    expected = _ends(predicted, ())
    verdict = _within(observed, expected, f"values in {_show(observed)}, limit {_show(expected)}")
    off = np.abs(measured.y.mid[inside] - predicted.mid)
    width = float((measured.y.hi - measured.y.lo)[inside].max())
    if verdict.verdict is Verdict.PASS and off[-1] > off[0] + width:
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"inside the band but moving away from the limit: off by {off[0]:.3g}, then {off[-1]:.3g}",
            observed,
            expected,
        )
    return verdict


def _direction(claim: Claim, measured: Approach, predicted: Interval) -> Judgement:
    """1 - cos decays against the norm at least with the predicted exponent, on every piece of the window.

    `predicted` holds the exponent p of 1 - cos = O(1 / ||W||^p). The enclosures come from a certified
    separator; those from other oracles must overlap them.
    """
    for oracle, other in measured.separators.items():
        apart = np.maximum(measured.one_minus_cos.lo - other.hi, other.lo - measured.one_minus_cos.hi)
        if (apart > 0).any():
            k = int(np.argmax(apart))
            return Judgement(
                Verdict.INCONCLUSIVE,
                f"the separators disagree: 1 - cos in {_show(_ends(measured.one_minus_cos, (k,)))}, by "
                f"{oracle} in {_show(_ends(other, (k,)))}",
            )
    time = np.asarray(measured.time, dtype=np.float64)
    norm = np.asarray(measured.norm, dtype=np.float64)
    lo, hi = _window(claim)
    inside = (time >= lo) & (time <= hi)
    grown = norm[inside]
    expected = (float(predicted.lo), np.inf)
    if len(grown) < 2 or not (np.diff(grown) > 0).all():
        return Judgement(
            Verdict.INCONCLUSIVE, "the norm does not grow along the window, so no decay can be read off"
        )
    floor = np.finfo(np.float64).tiny  # a lower end of 0 is a certificate's limit, not a perfect alignment
    enclosure = Interval(
        np.maximum(measured.one_minus_cos.lo[inside], floor),
        np.maximum(measured.one_minus_cos.hi[inside], floor),
        measured.one_minus_cos.rule,
    )
    pieces, _ = slopes(grown, enclosure, (grown[0], grown[-1]), log_log=True)
    observed = float(-pieces.hi.max()), float(-pieces.lo.min())
    last = _ends(measured.one_minus_cos, (int(np.flatnonzero(inside)[-1]),))
    each = ", ".join(f"{-m:.3g}" for m in pieces.mid)
    return _within(
        observed,
        expected,
        f"1 - cos ends in {_show(last)} and decays with the norm to the powers {each} on the pieces of the "
        f"window; at least {expected[0]:.3g} is required",
    )


def _ordering(claim: Claim, measured: Ranking, predicted: tuple[str, ...]) -> Judgement:
    """Neighbours in the predicted order have intervals apart and in that order."""
    del claim
    if missing := set(predicted) - set(measured.values):
        raise InvalidInput(f"the ranking lacks {sorted(missing)}.")
    values = [(name, _ends(measured.values[name], ())) for name in predicted]
    text = " < ".join(f"{name} {_show(ends)}" for name, ends in values)
    pairs = list(pairwise(values))
    if any(low[0] >= high[1] for (_, low), (_, high) in pairs):
        return Judgement(Verdict.FAIL, f"not in order: {text}")
    if all(low[1] < high[0] for (_, low), (_, high) in pairs):
        return Judgement(Verdict.PASS, text)
    return Judgement(Verdict.INCONCLUSIVE, f"intervals overlap: {text}")


def _emergence(claim: Claim, measured: Curve, predicted: Emergence) -> Judgement:
    """Below `before` at the start, above `after` in the end, the first crossing inside the window."""
    del claim
    y = measured.y
    start, end = _ends(y, (0,)), _ends(y, (len(measured.x) - 1,))
    above = np.flatnonzero(y.lo > predicted.after)
    text = f"{measured.y_name} from {_show(start)} to {_show(end)}"
    if start[0] > predicted.before or end[1] < predicted.after:
        return Judgement(
            Verdict.FAIL,
            f"{text}; predicted below {predicted.before}, then above {predicted.after}",
            end,
            (predicted.after, np.inf),
        )
    if start[1] > predicted.before or not len(above) or end[0] < predicted.after:
        return Judgement(Verdict.INCONCLUSIVE, f"{text}: the interval straddles the bound")
    crossing = float(measured.x[above[0]])
    text += f", crossing {predicted.after} at {measured.x_name} {crossing:g}"
    inside = predicted.window[0] <= crossing <= predicted.window[1]
    return Judgement(
        Verdict.PASS if inside else Verdict.FAIL,
        f"{text}; window {predicted.window}",
        (crossing, crossing),
        predicted.window,
    )


def _estimate(claim: Claim, measured: Interval, predicted: Interval) -> Judgement:
    """Reports the value; judged by the stated bound only (infinite ends state none)."""
    del claim
    measured, predicted = _broadcast(measured, predicted)
    excess = np.maximum(measured.hi - predicted.hi, predicted.lo - measured.lo)
    certain = np.maximum(measured.lo - predicted.hi, predicted.lo - measured.hi)
    return _worst(measured, predicted, excess, certain, "stated range")


_RULES: dict[Kind, tuple[Callable[[Claim, Any, Any], Judgement], type, type]] = {
    Kind.IDENTITY: (_identity, Interval, Interval),
    Kind.LIMIT: (_limit, Curve, Interval),
    Kind.TIGHT: (_tight, Interval, Interval),
    Kind.UPPER: (_upper, Interval, Interval),
    Kind.LOWER: (_lower, Interval, Interval),
    Kind.RATE: (_rate, Curve, Interval),
    Kind.DIRECTION: (_direction, Approach, Interval),
    Kind.ORDERING: (_ordering, Ranking, tuple),
    Kind.EMERGENCE: (_emergence, Curve, Emergence),
    Kind.ESTIMATE: (_estimate, Interval, Interval),
}
