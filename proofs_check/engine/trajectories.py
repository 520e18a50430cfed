"""Judgement of what happens along a trajectory: rates, limits, directions and emergence."""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.engine.claim import Claim, Verdict
from marginlab.proofs_check.engine.judgement import STRADDLES, Ends, Judgement, decided, ends, scalar, show
from marginlab.proofs_check.engine.values import Approach, Curve, Emergence, Float, Interval
from marginlab.theory.errors import InvalidInput

#: A window is cut into this many pieces of equal length; the pieces' slopes show whether it still drifts.
PIECES = 4

#: Share of a piece within which a point must be recorded around each edge of a piece, the window's ends included.
#: Slopes are read between those points, so that a piece is never shorter than half of what was stated.
COVERAGE = 0.25


def uncovered(u: Float, ends_of_window: Ends, *, edges: int = PIECES + 1) -> str:
    """Where a window of the scale u holds no recorded point, in words; empty if it is covered.

    Covered means that a point lies within a quarter of a piece of every edge (`edges` = 2: of both ends), so
    that a statement about the window is never judged on a part of it.
    """
    reach = COVERAGE * (ends_of_window[1] - ends_of_window[0]) / PIECES
    wanted = np.linspace(*ends_of_window, edges)
    share = (wanted - wanted[0]) / (wanted[-1] - wanted[0])
    for at, part in zip(wanted, share, strict=True):
        if not (np.abs(u - at) <= reach).any():
            return f"the window is not covered: no point was recorded within a quarter of a piece of {part:.0%} of it"
    return ""


def chords(u: Float, y: Interval, least: float) -> Interval:
    """The extreme slopes among the chords of y over lengths from `least` to twice that: four of them.

    They have the least and the greatest lower end, and the least and the greatest upper end, so that all chords
    lie inside a range, or one lies outside for sure, exactly if that is so of these four. Points of pieces
    alone would not see what happens between them: 2x + sin(pi x) has slope 2 over every piece of length 2.
    """
    found: list[Ends] = []
    for i, start in enumerate(u):
        first = int(np.searchsorted(u, start + least))
        last = max(first + 1, int(np.searchsorted(u, start + 2 * least, side="right")))
        d = u[first:last] - start
        if len(d):
            lo, hi = (y.lo[first:last] - y.hi[i]) / d, (y.hi[first:last] - y.lo[i]) / d
            picks = {int(lo.argmin()), int(lo.argmax()), int(hi.argmin()), int(hi.argmax())}
            found += [(float(lo[k]), float(hi[k])) for k in picks]
    ends_ = np.array(found)
    picks = [ends_[:, 0].argmin(), ends_[:, 0].argmax(), ends_[:, 1].argmin(), ends_[:, 1].argmax()]
    return Interval(ends_[picks, 0], ends_[picks, 1], y.rule)


def slopes(x: Float, y: Interval, window: Ends, *, log_log: bool) -> tuple[Interval, Float]:
    """Slopes of y over the pieces of a window, each enclosed by the ends of y, and the pieces' edges.

    Pieces have equal length in x (in log x for a power law); edges are the nearest recorded points. For a
    power law an enclosure of y that reaches down to 0 leaves its slopes unbounded.

    Raises
    ------
    InvalidInput
        A power law's window that does not start above 0, fewer than PIECES + 1 recorded points inside the
        window, or too unevenly spread for PIECES pieces.
    """
    pieces, _, edges, _ = _read(x, y, window, log_log=log_log)
    return pieces, edges


def _read(x: Float, y: Interval, window: Ends, *, log_log: bool) -> tuple[Interval, Interval, Float, str]:
    """The slopes and edges of `slopes`, with `chords` of at least half a piece and what is `uncovered`."""
    if log_log and not window[0] > 0:
        raise InvalidInput(f"the window of a power law starts above 0, not at {window[0]}.")
    inside = np.flatnonzero((x >= window[0]) & (x <= window[1]))
    if len(inside) < PIECES + 1:
        raise InvalidInput(
            f"the window {window} holds {len(inside)} recorded points and needs at least {PIECES + 1}."
        )
    u, lo, hi, scaled = x[inside], y.lo[inside], y.hi[inside], window
    if log_log:
        with np.errstate(divide="ignore"):  # log 0 = -inf: nothing is known on that side
            u, lo, hi = np.log(u), np.log(np.maximum(lo, 0.0)), np.log(hi)
        scaled = (float(np.log(window[0])), float(np.log(window[1])))
    edges = np.unique([int(np.argmin(np.abs(u - e))) for e in np.linspace(u[0], u[-1], PIECES + 1)])
    if len(edges) < PIECES + 1:
        raise InvalidInput(
            f"the {len(inside)} recorded points in the window {window} are too unevenly spread for "
            f"{PIECES} pieces of about equal length."
        )
    left, right = edges[:-1], edges[1:]
    length = u[right] - u[left]
    pieces = Interval((lo[right] - hi[left]) / length, (hi[right] - lo[left]) / length, y.rule)
    extremes = chords(u, Interval(lo, hi, y.rule), (u[-1] - u[0]) / (2 * PIECES))
    return pieces, extremes, x[inside][edges], uncovered(u, scaled)


