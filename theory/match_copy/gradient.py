"""Gradients of the minimal model in the features x~_{i,t} = vec((k_y - k_t) q_i^T): Lemma F.1."""

from __future__ import annotations

import numpy as np

from marginlab.theory.match_copy.attention import (
    AttentionProblem,
    attention_weights,
    key_differences,
    log_attention,
    rivals,
)
from marginlab.theory.match_copy.losses import LOSSES, error_directions, residuals
from marginlab.theory.validation import Float, one_of


def cross_entropy_coefficients(problem: AttentionProblem, W: Float) -> Float:
    """pi^CE_{i,t} = a_{i,t} for t != y_i and 0 at the match, shape (..., n, K): eq. (38)."""
    return np.where(rivals(problem), attention_weights(problem, W), 0.0)


def mse_coefficients(problem: AttentionProblem, W: Float) -> Float:
    r"""pi^MSE_{i,t}, shape (..., n, K): eq. (40), for any target.

    .. math:: \pi_{i,t} = a_{i,t} \Big(\langle d_{i,t}, r_i\rangle
              - \sum_s a_{i,s} \langle d_{i,s}, r_i\rangle\Big), \qquad t \ne y_i .

    With an exact target the sum is ||r_i||^2, which is the paper's form. Values have full relative accuracy
    as long as ``exp(-2 margin)`` does not underflow (margins below about 350) and the target is exact.
    """
    inner = np.einsum("itj,...ij->...it", error_directions(problem), residuals(problem, W))
    a = attention_weights(problem, W)
    return a * (inner - np.sum(a * inner, axis=-1, keepdims=True)) * rivals(problem)


def gradient(problem: AttentionProblem, W: Float, loss: str = "mse") -> Float:
    """Gradient of the loss at W, shape (..., d, d): -sum_{i, t != y} pi_{i,t} (k_y - k_t) q_i^T.

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
    pi = (mse_coefficients if loss == "mse" else cross_entropy_coefficients)(problem, W)
    per_sample = np.einsum("...it,ita->...ia", pi, key_differences(problem))
    return -np.einsum("...ia,ib->...ab", per_sample, problem.queries)


def error_alignments(problem: AttentionProblem, W: Float) -> Float:
    r"""h_{i,t}(w) of (A7), shape (..., n, K); zero at the match.

    .. math:: h_{i,t} = \sum_{s \ne y_i} \langle d_{i,t}, d_{i,s}\rangle \frac{a_{i,s}}{1 - a_{i,y_i}}.

    The weights of the rivals among themselves are a softmax over the rivals: formed as such, they do not
    degrade as 1 - a_y goes to 0.
    """
    log_a = np.where(rivals(problem), log_attention(problem, W), -np.inf)
    weights = np.exp(log_a - log_a.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    d = error_directions(problem)
    return np.einsum("itj,...ij->...it", d, np.einsum("...it,itj->...ij", weights, d))
