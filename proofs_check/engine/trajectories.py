"""Judgement of what happens along a trajectory: rates, limits, directions and emergence."""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.engine.claim import Claim, Verdict
from marginlab.proofs_check.engine.judgement import STRADDLES, Ends, Judgement, decided, ends, scalar, show
from marginlab.proofs_check.engine.values import Approach, Curve, Emergence, Float, Interval
from marginlab.theory.errors import InvalidInput

#: A window is cut into this many pieces of equal length; the pieces' slopes show whether it still drifts.
PIECES = 4


def slopes(x: Float, y: Interval, window: tuple[float, float], *, log_log: bool) -> tuple[Interval, Float]:
    """Slopes of y over the pieces of a window, each enclosed by the ends of y, and the pieces' edges.

    Pieces have equal length in x (in log x for a power law); edges are the nearest recorded points. For a
    power law an enclosure of y that reaches down to 0 leaves its slopes unbounded.

    Raises
    ------
    InvalidInput
        Fewer than PIECES + 1 recorded points inside the window, or too unevenly spread for PIECES pieces.
    """
    inside = np.flatnonzero((x >= window[0]) & (x <= window[1]))
    if len(inside) < PIECES + 1:
        raise InvalidInput(
            f"the window {window} holds {len(inside)} recorded points and needs at least {PIECES + 1}."
        )
    u, lo, hi = x[inside], y.lo[inside], y.hi[inside]
    if log_log:
        with np.errstate(divide="ignore"):  # log 0 = -inf: nothing is known on that side
            u, lo, hi = np.log(u), np.log(np.maximum(lo, 0.0)), np.log(hi)
    edges = np.unique([int(np.argmin(np.abs(u - e))) for e in np.linspace(u[0], u[-1], PIECES + 1)])
    if len(edges) < PIECES + 1:
        raise InvalidInput(
            f"the {len(inside)} recorded points in the window {window} are too unevenly spread for "
            f"{PIECES} pieces of about equal length."
        )
    left, right = edges[:-1], edges[1:]
    length = u[right] - u[left]
    pieces = Interval((lo[right] - hi[left]) / length, (hi[right] - lo[left]) / length, y.rule)
    return pieces, x[inside][edges]


def _inside(observed: Interval, expected: Ends, text: str) -> Judgement:
    """PASS if every component lies inside `expected`, FAIL if one lies outside for sure."""
    holds = (observed.lo >= expected[0]) & (observed.hi <= expected[1])
    broken = (observed.lo > expected[1]) | (observed.hi < expected[0])
    verdict = decided(holds, broken)
    if verdict is Verdict.INCONCLUSIVE:
        text = f"{text}: {STRADDLES}"
    return Judgement(verdict, text, (float(observed.lo.min()), float(observed.hi.max())), expected)


def _window(claim: Claim) -> tuple[float, float]:
    assert claim.window is not None  # the claim's own rules: a rate, limit or direction states it
    return claim.window


def rate(claim: Claim, measured: Curve, predicted: Interval) -> Judgement:
    """All slopes over the pieces of the window lie inside the predicted interval."""
    expected = scalar(predicted, "a predicted rate")
    pieces, edges = slopes(measured.x, measured.y, _window(claim), log_log=measured.log_log)
    each = ", ".join(f"{m:.5g}" for m in pieces.mid)
    return _inside(
        pieces,
        expected,
        f"slopes over {len(pieces.lo)} pieces of [{edges[0]:.5g}, {edges[-1]:.5g}]: {each}; "
        f"predicted {show(expected)}",
    )


