"""Proof that the separator is supported by exactly one set of constraints.

With G the Gram matrix of the supporting rows, the separator is W' = sum p_i z'_i where G p = b. Everything
rests on two inequalities: p > 0, and <W', z'_j> > b_j for every other row. Both are proved in float64 with
a-priori rounding bounds around residuals that are computed in exact integers; Arb balls take over where
float64 is too short to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from flint import arb_mat, fmpz_mat

from marginlab.proofs_check.certificates.dyadic import Integers, ceil_float, ceil_root, power_of_two, rounded
from marginlab.proofs_check.certificates.problem import Combination, ScaledProblem, gamma
from marginlab.theory.validation import Float, Int

#: Bits kept of the largest dual weight: float64 refinement gains about 40 bits a step, and three steps of it
#: bring the gap of the certificate to about 1e-35.
WEIGHT_BITS = 128

#: Precisions tried in Arb, in bits; a Gram matrix that 1024 bits cannot invert has a condition number above
#: 1e300.
PRECISIONS = (128, 256, 512, 1024)


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
    """

    rows: Int
    weights: Integers
    exponent: int
    combination: Combination
    positive: bool
    unproved: str | None


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


def _residual(problem: ScaledProblem, rows: Int, weights: Integers, exponent: int) -> tuple[Integers, int]:
    """b - G p over `rows`, exactly: integers and their exponent."""
    values, power = problem.margins(problem.combine(rows, weights, exponent), rows)
    low = min(power, int(problem.bits[rows].min()))
    target = np.array([1 << (int(b) - low) for b in problem.bits[rows]], dtype=object)
    return target - values * (1 << (power - low)), low


def fixed_point(weights: Float) -> tuple[Integers, int]:
    """Weights as integers times 2**exponent with `WEIGHT_BITS` bits for the largest."""
    exponent = int(np.frexp(weights.max())[1]) - WEIGHT_BITS
    fractions = (Fraction(float(w)) * power_of_two(-exponent) for w in weights)
    return np.array([round(f) for f in fractions], dtype=object), exponent


def _refined(
    problem: ScaledProblem, rows: Int, weights: Float, inverse: Float
) -> tuple[Integers, int, Float]:
    """Weights after iterative refinement with exact residuals, and upper bounds of |b - G p|."""
    values, exponent = fixed_point(weights)
    residual, power = _residual(problem, rows, values, exponent)
    size = rounded(residual, power)
    for _ in range(4):
        correction = inverse @ size
        if not np.isfinite(correction).all():
            break
        tried = values + np.array(
            [round(Fraction(float(c)) * power_of_two(-exponent)) for c in correction], dtype=object
        )
        residual, power = _residual(problem, rows, tried, exponent)
        new = rounded(residual, power)
        if not np.abs(new).max() < np.abs(size).max() / 2:  # at the last bit of the weights, or diverging
            break
        values, size = tried, new
    # `rounded` is within 2**-52 of each entry, or within 2**-1000 of the largest
    return values, exponent, np.abs(size) * (1 + gamma(8)) + 2.0**-990 * np.abs(size).max()


def exact_gram(problem: ScaledProblem, rows: Int) -> tuple[list[list[int]], int]:
    """Gram matrix of `rows` in integers, and its exponent."""
    keys = fmpz_mat(problem.key_integers(rows).tolist())
    where, position = np.unique(problem.sample[rows], return_inverse=True)
    queries = fmpz_mat(problem.query_integers[where].tolist())
    inner = (queries * queries.transpose()).tolist()
    columns = position.tolist()
    product = (keys * keys.transpose()).tolist()
    return [
        [g * inner[s][t] for g, t in zip(row, columns, strict=True)]
        for row, s in zip(product, columns, strict=True)
    ], 2 * (problem.key_exponent + problem.query_exponent)


