"""What an oracle returns: a separator, its dual weights and the two-sided bound that we recomputed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import MarginlabError, MethodUnavailable
from marginlab.theory.validation import Float, Int

Constraints = Float | RankOneConstraints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Residuals:
    """How far a solution is from the optimality conditions, each recomputed from the data.

    Attributes
    ----------
    primal : float
        max(0, 1 - min_i <W, z_i>): zero up to rounding, since W is scaled by its smallest margin.
    dual : float
        ||W - sum dual_i z_i|| / ||W|| (Frobenius; for another norm, the relative violation of its
        dual-norm condition).
    complementarity : float
        max_i dual_i (<W, z_i> - 1) / sum dual.
    strict : float
        min over active i of dual_i / max dual: the strict-complementarity margin; 0 means a tie.
    """

    primal: float
    dual: float
    complementarity: float
    strict: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaxMargin:
    """Max-margin separator: argmin ||W|| subject to <W, z_i> >= 1 for all i.

    Attributes
    ----------
    W : (d_k, d_q) array for `RankOneConstraints`, (D,) array for a dense (N, D) problem
        Scaled so that its smallest margin is 1.
    dual : (N,) array, >= 0
        For the Frobenius norm W = sum dual_i z_i up to the gap, and sum dual = ||W||^2.
    margin_lower, margin_upper : float
        Enclosure of the largest margin max_{||U|| <= 1} min_i <U, z_i> = 1/||W||: achieved by W, and
        bounded by the dual norm ||sum p_i z_i||_*, p = dual / sum dual.
    gap : float
        (margin_upper - margin_lower) / margin_upper, recomputed by us from W and dual.
    active : (k,) array of int
        Indices with a positive dual weight.
    residuals : Residuals
    oracle, norm : str
    """

    W: Float
    dual: Float
    margin_lower: float
    margin_upper: float
    gap: float
    active: Int
    residuals: Residuals
    oracle: str
    norm: str = "frobenius"
    iterations: int = 0

    @property
    def angle_bound(self) -> float:
        """Bound on the angle (radians) between W and the true separator, from strong convexity.

        sin(angle) <= sqrt(2 (P - D)) / ||W|| where P - D = (||W||^2 - ||W_dual||^2) / 2 is the duality gap
        of min ||W||^2 / 2, that is sqrt(1 - (margin_lower / margin_upper)^2).

        Raises
        ------
        MethodUnavailable
            For another norm than the Frobenius norm: it is not strongly convex, and its separator need not
            be unique.
        """
        if self.norm != "frobenius":
            raise MethodUnavailable(
                f"the bound of the angle to the true separator needs the Frobenius norm, whose square is "
                f"strongly convex, got norm {self.norm!r}: use margin_lower and margin_upper."
            )
        ratio = min(1.0, self.margin_lower / self.margin_upper)
        return float(np.arcsin(np.sqrt((1.0 - ratio) * (1.0 + ratio))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NonSeparability:
    """Certificate that no W has all margins positive: p >= 0, sum p = 1, sum p_i z_i = 0 but for rounding.

    Weights near these, on some of the same rows, were proved to combine to exactly zero.

    Attributes
    ----------
    weights : (N,) array in the simplex
    residual : float
        ||sum p_i z_i|| / max_i ||z_i||: an upper bound on the best relative margin.
    """

    weights: Float
    residual: float


class NotSeparable(MarginlabError):
    """No W satisfies all constraints; carries the certificate that shows it.

    Attributes
    ----------
    certificate : NonSeparability
    """

    def __init__(self, message: str, certificate: NonSeparability) -> None:
        super().__init__(message)
        self.certificate = certificate
        self.message = message

    def __reduce__(self) -> tuple[type, tuple[str, NonSeparability]]:
        return type(self), (self.message, self.certificate)


class OracleFailed(MarginlabError):
    """An oracle's answer did not reach the required gap; the message says the gap that we recomputed."""
