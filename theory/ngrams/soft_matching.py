"""Soft context matching: the estimator that an induction head computes, with one scalar per lag and a BOS pseudo-count.

After t tokens, with M_s the lags at which position s agrees with the query (x_t, x_{t-1}, ...),

    p(m) = (e^kappa base(m) + sum_s w_s 1[x_s = m]) / (e^kappa + sum_s w_s),   w_s = e^{sum of beta_l over M_s}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.ngrams.counting import (
    BOUNDARIES,
    Masks,
    Tokens,
    checked_order,
    checked_tokens,
    row_blocks,
    symbol_blocks,
)
from marginlab.theory.validation import Float, count, float_array, one_of, shaped_array

#: Largest range of log weights with which a row's sum stays among normal numbers without a scale of its own.
_SAFE_RANGE = 600.0

#: Numbers (8 bytes each) that all rows of a sequence may take.
MOST_CELLS = 2**31


def checked_base(base: Any, vocab_size: int) -> Float:
    """The value of BOS, a law on the vocabulary; uniform if None.

    Raises
    ------
    InvalidInput
        Another shape, a negative or non-finite entry, or a sum away from 1 by more than rounding.
    """
    if base is None:
        return np.full(vocab_size, 1.0 / vocab_size)
    law = shaped_array(base, "base", (vocab_size,))
    if (law < 0).any():
        raise InvalidInput(f"base must be a law on the vocabulary, got the negative entry {law.min()}.")
    # A sum of V rounded terms, each of a law that was itself normalised in floating point.
    if abs(law.sum() - 1) > 4 * vocab_size * np.finfo(float).eps:
        raise InvalidInput(f"base must be a law on the vocabulary, its entries sum to {law.sum():.17g}.")
    return law


def checked_kappa(kappa: Any) -> float:
    """The log pseudo-count of BOS: a finite number, or -inf for no BOS.

    Raises
    ------
    InvalidInput
        NaN, +inf, or not a real number.
    """
    if isinstance(kappa, bool) or not isinstance(kappa, (int, float, np.integer, np.floating)):
        raise InvalidInput(f"kappa must be a number or -inf, got {kappa!r}.")
    if np.isnan(kappa) or kappa == np.inf:
        raise InvalidInput(f"kappa must be a finite number, or -inf for no BOS, got {kappa}.")
    return float(kappa)


def checked_beta(beta: Any) -> Float:
    """One finite scalar per lag, (k,) with 1 <= k <= 12.

    Raises
    ------
    InvalidInput
        Anything else.
    """
    weights = float_array(beta, "beta", ndim=1)
    checked_order(len(weights), "the length of beta")
    return weights


def empty_rows(rows: int, vocab_size: int) -> Float:
    """An array for the laws of all rows.

    Raises
    ------
    MethodUnavailable
        More than `MOST_CELLS` numbers.
    """
    if rows * vocab_size > MOST_CELLS:
        raise MethodUnavailable(
            f"{rows} rows over {vocab_size} symbols need more than {MOST_CELLS} numbers: take log_loss, which gives "
            "the realised tokens alone."
        )
    return np.empty((rows, vocab_size))


def log_subset_weights(beta: Float) -> Float:
    """Log weight of each mask, (2^k,): the sum over its lags of log(e^beta_l - 1) if beta_l >= 0, of beta_l if not.

    Raises nothing: a lag with beta_l = 0 has weight 0, log -inf.
    """
    with np.errstate(divide="ignore"):
        # e^b - 1 = e^b (1 - e^-b): right for tiny b, no overflow for large ones.
        lag = np.where(beta >= 0, np.log(-np.expm1(-np.abs(beta))) + np.abs(beta), beta)
    weights = np.zeros(1)
    for value in lag:  # the mask with lag l follows the one without by 2^(l-1)
        weights = np.concatenate([weights, weights + value])
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class ReadOut:
    """What the compiled read-outs need of (beta, kappa)."""

    negative: Any
    log_weight: Float
    kappa: float
    safe: bool
    weight: Float

    @classmethod
    def of(cls, beta: Float, kappa: float) -> ReadOut:
        log_weight = log_subset_weights(beta)
        known = np.append(log_weight, kappa)
        known = known[known > -np.inf]
        weight = np.exp(np.append(log_weight, kappa) - known.max())
        return cls(beta < 0, log_weight, kappa, bool(np.ptp(known) < _SAFE_RANGE), weight)


def soft_match(
    tokens: Any,
    vocab_size: int,
    beta: Any,
    *,
    kappa: float = -np.inf,
    base: Any = None,
    boundary: str = "interior",
    method: str = "auto",
) -> Float:
    """Soft context matching at every row of a sequence, in one pass over 2^k count tables.

    Parameters
    ----------
    tokens : (T,) array of int in 0..vocab_size-1
    vocab_size : int >= 1
    beta : (k,) array, 1 <= k <= 12
        One attention scale per lag, lag 1 first; any sign, any size.
    kappa : float
        Log pseudo-count of BOS; -inf (the default) is a network without BOS.
    base : (vocab_size,) array, optional
        Law that BOS stands for, uniform by default.
    boundary : "interior" or "padded"
        Positions that are matched: those with all k lags inside the sequence, or all, where a lag before the first
        token never agrees (of a position and of the query alike).
    method : "auto", "dense" or "hashed"
        Tables; "auto" takes dense ones while V (1 + V)^k is small.

    Returns
    -------
    (T + 1, vocab_size) array
        Row t is the law of the next token after the first t tokens; NaN where there is neither evidence nor BOS.

    Raises
    ------
    InvalidInput
        A token outside the vocabulary, a scale that is not finite, or another argument that breaks these rules.
    MethodUnavailable
        The tables would not fit into memory.

    Notes
    -----
    Equation (8) of the paper, per lag and with any base law; by Lemma 4.1, with one scalar per lag, the numerator is
    e^kappa base(m) + sum_S K_S(m) prod_{l in S} (e^beta_l - 1) over cumulative counts. Weights are carried as
    logarithms relative to the largest one with evidence; counts are split exactly where a scale is negative.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, Proposition 3.1 and Lemma 4.1.

    Examples
    --------
    >>> soft_match([0, 1, 0, 1], 2, [50.0], kappa=50.0).round(3)
    array([[0.5  , 0.5  ],
           [0.5  , 0.5  ],
           [0.5  , 0.5  ],
           [0.25 , 0.75 ],
           [0.75 , 0.25 ]])
    """
    vocab_size, scales, kappa, law = _checked(vocab_size, beta, kappa, base, boundary)
    array = checked_tokens(tokens, vocab_size)
    from marginlab.theory.ngrams._combining import soft_rows

    how, masks = ReadOut.of(scales, kappa), Masks.subsets(len(scales))
    out = empty_rows(len(array) + 1, vocab_size)
    for start, K, _ in row_blocks(array, vocab_size, masks, boundary=boundary, method=method):
        soft_rows(
            K, how.negative, how.log_weight, how.kappa, law, how.safe, how.weight, out[start : start + len(K)]
        )
    return out


def log_loss(
    tokens: Any,
    vocab_size: int,
    beta: Any,
    *,
    kappa: float = -np.inf,
    base: Any = None,
    boundary: str = "interior",
    method: str = "auto",
) -> Float:
    """Log-probability of each realised token under `soft_match`: O(2^k) time a token and O(T) memory.

    Parameters
    ----------
    tokens, vocab_size, beta, kappa, base, boundary, method : as for `soft_match`

    Returns
    -------
    (T,) array
        Entry t is the natural logarithm of the probability of token t (from 0) given those before it; -inf for a token
        without evidence, NaN where nothing has evidence and there is no BOS.

    Raises
    ------
    InvalidInput, MethodUnavailable
        As `soft_match`.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, Proposition 3.1 and Lemma 4.1.
    """
    one_of(boundary, "boundary", BOUNDARIES)
    vocab_size = count(vocab_size, "vocab_size")
    scales, kappa = checked_beta(beta), checked_kappa(kappa)
    array = checked_tokens(tokens, vocab_size)
    from marginlab.theory.ngrams._combining import soft_symbols

    how, masks = ReadOut.of(scales, kappa), Masks.subsets(len(scales))
    if base is None:
        log_base = np.full(len(array), -np.log(vocab_size))
    else:
        with np.errstate(divide="ignore"):
            log_base = np.log(checked_base(base, vocab_size))[array]
    out = np.empty(len(array))
    for start, stats in symbol_blocks(array, vocab_size, masks, boundary=boundary, method=method):
        part = slice(start, start + len(stats))
        soft_symbols(stats, how.negative, how.log_weight, how.kappa, log_base[part], out[part])
    return out


def soft_match_law(counts: Any, beta: Any, *, kappa: float = -np.inf, base: Any = None) -> Float:
    """Soft matching from cumulative counts that are already known.

    Parameters
    ----------
    counts : (..., 2^k, V) array of int
        K_S(m), from `batch_counts`.
    beta, kappa, base : as for `soft_match`

    Returns
    -------
    (..., V) array

    Raises
    ------
    InvalidInput
        Counts that are not 2^k masks of integers, or as `soft_match`.
    """
    scales = checked_beta(beta)
    array = np.asarray(counts)
    if array.dtype.kind not in "iu" or array.ndim < 2 or array.shape[-2] != 2 ** len(scales):
        raise InvalidInput(
            f"counts must be integers of shape (..., {2 ** len(scales)}, V) for {len(scales)} lags, got "
            f"dtype {array.dtype} and shape {array.shape}."
        )
    vocab_size, kappa = array.shape[-1], checked_kappa(kappa)
    law, how = checked_base(base, vocab_size), ReadOut.of(scales, kappa)
    from marginlab.theory.ngrams._combining import soft_rows

    K = np.array(array, dtype=np.int32, order="C").reshape(
        -1, *array.shape[-2:]
    )  # a copy: it is changed in place
    out = np.empty((len(K), vocab_size))
    soft_rows(K, how.negative, how.log_weight, how.kappa, law, how.safe, how.weight, out)
    return out.reshape(*array.shape[:-2], vocab_size)


def soft_match_definition(
    tokens: Any,
    vocab_size: int,
    beta: Any,
    *,
    kappa: float = -np.inf,
    base: Any = None,
    boundary: str = "interior",
) -> Float:
    """`soft_match` by its definition, a softmax over positions at every row: O(T^2 k), the readable reference.

    Parameters, return value and errors are those of `soft_match`.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, equation (8).
    """
    vocab_size, scales, kappa, law = _checked(vocab_size, beta, kappa, base, boundary)
    x: Tokens = checked_tokens(tokens, vocab_size)
    k, T = len(scales), len(x)
    symbols = np.eye(vocab_size)[x]
    out = np.full((T + 1, vocab_size), np.nan)
    for t in range(T + 1):
        positions = np.arange(
            k if boundary == "interior" else 0, t
        )  # from 0: position s has s tokens before it
        score = np.zeros(len(positions))
        for lag, b in enumerate(scales, start=1):
            if lag <= t:
                inside = positions >= lag
                score[inside] += b * (x[positions[inside] - lag] == x[t - lag])
        top = max(score.max(initial=-np.inf), kappa)
        if top > -np.inf:
            weight, bos = np.exp(score - top), np.exp(kappa - top)
            out[t] = (bos * law + weight @ symbols[positions]) / (bos + weight.sum())
    return out


def _checked(
    vocab_size: Any, beta: Any, kappa: Any, base: Any, boundary: Any
) -> tuple[int, Float, float, Float]:
    one_of(boundary, "boundary", BOUNDARIES)
    vocab_size = count(vocab_size, "vocab_size")
    return vocab_size, checked_beta(beta), checked_kappa(kappa), checked_base(base, vocab_size)
