"""Separable or not where float64 cannot tell: decided in exact arithmetic, or said to be undecided.

A combination of the rows that vanishes to rounding shows only that no W has a relative margin above rounding.
Three proofs go further, each on the rows that the combination uses:

* rational weights p >= 0 near them with sum p_i x_i = 0, found by one exact solve;
* rows that span the whole space: weights that nearly vanish can then be moved by little to vanish exactly, and
  stay positive;
* for small problems, the dual active-set method in rationals, which also finds the separator if there is one.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from flint import fmpq_mat, fmpz_mat
from scipy.linalg import qr

from marginlab.proofs_check.certificates.dyadic import common_exponent, integers
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import ScaledProblem as RationalProblem
from marginlab.proofs_check.certificates.problem import scaled_problem as rational_problem
from marginlab.proofs_check.certificates.rational import RationalWeights, exact_weights
from marginlab.proofs_check.separators import double_double as dd
from marginlab.proofs_check.separators.evaluation import (
    UNIT_ROUNDOFF,
    exponents,
    hull_distance,
    max_margin_of,
    not_separable,
)
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed
from marginlab.theory.validation import Float, Int

# Sizes at which a proof takes about a second: rows of one rational solve, rows whose exact Gram matrix is
# formed, rows that a method with a solve per row may hold, and entries of a problem whose margins are all
# formed in rationals at each of its steps.
_ONE_SOLVE = 128
_GRAM = 512
_SUPPORT = 16
_ENTRIES = 8192

# Unknowns and rows up to which the singular values of the rows are worth their cubic cost.
_SPANNING = 2048


def decided(
    problem: ScaledProblem, y: Float, *, oracle: str, norm: str = "frobenius", iterations: int = 0
) -> MaxMargin:
    """The result for a problem that left an oracle without a two-sided bound.

    Parameters
    ----------
    y : (N,) array, >= 0
        The weights of the scaled rows that the oracle ended with, whose combination is small.

    Returns
    -------
    MaxMargin
        Of the exact separator, where the problem is small and turns out separable.

    Raises
    ------
    NotSeparable
        Proved: some convex combination of the rows is exactly zero.
    OracleFailed
        Undecided; the message bounds the relative margin.
    """
    found: RationalWeights | None = None
    support = np.flatnonzero(y > 0)
    try:
        # Weights that are rounding themselves may have to vanish: without them first.
        for least in (np.sqrt(UNIT_ROUNDOFF) * y.max(initial=0.0), 0.0):
            if found is None:
                support = np.flatnonzero(y > least)
                found = null_weights_near(problem, support, y[support])
        if found is None and moved_to_zero(problem, y):
            raise not_separable(problem, y)
        if found is None and len(problem) * problem.dimension <= _ENTRIES and _rank(problem) <= _SUPPORT:
            support = np.arange(len(problem))
            found = exact_weights(rational_problem(problem.select_given(support)), support[:0])
        elif found is None and len(support) <= _SUPPORT:
            found = exact_weights(rational_problem(problem.select_given(support)), support[:0])
            found = None if found.separates else found
    except CertificateError:  # entries of one row too far apart for exact scaling
        found = None
    if found is None:
        raise _undecided(problem, y, oracle)
    exact = _spread(problem, support, found)
    if not found.separates:
        raise not_separable(problem, exact)
    whole = rational_problem(problem.select_given(support))
    direction = whole.integer_rows(found.rows).combine(found.numerators, 0)
    size = max(abs(int(v)) for v in direction.matrix.entries()).bit_length()
    entries = [float(Fraction(int(v), 1 << size)) for v in direction.matrix.entries()]
    w = np.array(entries).reshape(problem.shape)
    solution = max_margin_of(problem, w, exact, oracle=oracle, norm=norm, iterations=iterations)
    if solution is None:  # separable, by less than a float64 W can show
        raise _undecided(problem, exact, oracle)
    return solution


def null_weights_near(problem: ScaledProblem, support: Int, y: Float) -> RationalWeights | None:
    """Weights >= 0 on `support` with sum p'_i z'_i = 0 exactly, or None if those next to y are none.

    The weights of a largest set of independent rows, chosen among the heaviest, are solved for; those of all
    other rows stay as they are.
    """
    if not 0 < len(support) <= _GRAM:
        return None
    whole = rational_problem(problem.select_given(support))
    # Right or wrong about the rank, the answer is checked below.
    parts: Any = qr((problem.dense(support) * y[:, None]).T, mode="economic", pivoting=True)
    _, R, order = parts
    pivots = np.abs(np.diag(R))
    rank = int((pivots > 4 * len(support) * UNIT_ROUNDOFF * pivots[0]).sum())
    solved, kept = order[:rank], order[rank:]
    if len(kept) == 0 or rank > _ONE_SOLVE:
        return None
    start = np.ldexp(y, -_offset(problem, support, whole, np.arange(len(support))))
    fixed = integers(start[kept], common_exponent(start[kept]))
    gram = whole.integer_rows(np.arange(len(support))).gram()
    matrix = fmpq_mat(fmpz_mat([[gram[i][j] for j in solved] for i in solved]))
    right = [-sum(gram[i][j] * int(v) for j, v in zip(kept, fixed, strict=True)) for i in solved]
    try:
        answer = matrix.solve(fmpq_mat(fmpz_mat([[v] for v in right]))).entries()
    except ZeroDivisionError:
        return None
    denominator = lcm(*(int(v.q) for v in answer))
    numerators = np.zeros(len(support), dtype=np.object_)
    numerators[solved] = [int(v.p) * (denominator // int(v.q)) for v in answer]
    numerators[kept] = [int(v) * denominator for v in fixed]
    if min(numerators) < 0:
        return None
    rows = np.arange(len(support))
    if whole.integer_rows(rows).combine(numerators, 0).norm_squared() != 0:
        return None
    used = np.flatnonzero(numerators)
    return RationalWeights(used, numerators[used], denominator, False)


def moved_to_zero(problem: ScaledProblem, y: Float) -> bool:
    """Whether weights near y, on the same rows, are proved to combine to exactly zero.

    With v = sum y_i x_i and X the matrix of some of the rows, delta = -X (X^T X)^-1 v has
    sum delta_i x_i = -v and ||delta|| <= ||v|| / sigma, sigma the least singular value of X. If all y_i of
    those rows are larger than that, y + delta >= 0 combines to zero. Any choice of rows with
    sigma > 0 does; those with weights above sqrt(u) leave room for the change.
    """
    rows = np.flatnonzero(y > np.sqrt(UNIT_ROUNDOFF) * y.max(initial=0.0))
    D = problem.dimension
    if not D < len(rows) <= _SPANNING:
        return False
    used = np.flatnonzero(y)
    singular = np.linalg.svd(problem.dense(rows), compute_uv=False)
    # Backward error of the SVD, 8 max(m, n) u times the largest singular value, as in `evaluation`; the rows
    # themselves are exact.
    sigma = float(singular[-1]) - 8 * len(rows) * UNIT_ROUNDOFF * float(singular[0])
    if sigma <= 0:
        return False
    length = dd.norm(problem.combine_dd((y[used], np.zeros(len(used))), used))
    # Double-double sums of k rows of norm at most 1 are wrong by less than 4 k u^2 sum y.
    length = length * (1 + 4 * UNIT_ROUNDOFF) + 4 * len(used) * UNIT_ROUNDOFF**2 * float(y.sum())
    return length / sigma * (1 + 4 * UNIT_ROUNDOFF) < float(y[rows].min())


def _rank(problem: ScaledProblem) -> int:
    return min(len(problem), problem.dimension + 1)


def _spread(problem: ScaledProblem, support: Int, found: RationalWeights) -> Float:
    """Rational weights as float64 weights of the scaled rows, largest near 1."""
    whole: RationalProblem = rational_problem(problem.select_given(support))
    rows = support[found.rows]
    largest = max(int(v) for v in found.numerators)
    weights = np.array([float(Fraction(int(v), largest)) for v in found.numerators])
    y = np.zeros(len(problem))
    y[rows] = np.ldexp(weights, _offset(problem, rows, whole, found.rows))
    return y


def _offset(problem: ScaledProblem, rows: Int, whole: RationalProblem, own: Int) -> Int:
    """Exponents e with y_i = 2^e p'_i, for `rows` of the problem that are rows `own` of the rational one.

    Its rows are 2^-(shift - bits) z_i, ours are beta scale z_i.
    """
    ours = -exponents(problem.beta)[rows] - int(exponents(problem.scale))
    return ours - (whole.shift - whole.bits[own])


def _undecided(problem: ScaledProblem, y: Float, oracle: str) -> OracleFailed:
    # Rounded up: by the error of the double-double sum, and by half a unit of the last digit shown.
    bound = 1.005 * (hull_distance(problem, y) + 4 * len(y) * UNIT_ROUNDOFF**2)
    return OracleFailed(
        f"oracle {oracle} could not decide separability: no W with positive margins was found in float64; what "
        f"is known is that no W has a relative margin (of the rows scaled to norms below 1) above {bound:.2e}."
    )
