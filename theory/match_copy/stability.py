"""Quantities of the stable-trajectory assumptions (A8) and (A9), as functions of W and the separator."""

from __future__ import annotations

import numpy as np

from marginlab.theory.match_copy.attention import AttentionProblem, log_sum_exp, margins, rivals
from marginlab.theory.match_copy.correction import margin_correction
from marginlab.theory.match_copy.gradient import error_alignments
from marginlab.theory.match_copy.losses import error_directions
from marginlab.theory.validation import Float, Int


def support_mask(problem: AttentionProblem, active: Int) -> np.ndarray:
    """(n, K) mask of the tokens whose constraint supports the margin.

    Parameters
    ----------
    problem : AttentionProblem
    active : (k,) array of int
        Indices into ``problem.constraints()``: the rivals sample by sample, in order of t.
    """
    mask = rivals(problem)
    support = np.zeros(mask.sum(), dtype=bool)
    support[active] = True
    spread = np.zeros_like(mask)
    spread[mask] = support
    return spread


def support_domination(problem: AttentionProblem, W: Float, active: Int) -> Float:
    """Ratio of the two sums of (A9) for each sample, shape (..., n).

    sum over rivals off the support of exp(-m_{i,s}), divided by the same sum on the support; inf for a sample
    with rivals and no support, 0 for one whose rivals all support. (A9) asks for a g with
    sum_tau g(tau)/tau < infinity above the ratio of *every* sample, and so cannot hold where a sample has no
    support: the right-hand side of its inequality is 0.
    """
    m = margins(problem, W)
    support = support_mask(problem, active)
    rest = rivals(problem) & ~support
    with np.errstate(over="ignore"):
        return np.exp(
            log_sum_exp(np.where(rest, -m, -np.inf)) - log_sum_exp(np.where(support, -m, _LOG_TINY))
        ) * np.where(rest.any(axis=-1), 1.0, 0.0)


#: Stands for log 0 in a denominator: exp(m) / exp(_LOG_TINY) overflows to inf for every margin that float64
#: descent can reach, without the undefined inf - inf.
_LOG_TINY = -1e300


def correction_margins(
    problem: AttentionProblem, active: Int, dual: Float, step: float
) -> tuple[np.ndarray, Float]:
    r"""Limits of m_{i,t}(tau) - (1/2) log tau on the support: -log p, shape (n, K), zero elsewhere.

    p_i solves p o (D_i p) = alpha_i / (2 step) on the support of sample i (`margin_correction`), which is the
    correction vector of Definition E.1 with the limit of h eliminated.

    Returns
    -------
    (n, K) mask of the support, (n, K) array

    Raises
    ------
    NoFixedPoint
        The error directions of some sample are not strictly copositive.
    """
    support = support_mask(problem, active)
    weights = np.zeros(support.shape)
    weights[rivals(problem)] = dual
    d = error_directions(problem)
    offsets = np.zeros(support.shape)
    for i in np.flatnonzero(support.any(axis=1)):
        on = support[i]
        gram = d[i, on] @ d[i, on].T
        offsets[i, on] = -np.log(margin_correction((gram + gram.T) / 2, weights[i, on] / (2 * step)))
    return support, offsets


def cross_term_fraction(
    problem: AttentionProblem, W: Float, tau: Float | Int, active: Int, dual: Float, step: float
) -> Float:
    r"""Fraction that (A8) bounds by epsilon < 1/2, shape (R,).

    With u_{i,t} = m_{i,t}(W) - (1/2) log tau + log p_{i,t}, U = u_t + u_s and H = h_t u_t + h_s u_s, the
    share of sum p_t p_s |H| |e^{-U} - 1| over pairs t != s of supporting tokens of one sample that is carried
    by pairs with sign(H) != sign(U). It is 0 where there are no such pairs.

    Parameters
    ----------
    problem : AttentionProblem
    W : (R, d, d) array
    tau : (R,) array > 0
        Steps of gradient descent at which W was recorded.
    active, dual : the separator's active set (k,) and dual weights (N,)
    step : float > 0
        Step size of the run.
    """
    support, offsets = correction_margins(problem, active, dual, step)
    half_log = 0.5 * np.log(np.asarray(tau, dtype=np.float64))[:, None, None]
    u = np.where(support, margins(problem, W) - half_log - offsets, 0.0)
    hu = error_alignments(problem, W) * u
    p = np.where(support, np.exp(-offsets), 0.0)
    K = support.shape[1]
    pairs = support[:, :, None] & support[:, None, :] & ~np.eye(K, dtype=bool)
    U = u[..., :, None] + u[..., None, :]
    H = hu[..., :, None] + hu[..., None, :]
    weight = pairs * (p[:, :, None] * p[:, None, :]) * np.abs(H) * np.abs(np.expm1(-U))
    total = weight.sum(axis=(1, 2, 3))
    wrong = np.where(np.sign(H) != np.sign(U), weight, 0.0).sum(axis=(1, 2, 3))
    return np.divide(wrong, total, out=np.zeros_like(total), where=total > 0)
