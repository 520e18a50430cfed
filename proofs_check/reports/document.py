"""The report document: one JSON-able mapping from which every format is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from marginlab.proofs_check.engine.claim import Claim, Evidence, Tier
from marginlab.proofs_check.engine.context import ERROR_LEVEL, RunConfig
from marginlab.proofs_check.engine.outcomes import ClaimOutcome, ControlOutcome, jsonable
from marginlab.proofs_check.engine.registry import Registry

SCHEMA, SCHEMA_VERSION = "marginlab-report", 1


def claim_document(claim: Claim) -> dict[str, Any]:
    """What is known of a claim before it runs."""
    return jsonable(
        {
            "id": claim.id,
            "title": claim.title,
            "family": claim.family,
            "paper": claim.paper,
            "where": claim.where,
            "source": claim.source,
            "kind": claim.kind,
            "evidence": claim.evidence,
            "statement": claim.statement,
            "constants": dict(claim.constants),
            "min_tier": claim.min_tier,
            "expect": claim.expect,
            "erratum": claim.erratum,
            "depends_on": claim.depends_on,
            "assumes": [
                {"name": a.name, "statement": a.statement, "implies": a.implies} for a in claim.assumes
            ],
            "window": claim.window,
            "min_valid": claim.min_valid,
            "unit": claim.unit,
            "judgements": claim.judgements,
            "group": claim.group,
            "figure": claim.figure,
            "notes": claim.notes,
            "controls": [c.name for c in claim.controls],
        }
    )


def registry_document(registry: Registry, selected: Sequence[Claim]) -> dict[str, Any]:
    """What a report needs to know of the registry, as plain data that crosses processes.

    Parameters
    ----------
    registry : Registry
        All claims that exist in this run.
    selected : sequence of Claim
        Those that the run's tier and the user's selection leave; the others are listed as not selected.
    """
    chosen = {c.id for c in selected}
    return {
        "claims": [claim_document(c) for c in registry],
        "selected": {
            c.id: {"claim": True, "controls": [k.name for k in c.controls]}
            for c in registry
            if c.id in chosen
        },
        "inventory": _has_ours(registry),
        "judgements": sum(c.judgements for c in registry),
        "level": registry.level,
    }


def _has_ours(registry: Registry) -> bool:
    """Whether a claim of marginlab's own inventory is registered."""
    from marginlab.proofs_check.inventory import inventory

    return any(name in registry for paper in inventory() for entry in paper.entries for name in entry.claims)


def report_document(
    *,
    registry: Mapping[str, Any],
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
    registry : result of `registry_document`
    outcomes : mapping of claim id to ``ClaimOutcome.to_json()``
    controls : mapping of (claim id, control name) to ``ControlOutcome.to_json()``
        Whatever ran; a claim or control without an outcome is reported as not run.
    """
    from marginlab.proofs_check.bibliography import bibliography
    from marginlab.proofs_check.inventory import inventory_document

    chosen = registry["selected"]
    claims = [
        _with_outcomes(c, chosen[c["id"]], outcomes.get(c["id"]), controls)
        for c in registry["claims"]
        if c["id"] in chosen
    ]
    sound = {c["id"] for c in claims if c["as_expected"] and c["outcome"]}
    for claim in claims:
        claim["rests_on"] = [i for i in claim["depends_on"] if i not in sound]
    claims.sort(key=_strength)  # stable: dependencies still come first among equals
    left = [c for c in registry["claims"] if c["id"] not in chosen]
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
            "judgements": registry["judgements"],
            "level": registry["level"],
        },
        "environment": dict(environment),
        "totals": _totals(claims, len(left)),
        "exit_code": exit_code(claims),
        "claims": claims,
        "not_selected": [
            {
                "id": c["id"],
                "title": c["title"],
                "min_tier": c["min_tier"],
                "reason": _why_not_selected(c, config),
            }
            for c in left
        ],
        # What is not checked of the papers that are marginlab's subject says nothing of somebody else's claims.
        "inventory": inventory_document(None if registry["inventory"] else ()),
        "bibliography": bibliography(),
    }
    return jsonable(document)


def _strength(claim: Mapping[str, Any]) -> tuple[int, bool, int]:
    """Place in the report: proofs before observations, and first of all what a certificate file proves again."""
    instances = claim["outcome"]["instances"] if claim["outcome"] else ()
    evidence = Evidence(claim["evidence"])
    rank = list(Evidence).index(evidence)
    return (0 if evidence.proves else rank, not any(i["certificate"] for i in instances), rank)


def exit_code(claims: Sequence[Mapping[str, Any]]) -> int:
    """0 if and only if something was selected, and all of it ran and is as expected."""
    return 0 if claims and all(c["as_expected"] for c in claims) else 1


def _why_not_selected(claim: Mapping[str, Any], config: RunConfig) -> str:
    if config.tier.includes(Tier(claim["min_tier"])):
        return "left out by the selection"
    return f"needs tier {claim['min_tier']}, the run's is {config.tier}"


def _with_outcomes(
    claim: Mapping[str, Any],
    selected: Mapping[str, Any],
    outcome: Mapping[str, Any] | None,
    controls: Mapping[tuple[str, str], Mapping[str, Any]],
) -> dict[str, Any]:
    names = claim["controls"]
    ran = [controls[claim["id"], n] for n in names if (claim["id"], n) in controls]
    missing = [n for n in names if (claim["id"], n) not in controls]
    parts = [*([outcome] if outcome else []), *ran]
    # What a user left out says nothing; what was selected and did not get to run is a gap.
    complete = bool(outcome or not selected["claim"]) and not set(missing) & set(selected["controls"])
    return {
        **claim,
        "outcome": outcome,
        "controls": ran,
        "controls_missing": missing,
        "rests_on": [],
        "as_expected": bool(parts) and complete and all(p["as_expected"] for p in parts),
    }


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
