r"""Scores of attention heads: previous token, induction on match-and-copy, induction on a repeated sequence.

Rows of a map are query positions, columns key positions, both counted from 0 here: PTH is the mean of the first
subdiagonal, IH-MC the weight of the query on the token after the match, IH-Repeat the mean weight on the token after
the previous occurrence. A model's score is its largest head's. Gonon, Cordonnier, Boumal, arXiv 2602.07562v1, Section
A.3.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, count, float_array, index_array


def previous_token_score(attention: ArrayLike) -> Float:
    """PTH, (1/T) sum of a_{t, t-1} over the T rows after the first: maps (..., T + 1, T + 1) give shape (...).

    Raises
    ------
    InvalidInput
        Not square maps of at least 2 positions.
    """
    maps = _maps(attention)
    return np.diagonal(maps, offset=-1, axis1=-2, axis2=-1).mean(axis=-1)


def induction_score(attention: ArrayLike, match: ArrayLike) -> Float:
    """IH-MC of each sample: the last row's weight on position match + 1, maps (n, ..., T + 1, T + 1) give (n, ...).

    Parameters
    ----------
    attention : (n, ..., T + 1, T + 1) array
    match : (n,) array of int
        From 0, in 0..T-2, as `MatchCopyData.match`.

    Raises
    ------
    InvalidInput
        Not square maps, or a match out of range.
    """
    maps = _maps(attention)
    if maps.ndim < 3:
        raise InvalidInput(f"attention must have one map or more a sample, (n, ..., L, L), got {maps.shape}.")
    position = index_array(match, "match", length=len(maps), below=maps.shape[-1] - 2)
    return maps[np.arange(len(maps)), ..., -1, position + 1]


def repeat_score(attention: ArrayLike) -> Float:
    """IH-Repeat, (1/K) sum of a_{K + t, t + 1} over t = 1..K (from 1): maps (..., 2 K, 2 K) give shape (...).

    Raises
    ------
    InvalidInput
        Not square maps of an even number of at least 4 positions.
    """
    maps = _maps(attention)
    length = maps.shape[-1]
    if length % 2 or length < 4:
        raise InvalidInput(f"a sequence shown twice has an even length of at least 4, got {length}.")
    K = length // 2
    t = np.arange(K)
    return maps[..., K + t, t + 1].mean(axis=-1)


def uniform_scores(T: int, K: int, *, diagonal: bool) -> dict[str, Fraction]:
    """The three scores of uniform causal attention, exactly.

    Parameters
    ----------
    T : int >= 2
        Context length; maps have T + 1 positions.
    K : int >= 2
        Length of the sequence that is shown twice.
    diagonal : bool
        Whether a position attends to itself (1/t each), as in the usual implementations, or only to those before it
        (1/(t - 1)), as the paper's values assume.

    Returns
    -------
    dict
        "PTH": (H_{T+1} - 1)/T or H_T/T; "IH-MC": 1/(T+1) or 1/T; "IH-Repeat": (H_{2K} - H_K)/K or
        (H_{2K-1} - H_{K-1})/K.

    Raises
    ------
    InvalidInput
        T or K below 2.
    """
    T, K = count(T, "T", least=2), count(K, "K", least=2)
    if diagonal:
        return {
            "PTH": (_harmonic(T + 1) - 1) / T,
            "IH-MC": Fraction(1, T + 1),
            "IH-Repeat": (_harmonic(2 * K) - _harmonic(K)) / K,
        }
    return {
        "PTH": _harmonic(T) / T,
        "IH-MC": Fraction(1, T),
        "IH-Repeat": (_harmonic(2 * K - 1) - _harmonic(K - 1)) / K,
    }


def _harmonic(n: int) -> Fraction:
    return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))


def _maps(attention: ArrayLike) -> Float:
    maps = float_array(attention, "attention")
    if maps.ndim < 2 or maps.shape[-1] != maps.shape[-2] or maps.shape[-1] < 2:
        raise InvalidInput(f"attention must be square maps (..., L, L) with L >= 2, got shape {maps.shape}.")
    return maps
