"""Compiled descent on attention: margin-difference form, scaled by a frame so that nothing underflows.

Notation, for one sample with scores u_t = <k_t, W q>, attention a, pivot p = the key with the largest score:

* delta_t = v_t - v_p and o = v_p - target, so that the residual is r = o + sum_{t != p} a_t delta_t;
* -gradient = sum_{t != p} pi_t (k_p - k_t) q^T with pi_t = a_t (<delta_t, r> - sum_s a_s <delta_s, r>).

At the match (p = y) with an exact target (o = 0) this is eq. (38, 40) of the paper. No term is a difference
of nearly equal numbers when attention saturates: the textbook form v_t - sum_s a_s v_s is exactly zero for
the selected token as soon as its weight rounds to 1. Weights are carried as a_t = e^c b_t with b of order one,
hence pi = e^{2c} (...) when o = 0 and e^c (...) otherwise, and the whole gradient as e^M G.

Coordinates: with at most d samples (``span``) W - W0 = sum_i Y_i q_i^T is carried through Y and X_i = W q_i,
n^2 d multiplications a step; with more samples W itself, 2 n d^2.

Loops run along the contiguous axis, and reduce along it only where that is cheap: LLVM then uses vector
instructions without being allowed to reassociate, so that a result is the same bit for bit everywhere.

Kernels that call each other share this file on purpose: numba's cache on disk knows only the file that a
function stands in, and would go on serving a caller compiled with an old version of another file.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Positions in `marginlab.theory.match_copy.losses.LOSSES`, and in `marginlab.simulations.trajectory.RULES`.
MSE, CROSS_ENTROPY = 0, 1
GD, NORMALISED, NORMALISED_SQRT, LOSS_SCALED = 0, 1, 2, 3

#: Steps between two computations of X = X0 + (Q Q^T) Y from scratch, which end the drift of its updates.
REFRESH = 16

_U = 2.0**-53


@njit(cache=True)
def _gamma(k):
    """Wilkinson's gamma_k = k u / (1 - k u): relative error of k roundings in a row."""
    return k * _U / (1.0 - k * _U)


@njit(cache=True)
def _recentre(factor, delta_offset, values, target, p, use_gram):
    """Values centred at pivot p: fills <delta_t, o> and the factor; returns (max ||delta_t||, ||o||).

    The factor is the Gram matrix <delta_s, delta_t> (K, K), or the transpose (d_v, K) of delta.
    """
    K, d_v = values.shape
    offset, delta = values[p] - target, values - values[p]
    delta_T = delta.T.copy()
    if use_gram:
        factor[:] = 0.0
        _add_product(delta, delta_T, factor)
    else:
        factor[:] = delta_T
    spread = 0.0
    for s in range(K):
        square, inner = 0.0, 0.0
        for j in range(d_v):
            square += delta[s, j] * delta[s, j]
            inner += delta[s, j] * offset[j]
        spread = max(spread, square)
        delta_offset[s] = inner
    return np.sqrt(spread), np.sqrt(np.sum(offset * offset))


@njit(cache=True)
def _frame_weights(margins, p, weights):
    """b_t with a_t = e^c b_t for t != p, and b_p = 0, from margins to p; returns (c, e^c, sum of b).

    c is minus the least margin of a rival, or 0 if a rival is ahead of p; the largest b_t is in [1/K, 1].
    """
    K = len(margins)
    least, total = np.inf, 0.0
    for t in range(K):
        if t != p and margins[t] < least:
            least = margins[t]
    for t in range(K):
        weights[t] = 0.0 if t == p else np.exp(least - margins[t])
        total += weights[t]
    # a_t = e^-m_t / (1 + S), S = e^-least total, multiplied through by e^least where that could overflow.
    scale = np.exp(-least) if least > 0.0 else 1.0
    share = 1.0 / (1.0 + scale * total) if least > 0.0 else 1.0 / (np.exp(least) + total)
    for t in range(K):
        weights[t] *= share
    return -max(least, 0.0), scale, total * share


