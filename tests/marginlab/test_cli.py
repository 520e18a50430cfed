"""The command line, each command in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

#: The command line on a family of small claims: everything but the list of families is the real thing.
MAIN = """
import marginlab.proofs_check.claims as registered
registered.FAMILIES = ("small_family",)
from marginlab.cli import main
main()
"""

FAMILY = """
import os, time
from pathlib import Path
import numpy as np
from marginlab.proofs_check import Claim, Evidence, Instance, Interval, Kind, Plant, Source, Tier


def compute(config, seed):
    with open(os.environ["LOG"], "a") as log:
        log.write("x")
    return {"x": np.array(0.5)}


def instances(run):
    for k in run.seeds(2):
        rng = np.random.default_rng(run.stream({"task": "small"}, k))
        yield Instance(label=f"seed {k}", data=float(rng.random()), seed=k)


def kept(run):
    yield Instance(label="kept", data=float(run.recall(compute, {}, 0)["x"]))


def slow(instance):
    Path(os.environ["LOG"]).write_text("started")
    time.sleep(60)


def make(name, measure=lambda i: Interval.exact(i.data), **changes):
    fields = dict(
        id=f"small/{name}", title=f"Title of {name}", paper="marginlab", where="here",
        source=Source.DERIVED, kind=Kind.UPPER, evidence=Evidence.EXACT, statement="$x \\\\le 1$",
        constants={"bound": 1.0}, instances=instances, measure=measure,
        predict=lambda i, constants: Interval.exact(constants["bound"]),
        controls=(Plant(name="planted", constants={"bound": -1.0}),), group=name,
    )
    return Claim(**(fields | changes))


CLAIMS = (
    make("good"),
    make("kept", instances=kept),
    make("upon", depends_on=("small/good",)),
    make("full", min_tier=Tier.FULL),
    *((make("bad", constants={"bound": 0.0}),) if "bad" in os.environ["WITH"] else ()),
    *((make("buggy", lambda i: 1 / 0),) if "buggy" in os.environ["WITH"] else ()),
    *((make("slow", slow),) if "slow" in os.environ["WITH"] else ()),
)
"""


class Project:
    """A folder with the small family, in which commands run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log"
        (path / "small_family.py").write_text(FAMILY)

    def environment(self, extra: str) -> dict[str, str]:
        more = {"PYTHONPATH": str(self.path), "LOG": str(self.log), "WITH": extra, "COLUMNS": "200"}
        return {**os.environ, **more}

    def __call__(self, *arguments: str, extra: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            cwd=self.path,
            env=self.environment(extra),
            capture_output=True,
            text=True,
            check=False,
        )

    def report(self, name: str) -> Any:
        return json.loads((self.path / name / "report.json").read_text())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k != "seconds"}
    return [_without_times(v) for v in value] if isinstance(value, list) else value


def _one_sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Bad usage: exit code 2, one line on stderr, no traceback."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr.startswith("marginlab: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(".\n")
    return done.stderr


