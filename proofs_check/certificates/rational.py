"""Exact rational arithmetic: the optimum, or the proof that there is none, by a dual active-set method.

Goldfarb and Idnani's method needs comparisons and linear solves only, so that in rationals it ends after
finitely many steps with the exact optimum, or with nonnegative weights whose combination is exactly zero.
Meant for small problems with short entries: the numbers grow with the size of the support.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from flint import fmpq, fmpq_mat

from marginlab.proofs_check.certificates.dyadic import Integers, power_of_two
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import ScaledProblem
from marginlab.theory.validation import Int

#: Rows that the method may hold: rational solves of 53-bit data at this size take about a second each.
MAX_ROWS = 128

#: Constraints that may enter: the method ends in finitely many steps, of which a good start leaves a handful and
#: none a small multiple of the rows.
MAX_STEPS = 16 * MAX_ROWS


@dataclass(frozen=True, slots=True, eq=False)
class RationalWeights:
    """Weights p'_i = numerators_i / denominator >= 0 on `rows`, in units of the scaled problem.

    `separates`: they are the dual optimum; else sum p'_i z'_i = 0 exactly.
    """

    rows: Int
    numerators: Integers
    denominator: int
    separates: bool


def _common_denominator(rows: list[int], weights: list[Fraction], separates: bool) -> RationalWeights:
    kept = [(i, w) for i, w in zip(rows, weights, strict=True) if w]
    denominator = lcm(*(w.denominator for _, w in kept))
    return RationalWeights(
        np.array([i for i, _ in kept], dtype=np.intp),
        np.array([int(w * denominator) for _, w in kept], dtype=object),
        denominator,
        separates,
    )


class _Gram:
    """Exact inner products of rows, a row of the Gram matrix at a time."""

    def __init__(self, problem: ScaledProblem) -> None:
        self.problem = problem
        self.known: dict[tuple[int, int], Fraction] = {}

    def block(self, rows: list[int], cols: list[int]) -> list[list[Fraction]]:
        missing = [i for i in dict.fromkeys(rows + cols) if (i, i) not in self.known]
        if missing:
            self._add(missing)
        return [[self.known[i, j] for j in cols] for i in rows]

    def _add(self, new: list[int]) -> None:
        every = new + [i for i, j in self.known if i == j]
        exact = self.problem.integer_rows(np.array(every))
        gram, scale = exact.gram(), power_of_two(2 * exact.exponent)
        for a, i in enumerate(every):
            for b, j in enumerate(every):
                self.known[i, j] = gram[a][b] * scale

    def solve(self, rows: list[int], right: list[Fraction]) -> list[Fraction] | None:
        """The exact solution of G x = right on `rows`; None if G is singular."""
        if not rows:
            return []
        matrix = fmpq_mat([[fmpq(v.numerator, v.denominator) for v in r] for r in self.block(rows, rows)])
        column = fmpq_mat([[fmpq(v.numerator, v.denominator)] for v in right])
        try:
            return [Fraction(int(x.p), int(x.q)) for x in matrix.solve(column).entries()]
        except ZeroDivisionError:
            return None


def _most_violated(problem: ScaledProblem, weights: dict[int, Fraction]) -> int | None:
    """The row of smallest exact relative margin, if that is below 1; None if all constraints hold."""
    if not weights:
        return 0
    exact = _common_denominator(list(weights), list(weights.values()), True)
    if len(exact.rows) == 0:
        return 0
    V = problem.integer_rows(exact.rows).combine(exact.numerators, 0)
    values, exponent = problem.integer_rows(np.arange(len(problem))).margins(V)
    relative = [int(v) * power_of_two(exponent - int(b)) for v, b in zip(values, problem.bits, strict=True)]
    row = min(range(len(relative)), key=relative.__getitem__)
    return row if relative[row] < exact.denominator else None


def exact_weights(problem: ScaledProblem, start: Int) -> RationalWeights:
    """The exact dual optimum of the scaled problem, or weights that combine to zero.

    Parameters
    ----------
    start : (k,) array of int
        Rows guessed to support the optimum; used if their exact weights are positive.

    Raises
    ------
    CertificateError
        More than `MAX_ROWS` rows are needed, or more than `MAX_STEPS` exchanges.
    """
    gram = _Gram(problem)
    thresholds = [power_of_two(int(b)) for b in problem.bits]
    _small_enough(len(start))
    rows = [int(i) for i in start]
    solved = gram.solve(rows, [thresholds[i] for i in rows])
    weights = dict(zip(rows, solved, strict=True)) if solved and min(solved) >= 0 else {}
    steps = 0
    while (row := _most_violated(problem, weights)) is not None:
        steps += 1
        if steps > MAX_STEPS:
            raise CertificateError(
                f"an exact optimum must be reached within {MAX_STEPS} exchanges, it was not."
            )
        entering = Fraction(0)
        while True:  # until `row` is satisfied: each partial step drops one row
            rows = list(weights)
            _small_enough(len(rows))
            cross = [r[0] for r in gram.block(rows, [row])] if rows else []
            turn = gram.solve(rows, cross)
            if turn is None:  # cannot be: rows enter only if they are linearly independent of the others
                raise CertificateError("the Gram matrix of the supporting constraints is nonsingular.")
            own = gram.block([row], [row])[0][0]
            apart = own - sum((c * t for c, t in zip(cross, turn, strict=True)), Fraction(0))
            margin = sum((c * weights[i] for c, i in zip(cross, rows, strict=True)), own * entering)
            leaving = [(weights[i] / t, i) for i, t in zip(rows, turn, strict=True) if t > 0]
            full = (thresholds[row] - margin) / apart if apart > 0 else None
            if full is None and not leaving:
                return _common_denominator([row, *rows], [Fraction(1), *(-t for t in turn)], False)
            partial = min(leaving) if leaving else None
            step = full if partial is None or (full is not None and full <= partial[0]) else partial[0]
            assert step is not None
            for i, t in zip(rows, turn, strict=True):
                weights[i] -= step * t
            entering += step
            if step == full:
                break
            assert partial is not None
            del weights[partial[1]]
        weights[row] = entering
    return _common_denominator(list(weights), list(weights.values()), True)


def null_weights(problem: ScaledProblem, rows: Int) -> RationalWeights | None:
    """Weights >= 0 on `rows` with sum p'_i z'_i = 0 exactly, or None if this way does not find any.

    One rational solve: the last row in terms of the others, which are supposed to be linearly independent.
    """
    if not 1 <= len(rows) <= MAX_ROWS:
        return None
    gram, (*others, last) = _Gram(problem), [int(i) for i in rows]
    cross = [r[0] for r in gram.block(others, [last])] if others else []
    turn = gram.solve(others, cross)
    if turn is None or any(t > 0 for t in turn):
        return None
    own = gram.block([last], [last])[0][0]
    if own != sum((c * t for c, t in zip(cross, turn, strict=True)), Fraction(0)):
        return None
    return _common_denominator([last, *others], [Fraction(1), *(-t for t in turn)], False)


def _small_enough(rows: int) -> None:
    if rows > MAX_ROWS:
        raise CertificateError(
            f"an exact rational certificate has at most {MAX_ROWS} supporting constraints, got {rows}: "
            "leave exact=False."
        )