@njit(cache=True)
def _mse_coefficients(weights, scale, factor, delta_offset, exact, use_gram, pi):
    """pi_t of one sample's squared error, up to the factor scale^2 (exact target) or scale."""
    K = len(weights)
    for t in range(K):
        pi[t] = 0.0
    for s in range(len(factor)):
        row, coefficient = factor[s], 0.0
        if use_gram:
            coefficient = weights[s]
        else:
            for t in range(K):
                coefficient += row[t] * weights[t]
        for t in range(K):
            pi[t] += coefficient * row[t]
    if not exact:
        for t in range(K):
            pi[t] = delta_offset[t] + scale * pi[t]
    mean = 0.0
    for t in range(K):
        mean += weights[t] * pi[t]
    for t in range(K):
        pi[t] = weights[t] * (pi[t] - scale * mean)


@njit(cache=True)
def _evaluate(data, state, X, W_size, loss, use_gram):
    """Fill P with -gradient = e^M sum_i P_i q_i^T; return M and a bound on the error of e^-M gradient.

    The bound (Frobenius norm) is worst case, from the roundings of this very evaluation. Margins to the match
    are wrong by at most e_u = gamma ||k_y - k_t|| ||q|| W_size, where W_size bounds the sum of the norms of
    the terms that W is made of; margins to the pivot by 2 e_u, and weights by a factor e^epsilon with epsilon
    = 4 e_u + gamma. Each pi_t is then wrong by at most 5 (epsilon + gamma) a_t R (A R + ||o||) with
    A = sum_{t != p} a_t, R = max ||delta_t||; 7 for 5 covers the sums over t and over samples, and
    ||k_p - k_t|| <= 2 max ||k_y - k_t||. For cross-entropy pi_t = a_t, pivot y: 3 (epsilon + gamma) a_t.
    """
    diffs, diffs_T, _, _, values, targets, match, diff_norm, query_norm = data
    P, pi, weights, m, factor, delta_offset, pivot, spread, offset, scales, errors = state
    n, K, d = diffs.shape
    rounding = _gamma(K + values.shape[2] + n + 20)
    margin_rounding = _gamma(n + 2 * d + REFRESH + 16)
    for i in range(n):
        for t in range(K):
            m[t] = 0.0
        for j in range(d):
            row, x = diffs_T[i, j], X[i, j]
            for t in range(K):
                m[t] += row[t] * x
        epsilon = 4.0 * margin_rounding * diff_norm[i] * query_norm[i] * W_size + _gamma(K + 10)
        p = match[i]
        if loss == CROSS_ENTROPY:
            scales[i], _, total = _frame_weights(m, p, weights)
            for t in range(K):
                pi[i, t] = weights[t]
            reach = 3.0 * diff_norm[i]
        else:
            for t in range(K):
                if m[t] < m[p]:
                    p = t
            if p != pivot[i]:
                size = _recentre(factor[i], delta_offset[i], values[i], targets[i], p, use_gram)
                spread[i], offset[i] = size
            base = m[p]
            for t in range(K):
                m[t] -= base
            c, scale, total = _frame_weights(m, p, weights)
            exact = offset[i] == 0.0
            _mse_coefficients(weights, scale, factor[i], delta_offset[i], exact, use_gram, pi[i])
            scales[i] = 2.0 * c if exact else c
            size_r = spread[i] * total if exact else scale * total * spread[i] + offset[i]
            reach = 14.0 * diff_norm[i] * spread[i] * size_r
        pivot[i] = p
        errors[i] = (epsilon + rounding) * total * reach * query_norm[i]
        if diff_norm[i] * query_norm[i] == 0.0:  # P_i q_i^T = 0 must not set the frame for the others
            pi[i] = 0.0
    return _combine(diffs, pi, pivot, scales, errors, P)


