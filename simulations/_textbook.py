"""The textbook softmax gradient, compiled, and the bound on its error: the negative control.

Nothing is centred at the selected token, as in published notebooks. In float64 the selected token's part of
the gradient vanishes once its weight rounds to 1, near a logit gap of 36.7, and normalised descent then walks
away from the max-margin direction. Never use it for a result.

The backward pass forms g_t = a_t (<v_t, r> - sum_s a_s <v_s, r>), r = sum_t a_t v_t - target, from rounded
weights. With p the key of largest weight, A = sum_{t != p} a_t, R the diameter of the values, V a bound on
the norms of values plus target, and e_s the absolute error of a score:

* r is wrong by e_r <= 2 e_s A R + gamma V: the second term does not shrink with A, as r itself does;
* sum_t |g_t| is wrong by at most 2 A R (4 e_s ||r|| + e_r) + 4 gamma V ||r||.

The true gradient is of size A^2 R^2 for an exact target, so that the relative error is of order u V / (A R):
one at A = 2^-53. For cross-entropy g = a - onehot is wrong by 4 e_s A + 2 gamma.

The bounds are plain arithmetic, so that NumPy arrays (autograd engine) and compiled scalars share them; they
stand in this file with their compiled caller because numba's cache on disk knows only one file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Positions in `marginlab.theory.match_copy.losses.LOSSES`, and in `marginlab.simulations.trajectory.RULES`.
CROSS_ENTROPY = 1
GD, NORMALISED, NORMALISED_SQRT, LOSS_SCALED = 0, 1, 2, 3

_U = 2.0**-53


def score_error(d, key_norm, query_norm, W_norm):
    """Bound on the error of a score <k, W q> and of its difference to the largest: 2 d + 4 roundings."""
    return (2 * d + 4) * _U * key_norm * query_norm * W_norm


def squared_error_slip(A, r_norm, R, V, e_s, K, d_v):
    """Bound on sum_t |error of g_t| for the squared error."""
    rounding = (2 * K + d_v + 12) * _U
    e_r = 2 * e_s * A * R + rounding * V
    return 2 * A * R * (4 * e_s * r_norm + e_r) + 4 * rounding * V * r_norm


def cross_entropy_slip(A, e_s, K):
    """Bound on sum_t |error of g_t| for the cross-entropy of the match."""
    return 4 * e_s * A + 2 * (K + 12) * _U


def gradient_slip(slip, g_sum, key_norm, query_norm, n, K):
    """Bound on one sample's error in sum_t g_t k_t q^T, its summation over t and samples included."""
    return (slip + (n + K + 4) * _U * g_sum) * key_norm * query_norm


_score_error = njit(cache=True)(score_error)
_squared_error_slip = njit(cache=True)(squared_error_slip)
_cross_entropy_slip = njit(cache=True)(cross_entropy_slip)
_gradient_slip = njit(cache=True)(gradient_slip)


@njit(cache=True)
def _gradient(data, W, loss, G):
    """Fill G with the gradient at W; return its norm, the bound on its absolute error, and the loss."""
    keys, queries, values, targets, match, key_norm, diameter, value_norm = data
    n, K, d = keys.shape
    d_v = values.shape[2]
    W_norm, error, total = np.sqrt(np.sum(W * W)), 0.0, 0.0
    a, g, r, x = np.zeros(K), np.zeros(K), np.zeros(d_v), np.zeros(d)
    G[:] = 0.0
    for i in range(n):
        query = queries[i]
        for k in range(d):
            x[k] = np.sum(W[k] * query)
        for t in range(K):
            a[t] = np.sum(keys[i, t] * x)
        a[:] = np.exp(a - a.max())
        a /= a.sum()
        p, rest = np.argmax(a), 0.0
        for t in range(K):
            rest += a[t] if t != p else 0.0
        query_norm = np.sqrt(np.sum(query * query))
        e_s = _score_error(d, key_norm[i], query_norm, W_norm)
        if loss == CROSS_ENTROPY:
            g[:] = a
            g[match[i]] -= 1.0
            slip = _cross_entropy_slip(rest, e_s, K)
            total -= np.log(a[match[i]])
        else:
            r[:] = -targets[i]
            for t in range(K):
                r += a[t] * values[i, t]
            for t in range(K):
                g[t] = np.sum(values[i, t] * r)
            mean = np.sum(a * g)
            g[:] = a * (g - mean)
            r_norm = np.sqrt(np.sum(r * r))
            total += r_norm * r_norm / 2.0
            slip = _squared_error_slip(rest, r_norm, diameter[i], value_norm[i], e_s, K, d_v)
        error += _gradient_slip(slip, np.sum(np.abs(g)), key_norm[i], query_norm, n, K)
        for t in range(K):
            for k in range(d):
                for j in range(d):
                    G[k, j] += g[t] * keys[i, t, k] * query[j]
    return np.sqrt(np.sum(G * G)), error, total


@njit(cache=True)
def descend(data, W0, loss, rule, step, steps, trusted, record, W, log_norm, bound, G):
    """The textbook loop; arguments and results as `_frame.descend`, with `textbook_data`."""
    now = W0.copy()
    valid_until, r = -1, 0
    for s in range(steps + 1):
        norm, error, total = _gradient(data, now, loss, G)
        if not np.isfinite(norm):
            return valid_until, s
        relative = error / (norm - error) if norm > error else np.inf
        if valid_until < 0 and not relative <= trusted:
            valid_until = s
        if r < len(record) and record[r] == s:
            W[r] = now
            log_norm[r] = np.log(norm) if norm > 0.0 else -np.inf
            bound[r] = relative
            r += 1
        if s == steps or norm == 0.0:
            continue
        size = step
        if rule == LOSS_SCALED:
            if total == 0.0:
                continue
            size = step / total
        elif rule != GD:
            size = (step / np.sqrt(s + 1.0) if rule == NORMALISED_SQRT else step) / norm
        now -= size * G
    return valid_until, -1
