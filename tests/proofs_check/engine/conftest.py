"""Fake claims: real `Claim` objects about given values, so that every verdict can be asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from marginlab.proofs_check import (
    Answer,
    Assumption,
    Claim,
    Evidence,
    Instance,
    Interval,
    Kind,
    Plant,
    Run,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import RunConfig


def _called(value: Any, *arguments: Any) -> Any:
    return value(*arguments) if callable(value) else value


def fake_claim(
    kind: Kind = Kind.UPPER,
    measured: Sequence[Any] = (Interval.exact(0.5),),
    predicted: Any = lambda data, constants: Interval.exact(constants["bound"]),
    **changes: Any,
) -> Claim:
    """A claim that measures the given values, one instance each.

    `measured` holds values, or functions without arguments that are called when the instance is measured;
    an instance's data is its index. `predicted` is a value or a function of (index, constants).
    """
    fields: dict[str, Any] = {
        "id": "fake/claim",
        "title": "A fake claim",
        "paper": "arXiv:2602.07562v1",
        "where": "nowhere",
        "source": Source.DERIVED,
        "kind": kind,
        "evidence": Evidence.EXACT,
        "statement": "$x \\le b$",
        "constants": {"bound": 1.0},
        "instances": lambda run: [Instance(label=f"instance {k}", data=k) for k in range(len(measured))],
        "measure": lambda instance: _called(measured[instance.data]),
        "predict": lambda instance, constants: _called(predicted, instance.data, constants),
        "controls": (Plant(name="planted", constants={"bound": -1.0}),),
    }
    if kind in (Kind.RATE, Kind.LIMIT, Kind.DIRECTION):
        fields["window"] = (1.0, 100.0)
    return Claim(**(fields | changes))


def fake_assumption(
    name: str, answers: Sequence[Status] | Callable[[Instance], Answer], implies: tuple[str, ...] = ()
) -> Assumption:
    """An assumption with one status per instance (by index), or with the given check."""

    def told(instance: Instance) -> Answer:
        assert not callable(answers)
        return Answer(answers[instance.data], f"{name} of {instance.label}", float(instance.data))

    check = answers if callable(answers) else told
    return Assumption(name=name, statement=f"{name} holds", check=check, implies=implies)


@pytest.fixture(scope="session")
def claim() -> Callable[..., Claim]:
    """`fake_claim`."""
    return fake_claim


@pytest.fixture(scope="session")
def assumption() -> Callable[..., Assumption]:
    """`fake_assumption`."""
    return fake_assumption


@pytest.fixture
def run() -> Run:
    """A fresh run of the quick tier."""
    return Run(RunConfig())
