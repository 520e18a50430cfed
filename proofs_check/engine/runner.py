"""The one runner behind pytest and the command line: judges claims and runs their controls itself."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from marginlab.proofs_check.engine.claim import (
    Answer,
    Break,
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Status,
    Verdict,
    waived_with,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.judge import LEAST_REPLICATIONS, judge
from marginlab.proofs_check.engine.outcomes import ClaimOutcome, InstanceOutcome, jsonable
from marginlab.proofs_check.engine.values import summary
from marginlab.theory.errors import InvalidInput

REFUTED_BY_NOTHING = "nothing was compared, so the statement is not refuted"


def evaluate_claim(claim: Claim, run: Run) -> ClaimOutcome:
    """Verdict of a claim on its own instances, and what waiving its failed assumptions would change.

    Never raises for what the claim's code does: an exception there gives the verdict ERROR with its
    traceback, so that nothing computed before is lost. That holds for exceptions that ask a test runner to
    skip or a process to end as well: a claim cannot opt out of its own verdict.
    """
    started = time.perf_counter()
    caught: list[str] = []
    outcomes: list[InstanceOutcome] = []
    findings: list[str] = []
    error = ""
    try:
        with recorded_warnings(caught):
            instances = own_instances(claim, run)
            for instance in instances:
                try:
                    outcomes.append(own_outcome(claim, instance, run))
                except KeyboardInterrupt:
                    raise
                except BaseException as raised:
                    outcomes.append(_errored(instance, raised))
                    error = error or traceback.format_exc()
            verdict, reason = overall_verdict(claim, outcomes)
            findings = _waiver_findings(claim, instances, outcomes, run)
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        verdict, reason, error = Verdict.ERROR, sentence(raised), traceback.format_exc()
    if claim.expect is verdict is Verdict.FAIL and not any(refuted(o) for o in outcomes):
        reason = f"{REFUTED_BY_NOTHING}; {reason}"
        as_expected = False
    else:
        as_expected = verdict is claim.expect
    return ClaimOutcome(
        claim=claim.id,
        verdict=verdict,
        as_expected=as_expected,
        expected=claim.expect,
        reason=reason,
        instances=tuple(outcomes),
        findings=tuple(findings),
        error=error,
        warnings=tuple(caught),
        seconds=time.perf_counter() - started,
    )


@contextmanager
def recorded_warnings(into: list[str]) -> Iterator[None]:
    """Keep warnings for the report: the same numbers whatever filters the caller has set."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            texts = [f"{w.category.__name__}: {w.message}" for w in caught]
            into.extend(dict.fromkeys(texts))


def own_instances(claim: Claim, run: Run) -> list[Instance]:
    def make() -> list[Instance]:
        return checked_instances(claim.id, claim.instances(run))

    instances = run.once(("instances", claim.id), make)
    if claim.evidence is Evidence.STATISTICAL:
        if len(instances) > claim.judgements:
            raise InvalidInput(
                f"claim {claim.id!r} declares {claim.judgements} statistical judgements "
                f"and makes {len(instances)}."
            )
        seeds = run.config.seeds
        if claim.unit == "seed" and seeds is not None and seeds < LEAST_REPLICATIONS:
            raise InvalidInput(
                f"claim {claim.id!r} replicates over seeds and needs at least {LEAST_REPLICATIONS}, "
                f"got {seeds}."
            )
    return instances


def checked_instances(owner: str, made: Iterable[Instance]) -> list[Instance]:
    instances = list(made)
    for instance in instances:
        if not (isinstance(instance, Instance) and isinstance(instance.label, str)):
            raise InvalidInput(f"{owner} makes instances with a text as their label, not {instance!r}.")
    labels = [i.label for i in instances]
    if not labels:
        raise InvalidInput(f"{owner} made no instance, so nothing was checked.")
    if len(set(labels)) != len(labels):
        raise InvalidInput(f"{owner} made two instances of one label: {labels}.")
    return instances


def own_outcome(claim: Claim, instance: Instance, run: Run) -> InstanceOutcome:
    """The claim's own judgement of one instance, made once: what its controls are held against."""
    return run.once(
        ("own", claim.id, id(instance)),
        lambda: judged(claim, instance, claim.constants, frozenset(), run),
    )


def refuted(outcome: InstanceOutcome) -> bool:
    """Whether an instance failed by comparison: something was measured, and it was not as predicted."""
    return outcome.verdict is Verdict.FAIL and outcome.measured is not None


