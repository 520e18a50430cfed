"""``marginlab check``: progress while it runs, a table at the end, the report on disk."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import marginlab
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.environment import environment
from marginlab.proofs_check.engine.outcomes import ClaimOutcome, encodable
from marginlab.proofs_check.engine.session import Outcome, outcomes
from marginlab.proofs_check.reports.document import outcome_documents, registry_document, report_document
from marginlab.proofs_check.reports.wording import control_verdict
from marginlab.theory.errors import InvalidInput

#: Exit code after Ctrl-C, by the shell's convention (128 + SIGINT).
INTERRUPTED = 130


def check_claims(
    ids: Sequence[str], *, tier: str, seeds: int | None, jobs: int, report: str | None, store: str | None
) -> int:
    """Run claims and controls, print what came out, write the report; the exit code."""
    config = RunConfig.parsed(tier, seeds)
    registry = marginlab.claims()
    selected, above = registry.split(registry.select(ids), config.tier)
    if not selected:
        names = ", ".join(f"{c.id} needs tier {c.min_tier}" for c in above)
        raise InvalidInput(f"nothing to run at tier {config.tier}: {names}.")
    for option, folder in (("--report", report), ("--store", store)):
        if folder is not None and not folder:  # an empty path is the current folder, which nobody means
            raise InvalidInput(f"{option} needs the name of a folder, got an empty one.")
    if report is not None:
        _make_folder(Path(report))  # before the work, so that nothing computed is lost
    console = Console(highlight=False)
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()
    found: list[Outcome] = []
    interrupted = False
    total = sum(1 + len(c.controls) for c in selected)
    with console.status("") as status:

        def begun(name: str) -> None:
            status.update(f"{len(found)}/{total} done; now {escape(name)}")

        try:
            for outcome in outcomes(
                selected,
                config=config,
                level=registry.level,
                jobs=jobs,
                store=store,
                begun=begun,
            ):
                found.append(outcome)
                console.print(_line(outcome), soft_wrap=True)
        except KeyboardInterrupt:
            interrupted = True
            console.print("interrupted: what was computed so far is reported", style="bold red")
    claims, controls = outcome_documents(found)
    document = report_document(
        registry=registry_document(registry, selected),
        outcomes=claims,
        controls=controls,
        config=config,
        environment=environment(),
        started=started,
        seconds=time.perf_counter() - clock,
        selection=ids,
        jobs=jobs,
        store=store,
    )
    _print_summary(console, document)
    if report is not None:
        from marginlab.proofs_check.reports import figure_drawers, write_reports

        for path in write_reports(document, report, figure_drawers()):
            console.print(f"wrote {path}", soft_wrap=True, markup=False)
    return INTERRUPTED if interrupted else int(document["exit_code"])


def compile_kernels() -> None:
    """Compile what numba compiles, and say how long it took."""
    from marginlab.simulations import descent
    from marginlab.theory.ngrams import kernels

    clock = time.perf_counter()
    descent.warm_up()
    kernels.warm_up()
    Console(highlight=False).print(f"kernels ready after {time.perf_counter() - clock:.1f} s")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".marginlab-write-test"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidInput(
            f"the report needs a folder to write to, got '{folder}': {error.strerror}."
        ) from None


def _line(outcome: Outcome) -> str:
    colour = "green" if outcome.as_expected else "bold red"
    if isinstance(outcome, ClaimOutcome):
        name, verdict = outcome.claim, str(outcome.verdict)
    else:
        name = f"  {outcome.type.lower()}: {outcome.name}"
        verdict = control_verdict(outcome.to_json())
    mark = (
        ""
        if outcome.as_expected
        else f"  UNEXPECTED, wanted {outcome.expected}: {escape(encodable(outcome.reason))}"
    )
    return f"[{colour}]{verdict:<12}[/] {escape(name)}  [dim]{outcome.seconds:.1f} s[/]{mark}"


def _print_summary(console: Console, document: dict[str, Any]) -> None:
    table = Table(title=f"marginlab {document['marginlab']}, tier {document['run']['tier']}")
    for heading in ("claim", "verdict", "expected", "evidence", "instances", "controls"):
        table.add_column(heading, overflow="fold")
    for claim in document["claims"]:
        outcome = claim["outcome"] or {"verdict": "not run", "instances": []}
        counted = [i for i in outcome["instances"] if i["verdict"] in ("PASS", "FAIL")]
        good = sum(c["as_expected"] for c in claim["controls"])
        table.add_row(
            claim["id"],
            outcome["verdict"] + ("" if claim["as_expected"] else " (!)"),
            claim["expect"],
            claim["evidence"],
            f"{len(counted)} of {len(outcome['instances'])}",
            f"{good} of {len(claim['controls']) + len(claim['controls_missing'])}",
            style="" if claim["as_expected"] else "bold red",
        )
    console.print(table)
    totals = document["totals"]
    console.print(
        f"{totals['as_expected']} of {totals['claims']} claims and {totals['controls_as_expected']} of "
        f"{totals['controls']} controls as expected; {totals['excluded']} of {totals['instances']} instance "
        f"judgements excluded; {totals['not_selected']} claims NOT SELECTED; {document['run']['seconds']:.1f} s"
    )
    for claim in document["not_selected"]:
        console.print(f"NOT SELECTED {claim['id']}: {claim['reason']}", markup=False, soft_wrap=True)
    for claim in document["claims"]:
        if claim["rests_on"]:
            console.print(
                f"{claim['id']} rests on {', '.join(claim['rests_on'])}", markup=False, soft_wrap=True
            )
