"""Compiled sums over the table counts of sibling rows, on a logarithmic scale.

Kernels that call each other share this file: numba's cache on disk knows only the file that a function stands in.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _convolve(x, y):
    """Logarithm of the convolution of exp(x) and exp(y)."""
    out = np.empty(len(x) + len(y) - 1)
    for k in range(len(out)):
        low, high = max(0, k - len(y) + 1), min(k + 1, len(x))
        top = -np.inf
        for i in range(low, high):
            top = max(top, x[i] + y[k - i])
        total = 0.0
        if top > -np.inf:
            for i in range(low, high):
                total += np.exp(x[i] + y[k - i] - top)
            out[k] = top + np.log(total)
        else:
            out[k] = top
    return out


@njit(cache=True)
def sibling_sums(counts, log_pmf, log_symbol, log_total, alpha, mean, log_sum):
    """Posterior mean of the parent and log of the sum over table counts, for each of n groups of siblings.

    Parameters
    ----------
    counts : (n, V, V) int, siblings by symbols
    log_pmf : (N + 1, N + 1), row n the law of the number of tables of n customers
    log_symbol, log_total : log rising factorials of alpha and of alpha V
    mean : (n, V), log_sum : (n,), written
    """
    groups, siblings, vocab = counts.shape
    for g in range(groups):
        weights = []
        for m in range(vocab):
            tables = np.zeros(1)
            for b in range(siblings):
                c = counts[g, b, m]
                if c > 0:
                    tables = _convolve(tables, log_pmf[c, : c + 1])
            weights.append(tables + log_symbol[: len(tables)])
        before, after = [np.zeros(1)], [np.zeros(1)]  # sums over the symbols below m; over the last ones
        for m in range(vocab):
            before.append(_convolve(before[m], weights[m]))
            after.append(_convolve(after[m], weights[vocab - 1 - m]))
        every = before[vocab] - log_total[: len(before[vocab])]
        top = every.max()
        log_sum[g] = top + np.log(np.exp(every - top).sum())
        for m in range(vocab):
            others = _convolve(before[m], after[vocab - 1 - m])
            total = 0.0
            for i in range(len(weights[m])):
                for j in range(len(others)):
                    log_weight = weights[m][i] + others[j] - log_total[i + j] - log_sum[g]
                    total += np.exp(log_weight) * (alpha + i) / (alpha * vocab + i + j)
            mean[g, m] = total
