r"""Bayes predictor of independent Dirichlet rows: add-alpha, its evidence, its risk.

Given the first k tokens, the evidence of rows :math:`P_u \sim \mathrm{Dir}(\alpha 1)` factorises over contexts,

.. math:: p(x_{k+1:T} \mid x_{1:k}) = \prod_u \frac{\Gamma(\alpha V)}{\Gamma(\alpha V + N_u)}
          \prod_m \frac{\Gamma(\alpha + N_u(m))}{\Gamma(\alpha)},

so that the next token has probability (N_u(m) + alpha) / (N_u + alpha V) after the context u. This is exact if the law
of the first k tokens does not depend on the rows; `stationary_start_mean` is the exact rule of a case where it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.markov import context_codes
from marginlab.theory.ngrams.task import LEAST_CONCENTRATION
from marginlab.theory.validation import Float, Int, count, float_array, index_array, positive

#: Largest concentration: sums of a few of them, and their logarithms, are within the range of float64.
MOST_CONCENTRATION = 1e100

#: Entries of a table of counts (8 bytes each), and cells of `stationary_start_mean`, above which they are refused.
MOST_COUNTS, MOST_CELLS = 2**28, 2**26


def concentration(value: Any, name: str) -> float:
    """`value` as a float in 1e-100..1e100.

    Raises
    ------
    InvalidInput
        Anything else.
    """
    number = positive(value, name)
    if not LEAST_CONCENTRATION <= number <= MOST_CONCENTRATION:
        raise InvalidInput(
            f"{name} must lie between {LEAST_CONCENTRATION} and {MOST_CONCENTRATION}, got {number}."
        )
    return number


def checked_counts(counts: Any, *, ndim: int, name: str = "counts") -> Int:
    """Counts as intp with at least `ndim` dimensions and V >= 2 entries along the last.

    Raises
    ------
    InvalidInput
        Not integers, too few dimensions, an empty axis, fewer than two symbols, or a count below 0 or above 2^53.
    """
    array = np.asarray(counts)
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must hold integers, got dtype {array.dtype}.")
    if array.ndim < ndim or array.size == 0 or array.shape[-1] < 2:
        raise InvalidInput(
            f"{name} must have at least {ndim} dimension(s), no empty axis and at least 2 symbols along the last, "
            f"got shape {array.shape}."
        )
    bad = (array < 0) | (array > 2**53)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidInput(f"{name} must lie in 0..2^53, got {array[where]} at index {where}.")
    return np.ascontiguousarray(array, dtype=np.intp)


def transition_counts(tokens: ArrayLike, vocab_size: int, order: int) -> Int:
    """How often each symbol follows each context of length k.

    Parameters
    ----------
    tokens : (T,) or (n, T) array of int, T >= k
        Oldest first, in 0..V-1.
    vocab_size : int >= 2
        V.
    order : int >= 0
        k.

    Returns
    -------
    (V^k, V) or (n, V^k, V) array of int
        Entry [u, m]: number of s = k+1..T at which the token is m and the context is u, lag 1 the least significant
        digit of u. Their sum is T - k.

    Raises
    ------
    InvalidInput
        Tokens of another shape or outside the vocabulary, fewer tokens than k, or a table of more than `MOST_COUNTS`.
    """
    codes = context_codes(tokens, vocab_size, order)
    array = np.asarray(tokens)
    if array.ndim > 2 or array.size == 0:
        raise InvalidInput(f"tokens must have shape (T,) or (n, T) and not be empty, got {array.shape}.")
    array, V, k = array.astype(np.intp), int(vocab_size), int(order)
    n, rows = (1 if array.ndim == 1 else len(array)), V**k
    if n * rows * V > MOST_COUNTS:
        raise InvalidInput(
            f"the table of counts must have at most {MOST_COUNTS} entries, got n V^(k+1) = {n} * {V}^{k + 1}."
        )
    cells = (codes[..., :-1] * V + array[..., k:]).reshape(n, -1) + rows * V * np.arange(n)[:, None]
    found = np.bincount(cells.ravel(), minlength=n * rows * V).astype(np.intp)
    return found.reshape(*array.shape[:-1], rows, V)


def log_rising(a: ArrayLike, n: ArrayLike) -> Float:
    r"""log of the rising factorial a (a + 1) .. (a + n - 1) = Gamma(a + n) / Gamma(a), broadcast.

    Parameters
    ----------
    a : array-like of float > 0
    n : array-like of int >= 0
        Neither is checked.

    Notes
    -----
    From a = 10 on by Stirling's series for the ratio, in which nothing of the size of log Gamma(a) cancels.
    """
    a, n = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(n, dtype=np.float64))
    large = a >= 10
    x = np.where(large, a, 10.0)
    series = (x - 0.5) * np.log1p(n / x) - n + n * np.log(x + n) + _stirling(x + n) - _stirling(x)
    y = np.where(large, 1.0, a)
    return np.where(n == 0, 0.0, np.where(large, series, special.gammaln(y + n) - special.gammaln(y)))


def _stirling(x: Float) -> Float:
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, within 2e-14 from x = 10 on."""
    i = 1 / x
    s = i * i
    return i * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188))))


