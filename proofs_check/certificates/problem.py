"""A separator problem scaled by powers of two, with exact integer arithmetic beside rigorous float bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from marginlab.proofs_check.certificates.dyadic import (
    Integers,
    common_exponent,
    integers,
    power_of_two,
)
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.rows import Combination, IntegerRows
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, Int, float_array, frozen

#: Unit roundoff of float64.
U = 2.0**-53


def gamma(k: int) -> float:
    """Higham's gamma_k = k u / (1 - k u), rounded up: k successive roundings, in any order of summation.

    It covers BLAS products too: blocking, vector units and fused multiply-add only reorder or drop
    roundings (no BLAS that NumPy links uses Strassen's algorithm).
    """
    return k * U / (1 - k * U) * (1 + 4 * U)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledProblem:
    """min ||W'|| subject to <W', z'_i> >= b_i, the problem min ||W|| s.t. <W, z_i> >= 1 in units of its rows.

    z_i = 2**e_i z'_i with factors of z'_i of norm in [1, 2) (or 0), e_0 = min e_i, b_i = 2**(e_0 - e_i) <= 1,
    W' = 2**e_0 W, p'_i = 2**(e_0 + e_i) p_i, and the margin is 2**e_0 times that of the scaled problem. All
    of it exact: powers of two only.

    Attributes
    ----------
    keys, queries, sample : scaled factors, z'_i = keys[i] queries[sample[i]]^T
    bits : (N,) array, b_i = 2**bits[i]
    shift : int, e_0
    norms : (N,) array, ||z'_i|| rounded up
    query_integers : (n, d_q) integers
        The queries are these times 2**query_exponent.
    query_exponent : int
    """

    keys: Float
    queries: Float
    sample: Int
    bits: Int
    shift: int
    norms: Float
    query_integers: Integers
    query_exponent: int

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def thresholds(self) -> Float:
        """b_i, rounded up: exact unless it is below 2**-1000."""
        return np.ldexp(1.0, np.maximum(self.bits, -1000))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d_k, d_q) of W."""
        return self.keys.shape[1], self.queries.shape[1]

    def zero_rows(self) -> NDArray[np.bool_]:
        """Which constraints have the zero vector."""
        return self.norms == 0  # the norms of all others are at least 1

    def select(self, rows: Int) -> ScaledProblem:
        """The problem of `rows` alone, in the same units."""
        return replace(
            self,
            keys=self.keys[rows],
            sample=self.sample[rows],
            bits=self.bits[rows],
            norms=self.norms[rows],
        )

    def names(self, rows: Int) -> list[bytes]:
        """Bytes that are equal for equal scaled rows z'_i with equal factors (and -0.0 beside 0.0)."""
        keys, queries = self.keys[rows] + 0.0, self.queries[self.sample[rows]] + 0.0
        return [k.tobytes() + q.tobytes() for k, q in zip(keys, queries, strict=True)]

    def distinct(self, rows: Int) -> Int:
        """`rows` without those that another of them implies: one of equal z'_i, with the largest b_i."""
        first: dict[bytes, int] = {}
        for row, name in zip(rows.tolist(), self.names(rows), strict=True):
            if name not in first or self.bits[row] > self.bits[first[name]]:
                first[name] = row
        return np.array(sorted(first.values()), dtype=np.intp)

    def dense(self, rows: Int) -> Float:
        """Those rows as vectors, shape (k, d_k d_q)."""
        products = self.keys[rows][:, :, None] * self.queries[self.sample[rows]][:, None, :]
        return products.reshape(len(rows), -1)

    def integer_rows(self, rows: Int) -> IntegerRows:
        """Those rows in exact integers."""
        return IntegerRows(self.keys[rows], self.query_integers, self.query_exponent, self.sample[rows])

    def gram(self, rows: Int) -> tuple[Float, float]:
        """Float Gram matrix of `rows`, and eps with |error_ij| <= eps ||z'_i|| ||z'_j||.

        Two dot products (gamma_{d_k}, gamma_{d_q} of products of absolute values, which Cauchy-Schwarz bounds
        by the norms) and one multiplication; 4 more roundings cover underflow, since the norms are >= 1.
        """
        queries = self.queries @ self.queries.T
        keys = self.keys[rows]
        where = self.sample[rows]
        return (keys @ keys.T) * queries[np.ix_(where, where)], gamma(sum(self.shape) + 5)

    def margin_bounds(self, V: Combination) -> tuple[Float, Float]:
        """Lower and upper float64 bounds of <V, z'_i> for every i, at the cost of one pass over the data.

        Rounding V (3 u), two chained products (gamma_{d_q}, gamma_{d_k}), 4 more for underflow and for the
        evaluation of the bound itself; all in units of ||z'_i|| ||V||. Overflow gives -inf and inf.
        """
        centre = V.float()
        with np.errstate(all="ignore"):
            turned = self.queries @ centre.T
            if len(turned) == 1:  # a dense problem: no copy of the whole data
                value = self.keys @ turned[0]
            else:
                value = np.einsum("ij,ij->i", self.keys, turned[self.sample])
            size = np.linalg.norm(centre) * (1 + gamma(centre.size + 8))
            radius = gamma(sum(self.shape) + 12) * self.norms * size + 2.0**-1000
            low, high = value - radius, value + radius
        bad = ~(np.isfinite(low) & np.isfinite(high))
        low[bad], high[bad] = -np.inf, np.inf
        return low, high

    def scaled_weights(self, weights: Float) -> Float:
        """p'_i of weights p_i >= 0 that are in the data's units, times the one factor that fits them to the problem.

        The optimum has ||V||^2 = sum p'_i b_i = 1 / margin^2 for V = sum p'_i z'_i. Weights too small for
        float64 beside the largest become 0: this is a starting point, of which nothing is believed.
        """
        mantissa, power = np.frexp(weights)
        power = np.where(mantissa > 0, power - self.bits, np.iinfo(np.intp).min // 2)
        relative = np.ldexp(mantissa, np.maximum(power - power.max(), -1100))
        rows = np.flatnonzero(relative)
        V = np.zeros((len(self.queries), self.shape[0]))
        np.add.at(V, self.sample[rows], relative[rows, None] * self.keys[rows])
        total = relative @ self.thresholds
        factor = total / np.linalg.norm(V.T @ self.queries) ** 2
        return relative * factor if np.isfinite(factor) and factor > 0 else relative

    def smallest_margin(self, V: Combination) -> Fraction:
        """min_i <V, z'_i> / b_i, exactly; only rows that the float bounds cannot tell apart are computed."""
        low, high = self.margin_bounds(V.near_one())
        with np.errstate(over="ignore"):
            # dividing by a power of two is exact, and the sign survives where b_i was raised to 2**-1000
            low, high = low / self.thresholds, high / self.thresholds
        deep = self.bits < -1000
        rows = np.flatnonzero((low <= high.min()) | deep)
        values, exponent = self.integer_rows(rows).margins(V)
        return smallest_ratio(values.tolist(), exponent, self.bits[rows])


def smallest_ratio(values: list[int], exponent: int, bits: Int) -> Fraction:
    """min_i values_i 2**(exponent - bits_i), exactly."""
    top = int(bits.max())
    least = min(v << (top - b) for v, b in zip(values, bits.tolist(), strict=True))
    return least * power_of_two(exponent - top)


def lifted(constraints: Float | RankOneConstraints) -> RankOneConstraints:
    """A dense (N, D) problem as the rank-one problem z_i = vec(row_i (1)), whose W has shape (D, 1)."""
    if isinstance(constraints, RankOneConstraints):
        return constraints
    rows = float_array(constraints, "constraints", ndim=2)
    if rows.size == 0:
        raise InvalidInput(
            f"a separator problem needs at least one constraint and one dimension, got shape {rows.shape}."
        )
    return RankOneConstraints(rows, np.ones((1, 1)), np.zeros(len(rows), dtype=np.intp))


def owned(constraints: Float | RankOneConstraints) -> Float | RankOneConstraints:
    """A checked copy that nobody can write to: what a certificate speaks of must not change under it."""
    data = lifted(constraints)
    if not isinstance(constraints, RankOneConstraints):
        return frozen(data.key_diffs)
    copy = RankOneConstraints(data.key_diffs, data.queries, data.sample)
    for name in ("key_diffs", "queries", "sample"):
        object.__setattr__(copy, name, frozen(getattr(data, name)))
    return copy


def _unit_rows(rows: Float, name: str) -> tuple[Float, Int]:
    """Rows over a power of two each, of norm in [1, 2) up to rounding, and the exponents."""
    with np.errstate(all="ignore"):
        size = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        if size.min() > 1e-140 and size.max() < 1e140:  # no square under- or overflowed
            power = np.frexp(size)[1] - 1
            scaled = rows * np.ldexp(1.0, -power)[:, None]
            exact = scaled * np.ldexp(1.0, power)[:, None] == rows
        else:
            _, top = np.frexp(np.abs(rows).max(axis=1))
            first = np.ldexp(rows, -top[:, None])  # largest entry in [1/2, 1)
            _, more = np.frexp(np.linalg.norm(first, axis=1))
            power = np.where(np.any(rows != 0, axis=1), top + more - 1, 0)
            half = power[:, None] // 2  # 2**-power alone may overflow
            scaled = np.ldexp(np.ldexp(rows, -half), half - power[:, None])
            exact = np.ldexp(scaled, power[:, None]) == rows
    if not exact.all():
        row = int(np.argmin(exact.all(axis=1)))
        raise CertificateError(
            f"entries of one row of {name} must lie within a factor 2**1000 of each other to be scaled "
            f"without rounding, row {row} runs from {np.abs(rows[row][rows[row] != 0]).min():.3g} to "
            f"{np.abs(rows[row]).max():.3g}."
        )
    return scaled, power.astype(np.intp)


def scaled_problem(constraints: Float | RankOneConstraints) -> ScaledProblem:
    """`constraints` with every row in units of its norm.

    Raises
    ------
    InvalidInput
        Not a finite (N, D) array or `RankOneConstraints`.
    CertificateError
        Entries of one row so far apart that scaling would round.
    """
    data = lifted(constraints)
    keys, key_power = _unit_rows(data.key_diffs, "the constraints")
    queries, query_power = _unit_rows(data.queries, "the queries")
    power = key_power + query_power[data.sample]
    shift = int(power.min())
    query_exponent = common_exponent(queries)
    # each norm has d + 1 roundings of positive terms, then one product
    up = (1 + gamma(sum(data.shape) + 8)) ** 2
    norms = np.sqrt(np.einsum("ij,ij->i", keys, keys))
    norms *= np.sqrt(np.einsum("ij,ij->i", queries, queries))[data.sample] * up
    return ScaledProblem(
        keys=keys,
        queries=queries,
        sample=data.sample,
        bits=shift - power,
        shift=shift,
        norms=norms,
        query_integers=integers(queries, query_exponent),
        query_exponent=query_exponent,
    )
