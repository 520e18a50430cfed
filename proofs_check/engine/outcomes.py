"""What the engine found out, as plain data that crosses processes and goes into the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from marginlab.proofs_check.engine.claim import Verdict


def jsonable(value: Any) -> Any:
    """`value` with tuples, arrays and numpy scalars turned to lists and numbers, infinities to strings.

    JSON has no infinity and no NaN: they become the strings "inf", "-inf" and "nan".
    """
    if isinstance(value, Mapping):
        return {encodable(str(k)): jsonable(v) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        # Their order changes from process to process, a report's must not.
        return sorted((jsonable(v) for v in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    # Exact built-in types: what carries outcomes between workers refuses np.float64 and enumerations.
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, str):
        return encodable(str(value))
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    return encodable(str(value))


def encodable(text: str) -> str:
    """Text that a file and a terminal take: half a surrogate pair becomes a question mark."""
    return text.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOutcome:
    """One instance judged once: verdict, reason, both sides, and every assumption's answer."""

    label: str
    seed: int | None
    config: dict[str, Any]
    verdict: Verdict
    reason: str
    observed: tuple[float, float] | None = None
    expected: tuple[float, float] | None = None
    measured: dict[str, Any] | None = None
    predicted: dict[str, Any] | None = None
    assumptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    waived: tuple[str, ...] = ()
    series: dict[str, Any] | None = None
    certificate: dict[str, Any] | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlOutcome:
    """A control judged by the engine.

    `verdict` is what the control came out as, and `waived_verdict` the same with its assumption waived
    (Break and Waive). `as_expected` says whether both are what the control's type demands.
    """

    claim: str
    name: str
    type: str
    verdict: Verdict
    as_expected: bool
    expected: str
    reason: str
    waived_verdict: Verdict | None = None
    waived: tuple[str, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    instances: tuple[InstanceOutcome, ...] = ()
    finding: str = ""
    error: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return jsonable(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOutcome:
    """A claim's own verdict, without its controls."""

    claim: str
    verdict: Verdict
    as_expected: bool
    expected: Verdict
    reason: str
    instances: tuple[InstanceOutcome, ...] = ()
    findings: tuple[str, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return jsonable(asdict(self))
