"""The textbook softmax gradient, compiled: the negative control of the frame-scaled engine.

Nothing is centred at the selected token, as in published notebooks. In float64 the selected token's part of
the gradient vanishes once its weight rounds to 1, near a logit gap of 36.7, and normalised descent then walks
away from the max-margin direction. Never use it for a result.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from marginlab.simulations import _textbook
from marginlab.simulations._frame import CROSS_ENTROPY
from marginlab.simulations._frame_descent import TRUSTED, descent_rate

_score_error = njit(cache=True)(_textbook.score_error)
_squared_error_slip = njit(cache=True)(_textbook.squared_error_slip)
_cross_entropy_slip = njit(cache=True)(_textbook.cross_entropy_slip)
_gradient_slip = njit(cache=True)(_textbook.gradient_slip)


@njit(cache=True)
def gradient(data, W, loss, G):
    """Fill G with the gradient at W; return its norm and the bound on its absolute error."""
    keys, queries, values, targets, match, key_norm, diameter, value_norm = data
    n, K, d = keys.shape
    d_v = values.shape[2]
    W_norm, error = np.sqrt(np.sum(W * W)), 0.0
    a, g, r = np.zeros(K), np.zeros(K), np.zeros(d_v)
    G[:] = 0.0
    for i in range(n):
        query = queries[i]
        x = np.zeros(d)
        for k in range(d):
            for j in range(d):
                x[k] += W[k, j] * query[j]
        for t in range(K):
            a[t] = 0.0
            for j in range(d):
                a[t] += keys[i, t, j] * x[j]
        a[:] = np.exp(a - a.max())
        a /= a.sum()
        rest = 0.0
        p = np.argmax(a)
        for t in range(K):
            rest += a[t] if t != p else 0.0
        query_norm = np.sqrt(np.sum(query * query))
        e_s = _score_error(d, key_norm[i], query_norm, W_norm)
        if loss == CROSS_ENTROPY:
            g[:] = a
            g[match[i]] -= 1.0
            slip = _cross_entropy_slip(rest, e_s, K)
        else:
            r[:] = -targets[i]
            for t in range(K):
                r += a[t] * values[i, t]
            for t in range(K):
                g[t] = np.sum(values[i, t] * r)
            mean = np.sum(a * g)
            g[:] = a * (g - mean)
            slip = _squared_error_slip(rest, np.sqrt(np.sum(r * r)), diameter[i], value_norm[i], e_s, K, d_v)
        error += _gradient_slip(slip, np.sum(np.abs(g)), key_norm[i], query_norm, n, K)
        for t in range(K):
            for k in range(d):
                for j in range(d):
                    G[k, j] += g[t] * keys[i, t, k] * query[j]
    return np.sqrt(np.sum(G * G)), error


@njit(cache=True)
def descend(data, W0, loss, rule, step, steps, record, out, log_norm, bound):
    """Run `steps` steps; returns (valid_until, overflow) as `_frame_descent.descend` does."""
    W, G = W0.copy(), np.zeros_like(W0)
    valid_until, r = -1, 0
    for s in range(steps + 1):
        norm, error = gradient(data, W, loss, G)
        if not np.isfinite(norm):
            return valid_until, s
        relative = error / (norm - error) if norm > error else np.inf
        if valid_until < 0 and not relative <= TRUSTED:
            valid_until = s
        if r < len(record) and record[r] == s:
            out[r] = W
            log_norm[r] = np.log(norm) if norm > 0.0 else -np.inf
            bound[r] = relative
            r += 1
        W -= descent_rate(rule, step, s, 0.0, norm) * G
    return valid_until, -1
