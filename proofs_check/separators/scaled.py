"""Constraints on an equal footing: every row scaled by a power of two to a norm near one.

Constraint <W, z_i> >= 1 reads <w, x_i> >= beta_i with x_i = 2^(-e_i) z_i, ||x_i|| in [1/4, 1), and
W = w * scale. Powers of two make the scaling exact, so what is proved of the scaled problem holds of the
problem as given. Solvers see numbers of order one whatever the units of the data.
"""

from __future__ import annotations

from copy import copy
from typing import Protocol

import numpy as np

from marginlab.proofs_check.separators import double_double as dd
from marginlab.proofs_check.separators.double_double import DoubleDouble
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, Int

# Norms of constraint vectors (and of the factors of rank-one ones) lie in 2^-256..2^256, about 1e-77..1e77.
# Dual weights go with 1 / (||z_i|| ||z_j||) and are compared with one another: their quotients then stay within
# 2^1024 and what float64 holds. The certificates of `marginlab.proofs_check.certificates` have no such limit.
_LARGEST_EXPONENT = 256


class ScaledProblem(Protocol):
    """min ||w||^2 / 2 subject to <w, x_i> >= beta_i, and the products that solvers need.

    Attributes
    ----------
    beta : (N,) array in (0, 1], powers of two, largest 1
    scale : float
        W = scale * w, a power of two.
    norms : (N,) array
        ||x_i||.
    shape : shape of W
    dimension : int
        Number of unknowns D.
    """

    beta: Float
    scale: float
    norms: Float
    shape: tuple[int, ...]
    dimension: int

    def __len__(self) -> int: ...

    def margins(self, w: Float) -> Float:
        """<w, x_i> for every row."""
        ...

    def combine(self, weights: Float, rows: Int) -> Float:
        """sum over `rows` of weights_j x_j, in the shape of W."""
        ...

    def gram(self, rows: Int, cols: Int) -> Float:
        """<x_i, x_j>."""
        ...

    def dense(self, rows: Int) -> Float:
        """Rows x_i as vectors of length D."""
        ...

    def subset(self, rows: Int) -> ScaledProblem:
        """The problem of some rows, in the same scaling."""
        ...

    def select_given(self, rows: Int) -> Float | RankOneConstraints:
        """Those constraints as they were given, before scaling."""
        ...

    def margins_dd(self, w: DoubleDouble, rows: Int) -> DoubleDouble:
        """<w, x_i> for i in `rows`, in double-double."""
        ...

    def combine_dd(self, weights: DoubleDouble, rows: Int) -> DoubleDouble:
        """sum over `rows` of weights_j x_j, in double-double."""
        ...


def row_norms(Z: Float) -> Float:
    """Euclidean norms of rows, safe from overflow and underflow of the squares."""
    squares = np.einsum("ij,ij->i", Z, Z)
    # sqrt(min normal) and sqrt(max): outside, scale by the largest entry first.
    doubtful = (squares < 1e-280) | ~(squares < 1e300)
    norms = np.sqrt(squares)
    if doubtful.any():
        part = Z[doubtful]
        largest = np.abs(part).max(axis=1)
        safe = np.where(largest > 0, largest, 1.0)
        norms[doubtful] = largest * np.linalg.norm(part / safe[:, None], axis=1)
    return norms


def _exponents(norms: Float, what: str) -> Int:
    exponents = np.frexp(norms)[1].astype(np.intp)
    far = np.abs(exponents) > _LARGEST_EXPONENT
    if far.any():
        where = int(np.argmax(far))
        raise InvalidInput(
            f"{what} must have norms between 2^-{_LARGEST_EXPONENT} and 2^{_LARGEST_EXPONENT}, "
            f"got {norms[where]:.3g} in row {where}."
        )
    return exponents


class DenseProblem:
    """Rows of an (N, D) array of the given norms; the array itself is not copied."""

    def __init__(self, Z: Float, norms: Float) -> None:
        self._Z = Z
        self._power = np.ldexp(1.0, -_exponents(norms, "constraint vectors"))
        self.norms = norms * self._power
        self.scale = float(self._power.max())
        self.beta = self._power / self.scale
        self.shape: tuple[int, ...] = (Z.shape[1],)
        self.dimension = Z.shape[1]

    def __len__(self) -> int:
        return len(self._Z)

    def margins(self, w: Float) -> Float:
        result = self._Z @ w
        result *= self._power
        return result

    def combine(self, weights: Float, rows: Int) -> Float:
        if len(rows) == len(self._Z):
            return (weights * self._power[rows]) @ self._Z[rows]
        return weights @ self.dense(rows)

    def gram(self, rows: Int, cols: Int) -> Float:
        left = self.dense(rows)
        return left @ (left if cols is rows else self.dense(cols)).T

    def dense(self, rows: Int) -> Float:
        return self._Z[rows] * self._power[rows, None]

    def subset(self, rows: Int) -> DenseProblem:
        part = copy(self)
        part._Z, part._power = self._Z[rows], self._power[rows]
        part.norms, part.beta = self.norms[rows], self.beta[rows]
        return part

    def select_given(self, rows: Int) -> Float:
        return self._Z[rows]

    def margins_dd(self, w: DoubleDouble, rows: Int) -> DoubleDouble:
        return dd.matrix_vector(self.dense(rows), w)

    def combine_dd(self, weights: DoubleDouble, rows: Int) -> DoubleDouble:
        return dd.vector_matrix(weights, self.dense(rows))


