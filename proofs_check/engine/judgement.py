"""A verdict with the numbers that decided it, and the comparisons of intervals that all kinds share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginlab.proofs_check.engine.claim import Verdict
from marginlab.proofs_check.engine.values import Float, Interval
from marginlab.theory.errors import InvalidInput

Bool = NDArray[np.bool_]
Ends = tuple[float, float]

#: Significant digits of a number in a sentence.
DIGITS = 6

#: Digits with which every two float64 numbers differ.
_ALL_DIGITS = 17

STRADDLES = "the interval straddles the bound"


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
    observed: Ends | None = None
    expected: Ends | None = None


def ends(interval: Interval, index: tuple[int, ...]) -> Ends:
    """Ends of one component as floats."""
    return float(interval.lo[index]), float(interval.hi[index])


def scalar(interval: Interval, what: str) -> Ends:
    """Ends of an interval that must be a single one.

    Raises
    ------
    InvalidInput
        It has axes.
    """
    if interval.shape != ():
        raise InvalidInput(f"{what} must be a single interval, got shape {interval.shape}.")
    return ends(interval, ())


def show(pair: Ends, digits: int = DIGITS) -> str:
    """An interval in words: a number where it is exact, centre ± radius where six digits do not tell its ends."""
    lo, hi = f"{pair[0]:.{digits}g}", f"{pair[1]:.{digits}g}"
    if pair[0] == pair[1]:
        return lo
    if f"{pair[0]:.{DIGITS}g}" == f"{pair[1]:.{DIGITS}g}":
        return centred(pair, digits)
    return f"[{lo}, {hi}]"


def digits_apart(one: Ends, other: Ends) -> int:
    """Fewest significant digits, six at least, in which every two different ends of the two intervals differ.

    A FAIL in the seventh digit must not be shown as two equal numbers.
    """
    different = [(a, b) for a in one for b in other if a != b]
    digits = _ALL_DIGITS
    # From above: rounded once more, two numbers may agree in sixteen digits that differ in fifteen.
    while digits > DIGITS and all(f"{a:.{digits - 1}g}" != f"{b:.{digits - 1}g}" for a, b in different):
        digits -= 1
    return digits


def show_apart(one: Ends, other: Ends) -> tuple[str, str]:
    """Two intervals that are compared, with the digits that tell them apart."""
    digits = digits_apart(one, other)
    return show(one, digits), show(other, digits)


def centred(pair: Ends, digits: int = 6) -> str:
    """Finite ends as centre ± radius, with as many digits (at least `digits`) as the radius leaves."""
    centre, radius = pair[0] / 2 + pair[1] / 2, pair[1] / 2 - pair[0] / 2
    known = 1 + math.ceil(math.log10(abs(centre) / radius)) if radius and centre else 16
    return f"{centre:.{min(16, max(digits, known))}g} ± {radius:.1e}"


def decided(holds: Bool, broken: Bool) -> Verdict:
    """FAIL where the statement is broken for sure anywhere, PASS where it holds for sure everywhere."""
    if broken.any():
        return Verdict.FAIL
    return Verdict.PASS if holds.all() else Verdict.INCONCLUSIVE


def broadcast(measured: Interval, predicted: Interval) -> tuple[Interval, Interval]:
    """Both intervals stretched to one shape.

    Raises
    ------
    InvalidInput
        Their shapes do not fit together.
    """
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


def excess(over: Float, bound: Float) -> Float:
    """over - bound, to rank components by; equal infinities differ by nothing."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(over == bound, 0.0, over - bound)


def componentwise(
    measured: Interval, predicted: Interval, *, holds: Bool, broken: Bool, size: Float, relation: str
) -> Judgement:
    """Judge components whose statement holds for sure, is broken for sure, or neither.

    Verdicts follow from comparisons (`holds`, `broken`); `size`, by how much a component may be broken, only
    chooses the component that the reason shows: the worst of those that decide.
    """
    if size.size == 0:
        return Judgement(Verdict.INCONCLUSIVE, "nothing was measured (an empty array)")
    verdict = decided(holds, broken)
    decisive = {Verdict.FAIL: broken, Verdict.INCONCLUSIVE: ~holds}.get(verdict, np.ones_like(holds))
    worst = int(np.argmax(np.where(decisive, size, -np.inf)))
    if not decisive.flat[worst]:  # every decisive component has size -inf
        worst = int(np.argmax(decisive))
    index = tuple(int(i) for i in np.unravel_index(worst, size.shape))
    observed, expected = ends(measured, index), ends(predicted, index)
    where = f" at {index}" if size.size > 1 else ""
    ours, theirs = show_apart(observed, expected)
    text = f"measured {ours}, {relation} {theirs}{where}"
    if verdict is Verdict.INCONCLUSIVE:
        both = measured.bounded[index] and predicted.bounded[index]
        text += f": {STRADDLES}" if both else ": an unbounded interval decides nothing"
    return Judgement(verdict, text, observed, expected)
