"""Some rows of a problem in exact integers, grouped by query so that each product is a small matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import fmpz_mat

from marginlab.proofs_check.certificates.dyadic import (
    Integers,
    common_exponent,
    integers,
    power_of_two,
    rounded,
)
from marginlab.theory.validation import Float, Int


@dataclass(frozen=True, slots=True)
class Combination:
    """V = sum_i w_i z'_i, exactly: the integer matrix `matrix` times 2**exponent."""

    matrix: fmpz_mat
    exponent: int

    def float(self) -> Float:
        """V as float64: ||V.float() - V||_F <= 3 u ||V||_F."""
        return rounded(np.array(self.matrix.tolist(), dtype=np.object_), self.exponent)

    def near_one(self) -> Combination:
        """V times the power of two that brings its largest entry into [1/2, 1) (V itself if it is zero)."""
        bits = max(abs(int(v)).bit_length() for v in self.matrix.entries())
        return Combination(self.matrix, -bits) if bits else self

    def norm_squared(self) -> Fraction:
        """||V||_F^2, exactly."""
        return inner(self, self)


def inner(a: Combination, b: Combination) -> Fraction:
    """<A, B>, exactly."""
    entries = zip(a.matrix.entries(), b.matrix.entries(), strict=True)
    return int(sum((x * y for x, y in entries), start=0)) * power_of_two(a.exponent + b.exponent)


class IntegerRows:
    """Rows z'_i = k_i q_s(i)^T as integer factors times 2**exponent.

    Attributes
    ----------
    exponent : int
        Sum of the exponents of keys and queries.
    queries : fmpz_mat
        The queries that occur, one a row.
    blocks : list of (positions among the rows, integer keys of one query)
    """

    def __init__(self, keys: Float, queries: Integers, query_exponent: int, sample: Int) -> None:
        key_exponent = common_exponent(keys)
        where, position = np.unique(sample, return_inverse=True)
        self.exponent = key_exponent + query_exponent
        self.count = len(keys)
        self.queries = fmpz_mat(queries[where].tolist())
        whole = integers(keys, key_exponent).tolist()
        order = np.argsort(position, kind="stable")
        ends = np.searchsorted(position[order], np.arange(1, len(where)))
        self.blocks = [
            (block.tolist(), fmpz_mat([whole[i] for i in block])) for block in np.split(order, ends)
        ]

    def combine(self, weights: Integers, exponent: int) -> Combination:
        """sum_i weights_i 2**exponent z'_i, exactly."""
        w = weights.tolist()
        sums = [(fmpz_mat([[w[i] for i in block]]) * keys).entries() for block, keys in self.blocks]
        return Combination(fmpz_mat(sums).transpose() * self.queries, exponent + self.exponent)

    def margins(self, V: Combination) -> tuple[Integers, int]:
        """<V, z'_i> for every row, exactly: integers and their common exponent."""
        turned = (self.queries * V.matrix.transpose()).tolist()  # (queries, d_k)
        result = np.zeros(self.count, dtype=np.object_)
        for (block, keys), column in zip(self.blocks, turned, strict=True):
            product = keys * fmpz_mat(len(column), 1, column)
            result[block] = [int(v) for v in product.entries()]
        return result, V.exponent + self.exponent

    def gram(self) -> list[list[int]]:
        """<z'_i, z'_j> in units of 2**(2 exponent)."""
        products = (self.queries * self.queries.transpose()).tolist()
        result = [[0] * self.count for _ in range(self.count)]
        for (rows, a), weights in zip(self.blocks, products, strict=True):
            for (cols, b), weight in zip(self.blocks, weights, strict=True):
                for i, values in zip(rows, (a * b.transpose()).tolist(), strict=True):
                    for j, value in zip(cols, values, strict=True):
                        result[i][j] = int(value * weight)
        return result
