"""Compiled read-out of soft matching from cumulative counts, in log weights.

A lag with beta >= 0 enters through gamma = e^beta - 1 >= 0 on cumulative counts. For a lag with beta < 0 gamma would be
negative and sums would cancel, so its cumulative counts are first split, in integers, into "agrees at this lag" (weight
e^beta) and "does not" (weight 1). Then all terms are positive, whatever the signs.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _split(K, negative):
    """Cumulative counts (M, V), in place, to exact ones along the lags of `negative`."""
    masks = len(K)
    for lag in range(len(negative)):
        if not negative[lag]:
            continue
        bit = 1 << lag
        for S in range(masks):
            if S & bit == 0:
                for m in range(K.shape[1]):
                    K[S, m] -= K[S | bit, m]


@njit(cache=True)
def soft_rows(K, negative, log_weight, kappa, base, safe, weight, out):
    """Laws out (B, V) from K (B, M, V). ``safe``: the weights' range is small, so that `weight` serves all rows."""
    B, masks, V = K.shape
    any_negative = negative.any()
    total = np.empty(masks)
    for b in range(B):
        if any_negative:
            _split(K[b], negative)
        if safe:
            norm = weight[masks]
            for m in range(V):
                out[b, m] = weight[masks] * base[m]
            for S in range(masks):
                w = weight[S]
                if w > 0.0:
                    for m in range(V):
                        out[b, m] += w * K[b, S, m]
                        norm += w * K[b, S, m]
        else:
            top = kappa
            for S in range(masks):
                total[S] = 0.0
                for m in range(V):
                    total[S] += K[b, S, m]
                if total[S] > 0.0 and log_weight[S] > top:
                    top = log_weight[S]
            norm = 0.0
            for m in range(V):
                out[b, m] = 0.0
            if top > -np.inf:
                norm = np.exp(kappa - top)
                for m in range(V):
                    out[b, m] = norm * base[m]
                for S in range(masks):
                    if total[S] > 0.0:
                        w = np.exp(log_weight[S] - top)
                        norm += w * total[S]
                        for m in range(V):
                            out[b, m] += w * K[b, S, m]
        for m in range(V):
            out[b, m] = out[b, m] / norm if norm > 0.0 else np.nan


@njit(cache=True)
def soft_symbols(stats, negative, log_weight, kappa, log_base, out):
    """Log-probabilities out (B,) of the realised symbols from counts and totals, stats (B, M, >= 2), which change."""
    B, masks = stats.shape[0], stats.shape[1]
    any_negative = negative.any()
    for b in range(B):
        if any_negative:
            _split(stats[b, :, :2], negative)
        top, top_total = kappa + log_base[b], kappa
        for S in range(masks):
            if stats[b, S, 0] > 0 and log_weight[S] > top:
                top = log_weight[S]
            if stats[b, S, 1] > 0 and log_weight[S] > top_total:
                top_total = log_weight[S]
        if top_total == -np.inf:
            out[b] = np.nan
            continue
        if top == -np.inf:
            out[b] = -np.inf
            continue
        if top_total - top < 600.0:
            # The symbol's terms stay normal numbers beside the total's: one exponential a mask.
            top = top_total
        symbol, total = np.exp(kappa + log_base[b] - top), np.exp(kappa - top_total)
        for S in range(masks):
            if stats[b, S, 1] > 0 and log_weight[S] > -np.inf:
                w = np.exp(log_weight[S] - top_total)
                total += w * stats[b, S, 1]
                if stats[b, S, 0] > 0:
                    symbol += (w if top == top_total else np.exp(log_weight[S] - top)) * stats[b, S, 0]
        out[b] = np.log(symbol) - np.log(total) + (top - top_total)