def log_evidence(counts: ArrayLike, alpha: float) -> Float:
    r"""log p(x_{k+1:T} | x_{1:k}) of independent Dirichlet rows.

    Parameters
    ----------
    counts : (..., rows, V) array of int >= 0
        As of `transition_counts`; rows that do not occur contribute 0.
    alpha : float in 1e-100..1e100

    Returns
    -------
    (...) array

    Raises
    ------
    InvalidInput
        A rule above is broken.

    References
    ----------
    Derived: the Dirichlet-multinomial law of each row.
    """
    array, alpha = checked_counts(counts, ndim=2), concentration(alpha, "alpha")
    symbols = log_rising(alpha, array).sum(axis=(-2, -1))
    return symbols - log_rising(alpha * array.shape[-1], array.sum(axis=-1)).sum(axis=-1)


def posterior_mean(counts: ArrayLike, alpha: float) -> Float:
    """Add-alpha, (N(m) + alpha) / (N + alpha V): the mean of a Dirichlet row given its counts, (..., V).

    Parameters
    ----------
    counts : (..., V) array of int >= 0
        Counts of what followed one context.
    alpha : float in 1e-100..1e100

    Raises
    ------
    InvalidInput
        A rule above is broken.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, eq. (10): what the head with BOS tends to.
    """
    a = checked_counts(counts, ndim=1) + concentration(alpha, "alpha")
    return a / a.sum(axis=-1, keepdims=True)


def bayes_risk(counts: ArrayLike, alpha: float) -> Float:
    r"""E[KL(P || posterior mean) | counts] of a Dirichlet row: the least expected loss given the data.

    .. math:: \sum_m \frac{a_m}{A} \left[\psi(a_m + 1) - \psi(A + 1) - \ln\frac{a_m}{A}\right],
              \qquad a = N + \alpha, \; A = \sum_m a_m .

    Parameters
    ----------
    counts : (..., V) array of int >= 0
    alpha : float in 1e-100..1e100

    Returns
    -------
    (...) array of floats >= 0, in nats

    Raises
    ------
    InvalidInput
        A rule above is broken.

    Notes
    -----
    psi(a + 1) - ln a comes from its asymptotic series for large a, so that the value, about (V - 1) / (2 A), keeps its
    digits at any count. The rounding error is below 1e-13 (V + 1) / A.

    References
    ----------
    Derived, from E[p ln p] under a Dirichlet law.
    """
    a: Float = checked_counts(counts, ndim=1).astype(np.float64) + concentration(alpha, "alpha")
    total = a.sum(axis=-1, keepdims=True)
    risk = np.sum(a / total * (_digamma_excess(a) - _digamma_excess(total)), axis=-1)
    return np.maximum(risk, 0.0)


def _digamma_excess(a: Float) -> Float:
    """psi(a + 1) - ln a, which falls like 1 / (2 a)."""
    large = a >= 16
    i = 1 / np.where(large, a, 16.0)
    s = i * i
    tail = s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s / 132))))
    y = np.where(large, 1.0, a)
    return np.where(large, i / 2 - tail, special.digamma(y + 1) - np.log(y))


