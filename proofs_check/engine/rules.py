"""What makes a claim well formed: a claim that breaks one of these rules cannot be constructed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from math import isfinite
from numbers import Integral, Real
from typing import Any

from marginlab.proofs_check.engine.claim import Assumption, Break, Claim, Mend, Plant, Waive
from marginlab.proofs_check.engine.outcomes import jsonable
from marginlab.proofs_check.engine.vocabulary import Evidence, Kind, Tier, Verdict

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*")

_TEXTS = ("id", "title", "paper", "where", "statement", "erratum", "unit", "group", "figure", "notes")


def _malformed(claim: Claim) -> Iterable[str]:
    """What is not of the type that every other rule, the runner and the report rely on."""
    for name in _TEXTS:
        yield from _no_text(getattr(claim, name), f"its {name}")
    for name in ("instances", "predict", "measure"):
        if not callable(getattr(claim, name)):
            yield f"its {name} is a function, not {getattr(claim, name)!r}"
    for name in ("series", "certificate"):
        if getattr(claim, name) is not None and not callable(getattr(claim, name)):
            yield f"its {name} is a function or None, not {getattr(claim, name)!r}"
    for name in ("assumes", "controls", "depends_on"):
        if not isinstance(getattr(claim, name), tuple):
            yield f"its {name} is a tuple, not {getattr(claim, name)!r}"
    for other in claim.depends_on:
        yield from _no_text(other, "an id in depends_on")
    for assumption in claim.assumes:
        if not isinstance(assumption, Assumption) or not callable(assumption.check):
            yield f"an assumption is an Assumption with a function as its check, not {assumption!r}"
        yield from _no_text(assumption.name, "an assumption's name")
        yield from _no_text(assumption.statement, f"the statement of assumption {assumption.name!r}")
        yield from _no_names(assumption.implies, f"what assumption {assumption.name!r} implies")
    yield from _no_constants(claim.constants, "its constants")
    for control in claim.controls:
        if type(control) not in (Plant, Break, Mend, Waive):
            yield f"a control is a Plant, Break, Mend or Waive itself, not a {type(control).__name__}"
        yield from _no_text(control.name, "a control's name")
        if isinstance(control, (Plant, Mend)):
            yield from _no_constants(control.constants, f"control {control.name!r}: its constants")
        else:
            if not callable(control.instances):
                yield f"control {control.name!r}: its instances is a function, not {control.instances!r}"
            also = control.also if isinstance(control, Break) else ()
            yield from _no_names(also, f"control {control.name!r}: its also")
    window: Any = claim.window
    if window is not None and not (
        isinstance(window, (tuple, list)) and len(window) == 2 and all(isinstance(v, Real) for v in window)
    ):
        yield f"a window is a pair of numbers, not {window!r}"
    if not isinstance(claim.min_valid, Real):
        yield f"min_valid is a number, not {claim.min_valid!r}"
    if not isinstance(claim.judgements, Integral):
        yield f"judgements is a whole number, not {claim.judgements!r}"


def _no_text(value: object, what: str) -> Iterable[str]:
    """Reports are UTF-8: half of a surrogate pair would lose them after all the work."""
    if not isinstance(value, str):
        yield f"{what} is text, not {value!r}"
    elif value != value.encode(errors="replace").decode():
        yield f"{what} holds half of a surrogate pair, which no file can hold: {value!r}"


def _no_names(value: object, what: str) -> Iterable[str]:
    if not isinstance(value, (tuple, list)) or not all(isinstance(name, str) for name in value):
        yield f"{what} is a tuple of names, not {value!r}"


def _no_constants(value: object, what: str) -> Iterable[str]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        yield f"{what} map names to values, {value!r} does not"
        return
    try:
        deepcopy(dict(value))
    except Exception as error:
        yield f"{what} cannot be copied ({error}), and so not be kept as they are"


def broken_rules(claim: Claim) -> Iterable[str]:
    """Sentences about what is wrong with a claim; a rule may assume that those before it are kept."""
    yield from _malformed(claim)
    if not _ID.fullmatch(claim.id):
        yield "an id is 'family/name' in lower case letters, digits and hyphens"
    names = [a.name for a in claim.assumes]
    if len(set(names)) != len(names):
        yield f"two assumptions share a name in {names}"
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
            # As plain data: arrays compare element by element, and have no truth value.
            if all(jsonable(claim.constants[k]) == jsonable(v) for k, v in control.constants.items()):
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
    if claim.window is not None and not all(map(isfinite, claim.window)):
        yield f"a window's ends are finite, not {claim.window}"
    if not 0 < claim.min_valid <= 1:
        yield f"min_valid is a fraction in (0, 1], not {claim.min_valid}"
    if claim.judgements < 0:
        yield f"a number of judgements is not negative, as {claim.judgements} is"
    if (claim.evidence is Evidence.STATISTICAL) != (claim.judgements > 0):
        yield "a statistical claim states how many judgements it makes, and only such a claim does"
    if claim.evidence is Evidence.STATISTICAL and claim.unit == "seed" and claim.min_tier is Tier.QUICK:
        yield "a claim whose unit of replication is the seed belongs to the full tier"
