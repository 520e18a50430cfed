"""The report document: one JSON-able mapping from which every format is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from marginlab.proofs_check.engine.claim import Assumption, Claim
from marginlab.proofs_check.engine.context import ERROR_LEVEL, RunConfig
from marginlab.proofs_check.engine.outcomes import ClaimOutcome, ControlOutcome, jsonable
from marginlab.proofs_check.engine.registry import Registry

SCHEMA, SCHEMA_VERSION = "marginlab-report", 1


def report_document(
    *,
    registry: Registry,
    selected: Sequence[Claim],
    not_selected: Sequence[Claim],
    outcomes: Mapping[str, Mapping[str, Any]],
    controls: Mapping[tuple[str, str], Mapping[str, Any]],
    config: RunConfig,
    environment: Mapping[str, Any],
    started: str,
    seconds: float,
    selection: Sequence[str] | None = None,
    jobs: int = 1,
    store: str | None = None,
) -> dict[str, Any]:
    """Assemble the report of a run.

    Parameters
    ----------
    registry : Registry
        All claims that exist in this run, selected or not.
    selected, not_selected : sequences of Claim
        Those that ran, and those above the tier.
    outcomes : mapping of claim id to ``ClaimOutcome.to_json()``
    controls : mapping of (claim id, control name) to ``ControlOutcome.to_json()``
        Whatever ran; a claim or control without an outcome is reported as not run.
    """
    from marginlab.proofs_check.bibliography import bibliography
    from marginlab.proofs_check.inventory import inventory_document

    claims = [
        _claim_document(c, outcomes.get(c.id), {n: controls[i, n] for i, n in controls if i == c.id})
        for c in selected
    ]
    as_expected = {c["id"]: c["as_expected"] for c in claims}
    for claim in claims:
        claim["rests_on"] = [i for i in claim["depends_on"] if not as_expected.get(i, False)]
    document = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "marginlab": version("marginlab"),
        "run": {
            **config.to_json(),
            "config_hash": config.config_hash,
            "selection": list(selection) if selection else None,
            "jobs": jobs,
            "started": started,
            "seconds": seconds,
            "store": store,
            "error_level": ERROR_LEVEL,
            "judgements": sum(c.judgements for c in registry),
            "level": registry.level,
        },
        "environment": dict(environment),
        "totals": _totals(claims, len(not_selected)),
        "exit_code": exit_code(claims),
        "claims": claims,
        "not_selected": [
            {"id": c.id, "title": c.title, "min_tier": str(c.min_tier),
             "reason": f"needs tier {c.min_tier}, the run's is {config.tier}"}
            for c in not_selected
        ],
        "inventory": inventory_document(),
        "bibliography": bibliography(),
    }
    return jsonable(document)


def exit_code(claims: Sequence[Mapping[str, Any]]) -> int:
    """0 if and only if something ran and everything that ran is as expected."""
    return 0 if claims and all(c["as_expected"] for c in claims) else 1


def _claim_document(
    claim: Claim, outcome: Mapping[str, Any] | None, controls: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    ran = [controls[c.name] for c in claim.controls if c.name in controls]
    parts = [*([outcome] if outcome else []), *ran]
    return {
        "id": claim.id,
        "title": claim.title,
        "family": claim.family,
        "paper": claim.paper,
        "where": claim.where,
        "source": str(claim.source),
        "kind": str(claim.kind),
        "evidence": str(claim.evidence),
        "statement": claim.statement,
        "constants": jsonable(dict(claim.constants)),
        "min_tier": str(claim.min_tier),
        "expect": str(claim.expect),
        "erratum": claim.erratum,
        "depends_on": list(claim.depends_on),
        "assumes": [_assumption_document(a) for a in claim.assumes],
        "window": claim.window,
        "min_valid": claim.min_valid,
        "unit": claim.unit,
        "judgements": claim.judgements,
        "group": claim.group,
        "figure": claim.figure,
        "notes": claim.notes,
        "outcome": outcome,
        "controls": ran,
        "controls_missing": [c.name for c in claim.controls if c.name not in controls],
        "rests_on": [],
        "as_expected": bool(parts) and all(p["as_expected"] for p in parts),
    }


def _assumption_document(assumption: Assumption) -> dict[str, Any]:
    return {"name": assumption.name, "statement": assumption.statement, "implies": list(assumption.implies)}


def _totals(claims: Sequence[Mapping[str, Any]], not_selected: int) -> dict[str, Any]:
    outcomes = [c["outcome"] for c in claims if c["outcome"]]
    controls = [control for c in claims for control in c["controls"]]
    instances = [i for outcome in outcomes for i in outcome["instances"]]
    as_expected = sum(c["as_expected"] for c in claims)
    return {
        "claims": len(claims),
        "as_expected": as_expected,
        "unexpected": len(claims) - as_expected,
        "controls": len(controls),
        "controls_as_expected": sum(c["as_expected"] for c in controls),
        "instances": len(instances),
        "excluded": sum(i["verdict"] in ("VACUOUS", "INCONCLUSIVE") for i in instances),
        "not_selected": not_selected,
        "verdicts": dict(Counter(o["verdict"] for o in outcomes)),
    }


def outcome_documents(
    found: Sequence[ClaimOutcome | ControlOutcome],
) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]:
    """Outcomes as the two mappings that `report_document` takes."""
    claims = {o.claim: o.to_json() for o in found if isinstance(o, ClaimOutcome)}
    controls = {(o.claim, o.name): o.to_json() for o in found if isinstance(o, ControlOutcome)}
    return claims, controls
