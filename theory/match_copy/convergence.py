"""Constants and bounds of the theorem that one small loss under A1 and A4 decides all later times.

Derived for this package (docs/convergence.md). Losses are sums over samples of ||r_i||^2 / 2, eq. (19), with exact
targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.attention import AttentionProblem
from marginlab.theory.match_copy.geometry import error_radii, feature_radii, smallest_alignments
from marginlab.theory.validation import Float

#: Largest theta of the theorem on the direction under descent: x^2 (1 - x) increases on [0, 2/3].
LARGEST_THETA = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfSpaceConstants:
    """g_i, R_i, X_i of a problem with A4, and ||w_hat|| or an upper bound of it.

    Attributes
    ----------
    alignments : (n,) array
        g_i = min over s, t of <d_{i,s}, d_{i,t}>, positive by A4.
    error_radii, feature_radii : (n,) arrays
        R_i = max_t ||d_{i,t}|| and X_i = max_t ||x~_{i,t}||.
    separator_norm : float

    Raises
    ------
    InvalidInput
        An alignment or the norm is not positive.
    """

    alignments: Float
    error_radii: Float
    feature_radii: Float
    separator_norm: float

    def __post_init__(self) -> None:
        if not (self.alignments > 0).all():
            raise InvalidInput(f"A4 needs every g_i > 0, the least is {self.alignments.min():.6g}.")
        if not self.separator_norm > 0:
            raise InvalidInput(f"the separator's norm must be positive, got {self.separator_norm}.")

    @classmethod
    def of(cls, problem: AttentionProblem, separator_norm: float) -> HalfSpaceConstants:
        """The constants of a problem; any upper bound of ||w_hat|| serves."""
        return cls(
            alignments=smallest_alignments(problem),
            error_radii=error_radii(problem),
            feature_radii=feature_radii(problem),
            separator_norm=separator_norm,
        )

    @property
    def g(self) -> float:
        """min_i g_i."""
        return float(self.alignments.min())

    @property
    def feature_radius(self) -> float:
        """max_i X_i."""
        return float(self.feature_radii.max())

    @property
    def curvature(self) -> float:
        """B = 4 max_i R_i^2 X_i^2 / g_i: the Hessian lies between -B L and B L, everywhere."""
        return float(4 * (self.error_radii**2 * self.feature_radii**2 / self.alignments).max())

    def largest_loss(self, theta: float = LARGEST_THETA) -> float:
        """L* = theta^2 / 2 min_i g_i^3 / R_i^4: below it every pi_{i,t} is non-negative.

        Raises
        ------
        InvalidInput
            theta is not in (0, 1).
        """
        if not 0 < theta < 1:
            raise InvalidInput(f"theta lies in (0, 1), got {theta}.")
        return float(theta**2 / 2 * (self.alignments**3 / self.error_radii**4).min())

    def applies(self, loss: Float | float, step: float, theta: float = LARGEST_THETA) -> np.ndarray:
        """Whether L <= L*(theta) and eta B L <= 1; step 0 stands for gradient flow."""
        loss = np.asarray(loss)
        return (loss <= self.largest_loss(theta)) & (step * self.curvature * loss <= 1)

    def x(self, loss: Float | float) -> Float:
        """x = sqrt(2 L / g), an upper bound of every q_i = 1 - a_{i,y}."""
        return np.sqrt(2 * np.asarray(loss) / self.g)

    def mu(self, loss: Float | float) -> Float:
        """mu = log(1/x - 1), a lower bound of every margin; x < 1 is needed."""
        return np.log1p(-self.x(loss)) - np.log(self.x(loss))

    def correction(self, start_loss: float, step: float) -> float:
        """c_0 = eta B L_0 / (2 (1 - x_0)): what the curvature can cost in all; 0 for gradient flow."""
        return float(step * self.curvature * start_loss / (2 * (1 - self.x(start_loss))))

    def loss_upper(self, start_loss: float, step: float, elapsed: Float) -> Float:
        """Upper bound of the loss `elapsed` steps later (step = 1 and times for gradient flow)."""
        rate = 2 * step * (1 - self.x(start_loss)) ** 2 / self.separator_norm**2
        return 1 / (1 / start_loss + rate * elapsed)

    def loss_lower(self, start_loss: float, step: float, elapsed: Float) -> Float:
        """Lower bound of the loss `elapsed` steps later; `separator_norm` does not enter."""
        return 1 / (1 / start_loss + 7 * step * self.feature_radius**2 * elapsed)

    def offset(self, start_loss: float, step: float) -> float:
        """||w_hat|| (c_0 - mu_0): no path is longer than ||w|| plus this."""
        return float(self.separator_norm * (self.correction(start_loss, step) - self.mu(start_loss)))

    def misalignment(self, start_loss: float, start_norm: float, step: float, norm: Float) -> Float:
        """Upper bound of 1 - cos(w, w_hat) at a norm reached later. `separator_norm` must be exact here."""
        return (start_norm + self.offset(start_loss, step)) / norm


def gradient_ratio(loss: Float, gradient_norm: Float, separator_norm: float) -> Float:
    """rho = ||grad L|| ||w_hat|| / (2 L), which tends to 1."""
    return gradient_norm * separator_norm / (2 * loss)


def smoothness(problem: AttentionProblem) -> float:
    """Upper bound of the Hessian's norm at every W: sum_i S_i^2 (D_i^2 / 8 + R_i D_i / 4).

    D_i and S_i are the largest distances between values, and between keys times the query's length.
    """
    spread = np.linalg.norm(problem.values[:, :, None] - problem.values[:, None], axis=-1).max(axis=(1, 2))
    reach = np.linalg.norm(problem.keys[:, :, None] - problem.keys[:, None], axis=-1).max(axis=(1, 2))
    reach = reach * np.linalg.norm(problem.queries, axis=1)
    return float(np.sum(reach**2 * (spread**2 / 8 + error_radii(problem) * spread / 4)))
