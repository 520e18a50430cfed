"""pytest plugin: a `Claim` that a test file imports becomes one test item, and one for each control.

Nothing but pytest and the standard library is imported here; the engine is loaded once a claim is found.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from marginlab.proofs_check.engine.claim import Claim, Control
    from marginlab.proofs_check.engine.context import Run, RunConfig

_CLAIM_MODULE = "marginlab.proofs_check.engine.claim"
_STATE = pytest.StashKey["_State"]()
#: The engine's `Tier`, which may not be imported here; a test compares them.
_TIERS = ("quick", "full", "paper")


class _State:
    """What the plugin knows in one process."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.registry: dict[str, Any] | None = None
        self.outcomes: dict[str, dict[str, Any]] = {}
        self.controls: dict[tuple[str, str], dict[str, Any]] = {}
        self.document: dict[str, Any] | None = None
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.clock = time.perf_counter()


class UnexpectedVerdict(Exception):
    """A claim or control did not come out as expected; the text says how."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("marginlab claims")
    group.addoption("--claims-tier", default="quick", choices=_TIERS, help="which claims (default: quick)")
    group.addoption("--claims-seeds", type=_seeds, default=None, help="number of seeds 0..n-1 per claim")
    group.addoption("--claims-report", metavar="DIR", default=None, help="write the claims report to DIR")
    group.addoption("--claims-store", metavar="DIR", default=None, help="keep results in DIR between runs")


def _seeds(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of seeds is an integer of at least 1, got {text!r}.")
    return int(text)


def _writable_folder(option: str, folder: str) -> None:
    """Make the folder before the work, so that nothing computed is lost."""
    if not folder:
        raise pytest.UsageError(f"{option} needs the name of a folder, got an empty one.")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise pytest.UsageError(
            f"{option} needs a folder to write to, got {folder!r}: {error.strerror}."
        ) from None


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        for option in ("--claims-report", "--claims-store"):
            if (folder := config.getoption(option)) is not None:
                _writable_folder(option, folder)
    config.addinivalue_line("markers", "xdist_group(name): items that share a run stay in one worker")
    config.stash[_STATE] = _State()


def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> list[pytest.Item] | None:
    module = sys.modules.get(_CLAIM_MODULE)
    if module is None:
        return None
    if isinstance(obj, (list, tuple)) and any(isinstance(entry, module.Claim) for entry in obj):
        found = [_claim_items(collector, entry) for entry in obj if isinstance(entry, module.Claim)]
        return [item for items in found for item in items]
    if isinstance(obj, module.Claim):
        claim: Any = obj
        return _claim_items(collector, claim)
    return None


def _claim_items(collector: Any, obj: Claim) -> list[pytest.Item]:
    seen = collector.__dict__.setdefault("_marginlab_claims", set())
    if id(obj) in seen:
        return []
    seen.add(id(obj))  # a second claim of the same id is another object, which the registry refuses
    items: list[pytest.Item] = [ClaimItem.from_parent(collector, name=obj.id, claim=obj, control=None)]
    items += [
        ClaimItem.from_parent(collector, name=f"{obj.id}[{c.name}]", claim=obj, control=c)
        for c in obj.controls
    ]
    return items


class ClaimItem(pytest.Item):
    """One claim, or one of its controls."""

    def __init__(self, *, claim: Claim, control: Control | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.claim = claim
        self.control = control
        self.found: dict[str, Any] | None = None
        self.add_marker(pytest.mark.xdist_group(name=claim.group))

    def runtest(self) -> None:
        from marginlab.proofs_check.engine.controls import evaluate_control
        from marginlab.proofs_check.engine.environment import require_gradual_underflow
        from marginlab.proofs_check.engine.outcomes import encodable
        from marginlab.proofs_check.engine.runner import evaluate_claim
        from marginlab.simulations.threads import single_threaded

        require_gradual_underflow()
        run = self.config.stash[_STATE].run
        assert run is not None  # made when the items were collected
        with single_threaded():
            if self.control is None:
                outcome = evaluate_claim(self.claim, run)
            else:
                outcome = evaluate_control(self.claim, self.control, run)
        self.found = outcome.to_json()
        if not outcome.as_expected:
            raise UnexpectedVerdict(
                encodable(f"{outcome.verdict}, expected {outcome.expected}: {outcome.reason}")
                + (f"\n{encodable(outcome.error)}" if outcome.error else "")
            )

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, UnexpectedVerdict):
            return f"{self.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        return self.path, 0, self.name  # pytest wants a line for an item that a mark skips


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    claim_items = [i for i in items if isinstance(i, ClaimItem)]
    if not claim_items:
        return
    from marginlab.proofs_check.engine.context import Run
    from marginlab.proofs_check.engine.registry import Registry
    from marginlab.proofs_check.reports.document import registry_document
    from marginlab.simulations.store import ResultStore
    from marginlab.theory.errors import MarginlabError

    try:
        run_config = _run_config(config)
        registry = Registry(_with_marginlab([i.claim for i in claim_items]))
        selected, above = registry.split((i.claim for i in claim_items), run_config.tier)
        store = ResultStore(config.getoption("--claims-store"))
    except MarginlabError as error:
        raise pytest.UsageError(str(error)) from None
    state = config.stash[_STATE]
    state.run = Run(run_config, store, registry.level)
    state.registry = registry_document(registry, selected)
    left_out = {c.id for c in above}
    dropped = [i for i in claim_items if i.claim.id in left_out]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [i for i in items if i not in dropped]


def _with_marginlab(claims: list[Claim]) -> list[Claim]:
    """The collected claims, with all of marginlab's where one of them is marginlab's or rests on one.

    The error level is divided over all registered claims, so that asking for one file of marginlab's claims
    must register the others too.
    """
    known = {c.id for c in claims}
    if "marginlab.proofs_check.claims" not in sys.modules and all(
        i in known for c in claims for i in c.depends_on
    ):
        return claims
    import marginlab

    ours = list(marginlab.claims())
    if any(c in ours for c in claims) or any(i not in known for c in claims for i in c.depends_on):
        return [*claims, *(c for c in ours if c not in claims)]
    return claims


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note which claims are to run once everybody has deselected: a claim that then does not run is a gap."""
    state = session.config.stash[_STATE]
    if state.registry is not None:
        selected: dict[str, dict[str, Any]] = {}
        for item in session.items:
            if isinstance(item, ClaimItem):
                parts = selected.setdefault(item.claim.id, {"claim": False, "controls": []})
                if item.control is None:
                    parts["claim"] = True
                else:
                    parts["controls"].append(item.control.name)
        state.registry = {**state.registry, "selected": selected}


