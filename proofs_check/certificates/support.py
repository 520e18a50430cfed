"""Proof that the separator is supported by exactly one set of constraints.

With G the Gram matrix of the supporting rows, the separator is W' = sum p_i z'_i where G p = b. Everything
rests on two inequalities: p > 0, and <W', z'_j> > b_j for every other row. Both are proved in float64 with
a-priori rounding bounds around residuals that are computed in exact integers; Arb balls take over where
float64 is too short to decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb_mat, fmpz_mat

from marginlab.proofs_check.certificates.dyadic import (
    Integers,
    ceil_float,
    ceil_root,
    power_of_two,
    rounded,
    short,
)
from marginlab.proofs_check.certificates.problem import ScaledProblem, gamma, smallest_ratio
from marginlab.proofs_check.certificates.rows import Combination, IntegerRows
from marginlab.theory.validation import Float, Int

#: Bits kept of the largest dual weight: float64 refinement gains about 40 bits a step, and three steps of it
#: bring the gap of the certificate to about 1e-35.
WEIGHT_BITS = 128

#: Refinement stops once the residual is this many bits above the last bit of the weights: half of what one more
#: step could win is lost to rounding there, and the gap is below 2**-200 anyway.
ENOUGH_BITS = 20

#: Precisions tried in Arb, in bits; a Gram matrix that 1024 bits cannot invert has a condition number above
#: 1e300.
PRECISIONS = (128, 256, 512, 1024)

#: Word operations, about k^3 a word, of a ball solve for what a cheaper proof left open: some seconds.
MAX_SECOND_LOOK = 1 << 28


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """Dual weights on `rows`, and what is proved about them.

    Attributes
    ----------
    rows : (k,) array of int
    weights : (k,) integers; p_i = weights_i 2**exponent, >= 0
    exponent : int
    combination : Combination
        V = sum p_i z'_i, exactly.
    positive : bool
        The exact weights of G p = b are proved positive.
    unproved : str or None
        The first inequality that could not be proved; None if the support is proved.
    margin : Fraction or None
        A lower bound of the smallest <V, z'_i> / b_i where the proof brings one along: it is attained on
        `rows`, or it is 1, since every other margin of W' is above 1 by more than ||W' - V|| ||z'_i||.
    refuted : tuple of int
        Rows outside `rows` whose margin is proved to be at most 1.
    rungs : int
        How many of the checker's precisions it may need to see the same: three reach well beyond what float64
        with exact residuals decides, the fourth beyond all of `PRECISIONS`.
    """

    rows: Int
    weights: Integers
    exponent: int
    combination: Combination
    positive: bool
    unproved: str | None
    margin: Fraction | None = None
    refuted: tuple[int, ...] = ()
    rungs: int = 3


def solution_radius(gram: Float, error: float, norms: Float, inverse: Float, residual: Float) -> Float | None:
    """y > 0 with |p - p~| <= y for the exact solution of G p = b, or None if it cannot be proved.

    Krawczyk's operator with Rump's componentwise test: with C = I - R G and r = b - G p~,
    p - p~ = R r + C (p - p~). If |R| |r| + |C| y < y for some y > 0 then the spectral radius of |C| is below
    1, so that R and G are nonsingular, and the solution lies within y.

    Parameters
    ----------
    gram : (k, k) float Gram matrix, entrywise within error norms_i norms_j of G
    error : float
    norms : (k,)
    inverse : (k, k)
        Any approximation R of the inverse.
    residual : (k,)
        Upper bounds of |r|.
    """
    k = len(gram)
    size, absolute = np.abs(inverse), np.abs(gram)
    defect = inverse @ gram
    defect[np.diag_indices(k)] -= 1.0
    defect = np.abs(defect)
    # the products below are sums of k positive terms, twice nested: gamma_{2k+8} bounds their own rounding
    up = 1 + gamma(2 * k + 8)
    # rounding of inverse @ gram (gamma_k |R| |G|), of the subtraction (covered by up) and of gram itself
    start = up * (size @ residual)

    def step(y: Float) -> Float:
        inner = gamma(k + 1) * (absolute @ y) + error * norms * (norms @ y)
        return start + up * up * (defect @ y + size @ inner)

    # y = 0 would not be a strict test: a floor far below any rounding of R and G
    y = 2 * start + 2.0**-300 * (size.max() + 1)
    for _ in range(8):
        new = step(y) * up
        if not np.isfinite(new).all():
            return None
        if (new < y).all():
            return new
        y = 2 * np.maximum(new, y)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """Weights of some rows with what they leave of the system, exactly.

    `values` times 2**exponent are the weights; `residual` times 2**power is b - G p.
    """

    values: Integers
    exponent: int
    combination: Combination
    residual: Integers
    power: int

    def residual_float(self) -> Float:
        """b - G p as floats, each within 2**-52 of itself or 2**-1000 of the largest."""
        return rounded(self.residual, self.power)


def _weights(rows: IntegerRows, bits: Int, values: Integers, exponent: int) -> _Weights:
    combination = rows.combine(values, exponent)
    margins, power = rows.margins(combination)
    low = min(power, int(bits.min()))
    target = np.array([1 << (b - low) for b in bits.tolist()], dtype=np.object_)
    return _Weights(values, exponent, combination, target - margins * (1 << (power - low)), low)


def fixed_point(weights: Float, exponent: int | None = None) -> tuple[Integers, int]:
    """Weights as integers times 2**exponent, rounded down; by default `WEIGHT_BITS` bits for the largest."""
    mantissa, power = np.frexp(weights)
    if exponent is None:
        exponent = int(power.max()) - WEIGHT_BITS
    whole = np.ldexp(mantissa, 53).astype(np.int64).astype(np.object_)
    shift = (power - 53 - exponent).tolist()
    shifted = [w << s if s >= 0 else w >> -s for w, s in zip(whole, shift, strict=True)]
    return np.array(shifted, dtype=np.object_), exponent


def _refined(rows: IntegerRows, bits: Int, weights: Float, inverse: Float) -> _Weights:
    """Weights after iterative refinement with exact residuals."""
    best = _weights(rows, bits, *fixed_point(weights))
    size = best.residual_float()
    for _ in range(4):
        correction = inverse @ size
        if not np.isfinite(correction).all():
            break
        values = best.values + fixed_point(correction, best.exponent)[0]
        tried = _weights(rows, bits, values, best.exponent)
        new = tried.residual_float()
        if not np.abs(new).max() < np.abs(size).max() / 2:  # diverging, or at the last bit of the weights
            break
        best, size = tried, new
        if np.abs(size).max() * np.abs(inverse).max() < np.ldexp(1.0, best.exponent + ENOUGH_BITS):
            break
    return best


def _arb_solutions(rows: IntegerRows, bits: Int) -> Iterator[tuple[int, Integers, int, Float]]:
    """Precision, weights, exponent and radii of ball solves of G p = b, for each precision that suffices."""
    gram = fmpz_mat(rows.gram())
    prime = (1 << 61) - 1  # G nonsingular modulo a prime is nonsingular; the converse fails by rare chance
    if flint.nmod_mat(gram, prime).rank() < rows.count:
        return
    low = int(bits.min())
    target = [1 << (b - low) for b in bits.tolist()]
    for precision in PRECISIONS:
        with flint.ctx.workprec(precision):
            try:
                balls = arb_mat(gram).solve(arb_mat(rows.count, 1, target)).entries()
            except ZeroDivisionError:
                continue
            if any(ball.rel_accuracy_bits() < precision // 4 for ball in balls):
                continue
            centre = [b.mid().man_exp() for b in balls]
            radius = [b.rad().man_exp() for b in balls]
        scale = low - 2 * rows.exponent
        bottom = min(int(e) for _, e in centre)
        values = np.array([int(m) << (int(e) - bottom) for m, e in centre], dtype=np.object_)
        radii = [ceil_float(int(m) * power_of_two(int(e) + scale)) for m, e in radius]
        yield precision, values, bottom + scale, np.array(radii)


def proved_support(problem: ScaledProblem, rows: Int, weights: Float) -> Support | None:
    """The support `rows` with refined weights, and the first inequality that fails; None if G is singular.

    Parameters
    ----------
    rows : (k,) array of int
    weights : (k,) array
        Float dual weights p' of the scaled problem, the starting point.
    """
    if len(rows) > problem.shape[0] * problem.shape[1]:  # more vectors than dimensions are dependent
        return None
    gram, error = problem.gram(rows)
    norms, bits = problem.norms[rows], problem.bits[rows]
    exact = problem.integer_rows(rows)
    tried = None
    try:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        found = _refined(exact, bits, weights, inverse)
        size = np.abs(found.residual_float())
        # upper bounds of |b - G p|: see `_Weights.residual_float`
        radius = solution_radius(gram, error, norms, inverse, size * (1 + gamma(8)) + 2.0**-990 * size.max())
        if radius is not None:
            tried, decided = _judged(problem, rows, exact, found, radius, rungs=3)
            if decided:
                return tried
    except np.linalg.LinAlgError:
        pass
    # an exact tie stays open at any precision, so that more bits are not bought at any price
    limit = MAX_SECOND_LOOK if tried is not None else np.inf
    if len(rows) ** 3 * (PRECISIONS[0] // 64) > limit:
        return tried
    for precision, values, exponent, radius in _arb_solutions(exact, bits):
        found = _weights(exact, bits, values, exponent)
        finer, decided = _judged(problem, rows, exact, found, radius, rungs=4)
        if decided or tried is None or finer.positive or not tried.positive:
            tried = finer
        if decided or len(rows) ** 3 * (2 * precision // 64) > MAX_SECOND_LOOK:
            return tried
    return tried


def _judged(
    problem: ScaledProblem, rows: Int, exact: IntegerRows, found: _Weights, radius: Float, *, rungs: int
) -> tuple[Support, bool]:
    """What weights within `radius` of the solution of G p = b prove, and whether more bits would add nothing."""
    bits = problem.bits[rows]
    centre = rounded(found.values, found.exponent)
    low = centre * (1 - gamma(8)) - radius  # wrong for negative ones, but < 0
    if not (low > 0).all():
        row = int(np.argmin(low))
        high = centre * (1 - gamma(8)) + radius  # an upper bound where it is negative
        refuted = bool((high < 0).any())
        row = int(np.argmin(high)) if refuted else row
        said = f"at most {high[row]:.3g}" if refuted else f"at least {low[row]:.3g}"
        clipped = np.maximum(found.values, 0)
        support = Support(
            rows,
            clipped,
            found.exponent,
            exact.combine(clipped, found.exponent),
            False,
            f"dual weight of constraint {int(rows[row])} > 0 (in units of its row it is {said})",
        )
        return support, refuted
    # ||W' - V||^2 = (p - p~)^T G (p - p~) = (p - p~)^T (b - G p~) <= sum y |r|
    size = np.abs(found.residual_float()) * (1 + gamma(8))
    squared = (float(radius @ size) + float(radius.sum()) * 2.0**-990 * float(size.max())) * (
        1 + gamma(len(rows) + 8)
    ) + 2.0**-1060
    refuted, open_rows = (), False
    if np.isfinite(squared):
        distance = ceil_root(Fraction(squared))
        unproved, refuted, open_rows = _unproved_margin(problem, rows, found.combination, distance)
    else:
        unproved, open_rows = "||W* - V|| < inf for the separator W* (its bound overflows)", True
    margin = min(1 + smallest_ratio((-found.residual).tolist(), found.power, bits), Fraction(1))
    margin = None if unproved else margin
    support = Support(
        rows, found.values, found.exponent, found.combination, True, unproved, margin, refuted, rungs
    )
    return support, bool(refuted) or not open_rows


def _unproved_margin(
    problem: ScaledProblem, rows: Int, combination: Combination, distance: Fraction
) -> tuple[str | None, tuple[int, ...], bool]:
    """The first row outside `rows` whose margin is not proved above b_j, given ||W' - V|| <= distance.

    Also all rows whose margin is proved to be at most b_j, and whether any is open either way.
    """
    low, _ = problem.margin_bounds(combination)
    norms = problem.norms
    clear = low - ceil_float(distance) * norms * (1 + gamma(4)) > problem.thresholds * (1 + gamma(4))
    clear[rows] = True
    open_rows = np.flatnonzero(~clear)
    if len(open_rows) == 0:
        return None, (), False
    values, power = problem.integer_rows(open_rows).margins(combination)
    refuted, undecided, ties = {}, {}, {}
    names = problem.names(rows)
    twins = set(zip(names, problem.bits[rows].tolist(), strict=True))
    open_names = problem.names(open_rows)
    for row, name, value in zip(open_rows.tolist(), open_names, values, strict=True):
        if (name, int(problem.bits[row])) in twins:
            ties[row] = "it is 1: the row equals one of the support"
            continue
        excess = int(value) * power_of_two(power - int(problem.bits[row])) - 1
        slack = distance * Fraction(float(norms[row])) * power_of_two(-int(problem.bits[row]))
        if excess <= -slack:
            refuted[row] = f"it is false: margin - 1 is at most {short(excess + slack)}"
        elif excess <= slack:
            undecided[row] = f"margin - 1 lies between {short(excess - slack)} and {short(excess + slack)}"
    for row, said in (*refuted.items(), *ties.items(), *undecided.items()):
        return f"margin of constraint {row} > 1 ({said})", tuple(refuted), bool(undecided and not ties)
    return None, (), False
