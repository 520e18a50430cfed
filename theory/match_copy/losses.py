"""Residuals and losses of the minimal model, plain and in the log domain."""

from __future__ import annotations

import numpy as np

from marginlab.theory.match_copy.attention import (
    AttentionProblem,
    attention_weights,
    log_attention,
    log_sum_exp,
    margins,
    rivals,
)
from marginlab.theory.validation import Float, one_of

LOSSES = ("mse", "cross-entropy")


def error_directions(problem: AttentionProblem) -> Float:
    """d_{i,t} = v_t - v_y, shape (n, K, d_v); zero at the match."""
    rows = np.arange(len(problem.values))
    return problem.values - problem.values[rows, problem.match][:, None]


def residuals(problem: AttentionProblem, W: Float) -> Float:
    """r_i = sum_{t != y} a_{i,t} d_{i,t} + (v_y - target_i), shape (..., n, d_v).

    Written so that an exact target (v_y = target) leaves no difference of nearly equal vectors.
    """
    rows = np.arange(len(problem.values))
    offset = problem.values[rows, problem.match] - problem.targets
    return np.einsum("...it,itj->...ij", attention_weights(problem, W), error_directions(problem)) + offset


def squared_error(problem: AttentionProblem, W: Float) -> Float:
    """Sum over samples of ||r_i||^2 / 2, eq. (19), shape (...). Eq. (9) is twice this."""
    return 0.5 * np.sum(residuals(problem, W) ** 2, axis=(-2, -1))


def log_odds(problem: AttentionProblem, W: Float) -> Float:
    """log S_i, S_i = sum_{t != y} exp(-m_{i,t}) = (1 - a_y) / a_y, shape (..., n)."""
    return log_sum_exp(np.where(rivals(problem), -margins(problem, W), -np.inf))


def cross_entropy(problem: AttentionProblem, W: Float) -> Float:
    """Sum over samples of log(1 + S_i), shape (...). Eq. (17) is this divided by n."""
    return np.sum(np.logaddexp(0.0, log_odds(problem, W)), axis=-1)


def log_loss(problem: AttentionProblem, W: Float, loss: str = "mse") -> Float:
    """Natural logarithm of the loss, shape (...): exact where the loss itself is below 1e-308.

    Parameters
    ----------
    problem : AttentionProblem
    W : (..., d, d) array
    loss : "mse" (eq. 19) or "cross-entropy" (n times eq. 17)

    Raises
    ------
    InvalidInput
        Another name of a loss.
    """
    one_of(loss, "loss", LOSSES)
    per_sample = (_log_squared_errors if loss == "mse" else _log_cross_entropies)(problem, W)
    return log_sum_exp(per_sample)


def _log_cross_entropies(problem: AttentionProblem, W: Float) -> Float:
    odds = log_odds(problem, W)
    # log(1 + S) = S (1 - S/2 + ...): equal to S in float64 once S/2 < 2^-53, that is log S < -36.04.
    small = odds < -53 * np.log(2.0)
    return np.where(small, odds, np.log(np.logaddexp(0.0, np.where(small, 0.0, odds))))


def _log_squared_errors(problem: AttentionProblem, W: Float) -> Float:
    """log(||r_i||^2 / 2), shape (..., n).

    Values are centred at the token p with the largest weight: r = (v_p - target) + e^c sum_t b_t (v_t - v_p)
    with max b_t = 1. If v_p is the target exactly, the scale e^c leaves as a logarithm.
    """
    log_a = log_attention(problem, W)
    p = np.argmax(log_a, axis=-1)
    rest = log_a.copy()
    np.put_along_axis(rest, p[..., None], -np.inf, axis=-1)
    c = rest.max(axis=-1)
    weights = np.exp(rest - c[..., None])
    selected = problem.values[np.arange(p.shape[-1]), p]  # (..., n, d_v)
    spread = np.einsum("...it,itj->...ij", weights, problem.values) - weights.sum(-1)[..., None] * selected
    offset = selected - problem.targets
    exact = np.all(offset == 0, axis=-1)
    scaled = np.where(np.expand_dims(exact, -1), spread, offset + np.exp(c)[..., None] * spread)
    with np.errstate(divide="ignore"):  # log 0 = -inf is the answer where a residual is exactly zero
        return np.where(exact, 2 * c, 0.0) + np.log(np.sum(scaled**2, axis=-1)) - np.log(2.0)
