"""The conditions of the two theorems at one W, and the constants of their conclusions, in balls.

Descent with step eta, k steps on (docs/convergence.md). With q = max_i (1 - a_{i,y}), from one small loss L_0 on,

* half-space: A1, A4, L_0 <= (theta^2/2) min g_i^3/R_i^4 and eta B L_0 <= 1, B = 4 max R_i^2 X_i^2/g_i;
* identifiable: gamma_i > 0 (A3), some w_bar with all margins 1, 2 L_0 < gamma^2, eta B L_0 <= 1 with gamma_i^2 for g_i.

Both give 1/L_k >= 1/L_0 + 2 eta (1 - x)^2 k/||w||^2, x = sqrt(2 L_0/g), and sum ||gradient||^2 <= 2 L_0/eta. For
gradient flow 4 (1 - x)^2/||w||^2 and L_0, and nothing is asked of a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import arb

from marginlab.proofs_check.convergence.geometry import Fact, Geometry, below, frobenius, largest, least
from marginlab.theory.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A theorem at one W: the facts that it needs, and its constants (empty unless they make sense)."""

    facts: tuple[Fact, ...]
    constants: dict[str, Any]

    @property
    def failed(self) -> tuple[str, ...]:
        """The facts that are not proved."""
        return tuple(f.text for f in self.facts if not f.holds)

    @property
    def holds(self) -> bool:
        """Whether every fact is proved."""
        return not self.failed


def assumptions(geometry: Geometry) -> tuple[Fact, Fact]:
    """A1 and A4."""
    separable = geometry.separator_norm is not None
    why = (
        geometry.separator
        if isinstance(geometry.separator, str)
        else "a separator's margins are all proved > 0"
    )
    g = least(geometry.alignments)
    return (
        Fact(separable, f"A1, separability: {why}"),
        below(arb(0), g, "A4, half-space, 0 < min <d_s, d_t>", strict=True),
    )


def half_space(geometry: Geometry, W: Float, step: Any | None, loss: Any) -> tuple[Applied, Applied]:
    """The theorem under A1 and A4: for the loss alone (theta < 1), and with direction, norm and path.

    The second needs theta <= 2/3 for descent, and nothing more for flow.
    """
    facts = assumptions(geometry)
    if not all(f.holds for f in facts):
        return Applied(facts=facts, constants={}), Applied(facts=facts, constants={})
    g, radii, reach = geometry.alignments, geometry.error_radii, geometry.feature_radii
    lowest = least([a**3 / r**4 for a, r in zip(g, radii, strict=True)]) / 2
    B = 4 * largest([(r * x) ** 2 / a for a, r, x in zip(g, radii, reach, strict=True)])
    theta = (loss / lowest).sqrt()
    x = (2 * loss / least(g)).sqrt()
    assert geometry.separator_norm is not None
    constants = {
        "loss": loss,
        "alignment": least(g),
        "theta": theta,
        "x": x,
        "separator_norm": geometry.separator_norm,
        **_rates(step, loss, x, geometry.separator_norm[1]),
        "rate_upper": (4 if step is None else 7 * step) * largest(reach) ** 2,
    }
    if step is not None:
        constants["smoothness"] = B
        facts += (below(step * B * loss, arb(1), "step B L <= 1"),)
    small = below(theta, arb(1), "theta = sqrt(2 L / min g_i^3/R_i^4) < 1", strict=True)
    alone = Applied(facts=(*facts, small), constants=constants)
    if not alone.holds:
        return alone, alone
    if step is not None:
        facts += (below(theta, arb(2) / 3, "theta = sqrt(2 L / min g_i^3/R_i^4) < 2/3", strict=True),)
    c0 = arb(0) if step is None else step * B * loss / (2 * (1 - x))
    margin = (1 / x - 1).log()
    norms = geometry.separator_norm
    excess = [norm * (c0 - margin) for norm in norms]
    start = frobenius(W)
    explicit = {
        "start_norm": start,
        "c0": c0,
        "margin": margin,
        "excess": (excess[0].min(excess[1]), excess[0].max(excess[1])),
        "direction": start + excess[0].max(excess[1]),
    }
    return alone, Applied(facts=(*facts, small), constants=constants | explicit)


def identifiable(geometry: Geometry, step: Any | None, loss: Any) -> Applied:
    """The theorem under A3 with equal margins: the loss alone."""
    gamma = least(geometry.hull_distances)
    facts = (below(arb(0), gamma, "A3, identifiability, 0 < distance of a target to the hull", strict=True),)
    if not facts[0].holds:
        return Applied(facts=facts, constants={})
    norm = geometry.equal_margins_norm
    facts += (
        Fact(norm is not None, "equal margins: the Gram matrix of all constraints is not proved nonsingular"),
        below(2 * loss, gamma**2, "2 L < gamma^2", strict=True),
    )
    if norm is None:
        return Applied(facts=facts, constants={})
    x = (2 * loss).sqrt() / gamma
    B = 4 * largest(
        [
            (r * reach / c) ** 2
            for r, reach, c in zip(
                geometry.error_radii, geometry.feature_radii, geometry.hull_distances, strict=True
            )
        ]
    )
    constants = {
        "loss": loss,
        "hull_distance": gamma,
        "x": x,
        "equal_margins_norm": norm,
        "share": 1 / norm,
        **_rates(step, loss, x, norm),
    }
    if step is not None:
        constants["smoothness"] = B
        facts += (below(step * B * loss, arb(1), "step B_gamma L <= 1"),)
    return Applied(facts=facts, constants=constants)


def _rates(step: Any | None, loss: Any, x: Any, norm: Any) -> dict[str, Any]:
    """The loss's rate, and the bound of the sum (or integral) of squared gradients."""
    slope = ((1 - x) / norm) ** 2
    if step is None:
        return {"rate": 4 * slope, "squared_gradients": loss}
    return {"rate": 2 * step * slope, "squared_gradients": 2 * loss / step}
