"""Claims, separators and their certificates, verdicts and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginlab.theory.lazy import lazy_names

if TYPE_CHECKING:
    from marginlab.proofs_check.engine.claim import Answer as Answer
    from marginlab.proofs_check.engine.claim import Assumption as Assumption
    from marginlab.proofs_check.engine.claim import Break as Break
    from marginlab.proofs_check.engine.claim import CannotForm as CannotForm
    from marginlab.proofs_check.engine.claim import Claim as Claim
    from marginlab.proofs_check.engine.claim import Evidence as Evidence
    from marginlab.proofs_check.engine.claim import Instance as Instance
    from marginlab.proofs_check.engine.claim import Kind as Kind
    from marginlab.proofs_check.engine.claim import Mend as Mend
    from marginlab.proofs_check.engine.claim import Plant as Plant
    from marginlab.proofs_check.engine.claim import Source as Source
    from marginlab.proofs_check.engine.claim import Status as Status
    from marginlab.proofs_check.engine.claim import Tier as Tier
    from marginlab.proofs_check.engine.claim import Verdict as Verdict
    from marginlab.proofs_check.engine.claim import Waive as Waive
    from marginlab.proofs_check.engine.context import Run as Run
    from marginlab.proofs_check.engine.values import Approach as Approach
    from marginlab.proofs_check.engine.values import Curve as Curve
    from marginlab.proofs_check.engine.values import Emergence as Emergence
    from marginlab.proofs_check.engine.values import Interval as Interval
    from marginlab.proofs_check.engine.values import Ranking as Ranking
    from marginlab.proofs_check.engine.values import Sample as Sample

_CLAIM = (
    "Answer",
    "Assumption",
    "Break",
    "CannotForm",
    "Claim",
    "Evidence",
    "Instance",
    "Kind",
    "Mend",
    "Plant",
    "Source",
    "Status",
    "Tier",
    "Verdict",
    "Waive",
)
_VALUES = ("Approach", "Curve", "Emergence", "Interval", "Ranking", "Sample")

__getattr__, __dir__ = lazy_names(
    __name__,
    dict.fromkeys(_CLAIM, "marginlab.proofs_check.engine.claim")
    | dict.fromkeys(_VALUES, "marginlab.proofs_check.engine.values")
    | {"Run": "marginlab.proofs_check.engine.context"},
)