@njit(cache=True)
def _combine(diffs, pi, pivot, scales, errors, P):
    """P_i = sum_t pi_t (k_p - k_t) in the frame M, the largest log scale with a nonzero coefficient."""
    n, K, d = diffs.shape
    M, error = -np.inf, 0.0
    for i in range(n):
        for t in range(K):
            if np.isnan(pi[i, t]):  # W q overflowed: no frame can hold it, and comparisons would hide it
                return np.nan, np.nan
            if pi[i, t] != 0.0 and scales[i] > M:
                M = scales[i]
    P[:] = 0.0
    for i in range(n):
        if np.isneginf(M):
            break
        # Above the frame only if all pi are 0; what is left then is the error, as large as it may be.
        scale, row_P = np.exp(min(scales[i] - M, 700.0)), P[i]
        total = 0.0
        for t in range(K):
            total += pi[i, t]
        for t in range(K):
            coefficient = scale * (pi[i, t] - total if t == pivot[i] else pi[i, t])
            row = diffs[i, t]
            for j in range(d):
                row_P[j] += coefficient * row[j]
        error += scale * errors[i]
    return M, error


@njit(cache=True)
def _add_product(A, B, out):
    """out += A B for C-contiguous arrays, along the rows of B."""
    for i in range(A.shape[0]):
        row_out = out[i]
        for k in range(A.shape[1]):
            a, row = A[i, k], B[k]
            for j in range(B.shape[1]):
                row_out[j] += a * row[j]


@njit(cache=True)
def _norms(P, product, query_norm, span):
    """(||sum_i P_i q_i^T||_F, sum_i ||P_i|| ||q_i||): the norm, and what it would be without cancellation.

    `product` is (Q Q^T) P in the span, where the squared norm is <P, (Q Q^T) P>, and Q^T P otherwise.
    """
    square, uncancelled = 0.0, 0.0
    for i in range(len(P)):
        own = 0.0
        for j in range(P.shape[1]):
            own += P[i, j] * P[i, j]
            if span:
                square += P[i, j] * product[i, j]
        uncancelled += np.sqrt(own) * query_norm[i]
    if not span:
        square = np.sum(product * product)
    return np.sqrt(max(square, 0.0)), uncancelled


@njit(cache=True)
def _workspace(data, use_gram):
    """Buffers of `_evaluate`, in the order in which it unpacks them."""
    n, K, d = data[0].shape
    factor = np.zeros((n, K if use_gram else data[4].shape[2], K))
    vectors = np.zeros((5, n))
    return (
        np.zeros((n, d)),
        np.zeros((n, K)),
        np.zeros(K),
        np.zeros(K),
        factor,
        np.zeros((n, K)),
        np.full(n, -1),
        vectors[0],
        vectors[1],
        vectors[2],
        vectors[3],
    )


@njit(cache=True)
def _log_loss(data, X, loss):
    """Logarithm of the loss at X_i = W q_i: attention and residual relative to the match, in a frame of their own."""
    diffs, _, _, _, values, targets, match, _, _ = data
    n, K, d = diffs.shape
    d_v = values.shape[2]
    b, r = np.zeros(K), np.zeros(d_v)
    largest, total = -np.inf, 0.0
    for i in range(n):
        y, least = match[i], np.inf
        for t in range(K):
            m = 0.0
            for j in range(d):
                m += diffs[i, t, j] * X[i, j]
            b[t] = m
            if t != y and m < least:
                least = m
        S = 0.0
        for t in range(K):
            b[t] = 0.0 if t == y else np.exp(least - b[t])
            S += b[t]
        # a_t = e^c b_t off the match, with e^-c = e^least + S.
        c = -least - np.log1p(S * np.exp(-least)) if least > 0.0 else -np.log(np.exp(least) + S)
        if loss == CROSS_ENTROPY:
            odds = np.log(S) - least  # -log a_y = log(1 + e^odds), which is e^odds to rounding below e^-37
            own = odds if odds < -37.0 else np.log(max(odds, 0.0) + np.log1p(np.exp(-abs(odds))))
        else:
            square, exact = 0.0, True
            for j in range(d_v):
                exact = exact and values[i, y, j] == targets[i, j]
            for j in range(d_v):
                r[j] = 0.0
                for t in range(K):
                    r[j] += b[t] * (values[i, t, j] - values[i, y, j])
                if not exact:
                    r[j] = values[i, y, j] - targets[i, j] + np.exp(c) * r[j]
                square += r[j] * r[j]
            own = np.log(square / 2.0) if square > 0.0 else -np.inf
            own += 2.0 * c if exact else 0.0
        if own > largest:
            total = total * np.exp(largest - own) + 1.0
            largest = own
        elif own > -np.inf:
            total += np.exp(own - largest)
    return largest + np.log(total) if total > 0.0 else -np.inf