def excess_risk(counts: ArrayLike, alpha: float, estimate: ArrayLike) -> Float:
    r"""KL(posterior mean || estimate): what an estimate costs beyond `bayes_risk`, in nats.

    E[KL(P || q) | counts] = E[KL(P || p) | counts] + KL(p || q), p the posterior mean.

    Parameters
    ----------
    counts : (..., V) array of int >= 0
    alpha : float in 1e-100..1e100
    estimate : (..., V) array of laws
        Broadcast against `counts`; inf where an entry is 0.

    Returns
    -------
    (...) array
        With a rounding error of a few 1e-16, absolute.

    Raises
    ------
    InvalidInput
        A rule above is broken, shapes that do not fit, or laws that do not sum to 1 within 1e-12.

    References
    ----------
    Derived.
    """
    mean, guess = posterior_mean(counts, alpha), float_array(estimate, "estimate")
    if guess.ndim == 0 or guess.shape[-1] != mean.shape[-1]:
        raise InvalidInput(
            f"estimate must have {mean.shape[-1]} entries along the last axis, got {guess.shape}."
        )
    if (guess < 0).any() or (np.abs(guess.sum(axis=-1) - 1) > 1e-12).any():
        raise InvalidInput("estimate must hold laws, entries >= 0 that sum to 1 along the last axis.")
    try:
        mean, guess = np.broadcast_arrays(mean, guess)
    except ValueError:
        raise InvalidInput(f"estimate must fit counts of shape {mean.shape}, got {guess.shape}.") from None
    return special.kl_div(mean, guess).sum(axis=-1)


def stationary_start_mean(counts: ArrayLike, first_token: int, alpha: float) -> Float:
    r"""Posterior mean of both rows of a two-state chain (k = 1) whose first token is from its stationary law.

    With a = P(1 | 0) and b = P(0 | 1) the first token has probability b / (a + b) or a / (a + b), so that the rows are
    dependent given the data, and add-alpha is not their mean.

    Parameters
    ----------
    counts : (2, 2) array of int >= 0
        Transitions, as of `transition_counts`.
    first_token : 0 or 1
        x_1.
    alpha : float in 1e-100..1e100

    Returns
    -------
    (2, 2) array
        Row u is the law of the next token after u.

    Raises
    ------
    InvalidInput
        A rule above is broken.
    MethodUnavailable
        An alpha so small (or counts so far apart) that the rule needs more than `MOST_CELLS` cells.

    Notes
    -----
    Trapezoidal rule in the logits of a and b, in which the integrand is analytic; relative error below 1e-12.

    References
    ----------
    Derived.
    """
    array, alpha = checked_counts(counts, ndim=2), concentration(alpha, "alpha")
    if array.shape != (2, 2):
        raise InvalidInput(f"counts must have shape (2, 2), got {array.shape}.")
    first = int(
        index_array([count(first_token, "first_token", least=0)], "first_token", length=1, below=2)[0]
    )
    x, weight_a = _logit_rule(array[0, 1] + alpha, array[0, 0] + alpha)
    y, weight_b = _logit_rule(array[1, 0] + alpha, array[1, 1] + alpha)
    if len(x) * len(y) > MOST_CELLS:
        raise MethodUnavailable(
            f"the rule needs {len(x)} x {len(y)} cells, more than {MOST_CELLS}, for alpha = {alpha}: "
            "sample the posterior instead."
        )
    log_a, log_b = special.log_expit(x), special.log_expit(y)
    sign = 1.0 if first == 0 else -1.0
    parts_a = np.stack([weight_a, weight_a * special.expit(-x), weight_a * special.expit(x)])
    parts_b = np.stack([weight_b, weight_b * special.expit(y), weight_b * special.expit(-y)])
    sums = np.zeros((3, 3))
    for block in range(0, len(x), 256):
        rows = slice(block, block + 256)
        start = special.expit(sign * (log_b - log_a[rows, None]))  # b / (a + b) or a / (a + b)
        sums += parts_a[:, rows] @ start @ parts_b.T
    means = np.stack([sums[1:, 0], sums[0, 1:]])
    return means / means.sum(axis=1, keepdims=True)


def _logit_rule(success: float, failure: float) -> tuple[Float, Float]:
    """Nodes and weights for Beta(success, failure) in the logit, up to a constant; tails below e^-60 are cut."""

    def log_density(x: Any) -> Any:
        return success * special.log_expit(x) + failure * special.log_expit(-x)

    mode = float(np.log(success) - np.log(failure))
    peak = log_density(mode)
    deviation = float(np.sqrt(1 / success + 1 / failure))
    ends = []
    for side in (-1, 1):
        far = deviation
        while log_density(mode + side * far) > peak - 60:
            far *= 1.25
        ends.append(far)
    step = min(0.25, deviation / 2)
    left, right = (min(int(np.ceil(end / step)), MOST_CELLS) for end in ends)
    x: Float = mode + step * np.arange(-left, right + 1, dtype=np.float64)
    return x, np.exp(log_density(x) - peak)
