"""Compiled gradient descent on the frame-scaled gradient.

Coordinates: with at most d samples, W - W0 = sum_i Y_i q_i^T is carried through Y and X_i = W q_i (n^2 d
multiplications a step); with more samples W itself is (2 n d^2).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from marginlab.simulations._frame import REFRESH, evaluate, gamma, workspace
from marginlab.simulations.trajectory import TRUSTED

GD, NORMALISED, NORMALISED_SQRT = 0, 1, 2


@njit(cache=True)
def descent_rate(rule, step, s, log_frame, norm):
    """Factor on the frame gradient G of the step from W_s to W_{s+1}, where the gradient is e^log_frame G."""
    if norm == 0.0:
        return 0.0
    if rule == GD:
        return step * np.exp(log_frame)
    if rule == NORMALISED:
        return step / norm
    return step / (np.sqrt(s + 1.0) * norm)


@njit(cache=True)
def _gradient_norm(P, queries, query_gram, span, GP, G_T):
    """||sum_i P_i q_i^T||_F, through GP = (Q Q^T) P or through G_T = sum_i q_i P_i^T, whichever is kept."""
    n, d = P.shape
    square = 0.0
    if span:
        GP[:] = 0.0
        for i in range(n):
            row = GP[i]
            for k in range(n):
                inner, row_P = query_gram[i, k], P[k]
                for j in range(d):
                    row[j] += inner * row_P[j]
            for j in range(d):
                square += row[j] * P[i, j]
    else:
        G_T[:] = 0.0
        for i in range(n):
            row_P = P[i]
            for k in range(d):
                q, row = queries[i, k], G_T[k]
                for j in range(d):
                    row[j] += q * row_P[j]
        for k in range(d):
            for j in range(d):
                square += G_T[k, j] * G_T[k, j]
    return np.sqrt(max(square, 0.0))


@njit(cache=True)
def _summed_norms(P, query_norm):
    """sum_i ||P_i|| ||q_i||: what the gradient's norm would be without cancellation between samples."""
    total = 0.0
    for i in range(len(P)):
        square = 0.0
        for j in range(P.shape[1]):
            square += P[i, j] * P[i, j]
        total += np.sqrt(square) * query_norm[i]
    return total


@njit(cache=True)
def relative_error(norm, error, uncancelled, terms, span):
    """Bound on the relative error of the gradient, infinite if it could be zero.

    In the span the squared norm is the sum <P, (Q Q^T) P>, wrong by gamma (sum ||P_i|| ||q_i||)^2.
    """
    if not norm > error:
        return np.inf
    bound = error / (norm - error)
    if span:
        bound += gamma(terms) * (uncancelled / norm) ** 2
    return bound


@njit(cache=True)
def _scores_input(queries, W_T, X):
    """X_i = W q_i from the transposed matrix."""
    n, d = queries.shape
    for i in range(n):
        row_X = X[i]
        for j in range(d):
            row_X[j] = 0.0
        for k in range(d):
            q, row = queries[i, k], W_T[k]
            for j in range(d):
                row_X[j] += q * row[j]


@njit(cache=True)
def _weights_matrix(W0, queries, Y, W_T, span, out):
    """The matrix W itself, from Y in the span and from its transpose otherwise."""
    d = len(W0)
    if span:
        out[:] = W0
        for i in range(len(queries)):
            for a in range(d):
                for b in range(d):
                    out[a, b] += Y[i, a] * queries[i, b]
    else:
        for a in range(d):
            for b in range(d):
                out[a, b] = W_T[b, a]


@njit(cache=True)
def descend(data, queries, query_gram, W0, loss, rule, step, steps, record, span, W, log_norm, bound):
    """Run `steps` steps, filling W, log_norm and bound at the steps in `record`.

    Returns
    -------
    valid_until : int
        First step whose gradient is past the trusted range, -1 if there is none.
    overflow : int
        Step at which the gradient was not finite, -1 if there is none.
    """
    state = workspace(data)
    n, _, d = data[0].shape
    query_norm, P = data[6], state[0]
    X0, X, Y, GP = np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d))
    W_T, G_T = W0.T.copy(), np.zeros((d, d))
    _scores_input(queries, W_T, X0)
    X[:] = X0
    wmag = np.sqrt(np.sum(W0 * W0))
    valid_until, r = -1, 0
    for s in range(steps + 1):
        if span and s % REFRESH == 0 and s > 0:
            _gradient_norm(Y, queries, query_gram, span, GP, G_T)
            for i in range(n):
                for j in range(d):
                    X[i, j] = X0[i, j] + GP[i, j]
        if not span and s > 0:
            _scores_input(queries, W_T, X)
        M, error = evaluate(data, state, X, wmag, loss)
        norm = _gradient_norm(P, queries, query_gram, span, GP, G_T)
        if not np.isfinite(norm) or np.isposinf(M) or np.isnan(M):
            return valid_until, s
        uncancelled = _summed_norms(P, query_norm)
        relative = relative_error(norm, error, uncancelled, n * n + d, span)
        if valid_until < 0 and not relative <= TRUSTED:
            valid_until = s
        if r < len(record) and record[r] == s:
            _weights_matrix(W0, queries, Y, W_T, span, W[r])
            log_norm[r] = M + np.log(norm) if norm > 0.0 else -np.inf
            bound[r] = relative
            r += 1
        if s == steps:
            break
        rate = descent_rate(rule, step, s, M, norm)
        wmag += rate * uncancelled
        if span:
            for i in range(n):
                for j in range(d):
                    Y[i, j] += rate * P[i, j]
                    X[i, j] += rate * GP[i, j]
        else:
            for k in range(d):
                for j in range(d):
                    W_T[k, j] += rate * G_T[k, j]
    return valid_until, -1


@njit(cache=True)
def gradient(data, queries, query_gram, W, loss, G):
    """Fill G with the direction e^-M (-gradient) at W; return (M, ||G||, relative error bound)."""
    state = workspace(data)
    n, _, d = data[0].shape
    X, GP, G_T, W_T = np.zeros((n, d)), np.zeros((n, d)), np.zeros((d, d)), W.T.copy()
    _scores_input(queries, W_T, X)
    M, error = evaluate(data, state, X, np.sqrt(np.sum(W * W)), loss)
    norm = _gradient_norm(state[0], queries, query_gram, False, GP, G_T)
    for a in range(d):
        for b in range(d):
            G[a, b] = G_T[b, a]
    return M, norm, relative_error(norm, error, 0.0, 0, False)
