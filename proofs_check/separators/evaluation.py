"""The two-sided bound of a candidate separator, recomputed from the data: the only evidence we accept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from marginlab.proofs_check.separators import double_double as dd
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import (
    MaxMargin,
    NonSeparability,
    NotSeparable,
    OracleFailed,
    Residuals,
)
from marginlab.theory.validation import Float

UNIT_ROUNDOFF = float(np.finfo(np.float64).eps) / 2

# A smallest margin this near to 1 counts as scaled: it is what a well-conditioned float64 product leaves.
_MARGIN_ROUNDING = 64 * UNIT_ROUNDOFF

# Relative gap asked for by default where the data are well conditioned: thousands of units in the last
# place, so a correct answer is never refused, and three digits below the 1e-9 of interior-point solvers.
TARGET_GAP = 1e-12

# Largest gap accepted unless a tolerance is given: the angle bound sqrt(2 gap) is then 1.4e-3, three digits of
# the direction. Data so nearly inseparable that rounding W costs more are for exact arithmetic.
LARGEST_GAP = 1e-6


def default_tolerance(hull_distance: float, *, target: float = TARGET_GAP) -> float:
    """Largest accepted gap: `target`, or what rounding W to float64 costs where that is more, up to a cap.

    Rounding W moves <W, x_i> by at most u ||W|| for rows of norm at most 1. Asking for slack u ||W|| in
    every supporting row lengthens W by sum_i y_i u ||W|| / ||sum_i y_i x_i|| = u ||W|| / delta at first
    order, where delta = ||sum y_i x_i|| / sum y_i is the distance from the origin to the hull of the scaled
    rows. Four of these units cover the rounding of W, of its scaling to margin 1 and of the bounds. Rounding
    is no excuse beyond `LARGEST_GAP` (or `target`, where that is more).

    Parameters
    ----------
    hull_distance : float
        delta, in (0, 1].
    target : float
        Gap asked for at delta = 1.
    """
    return min(target + 4 * UNIT_ROUNDOFF / hull_distance, max(target, LARGEST_GAP))


def no_separator_below() -> float:
    """Hull distance that float64 weights of rows that are not separable are sure to reach: 4 u.

    Rounding the weights of an exact combination sum p_i x_i = 0, ||x_i|| <= 1, to float64 leaves up to
    u sum p_i = u, normalising them as much again; the sum itself is formed in double-double. Rows that are
    separable, by less than that, reach it too: `decision.decided` tells them apart.
    """
    return 4 * UNIT_ROUNDOFF


def _norm_rounding(shape: tuple[int, ...], norm: str) -> float:
    """Relative rounding error of a computed margin or norm.

    Frobenius norms and smallest margins come out of double-double arithmetic: one rounding each for the sum,
    the root, the quotient and the power-of-two scaling. Singular values carry the backward error of the SVD,
    p(m, n) u with p = 8 max(m, n) (LAPACK Users' Guide, section 4.9, with room to spare), relative to the
    largest one; the nuclear norm sums min(m, n) of them.
    """
    if norm == "frobenius":
        return 8 * UNIT_ROUNDOFF
    return (8 + 8 * max(shape) * min(shape)) * UNIT_ROUNDOFF


def _norm(a: dd.DoubleDouble, norm: str) -> float:
    if norm == "frobenius":
        return dd.norm(a)
    singular = np.linalg.svd(a[0] + a[1], compute_uv=False)
    return float(singular.sum() if norm == "nuclear" else singular[0])


DUAL_NORM = {"frobenius": "frobenius", "nuclear": "spectral"}


def exponents(powers: Any) -> Any:
    """Exponents of powers of two."""
    return np.frexp(powers)[1] - 1


def hull_distance(problem: ScaledProblem, y: Float) -> float:
    """||sum y_i x_i|| / sum y_i for weights y >= 0 of the scaled rows, in double-double."""
    rows = np.flatnonzero(y)
    if len(rows) == 0:
        return float("inf")
    weights = y[rows]
    return dd.norm(problem.combine_dd((weights, np.zeros_like(weights)), rows)) / math.fsum(weights)


def smallest_margin(problem: ScaledProblem, w: Float) -> tuple[float, Float]:
    """(min_i <w, x_i> / beta_i, all float64 margins <w, x_i>).

    Float64 margins carry an error of at most (D + 2) u ||w|| (rows of norm at most 1); every row that could
    be the smallest within that error is formed again in double-double.
    """
    margins = problem.margins(w)
    error = (problem.dimension + 2) * UNIT_ROUNDOFF * float(np.linalg.norm(w))
    least = float(((margins + error) / problem.beta).min())
    rows = np.flatnonzero((margins - error) / problem.beta <= least)
    high, low = problem.margins_dd((w, np.zeros_like(w)), rows)
    return float(((high + low) / problem.beta[rows]).min()), margins


def max_margin_of(
    problem: ScaledProblem, w: Float, y: Float, *, oracle: str, norm: str = "frobenius", iterations: int = 0
) -> MaxMargin | None:
    """The result for a separator w and weights y >= 0 of the scaled rows, with bounds from the data alone.

    Returns None if w has a margin that is not positive or y is zero: there is then no two-sided bound.
    """
    y = np.maximum(y, 0.0)
    if not (np.isfinite(w).all() and np.isfinite(y).all() and y.any() and w.any()):
        return None
    w = w / np.abs(w).max()
    least = float((problem.margins(w) / problem.beta).min())
    if least > 0:
        w = w / least
    least, margins = smallest_margin(problem, w)
    if least <= 0:
        return None
    if abs(least - 1.0) > _MARGIN_ROUNDING:
        w = w / least  # rounds again: everything below is recomputed from this w
        least, margins = smallest_margin(problem, w)
    length = _norm((w, np.zeros_like(w)), norm)
    lower = least / length
    # In scaled units sum y_i beta_i = ||w||^2. Units come back last, as powers of two: nothing here
    # depends on them, and no product of them can overflow.
    y = y * (length**2 / math.fsum(y * problem.beta))
    rows = np.flatnonzero(y)
    combination = problem.combine_dd((y[rows], np.zeros(len(rows))), rows)
    upper = _norm(combination, DUAL_NORM[norm]) / math.fsum(y[rows] * problem.beta[rows])
    rounding = _norm_rounding(problem.shape, norm)
    lower, upper = lower * (1 - rounding), upper * (1 + rounding)
    gap = (upper - lower) / upper
    # W = scale w = sum dual_i z_i and z_i = x_i / (beta_i scale), hence dual_i = scale^2 beta_i y_i.
    scale_bits = int(exponents(problem.scale))
    dual = np.ldexp(y, 2 * scale_bits + exponents(problem.beta))
    return MaxMargin(
        W=np.ldexp(w, scale_bits),
        dual=dual,
        margin_lower=math.ldexp(lower, -scale_bits),
        margin_upper=math.ldexp(upper, -scale_bits),
        gap=gap,
        active=np.flatnonzero(dual),
        residuals=_residuals(problem, w, margins, y, combination, gap, length, norm),
        oracle=oracle,
        norm=norm,
        iterations=iterations,
    )


def _residuals(
    problem: ScaledProblem,
    w: Float,
    margins: Float,
    y: Float,
    combination: dd.DoubleDouble,
    gap: float,
    length: float,
    norm: str,
) -> Residuals:
    excess = margins / problem.beta - 1.0  # <W, z_i> - 1
    share = y * problem.beta  # dual_i / scale^2
    if norm == "frobenius":
        pulled = combination[0] + combination[1]  # sum dual_i z_i, in units of W = scale * w
        mismatch = float(np.linalg.norm(w - pulled) / np.linalg.norm(w))
    else:
        # <W, sum dual_i z_i> = ||W|| ||sum dual_i z_i||_* at the optimum (alignment of a dual pair).
        inner = float(np.sum(w * (combination[0] + combination[1])))
        mismatch = 1.0 - inner / (length * _norm(combination, DUAL_NORM[norm]))
    # By strong convexity the exact separator lies within sqrt(2 gap) ||W||, so a row whose margin is nearer
    # to 1 than that may support it: its weight counts in the strict-complementarity margin.
    reach = np.sqrt(2.0 * max(gap, 0.0)) * float(np.linalg.norm(w)) / problem.beta
    supporting = (excess <= reach) | (share > 0)
    return Residuals(
        primal=max(0.0, -float(excess.min())),
        dual=mismatch,
        complementarity=float((share * np.maximum(excess, 0.0)).max() / share.sum()),
        strict=float(share[supporting].min() / share.max()),
    )


def not_separable(problem: ScaledProblem, y: Float) -> NotSeparable:
    """The exception for weights y >= 0 of the scaled rows that are proved to combine to zero, before rounding."""
    share = y * problem.beta
    weights = share / share.sum()
    rows = np.flatnonzero(weights)
    high, low = problem.combine_dd((weights[rows] / problem.beta[rows], np.zeros(len(rows))), rows)
    largest = float((problem.norms / problem.beta).max())  # z_i = x_i / (beta_i scale)
    residual = dd.norm((high, low)) / largest
    distance = hull_distance(problem, y)
    return NotSeparable(
        f"the constraints are not separable: a convex combination of {len(rows)} of them is exactly zero (with "
        f"its weights rounded to float64, and the rows scaled to unit norm, {distance:.1e}).",
        NonSeparability(weights=weights, residual=residual),
    )


def accepted(
    solution: MaxMargin, problem: ScaledProblem, tolerance: float | None, target: float
) -> MaxMargin:
    """`solution` if its recomputed gap is within tolerance.

    Raises
    ------
    OracleFailed
        The gap is larger, or not a gap at all: NaN, or below zero, which a lower and an upper bound of one
        number cannot give.
    """
    if not solution.gap >= 0.0:
        raise OracleFailed(
            f"oracle {solution.oracle} led to the bounds {solution.margin_lower} and {solution.margin_upper}, "
            f"which are not a lower and an upper bound of one margin (gap {solution.gap})."
        )
    hint = ""
    if tolerance is None:
        y = np.ldexp(solution.dual, -2 * int(exponents(problem.scale)) - exponents(problem.beta))
        distance = hull_distance(problem, y)
        tolerance = default_tolerance(distance, target=target)
        if solution.gap > tolerance == LARGEST_GAP:
            hint = (
                f" The rows, scaled to unit norm, have a convex combination of norm {distance:.1e}: rounding W "
                f"alone costs more. Give a `tolerance` to have this W, and `certify` it in exact arithmetic."
            )
    if not solution.gap <= tolerance:
        raise OracleFailed(
            f"oracle {solution.oracle} reached a gap of {solution.gap:.2e}, recomputed from the data, "
            f"where at most {tolerance:.2e} is accepted.{hint}"
        )
    return solution
