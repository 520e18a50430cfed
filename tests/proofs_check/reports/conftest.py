"""Real documents from made-up claims: the engine's own runner judges them, nothing is written by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check import (
    Answer,
    Assumption,
    Break,
    CannotForm,
    Claim,
    Curve,
    Evidence,
    Instance,
    Interval,
    Kind,
    Mend,
    Plant,
    Ranking,
    Run,
    Sample,
    Source,
    Status,
    Tier,
    Verdict,
    Waive,
)
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.environment import environment
from marginlab.proofs_check.engine.registry import Registry
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.proofs_check.reports.document import outcome_documents, registry_document, report_document
from marginlab.proofs_check.tolerances import rounded, truncated

#: Text that would do harm in some format if it were copied into it.
HOSTILE = (
    "<script>alert(\"x\")</script> & 'q' $ $$ `a` |b| # % _ ~ ^ \\input{x} ]]> {{ 7*7 }} {% x %} σ≥½ 🦊 \x01"
)


def squares(n: int) -> Callable[[Run], list[Instance]]:
    """Instances x = 1..n and one negative x, on which the assumption fails."""

    def make(run: Run) -> list[Instance]:
        del run
        drawn = [Instance(label=f"x = {k}", data=float(k), seed=k, config={"x": k}) for k in range(1, n + 1)]
        return [*drawn, Instance(label="x = -2", data=-2.0, config={"x": -2})]

    return make


def is_positive(instance: Instance) -> Answer:
    status = Status.HOLDS if instance.data > 0 else Status.FAILS
    return Answer(status, f"x = {instance.data} against 0", instance.data)


def make_claim(identifier: str = "fake/square", **changes: Any) -> Claim:
    """A claim that the square root of x squared is x, which needs x > 0."""
    fields: dict[str, Any] = {
        "id": identifier,
        "title": "The root of a square",
        "paper": "gonon2026gmc",
        "where": "Theorem 0",
        "source": Source.DERIVED,
        "kind": Kind.IDENTITY,
        "evidence": Evidence.NUMERICAL,
        "statement": r"For $x>0$: $\sqrt{x^2}=c\,x$ with $c=1$, so "
        r"$\lVert W\rVert_F\sim\tfrac{1}{2}\lVert\hat W\rVert_F\log\tau$.",
        "instances": squares(3),
        "predict": lambda instance, constants: rounded(constants["c"] * instance.data, operations=1),
        "measure": lambda instance: rounded(np.sqrt(instance.data**2), operations=2),
        "controls": (
            Plant(name="a factor of two", constants={"c": 2.0}),
            Break(name="negative numbers", assumption="P", instances=lambda run: squares(0)(run)),
        ),
        "assumes": (Assumption(name="P", statement="the number is positive, $x>0$", check=is_positive),),
        "constants": {"c": 1.0},
        "notes": "Roots are correctly rounded, so $2$ operations suffice.",
    }
    return Claim(**fields | changes)


def slope_claim() -> Claim:
    """A rate with a window, a figure and code that warns."""

    x = np.linspace(1.0, 100.0, 200)

    def predict(instance: Instance, constants: Mapping[str, Any]) -> Interval:
        warnings.warn(f"predicted with <c> = {constants['c']}", stacklevel=1)
        return truncated(constants["c"], 2 * constants["c"])

    y = Interval.around(0.5 * x, 1e-9, "solver gap: a made-up gap")
    return make_claim(
        "fake/slope",
        title="A line of slope one half",
        kind=Kind.RATE,
        window=(10.0, 90.0),
        source=Source.QUOTED,
        statement=r"$\lVert w(\tau)\rVert\sim\frac{\lVert\hat w\rVert}{2}\log\tau$ and "
        r"$W(\tau)/\lVert W(\tau)\rVert_F\to\hat W/\lVert\hat W\rVert_F$, where "
        r"$\hat W=\arg\min\{\tfrac12\lVert W\rVert_F^2:\ (e_{y_i}-e_t)^\top We\ge1\ \forall i,\ t\ne y_i\}$.",
        measure=lambda instance: Curve(x=x, y=y, x_name="log time", y_name="norm"),
        predict=predict,
        constants={"c": 0.5},
        controls=(Plant(name="cross-entropy's slope", constants={"c": 1.0}),),
        depends_on=("fake/square",),
        figure="line",
        series=lambda instance: {"x": [1.0, 2.0], "y": [0.5, 1.0]},
    )


def all_claims() -> list[Claim]:
    """Claims that pass, fail, are errata, vacuous, statistical, raise, are hostile or above the tier."""

    def no_measure(instance: Instance) -> Interval:
        raise CannotForm("there is no separator")

    def boom(instance: Instance) -> Interval:
        raise RuntimeError(HOSTILE)

    return [
        make_claim(
            controls=(
                Plant(name="a factor of two", constants={"c": 2.0}),
                Break(name="negative numbers", assumption="P", instances=squares(0)),
                Waive(name="negative again", assumption="P", instances=squares(0)),
            )
        ),
        slope_claim(),
        make_claim(
            "fake/erratum",
            expect=Verdict.FAIL,
            erratum="the published constant is $c=3$; it should be $c=1$",
            constants={"c": 3.0},
            controls=(Mend(name="corrected", constants={"c": 1.0}),),
            source=Source.REPORTED,
        ),
        make_claim("fake/wrong", constants={"c": 1.5}, depends_on=("fake/erratum",)),
        make_claim("fake/rests", depends_on=("fake/wrong", "fake/slope"), title="Rests on a wrong claim"),
        make_claim("fake/vacuous", instances=squares(0)),
        make_claim("fake/unformed", measure=no_measure),
        make_claim("fake/raises", measure=boom),
        make_claim(
            "fake/order",
            kind=Kind.ORDERING,
            assumes=(),
            constants={"first": "low"},
            measure=lambda instance: Ranking(
                values={"low": Interval.exact(1.0), "high": Interval.exact(2.0)}
            ),
            predict=lambda instance, k: ("low", "high") if k["first"] == "low" else ("high", "low"),
            controls=(Plant(name="swapped", constants={"first": "high"}),),
        ),
        make_claim(
            "fake/statistics",
            kind=Kind.ESTIMATE,
            evidence=Evidence.STATISTICAL,
            unit="sequence, given this run",
            judgements=4,
            assumes=(),
            constants={"top": 1.0},
            measure=lambda instance: Sample(
                values=np.linspace(0.4, 0.6, 40), unit="sequence, given this run"
            ),
            predict=lambda instance, k: Interval(np.array(-np.inf), np.array(k["top"]), "a stated range"),
            controls=(Plant(name="too low", constants={"top": 0.1}),),
        ),
        make_claim(
            "hostile/text",
            title=HOSTILE,
            where=HOSTILE,
            statement=HOSTILE + r" $<script>$ and $\input{/etc/passwd}$",
            notes=HOSTILE,
            unit=HOSTILE,
            paper=HOSTILE,
            constants={HOSTILE: 1.0, "c": 1.0},
            figure=HOSTILE,
            assumes=(
                Assumption(name=HOSTILE, statement=HOSTILE, check=lambda i: Answer(Status.HOLDS, HOSTILE)),
            ),
            instances=lambda run: [Instance(label=HOSTILE, data=1.0, config={HOSTILE: HOSTILE})],
            controls=(Plant(name=HOSTILE, constants={"c": 3.0}),),
            certificate=lambda instance: {"schema": "made-up/1", "statement": HOSTILE, "x": instance.data},
        ),
        make_claim("fake/large", min_tier=Tier.PAPER),
    ]


def make_document(claims: Sequence[Claim], *, without: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Run claims with their controls through the engine and assemble the document."""
    config = RunConfig()
    registry = Registry(claims)
    selected, _ = registry.split(registry, config.tier)
    run = Run(config, level=registry.level)
    found: list[Any] = []
    for claim in selected:
        found.append(evaluate_claim(claim, run))
        found += [
            evaluate_control(claim, c, run) for c in claim.controls if (claim.id, c.name) not in without
        ]
    outcomes, controls = outcome_documents(found)
    return report_document(
        # These claims stand for marginlab's own, whose reports open with the inventory.
        registry=registry_document(registry, selected) | {"inventory": True},
        outcomes=outcomes,
        controls=controls,
        config=config,
        environment=environment(),
        started="2026-01-02T03:04:05+00:00",
        seconds=12.5,
    )


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """A report with everything in it."""
    return make_document(all_claims(), without=[("fake/order", "swapped")])


@pytest.fixture(scope="session")
def good_document() -> dict[str, Any]:
    """A report in which everything is as expected."""
    return make_document([make_claim(), slope_claim()])


@pytest.fixture(scope="session")
def empty_document() -> dict[str, Any]:
    """A report of a run in which every claim was above the tier."""
    return make_document([make_claim("fake/large", min_tier=Tier.PAPER)])


@pytest.fixture
def square() -> Claim:
    """A claim with two controls, all as expected."""
    return make_claim()


@pytest.fixture(scope="session")
def hostile() -> str:
    """Text that would do harm in some format."""
    return HOSTILE


@pytest.fixture(scope="session")
def registry() -> Registry:
    """The made-up claims."""
    return Registry(all_claims())
