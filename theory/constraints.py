"""Rank-one margin constraints of attention: <W, k q^T> >= 1 without ever forming k q^T."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, Int, float_array, frozen, index_array


@dataclass(frozen=True, slots=True, eq=False, init=False)
class RankOneConstraints:
    """Constraint i is ``key_diffs[i] @ W @ queries[sample[i]] >= 1``.

    The constraint vector is z_i = vec(k_i q_i^T), vectorised row by row, with k_i = ``key_diffs[i]``
    (the key of the selected token minus a rival's) and q_i = ``queries[sample[i]]``. Gram entries factor:
    <z_i, z_j> = <k_i, k_j> <q_i, q_j>.

    Parameters
    ----------
    key_diffs : (N, d_k) array-like of finite numbers
    queries : (n, d_q) array-like of finite numbers
    sample : (N,) array-like of integers in 0..n-1

    Raises
    ------
    InvalidInput
        Wrong shapes or dtypes, NaN or infinities, numbers that float64 does not hold, no constraint at all, an
        index out of range.

    Notes
    -----
    Arrays are kept as read-only copies: what is proved of a problem stays true of it.
    """

    key_diffs: Float
    queries: Float
    sample: Int

    def __init__(self, key_diffs: ArrayLike, queries: ArrayLike, sample: ArrayLike) -> None:
        keys = float_array(key_diffs, "key_diffs", ndim=2)
        used = float_array(queries, "queries", ndim=2)
        if keys.size == 0 or used.size == 0:
            raise InvalidInput(
                f"a separator problem needs at least one constraint and one dimension, got key_diffs of shape "
                f"{keys.shape} and queries of shape {used.shape}."
            )
        object.__setattr__(self, "key_diffs", frozen(keys))
        object.__setattr__(self, "queries", frozen(used))
        index = index_array(sample, "sample", length=len(keys), below=len(used))
        object.__setattr__(self, "sample", frozen(index))

    def __len__(self) -> int:
        return len(self.key_diffs)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (d_k, d_q) of W."""
        return self.key_diffs.shape[1], self.queries.shape[1]

    def margins(self, W: Float) -> Float:
        """<W, z_i> for every constraint, shape (N,), at 2 N d_k + 2 n d_k d_q flops."""
        return np.einsum("ij,ij->i", self.key_diffs, (self.queries @ W.T)[self.sample])

    def combine(self, weights: Float) -> Float:
        """sum_i weights_i z_i as a (d_k, d_q) matrix."""
        weighted, sample = weights[:, None] * self.key_diffs, self.sample
        if (sample[1:] < sample[:-1]).any():
            order = np.argsort(sample, kind="stable")
            weighted, sample = weighted[order], sample[order]
        # One contiguous sum per sample: several times faster than scattered additions.
        starts = np.flatnonzero(np.r_[True, sample[1:] != sample[:-1]])
        per_sample = np.zeros((len(self.queries), self.shape[0]))
        if len(sample):
            per_sample[sample[starts]] = np.add.reduceat(weighted, starts, axis=0)
        return per_sample.T @ self.queries

    def gram(self, rows: Int | None = None, cols: Int | None = None) -> Float:
        """Block <z_i, z_j> for i in rows and j in cols (all by default)."""
        rows = np.arange(len(self)) if rows is None else rows
        cols = np.arange(len(self)) if cols is None else cols
        queries = self.queries @ self.queries.T
        return (self.key_diffs[rows] @ self.key_diffs[cols].T) * queries[
            np.ix_(self.sample[rows], self.sample[cols])
        ]

    def norms(self) -> Float:
        """||z_i||, shape (N,)."""
        return np.linalg.norm(self.key_diffs, axis=1) * np.linalg.norm(self.queries, axis=1)[self.sample]

    def dense(self) -> Float:
        """All constraint vectors as rows, shape (N, d_k * d_q): for reviewers and tests, not for solvers."""
        rows = self.key_diffs[:, :, None] * self.queries[self.sample][:, None, :]
        return rows.reshape(len(self), -1)

    def select(self, index: Int) -> RankOneConstraints:
        """The constraints in `index`, in that order."""
        parts = self.key_diffs[index], self.sample[index]
        for part in parts:  # fresh arrays, which need no further copy
            part.flags.writeable = False
        return RankOneConstraints(parts[0], self.queries, parts[1])
