"""Compiled gradient of attention in margin-difference form, scaled by a frame so that nothing underflows.

Notation, for one sample with scores u_t = <k_t, W q>, attention a, pivot p = the key with the largest score:

* delta_t = v_t - v_p and o = v_p - target, so that the residual is r = o + sum_{t != p} a_t delta_t;
* -gradient = sum_{t != p} pi_t (k_p - k_t) q^T with pi_t = a_t (<delta_t, r> - sum_s a_s <delta_s, r>).

At the match (p = y) with an exact target (o = 0) this is eq. (38, 40) of the paper. No term is a difference
of nearly equal numbers when attention saturates: the textbook form v_t - sum_s a_s v_s is exactly zero for
the selected token as soon as its weight rounds to 1. Weights are carried as a_t = e^c b_t with max b_t = 1,
hence pi = e^{2c} (...) when o = 0 and e^c (...) otherwise, and the whole gradient as e^M G.

Loops run along the contiguous axis and never reduce along it where it matters for speed: LLVM then uses
vector instructions without being allowed to reassociate, so that results are the same bit for bit everywhere.
"""

from __future__ import annotations

import numpy as np
from numba import njit

MSE, CROSS_ENTROPY = 0, 1

#: The most roundings in a row by which X = W Q^T is updated before it is computed anew.
REFRESH = 64

_U = 2.0**-53


@njit(cache=True)
def gamma(k):
    """Wilkinson's gamma_k = k u / (1 - k u): relative error of k roundings in a row."""
    return k * _U / (1.0 - k * _U)


@njit(cache=True)
def workspace(data):
    """Buffers of `evaluate`, in the order in which it unpacks them."""
    n, K, d = data[0].shape
    return (
        np.zeros((n, d)),
        np.zeros((n, K)),
        np.zeros(K),
        np.zeros((n, K)),
        np.zeros((n, K, K)),
        np.zeros((n, K)),
        np.full(n, -1),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )


@njit(cache=True)
def _recentre(delta_gram, delta_offset, values, target, p):
    """Inner products <delta_s, delta_t> and <delta_t, o> for pivot p; returns (max ||delta_t||, ||o||)."""
    K, d_v = values.shape
    offset = values[p] - target
    delta = values - values[p]
    spread = 0.0
    for s in range(K):
        for t in range(s + 1):
            inner = 0.0
            for j in range(d_v):
                inner += delta[s, j] * delta[t, j]
            delta_gram[s, t] = inner
            delta_gram[t, s] = inner
        spread = max(spread, delta_gram[s, s])
        inner = 0.0
        for j in range(d_v):
            inner += delta[s, j] * offset[j]
        delta_offset[s] = inner
    return np.sqrt(spread), np.sqrt(np.sum(offset * offset))


@njit(cache=True)
def _mse_coefficients(margins, p, delta_gram, delta_offset, exact, weights, pi):
    """Frame coefficients of one sample's squared error: (log scale, sum of a_t over t != p)."""
    K = len(margins)
    least = np.inf
    for t in range(K):
        margins[t] -= margins[p] if t != p else 0.0
    for t in range(K):
        if t != p and margins[t] < least:
            least = margins[t]
    total = 0.0
    for t in range(K):
        weights[t] = 0.0 if t == p else np.exp(least - margins[t])
        total += weights[t]
    c = -least - np.log1p(np.exp(-least) * total)
    scale = np.exp(c)
    inner = pi
    for t in range(K):
        inner[t] = 0.0
    for s in range(K):
        row, weight = delta_gram[s], weights[s]
        for t in range(K):
            inner[t] += weight * row[t]
    if not exact:
        for t in range(K):
            inner[t] = delta_offset[t] + scale * inner[t]
    mean = 0.0
    for t in range(K):
        mean += weights[t] * inner[t]
    mean *= scale
    for t in range(K):
        pi[t] = weights[t] * (inner[t] - mean)
    return (2.0 * c if exact else c), scale * total


