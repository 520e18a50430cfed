"""A foreign project: somebody's own claims in a folder that has nothing to do with this repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_CLAIMS = """
import numpy as np

from marginlab.proofs_check import (
    Answer, Assumption, Claim, Evidence, Instance, Interval, Kind, Plant, Sample, Source, Status, Tier,
)


def _instances(run):
    for k in run.seeds(3):
        rng = np.random.default_rng(run.stream({"task": "foreign"}, k))
        yield Instance(label=f"seed {k}", data=float(rng.random()), seed=k)


def _answer(status):
    return Assumption(name="A1", statement="A1", check=lambda i: Answer(Status(status), "as told"))


def make(name, measure=lambda i: Interval.exact(i.data), plant=-1.0, **changes):
    fields = dict(
        id=f"foreign/{name}", title=name, paper="marginlab", where="here", source=Source.DERIVED,
        kind=Kind.UPPER, evidence=Evidence.EXACT, statement="$x \\\\le 1$", constants={"bound": 1.0},
        instances=_instances, measure=measure,
        predict=lambda i, constants: Interval.exact(constants["bound"]),
        controls=(Plant(name="planted", constants={"bound": plant}),),
    )
    return Claim(**(fields | changes))


def statistical(name, judgements=3):
    def measure(instance):
        rng = np.random.default_rng(int(instance.data * 2**32))
        return Sample(values=rng.random(50), unit="token, given this run")

    return make(
        name, measure, kind=Kind.ESTIMATE, evidence=Evidence.STATISTICAL, judgements=judgements,
        unit="token, given this run", predict=lambda i, c: Interval(np.array(0.0), np.array(c["bound"]), "stated"),
    )
"""


@pytest.fixture
def foreign(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a module `own_claims` that makes claims."""
    pytester.makepyfile(own_claims=_CLAIMS)
    pytester.makeini("[pytest]\npythonpath = .\nfilterwarnings = error\n")
    return pytester


@pytest.fixture
def report_numbers() -> Any:
    """The report of a folder without what may differ between two runs of the same claims."""

    def read(folder: Path) -> Any:
        document = json.loads((folder / "report.json").read_text())
        del document["environment"]
        for key in ("started", "jobs", "selection", "store"):
            document["run"].pop(key)
        return _without_times(document)

    return read


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k != "seconds"}
    return [_without_times(v) for v in value] if isinstance(value, list) else value