def answers_of(claim: Claim, instance: Instance, run: Run) -> dict[str, Answer]:
    """Every assumption's answer; one that raises `CannotForm` is undecided, with the reason as witness."""

    def check(assumption_check: Any) -> Answer:
        try:
            answer = assumption_check(instance)
        except CannotForm as reason:
            return Answer(Status.UNDECIDED, str(reason))
        if not isinstance(answer, Answer):
            raise InvalidInput(f"an assumption of claim {claim.id!r} answers with an Answer, not {answer!r}.")
        return answer

    def make() -> dict[str, Answer]:
        answers = {a.name: check(a.check) for a in claim.assumes}
        for a in claim.assumes:
            denied = [n for n in a.implies if answers[n].status is Status.FAILS]
            if answers[a.name].status is Status.HOLDS and denied:
                # A false implication would waive more than was asked for.
                raise InvalidInput(
                    f"claim {claim.id!r} says that assumption {a.name} implies {denied[0]}, but on "
                    f"{instance.label!r} {a.name} holds and {denied[0]} fails."
                )
        return answers

    return run.once(("answers", claim.id, id(instance)), make)


def _errored(instance: Instance, raised: BaseException) -> InstanceOutcome:
    """The outcome of an instance on which the claim's own code raised."""
    return InstanceOutcome(
        label=instance.label,
        seed=instance.seed,
        config=jsonable(dict(instance.config)),
        verdict=Verdict.ERROR,
        reason=sentence(raised),
    )


def judged(
    claim: Claim, instance: Instance, constants: Mapping[str, Any], waived: frozenset[str], run: Run
) -> InstanceOutcome:
    """Judge one instance; assumptions in `waived` are looked at but do not count."""
    started = time.perf_counter()
    answers = answers_of(claim, instance, run)
    blank = InstanceOutcome(
        label=instance.label,
        seed=instance.seed,
        config=jsonable(dict(instance.config)),
        verdict=Verdict.ERROR,
        reason="",
        waived=tuple(sorted(waived)),
        assumptions={name: jsonable(asdict(answer)) for name, answer in answers.items()},
    )
    counted = {name: a for name, a in answers.items() if name not in waived}
    failed = [name for name, a in counted.items() if a.status is Status.FAILS]
    open_ = [name for name, a in counted.items() if a.status is Status.UNDECIDED]
    if failed or open_:
        name = (failed or open_)[0]
        verdict = Verdict.VACUOUS if failed else Verdict.INCONCLUSIVE
        word = "does not hold" if failed else "cannot be decided"
        return replace(
            blank,
            verdict=verdict,
            reason=f"assumption {name} {word}: {counted[name].witness}",
            seconds=time.perf_counter() - started,
        )
    try:
        measured = run.once(("measured", claim.id, id(instance)), lambda: claim.measure(instance))
        # A copy for each call: what a prediction does to its constants reaches nobody else.
        predicted = claim.predict(instance, MappingProxyType(deepcopy(dict(constants))))
    except CannotForm as reason:
        return replace(
            blank,
            verdict=Verdict.FAIL,
            reason=f"the predicted object cannot be formed: {reason}",
            seconds=time.perf_counter() - started,
        )
    result = judge(claim, measured, predicted, run.level if claim.judgements else None)
    return replace(
        blank,
        verdict=result.verdict,
        reason=result.reason,
        observed=result.observed,
        expected=result.expected,
        measured=jsonable(summary(measured)),
        predicted=jsonable(summary(predicted)),
        series=_attached("series", claim, instance, run),
        certificate=_attached("certificate", claim, instance, run),
        seconds=time.perf_counter() - started,
    )


def _attached(what: str, claim: Claim, instance: Instance, run: Run) -> dict[str, Any] | None:
    """Data of the claim's figure, or the certificate file, of an instance that was judged."""
    make = getattr(claim, what)
    if make is None:
        return None

    def attached() -> dict[str, Any]:
        found = make(instance)
        if not isinstance(found, Mapping):
            raise InvalidInput(f"claim {claim.id!r}: its {what} returns a mapping, not {found!r}.")
        if what == "certificate" and not all(isinstance(found.get(k), str) for k in ("schema", "statement")):
            raise InvalidInput(
                f"claim {claim.id!r}: a certificate says its schema and its statement in words."
            )
        return jsonable(dict(found))

    return run.once((what, claim.id, id(instance)), attached)


