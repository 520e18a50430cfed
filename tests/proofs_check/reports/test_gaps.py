"""What was selected and did not run is a gap; what the user left out is not."""

from __future__ import annotations

from typing import Any

import pytest

from marginlab.proofs_check import Claim
from marginlab.proofs_check.engine.context import Run, RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.environment import environment
from marginlab.proofs_check.engine.registry import Registry
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.proofs_check.reports.document import outcome_documents, registry_document, report_document


@pytest.mark.parametrize(
    ("selected", "ran", "code"),
    [
        ({"claim": True, "controls": [0, 1]}, (True, [0, 1]), 0),
        ({"claim": True, "controls": [0]}, (True, [0]), 0),
        ({"claim": False, "controls": [1]}, (False, [1]), 0),
        ({"claim": True, "controls": [0, 1]}, (True, [0]), 1),
        ({"claim": True, "controls": [0, 1]}, (False, [0, 1]), 1),
        ({"claim": True, "controls": [0, 1]}, (False, []), 1),
    ],
)
def test_exit_code(selected: dict[str, Any], ran: tuple[bool, list[int]], code: int, square: Claim) -> None:
    claim = square
    names = [c.name for c in claim.controls]
    registry, run = Registry([claim]), Run(RunConfig())
    found: list[Any] = [evaluate_claim(claim, run)] if ran[0] else []
    found += [evaluate_control(claim, claim.controls[k], run) for k in ran[1]]
    outcomes, controls = outcome_documents(found)
    chosen = {"claim": selected["claim"], "controls": [names[k] for k in selected["controls"]]}
    document = report_document(
        registry={**registry_document(registry, [claim]), "selected": {claim.id: chosen}},
        outcomes=outcomes,
        controls=controls,
        config=RunConfig(),
        environment=environment(),
        started="2026-01-02T03:04:05+00:00",
        seconds=1.0,
    )
    assert document["exit_code"] == code