def limit(claim: Claim, measured: Curve, predicted: Interval) -> Judgement:
    """All values in the window lie inside the predicted interval, and the last one is not farther off."""
    expected = scalar(predicted, "a predicted limit")
    lo, hi = _window(claim)
    inside = (measured.x >= lo) & (measured.x <= hi)
    if inside.sum() < 2:
        raise InvalidInput(f"the window {_window(claim)} holds {inside.sum()} recorded points, needs two.")
    values = Interval(measured.y.lo[inside], measured.y.hi[inside], measured.y.rule)
    observed = float(values.lo.min()), float(values.hi.max())
    verdict = _inside(values, expected, f"values in {show(observed)}, limit {show(expected)}")
    if verdict.verdict is not Verdict.PASS:
        return verdict
    off = np.abs(values.mid - predicted.mid)
    # Two values whose enclosures are this wide may differ by their half widths and still be equal.
    slack = (values.hi - values.lo)[[0, -1]].sum() / 2
    if off[-1] > off[0] + slack:
        return Judgement(
            Verdict.INCONCLUSIVE,
            f"inside the band but moving away from the limit: off by {off[0]:.3g}, then {off[-1]:.3g}",
            observed,
            expected,
        )
    return verdict


def direction(claim: Claim, measured: Approach, predicted: Interval) -> Judgement:
    """1 - cos decays against the norm at least with the predicted exponent, on every piece of the window.

    A direction that ends the window farther from the separator than it began fails, whatever the norm does.
    The lower end of `predicted` is the exponent p of 1 - cos = O(1 / ||W||^p). The enclosures come from a
    certified separator; those from other oracles must overlap them.
    """
    for oracle, other in measured.separators.items():
        apart = np.maximum(measured.one_minus_cos.lo - other.hi, other.lo - measured.one_minus_cos.hi)
        if (apart > 0).any():
            k = int(np.argmax(apart))
            return Judgement(
                Verdict.INCONCLUSIVE,
                f"the separators disagree: 1 - cos in {show(ends(measured.one_minus_cos, (k,)))}, by "
                f"{oracle} in {show(ends(other, (k,)))}",
            )
    least = scalar(predicted, "a predicted exponent")[0]
    lo, hi = _window(claim)
    inside = (measured.time >= lo) & (measured.time <= hi)
    grown = measured.norm[inside]
    if len(grown) >= 2:
        first, last = (ends(measured.one_minus_cos, (int(k),)) for k in np.flatnonzero(inside)[[0, -1]])
        if last[0] > first[1]:
            return Judgement(
                Verdict.FAIL,
                f"W moves away from the separator along the window: 1 - cos from {show(first)} to {show(last)}",
                last,
                (0.0, first[1]),
            )
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
    last = ends(measured.one_minus_cos, (int(np.flatnonzero(inside)[-1]),))
    each = ", ".join(f"{-m:.3g}" for m in pieces.mid)
    return _inside(
        Interval(-pieces.hi, -pieces.lo, pieces.rule),
        (least, np.inf),
        f"1 - cos ends in {show(last)} and decays with the norm to the powers {each} on the pieces of the "
        f"window; at least {least:.3g} is required",
    )


def emergence(claim: Claim, measured: Curve, predicted: Emergence) -> Judgement:
    """Below `before` at the start, above `after` in the end, the first crossing inside the window.

    The crossing lies after the last recorded point before which the curve is still below for sure, and not
    after the first one that is above for sure: this whole interval must fall in the window.
    """
    del claim
    x, y = measured.x, measured.y
    start, end = ends(y, (0,)), ends(y, (len(x) - 1,))
    text = f"{measured.y_name} from {show(start)} to {show(end)}"
    if start[0] > predicted.before or end[1] <= predicted.after:
        return Judgement(
            Verdict.FAIL,
            f"{text}; predicted below {predicted.before}, then above {predicted.after}",
            end,
            (predicted.after, np.inf),
        )
    if start[1] > predicted.before or end[0] <= predicted.after:
        return Judgement(Verdict.INCONCLUSIVE, f"{text}: {STRADDLES}")
    # The start is below `after` for sure and the end above it, so both indices exist and the first is > 0.
    maybe_above = int(np.argmax(y.hi > predicted.after))
    surely_above = int(np.argmax(y.lo > predicted.after))
    crossing = float(x[maybe_above - 1]), float(x[surely_above])
    return _inside(
        Interval(np.array(crossing[0]), np.array(crossing[1]), y.rule),
        predicted.window,
        f"{text}, crossing {predicted.after:g} at {measured.x_name} in {show(crossing)}; "
        f"window {predicted.window}",
    )