def _run_config(config: pytest.Config) -> RunConfig:
    from marginlab.proofs_check.engine.context import RunConfig

    return RunConfig.parsed(str(config.getoption("--claims-tier")), config.getoption("--claims-seeds"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if isinstance(item, ClaimItem) and call.when == "call" and item.found is not None:
        # As text: between processes pytest-xdist carries strings of any size, but no integer beyond 64 bits.
        report.marginlab_outcome = json.dumps(item.found, allow_nan=False)  # type: ignore[attr-defined]
    return report  # type: ignore[return-value]


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


class _Collector:
    """Gathers outcomes where the report is written: the only process, or the controller of the workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.state = config.stash[_STATE]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        text = getattr(report, "marginlab_outcome", None)
        if text is None:
            return
        found = json.loads(text)
        if "findings" in found:
            self.state.outcomes[found["claim"]] = found
        else:
            self.state.controls[found["claim"], found["name"]] = found

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        sent = getattr(node, "workeroutput", {}).get("marginlab")
        if sent and self.state.registry is None:
            self.state.registry = json.loads(sent)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not _is_worker(session.config):
        session.config.pluginmanager.register(_Collector(session.config), "marginlab-collector")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    state = config.stash[_STATE]
    if _is_worker(config):
        sent = None if state.registry is None else json.dumps(state.registry, allow_nan=False)
        config.workeroutput["marginlab"] = sent  # type: ignore[attr-defined]
    elif state.registry is not None and state.registry["selected"] and not config.option.collectonly:
        state.document = _document(config, state)
        if session.exitstatus == pytest.ExitCode.OK and state.document["exit_code"]:
            # An item that another plugin or a mark has skipped is no failed item, and no verdict either.
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _document(config: pytest.Config, state: _State) -> dict[str, Any]:
    from marginlab.proofs_check.engine.environment import environment
    from marginlab.proofs_check.reports.document import report_document

    assert state.registry is not None
    return report_document(
        registry=state.registry,
        outcomes=state.outcomes,
        controls=state.controls,
        config=_run_config(config),
        environment=environment(),
        started=state.started,
        seconds=time.perf_counter() - state.clock,
        jobs=getattr(config.option, "numprocesses", None) or 1,
        store=config.getoption("--claims-store"),
        selection=[word for word in (config.getoption("keyword"), config.getoption("markexpr")) if word],
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    state = config.stash[_STATE]
    folder = config.getoption("--claims-report")
    if _is_worker(config) or config.option.collectonly:
        return
    if state.registry is None:
        if folder:
            terminalreporter.section("claims")
            terminalreporter.line(f"no claim was collected, so no report was written to {folder}")
        return
    document = state.document or _document(config, state)
    totals = document["totals"]
    terminalreporter.section("claims")
    for claim in document["claims"]:
        verdict = claim["outcome"]["verdict"] if claim["outcome"] else "not run"
        mark = ", as expected" if claim["as_expected"] else ", UNEXPECTED"
        if not claim["outcome"] and claim["as_expected"]:
            mark = ""  # left out: nothing is said of the claim itself
        good, ran = sum(c["as_expected"] for c in claim["controls"]), len(claim["controls"])
        missing = len(claim["controls_missing"])
        controls = f"{good}/{ran + missing} controls" + (f", {missing} NOT RUN" if missing else "")
        rests = f", rests on {', '.join(claim['rests_on'])}" if claim["rests_on"] else ""
        terminalreporter.line(f"{claim['id']}: {verdict}{mark}, {controls}{rests}")
    terminalreporter.line(
        f"{totals['claims']} claims, {totals['unexpected']} unexpected, {totals['not_selected']} NOT SELECTED"
    )
    for claim in document["not_selected"]:
        terminalreporter.line(f"NOT SELECTED {claim['id']}: {claim['reason']}")
    if folder:
        from marginlab.proofs_check.reports import figure_drawers, write_reports

        for path in write_reports(document, folder, figure_drawers()):
            terminalreporter.line(f"wrote {path}")
