r"""Laws of large times: constants of loss and gradient, the offset of the weights, the angle to the separator.

For a loss whose tail is e^{-kappa m} in the margins (kappa = 2 for the squared error, 1 for the cross-entropy) and
steps of size eta, with the multipliers alpha of the max-margin separator w_hat,

.. math:: w(\tau) = \tfrac1\kappa \log(\eta\tau)\, \hat w + w_\infty + o(1), \qquad
          \tau L \to \frac{\|\hat w\|^2}{\kappa^2 \eta}, \qquad
          \tau^2 \|\nabla L\|^2 \to \frac{\|\hat w\|^2}{\kappa^2 \eta^2} .

Time of gradient flow is the same with eta = 1. These laws are derived from the theorems of Gonon, Cordonnier and
Boumal (arXiv 2602.07562v1), which state the first term alone; docs/asymptotics.md holds the derivations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.attention import AttentionProblem, rivals
from marginlab.theory.match_copy.losses import LOSSES, error_directions
from marginlab.theory.match_copy.stability import correction_margins, support_mask
from marginlab.theory.validation import Float, Int, one_of, positive

#: Exponent of the loss's tail in the margin: the squared error is quadratic in the weights e^{-m} of the rivals.
TAILS: dict[str, float] = {"mse": 2.0, "cross-entropy": 1.0}


def norm_slope(separator_norm: float, tail: float) -> float:
    """Slope of ||w|| against log tau: ||w_hat|| / kappa."""
    return positive(separator_norm, "separator_norm") / positive(tail, "tail")


def loss_constant(separator_norm: float, tail: float, step: float) -> float:
    """Limit of tau L: ||w_hat||^2 / (kappa^2 eta)."""
    return norm_slope(separator_norm, tail) ** 2 / positive(step, "step")


def squared_gradient_constant(separator_norm: float, tail: float, step: float) -> float:
    """Limit of tau^2 ||grad L||^2: ||w_hat||^2 / (kappa^2 eta^2)."""
    return norm_slope(separator_norm, tail) ** 2 / positive(step, "step") ** 2


def limit_margins(
    problem: AttentionProblem, active: Int, dual: Float, *, loss: str = "mse", step: float = 1.0
) -> Float:
    r"""Limits of m_{i,t} - (1/kappa) log tau on the support, shape (k,), in the order of `active` sorted.

    -log p with p o (D p) = alpha / (2 eta) for the squared error, -log(alpha / eta) for the cross-entropy.

    Raises
    ------
    InvalidInput
        Another loss, or a step that is not positive.
    NoFixedPoint
        The error directions of some sample are not strictly copositive.
    """
    one_of(loss, "loss", LOSSES)
    step = positive(step, "step")
    if loss == "cross-entropy":
        return np.log(step / dual[np.sort(active)])
    support, offsets = correction_margins(problem, active, dual, step)
    return offsets[support]


def limit_alignments(problem: AttentionProblem, active: Int, dual: Float) -> tuple[np.ndarray, Float]:
    r"""h^infinity of (A7) and the rivals where it is known, both of shape (n, K): (D p)_t / sum_s p_s.

    The limit exists for every rival t of a sample with a supporting constraint; s runs over the support. It does
    not depend on the step, which scales p.

    Returns
    -------
    (n, K) mask, (n, K) array, zero off the mask

    Raises
    ------
    NoFixedPoint
        The error directions of some sample are not strictly copositive.
    """
    support, offsets = correction_margins(problem, active, dual, 1.0)
    p = np.where(support, np.exp(-offsets), 0.0)
    known = rivals(problem) & support.any(axis=1, keepdims=True)
    d = error_directions(problem)
    mean = np.einsum("is,isj->ij", p, d) / np.where(support.any(axis=1), p.sum(axis=1), 1.0)[:, None]
    return known, np.where(known, np.einsum("itj,ij->it", d, mean), 0.0)


def support_rates(
    problem: AttentionProblem, gram: Float, active: Int, dual: Float, *, loss: str = "mse"
) -> Float:
    r"""Powers of tau with which margins on the support approach their limits, shape (k,), increasing.

    Linearised in log tau the deviations u from the limits follow du / d log tau = -(1/kappa) K M u, with K the Gram
    matrix of the supporting constraints and M = diag(alpha) + 2 eta diag(p) D diag(p) (squared error; eta drops out)
    or M = diag(alpha) (cross-entropy). K M 1 = kappa 1: one of the rates is 1, a shift of time.

    Parameters
    ----------
    problem : AttentionProblem
    gram : (N, N) array
        Gram matrix of all constraints, ``problem.constraints().gram()``.
    active, dual : the separator's active set (k,) and dual weights (N,)
    loss : "mse" or "cross-entropy"

    Raises
    ------
    InvalidInput
        Another loss, or a Gram matrix of the support that is not positive definite (A2 fails).
    NoFixedPoint
        The error directions of some sample are not strictly copositive.
    """
    one_of(loss, "loss", LOSSES)
    active = np.sort(active)
    M = np.diag(dual[active])
    if loss == "mse":
        support, offsets = correction_margins(problem, active, dual, 1.0)
        sample, p = np.nonzero(support)[0], np.exp(-offsets[support])
        d = error_directions(problem)[support] * p[:, None]
        M = M + 2 * (d @ d.T) * (sample[:, None] == sample)
    try:
        root = np.linalg.cholesky(gram[np.ix_(active, active)])
    except np.linalg.LinAlgError:
        raise InvalidInput("the supporting constraints must be linearly independent.") from None
    return np.asarray(np.linalg.eigvalsh(root.T @ M @ root) / TAILS[loss], dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """w_infinity of step 1, in the two parts that an angle to the separator needs.

    Parameters
    ----------
    along : float
        <w_infinity, w_hat> / ||w_hat||.
    across : float
        Norm of the part of w_infinity orthogonal to w_hat.
    """

    along: float
    across: float


def support_offset(gram: Float, active: Int, dual: Float, margins: Float) -> Offset:
    r"""The offset in the span of the supporting constraints whose margins there are `margins`.

    With K the Gram matrix of the support, w_infinity has squared norm b^T K^{-1} b, and <w_infinity, w_hat> =
    alpha^T b by the KKT conditions. If every constraint supports and w(0) = 0, this is all of w_infinity; else the
    start and the constraints off the support add to the part across.

    Parameters
    ----------
    gram : (N, N) array
    active, dual : the separator's active set (k,) and dual weights (N,)
    margins : (k,) array
        `limit_margins` of step 1.
    """
    active = np.sort(active)
    K, alpha = gram[np.ix_(active, active)], dual[active]
    size = float(np.sqrt(alpha @ K @ alpha))
    # Orthogonal to w_hat before it is squared: margins of the part across are b - along / size on the support.
    along = float(alpha @ margins) / size
    rest = margins - along / size
    return Offset(along=along, across=float(np.sqrt(rest @ np.linalg.solve(K, rest))))


def misalignment(log_time: Float, separator_norm: float, offset: Offset, tail: float) -> Float:
    r"""1 - cos(w, w_hat) of w = (1/kappa) log(eta tau) w_hat + w_infinity, for each log(eta tau).

    .. math:: 1 - \cos = 1 - (1 + \tan^2)^{-1/2}, \qquad
              \tan = \frac{\|P^\perp w_\infty\|}{\|\hat w\| \log(\eta\tau) / \kappa + \langle w_\infty, \hat w\rangle
              / \|\hat w\|} .

    Its first term, tan^2 / 2, is the law 1 - cos = Theta(1 / log^2 tau); the next is smaller by 3/4 tan^2.

    Raises
    ------
    InvalidInput
        A time so small that w points away from the separator.
    """
    along = norm_slope(separator_norm, tail) * np.asarray(log_time, dtype=np.float64) + offset.along
    if not np.all(along > 0):
        raise InvalidInput(
            f"the law is one of large times: <w, w_hat> must be positive, got {along.min():.3g}."
        )
    tangent = offset.across / along
    # 1 - 1/sqrt(1 + x) without cancellation.
    return -np.expm1(-0.5 * np.log1p(tangent**2))


def slack_rate(problem: AttentionProblem, separator_margins: Float, active: Int, tail: float = 2.0) -> Float:
    r"""Power of tau with which g of (A9) decays in each sample, shape (n,): theta_i / kappa.

    theta_i is the least excess of a separator margin over 1 off the support of sample i: such a rival's weight is
    tau^{-(1 + theta)/kappa}, a supporting one's tau^{-1/kappa}. Infinite where every rival supports. NaN where none
    does: the right-hand side of (A9) is zero there.

    Parameters
    ----------
    problem : AttentionProblem
    separator_margins : (N,) array
        Margins of w_hat on ``problem.constraints()``.
    active : (k,) array of int
    tail : float > 0
    """
    mask, support = rivals(problem), support_mask(problem, active)
    excess = np.full(mask.shape, np.inf)
    excess[mask] = separator_margins - 1
    least = np.where(support, np.inf, excess).min(axis=1)
    return np.where(support.any(axis=1), least, np.nan) / positive(tail, "tail")