def _arb_solution(problem: ScaledProblem, rows: Int) -> tuple[Integers, int, Float] | None:
    """Weights and radii from a ball solve of G p = b; None if no precision suffices (G is singular, say)."""
    gram, exponent = exact_gram(problem, rows)
    prime = (1 << 61) - 1  # G nonsingular modulo a prime is nonsingular; the converse fails by rare chance
    if flint.nmod_mat(fmpz_mat(gram), prime).rank() < len(rows):
        return None
    low = int(problem.bits[rows].min())
    target = [1 << (int(b) - low) for b in problem.bits[rows]]
    for precision in PRECISIONS:
        with flint.ctx.workprec(precision):
            try:
                balls = arb_mat(fmpz_mat(gram)).solve(arb_mat(len(rows), 1, target)).entries()
            except ZeroDivisionError:
                continue
            if any(ball.rel_accuracy_bits() < precision // 4 for ball in balls):
                continue
            centre = [b.mid().man_exp() for b in balls]
            radius = [b.rad().man_exp() for b in balls]
        scale = low - exponent
        bottom = min(int(e) for _, e in centre)
        weights = np.array([int(m) << (int(e) - bottom) for m, e in centre], dtype=object)
        radii = [ceil_float(int(m) * power_of_two(int(e) + scale)) for m, e in radius]
        return weights, bottom + scale, np.array(radii)
    return None


def proved_support(problem: ScaledProblem, rows: Int, weights: Float) -> Support | None:
    """The support `rows` with refined weights, and the first inequality that fails; None if G is singular.

    Parameters
    ----------
    rows : (k,) array of int
    weights : (k,) array
        Float dual weights p' of the scaled problem, the starting point.
    """
    gram, error = problem.gram(rows)
    norms = problem.norms()[rows]
    solved: tuple[Integers, int, Float] | None = None
    residual = np.zeros(0)
    try:
        inverse = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        values, exponent, residual = _refined(problem, rows, weights, inverse)
        radius = solution_radius(gram, error, norms, inverse, residual)
        if radius is not None:
            solved = values, exponent, radius
    except np.linalg.LinAlgError:
        pass
    solved = solved or _arb_solution(problem, rows)
    if solved is None:
        return None
    values, exponent, radius = solved
    low = rounded(values, exponent) * (1 - gamma(8)) - radius  # a negative weight only makes `low` smaller
    combination = problem.combine(rows, np.maximum(values, 0), exponent)
    if not (low > 0).all():
        worst = int(rows[np.argmin(low)])
        return Support(
            rows,
            np.maximum(values, 0),
            exponent,
            combination,
            False,
            f"dual weight of constraint {worst} > 0 (it is at least {low.min():.3g} in units of its row)",
        )
    left, power = _residual(problem, rows, values, exponent)
    # ||W' - V||^2 = (p - p~)^T G (p - p~) = (p - p~)^T (b - G p~) <= sum y |r|
    squared = sum(
        (Fraction(float(y)) * abs(int(r)) for y, r in zip(radius, left, strict=True)), Fraction(0)
    ) * power_of_two(power)
    unproved = _unproved_margin(problem, rows, combination, ceil_root(squared))
    return Support(rows, values, exponent, combination, True, unproved)


def _unproved_margin(
    problem: ScaledProblem, rows: Int, combination: Combination, distance: Fraction
) -> str | None:
    """The first row outside `rows` whose margin is not proved above b_j, given ||W' - V|| <= distance."""
    low, _ = problem.margin_bounds(combination)
    norms = problem.norms()
    clear = low - ceil_float(distance) * norms * (1 + gamma(4)) > problem.thresholds * (1 + gamma(4))
    clear[rows] = True
    open_rows = np.flatnonzero(~clear)
    if len(open_rows) == 0:
        return None
    values, power = problem.margins(combination, open_rows)
    for row, value in zip(open_rows, values, strict=True):
        excess = int(value) * power_of_two(power - int(problem.bits[row])) - 1
        slack = distance * Fraction(float(norms[row])) * power_of_two(-int(problem.bits[row]))
        if excess <= slack:
            return f"margin of constraint {int(row)} > 1 (margin - 1 is at most {float(excess + slack):.3g})"
    return None
