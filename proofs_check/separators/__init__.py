"""Max-margin separators with two-sided bounds: four oracles behind one function, and their certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginlab.theory.lazy import lazy_names

if TYPE_CHECKING:
    from marginlab.proofs_check.certificates import alignment as alignment
    from marginlab.proofs_check.certificates import certify as certify
    from marginlab.proofs_check.certificates import certify_non_separable as certify_non_separable
    from marginlab.proofs_check.separators.oracle import max_margin as max_margin
    from marginlab.proofs_check.separators.solution import MaxMargin as MaxMargin
    from marginlab.proofs_check.separators.solution import NonSeparability as NonSeparability
    from marginlab.proofs_check.separators.solution import NotSeparable as NotSeparable
    from marginlab.proofs_check.separators.solution import OracleFailed as OracleFailed
    from marginlab.proofs_check.separators.solution import Residuals as Residuals
    from marginlab.theory.constraints import RankOneConstraints as RankOneConstraints

_SOLUTION = ("MaxMargin", "NonSeparability", "NotSeparable", "OracleFailed", "Residuals")
_CERTIFICATES = ("alignment", "certify", "certify_non_separable")

__getattr__, __dir__ = lazy_names(
    __name__,
    dict.fromkeys(_SOLUTION, "marginlab.proofs_check.separators.solution")
    | dict.fromkeys(_CERTIFICATES, "marginlab.proofs_check.certificates")
    | {
        "RankOneConstraints": "marginlab.theory.constraints",
        "max_margin": "marginlab.proofs_check.separators.oracle",
    },
)
