"""Numbers as a reader sees them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.engine.judgement import show_apart
from marginlab.proofs_check.reports import wording

FLOATS = st.floats(
    allow_nan=False, allow_infinity=False, allow_subnormal=False, min_value=-1e300, max_value=1e300
)


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ([1.0, 1.0], "1"),
        ([0.45, 0.55], "[0.45, 0.55]"),
        ([0.5 - 2.0**-40, 0.5 + 2.0**-40], "0.5 ± 9.1e-13"),
        ([1 / 3 - 1e-12, 1 / 3 + 1e-12], "0.3333333333333 ± 1.0e-12"),
        (["-inf", 1.0], "≤ 1"),
        ([0.25, "inf"], "≥ 0.25"),
        (["-inf", "inf"], "any value"),
        (["inf", "inf"], "∞"),
        (None, "-"),
        ([0.1635165848827123, 0.1635165848827123], "0.1635165848827123"),
    ],
)
def test_intervals(ends: list[Any] | None, text: str) -> None:
    assert wording.interval(ends) == text


@settings(deadline=None, max_examples=300)
@given(FLOATS, FLOATS)
def test_an_interval_is_never_shown_as_a_point(a: float, b: float) -> None:
    lo, hi = min(a, b), max(a, b)
    shown = wording.interval([lo, hi])
    if lo == hi:
        assert float(shown) == pytest.approx(lo, rel=10.0 ** (1 - wording.DIGITS))
    elif "±" in shown:
        centre, radius = map(float, shown.split(" ± "))
        # Two digits of the radius, and the centre to well within it.
        assert radius == pytest.approx((hi / 2 - lo / 2), rel=0.06)
        assert abs(centre - (lo / 2 + hi / 2)) <= max(radius, 4 * math.ulp(centre))
    else:
        left, right = shown.strip("[]").split(", ")
        assert left != right
        assert float(left) == pytest.approx(lo, rel=10.0 ** (1 - wording.DIGITS))


def test_numbers() -> None:
    assert [wording.number(v) for v in (None, True, 3, 0.1 + 0.2, "inf", "-inf", "nan", 1e-300)] == [
        "-", "true", "3", "0.3", "∞", "-∞", "not a number", "1e-300",
    ]  # fmt: skip


def test_durations() -> None:
    times = (0, 0.0004, 0.0126, 3.44, 59.99, 320.2)
    assert [wording.duration(t) for t in times] == [
        "under 1 ms", "under 1 ms", "13 ms", "3.4 s", "60.0 s", "5 min 20 s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("summary", "text"),
    [
        ({"lo": 1.0, "hi": 1.0, "rule": "exact"}, "1"),
        ({"lo": 0.0, "hi": 2.0, "shape": [2, 3], "rule": "exact"}, "2 x 3 values between 0 and 2"),
        ({"shape": [0], "rule": "exact"}, "an empty array"),
        ({"curve": "norm", "against": "log t", "points": 9, "last": {"lo": 1.0, "hi": 2.0}, "rule": "r"},
         "norm against log t at 9 points, at the last one [1, 2]"),
        ({"approach": "1 - cos", "points": 9, "last": {"lo": 0.0, "hi": 0.5}, "rule": "r"},
         "1 - cos at 9 points, at the last one [0, 0.5]"),
        ({"sample": "mean", "n": 7, "unit": "seed", "mean": 0.5}, "mean of 7 replications (seed): 0.5"),
        ({"ranking": {"a": {"lo": 1.0, "hi": 1.0, "rule": "x"}, "b": {"lo": 2.0, "hi": 2.0, "rule": "y"}}},
         "a: 1; b: 2"),
        ({"before": 0.1, "after": 0.9, "window": [1, 2]},
         "below 0.1 at first, above 0.9 in the end, crossing in [1, 2]"),
        ({"order": ["a", "b"]}, "a < b"),
        ({"value": "<object>"}, "<object>"),
        (None, "nothing"),
    ],
)  # fmt: skip
def test_values_in_words(summary: dict[str, Any] | None, text: str) -> None:
    assert wording.described(summary) == text


def test_rules_of_a_ranking() -> None:
    ranking = {"a": {"lo": 1.0, "hi": 1.0, "rule": "x"}, "b": {"lo": 2.0, "hi": 2.0, "rule": "y"}}
    assert wording.rules({"ranking": ranking}) == ["x", "y"]


def test_nested_configurations_keep_their_brackets() -> None:
    assert wording.compact({"data": {"n": 8, "std": 0.1 + 0.2}, "seeds": [1, 2]}) == (
        "data = (n = 8, std = 0.3), seeds = [1, 2]"
    )
    assert wording.compact({}) == "none"


def test_instances_are_counted_as_judged_or_excluded(document: dict[str, Any]) -> None:
    counts = {c["id"]: wording.split_instances(c) for c in document["claims"]}
    assert counts["fake/square"] == (3, 1)
    assert counts["fake/vacuous"] == (0, 1)
    assert counts["fake/unformed"] == (3, 1)
    assert counts["fake/raises"] == (3, 1)
    assert sum(excluded for _, excluded in counts.values()) == document["totals"]["excluded"]


@pytest.mark.parametrize(
    ("evidence", "verdict", "text"),
    [
        ("symbolic", "PASS", "proved"),
        ("certified", "PASS", "proved for these instances"),
        ("exact", "FAIL", "refuted by an instance"),
        ("numerical", "PASS", "observed on these instances"),
        ("statistical", "FAIL", "contradicted by what was measured"),
        ("exact", "VACUOUS", ""),
        ("certified", "INCONCLUSIVE", ""),
    ],
)
def test_only_what_is_proved_is_called_proved(evidence: str, verdict: str, text: str) -> None:
    claim = {"evidence": evidence, "outcome": {"verdict": verdict}}
    assert wording.standing(claim) == text
    assert wording.evidence_of(claim) == (f"{evidence}: {text}" if text else evidence)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.text(alphabet="ab-. /σ\\", min_size=1, max_size=6), min_size=2, max_size=12, unique=True))
def test_certificate_files_are_safe_and_distinct(labels: list[str]) -> None:
    files = [wording.certificate_file("fake/square", label) for label in labels]
    assert len(set(files)) == len(labels)
    assert all(re.fullmatch(r"certificates/fake--square--[A-Za-z0-9.-]+\.json", f) for f in files)


def test_certificate_files_of_plain_labels_keep_their_words() -> None:
    assert wording.certificate_file("fake/square", "seed 0") == "certificates/fake--square--seed-0.json"
    assert len(wording.certificate_file("fake/square", "x" * 1000)) < 200


@pytest.mark.parametrize(
    ("kind", "verdict", "waived", "text"),
    [
        ("Plant", "FAIL", None, "FAIL on 1 of 2"),
        ("Plant", "PASS", None, "PASS"),
        ("Break", "VACUOUS", "FAIL", "VACUOUS, waived FAIL on 1 of 2"),
        ("Break", "VACUOUS", "PASS", "VACUOUS, waived PASS"),
    ],
)
def test_controls_say_on_how_many_instances_they_fail(
    kind: str, verdict: str, waived: str | None, text: str
) -> None:
    control = {
        "type": kind, "verdict": verdict, "waived_verdict": waived,
        "instances": [{"verdict": "FAIL"}, {"verdict": "PASS"}],
    }  # fmt: skip
    assert wording.control_verdict(control) == text


@settings(deadline=None, max_examples=300)
@given(FLOATS, st.integers(0, 2**32))
def test_two_numbers_that_differ_are_shown_apart(a: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = a * (1 + float(rng.choice([1e-3, 1e-7, 1e-12, 2.0**-52])))
    if a == b or not math.isfinite(b):
        return
    assert wording.interval([a, a], [b, b]) != wording.interval([b, b], [a, a])
    ours, theirs = show_apart((a, a), (b, b))
    assert ours != theirs


def test_a_failure_in_the_seventh_digit_is_seen() -> None:
    narrow, point = (0.1377832335227, 0.1377832335228), (0.1377831, 0.1377831)
    assert show_apart(narrow, point)[1] == "0.1377831"
    wide = [0.1, 0.20000001]
    assert wording.interval(wide, [0.2, 0.2]) == "[0.1, 0.20000001]"
