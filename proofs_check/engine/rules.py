"""What makes a claim well formed: a claim that breaks one of these rules cannot be constructed."""

from __future__ import annotations

import re
from collections.abc import Iterable

from marginlab.proofs_check.engine.claim import Break, Claim, Mend, Plant, Waive
from marginlab.proofs_check.engine.vocabulary import Evidence, Kind, Tier, Verdict

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*")


def broken_rules(claim: Claim) -> Iterable[str]:
    """Sentences about what is wrong with a claim; a rule may assume that those before it are kept."""
    if not _ID.fullmatch(claim.id):
        yield "an id is 'family/name' in lower case letters, digits and hyphens"
    names = [a.name for a in claim.assumes]
    if len(set(names)) != len(names):
        yield f"two assumptions share a name in {names}"
    for control in claim.controls:
        if type(control) not in (Plant, Break, Mend, Waive):
            yield f"a control is a Plant, Break, Mend or Waive itself, not a {type(control).__name__}"
    control_names = [c.name for c in claim.controls]
    if len(set(control_names)) != len(control_names):
        yield f"two controls share a name in {control_names}"
    if claim.expect not in (Verdict.PASS, Verdict.FAIL):
        yield f"a claim is expected to PASS or to FAIL, not {claim.expect}"
    failing = claim.expect is Verdict.FAIL
    if failing != bool(claim.erratum):
        yield "an erratum text goes with expect=FAIL, and only with it"
    counted = (Plant, Break, Mend) if failing else (Plant, Break)
    if failing and not any(isinstance(c, Mend) for c in claim.controls):
        yield "an expected failure has a Mend, the corrected constants with which the statement passes"
    if not any(isinstance(c, counted) for c in claim.controls):
        yield "it has no control that can reach FAIL (a Plant or a Break; a Waive does not count)"
    for control in claim.controls:
        if isinstance(control, Mend) and not failing:
            yield f"control {control.name!r}: a Mend belongs to a claim that is expected to fail"
        if isinstance(control, (Plant, Mend)):
            if unknown := set(control.constants) - set(claim.constants):
                yield f"control {control.name!r} changes constants that the claim lacks: {sorted(unknown)}"
            if all(claim.constants[k] == v for k, v in control.constants.items()):
                yield f"control {control.name!r} changes no constant"
        if isinstance(control, (Break, Waive)):
            also = control.also if isinstance(control, Break) else ()
            if unknown := {control.assumption, *also} - set(names):
                yield f"control {control.name!r} names assumptions that the claim lacks: {sorted(unknown)}"
    for assumption in claim.assumes:
        if unknown := set(assumption.implies) - set(names):
            yield f"assumption {assumption.name!r} implies unknown assumptions: {sorted(unknown)}"
    if claim.kind in (Kind.RATE, Kind.LIMIT, Kind.DIRECTION) and claim.window is None:
        yield f"a {claim.kind} claim states its window in advance"
    if claim.window is not None and not claim.window[0] < claim.window[1]:
        yield f"a window's first end lies below its last, not {claim.window}"
    if not 0 < claim.min_valid <= 1:
        yield f"min_valid is a fraction in (0, 1], not {claim.min_valid}"
    if claim.judgements < 0:
        yield f"a number of judgements is not negative, as {claim.judgements} is"
    if (claim.evidence is Evidence.STATISTICAL) != (claim.judgements > 0):
        yield "a statistical claim states how many judgements it makes, and only such a claim does"
    if claim.evidence is Evidence.STATISTICAL and claim.unit == "seed" and claim.min_tier is Tier.QUICK:
        yield "a claim whose unit of replication is the seed belongs to the full tier"