@njit(cache=True)
def descend(data, W0, loss, rule, step, steps, trusted, span, record, W, log_norm, bound, G):
    """Run `steps` steps, filling W, log_norm and bound at the steps in `record`, and G at the last step.

    Parameters
    ----------
    data : (diffs (n, K, d), diffs_T (n, d, K), queries (n, d), query Gram (n, n), values (n, K, d_v),
        targets (n, d_v), match (n,), max_t ||k_y - k_t|| (n,), ||q|| (n,)), C-contiguous
    rule : int
        GD, NORMALISED, NORMALISED_SQRT or LOSS_SCALED.
    W, log_norm, bound : (R, d, d), (R,), (R,) arrays, written
    G : (d, d) array, written
        The last gradient up to its positive scale: gradient = e^(log_norm) G / ||G||.

    Returns
    -------
    valid_until : int
        First step whose relative error bound exceeds `trusted`, -1 if there is none.
    overflow : int
        Step at which the gradient was not finite, -1 if there is none.
    """
    n, K, d = data[0].shape
    queries, query_gram, query_norm = data[2], data[3], data[8]
    queries_T = queries.T.copy()
    use_gram = 2 * data[4].shape[2] >= K
    state = _workspace(data, use_gram)
    P, left = state[0], query_gram if span else queries_T
    Y, W_T, X0 = np.zeros((n, d)), W0.T.copy(), np.zeros((n, d))
    product = np.zeros((n if span else d, d))
    _add_product(queries, W_T, X0)
    X = X0.copy()
    W_size = np.sqrt(np.sum(W0 * W0))
    valid_until, r = -1, 0
    for s in range(steps + 1):
        if span and s % REFRESH == 0:
            X[:] = X0
            _add_product(query_gram, Y, X)
        elif not span:
            X[:] = 0.0
            _add_product(queries, W_T, X)
        M, error = _evaluate(data, state, X, W_size, loss, use_gram)
        product[:] = 0.0
        _add_product(left, P, product)
        norm, uncancelled = _norms(P, product, query_norm, span)
        if not np.isfinite(norm) or np.isnan(M) or np.isposinf(M):
            return valid_until, s
        relative = error / (norm - error) if norm > error else np.inf
        if span and norm > 0.0:  # <P, (Q Q^T) P> is wrong by gamma (sum ||P_i|| ||q_i||)^2
            relative += _gamma(2 * n + 2 * d) * (uncancelled / norm) ** 2
        if valid_until < 0 and not relative <= trusted:
            valid_until = s
        if r < len(record) and record[r] == s:
            W[r] = W0 if span else W_T.T
            if span:
                _add_product(Y.T.copy(), queries, W[r])
            log_norm[r] = M + np.log(norm) if norm > 0.0 else -np.inf
            bound[r] = relative
            r += 1
        if s == steps or norm == 0.0:
            continue
        size = step / np.sqrt(s + 1.0) if rule == NORMALISED_SQRT else step
        if rule == GD:
            rate = size * np.exp(M)
        elif rule == LOSS_SCALED:
            rate = size * np.exp(M - _log_loss(data, X, loss))
        else:
            rate = size / norm
        W_size += rate * uncancelled
        moved, moved_by = (Y, P) if span else (W_T, product)
        for k in range(len(moved)):
            for j in range(d):
                moved[k, j] += rate * moved_by[k, j]
        if span:
            for i in range(n):
                for j in range(d):
                    X[i, j] += rate * product[i, j]
    G[:] = 0.0
    _add_product(-P.T.copy(), queries, G)
    return valid_until, -1


