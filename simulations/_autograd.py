"""The reference: a textbook training loop, torch autograd, float64.

Read this one to know what the other engines compute. Its limit is the softmax backward pass: see
`marginlab.simulations._textbook`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from marginlab.simulations._packing import textbook_data
from marginlab.simulations._textbook import (
    cross_entropy_slip,
    gradient_slip,
    score_error,
    squared_error_slip,
)
from marginlab.simulations.attention import Problem
from marginlab.simulations.trajectory import TRUSTED, Descent, EngineOutput
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float


class Attention:
    """Scores, weights and losses of a problem as torch float64 tensors."""

    def __init__(self, problem: Problem) -> None:
        def tensor(array: Float) -> torch.Tensor:
            return torch.tensor(array, dtype=torch.float64)

        self.keys, self.queries = tensor(problem.keys), tensor(problem.queries)
        self.values, self.targets = tensor(problem.values), tensor(problem.targets)
        self.match = torch.tensor(problem.match, dtype=torch.int64)

    def scores(self, W: torch.Tensor) -> torch.Tensor:
        return torch.einsum("itj,ij->it", self.keys, self.queries @ W.T)  # (n, K)

    def residuals(self, scores: torch.Tensor) -> torch.Tensor:
        outputs = torch.einsum("it,itj->ij", torch.softmax(scores, dim=-1), self.values)
        return outputs - self.targets  # (n, d_v)

    def loss(self, W: torch.Tensor, loss: str) -> torch.Tensor:
        scores = self.scores(W)
        if loss == "cross-entropy":
            return cross_entropy(scores, self.match, reduction="sum")
        return 0.5 * (self.residuals(scores) ** 2).sum()


def gradient_autograd(model: Attention, W: torch.Tensor, loss: str) -> torch.Tensor:
    """Gradient of the loss at W, shape (d, d)."""
    W = W.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(model.loss(W, loss), W)
    return gradient


def relative_error_autograd(
    problem: Problem, model: Attention, W: torch.Tensor, gradient: torch.Tensor, loss: str
) -> float:
    """Bound on the relative error of `gradient_autograd` at W, inf if the gradient could be zero."""
    n, K, d, d_v = problem.shape
    scores = model.scores(W)
    a = torch.softmax(scores, dim=-1).numpy()
    rest = a.copy()
    rest[np.arange(n), a.argmax(axis=1)] = 0.0
    A = rest.sum(axis=1)
    *_, key_norm, R, V = textbook_data(problem)
    query_norm = np.linalg.norm(problem.queries, axis=1)
    e_s = score_error(d, key_norm, query_norm, float(torch.linalg.norm(W)))
    if loss == "cross-entropy":
        slip = cross_entropy_slip(A, e_s, K)
        g = np.abs(a - np.eye(K)[problem.match])
    else:
        r = model.residuals(scores).numpy()
        inner = np.einsum("itj,ij->it", problem.values, r)
        g = np.abs(a * (inner - (a * inner).sum(axis=1, keepdims=True)))
        slip = squared_error_slip(A, np.linalg.norm(r, axis=1), R, V, e_s, K, d_v)
    error = float(gradient_slip(slip, g.sum(axis=1), key_norm, query_norm, n, K).sum())
    norm = float(torch.linalg.norm(gradient))
    return error / (norm - error) if norm > error else np.inf


def descend_autograd(problem: Problem, config: Descent, W0: Float) -> EngineOutput:
    """The textbook loop."""
    model = Attention(problem)
    W = torch.tensor(W0, dtype=torch.float64)
    recorded, log_norms, bounds, gradient = [], [], [], W
    valid_until = None
    for s in range(config.steps + 1):
        gradient = gradient_autograd(model, W, config.loss)
        norm = float(torch.linalg.norm(gradient))
        if not np.isfinite(norm):
            raise InvalidInput(f"the gradient must stay finite in float64, it is {norm} at step {s}.")
        bound = relative_error_autograd(problem, model, W, gradient, config.loss)
        if valid_until is None and not bound <= TRUSTED:
            valid_until = s
        if len(recorded) < len(config.record) and config.record[len(recorded)] == s:
            recorded.append(W.numpy().copy())
            log_norms.append(np.log(norm) if norm > 0 else -np.inf)
            bounds.append(bound)
        if s == config.steps:
            break
        if config.rule == "gd":
            W = W - config.step * gradient
        elif config.rule == "loss-scaled":
            if norm > 0:  # the loss of a zero gradient may be zero
                W = W - config.step * gradient / float(model.loss(W, config.loss))
        elif norm > 0:
            size = config.step if config.rule == "normalised" else config.step / np.sqrt(s + 1)
            W = W - size * gradient / norm
    arrays = np.array(recorded), np.array(log_norms), np.array(bounds)
    return EngineOutput(*arrays, valid_until, gradient.numpy())


def descend_factors_autograd(
    problem: Problem, config: Descent, W_K0: Float, W_Q0: Float
) -> tuple[Float, Float, Float, Float, None]:
    """The textbook loop on the factors of W = W_K^T W_Q."""
    model = Attention(problem)
    factors = [torch.tensor(W, dtype=torch.float64) for W in (W_K0, W_Q0)]
    path_K, path_Q, log_norms = [], [], []
    for s in range(config.steps + 1):
        factors = [factor.detach().requires_grad_() for factor in factors]
        loss = model.loss(factors[0].T @ factors[1], config.loss)
        gradients = torch.autograd.grad(loss, factors)
        norm = float(torch.sqrt(sum(((g**2).sum() for g in gradients), torch.zeros(()))))
        if not np.isfinite(norm):
            raise InvalidInput(f"the gradient must stay finite in float64, it is {norm} at step {s}.")
        if len(path_K) < len(config.record) and config.record[len(path_K)] == s:
            path_K.append(factors[0].detach().numpy().copy())
            path_Q.append(factors[1].detach().numpy().copy())
            log_norms.append(np.log(norm) if norm > 0 else -np.inf)
        if s == config.steps or norm == 0:
            continue
        sizes = {
            "gd": 1.0,
            "normalised": 1 / norm,
            "normalised-sqrt": 1 / (norm * np.sqrt(s + 1)),
            "loss-scaled": 1 / float(loss.detach()),
        }
        factors = [
            (factor - config.step * sizes[config.rule] * gradient).detach()
            for factor, gradient in zip(factors, gradients, strict=True)
        ]
    missing = np.full(len(path_K), np.nan)
    return np.array(path_K), np.array(path_Q), np.array(log_norms), missing, None