def test_check_passes(project: Project) -> None:
    done = project("check", "--report", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert re.search(r"^PASS +small/good", done.stdout, re.MULTILINE)
    assert re.search(r"^FAIL on 2 of 2 +plant: planted", done.stdout, re.MULTILINE)
    assert "3 of 3 claims and 3 of 3 controls as expected" in done.stdout
    assert "NOT SELECTED small/full: needs tier full, the run's is quick" in done.stdout
    document = project.report("out")
    assert document["exit_code"] == 0
    assert [c["id"] for c in document["claims"]] == ["small/good", "small/kept", "small/upon"]
    assert [c["id"] for c in document["not_selected"]] == ["small/full"]


def test_jobs_and_selection_change_no_number(project: Project) -> None:
    for name, arguments in (("one", []), ("two", ["--jobs", "2"]), ("some", ["small/upon"])):
        assert project("check", *arguments, "--report", name).returncode == 0
    one, two, some = (_without_times(project.report(name)) for name in ("one", "two", "some"))
    assert one["claims"] == two["claims"]
    assert one["totals"] == two["totals"]
    (upon,) = some["claims"]
    assert upon == one["claims"][2] | {"rests_on": ["small/good"]}  # which did not run


@pytest.mark.parametrize(("extra", "verdict"), [("bad", "FAIL"), ("buggy", "ERROR")])
def test_check_with_an_unexpected_verdict(extra: str, verdict: str, project: Project) -> None:
    done = project("check", "--report", "out", extra=extra)
    assert done.returncode == 1
    assert re.search(rf"^{verdict} +small/{extra} .*UNEXPECTED, wanted PASS", done.stdout, re.MULTILINE)
    assert "Traceback" not in done.stdout + done.stderr
    assert project.report("out")["exit_code"] == 1
    assert project("check", "small/good", extra=extra).returncode == 0


def test_store_is_empty_unless_it_is_given(project: Project) -> None:
    for arguments, computed in (([], 1), ([], 2), (["--store", "kept"], 3), (["--store", "kept"], 3)):
        assert project("check", "small/kept", *arguments).returncode == 0
        assert len(project.log.read_text()) == computed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["check", "small/god"], "there is no claim 'small/god'; the nearest is 'small/good'"),
        (["check", "--tier", "slow"], "tier must be one of quick, full, paper; got 'slow'"),
        (["check", "--seeds", "0"], "seeds must be at least 1, got 0"),
        (
            ["check", "--seeds", "99999999999999999999"],
            "seeds must be at most 10000, got 99999999999999999999",
        ),
        (["check", "--report", ""], "--report needs the name of a folder, got an empty one"),
        (["check", "--store", ""], "--store needs the name of a folder, got an empty one"),
        (["show", "small"], "there is no claim 'small': that is a family, of small/"),
        (["check", "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["check", "--report", "file"], "the report needs a folder to write to, got 'file'"),
        (["check", "--report", "file/below"], "the report needs a folder to write to, got 'file/below'"),
        (["check", "--store", "file"], "a result store needs a folder to write to, got 'file'"),
        (
            ["check", "--store", "file", "--jobs", "2"],
            "a result store needs a folder to write to, got 'file'",
        ),
        (["check", "small/full"], "nothing to run at tier quick: small/full needs tier full"),
        (["list", "nobody"], "there is no claim 'nobody'"),
        (["show", "small/goood"], "the nearest is 'small/good'"),
        (["graph", "--svg", "file/graph.svg"], "cannot write the drawing to 'file/graph.svg'"),
        (["verify", "nothing.json"], "a certificate is a file, got 'nothing.json'"),
    ],
)
def test_bad_usage_is_one_sentence(arguments: list[str], words: str, project: Project) -> None:
    (project.path / "file").write_text("mine")
    sentence = _one_sentence(project(*arguments))
    assert words in sentence
    assert (project.path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "arguments",
    [["check", "--seeds", "two"], ["check", "--unknown"], ["nothing"], ["show"], ["verify"]],
)
def test_usage_that_cannot_be_parsed(arguments: list[str], project: Project) -> None:
    done = project(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
    assert "Usage: " in done.stderr


def test_verify_rejects_what_is_no_certificate(project: Project) -> None:
    (project.path / "other.json").write_text('{"a": 1}')
    (project.path / "binary.json").write_bytes(bytes(range(256)))
    for name in ("other.json", "binary.json"):
        done = project("verify", name)
        assert done.returncode == 1, done.stderr
        assert done.stdout.startswith(f"REJECTED {name}: ")
        assert done.stderr == ""


def test_list_show_and_graph(project: Project) -> None:
    listed = project("list")
    assert listed.returncode == 0
    for name in ("good", "kept", "upon", "full"):
        assert f"small/{name}" in listed.stdout
    assert "small/kept" not in project("list", "small/good").stdout
    claims = json.loads(project("list", "--json").stdout)
    assert [c["id"] for c in claims] == ["small/good", "small/kept", "small/full", "small/upon"]
    shown = project("show", "small/upon")
    assert shown.returncode == 0
    for words in ("Title of upon", "depends on small/good", "bound = 1.0", "planted, must FAIL"):
        assert words in shown.stdout
    drawn = project("graph")
    assert drawn.returncode == 0
    assert "small/good" in drawn.stdout
    assert project("graph", "--svg", "graph.svg").returncode == 0
    assert "<svg" in (project.path / "graph.svg").read_text()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interruption_keeps_what_was_computed(jobs: str, project: Project) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "check", "--report", "out", "--jobs", jobs],
        cwd=project.path,
        env=project.environment("slow"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that the signal goes to this process alone
    )
    deadline = time.monotonic() + 60  # only against hanging for ever
    while not (project.log.exists() and project.log.read_text() == "started") and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted: what was computed so far is reported" in stdout
    assert "Traceback" not in stdout + stderr
    found = {c["id"]: c["outcome"] and c["outcome"]["verdict"] for c in project.report("out")["claims"]}
    assert found["small/good"] == "PASS"
    assert found["small/slow"] is None
    assert project.report("out")["exit_code"] == 1


def _loaded(code: str) -> list[str]:
    heavy = ("torch", "numba", "cvxpy", "scipy", "sympy", "matplotlib", "numpy")
    script = f"import sys; {code}; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1].replace("'", '"'))


@pytest.mark.parametrize(
    "code",
    ["import marginlab.cli.app", "import marginlab", "import marginlab.proofs_check", "import marginlab.cli"],
)
def test_help_loads_nothing_heavy(code: str) -> None:
    assert _loaded(code) == []


def test_collecting_the_claims_loads_no_trainer_and_no_solver() -> None:
    assert not {"torch", "numba", "cvxpy", "matplotlib"} & set(
        _loaded("import marginlab; marginlab.claims()")
    )


def test_theory_packages_load_no_trainer_and_no_solver() -> None:
    import pkgutil

    import marginlab.theory as theory

    packages = [m.name for m in pkgutil.walk_packages(theory.__path__, "marginlab.theory.") if m.ispkg]
    assert "marginlab.theory.match_copy" in packages
    for package in ["marginlab.theory", *packages]:
        assert not {"torch", "numba", "cvxpy", "sympy", "matplotlib"} & set(_loaded(f"import {package}"))


def test_public_names_of_lazy_packages_load() -> None:
    import marginlab
    import marginlab.proofs_check as proofs_check

    for package in (marginlab, proofs_check):
        for name in dir(package):
            assert getattr(package, name) is not None
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = package.nothing


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"]])
def test_help_and_version(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "marginlab", *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout
    assert done.stderr == ""


def test_warm_up() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "marginlab", "warm-up"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"kernels ready after \d+\.\d s\n", done.stdout)


def test_a_terminal_without_unicode_loses_characters_and_nothing_else() -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "marginlab", "graph"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "match-copy/direction" in done.stdout


def test_a_path_that_no_system_takes_is_bad_usage() -> None:
    command = [sys.executable, "-m", "marginlab", "verify", "a" * 5000]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
