"""Rigorous enclosures of the cosine between matrices and a max-margin separator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from marginlab.proofs_check.certificates.problem import U, gamma
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, float_array


class Direction(Protocol):
    """A separator and a bound of its angle to the exact one: a `Certificate`, or a `MaxMargin`."""

    @property
    def W(self) -> Float: ...  # noqa: N802

    @property
    def angle_bound(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CosineEnclosure:
    """lower <= cos <= upper, and one_minus_lower <= 1 - cos <= one_minus_upper, elementwise.

    The second pair is computed without cancellation: it resolves 1 - cos far below float64's spacing at 1.
    """

    lower: Float
    upper: Float
    one_minus_lower: Float
    one_minus_upper: Float


def _unit(rows: Float) -> tuple[Float, Float]:
    """Rows over their norms, and which rows are zero (left as they are).

    With n entries the result is within gamma_{n+8} of the exact unit vector in the 2-norm: n + 2 roundings of
    positive terms in the norm, one in the division, the rest for entries that fall below the normal range
    once the largest is scaled to [1/2, 1) (an absolute n 2**-1074 there).
    """
    _, top = np.frexp(np.abs(rows).max(axis=-1))
    half = top // 2  # 2**-top alone may overflow
    scaled = np.ldexp(np.ldexp(rows, -half[..., None]), (half - top)[..., None])
    norm = np.sqrt(np.einsum("...i,...i->...", scaled, scaled))
    zero = norm == 0
    return scaled / np.where(zero, 1.0, norm)[..., None], zero


def alignment(W: Float, solution: Direction) -> CosineEnclosure:
    """Enclosure of cos(W, exact max-margin separator).

    Parameters
    ----------
    W : (..., d_k, d_q) array, or (..., D) for a dense problem
        Matrices, of any scale; the leading axes are kept.
    solution : Certificate or MaxMargin
        With a `Certificate` the enclosure is rigorous. A `MaxMargin` brings the angle bound of its float64
        gap, and the enclosure is as good as that number.

    Returns
    -------
    CosineEnclosure
        Arrays of shape (...). A zero W has no direction: its enclosure is [-1, 1].

    Raises
    ------
    InvalidInput
        Shapes that do not fit, NaN or infinities, a separator for another norm than Frobenius.

    Notes
    -----
    With unit vectors u and v, 1 - cos = ||u - v||^2 / 2, and the chord ||u - v|| is a metric, so that the
    chord to the exact separator differs from that to `solution.W` by at most 2 sin(angle_bound / 2) <=
    angle_bound, and the computed chord from the exact one by the errors of both unit vectors.
    """
    norm = getattr(solution, "norm", "frobenius")
    if norm != "frobenius":
        raise InvalidInput(f"the angle to a separator is bounded for the Frobenius norm only, got {norm!r}.")
    separator = float_array(solution.W, "solution.W")
    matrices = float_array(W, "W")
    axes = separator.ndim
    if matrices.ndim < axes or matrices.shape[matrices.ndim - axes :] != separator.shape:
        wanted = ", ".join(map(str, separator.shape))
        raise InvalidInput(f"W must have shape (..., {wanted}) like the separator, got {matrices.shape}.")
    bound = float(solution.angle_bound)
    if not bound >= 0:
        raise InvalidInput(f"an angle bound must be >= 0, got {bound}.")
    size = separator.size
    with np.errstate(under="ignore"):
        u, zero = _unit(matrices.reshape(*matrices.shape[: matrices.ndim - axes], size))
        v, no_direction = _unit(separator.reshape(size))
        if no_direction:
            raise InvalidInput("solution.W must not be zero.")
        difference = u - v  # one rounding an entry
        chord = np.sqrt(np.einsum("...i,...i->...", difference, difference))
    relative = gamma(size + 8)
    slack = (2 * gamma(size + 8) + bound) * (
        1 + 8 * U
    ) + 2.0**-500  # squares below 2**-1022 are lost in chord
    low = np.maximum(chord * (1 - relative) - slack, 0.0) * (1 - 8 * U)
    high = np.minimum((chord * (1 + relative) + slack) * (1 + 8 * U), 2.0)
    one_minus_lower = np.where(zero, 0.0, low * low / 2 * (1 - 4 * U))
    one_minus_upper = np.where(zero, 2.0, np.minimum(high * high / 2 * (1 + 4 * U), 2.0))
    return CosineEnclosure(
        lower=np.maximum(np.nextafter(1.0 - one_minus_upper, -2.0), -1.0),
        upper=np.minimum(np.nextafter(1.0 - one_minus_lower, 2.0), 1.0),
        one_minus_lower=one_minus_lower,
        one_minus_upper=one_minus_upper,
    )
