r"""Predictors of match-and-copy: the posterior mean, and the simple rules that it is compared with.

All predict the target from the context and the query, so that their error can be compared at equal information. The
posterior mean is softmax attention whose scores carry a key-norm bias: for C = rho I and token coordinates of variance
s^2,

.. math:: \hat v = W_V \sum_{t=1}^{T-1} \pi_t e_{t+1}, \qquad
          \pi = \mathrm{softmax}_t \frac{\rho\, e_t^\top e - \frac12 \rho^2 \|e_t\|^2}{s^2 (1 - \rho^2)} .

Gonon, Cordonnier, Boumal, arXiv 2602.07562v1, Definition 1.1; derived in docs/task.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.sampling import MatchCopyData
from marginlab.theory.match_copy.task import MatchCopyTask
from marginlab.theory.validation import Float, Int, shaped_array

_EPS = float(np.finfo(np.float64).eps)


def bayes_predict(task: MatchCopyTask, data: MatchCopyData) -> tuple[Float, Float]:
    """Posterior-mean prediction (n, d_out) and posterior of the match (n, T - 1).

    Parameters
    ----------
    task : MatchCopyTask
        The law that is believed; sizes, W_V and data must fit.
    data : MatchCopyData

    Raises
    ------
    InvalidInput
        Data of other sizes or another W_V, or a query that no token can have led to (I - C C^T is singular, and the
        query has a part that it does not allow).

    Notes
    -----
    Given the context, token t and the query are the only ones that depend on the match being t, with
    e - C e_t ~ N(0, s^2 (I - C C^T)); the prior is uniform, and the tokens' own law cancels. In directions in which
    I - C C^T is zero (all of them for an exact match) the query must equal C e_t to rounding.
    """
    _fitting(task, data)
    log_posterior = match_log_likelihoods(task, data)
    largest = log_posterior.max(axis=1, keepdims=True)
    if np.isneginf(largest).any():
        i = int(np.argmax(np.isneginf(largest[:, 0])))
        raise InvalidInput(
            f"the query of sample {i} must be C times a token where I - C C^T is zero; it is not."
        )
    posterior = np.exp(log_posterior - largest)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return _copied(data, posterior), posterior


def match_log_likelihoods(task: MatchCopyTask, data: MatchCopyData) -> Float:
    """log p(query | context, match = t) up to a constant, shape (n, T - 1); -inf where it is impossible."""
    C, std = task.match_matrix, task.coordinate_std
    variances, axes = np.linalg.eigh(np.eye(task.d_in) - C @ C.T)
    # Variances that are rounding of I - C C^T are zeros; the sampler's own clipping leaves noise of their root.
    least = 64 * task.d_in * _EPS
    free = variances > least
    gaps = (data.query[:, None] - data.tokens[:, :-1] @ C.T) @ axes  # (n, T - 1, d)
    distance = np.sum((gaps[..., free] / std) ** 2 / variances[free], axis=-1)
    allowed = 10 * np.sqrt(task.d_in * least) * std
    possible = np.all(np.abs(gaps[..., ~free]) <= allowed, axis=-1)
    return np.where(possible, -0.5 * distance, -np.inf)


def zero_predict(data: MatchCopyData) -> Float:
    """The mean of the target: zeros, shape (n, d_out)."""
    return np.zeros_like(data.target)


def uniform_copy_predict(data: MatchCopyData) -> Float:
    """W_V times the average of e_2..e_T: the best that is possible without a match, shape (n, d_out)."""
    n, T, _ = data.tokens.shape
    return _copied(data, np.full((n, T - 1), 1 / (T - 1)))


def hard_match_predict(task: MatchCopyTask, data: MatchCopyData) -> tuple[Float, Int]:
    """Match, then copy: W_V e_{t+1} with the largest overlap e_t^T C e; prediction (n, d_out) and position (n,)."""
    _fitting(task, data)
    overlap = np.einsum("itj,ij->it", data.tokens[:, :-1] @ task.match_matrix, data.query)
    position = overlap.argmax(axis=1)
    return _copied(data, np.eye(overlap.shape[1])[position]), position.astype(np.intp)


def attention_predict(data: MatchCopyData, W: ArrayLike) -> Float:
    """Softmax attention with the bilinear score e_t^T W e over t = 1..T-1, copying e_{t+1}: shape (n, d_out).

    Raises
    ------
    InvalidInput
        W is not a (d_in, d_in) array of finite numbers.
    """
    d = data.tokens.shape[2]
    scores = np.einsum("itj,ij->it", data.tokens[:, :-1], data.query @ shaped_array(W, "W", (d, d)).T)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return _copied(data, weights / weights.sum(axis=1, keepdims=True))


def best_attention_scale(data: MatchCopyData) -> float:
    """The beta for which W = beta I has the least error on these data, to three digits.

    The error has one minimum in log beta on all data seen: it falls from that of uniform copying, and rises to that of
    the hard match.
    """
    from scipy.optimize import minimize_scalar

    d = data.tokens.shape[2]
    # Scores of order one up to thousands, whatever the size of the tokens.
    unit = 1 / np.mean(np.sum(data.query**2, axis=1))

    def error(log_scale: float) -> float:
        prediction = attention_predict(data, unit * np.exp(log_scale) * np.eye(d))
        return float(squared_errors(prediction, data).mean())

    found = minimize_scalar(error, bounds=(-2.0, 8.0), method="bounded", options={"xatol": 1e-3})
    return float(unit * np.exp(found.x))


def squared_errors(prediction: ArrayLike, data: MatchCopyData) -> Float:
    """||v - prediction||^2 / d_out of each sample, shape (n,): eq. (3) is their mean.

    Raises
    ------
    InvalidInput
        A prediction of another shape, or with NaN.
    """
    guess = shaped_array(prediction, "prediction", data.target.shape)
    return np.mean((data.target - guess) ** 2, axis=1)


def signal_variance(task: MatchCopyTask) -> float:
    """E ||W_V e||^2 / d_out given W_V: s^2 ||W_V||_F^2 / d_out; about sigma_token^2 for a Gaussian W_V."""
    return task.coordinate_std**2 * float(np.sum(task.copy_matrix**2)) / task.d_out


def zero_error(task: MatchCopyTask) -> float:
    """Expected error of zeros, given W_V: signal variance + noise^2."""
    return signal_variance(task) + task.noise**2


def uniform_copy_error(task: MatchCopyTask) -> float:
    """Expected error of `uniform_copy_predict`, given W_V: (1 - 1/(T - 1)) signal variance + noise^2."""
    return (1 - 1 / (task.T - 1)) * signal_variance(task) + task.noise**2


def posterior_variances(data: MatchCopyData, posterior: Float) -> Float:
    """sum_t pi_t ||W_V e_{t+1} - v_hat||^2 / d_out of each sample, shape (n,).

    The posterior mean's expected error is noise^2 plus the mean of this: what the match's own uncertainty costs.
    """
    copied = data.tokens[:, 1:] @ data.W_V.T
    mean = np.einsum("it,itj->ij", posterior, copied)
    return np.einsum("it,it->i", posterior, np.sum((copied - mean[:, None]) ** 2, axis=2)) / copied.shape[2]


def _copied(data: MatchCopyData, weights: Float) -> Float:
    return np.einsum("it,itj->ij", weights, data.tokens[:, 1:]) @ data.W_V.T


def _fitting(task: MatchCopyTask, data: MatchCopyData) -> None:
    found = (*data.tokens.shape[1:], data.target.shape[1])
    wanted = (task.T, task.d_in, task.d_out)
    if found != wanted:
        raise InvalidInput(f"data must have the task's sizes (T, d_in, d_out) = {wanted}, got {found}.")
    if not np.array_equal(task.copy_matrix, data.W_V):
        raise InvalidInput("data must have the task's W_V: copy and copy_seed differ.")
    shaped_array(data.tokens, "tokens", data.tokens.shape)
    shaped_array(data.query, "query", (len(data), task.d_in))
