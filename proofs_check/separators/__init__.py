"""Max-margin separators with two-sided bounds: four oracles behind one function, and their certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginlab.proofs_check.certificates import alignment as alignment
    from marginlab.proofs_check.certificates import certify as certify
    from marginlab.proofs_check.separators.oracle import max_margin as max_margin
    from marginlab.proofs_check.separators.solution import MaxMargin as MaxMargin
    from marginlab.proofs_check.separators.solution import NonSeparability as NonSeparability
    from marginlab.proofs_check.separators.solution import NotSeparable as NotSeparable
    from marginlab.proofs_check.separators.solution import OracleFailed as OracleFailed
    from marginlab.proofs_check.separators.solution import Residuals as Residuals
    from marginlab.theory.constraints import RankOneConstraints as RankOneConstraints

_HOME = {
    "MaxMargin": "marginlab.proofs_check.separators.solution",
    "NonSeparability": "marginlab.proofs_check.separators.solution",
    "NotSeparable": "marginlab.proofs_check.separators.solution",
    "OracleFailed": "marginlab.proofs_check.separators.solution",
    "RankOneConstraints": "marginlab.theory.constraints",
    "Residuals": "marginlab.proofs_check.separators.solution",
    "alignment": "marginlab.proofs_check.certificates",
    "certify": "marginlab.proofs_check.certificates",
    "max_margin": "marginlab.proofs_check.separators.oracle",
}

__all__ = [
    "MaxMargin",
    "NonSeparability",
    "NotSeparable",
    "OracleFailed",
    "RankOneConstraints",
    "Residuals",
    "alignment",
    "certify",
    "max_margin",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
