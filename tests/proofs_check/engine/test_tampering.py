"""Claims that change what they look at, opt out of their verdict, or refute nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check import (
    Break,
    CannotForm,
    Instance,
    Interval,
    Kind,
    Mend,
    Plant,
    Run,
    Status,
    Verdict,
)
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.proofs_check.engine.values import Approach, Curve, Ranking, Sample
from marginlab.theory.errors import InvalidInput


def _vector(run: Run) -> list[Instance]:
    return [Instance(label="vector", data=np.array([1.0, 2.0, 3.0]))]


def _identity(
    claim: Any, predict: Any, measure: Any = lambda i: Interval.exact(i.data), **changes: Any
) -> Any:
    return claim(Kind.IDENTITY, instances=_vector, measure=measure, predict=predict, **changes)


def _both(given: Any) -> tuple[Any, Any]:
    run = Run(RunConfig())
    return evaluate_claim(given, run), evaluate_control(given, given.controls[0], run)


def test_prediction_that_doubles_what_was_measured(claim: Any) -> None:
    def predict(instance: Instance, constants: Any) -> Interval:
        instance.data[:] *= 2
        return Interval.exact(instance.data * constants["bound"])

    assert _both(_identity(claim, predict))[0].verdict is Verdict.FAIL


def test_plant_whose_constant_is_never_looked_at(claim: Any) -> None:
    def predict(instance: Instance, constants: Any) -> Interval:
        found = Interval.exact(instance.data)
        instance.data[:] += 1
        return found

    own, planted = _both(_identity(claim, predict))
    assert own.verdict is Verdict.PASS
    assert (planted.verdict, planted.as_expected) == (Verdict.ERROR, False)
    assert "judges 'vector' differently each time" in planted.reason


@pytest.mark.parametrize("own_first", [True, False])
@pytest.mark.parametrize("good", [{1}, {1, 3}, {2}])
def test_prediction_that_counts_its_calls(good: set[int], own_first: bool, claim: Any) -> None:
    calls = []

    def predict(instance: Instance, constants: Any) -> Interval:
        calls.append(1)
        return Interval.exact(1.0 if len(calls) in good else 2.0)

    given, run = claim(Kind.IDENTITY, [Interval.exact(1.0)], predict=predict), Run(RunConfig())
    outcomes: list[Any] = [evaluate_claim(given, run)] if own_first else []
    outcomes.append(evaluate_control(given, given.controls[0], run))
    # Counting to three right is the same function of the constants for all that anybody can see from outside.
    assert all(o.as_expected for o in outcomes) is (good == {1, 3})


def test_constants_cannot_be_changed(claim: Any) -> None:
    def assign(instance: Instance, constants: Any) -> Interval:
        constants["bound"] = 5.0
        return Interval.exact(constants["bound"])

    def append(instance: Instance, constants: Any) -> Interval:
        constants["list"].append(1.0)
        return Interval.exact(float(len(constants["list"])))

    assert "TypeError" in _both(claim(predict=assign))[0].reason
    grows = claim(
        Kind.IDENTITY, [Interval.exact(1.0)] * 3, predict=append, constants={"list": [], "bound": 1.0}
    )
    assert _both(grows)[0].verdict is Verdict.PASS
    assert grows.constants["list"] == []


def test_values_are_read_only_copies() -> None:
    a = np.array([1.0, 2.0])
    interval = Interval.exact(a)
    curve = Curve(x=a, y=interval, x_name="x", y_name="y")
    approach = Approach(time=a, norm=a, one_minus_cos=interval)
    sample = Sample(values=a, unit="draw")
    named = {"a": interval}
    ranking = Ranking(values=named)
    a[:] = 7.0
    named.clear()
    arrays = [interval.lo, interval.hi, curve.x, approach.time, approach.norm, sample.values]
    for array in arrays:
        assert array.tolist() == [1.0, 2.0]
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0
    assert list(ranking.values) == ["a"]


@pytest.mark.parametrize(
    "leave",
    [pytest.skip.Exception("not today"), pytest.xfail.Exception("later"), SystemExit(0), GeneratorExit()],
)
@pytest.mark.parametrize("where", ["instances", "measure", "predict"])
def test_nothing_lets_a_claim_leave(leave: BaseException, where: str, claim: Any) -> None:
    def raises(*_: Any) -> Any:
        raise leave

    for outcome in _both(claim(**{where: raises})):
        assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)


def test_ctrl_c_still_stops_a_run(claim: Any) -> None:
    def raises(*_: Any) -> Any:
        raise KeyboardInterrupt

    given = claim(measure=raises)
    with pytest.raises(KeyboardInterrupt):
        evaluate_claim(given, Run(RunConfig()))
    with pytest.raises(KeyboardInterrupt):
        evaluate_control(given, given.controls[0], Run(RunConfig()))


def test_expected_failure_needs_a_correction(claim: Any) -> None:
    with pytest.raises(InvalidInput, match="an expected failure has a Mend"):
        claim(expect=Verdict.FAIL, erratum="1 is not 1")


def test_expected_failure_compares_something(claim: Any) -> None:
    def measured() -> Interval:
        raise CannotForm("oops")

    def given(*measured: Any) -> Any:
        mend = Mend(name="corrected", constants={"bound": 9.0})
        return claim(measured=measured, expect=Verdict.FAIL, erratum="wrong", controls=(mend,), min_valid=0.1)

    outcome = evaluate_claim(given(measured), Run(RunConfig()))
    assert (outcome.verdict, outcome.as_expected) == (Verdict.FAIL, False)
    assert outcome.reason.startswith("nothing was compared, so the statement is not refuted")
    assert evaluate_claim(given(measured, Interval.exact(2.0)), Run(RunConfig())).as_expected


def test_tautology_with_a_break_that_forms_nothing(claim: Any, assumption: Any) -> None:
    def nothing() -> Interval:
        raise CannotForm("no object")

    anything = Interval(np.array(-1e300), np.array(1e300), "wide")
    broken = Break(name="b", assumption="A", instances=lambda run: [Instance(label="two", data=1)])
    changes = {
        "kind": Kind.IDENTITY,
        "measured": [Interval.exact(1.0), nothing],
        "predicted": anything,
        "instances": lambda run: [Instance(label="one", data=0)],
        "assumes": (assumption("A", [Status.HOLDS, Status.FAILS]),),
    }
    outcome = evaluate_control(claim(controls=(broken,), **changes), broken, Run(RunConfig()))
    assert (outcome.waived_verdict, outcome.as_expected) == (Verdict.FAIL, False)
    planted = Plant(name="p", constants={"bound": 2.0})
    both = claim(controls=(broken, planted), **changes)
    assert evaluate_control(both, broken, Run(RunConfig())).as_expected
    assert not evaluate_control(both, planted, Run(RunConfig())).as_expected


def test_break_that_a_changing_prediction_fails(claim: Any, assumption: Any) -> None:
    calls = []

    def predict(instance: Instance, constants: Any) -> Interval:
        calls.append(1)
        return Interval.exact(float(len(calls)))

    broken = Break(name="b", assumption="A", instances=lambda run: [Instance(label="two", data=1)])
    given = claim(
        Kind.IDENTITY,
        [Interval.exact(1.0), Interval.exact(7.0)],
        predict=predict,
        assumes=(assumption("A", [Status.HOLDS, Status.FAILS]),),
        controls=(broken,),
    )
    outcome = evaluate_control(given, broken, Run(RunConfig()))
    assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)
    assert "judges 'two' differently each time" in outcome.reason
