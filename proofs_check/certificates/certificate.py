"""What `certify` returns: proved bounds, the sentence they amount to, and the file that shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from marginlab.proofs_check.certificates.document import document_of
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.validation import Float, Int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Filed:
    """What every certificate has: the data, the exact weights and the claims behind its file."""

    kind: str
    constraints: Float | RankOneConstraints = field(repr=False)
    weights_block: dict[str, Any] = field(repr=False)
    claims: dict[str, str] = field(repr=False)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The certificate file as a JSON object."""
        W = self.W if isinstance(self, Certificate) else None
        return document_of(self.kind, self.constraints, self.weights_block, self.claims, W)

    @property
    def statement(self) -> str:
        """What is proved, in one sentence."""
        return self.document["statement"]

    def to_json(self) -> str:
        """The certificate file: what `marginlab verify` reads."""
        return json.dumps(self.document, separators=(",", ":")) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write the certificate file and return its path."""
        path = Path(path)
        path.write_text(self.to_json(), encoding="utf-8")
        return path


@dataclass(frozen=True, kw_only=True, eq=False)
class Certificate(_Filed):
    """Rigorous enclosure of the max-margin separator; every float is rounded outward from exact arithmetic.

    Attributes
    ----------
    kind : str
        ``active-set`` (the supporting constraints are proved: Gram system nonsingular, dual weights > 0,
        every other margin larger), ``exact`` (rational optimum), or ``gap`` (two-sided bound, whatever the
        support).
    margin_lower, margin_upper : float
        Enclosure of the largest margin max_{||U||_F = 1} min_i <U, z_i>.
    achieved : float
        Lower bound of the margin of W, min_i <W, z_i> / ||W||.
    gap : float
        Upper bound of 1 - (margin of W) / (largest margin), from W and the dual weights alone.
    angle_bound : float
        Upper bound of the angle in radians between W and the max-margin direction.
    W : (d_k, d_q) or (D,) array
        The separator that was certified, as given.
    centre, radius : array of W's shape and float
        ||centre - W*||_F <= radius for the exact separator W* (smallest margin 1).
    dual : (N,) array
        Dual weights, rounded to float64 (the file holds them exactly; 0 or infinite beyond its range).
    active : (k,) array of int
        Constraints with a dual weight; proved to be the support unless the kind is ``gap``.
    unproved : str or None
        For ``gap``: the inequality of the stronger kind that could not be proved, or that is false, or which
        limit of the checker the stronger kind would exceed.
    margin_squared : Fraction or None
        For ``exact``: the largest margin squared.
    statement : str
        What is proved, in one sentence.
    document : dict
        The certificate file as a JSON object, built when it is first asked for.
    """

    margin_lower: float
    margin_upper: float
    achieved: float
    gap: float
    angle_bound: float
    W: Float
    centre: Float
    radius: float
    dual: Float
    active: Int
    unproved: str | None
    margin_squared: Fraction | None


@dataclass(frozen=True, kw_only=True, eq=False)
class NonSeparableCertificate(_Filed):
    """Proof that no W, or no W of moderate norm, satisfies all constraints.

    Attributes
    ----------
    kind : str
        ``not-separable``: sum p_i z_i = 0 exactly with p >= 0, so that no W has all margins positive
        (Gordan's alternative). ``norm-bound``: no W of norm 1 has margin above `margin_upper`, so that any W
        with all margins >= 1 has ||W||_F >= 1 / margin_upper.
    margin_upper : float
        Upper bound of the largest margin; 0 for ``not-separable``.
    weights : (N,) array
        Weights p, of sum 1 up to rounding (the file holds them exactly).
    unproved : str or None
        For ``norm-bound``: why the exact kind was not reached.
    statement, document
        As for `Certificate`.
    """

    margin_upper: float
    weights: Float
    unproved: str | None
