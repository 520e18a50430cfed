"""Plain data for reports and workers; sessions in one process and in several; the environment."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check import Approach, Curve, Emergence, Interval, Ranking, Sample, Verdict
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.environment import environment, flushes_to_zero
from marginlab.proofs_check.engine.outcomes import jsonable
from marginlab.proofs_check.engine.session import outcomes
from marginlab.proofs_check.engine.values import summary
from marginlab.theory.errors import InvalidInput


class _Grade(IntEnum):
    GOOD = 3


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "nan"),
        (np.float64("inf"), "inf"),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (True, True),
        (None, None),
        (_Grade.GOOD, 3),
        (Verdict.PASS, "PASS"),
        (np.str_("a"), "a"),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, "nan"], ["inf", 2.0]]),
        (np.array(7), 7),
        ((1, (2, [np.float64(3)])), [1, [2, [3.0]]]),
        (
            {1: {"a": (np.nan,)}, "b": MappingProxyType({"c": np.int8(1)})},
            {"1": {"a": ["nan"]}, "b": {"c": 1}},
        ),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({3, 1}), [1, 3]),
        (Path("a"), "a"),
    ],
)
def test_jsonable(value: Any, plain: Any) -> None:
    found = jsonable(value)
    assert found == plain
    _assert_built_in(found)
    json.dumps(found, allow_nan=False)


def _assert_built_in(value: Any) -> None:
    """Exactly the built-in types: what carries a worker's reports accepts no subclass."""
    assert type(value) in (dict, list, str, float, int, bool, type(None))
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _assert_built_in(inner)


_scalars = st.one_of(
    st.floats(), st.integers(), st.booleans(), st.none(), st.text(), st.floats().map(np.float64)
)
_nested = st.recursive(
    _scalars, lambda inner: st.one_of(st.lists(inner), st.tuples(inner), st.dictionaries(st.text(), inner))
)


@settings(deadline=None)
@given(value=_nested)
def test_jsonable_of_anything_is_strict_json_and_stays(value: Any) -> None:
    found = jsonable(value)
    _assert_built_in(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert jsonable(found) == found


def test_summaries_are_jsonable() -> None:
    x = np.arange(1.0, 4.0)
    curve = Curve(x=x, y=Interval.exact(x), x_name="step", y_name="norm")
    values = {
        "scalar": Interval.exact([2.0]),
        "array": Interval.exact([[2.0, 3.0]]),
        "empty": Interval.exact([]),
        "curve": curve,
        "approach": Approach(time=x, norm=x, one_minus_cos=Interval.exact(1 / x)),
        "sample": Sample(values=x, unit="seed"),
        "nothing": Sample(values=np.array([]), unit="seed"),
        "ranking": Ranking(values={"a": Interval.exact(1.0)}),
        "emergence": Emergence(before=0.0, after=1.0, window=(0.0, 1.0)),
        "order": ("a", "b"),
        "other": object,
    }
    found = {name: jsonable(summary(value)) for name, value in values.items()}
    json.dumps(found, allow_nan=False)
    assert found["scalar"] == {"lo": 2.0, "hi": 2.0, "rule": "exact"}
    assert (found["array"]["lo"], found["array"]["hi"], found["array"]["shape"]) == (2.0, 3.0, [1, 2])
    assert found["curve"]["last"] == {"lo": 3.0, "hi": 3.0}
    assert (found["sample"]["n"], found["sample"]["mean"]) == (3, 2.0)
    assert found["nothing"]["mean"] is None
    assert found["order"] == {"order": ["a", "b"]}


def test_begun_is_told_every_name_before_it_runs(claim: Any) -> None:
    log: list[str] = []
    for outcome in outcomes([claim()], config=RunConfig(), level=1e-3, begun=log.append):
        log.append(str(outcome.verdict))
    assert log == ["fake/claim", "PASS", "fake/claim: planted", "FAIL"]


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True])
def test_number_of_jobs(jobs: Any, claim: Any) -> None:
    with pytest.raises(InvalidInput, match="jobs must be"):
        list(outcomes([claim()], config=RunConfig(), level=1e-3, jobs=jobs))


def test_environment_is_complete() -> None:
    found = environment()
    json.dumps(jsonable(found), allow_nan=False)
    assert found["python"] == sys.version.split()[0]
    assert found["versions"]["numpy"] == np.__version__
    assert found["flush_to_zero"] is False
    assert not flushes_to_zero()
    assert set(found["git"]) == {"revision", "dirty"}


def test_nothing_is_judged_while_subnormals_are_flushed() -> None:
    """A real flush-to-zero mode, set by torch in a process of its own."""
    code = """
import torch
assert torch.set_flush_denormal(True)
from marginlab.proofs_check.engine.environment import SubnormalsFlushed, require_gradual_underflow
try:
    require_gradual_underflow()
except SubnormalsFlushed as error:
    print("refused:", error)
torch.set_flush_denormal(False)
require_gradual_underflow()
print("accepted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused: this process rounds subnormal numbers to zero")
    assert done.stdout.endswith("accepted\n")
