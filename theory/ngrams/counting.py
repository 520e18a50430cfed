"""Counts of contexts by sets of lags, for all rows of a sequence in one pass.

A mask is a set of lags as bits (lag l is bit l - 1). For the query after t tokens and a mask S, K_S(m) counts the
positions whose symbol is m and whose tokens at the lags of S are those of the query (cumulative counts); N_M(m) counts
those that agree at the lags of M and at no other (exact-overlap counts), so that K_S = sum over M containing S of N_M.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.validation import count, one_of

Tokens = NDArray[np.int32]
Counts = NDArray[np.int32]

BOUNDARIES = ("interior", "padded")
METHODS = ("auto", "dense", "hashed")

#: Longest context; 2^k tables are kept.
MOST_LAGS = 12

#: Cells of dense tables (4 bytes each) up to which they are preferred to hashed ones.
DENSE_CELLS = 2**22

#: Bytes that hashed tables may take before the pass gives up with an error.
MOST_BYTES = 3 * 2**30

#: Rows that are held at a time: their counts fit into the cache for small alphabets.
BLOCK_CELLS = 2**15


def compiled() -> Any:
    """The kernels; numba is loaded at the first call."""
    from marginlab.theory.ngrams import _counting

    return _counting


def checked_tokens(tokens: Any, vocab_size: int, *, name: str = "tokens", ndim: int = 1) -> Tokens:
    """Tokens as int32, each in 0..vocab_size-1.

    Raises
    ------
    InvalidInput
        Not integers, another number of dimensions, or a token outside the vocabulary (the first one is named).
    """
    array = np.asarray(tokens)
    if array.size == 0 and array.dtype == np.float64:  # an empty list
        array = array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must hold integers, got dtype {array.dtype}.")
    if array.ndim != ndim:
        raise InvalidInput(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    bad = (array < 0) | (array >= vocab_size)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        shown = where[0] if ndim == 1 else where
        raise InvalidInput(
            f"{name} must lie in 0..{vocab_size - 1} (the vocabulary), got {array[where]} at index {shown}."
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def checked_order(order: Any, name: str = "order") -> int:
    """A number of lags, 1 to `MOST_LAGS`.

    Raises
    ------
    InvalidInput
        Anything else.
    """
    k = count(order, name)
    if k > MOST_LAGS:
        raise InvalidInput(f"{name} must be at most {MOST_LAGS} (2^k tables are kept), got {k}.")
    return k


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Masks:
    """Sets of lags whose counts a pass keeps, parents first.

    Attributes
    ----------
    lag : (M,) oldest lag of each, 0 for the empty set
    parent : (M,) index of the set without its oldest lag
    nested : (M,) whether it is a contiguous suffix, the lags 1..r
    """

    order: int
    lag: NDArray[np.int64]
    parent: NDArray[np.int64]
    nested: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.lag)

    @classmethod
    def subsets(cls, order: int) -> Masks:
        """All 2^k sets of lags, by their bits."""
        bits = np.arange(2**order)
        lag = np.array([int(b).bit_length() for b in bits])
        parent = np.where(bits > 0, bits - (2**lag >> 1), 0)
        return cls(order=order, lag=lag, parent=parent, nested=(bits & (bits + 1)) == 0)

    @classmethod
    def suffixes(cls, order: int) -> Masks:
        """The lags 1..r for r = 0..k."""
        r = np.arange(order + 1)
        return cls(order=order, lag=r, parent=np.maximum(r - 1, 0), nested=np.ones(order + 1, bool))

    def sizes(self) -> NDArray[np.int64]:
        """Number of lags of each."""
        size = np.zeros(len(self), np.int64)
        for j in range(1, len(self)):
            size[j] = size[self.parent[j]] + 1
        return size

    def dense_cells(self, vocab_size: int) -> int:
        """Cells of dense tables."""
        return sum(vocab_size ** (int(s) + 1) for s in self.sizes())


class DenseTables:
    """Dense tables: context number = offset of the mask + packed context."""

    def __init__(self, masks: Masks, vocab_size: int, *, customers: bool = False) -> None:
        size = masks.sizes()
        contexts = np.array([vocab_size ** int(s) for s in size], np.int64)
        offset = np.concatenate([[0], np.cumsum(contexts)[:-1]]).astype(np.int64)
        power = np.array([vocab_size ** int(max(s - 1, 0)) for s in size], np.int64)
        self.address: tuple[Any, ...] = (masks.lag, masks.parent, power, offset)
        total = int(contexts.sum())
        self.counts = np.zeros((total, vocab_size), np.int32)
        self.customers = np.zeros((total if customers else 0, vocab_size), np.int32)
        self.totals = np.zeros(total, np.int32)


class _Hashed:
    """Hashed tables that double when they are half full."""

    def __init__(self, masks: Masks) -> None:
        self._kernels = _counting = compiled()
        least = 1 << max(10, (4 * len(masks)).bit_length())
        self.slots = np.full(2 * least, -1, np.int32)
        self.contexts = np.zeros((least, _counting.CONTEXT_COLUMNS), np.int32)
        self.entry_slots = np.full(2 * least, -1, np.int32)
        self.entries = np.zeros((least, _counting.ENTRY_COLUMNS), np.int32)
        self.used = np.array([1, 0], np.int64)  # context 0 is the empty one
        self.contexts[0] = 0
        self.contexts[0, _counting.HEAD] = -1
        self.contexts[0, _counting.PARENT] = -1
        self._refill()

    def tables(self) -> tuple[Any, ...]:
        return self.slots, self.contexts, self.entry_slots, self.entries, self.used

    def grow(self, masks: int) -> None:
        """Double whichever table lacks room for `masks` more."""
        contexts, entries = (
            self.used[0] + masks > len(self.contexts),
            self.used[1] + masks > len(self.entries),
        )
        held = sum(table.nbytes for table in self.tables())
        held += contexts * (self.contexts.nbytes + self.slots.nbytes)
        held += entries * (self.entries.nbytes + self.entry_slots.nbytes)
        if held > MOST_BYTES:
            raise MethodUnavailable(
                f"counting needs more than {MOST_BYTES / 2**30:.0f} GiB of tables after {self.used[1]} different "
                "events: take a smaller order or a shorter sequence."
            )
        if contexts:
            self.contexts = np.concatenate([self.contexts, np.zeros_like(self.contexts)])
            self.slots = np.full(2 * len(self.slots), -1, np.int32)
        if entries:
            self.entries = np.concatenate([self.entries, np.zeros_like(self.entries)])
            self.entry_slots = np.full(2 * len(self.entry_slots), -1, np.int32)
        self._refill()

    def _refill(self) -> None:
        if (self.slots < 0).all():
            self._kernels.refill_contexts(self.slots, self.contexts, self.used[0])
        if (self.entry_slots < 0).all():
            self._kernels.refill_entries(self.entry_slots, self.entries, self.used[1])


def _chosen(method: str, masks: Masks, vocab_size: int) -> str:
    if method != "auto":
        return method
    return "dense" if masks.dense_cells(vocab_size) <= DENSE_CELLS else "hashed"


def row_blocks(
    tokens: Tokens,
    vocab_size: int,
    masks: Masks,
    *,
    boundary: str,
    customers: bool = False,
    method: str = "auto",
    last: bool = True,
) -> Iterator[tuple[int, Counts, Counts]]:
    """Counts K_S(m) of every symbol in blocks of rows.

    Parameters
    ----------
    tokens : (T,) int32
    masks : Masks
    boundary : "interior" or "padded"
    customers : bool
        Also Kneser-Ney's counts (nested masks only).
    last : bool
        Whether row T, after the last token, is wanted.

    Yields
    ------
    (first row, counts (B, M, V), customers (B, M, V) or empty); the arrays are used again for the next block.
    """
    _counting = compiled()
    rows, padded = len(tokens) + last, boundary == "padded"
    block = max(16, BLOCK_CELLS // (len(masks) * vocab_size))
    out = np.empty((min(block, rows), len(masks), vocab_size), np.int32)
    out_customers = np.empty_like(out) if customers else np.empty((0, 0, 0), np.int32)
    start = 0
    if _chosen(one_of(method, "method", METHODS), masks, vocab_size) == "dense":
        dense = DenseTables(masks, vocab_size, customers=customers)
        tables = (*dense.address, dense.counts, dense.customers)
        while start < rows:
            stop = min(start + block, rows)
            _counting.dense_rows(tokens, start, stop, masks.order, padded, *tables, out, out_customers)
            yield start, out[: stop - start], out_customers[: stop - start]
            start = stop
        return
    hashed = _Hashed(masks)
    while start < rows:
        stop = min(start + block, rows)
        reached = _counting.hashed_rows(
            tokens, start, stop, masks.order, padded, masks.lag, masks.parent, masks.nested, *hashed.tables(), out,
            out_customers,
        )  # fmt: skip
        if reached > start:
            yield start, out[: reached - start], out_customers[: reached - start]
        if reached < stop:
            hashed.grow(len(masks))
        start = reached


def symbol_blocks(
    tokens: Tokens, vocab_size: int, masks: Masks, *, boundary: str, below: bool = False, method: str = "auto"
) -> Iterator[tuple[int, Counts]]:
    """Statistics of the realised symbols in blocks of rows: O(M) time a token.

    Yields
    ------
    (first row, (B, M, 2) counts K_S(x_{t+1}) and totals K_S) from dense tables, and from hashed ones (B, M, 7), with
    the columns of `_counting`: count, total, types, customers, their total and types, and, if asked for, the count that
    the symbols seen in a context have in the context below it. ``below=True`` always gives all seven.
    """
    _counting = compiled()
    rows, padded = len(tokens), boundary == "padded"
    block = max(16, BLOCK_CELLS // (2 * len(masks)))
    start = 0
    if not below and _chosen(one_of(method, "method", METHODS), masks, vocab_size) == "dense":
        dense = DenseTables(masks, vocab_size)
        out = np.empty((min(block, rows), len(masks), 2), np.int32)
        while start < rows:
            stop = min(start + block, rows)
            _counting.dense_symbols(
                tokens, start, stop, masks.order, padded, *dense.address, dense.counts, dense.totals, out
            )
            yield start, out[: stop - start]
            start = stop
        return
    hashed = _Hashed(masks)
    out = np.empty((min(block, rows), len(masks), 7), np.int32)
    while start < rows:
        stop = min(start + block, rows)
        reached = _counting.hashed_symbols(
            tokens, start, stop, masks.order, padded, masks.lag, masks.parent, masks.nested,
            vocab_size if below else 0, *hashed.tables(),
            out,
        )  # fmt: skip
        if reached > start:
            yield start, out[: reached - start]
        if reached < stop:
            hashed.grow(len(masks))
        start = reached
