"""Counts of many sequences of one length at chosen rows, and exact-overlap counts from cumulative ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.ngrams.counting import (
    BOUNDARIES,
    DENSE_CELLS,
    Counts,
    DenseTables,
    Masks,
    checked_order,
    checked_tokens,
    compiled,
)
from marginlab.theory.validation import count, one_of


def batch_counts(
    tokens: Any,
    vocab_size: int,
    order: int,
    *,
    first: int | None = None,
    boundary: str = "interior",
    contexts: str = "subsets",
) -> tuple[Counts, Counts]:
    """Counts of every symbol for the rows first..T of each of n sequences of one length.

    Parameters
    ----------
    tokens : (n, T) array of int
    vocab_size, order : int
    first : int, optional
        First row; the last one, T, by default.
    boundary : "interior" or "padded"
    contexts : "subsets" or "suffixes"
        K_S for all 2^k sets of lags, or for the k + 1 suffixes with Kneser-Ney's customers.

    Returns
    -------
    counts : (n, T + 1 - first, M, V) array of int32
    customers : array of the same shape for suffixes, empty for subsets

    Raises
    ------
    InvalidInput
        Tokens outside the vocabulary, wrong shapes, a row that does not exist.
    MethodUnavailable
        Dense tables of V (1 + V)^k cells would be too large.
    """
    _counting = compiled()
    vocab_size, order = count(vocab_size, "vocab_size"), checked_order(order)
    array = checked_tokens(tokens, vocab_size, ndim=2)
    length = array.shape[1]
    row = length if first is None else count(first, "first", least=0)
    if row > length:
        raise InvalidInput(f"first must be a row 0..{length}, got {row}.")
    one_of(boundary, "boundary", BOUNDARIES)
    suffixes = one_of(contexts, "contexts", ("subsets", "suffixes")) == "suffixes"
    masks = Masks.suffixes(order) if suffixes else Masks.subsets(order)
    if masks.dense_cells(vocab_size) > DENSE_CELLS:
        raise MethodUnavailable(
            f"a batch needs tables of at most {DENSE_CELLS} cells, V = {vocab_size} and k = {order} give "
            f"{masks.dense_cells(vocab_size)}: count the sequences one by one (soft_match, log_loss)."
        )
    dense = DenseTables(masks, vocab_size, customers=suffixes)
    shape = (len(array), length + 1 - row, len(masks), vocab_size)
    out = np.empty(shape, np.int32)
    out_customers = np.empty(shape if suffixes else (len(array), 0, 0, 0), np.int32)
    _counting.dense_batch(
        array,
        row,
        order,
        boundary == "padded",
        *dense.address,
        dense.counts,
        dense.customers,
        out,
        out_customers,
    )
    return out, out_customers if suffixes else np.empty(0, np.int32)


def overlap_counts(cumulative: NDArray[Any]) -> NDArray[Any]:
    """Exact-overlap counts N_M(m) from cumulative ones K_S(m), by inclusion and exclusion; exact in integers.

    Parameters
    ----------
    cumulative : (..., 2^k, V) array of int

    Returns
    -------
    (..., 2^k, V) array of int
    """
    masks = cumulative.shape[-2]
    exact = cumulative.copy()
    for lag in range(masks.bit_length() - 1):
        bits = np.arange(masks)
        without = bits[(bits >> lag) & 1 == 0]
        exact[..., without, :] -= exact[..., without | (1 << lag), :]
    return exact