@njit(cache=True)
def _cross_entropy_coefficients(margins, y, weights, pi):
    """Frame coefficients pi_t = a_t of one sample's cross-entropy: (log scale, sum of a_t over t != y)."""
    K = len(margins)
    least = np.inf
    for t in range(K):
        if t != y and margins[t] < least:
            least = margins[t]
    total = 0.0
    for t in range(K):
        weights[t] = 0.0 if t == y else np.exp(least - margins[t])
        pi[t] = weights[t]
        total += weights[t]
    # log a_t = -m_t - log(1 + S) with S = e^-least total, in the form that cannot overflow.
    if least >= 0.0:
        log_normaliser = np.log1p(np.exp(-least) * total)
    else:
        log_normaliser = -least + np.log(np.exp(least) + total)
    c = -least - log_normaliser
    return c, np.exp(c) * total


@njit(cache=True)
def evaluate(data, state, X, wmag, loss):
    """Fill P with -gradient = e^M sum_i P_i q_i^T; return M and a bound on the error of e^-M gradient.

    The bound (Frobenius norm) is worst case, from the roundings of this very evaluation. Margins are wrong by
    at most 2 gamma X_i ||q_i|| wmag, where wmag bounds the sum of the norms of the terms that W is made of;
    weights therefore by a factor e^epsilon, and each pi_t by 5 (epsilon + gamma) a_t R (A R + ||o||) with
    A = sum_{t != p} a_t and R = max ||delta_t||; 7 instead of 5 covers the sums over t and over samples.
    """
    diffs, diffs_T, values, targets, match, diff_norm, query_norm = data
    P, pi, weights, margins, gram, delta_offset, pivot, spread, offset, scales, errors = state
    n, K, d = diffs.shape
    d_v = values.shape[2]
    rounding = gamma(K + d_v + n + 20)
    for i in range(n):
        m = margins[i]
        for t in range(K):
            m[t] = 0.0
        for j in range(d):
            row, x = diffs_T[i, j], X[i, j]
            for t in range(K):
                m[t] += row[t] * x
        # Margins wrong by 2 e_u, log a_t by twice that; K + 10 roundings in exp, log1p and the sum.
        e_u = 2.0 * gamma(n + 2 * d + REFRESH + 16) * diff_norm[i] * query_norm[i] * wmag
        epsilon = 2.0 * e_u + gamma(K + 10)
        exact = True
        if loss == CROSS_ENTROPY:
            scales[i], A = _cross_entropy_coefficients(m, match[i], weights, pi[i])
            reach = 3.0 * diff_norm[i]
        else:
            p = match[i]
            for t in range(K):
                if m[t] < m[p]:
                    p = t
            if p != pivot[i]:
                pivot[i] = p
                spread[i], offset[i] = _recentre(gram[i], delta_offset[i], values[i], targets[i], p)
            exact = offset[i] == 0.0
            scales[i], A = _mse_coefficients(m, p, gram[i], delta_offset[i], exact, weights, pi[i])
            reach = 14.0 * diff_norm[i] * spread[i]
        total = 0.0
        for t in range(K):
            total += weights[t]
        if loss == MSE:
            reach *= spread[i] * total if exact else A * spread[i] + offset[i]
        errors[i] = (epsilon + rounding) * total * reach * query_norm[i]
    return _combine(diffs, pi, pivot, match, scales, errors, P, loss)


@njit(cache=True)
def _combine(diffs, pi, pivot, match, scales, errors, P, loss):
    """P_i = sum_t pi_t (k_p - k_t) in the frame M, the largest log scale with a nonzero coefficient."""
    n, K, d = diffs.shape
    M = -np.inf
    for i in range(n):
        for t in range(K):
            if pi[i, t] != 0.0 and scales[i] > M:
                M = scales[i]
    error = 0.0
    for i in range(n):
        row_P = P[i]
        for j in range(d):
            row_P[j] = 0.0
        if np.isneginf(M):
            continue
        factor = np.exp(scales[i] - M)
        p = pivot[i] if loss == MSE else match[i]
        total = 0.0
        for t in range(K):
            total += pi[i, t]
        for t in range(K):
            coefficient = factor * (pi[i, t] - total if t == p else pi[i, t])
            row = diffs[i, t]
            for j in range(d):
                row_P[j] += coefficient * row[j]
        error += factor * errors[i]
    return M, error