def _together(pieces: Interval, extremes: Interval) -> Interval:
    return Interval(np.r_[pieces.lo, extremes.lo], np.r_[pieces.hi, extremes.hi], pieces.rule)


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
    """All slopes lie inside the predicted interval: over the pieces of the window, and over its half pieces.

    The half pieces (all chords between recorded points at least half a piece and at most a piece apart) show an
    oscillation that the pieces' ends do not see. A window that the recorded points do not cover decides nothing.
    """
    expected = scalar(predicted, "a predicted rate")
    pieces, extremes, edges, gap = _read(measured.x, measured.y, _window(claim), log_log=measured.log_log)
    if gap:
        return Judgement(Verdict.INCONCLUSIVE, gap)
    each = ", ".join(f"{m:.5g}" for m in pieces.mid)
    return _inside(
        _together(pieces, extremes),
        expected,
        f"slopes over {len(pieces.lo)} pieces of [{edges[0]:.5g}, {edges[-1]:.5g}]: {each}; "
        f"over all half pieces from {extremes.mid.min():.5g} to {extremes.mid.max():.5g}; "
        f"predicted {show(expected)}",
    )


def limit(claim: Claim, measured: Curve, predicted: Interval) -> Judgement:
    """All values in the window lie inside the predicted interval, and the last one is not farther off."""
    expected = scalar(predicted, "a predicted limit")
    lo, hi = _window(claim)
    inside = (measured.x >= lo) & (measured.x <= hi)
    if inside.sum() < 2:
        raise InvalidInput(f"the window {_window(claim)} holds {inside.sum()} recorded points, needs two.")
    if gap := uncovered(measured.x[inside], (lo, hi)):
        return Judgement(Verdict.INCONCLUSIVE, gap)
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
    """1 - cos decays against the norm at least with the predicted exponent, on every piece and half piece.

    A direction that ends the window farther from the separator than it began fails, whatever the norm does.
    The lower end of `predicted` is the exponent p of 1 - cos = O(1 / ||W||^p). The enclosures come from a
    certified separator; those from other oracles must overlap them. An exponent that is not positive would
    ask for no decay at all. Recorded times must reach both ends of the window, in time and in its logarithm.

    Raises
    ------
    InvalidInput
        The predicted exponent is not positive.
    """
    least = scalar(predicted, "a predicted exponent")[0]
    if not least > 0:
        raise InvalidInput(f"a direction is approached with a positive exponent, not {least:g}.")
    for oracle, other in measured.separators.items():
        apart = np.maximum(measured.one_minus_cos.lo - other.hi, other.lo - measured.one_minus_cos.hi)
        if (apart > 0).any():
            k = int(np.argmax(apart))
            return Judgement(
                Verdict.INCONCLUSIVE,
                f"the separators disagree: 1 - cos in {show(ends(measured.one_minus_cos, (k,)))}, by "
                f"{oracle} in {show(ends(other, (k,)))}",
            )
    lo, hi = _window(claim)
    inside = (measured.time >= lo) & (measured.time <= hi)
    scales = [(measured.time[inside], (lo, hi))]
    if lo > 0:
        scales.append((np.log(measured.time[inside]), (float(np.log(lo)), float(np.log(hi)))))
    if gap := next((g for u, at in scales if (g := uncovered(u, at, edges=2))), ""):
        return Judgement(Verdict.INCONCLUSIVE, gap)
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
    pieces, extremes, _, gap = _read(grown, enclosure, (grown[0], grown[-1]), log_log=True)
    if gap:
        return Judgement(Verdict.INCONCLUSIVE, f"along the norm {gap}")
    slowest = -extremes.mid.max()
    together = _together(pieces, extremes)
    last = ends(measured.one_minus_cos, (int(np.flatnonzero(inside)[-1]),))
    each = ", ".join(f"{-m:.3g}" for m in pieces.mid)
    return _inside(
        Interval(-together.hi, -together.lo, pieces.rule),
        (least, np.inf),
        f"1 - cos ends in {show(last)} and decays with the norm to the powers {each} on the pieces of the "
        f"window, {slowest:.3g} on the slowest half piece; at least {least:.3g} is required",
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
        Interval(np.array(crossing[0]), np.array(crossing[1]), "between recorded points"),
        predicted.window,
        f"{text}, crossing {predicted.after:g} at {measured.x_name} in {show(crossing)}; "
        f"window {predicted.window}",
    )
