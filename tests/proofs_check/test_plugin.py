"""The pytest plugin in foreign projects, each run in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marginlab.proofs_check import Tier
from marginlab.proofs_check.plugin import _TIERS

HEAVY = ("torch", "numba", "cvxpy", "scipy", "numpy", "matplotlib", "sympy")


def _run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


def test_tiers_are_the_engine_s() -> None:
    assert tuple(Tier) == _TIERS


def test_claim_that_passes(foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        "from own_claims import make\n\ngood = make('good')\n\n\ndef test_plain():\n    pass\n"
    )
    result = _run(foreign, "-v")
    assert result.ret == 0
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        [
            "*::foreign/good PASSED*",
            "*::foreign/good?planted? PASSED*",
            "foreign/good: PASS, as expected, 1/1 controls",
            "1 claims, 0 unexpected, 0 NOT SELECTED",
        ]
    )


@pytest.mark.parametrize(
    ("claim", "verdict", "reason"),
    [
        ("make('c', constants={'bound': 0.0})", "FAIL", "upper bound 0"),
        ("make('c', assumes=(_answer('FAILS'),))", "VACUOUS", "assumption A1 does not hold: as told"),
        ("make('c', assumes=(_answer('UNDECIDED'),))", "INCONCLUSIVE", "A1 cannot be decided: as told"),
        (
            "make('c', lambda i: Interval(np.array(0.), np.array(2.), 'wide'))",
            "INCONCLUSIVE",
            "straddles the bound",
        ),
        ("make('c', lambda i: 1 / 0)", "ERROR", "ZeroDivisionError"),
    ],
)
def test_other_verdicts_are_failed_items(
    claim: str, verdict: str, reason: str, foreign: pytest.Pytester
) -> None:
    foreign.makepyfile(f"from own_claims import *\nfrom own_claims import _answer\n\nbad = {claim}\n")
    result = _run(foreign, "--deselect", "test_other_verdicts_are_failed_items.py::foreign/c[planted]")
    assert result.ret == 1
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines([f"*foreign/c: {verdict}, expected PASS: *{reason}*"])
    assert "Traceback (most recent call last)" not in result.stdout.str() or verdict == "ERROR"


def test_control_that_comes_out_wrong_fails_the_run(foreign: pytest.Pytester) -> None:
    foreign.makepyfile("from own_claims import make\n\nweak = make('weak', plant=0.9999)\n")
    result = _run(foreign)
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*foreign/weak[[]planted[]]: PASS, expected FAIL*"])
    result.stdout.fnmatch_lines(["foreign/weak: PASS, UNEXPECTED, 0/1 controls"])


def test_claim_without_a_control_is_a_collection_error(foreign: pytest.Pytester) -> None:
    foreign.makepyfile("from own_claims import make\n\nbare = make('bare', controls=())\n")
    result = _run(foreign)
    assert result.ret == 2
    result.stdout.fnmatch_lines(["*claim 'foreign/bare': it has no control that can reach FAIL*"])


@pytest.mark.parametrize("two", ["one file", "two files"])
def test_two_claims_of_one_id_are_refused(two: str, foreign: pytest.Pytester) -> None:
    first = "from own_claims import *\n\ngood = make('same')\n"
    second = "false = make('same', lambda i: Interval.exact(9.0))\n"
    if two == "one file":
        foreign.makepyfile(first + second)
    else:
        foreign.makepyfile(test_a=first, test_b=f"from own_claims import *\n\n{second}")
    result = _run(foreign)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*two different claims are called 'foreign/same'*"])


def test_one_claim_under_two_names_runs_once(foreign: pytest.Pytester) -> None:
    foreign.makepyfile("from own_claims import make\n\ngood = make('good')\nagain = good\n")
    _run(foreign).assert_outcomes(passed=2)


def test_run_without_claims_loads_nothing_of_ours(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        conftest=f"""
        import sys

        def pytest_sessionfinish(session):
            print("loaded:", [m for m in {HEAVY!r} if m in sys.modules],
                  "plugin:", "marginlab.proofs_check.plugin" in sys.modules)
        """
    )
    pytester.makepyfile("def test_plain():\n    pass\n")
    result = _run(pytester, "-s")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*loaded: [[][]] plugin: True*"])
    result.stdout.no_fnmatch_line("*= claims =*")


def test_one_claim_under_two_names_and_in_two_files(foreign: pytest.Pytester, report_numbers: Any) -> None:
    foreign.makepyfile(shared="from own_claims import make\n\nclaim = make('shared')\n")
    foreign.makepyfile(test_one="from shared import claim\nfrom shared import claim as again\n")
    foreign.makepyfile(test_two="from shared import claim\n")
    result = _run(foreign, "--claims-report", "out")
    result.assert_outcomes(passed=4)
    document = report_numbers(foreign.path / "out")
    assert [c["id"] for c in document["claims"]] == ["foreign/shared"]
    assert len(document["claims"][0]["controls"]) == 1


def test_two_claims_of_one_id_are_bad_usage(foreign: pytest.Pytester) -> None:
    foreign.makepyfile("from own_claims import make\n\na, b = make('same'), make('same')\n")
    foreign.makepyfile(test_other="from own_claims import make\n\nc = make('same')\n")
    result = _run(foreign)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*two different claims are called 'foreign/same'.*"])


def test_dependency_on_a_claim_of_ours_and_on_an_unknown_one(
    foreign: pytest.Pytester, report_numbers: Any
) -> None:
    foreign.makepyfile(
        "from own_claims import make\n\nrests = make('rests', depends_on=('match-copy/separator',))\n"
    )
    result = _run(foreign, "--claims-report", "out")
    assert result.ret == 0
    (claim,) = report_numbers(foreign.path / "out")["claims"]
    assert claim["rests_on"] == ["match-copy/separator"]  # it did not run here
    result.stdout.fnmatch_lines(
        ["foreign/rests: PASS, as expected, 1/1 controls, rests on match-copy/separator"]
    )
    foreign.makepyfile("from own_claims import make\n\nrests = make('rests', depends_on=('nobody/s',))\n")
    result = _run(foreign)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*'foreign/rests' depends on unknown claims: nobody/s.*"])


def test_rests_on_a_claim_that_is_not_as_expected(foreign: pytest.Pytester, report_numbers: Any) -> None:
    foreign.makepyfile(
        "from own_claims import make\n\n"
        "base = make('base', constants={'bound': 0.0})\n"
        "upon = make('upon', depends_on=('foreign/base',))\n"
        "fine = make('fine')\n"
        "also = make('also', depends_on=('foreign/fine',))\n"
    )
    result = _run(foreign, "--claims-report", "out")
    assert result.ret == 1
    found = {
        c["id"]: (c["as_expected"], c["rests_on"]) for c in report_numbers(foreign.path / "out")["claims"]
    }
    assert found == {
        "foreign/base": (False, []),
        "foreign/upon": (True, ["foreign/base"]),
        "foreign/fine": (True, []),
        "foreign/also": (True, []),
    }


class TestTiers:
    SOURCE = (
        "from own_claims import make, Tier\n\nquick = make('quick')\n"
        "full = make('full', min_tier=Tier.FULL)\npaper = make('paper', min_tier=Tier.PAPER)\n"
    )

    @pytest.mark.parametrize(("tier", "runs", "left"), [("quick", 1, 2), ("full", 2, 1), ("paper", 3, 0)])
    def test_claims_above_the_tier_are_listed(
        self, tier: str, runs: int, left: int, foreign: pytest.Pytester
    ) -> None:
        foreign.makepyfile(self.SOURCE)
        result = _run(foreign, "--claims-tier", tier)
        result.assert_outcomes(passed=2 * runs, deselected=2 * left)
        result.stdout.fnmatch_lines([f"{runs} claims, 0 unexpected, {left} NOT SELECTED"])
        if left:
            line = f"NOT SELECTED foreign/paper: needs tier paper, the run's is {tier}"
            result.stdout.fnmatch_lines([line])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--claims-tier", "slow"], "*invalid choice: 'slow'*"),
        (["--claims-seeds", "0"], "*a number of seeds is an integer of at least 1, got '0'.*"),
        (["--claims-seeds", "two"], "*a number of seeds is an integer of at least 1, got 'two'.*"),
        (["--claims-store", "file"], "*--claims-store needs a folder to write to, got 'file'*"),
        (["--claims-report", "file"], "*--claims-report needs a folder to write to, got 'file'*"),
        (["--claims-report", "file", "-n", "2"], "*--claims-report needs a folder to write to, got 'file'*"),
    ],
)
def test_bad_usage(arguments: list[str], words: str, foreign: pytest.Pytester) -> None:
    (foreign.path / "file").write_text("mine")
    foreign.makepyfile("from own_claims import make\n\ngood = make('good')\n")
    result = _run(foreign, *arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([words])
    assert "Traceback" not in result.stderr.str() + result.stdout.str()


SEVERAL = (
    "from own_claims import make, statistical\n\n"
    "a, b, c = make('a'), make('b', group='other'), make('c', constants={'bound': 0.5})\n"
    "s, t = statistical('s'), statistical('t', 4)\n"
)


def test_two_workers_give_the_same_report(foreign: pytest.Pytester, report_numbers: Any) -> None:
    foreign.makepyfile(SEVERAL)
    results = [
        _run(foreign, "--claims-report", "one"),
        _run(foreign, "--claims-report", "two", "-n", "2", "--dist", "loadgroup"),
    ]
    assert [r.ret for r in results] == [1, 1]
    one, two = (report_numbers(foreign.path / name) for name in ("one", "two"))
    assert one == two
    assert [c["id"] for c in one["claims"]] == [f"foreign/{k}" for k in "abcst"]
    assert one["run"]["level"] == pytest.approx(1e-3 / 7)
    for claim in one["claims"]:
        assert claim["outcome"]["instances"]
        assert claim["controls"]
        assert not claim["controls_missing"]


def test_certificates_with_integers_of_any_size_cross_between_workers(foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        "from own_claims import make\n\n"
        "a = make('a', certificate=lambda i: {'schema': 'own', 'statement': 'big', 'n': 10**100})\n"
    )
    result = _run(foreign, "--claims-report", "out", "-n", "2", "--dist", "loadgroup")
    assert result.ret == 0
    files = list((foreign.path / "out" / "certificates").iterdir())
    assert files
    assert all(json.loads(file.read_text())["n"] == 10**100 for file in files)


def test_selection_by_k_changes_no_number(foreign: pytest.Pytester, report_numbers: Any) -> None:
    foreign.makepyfile(SEVERAL)
    _run(foreign, "--claims-report", "all")
    _run(foreign, "--claims-report", "some", "-k", "foreign/t or foreign/a")
    every, some = (report_numbers(foreign.path / name) for name in ("all", "some"))
    assert [c["id"] for c in some["claims"]] == ["foreign/a", "foreign/t"]
    assert some["claims"] == [c for c in every["claims"] if c["id"] in ("foreign/a", "foreign/t")]
    assert some["run"] == every["run"]
    assert {c["id"]: c["reason"] for c in some["not_selected"]} == {
        f"foreign/{k}": "left out by the selection" for k in "bcs"
    }


def test_claims_that_did_not_get_to_run_are_gaps(foreign: pytest.Pytester) -> None:
    """Stopped by -x: the report may not say that the rest was left out on purpose."""
    foreign.makepyfile(
        "from own_claims import make\n\nbad = make('a', constants={'bound': 0.0})\nlater = make('b')\n"
    )
    result = _run(foreign, "-x", "--claims-report", "out")
    assert result.ret == 1
    document = json.loads((foreign.path / "out" / "report.json").read_text())
    found = {c["id"]: (c["outcome"] is None, c["as_expected"]) for c in document["claims"]}
    assert found == {"foreign/a": (False, False), "foreign/b": (True, False)}
    assert document["not_selected"] == []
    assert document["exit_code"] == 1


def test_number_of_seeds(foreign: pytest.Pytester, report_numbers: Any) -> None:
    foreign.makepyfile("from own_claims import make\n\ngood = make('good')\n")
    _run(foreign, "--claims-report", "three")
    _run(foreign, "--claims-report", "five", "--claims-seeds", "5")
    three, five = (
        report_numbers(foreign.path / name)["claims"][0]["outcome"]["instances"] for name in ("three", "five")
    )
    assert [i["seed"] for i in five] == [0, 1, 2, 3, 4]
    assert five[:3] == three


def test_report_without_claims_is_said_to_be_missing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_plain():\n    pass\n")
    result = _run(pytester, "--claims-report", "out")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["no claim was collected, so no report was written to out"])


def test_collecting_only_runs_nothing(foreign: pytest.Pytester) -> None:
    foreign.makepyfile("from own_claims import make\n\ngood = make('good', lambda i: 1 / 0)\n")
    result = _run(foreign, "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*::foreign/good", "*::foreign/good?planted?"])
    result.stdout.no_fnmatch_line("*not run*")


def test_store_keeps_results_between_runs(foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        kept="""
        import numpy as np
        from own_claims import Instance, Interval, make

        def compute(config, seed):
            with open("log.txt", "a") as log:
                log.write("x")
            return {"x": np.array(0.5)}

        def instances(run):
            return [Instance(label="only", data=run.recall(compute, {}, 0)["x"])]

        claim = make("kept", instances=instances)
        """
    )
    foreign.makepyfile("from kept import claim\n")
    log: Path = foreign.path / "log.txt"
    for options, computed in (
        ([], 1),
        ([], 2),
        (["--claims-store", "store"], 3),
        (["--claims-store", "store"], 3),
    ):
        assert _run(foreign, *options).ret == 0
        assert len(log.read_text()) == computed


@pytest.mark.parametrize(
    "leave", ["pytest.skip('not today')", "pytest.importorskip('nothing_like_it')", "pytest.xfail('x')"]
)
def test_a_claim_cannot_skip_itself(leave: str, foreign: pytest.Pytester) -> None:
    foreign.makepyfile(f"import pytest\nfrom own_claims import make\n\nsk = make('sk', lambda i: {leave})\n")
    result = _run(foreign)
    assert result.ret == 1
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["foreign/sk: ERROR, UNEXPECTED, 0/1 controls"])


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_claim_that_a_mark_skips_fails_the_run(options: tuple[str, ...], foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        "import pytest\nfrom own_claims import make\n\npytestmark = pytest.mark.skip(reason='not today')\n"
        "sk = make('sk')\n"
    )
    result = _run(foreign, *options)
    assert result.ret == 1
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["foreign/sk: not run, UNEXPECTED, 0/1 controls, 1 NOT RUN"])


def test_claims_of_a_higher_tier_do_not_fail_a_run_of_tests(foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        "from own_claims import *\n\nfull = make('f', min_tier=Tier.FULL)\n\n\ndef test_plain():\n    pass\n"
    )
    assert _run(foreign).ret == 0


def test_a_control_alone_says_nothing_of_its_claim(foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        "from own_claims import *\n\nfalse = make('false', lambda i: Interval.exact(7.0))\n"
        "dep = make('dep', depends_on=('foreign/false',))\n"
    )
    result = _run(foreign, "-k", "planted or dep")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "foreign/false: not run, 1/1 controls",
            "foreign/dep: PASS, as expected, 1/1 controls, rests on foreign/false",
        ]
    )


@pytest.mark.parametrize(
    "kind", ["[make('a'), make('b', lambda i: Interval.exact(9.0))]", "(a, make('b', plant=2.0), a)"]
)
def test_claims_in_a_list_are_collected(kind: str, foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        f"from own_claims import *\n\na = make('a')\nCLAIMS = {kind}\n".replace(
            "a = make('a')\n", "" if "[" in kind else "a = make('a')\n"
        )
    )
    result = _run(foreign)
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=1)


def test_half_a_surrogate_pair_loses_no_report(foreign: pytest.Pytester) -> None:
    foreign.makepyfile(
        "from own_claims import *\n\n"
        "def raises(i):\n    raise ValueError('half \\ud800 pair')\n\n"
        "bad = make('bad', raises)\n"
    )
    for options in ((), ("-n", "1")):
        result = _run(foreign, "--claims-report", "out", *options)
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*ValueError: half ? pair*"])
        assert "half ? pair" in (foreign.path / "out" / "report.html").read_text()


@pytest.mark.parametrize("option", ["--claims-report", "--claims-store"])
def test_an_empty_name_is_no_folder(option: str, foreign: pytest.Pytester) -> None:
    foreign.makepyfile("from own_claims import make\n\ngood = make('good')\n")
    result = _run(foreign, f"{option}=")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*{option} needs the name of a folder, got an empty one*"])
    assert not list(foreign.path.glob("report.*"))


@pytest.mark.parametrize(("rests", "papers"), [("", 0), ("depends_on=('match-copy/separator',)", 4)])
def test_the_inventory_opens_reports_of_marginlab_s_claims_only(
    rests: str, papers: int, foreign: pytest.Pytester
) -> None:
    foreign.makepyfile(f"from own_claims import make\n\ngood = make('good', {rests})\n")
    assert _run(foreign, "--claims-report", "out").ret == 0
    report = json.loads((foreign.path / "out" / "report.json").read_text())
    assert len(report["inventory"]["papers"]) == papers