def overall_verdict(claim: Claim, outcomes: list[InstanceOutcome]) -> tuple[Verdict, str]:
    """A claim's verdict from its instances'.

    It is an error if the claim's code raised on any instance; it fails if any instance fails; it passes if
    every instance on which the assumptions hold passes and enough of them remain.
    """
    by_verdict = {v: [o for o in outcomes if o.verdict is v] for v in Verdict}
    valid = len(by_verdict[Verdict.PASS]) + len(by_verdict[Verdict.FAIL])
    judged_open = [o for o in by_verdict[Verdict.INCONCLUSIVE] if o.measured is not None]
    counts = ", ".join(f"{len(found)} {v}" for v, found in by_verdict.items() if found)
    text = f"of {len(outcomes)} instances: {counts}"
    if errors := by_verdict[Verdict.ERROR]:
        return Verdict.ERROR, f"{text}; {errors[0].label}: {errors[0].reason}"
    if failures := by_verdict[Verdict.FAIL]:
        return Verdict.FAIL, f"{text}; {failures[0].label}: {failures[0].reason}"
    if judged_open:
        return Verdict.INCONCLUSIVE, f"{text}; {judged_open[0].label}: {judged_open[0].reason}"
    # A quotient of integers rounds to the float that the same fraction is written as; a product may not.
    if valid / len(outcomes) >= claim.min_valid:
        return Verdict.PASS, text
    few = f"{text}, fewer than {claim.min_valid:.0%} valid"
    if len(by_verdict[Verdict.VACUOUS]) + valid == len(outcomes):
        first = by_verdict[Verdict.VACUOUS][0]
        return (
            Verdict.VACUOUS,
            f"{few}; {first.label}: {first.reason}",
        )
    first = by_verdict[Verdict.INCONCLUSIVE][0]
    return (
        Verdict.INCONCLUSIVE,
        f"{few}; {first.label}: {first.reason}",
    )


def _waiver_findings(
    claim: Claim, instances: list[Instance], outcomes: list[InstanceOutcome], run: Run
) -> list[str]:
    """For each failed assumption: does the claim hold without it on the instances where only it failed?"""
    failing: dict[str, list[Instance]] = {}
    for instance, outcome in zip(instances, outcomes, strict=True):
        if outcome.verdict is Verdict.VACUOUS:
            names = {n for n, a in outcome.assumptions.items() if a["status"] == Status.FAILS}
            for name in sorted(names):
                if names <= waived_with(claim, [name]):
                    failing.setdefault(name, []).append(instance)
    return [_answered(claim, name, found, run) for name, found in failing.items()]


def _answered(claim: Claim, name: str, instances: list[Instance], run: Run) -> str:
    """The finding on instances outside the assumptions, where the claim's own code may rightly break down."""
    try:
        return waiver_finding(claim, name, instances, run)[0]
    except KeyboardInterrupt:
        raise
    except BaseException as raised:
        return f"{name} waived: the claim cannot be judged ({sentence(raised)})"


def waiver_finding(
    claim: Claim, name: str, instances: list[Instance], run: Run
) -> tuple[str, Verdict, list[InstanceOutcome]]:
    """What waiving an assumption changes on the instances where it fails: elsewhere nothing is waived."""
    asked = [i for i in instances if answers_of(claim, i, run)[name].status is Status.FAILS]
    if not asked:
        text = f"{name} fails on none of the {len(instances)} instance(s) tried, so nothing was waived"
        return text, Verdict.INCONCLUSIVE, []
    waived = waived_with(claim, [name])
    outcomes = [judged(claim, i, claim.constants, waived, run) for i in asked]
    verdict, reason = overall_verdict(claim, outcomes)
    passed = sum(o.verdict is Verdict.PASS for o in outcomes)
    if verdict is Verdict.PASS:
        text = (
            f"{name} is not needed on the instances tried: waived, {passed} of the {len(outcomes)} where it "
            "fails pass and none fails"
        ) + _needed_elsewhere(claim, name)
    elif verdict is Verdict.FAIL:
        text = f"{name} is needed: waived, the claim fails ({reason})"
    else:
        text = f"{name} waived: {verdict} ({reason})"
    return text, verdict, outcomes


def _needed_elsewhere(claim: Claim, name: str) -> str:
    """What keeps a finding on some instances from being read as a finding on all."""
    breaks = [c.name for c in claim.controls if isinstance(c, Break) and c.assumption == name]
    if not breaks:
        return ""
    return f"; that it is needed in general is what the control {breaks[0]!r} has to show"


def sentence(raised: BaseException) -> str:
    return f"{type(raised).__name__}: {raised}"