@njit(cache=True)
def descend_factors(data, K0, Q0, loss, rule, step, steps, trusted, record, W_K, W_Q, log_norm, bound):
    """Descent on both factors of W = W_K^T W_Q: as `descend`, with factors (d_h, d) in place of W.

    With H = -gradient with respect to W, minus the gradients are W_Q H^T and W_K H; their joint norm is what rules
    and records refer to. The error of H enters both, times the other factor.
    """
    n, K, d = data[0].shape
    d_h = K0.shape[0]
    queries = data[2]
    state = _workspace(data, 2 * data[4].shape[2] >= K)
    P = state[0]
    now_K, now_Q = K0.copy(), Q0.copy()
    X, inner, H = np.zeros((n, d)), np.zeros((n, d_h)), np.zeros((d, d))
    move_K, move_Q = np.zeros((d_h, d)), np.zeros((d_h, d))
    # Margins are <k, W_K^T (W_Q q)>: 2 d + d_h roundings, where `_evaluate` counts n + 2 d + REFRESH + 16.
    surplus = max(1.0, (2.0 * d + d_h + 16.0) / (n + 2.0 * d + REFRESH + 16.0))
    valid_until, r = -1, 0
    for s in range(steps + 1):
        size_K, size_Q = np.sqrt(np.sum(now_K * now_K)), np.sqrt(np.sum(now_Q * now_Q))
        inner[:] = 0.0
        _add_product(queries, now_Q.T.copy(), inner)
        X[:] = 0.0
        _add_product(inner, now_K, X)
        M, error = _evaluate(data, state, X, surplus * size_K * size_Q, loss, 2 * data[4].shape[2] >= K)
        H[:] = 0.0
        _add_product(P.T.copy(), queries, H)
        move_K[:] = 0.0
        _add_product(now_Q, H.T.copy(), move_K)
        move_Q[:] = 0.0
        _add_product(now_K, H, move_Q)
        norm = np.sqrt(np.sum(move_K * move_K) + np.sum(move_Q * move_Q))
        if not np.isfinite(norm) or np.isnan(M) or np.isposinf(M):
            return valid_until, s
        size_H = np.sqrt(np.sum(H * H))
        slip = (error + _gamma(n + d + 4) * size_H) * np.sqrt(size_K * size_K + size_Q * size_Q)
        relative = slip / (norm - slip) if norm > slip else np.inf
        if valid_until < 0 and not relative <= trusted:
            valid_until = s
        if r < len(record) and record[r] == s:
            W_K[r], W_Q[r] = now_K, now_Q
            log_norm[r] = M + np.log(norm) if norm > 0.0 else -np.inf
            bound[r] = relative
            r += 1
        if s == steps or norm == 0.0:
            continue
        size = step / np.sqrt(s + 1.0) if rule == NORMALISED_SQRT else step
        if rule == GD:
            rate = size * np.exp(M)
        elif rule == LOSS_SCALED:
            rate = size * np.exp(M - _log_loss(data, X, loss))
        else:
            rate = size / norm
        for k in range(d_h):
            for j in range(d):
                now_K[k, j] += rate * move_K[k, j]
                now_Q[k, j] += rate * move_Q[k, j]
    return valid_until, -1
