"""Margins and attention weights of the minimal model, as functions of margin differences only."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from marginlab.theory.validation import Float, Int


class AttentionProblem(Protocol):
    """One layer of attention with a merged W: what `marginlab.simulations.attention.Problem` provides.

    Arrays ``keys (n, K, d)``, ``queries (n, d)``, ``values (n, K, d_v)``, ``match (n,)`` and
    ``targets (n, d_v)``; K is T - 1 in the paper, and t runs over the keys, the match y_i included.
    """

    @property
    def keys(self) -> Float: ...
    @property
    def queries(self) -> Float: ...
    @property
    def values(self) -> Float: ...
    @property
    def match(self) -> Int: ...
    @property
    def targets(self) -> Float: ...


def key_differences(problem: AttentionProblem) -> Float:
    """k_y - k_t, shape (n, K, d); zero at the match. Eq. (14): x~_{i,t} = vec((k_y - k_t) q_i^T)."""
    rows = np.arange(len(problem.keys))
    return problem.keys[rows, problem.match][:, None] - problem.keys


def rivals(problem: AttentionProblem) -> np.ndarray:
    """(n, K) mask of the keys other than the match."""
    return np.arange(problem.keys.shape[1]) != problem.match[:, None]


def margins(problem: AttentionProblem, W: Float) -> Float:
    """m_{i,t}(W) = (k_y - k_t)^T W q_i of eq. (10), shape (..., n, K); zero at the match.

    Parameters
    ----------
    problem : AttentionProblem
    W : (..., d, d) array
        Leading axes are kept.
    """
    scored = np.einsum("...ab,ib->...ia", W, problem.queries)
    return np.einsum("ita,...ia->...it", key_differences(problem), scored)


def log_sum_exp(x: Float, *, keepdims: bool = False) -> Float:
    """log sum exp over the last axis; -inf entries are absent terms, and nothing but them gives -inf.

    Written out because runs call it at each recorded matrix, and SciPy's costs ten times as much on small
    arrays.
    """
    largest = x.max(axis=-1, keepdims=True)
    base = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(divide="ignore"):
        total = base + np.log(np.sum(np.exp(x - base), axis=-1, keepdims=True))
    return total if keepdims else total[..., 0]


def log_attention(problem: AttentionProblem, W: Float) -> Float:
    """log a_{i,t} = -m_{i,t} - log(1 + S_i), shape (..., n, K), with S_i = sum_{s != y_i} exp(-m_{i,s}).

    The sum in eq. (15) of the paper runs over s = 2..T; it must run over the keys other than the match.
    """
    m = margins(problem, W)
    return -m - log_sum_exp(-m, keepdims=True)


def attention_weights(problem: AttentionProblem, W: Float) -> Float:
    """Attention weights a_{i,t}, shape (..., n, K)."""
    return np.exp(log_attention(problem, W))


def min_margin(problem: AttentionProblem, W: Float) -> Float:
    """min over i and t != y_i of m_{i,t}(W), shape (...)."""
    return np.where(rivals(problem), margins(problem, W), np.inf).min(axis=(-2, -1))
