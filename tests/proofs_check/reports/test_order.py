"""In a report what is proved stands before what is observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.reports.document import report_document


def _claim(name: str, evidence: str, *, certificate: bool) -> Mapping[str, Any]:
    return {
        "id": name,
        "evidence": evidence,
        "certificate": certificate,
        "controls": [],
        "depends_on": [],
        "min_tier": "quick",
    }


def test_proofs_stand_first_and_certificates_first_of_all() -> None:
    claims = [
        _claim("a/sampled", "statistical", certificate=False),
        _claim("a/float", "numerical", certificate=False),
        _claim("a/float-checked", "numerical", certificate=True),
        _claim("a/rational", "exact", certificate=False),
        _claim("a/balls", "certified", certificate=True),
        _claim("a/float-later", "numerical", certificate=False),
        _claim("a/algebra", "symbolic", certificate=False),
    ]
    outcomes = {
        c["id"]: {
            "as_expected": True,
            "verdict": "PASS",
            "instances": [{"verdict": "PASS", "certificate": {"schema": 1} if c["certificate"] else None}],
        }
        for c in claims
    }
    document = report_document(
        registry={
            "claims": claims,
            "selected": {c["id"]: {"claim": True, "controls": []} for c in claims},
            "judgements": 0,
            "level": 1.0,
            "inventory": False,
        },
        outcomes=outcomes,
        controls={},
        config=RunConfig(),
        environment={},
        started="",
        seconds=0.0,
    )
    assert [c["id"].split("/")[1] for c in document["claims"]] == [
        "balls",
        "algebra",
        "rational",
        "float-checked",
        "float",
        "float-later",
        "sampled",
    ]
