"""The certificate files that a report leaves are accepted by the verifier, which reads nothing but them."""

from __future__ import annotations

from pathlib import Path

import marginlab
from marginlab.proofs_check.certificates.verify import verify
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.environment import environment
from marginlab.proofs_check.engine.session import outcomes
from marginlab.proofs_check.reports import write_reports
from marginlab.proofs_check.reports.document import outcome_documents, registry_document, report_document


def test_every_certificate_of_a_report_is_accepted(tmp_path: Path) -> None:
    registry, config = marginlab.claims(), RunConfig(seeds=2)
    selected = [registry["match-copy/separator"]]
    claims, controls = outcome_documents(list(outcomes(selected, config=config, level=registry.level)))
    document = report_document(
        registry=registry_document(registry, selected),
        outcomes=claims,
        controls=controls,
        config=config,
        environment=environment(),
        started="2026-01-01T00:00:00+00:00",
        seconds=0.0,
    )
    written = [p for p in write_reports(document, tmp_path) if p.parent.name == "certificates"]
    assert [p.name for p in written] == [f"match-copy--separator--seed-{k}.json" for k in range(2)]
    statements = [i["certificate"]["statement"] for i in document["claims"][0]["outcome"]["instances"]]
    for path, statement in zip(written, statements, strict=True):
        verdict = verify(path)
        assert verdict.accepted, verdict.failed_inequality
        assert verdict.statement == statement
        assert f'href="certificates/{path.name}"' in (tmp_path / "report.html").read_text(encoding="utf-8")
