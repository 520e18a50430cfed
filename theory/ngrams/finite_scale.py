r"""Limits of the construction: how far its weights at a finite scale are from them, and the limit without BOS.

Derived; D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, Proposition 3.1, states that the network exists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams.construction import InductionNetwork
from marginlab.theory.ngrams.counting import checked_tokens
from marginlab.theory.validation import Float, Int, count, float_array


def finite_scale_bound(network: InductionNetwork, length: int) -> Float:
    r"""Bound on the total variation between each row of the network and its limit, (length + 1,); NaN as in `predict`.

    The limit is equation (8) with BOS, and `no_bos_boundary_law` without. The bound is that of exact arithmetic for
    every sequence of that length; rounding comes on top.

    Parameters
    ----------
    network : InductionNetwork
        As `induction_network` has made it.
    length : int >= 0
        T.

    Raises
    ------
    InvalidInput
        A length that is not an integer >= 0.

    Notes
    -----
    *Leak.* Up to position t a head of layer 1 puts on its target all but
    delta = max{min(t, k - 1) e^-mu, e^-mu + (t - 1) e^-2mu} (target BOS; target a token), and (t - 1) e^-2mu without
    BOS, where an average over the prefix is exact. Block 0, and every block of BOS, is exact.

    *Scores.* If q and k lie within leaks eta_q and eta_k of their targets, their product lies in
    [(1 - eta_q)(1 - eta_k) p, p + eta_q + eta_k] with p that of the targets. The query's block 0 does not leak, so no
    score of a token moves by more than eps = delta (2 ||beta||_1 - |beta_1|), for beta of any sign.

    *Softmax.* Scores that move within an interval of length w move a softmax by at most tanh(w / 4): the log-odds of a
    set move by at most w, and sigma(y + w) - sigma(y) is largest at y = -w / 2. Here w = 2 eps, so for a padded
    boundary TV <= tanh(eps / 2) <= tanh(delta ||beta||_1).

    *Interior.* A position s > k pays k Lambda pi(s) on top, pi(s) = 1 / (e^mu + 1 + (s - 1) e^-mu) being what each of
    its copies leaks to BOS. The payment c = k Lambda pi(t) of the last one is common to all: it moves the mass of BOS,
    whose log-odds are at most y = kappa - log(t - k) + sum_l max(-beta_l, 0), by at most sigma(y + c) - sigma(y) (y no
    larger than -c / 2, where that is largest). The rest widens w to 2 eps + k Lambda (pi(k + 1) - pi(t)).
    A position s <= k misses k - s + 1 lags and can match those below s; its weight is at most
    exp(sum_{l < s} max(beta_l, 0) + eps - (k - s + 1) Lambda (1 - delta)). Against it stand BOS, e^kappa, and t - k
    positions of at least exp(-sum_l max(-beta_l, 0) - eps - k Lambda pi(k + 1)) each. With rho the largest mass of
    s <= k that this allows, TV <= rho + (1 - rho) (sigma(y + c) - sigma(y) + tanh(w / 4)). Reading out, BOS as base,
    can only lessen it.

    References
    ----------
    Derived; D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, state the limit (Proposition 3.1).
    """
    T = count(length, "length", least=0)
    k, mu, beta = network.order, network.scale, network.beta
    t = np.arange(T + 1)
    others = np.maximum(t - 1, 0) * np.exp(-2 * mu)
    leak = others
    if network.bos:
        leak = np.maximum(np.minimum(t, k - 1) * np.exp(-mu), np.where(t > 0, np.exp(-mu) + others, 0.0))
    leak = np.minimum(leak, 1.0)
    size = np.abs(beta)
    eps = leak * (2 * size.sum() - size[0])
    if network.bos and network.boundary == "interior":
        first, last = _bos_leak(mu, k + 1), _bos_leak(mu, np.maximum(t, k + 1))
        paid, spread = (
            k * network.sink * last,
            k * network.sink * first * last * np.maximum(t - k - 1, 0) * np.exp(-mu),
        )
        moved = np.where(t > k, _bos_shift(network, t, paid) + np.tanh((2 * eps + spread) / 4), 0.0)
        bound = _early_mass(network, t, leak, eps, float(k * network.sink * first))
        bound += (1 - bound) * np.minimum(moved, 1.0)
    else:
        bound = np.tanh(eps / 2)
    bound[: network.first_row] = np.nan
    return bound


def no_bos_boundary_law(tokens: Any, vocab_size: int, beta: Any) -> Float:
    r"""Limit of the network without BOS as its scale grows, (T + 1, V); row 0 is NaN.

    Row t is proportional to sum_{s <= t} exp(sum_l beta_l f_{s,l}) [x_s = m]. A match f_{s,l} is [x_{s-l} = x_{t+1-l}]
    where both exist. A missing lag of position s (s <= l) stands for the average of x_1..x_s, and one of the query
    (t < l) for that of x_1..x_t; f is then the average number of agreements, a fraction.

    Parameters
    ----------
    tokens : (T,) array of int in 0..V-1
    vocab_size : int >= 1
    beta : (k,) array

    Raises
    ------
    InvalidInput
        Not integers, a token outside the vocabulary, or scales that are not finite numbers.

    Notes
    -----
    The rows t > k differ from the interior closed form by at most `boundary_mass` in total variation: the positions
    s > k have their scores, and the rest has that mass.

    References
    ----------
    Derived; D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, Proposition 3.1 without BOS.
    """
    array, weights = _boundary_weights(tokens, vocab_size, beta)
    law = weights @ np.eye(vocab_size)[array]
    law[0] = np.nan
    return law


def boundary_mass(tokens: Any, vocab_size: int, beta: Any) -> Float:
    """Attention that the rows of `no_bos_boundary_law` give to positions s <= k, (T + 1,); row 0 is NaN.

    Parameters, errors and source are those of `no_bos_boundary_law`.
    """
    _, weights = _boundary_weights(tokens, vocab_size, beta)
    mass = weights[:, : np.size(beta)].sum(axis=1)
    mass[0] = np.nan
    return mass


def _bos_leak(mu: float, s: Any) -> Any:
    """What a lag head at position s, with its lag inside the sequence, attends to BOS."""
    return np.exp(-mu) / (1 + np.exp(-mu) + (s - 1) * np.exp(-2 * mu))


def _bos_shift(network: InductionNetwork, t: Int, paid: Float) -> Float:
    """Largest change of the mass of BOS when every position s > k pays `paid`."""
    positions = np.maximum(t - network.order, 1)  # rows without any are not asked for
    odds = network.kappa - np.log(positions) + np.maximum(-network.beta, 0).sum()
    odds = np.minimum(odds, -paid / 2)
    return expit(odds + paid) * expit(-odds) * -np.expm1(-paid)  # sigma(odds + paid) - sigma(odds)


def _early_mass(network: InductionNetwork, t: Int, leak: Float, eps: Float, paid: float) -> Float:
    """Largest attention on positions s <= k that the scores of an interior boundary allow, one number per row."""
    k, beta = network.order, network.beta
    s = np.arange(1, k + 1)
    matched = np.concatenate([[0.0], np.cumsum(np.maximum(beta, 0))[:-1]])
    early = matched + eps[:, None] - (k - s + 1) * network.sink * (1 - leak[:, None])
    early = np.logaddexp.reduce(np.where(s <= t[:, None], early, -np.inf), axis=1)
    with np.errstate(divide="ignore"):
        late = np.log(np.maximum(t - k, 0)) - np.maximum(-beta, 0).sum() - eps - paid
    rest = np.logaddexp(network.kappa, late)
    known = rest > -np.inf  # the other rows are NaN
    return np.where(known, expit(early - np.where(known, rest, 0.0)), 1.0)


def _boundary_weights(tokens: Any, vocab_size: Any, beta: Any) -> tuple[np.ndarray, Float]:
    """Tokens, and the weights (T + 1, T) of positions 1..T after each prefix; row 0 is zero."""
    V = count(vocab_size, "vocab_size")
    array = checked_tokens(tokens, V)
    scales = float_array(beta, "beta", ndim=1)
    if len(scales) == 0:
        raise InvalidInput("beta must hold one scale per lag, got none.")
    T = len(array)
    one_hot = np.eye(V)[array]
    prefix = np.cumsum(one_hot, axis=0) / np.arange(1, T + 1)[:, None]
    scores = np.zeros((T + 1, T))
    for lag, b in enumerate(scales, start=1):
        keys = np.concatenate([prefix[:lag], one_hot[: max(T - lag, 0)]])[:T]
        for t in range(1, T + 1):
            match = keys[:t, array[t - lag]] if lag <= t else keys[:t] @ prefix[t - 1]
            scores[t, :t] += b * match
    scores[np.arange(T) >= np.arange(T + 1)[:, None]] = -np.inf
    weights = np.zeros((T + 1, T))
    if T:
        top = scores[1:].max(axis=1, keepdims=True)
        weights[1:] = np.exp(scores[1:] - top)
        weights[1:] /= weights[1:].sum(axis=1, keepdims=True)
    return array, weights
