"""What `certify` returns: proved bounds, the sentence they amount to, and the file that shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from marginlab.theory.validation import Float, Int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
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
        Dual weights, rounded to float64 (the file holds them exactly).
    active : (k,) array of int
        Constraints with a dual weight; proved to be the support unless the kind is ``gap``.
    unproved : str or None
        For ``gap``: the inequality of the stronger kind that could not be proved.
    margin_squared : Fraction or None
        For ``exact``: the largest margin squared.
    statement : str
        What is proved, in one sentence.
    document : dict
        The certificate file as a JSON object.
    """

    kind: str
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
    statement: str
    document: dict[str, Any] = field(repr=False)

    def to_json(self) -> str:
        """The certificate file: what `marginlab verify` reads."""
        return _text(self.document)

    def write(self, path: str | Path) -> Path:
        """Write the certificate file and return its path."""
        return _write(path, self.to_json())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NonSeparableCertificate:
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

    kind: str
    margin_upper: float
    weights: Float
    unproved: str | None
    statement: str
    document: dict[str, Any] = field(repr=False)

    def to_json(self) -> str:
        """The certificate file: what `marginlab verify` reads."""
        return _text(self.document)

    def write(self, path: str | Path) -> Path:
        """Write the certificate file and return its path."""
        return _write(path, self.to_json())


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"


def _write(path: str | Path, text: str) -> Path:
    path = Path(path)
    path.write_text(text, encoding="utf-8")
    return path