class RankOneProblem:
    """Rows vec(k_i q^T); nothing of size D is formed per row except in `dense`."""

    def __init__(self, constraints: RankOneConstraints) -> None:
        keys, queries, sample = constraints.key_diffs, constraints.queries, constraints.sample
        # A query without constraints scales nothing; its norm may be zero.
        used = np.zeros(len(queries), dtype=bool)
        used[sample] = True
        key_exponents = _exponents(row_norms(keys), "key differences")
        query_exponents = _exponents(np.where(used, row_norms(queries), 1.0), "queries")
        self._rows = RankOneConstraints(
            np.ldexp(keys, -key_exponents[:, None]),
            np.ldexp(np.where(used[:, None], queries, 0.0), -query_exponents[:, None]),
            sample,
        )
        self._given = constraints
        exponents = key_exponents + query_exponents[sample]
        if np.abs(exponents).max() > _LARGEST_EXPONENT:
            where = int(np.argmax(np.abs(exponents)))
            raise InvalidInput(
                f"constraint vectors must have norms between 2^-{_LARGEST_EXPONENT} and "
                f"2^{_LARGEST_EXPONENT}, got about 2^{exponents[where]} in row {where}."
            )
        power = np.ldexp(1.0, -exponents)
        self.scale = float(power.max())
        self.beta = power / self.scale
        self.norms = self._rows.norms()
        self.shape: tuple[int, ...] = constraints.shape
        self.dimension = constraints.shape[0] * constraints.shape[1]

    def __len__(self) -> int:
        return len(self._rows)

    def margins(self, w: Float) -> Float:
        return self._rows.margins(w)

    def combine(self, weights: Float, rows: Int) -> Float:
        return self._rows.select(rows).combine(weights)

    def gram(self, rows: Int, cols: Int) -> Float:
        return self._rows.gram(rows, cols)

    def dense(self, rows: Int) -> Float:
        return self._rows.select(rows).dense()

    def subset(self, rows: Int) -> RankOneProblem:
        part = copy(self)
        part._rows, part._given = self._rows.select(rows), self._given.select(rows)
        part.norms, part.beta = self.norms[rows], self.beta[rows]
        return part

    def select_given(self, rows: Int) -> RankOneConstraints:
        return self._given.select(rows)

    def margins_dd(self, w: DoubleDouble, rows: Int) -> DoubleDouble:
        keys, sample = self._rows.key_diffs[rows], self._rows.sample[rows]
        d_k, d_q = self.shape
        used, position = np.unique(sample, return_inverse=True)
        projected = np.empty((len(used), d_k)), np.empty((len(used), d_k))  # W q
        step = max(1, dd.CHUNK // (d_k * d_q))
        for i in range(0, len(used), step):
            queries = self._rows.queries[used[i : i + step]]
            part = dd.total(dd.times(queries[:, None, :], (w[0][None], w[1][None])), axis=2)
            projected[0][i : i + step], projected[1][i : i + step] = part
        step = max(1, dd.CHUNK // d_k)
        result = np.empty(len(rows)), np.empty(len(rows))
        for i in range(0, len(rows), step):
            at = position[i : i + step]
            part = dd.total(dd.times(keys[i : i + step], (projected[0][at], projected[1][at])), axis=1)
            result[0][i : i + step], result[1][i : i + step] = part
        return result

    def combine_dd(self, weights: DoubleDouble, rows: Int) -> DoubleDouble:
        keys, sample = self._rows.key_diffs[rows], self._rows.sample[rows]
        d_k, d_q = self.shape
        used, position = np.unique(sample, return_inverse=True)
        order = np.argsort(position, kind="stable")
        starts = np.searchsorted(position[order], np.arange(len(used)))
        rank = np.arange(len(rows)) - starts[position[order]]  # 0, 1, 2, ... within each sample
        per_sample = np.zeros((len(used), d_k)), np.zeros((len(used), d_k))
        for r in range(int(rank.max(initial=-1)) + 1):
            take = order[rank == r]  # at most one row of each sample
            at = position[take]
            term = dd.times(keys[take], (weights[0][take, None], weights[1][take, None]))
            per_sample[0][at], per_sample[1][at] = dd.add((per_sample[0][at], per_sample[1][at]), term)
        result = np.zeros(self.shape), np.zeros(self.shape)
        step = max(1, dd.CHUNK // (d_k * d_q))
        for i in range(0, len(used), step):
            queries = self._rows.queries[used[i : i + step]]
            piece = per_sample[0][i : i + step, :, None], per_sample[1][i : i + step, :, None]
            result = dd.add(result, dd.total(dd.times(queries[:, None, :], piece), axis=0))
        return result


def scaled_problem(constraints: Float | RankOneConstraints) -> ScaledProblem:
    """The scaled form of validated constraints without zero rows."""
    if isinstance(constraints, RankOneConstraints):
        return RankOneProblem(constraints)
    return DenseProblem(constraints, row_norms(constraints))
