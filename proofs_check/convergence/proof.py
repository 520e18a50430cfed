"""What a proof of convergence says, and the file that shows it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marginlab.theory.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConvergenceProof:
    """What is proved to hold for ever, from one iterate of gradient descent (or flow) on.

    Attributes
    ----------
    loss_to_zero : bool
        The loss tends to zero, at the rate in `constants`, with summable squared gradients; all margins tend to
        infinity.
    direction : bool
        W/||W|| tends to the max-margin direction.
    norm_growth : bool
        ||W|| = (||W_hat||/2) log t + O(1).
    kind : str or None
        Which theorem applies; None if nothing is proved. "half-space": with explicit bounds on angle, norm and path
        (A1, A4, a small loss). "half-space-loss": the same conclusions, explicit for the loss alone. "identifiable":
        A3 and equal margins, the loss alone. "identifiable-half-space": the loss by A3, direction and norm because A1
        and A4 hold as well.
    failed : tuple of str
        Every inequality that could not be proved, with its two sides.
    constants : mapping of str to (float, float)
        Enclosures of the constants, rounded outward; see `prove_convergence`.
    statement : str
        What is proved, in one sentence; empty if nothing is.
    document : mapping or None
        The certificate file as a JSON object, which ``marginlab verify`` accepts.
    """

    loss_to_zero: bool
    direction: bool
    norm_growth: bool
    kind: str | None
    failed: tuple[str, ...]
    constants: Mapping[str, tuple[float, float]]
    statement: str
    document: Mapping[str, Any] | None = field(repr=False)

    @property
    def explicit(self) -> bool:
        """Whether angle, norm and path have bounds from this iterate on, and not only limits."""
        return self.kind == "half-space"

    def write(self, path: str | Path) -> Path:
        """Write the certificate file and return its path.

        Raises
        ------
        InvalidInput
            Nothing is proved.
        """
        if self.document is None:
            raise InvalidInput(f"nothing is proved that a file could show: {'; '.join(self.failed)}.")
        path = Path(path)
        path.write_text(json.dumps(self.document, separators=(",", ":")) + "\n", encoding="utf-8")
        return path

    def loss_bounds(self, later: float) -> tuple[float, float]:
        """Bounds of the loss, `later` steps (or units of time) after the iterate, to rounding.

        Raises
        ------
        InvalidInput
            The loss is not proved to tend to zero.
        """
        self._need("loss_to_zero")
        (low, high), rate = self.constants["loss"], self.constants["rate"][0]
        fastest = self.constants["rate_upper"][1] if "rate_upper" in self.constants else math.inf
        return 1 / (1 / low + fastest * later) if later > 0 else low, 1 / (1 / high + rate * later)

    def norm_bounds(self, later: float) -> tuple[float, float]:
        r"""Bounds of ||W||, `later` steps after the iterate, to rounding.

        .. math:: \|\hat w\| \mu_k \le \|W_k\| \le \|W_0\| + \|\hat w\| (\mu_k - \mu_0 + c_0), \quad
                  \mu_k = \log\big(\sqrt{g / 2 L_k} - 1\big)

        Raises
        ------
        InvalidInput
            No explicit bound is proved.
        """
        if not self.explicit:
            raise InvalidInput(f"no explicit bound of the norm is proved: {'; '.join(self.failed)}.")
        c = self.constants
        least_loss, most_loss = self.loss_bounds(later)
        low, high = (
            math.log(math.sqrt(g / 2 / loss) - 1)
            for g, loss in zip(c["alignment"], (most_loss, least_loss), strict=True)
        )
        norms = c["separator_norm"]
        highest = max(norm * high for norm in norms)  # mu may still be negative
        return min(norm * low for norm in norms), c["start_norm"][1] + highest + c["excess"][1]

    def one_minus_cos_bound(self, norm: float) -> float:
        """Bound of 1 - cos(W, W_hat) at a later W of this norm.

        Raises
        ------
        InvalidInput
            No explicit bound is proved.
        """
        if not self.explicit:
            raise InvalidInput(f"no explicit bound of the angle is proved: {'; '.join(self.failed)}.")
        return self.constants["direction"][1] / norm

    def _need(self, name: str) -> None:
        if not getattr(self, name):
            raise InvalidInput(f"{name} is not proved: {'; '.join(self.failed)}.")
