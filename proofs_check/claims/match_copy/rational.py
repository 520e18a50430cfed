"""Attention in exact rationals: samples whose weights are rational numbers, and derivatives by truncated series.

The gradients of the minimal model are rational in the attention weights, so that identities between them can be
checked without any rounding. What is differentiated here is the loss by its definition (8), (9), (17), to second
order in exact arithmetic: no formula for a gradient enters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from marginlab.simulations.attention import Problem
from marginlab.theory.validation import Float

#: Unnormalised weights of a sample sum to this power of two: weights are dyadic, and so is every gradient of them,
#: with few enough bits that float64 holds each value exactly.
TOTAL = 32

Vector = Sequence[Fraction]


@dataclass(frozen=True, slots=True, kw_only=True)
class RationalSample:
    """One sample with integer keys, query and values, at a point W where its weights are ``weights / TOTAL``.

    Attributes
    ----------
    keys, values : tuples of K integer vectors
    query : integer vector
    match : int
    weights : K positive integers of sum `TOTAL`
    """

    keys: tuple[tuple[int, ...], ...]
    query: tuple[int, ...]
    values: tuple[tuple[int, ...], ...]
    match: int
    weights: tuple[int, ...]

    @property
    def attention(self) -> list[Fraction]:
        """a_t, softmax weights."""
        return [Fraction(w, TOTAL) for w in self.weights]

    @property
    def rivals(self) -> list[int]:
        """Indices of the keys that are not the match."""
        return [t for t in range(len(self.keys)) if t != self.match]

    @property
    def errors(self) -> list[list[int]]:
        """d_t = v_t - v_y, for every t."""
        return [[a - b for a, b in zip(v, self.values[self.match], strict=True)] for v in self.values]

    @property
    def differences(self) -> list[list[int]]:
        """k_y - k_t, for every t."""
        return [[b - a for a, b in zip(k, self.keys[self.match], strict=True)] for k in self.keys]

    @property
    def residual(self) -> list[Fraction]:
        """r = sum_t a_t v_t - v_y."""
        a = self.attention
        output = [
            sum((a[t] * v[j] for t, v in enumerate(self.values)), Fraction(0)) for j in self.coordinates
        ]
        return [o - y for o, y in zip(output, self.values[self.match], strict=True)]

    @property
    def coordinates(self) -> range:
        """Indices of a value's coordinates."""
        return range(len(self.values[0]))

    def logit_changes(self, direction: Sequence[Sequence[int]]) -> list[Fraction]:
        """k_t^T U q: how fast each logit grows as W moves along U."""
        moved = [sum(u * q for u, q in zip(row, self.query, strict=True)) for row in direction]
        return [Fraction(sum(k * m for k, m in zip(key, moved, strict=True))) for key in self.keys]


def dot(x: Sequence[Fraction | int], y: Sequence[Fraction | int]) -> Fraction:
    """Inner product."""
    return Fraction(sum(a * b for a, b in zip(x, y, strict=True)))


def weight_series(sample: RationalSample, changes: Vector) -> list[list[Fraction]]:
    """Coefficients of 1, s, s^2 in the weights, as logits move by s times `changes`: quotients of power series."""
    terms = [[Fraction(w), w * c, w * c * c / 2] for w, c in zip(sample.weights, changes, strict=True)]
    total = [sum((term[k] for term in terms), Fraction(0)) for k in range(3)]
    series = []
    for x in terms:
        a0 = x[0] / total[0]
        a1 = (x[1] - a0 * total[1]) / total[0]
        series.append([a0, a1, (x[2] - a0 * total[2] - a1 * total[1]) / total[0]])
    return series


def squared_error_derivatives(sample: RationalSample, changes: Vector) -> tuple[Fraction, Fraction]:
    """First and second derivative of ||sum_t a_t v_t - v_y||^2 / 2, eq. (19), as logits move along `changes`."""
    a = weight_series(sample, changes)
    first = second = Fraction(0)
    for j in sample.coordinates:
        y = [sum((a[t][k] * v[j] for t, v in enumerate(sample.values)), Fraction(0)) for k in range(3)]
        y[0] -= sample.values[sample.match][j]
        first += y[0] * y[1]
        second += y[1] * y[1] + 2 * y[0] * y[2]
    return first, second


def cross_entropy_derivatives(sample: RationalSample, changes: Vector) -> tuple[Fraction, Fraction]:
    """First and second derivative of -log a_y, as logits move along `changes`."""
    a0, a1, a2 = weight_series(sample, changes)[sample.match]
    return -a1 / a0, (a1 / a0) ** 2 - 2 * a2 / a0


def unit_matrices(d: int) -> list[list[list[int]]]:
    """The d^2 matrices with one entry 1, row by row: directions that give a gradient entry by entry."""
    return [
        [[int(r == a and c == b) for c in range(d)] for r in range(d)] for a in range(d) for b in range(d)
    ]


def drawn_samples(seed: np.random.SeedSequence, *, n: int, K: int, d: int) -> list[RationalSample]:
    """n samples with entries in -4..4 and random positive weights of sum `TOTAL`."""
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(n):
        cuts = np.sort(rng.choice(np.arange(1, TOTAL), size=K - 1, replace=False))
        weights = np.diff(np.r_[0, cuts, TOTAL])
        keys, values = rng.integers(-4, 5, (2, K, d))
        samples.append(
            RationalSample(
                keys=_tuples(keys),
                values=_tuples(values),
                query=tuple(rng.integers(-4, 5, d).tolist()),
                match=int(rng.integers(K)),
                weights=tuple(weights.tolist()),
            )
        )
    return samples


def _tuples(rows: np.ndarray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows.tolist())


def exact_floats(values: Sequence[Fraction]) -> np.ndarray:
    """An object array of rationals, which an exact interval takes only if float64 holds every one of them."""
    array = np.empty(len(values), dtype=object)
    array[:] = list(values)
    return array


def dyadic_integers(array: Float) -> np.ndarray:
    """An object array of integers: float64 numbers, which are dyadic, times one power of two."""
    ratios = [float(x).as_integer_ratio() for x in array.ravel()]
    scale = max((denominator for _, denominator in ratios), default=1)
    integers = np.empty(array.size, dtype=object)
    integers[:] = [numerator * (scale // denominator) for numerator, denominator in ratios]
    return integers.reshape(array.shape)


def exact_rank(rows: np.ndarray) -> int:
    """Rank over the rationals of a matrix of integers."""
    from flint import fmpz_mat

    return int(fmpz_mat(rows.tolist()).rank())


def constraint_vectors(problem: Problem) -> np.ndarray:
    """vec((k_y - k_t) q^T) of every constraint, one a row, in integers: exact up to one common factor."""
    n, K, d, _ = problem.shape
    keys, queries = dyadic_integers(problem.keys), dyadic_integers(problem.queries)
    differences = keys[np.arange(n), problem.match][:, None] - keys
    vectors = (differences[..., :, None] * queries[:, None, None, :]).reshape(n, K, d * d)
    return vectors[problem.rivals]


def error_vectors(problem: Problem) -> np.ndarray:
    """v_t - v_y of the rivals, (n, K - 1, d_v), in integers: exact up to one common factor."""
    n, K, _, d_v = problem.shape
    values = dyadic_integers(problem.values)
    errors = values - values[np.arange(n), problem.match][:, None]
    return errors[problem.rivals].reshape(n, K - 1, d_v)
