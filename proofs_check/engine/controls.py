"""Controls: the engine runs each through the claim's own predict, measure and judgement."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from typing import Any

from marginlab.proofs_check.engine.claim import (
    Break,
    Claim,
    Control,
    Instance,
    Mend,
    Plant,
    Status,
    Verdict,
    Waive,
    waived_with,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.outcomes import ControlOutcome, InstanceOutcome, jsonable
from marginlab.proofs_check.engine.runner import (
    checked_instances,
    judged,
    overall_verdict,
    own_instances,
    own_outcome,
    recorded_warnings,
    refuted,
    sentence,
    waiver_finding,
)
from marginlab.theory.errors import InvalidInput


def evaluate_control(claim: Claim, control: Control, run: Run) -> ControlOutcome:
    """Run one control of a claim through the claim's own predict, measure and judgement."""
    started = time.perf_counter()
    caught: list[str] = []
    try:
        with recorded_warnings(caught):
            outcome = _EVALUATE[type(control)](claim, control, run)
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        outcome = ControlOutcome(
            claim=claim.id,
            name=control.name,
            type=type(control).__name__,
            verdict=Verdict.ERROR,
            as_expected=False,
            expected=_EXPECTED[type(control)],
            reason=sentence(raised),
            error=traceback.format_exc(),
        )
    return replace(outcome, warnings=tuple(caught), seconds=time.perf_counter() - started)


def _planted(claim: Claim, control: Plant | Mend, run: Run) -> ControlOutcome:
    constants = {**claim.constants, **control.constants}
    outcomes = [_planted_outcome(claim, i, constants, run) for i in own_instances(claim, run)]
    verdict, reason = overall_verdict(claim, outcomes)
    wanted = Verdict.PASS if isinstance(control, Mend) else Verdict.FAIL
    # Constants for which nothing can be formed are refused, not refuted: that shows nothing of the judgement.
    compared = wanted is Verdict.PASS or any(refuted(o) for o in outcomes)
    if verdict is Verdict.FAIL and not compared:
        reason = f"the planted constants were compared on no instance; {reason}"
    return ControlOutcome(
        claim=claim.id,
        name=control.name,
        type=type(control).__name__,
        verdict=verdict,
        as_expected=verdict is wanted and compared,
        expected=_EXPECTED[type(control)],
        reason=reason,
        constants=jsonable(dict(control.constants)),
        instances=tuple(replace(o, series=None, certificate=None) for o in outcomes),
    )


def _planted_outcome(
    claim: Claim, instance: Instance, constants: dict[str, Any], run: Run
) -> InstanceOutcome:
    """The instance judged with changed constants; the claim's own judgement must come out the same around it.

    A prediction that depends on how often it was called, or that changes what it looks at, could fail a plant
    whose constants it never reads.

    Raises
    ------
    InvalidInput
        With the claim's own constants the judgement is not what it was before.
    """
    before = own_outcome(claim, instance, run)
    outcome = judged(claim, instance, constants, frozenset(), run)
    after = judged(claim, instance, claim.constants, frozenset(), run)
    _reproduced(claim, before, after)
    return outcome


def _reproduced(claim: Claim, before: InstanceOutcome, after: InstanceOutcome) -> None:
    if replace(after, seconds=before.seconds) != before:
        raise InvalidInput(
            f"claim {claim.id!r} judges {before.label!r} differently each time: first {before.verdict} "
            f"({before.reason}), then {after.verdict} ({after.reason}), with the same constants"
        )


def _control_instances(claim: Claim, control: Break | Waive, run: Run) -> list[Instance]:
    def make() -> list[Instance]:
        return checked_instances(f"control {control.name!r} of {claim.id!r}", control.instances(run))

    return run.once(("control", claim.id, control.name), make)


def _broken(claim: Claim, control: Break, run: Run) -> ControlOutcome:
    instances = _control_instances(claim, control, run)
    plain = [judged(claim, i, claim.constants, frozenset(), run) for i in instances]
    verdict, reason = overall_verdict(claim, plain)
    waived = waived_with(claim, [control.assumption, *control.also])
    outcomes = [judged(claim, i, claim.constants, waived, run) for i in instances]
    for outcome, instance in zip(outcomes, instances, strict=True):
        _reproduced(claim, outcome, judged(claim, instance, claim.constants, waived, run))
    waived_verdict, waived_reason = overall_verdict(claim, outcomes)
    kept = [o.label for o in plain if o.assumptions[control.assumption]["status"] != Status.FAILS]
    needless = [n for n in control.also if all(o.assumptions[n]["status"] == Status.HOLDS for o in plain)]
    compared = any(map(refuted, outcomes)) or any(isinstance(c, Plant) for c in claim.controls)
    problem = f"{control.assumption} does not fail on {', '.join(kept)}; " if kept else ""
    if waived_verdict is Verdict.FAIL and not compared:
        problem += "the claim has no Plant, and here nothing could be compared; "
    problem += f"waived without need, as it holds everywhere: {', '.join(needless)}; " if needless else ""
    return ControlOutcome(
        claim=claim.id,
        name=control.name,
        type="Break",
        verdict=verdict,
        waived_verdict=waived_verdict,
        as_expected=verdict is Verdict.VACUOUS
        and waived_verdict is Verdict.FAIL
        and compared
        and not kept
        and not needless,
        expected=_EXPECTED[Break],
        reason=f"{problem}{reason}; waived, {waived_reason}",
        waived=tuple(sorted(waived)),
        instances=tuple(outcomes),
    )


def _waived(claim: Claim, control: Waive, run: Run) -> ControlOutcome:
    finding, verdict, outcomes = waiver_finding(
        claim, control.assumption, _control_instances(claim, control, run), run
    )
    return ControlOutcome(
        claim=claim.id,
        name=control.name,
        type="Waive",
        verdict=verdict,
        waived_verdict=verdict,
        as_expected=verdict is not Verdict.ERROR,
        expected=_EXPECTED[Waive],
        reason=finding,
        finding=finding,
        waived=tuple(sorted(waived_with(claim, [control.assumption]))),
        instances=tuple(replace(o, series=None, certificate=None) for o in outcomes),
    )


_EVALUATE: dict[type, Any] = {Plant: _planted, Mend: _planted, Break: _broken, Waive: _waived}
_EXPECTED = {
    Plant: "FAIL",
    Mend: "PASS",
    Break: "VACUOUS, and FAIL with the assumption waived",
    Waive: "a finding",
}
