"""The two-sided bound of the largest margin, and of the angle to the separator, in exact rationals.

For dual weights p >= 0 with V = sum p_i z_i and P = sum p_i, every U of norm 1 has
min_i <U, z_i> <= <U, V> / P <= ||V|| / P, while W achieves min_i <W, z_i> / ||W||. With the separator's
direction u* = v*/||v*||, v* the point of least norm in the convex hull of the z_i, ||v*|| the largest margin,
<U, v*> >= min_i <U, z_i> gives cos(U, u*) >= (margin of U) / (largest margin).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpz_mat

from marginlab.proofs_check.certificates.dyadic import (
    angle_upper,
    ceil_root,
    common_exponent,
    floor_root,
    integers,
    power_of_two,
    rounded_quotients,
    short,
)
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import ScaledProblem
from marginlab.proofs_check.certificates.rows import Combination, inner
from marginlab.theory.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandwich:
    """Rational bounds in the units of the data, each rounded outward by less than a relative 1e-40.

    Attributes
    ----------
    lower, upper : Fraction
        Enclosure of the largest margin.
    achieved : Fraction
        Lower bound of the margin of W.
    angle : Fraction
        Upper bound of the angle (radians) between W and the separator.
    gap : Fraction
        1 - achieved / upper, rounded up.
    centre : (d_k, d_q) array
    radius : Fraction
        ||centre - W*||_F <= radius, W* the separator scaled to smallest margin 1.
    """

    lower: Fraction
    upper: Fraction
    achieved: Fraction
    angle: Fraction
    gap: Fraction
    centre: Float
    radius: Fraction


def weight_total(problem: ScaledProblem, rows: np.ndarray, weights: np.ndarray, exponent: int) -> Fraction:
    """sum p'_i b_i over `rows`, exactly: the sum of the dual weights in scaled units."""
    bits = problem.bits[rows]
    low = int(bits.min())
    total = sum(int(w) << (b - low) for w, b in zip(weights, bits.tolist(), strict=True))
    return total * power_of_two(exponent + low)


def separator_combination(problem: ScaledProblem, W: Float) -> Combination:
    """W in the units of the scaled problem, W' = 2**shift W, exactly."""
    exponent = common_exponent(W)
    return Combination(fmpz_mat(integers(W, exponent).tolist()), exponent + problem.shift)


def sandwich(
    problem: ScaledProblem, W: Float, V: Combination, total: Fraction, margin_V: Fraction | None = None
) -> Sandwich:
    """Bounds that W and the dual weights behind V (of sum `total`) prove; `margin_V` if it is known.

    Raises
    ------
    CertificateError
        W does not separate, or the dual weights combine to zero: nothing is proved then.
    """
    unit = power_of_two(problem.shift)
    primal = separator_combination(problem, W)
    norm_W, norm_V = primal.norm_squared(), V.norm_squared()
    margin_W = problem.smallest_margin(primal)
    if margin_V is None:
        margin_V = problem.smallest_margin(V)
    if margin_W <= 0:
        raise CertificateError(
            f"min_i <W, z_i> > 0 could not be proved: the smallest margin of W is {short(margin_W)}."
        )
    if norm_V == 0:
        raise CertificateError("sum p_i z_i is exactly zero: the dual weights prove that nothing separates.")
    best = norm_V / total**2
    lower_W = margin_W**2 / norm_W
    lower_V = max(margin_V, Fraction(0)) ** 2 / norm_V
    angle = angle_upper(1 - lower_W / best)
    cosine = inner(primal, V)
    if cosine > 0:
        angle = min(angle, angle_upper(1 - cosine**2 / (norm_W * norm_V)) + angle_upper(1 - lower_V / best))
    centre, radius = _ball(problem, *((primal, margin_W) if lower_W >= lower_V else (V, margin_V)), best)
    return Sandwich(
        lower=floor_root(max(lower_W, lower_V)) * unit,
        upper=ceil_root(best) * unit,
        achieved=floor_root(lower_W) * unit,
        angle=angle,
        gap=1 - floor_root(lower_W / best),
        centre=centre,
        radius=radius,
    )


def _ball(problem: ScaledProblem, U: Combination, margin: Fraction, best: Fraction) -> tuple[Float, Fraction]:
    """A float matrix, and a bound of its distance to the separator of smallest margin 1.

    ||U/m - W*||^2 <= ||U/m||^2 - ||W*||^2, since W* is the projection of 0 onto the feasible matrices and U/m
    is one of them; ||W*|| >= 1 / sqrt(best). What rounding U/m adds is computed exactly.
    """
    scale = power_of_two(U.exponent - problem.shift) / margin
    centre = rounded_quotients(np.array(U.matrix.tolist(), dtype=np.object_), scale)
    if not np.isfinite(centre).all():
        size = floor_root(1 / best) / power_of_two(problem.shift)
        raise CertificateError(
            f"the separator must have entries within the range of float64, its norm is {short(size)}."
        )
    rounded_centre = separator_combination(problem, centre)
    # ||centre - U/m||^2 = ||centre||^2 - 2 <centre, U> / m + ||U||^2 / m^2, without rounding
    square = U.norm_squared() / margin**2
    off = rounded_centre.norm_squared() - 2 * inner(rounded_centre, U) / margin + square
    distance = ceil_root(square - 1 / best) + ceil_root(off)
    return centre, distance / power_of_two(problem.shift)
