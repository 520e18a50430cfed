"""``marginlab list``, ``show`` and ``graph``: what is registered, without running it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import marginlab
from marginlab.proofs_check.engine.claim import Break, Claim, Control, Mend, Plant, Waive
from marginlab.proofs_check.reports.document import claim_document
from marginlab.theory.errors import InvalidInput


def print_list(ids: Sequence[str]) -> None:
    """Print two lines for each claim: id with its marks, and title."""
    console = Console(highlight=False, markup=False)
    claims = marginlab.claims().select(ids)
    width = max(len(c.id) for c in claims)
    for c in claims:
        expect = "" if c.expect == "PASS" else f", expected to {c.expect}"
        console.print(
            f"{c.id:<{width}}  {c.min_tier}, {c.kind}, {c.evidence}, {c.source}{expect}", soft_wrap=True
        )
        console.print(f"    {c.title} ({c.where})", soft_wrap=True)
    console.print(f"{len(claims)} claims, {sum(len(c.controls) for c in claims)} controls")


def print_json(ids: Sequence[str]) -> None:
    """Print the claims as JSON."""
    Console(soft_wrap=True).print_json(
        json.dumps([claim_document(c) for c in marginlab.claims().select(ids)])
    )


def print_claim(claim_id: str) -> None:
    """Print everything that is known of one claim before it runs."""
    claim = marginlab.claims()[claim_id]
    console = Console(highlight=False, markup=False)
    for line in _lines(claim):
        console.print(line)


def print_graph(svg: Path | None) -> None:
    """Print the dependencies as text, or write them as a drawing."""
    from marginlab.proofs_check.reports import claims_graph_svg, claims_graph_text

    registry = marginlab.claims()
    if svg is None:
        Console(highlight=False, markup=False).print(claims_graph_text(registry))
        return
    try:
        svg.write_text(claims_graph_svg(registry), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write the drawing to '{svg}': {error.strerror}.") from None


def _lines(claim: Claim) -> list[str]:
    constants = ", ".join(f"{k} = {v}" for k, v in claim.constants.items()) or "none"
    lines = [
        f"{claim.id}: {claim.title}",
        f"{claim.paper}, {claim.where} ({claim.source})",
        f"kind {claim.kind}, evidence {claim.evidence}, tier {claim.min_tier}, expected {claim.expect}",
        "",
        claim.statement,
        "",
        f"constants: {constants}",
        f"unit of replication: {claim.unit}; valid instances needed: {claim.min_valid:.0%}",
    ]
    if claim.window:
        lines.append(f"window: {claim.window}")
    lines += [f"assumes {a.name}: {a.statement}" for a in claim.assumes]
    lines += [f"depends on {i}" for i in claim.depends_on]
    lines += [f"control {_control(c)}" for c in claim.controls]
    lines += [f"erratum: {claim.erratum}"] if claim.erratum else []
    lines += [f"note: {claim.notes}"] if claim.notes else []
    return lines


def _control(control: Control) -> str:
    match control:
        case Plant(name=name, constants=constants):
            return f"{name}: {dict(constants)} planted, must FAIL"
        case Mend(name=name, constants=constants):
            return f"{name}: {dict(constants)} instead, must PASS"
        case Break(name=name, assumption=assumption, also=also):
            broken = ", ".join((assumption, *also))
            return f"{name}: breaks {broken}, must be VACUOUS, and FAIL with it waived"
        case Waive(name=name, assumption=assumption):
            return f"{name}: asks whether {assumption} is needed"
