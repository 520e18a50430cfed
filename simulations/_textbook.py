"""Error bound of the textbook attention gradient, for the engines that use it.

The textbook backward pass forms g_t = a_t (<v_t, r> - sum_s a_s <v_s, r>), r = sum_t a_t v_t - target, from
rounded weights. With p the key of largest weight, A = sum_{t != p} a_t, R the diameter of the values, V a
bound on the norms of values plus target, and e_s the absolute error of a score:

* r is wrong by e_r <= 2 e_s A R + gamma V: the second term does not shrink with A, as r itself does;
* sum_t |g_t| is wrong by at most 2 A R (4 e_s ||r|| + e_r) + 4 gamma V ||r||.

The true gradient is of size A^2 R^2 for an exact target, so that the relative error is of order u V / (A R):
one at A = 2^-53, a logit gap of 36.7. For cross-entropy g = a - onehot is wrong by 4 e_s A + 2 gamma.
Written in plain arithmetic: NumPy arrays and compiled scalars share it.
"""

from __future__ import annotations

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
