"""The constants of the theorems in ball arithmetic: what they need of the data, and of one W."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, arb_mat

from marginlab.proofs_check.separators import MaxMargin, NotSeparable, OracleFailed, max_margin
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy.geometry import hull_distances
from marginlab.theory.validation import Float

#: Bits of every ball. Data are exact; margins of 1000 cost no relative precision, since weights are exponentials of
#: differences of scores that are exact to 2^-150 at least.
PRECISION = 256


def balls(array: Float) -> Any:
    """A matrix of float64 as exact balls."""
    return arb_mat([[arb(float(x)) for x in row] for row in array])


def least(values: list[Any]) -> Any:
    """A ball around the smallest of the values."""
    result = values[0]
    for value in values[1:]:
        result = result.min(value)
    return result


def largest(values: list[Any]) -> Any:
    """A ball around the largest of the values."""
    return -least([-value for value in values])


class Geometry:
    """Constants of a problem's data, each a ball, computed when asked for (under `PRECISION`).

    Attributes
    ----------
    problem : Problem
    errors : list of matrices (K - 1, d_v)
        Error directions d_{i,t} = v_t - v_y of the rivals, sample by sample.
    grams : list of matrices (K - 1, K - 1)
        Their inner products.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._rivals = [np.flatnonzero(row) for row in problem.rivals]
        self.errors = [
            self._differences(problem.values[i], int(y), self._rivals[i]) for i, y in enumerate(problem.match)
        ]
        self.grams = [d * d.transpose() for d in self.errors]

    @staticmethod
    def _differences(rows: Float, match: int, rivals: Any) -> Any:
        exact = balls(rows).tolist()
        return arb_mat([[a - b for a, b in zip(exact[t], exact[match], strict=True)] for t in rivals])

    @cached_property
    def _key_diffs(self) -> list[Any]:
        """k_y - k_t of the rivals, (K - 1, d) each."""
        problem = self.problem
        return [
            -self._differences(problem.keys[i], int(y), self._rivals[i]) for i, y in enumerate(problem.match)
        ]

    @cached_property
    def _queries(self) -> Any:
        return balls(self.problem.queries)

    @cached_property
    def alignments(self) -> list[Any]:
        """g_i = min over s, t of <d_{i,s}, d_{i,t}>."""
        return [least(gram.entries()) for gram in self.grams]

    @cached_property
    def error_radii(self) -> list[Any]:
        """R_i = max_t ||d_{i,t}||."""
        return [largest([gram[t, t] for t in range(gram.nrows())]).sqrt() for gram in self.grams]

    @cached_property
    def feature_radii(self) -> list[Any]:
        """X_i = max_t ||k_y - k_t|| ||q_i||."""
        found = []
        for i, diffs in enumerate(self._key_diffs):
            query = self._queries.tolist()[i]
            squares = diffs * diffs.transpose()
            reach = largest([squares[t, t] for t in range(squares.nrows())]).sqrt()
            found.append(reach * sum((q * q for q in query), arb(0)).sqrt())
        return found

    @cached_property
    def normals(self) -> Float:
        """Unit vectors (n, d_v) that separate the target from the rivals' values, in float64: witnesses of A3."""
        return np.array([distance.normal for distance in hull_distances(self.problem)])

    @cached_property
    def hull_distances(self) -> list[Any]:
        """Lower bounds of gamma_i, the distance of 0 to the hull of the d_{i,t}: min_t <d_{i,t}, normal>/||normal||."""
        found = []
        for errors, normal in zip(self.errors, balls(self.normals).tolist(), strict=True):
            length = sum((x * x for x in normal), arb(0)).sqrt()
            along = (errors * arb_mat([[x] for x in normal])).entries()
            found.append(least(along) / length if length > 0 else arb(0))
        return found

    @cached_property
    def separator(self) -> MaxMargin | str:
        """Max-margin separator in float64 (a witness, whatever its accuracy), or why there is none."""
        try:
            return max_margin(self.problem.constraints())
        except (NotSeparable, OracleFailed) as reason:
            return str(reason)

    @cached_property
    def separator_norm(self) -> tuple[Any, Any] | None:
        """Enclosure of ||w_hat|| from the separator's W (feasible) and its dual weights; None without separator."""
        if isinstance(self.separator, str):
            return None
        W, dual = self.separator.W, np.maximum(self.separator.dual, 0.0)
        margin = least(self.margins(W))
        if not margin > 0:
            return None
        upper = frobenius(W) / margin
        weights, start = arb(0), 0
        d = self.problem.shape[2]
        combined = arb_mat(d, d)
        for i, diffs in enumerate(self._key_diffs):
            row = arb_mat([[arb(float(x)) for x in dual[start : start + diffs.nrows()]]])
            start += diffs.nrows()
            weights += sum(row.entries(), arb(0))
            combined += (row * diffs).transpose() * arb_mat([self._queries.tolist()[i]])
        length = sum((x * x for x in combined.entries()), arb(0)).sqrt()
        return (weights / length if length > 0 else arb(0)), upper

    @cached_property
    def equal_margins_norm(self) -> Any | None:
        """||w_bar|| of the least w_bar with all margins 1, or None if the constraints are not proved independent."""
        rows = [row for diffs in self._key_diffs for row in diffs.tolist()]
        sample = [i for i, diffs in enumerate(self._key_diffs) for _ in range(diffs.nrows())]
        keys = arb_mat(rows) * arb_mat(rows).transpose()
        queries = self._queries * self._queries.transpose()
        N = len(rows)
        gram = arb_mat([[keys[j, k] * queries[sample[j], sample[k]] for k in range(N)] for j in range(N)])
        try:
            beta = gram.solve(arb_mat([[arb(1)]] * N)).entries()
        except ZeroDivisionError:
            return None
        square = sum(beta, arb(0))
        return square.sqrt() if square > 0 else None

    def margins(self, W: Float) -> list[Any]:
        """All margins of W, sample by sample, rivals in order."""
        matrix = balls(W)
        turned = matrix * self._queries.transpose()  # (d, n)
        columns = turned.transpose().tolist()
        return [
            margin
            for diffs, column in zip(self._key_diffs, columns, strict=True)
            for margin in (diffs * arb_mat([[x] for x in column])).entries()
        ]

    def loss(self, W: Float) -> Any:
        """L(W) = sum_i ||r_i||^2 / 2, as a quadratic form of the weights in the Gram matrices."""
        margins, start, total = self.margins(W), 0, arb(0)
        for gram in self.grams:
            odds = [(-m).exp() for m in margins[start : start + gram.nrows()]]
            start += gram.nrows()
            share = 1 + sum(odds, arb(0))
            a = arb_mat([[x / share for x in odds]])
            total += (a * gram * a.transpose())[0, 0] / 2
        return total


def frobenius(W: Float) -> Any:
    """||W||_F as a ball."""
    return sum((x * x for x in balls(W).entries()), arb(0)).sqrt()


@dataclass(frozen=True, slots=True)
class Fact:
    """An inequality and what the balls say of it."""

    holds: bool
    text: str


def below(value: Any, bound: Any, text: str, *, strict: bool = False) -> Fact:
    """value <= bound (or <), with both shown."""
    holds = bool(value < bound) if strict else bool(value <= bound)
    return Fact(holds, f"{text}: {shown(value)} against {shown(bound)}")


def shown(value: Any) -> str:
    """A ball in a sentence."""
    return value.str(6, radius=False)
