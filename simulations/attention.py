"""One layer of softmax attention with a merged key-query matrix: the object that everything here trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, Int, frozen, index_array, shaped_array

if TYPE_CHECKING:
    from marginlab.theory.match_copy import MatchCopyData


#: Sizes of key differences, queries, value differences and value errors lie in 2^-100..2^100, or are zero. The
#: squared norm of a gradient holds each of them (the value differences twice) to the second power: within
#: 2^+-800 for one sample. So no product under- or overflows, and what one sample loses below e^-708 of another
#: stays far below u of that one: error bounds that count roundings alone are then sound.
LARGEST_EXPONENT = 100


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Problem:
    r"""Attention over K keys a sample: scores ``keys[i, t] @ W @ queries[i]``, output sum_t a_t values[i, t].

    The losses are sums over the samples, of half the squared error ``||output - targets[i]||^2 / 2``
    ("mse", eq. 19) or of the cross-entropy ``-log a_{match[i]}`` of the match ("cross-entropy").

    Parameters
    ----------
    keys : (n, K, d) array, K >= 2
    queries : (n, d) array
    values : (n, K, d_v) array
    match : (n,) array of int
        Selected key of each sample, in 0..K-1.
    targets : (n, d_v) array, optional
        ``values[i, match[i]]`` if not given.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, NaN or infinities, K < 2, a match out of range, data of sizes that gradients
        cannot be trusted with. In each sample the largest entry of the key differences, of the query, of the
        value differences and of each ``values[i, t] - targets[i]`` must be zero or within 2^-100..2^100, about
        8e-31 to 1e30: choose other units, which W and the loss absorb.

    Notes
    -----
    Arrays are kept as read-only float64 copies.
    """

    keys: Float
    queries: Float
    values: Float
    match: Int
    targets: Float

    def __init__(
        self,
        keys: ArrayLike,
        queries: ArrayLike,
        values: ArrayLike,
        match: ArrayLike,
        targets: ArrayLike | None = None,
    ) -> None:
        keys = shaped_array(keys, "keys", (None, None, None))
        n, K, d = keys.shape
        if K < 2:
            raise InvalidInput(f"attention needs at least 2 keys a sample to select one, got K = {K}.")
        queries = shaped_array(queries, "queries", (n, d))
        values = shaped_array(values, "values", (n, K, None))
        match = index_array(match, "match", length=n, below=K)
        if targets is None:
            targets = values[np.arange(n), match]
        else:
            targets = shaped_array(targets, "targets", (n, values.shape[2]))
        _check_sizes(keys, queries, values, match, targets)
        parts = {"keys": keys, "queries": queries, "values": values, "match": match, "targets": targets}
        for name, array in parts.items():
            object.__setattr__(self, name, frozen(array))

    @classmethod
    def from_match_copy(cls, data: MatchCopyData) -> Problem:
        """The minimal model of Section 4 on sampled data: key e_t stands before value W_V e_{t+1}.

        Keys are e_1..e_{T-1} and values W_V e_2..W_V e_T (a frozen previous-token head); the target is the
        selected value when the task has no target noise, and the sampled target otherwise.

        Raises
        ------
        InvalidInput
            T < 3: there would be one key, and nothing to select.
        """
        following = data.tokens[:, 1:]
        values = following if data.task.copy == "identity" else following @ data.W_V.T
        targets = data.target if data.task.noise > 0 else None
        return cls(data.tokens[:, :-1], data.query, values, data.match, targets)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(n, K, d, d_v)."""
        return (*self.keys.shape, self.values.shape[2])

    @property
    def rivals(self) -> np.ndarray:
        """(n, K) mask of the keys that are not the match."""
        mask = np.ones(self.keys.shape[:2], dtype=bool)
        mask[np.arange(len(mask)), self.match] = False
        return mask

    @property
    def key_diffs(self) -> Float:
        """k_match - k_t, shape (n, K, d); zero at the match."""
        return self.keys[np.arange(len(self.keys)), self.match][:, None] - self.keys

    def constraints(self) -> RankOneConstraints:
        """Margin constraints ``(k_match - k_t) @ W @ q >= 1``, sample by sample, rivals in order of t."""
        rivals = self.rivals
        return RankOneConstraints(self.key_diffs[rivals], self.queries, np.nonzero(rivals)[0])


def _check_sizes(keys: Float, queries: Float, values: Float, match: Int, targets: Float) -> None:
    """Refuse data whose products leave the range of float64; see `LARGEST_EXPONENT`."""
    rows = np.arange(len(keys))
    with np.errstate(over="ignore"):  # infinite differences are refused here
        sizes = {
            "key differences": np.abs(keys - keys[rows, match][:, None]).max(axis=(1, 2)),
            "queries": np.abs(queries).max(axis=1),
            "value differences": np.abs(values - values[rows, match][:, None]).max(axis=(1, 2)),
            "differences of values and targets": np.abs(values - targets[:, None]).max(axis=2),
        }
    least, most = 2.0**-LARGEST_EXPONENT, 2.0**LARGEST_EXPONENT
    for name, size in sizes.items():
        bad = (size > 0) & ~((size >= least) & (size <= most))
        if bad.any():
            where = np.argwhere(bad)[0]
            raise InvalidInput(
                f"{name} must be zero or of a size (largest entry) between 2^-{LARGEST_EXPONENT} and "
                f"2^{LARGEST_EXPONENT}, got {size[tuple(where)]:.3g} in sample {where[0]}."
            )
