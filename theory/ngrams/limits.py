"""Limits of soft matching: large scales, long sequences, separated scales; each with its error where one is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.markov import checked_rows, stationary_distribution
from marginlab.theory.validation import Float, count, float_array, positive


def _overlap_counts(counts: Any, lags: int | None = None) -> Float:
    """Exact-overlap counts (..., 2^k, V) as floats."""
    N = float_array(counts, "counts")
    masks = N.shape[-2] if N.ndim >= 2 else 0
    if masks < 2 or masks & (masks - 1) or (lags is not None and masks != 2**lags):
        wanted = "2^k" if lags is None else str(2**lags)
        raise InvalidInput(f"counts must have shape (..., {wanted}, V), got {N.shape}.")
    if (N < 0).any():
        raise InvalidInput(f"counts must not be negative, got {N.min():g}; exact-overlap counts are wanted.")
    return N


def subset_sums(b: Float) -> Float:
    """|b|_M for each mask M, (2^k,)."""
    sums = np.zeros(1)
    for value in b:
        sums = np.concatenate([sums, sums + value])
    return sums


def back_off_law(counts: Any, b: Any) -> Float:
    r"""Limit of soft matching without BOS for beta = tau b, tau to infinity.

    Parameters
    ----------
    counts : (..., 2^k, V) array
        Exact-overlap counts N_M(m).
    b : (k,) array of positive numbers

    Returns
    -------
    (..., V) array
        sum_{M in M*} N_M / sum_{M in M*} N_M(.), M* the sets with evidence of largest |b|_M; NaN without evidence.

    Raises
    ------
    InvalidInput
        Shapes do not fit, counts are negative, or a direction that is not positive.

    Notes
    -----
    With N_[k] > 0 it is maximum likelihood of order k. With equal b it pools the sets of the largest overlap *size*,
    non-contiguous ones included; with b_l > sum_{j > l} b_j it is the lexicographically first set, lag 1 first:
    back-off to the longest matching suffix, refined by matches beyond the first mismatch.

    References
    ----------
    Derived from D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, equation (8).
    """
    direction = _direction(b)
    N = _overlap_counts(counts, len(direction))
    chosen = _largest(N, direction)[0]
    pooled = np.sum(np.where(chosen[..., None], N, 0.0), axis=-2)
    norm = pooled.sum(-1, keepdims=True)
    return np.divide(pooled, norm, out=np.full(pooled.shape, np.nan), where=norm > 0)


def back_off_error_bound(counts: Any, b: Any, tau: float) -> Float:
    r"""Bound on the total variation between soft matching at beta = tau b and `back_off_law`, (...,).

    e^{-tau Delta} #{positions outside M*} / #{positions in M*}, Delta > 0 the gap between the largest |b|_M with
    evidence and the next one (0 where all evidence is in M*): with w the weight outside relative to that inside, the
    total variation is at most w / (1 + w).

    Parameters
    ----------
    counts, b : as for `back_off_law`
    tau : float > 0

    Raises
    ------
    InvalidInput
        As `back_off_law`, or a tau that is not positive.
    """
    tau, direction = positive(tau, "tau"), _direction(b)
    N = _overlap_counts(counts, len(direction))
    chosen, gap = _largest(N, direction)
    total = N.sum(-1)
    inside = np.where(chosen, total, 0.0).sum(-1)
    outside = total.sum(-1) - inside
    ratio = np.divide(outside, inside, out=np.full(inside.shape, np.nan), where=inside > 0)
    return np.where(outside > 0, np.exp(-tau * np.where(np.isfinite(gap), gap, 0.0)) * ratio, 0.0 * ratio)


def back_off_gap(counts: Any, b: Any) -> Float:
    """Delta, the gap between the largest |b|_M with evidence and the next one, (...,); infinite without a next one."""
    direction = _direction(b)
    return _largest(_overlap_counts(counts, len(direction)), direction)[1]


def _direction(b: Any) -> Float:
    direction = float_array(b, "b", ndim=1)
    if len(direction) == 0 or (direction <= 0).any():
        raise InvalidInput(f"b must hold positive numbers, one per lag, got {direction}.")
    return direction


def _largest(N: Float, b: Float) -> tuple[Any, Float]:
    """Masks of the largest |b|_M with evidence, and the gap to the next ones."""
    sums = subset_sums(b)
    evident = N.sum(-1) > 0
    size = np.where(evident, sums, -np.inf)
    top = size.max(-1, keepdims=True)
    # Sums of the same lags in another order may differ by a rounding: such a gap is no gap.
    same = evident & (size >= top - 4 * len(b) * np.finfo(float).eps * sums[-1])
    with np.errstate(invalid="ignore"):
        gap = top[..., 0] - np.where(same, -np.inf, size).max(-1)
    return same, gap


def additive_distance_bounds(counts: Any, alpha: float, beta: float) -> tuple[Float, Float]:
    r"""Bounds on the total variation between soft matching at a finite scale and additive smoothing.

    For beta = beta 1 and kappa = k beta + ln(alpha V) (Corollary 4.1), with N = N_[k] and
    rho = sum_{M != [k]} e^{-beta (k - |M|)} N_M: TV <= rho / (alpha V + N + rho) <= e^{-beta} (n - N) / (alpha V + N).

    Parameters
    ----------
    counts : (..., 2^k, V) array
        Exact-overlap counts.
    alpha : float > 0
    beta : float > 0

    Returns
    -------
    sharp, simple : (...,) arrays

    Raises
    ------
    InvalidInput
        Shapes do not fit, or a number that is not positive.

    References
    ----------
    Derived; the limit is Corollary 4.1 of D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800.
    """
    alpha, beta = positive(alpha, "alpha"), positive(beta, "beta")
    N = _overlap_counts(counts)
    masks, V = N.shape[-2:]
    k = masks.bit_length() - 1
    total = N.sum(-1)
    missing = k - np.array([m.bit_count() for m in range(masks)])
    rho = np.sum(np.where(missing > 0, np.exp(-beta * missing) * total, 0.0), axis=-1)
    full = total[..., -1]
    others = total[..., :-1].sum(-1)
    return rho / (alpha * V + full + rho), np.exp(-beta) * others / (alpha * V + full)


def single_lag_concentration(n: Any, beta: float, kappa: float = -np.inf) -> Float:
    """Concentration (n + e^kappa) / (e^beta - 1) with which one lag and BOS are MacKay-Peto smoothing, n positions.

    Raises
    ------
    InvalidInput
        beta is not positive, or n is not finite.

    References
    ----------
    Derived.
    """
    return (float_array(n, "n") + np.exp(kappa)) / np.expm1(positive(beta, "beta"))


def scale_separation_law(counts: Any, beta: float, kappa: float) -> Float:
    r"""Limit of soft matching as the scales of lags 1..k-1 go to infinity with kappa - sum_{l<k} beta_l fixed.

    Parameters
    ----------
    counts : (..., 2^k, V) array
        Exact-overlap counts, k >= 2.
    beta : float > 0
        Scale of lag k.
    kappa : float
        The limit of kappa - sum_{l < k} beta_l.

    Returns
    -------
    (..., V) array
        (N_[k](m) + c p'(m)) / (N_[k] + c), p' = (K(m) + e^kappa / V) / (K + e^kappa), K the counts that agree at the
        lags 1..k-1, c = (K + e^kappa) / (e^beta - 1): two-level MacKay-Peto.

    Raises
    ------
    InvalidInput
        As `additive_distance_bounds`.

    References
    ----------
    Derived.
    """
    beta = positive(beta, "beta")
    N = _overlap_counts(counts)
    masks, V = N.shape[-2:]
    if masks < 4:
        raise InvalidInput(f"scales can separate for two lags or more, got counts of shape {N.shape}.")
    full, suffix = N[..., -1, :], N[..., -1, :] + N[..., masks // 2 - 1, :]
    mass = np.exp(kappa)
    K = suffix.sum(-1, keepdims=True)
    c = (K + mass) / np.expm1(beta)
    parent = (suffix + mass / V) / (K + mass)
    return (full + c * parent) / (full.sum(-1, keepdims=True) + c)


def fixed_scale_limit(rows: Any, vocab_size: int, beta: Any, context: Any) -> Float:
    r"""Almost sure limit, for long sequences of an ergodic chain, of soft matching at fixed scales.

    sum_S gamma_S pi(u_S) P(. | u_S) / sum_S gamma_S pi(u_S): pi(u_S) is the stationary probability of the query's
    tokens at the lags of S, and P(. | u_S) the stationary law of the next token given these alone. kappa is forgotten.

    Parameters
    ----------
    rows : (V^k, V) array
        Transition rows, the context with lag 1 as the least significant digit.
    vocab_size : int >= 2
    beta : (k,) array
    context : (k,) array of int
        The query's tokens, lag 1 first.

    Returns
    -------
    (V,) array

    Raises
    ------
    InvalidInput
        Rows that are no laws, a chain without a unique stationary law, or shapes that do not fit.

    References
    ----------
    Derived.
    """
    V = count(vocab_size, "vocab_size", least=2)
    P, k = checked_rows(rows, V)
    scales = float_array(beta, "beta", ndim=1)
    if P.ndim != 2 or len(scales) != k:
        raise InvalidInput(
            f"beta must have one scale for each of the {k} lags of one chain, got {scales.shape}."
        )
    u = np.asarray(context)
    if u.shape != (k,) or u.dtype.kind not in "iu" or (u < 0).any() or (u >= V).any():
        raise InvalidInput(f"context must hold {k} tokens of 0..{V - 1}, lag 1 first, got {context!r}.")
    pi = stationary_distribution(P, V)
    agree = (np.arange(V**k)[:, None] // V ** np.arange(k)) % V == u
    joint = pi[:, None] * P  # positions whose symbol is m and whose context is the row
    weight = np.exp(np.where(agree, scales, 0.0).sum(-1) - np.maximum(scales, 0.0).sum())
    law = weight @ joint
    return law / law.sum()
