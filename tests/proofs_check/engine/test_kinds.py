"""Every kind of claim through the runner: must pass, must fail, is vacuous, is undecided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check import Approach, Curve, Emergence, Interval, Kind, Ranking, Status, Verdict
from marginlab.proofs_check.engine.runner import evaluate_claim

X = np.geomspace(1.0, 100.0, 41)


def _curve(values: Any, width: float = 0.0, x: Any = X, log_log: bool = False) -> Curve:
    y = np.asarray(values, dtype=float)
    return Curve(
        x=x, y=Interval(y - width, y + width, "stated"), x_name="step", y_name="norm", log_log=log_log
    )


def _approach(power: float, width: float = 0.0, rival: float | None = None) -> Approach:
    """1 - cos = norm^-power / 10, with a relative width; `rival` scales what another oracle says."""
    value = 0.1 * X**-power
    found = Interval(value * (1 - width), value * (1 + width), "stated")
    others = {} if rival is None else {"rival": Interval.exact(value * rival)}
    return Approach(time=X, norm=X, one_minus_cos=found, separators=others)


def _ranking(**values: Interval) -> Ranking:
    return Ranking(values=values)


def _sudden(x: Any, at: float, before: float = 0.0, after: float = 1.0) -> Any:
    return np.where(np.asarray(x) < at, before, after)


@dataclass(frozen=True)
class Case:
    kind: Kind
    predicted: Any
    passes: Any
    fails: Any
    straddles: Any


one = Interval.exact(1.0)
CASES = [
    Case(
        Kind.IDENTITY,
        one,
        Interval.exact(1.0),
        Interval.exact(1.0 + 2**-52),
        Interval(np.array(0.0), np.array(np.inf), "stated"),
    ),
    Case(
        Kind.UPPER,
        one,
        Interval.exact(1.0),
        Interval.exact(1.0 + 2**-52),
        Interval(np.array(0.9), np.array(1.1), "stated"),
    ),
    Case(
        Kind.LOWER,
        one,
        Interval.exact(1.0),
        Interval.exact(1.0 - 2**-53),
        Interval(np.array(0.9), np.array(1.1), "stated"),
    ),
    Case(
        Kind.TIGHT,
        one,
        Interval.exact([0.2, 1.0]),
        Interval.exact([0.2, 0.9]),
        Interval(np.array([1.0, -np.inf]), np.array([1.0, np.inf]), "stated"),
    ),
    Case(
        Kind.TIGHT,
        one,
        Interval(np.array([0.2, 0.9]), np.array([0.3, 1.1]), "stated"),
        Interval.exact([1.0, 1.1]),
        Interval(np.array([0.2, 0.9]), np.array([0.3, np.inf]), "stated"),
    ),
    Case(
        Kind.RATE,
        Interval(np.array(0.49), np.array(0.51), "stated"),
        _curve(0.5 * X),
        _curve(0.6 * X),
        _curve(0.5 * X, width=1.0),
    ),
    # A curve whose last piece alone is too steep breaks "all slopes", it does not leave it open.
    Case(
        Kind.RATE,
        Interval(np.array(0.49), np.array(0.51), "stated"),
        _curve(0.5 * X),
        _curve(0.5 * X + np.maximum(X - 76, 0)),
        _curve(0.5 * X, width=0.2),
    ),
    Case(
        Kind.RATE,
        Interval(np.array(-2.1), np.array(-1.9), "stated"),
        _curve(X**-2.0, log_log=True),
        _curve(X**-1.0, log_log=True),
        _curve(X**-2.0, width=1e-4, log_log=True),
    ),
    Case(
        Kind.LIMIT,
        Interval(np.array(-0.1), np.array(0.1), "stated"),
        _curve(1 / (10 * X)),
        _curve(1 / X + 0.2),
        _curve(1 / (10 * X), width=0.05),
    ),
    Case(
        Kind.LIMIT,
        Interval(np.array(-0.1), np.array(0.1), "stated"),
        _curve(0 * X),
        _curve(_sudden(X, 50.0)),
        _curve(X / 2000),
    ),
    Case(Kind.DIRECTION, Interval.exact(0.9), _approach(1.0), _approach(0.5), _approach(1.0, width=0.2)),
    Case(
        Kind.DIRECTION,
        Interval.exact(0.9),
        _approach(1.0, rival=1.0),
        _approach(0.0),
        _approach(1.0, rival=1.01),
    ),
    Case(
        Kind.ORDERING,
        ("a", "b"),
        _ranking(a=Interval.exact(0.0), b=one),
        _ranking(a=one, b=Interval.exact(1.0)),
        _ranking(a=Interval(np.array(0.0), np.array(2.0), "stated"), b=one),
    ),
    Case(
        Kind.ORDERING,
        ("a", "b", "c"),
        _ranking(a=Interval.exact(0.0), b=one, c=Interval.exact(2.0)),
        _ranking(a=Interval.exact(5.0), b=Interval(np.array(0.0), np.array(10.0), "stated"), c=one),
        _ranking(a=Interval.exact(0.0), b=Interval(np.array(0.0), np.array(10.0), "stated"), c=one),
    ),
    Case(
        Kind.EMERGENCE,
        Emergence(before=0.1, after=0.9, window=(30.0, 70.0)),
        _curve(_sudden(X, 50.0)),
        _curve(_sudden(X, 90.0)),
        _curve(_sudden(X, 50.0), width=0.2),
    ),
    # The crossing lies between two recorded points; a window that starts between them decides nothing.
    Case(
        Kind.EMERGENCE,
        Emergence(before=0.1, after=0.9, window=(48.0, 70.0)),
        _curve(_sudden(X, 54.0)),
        _curve(_sudden(X, 200.0)),
        _curve(_sudden(X, 50.0)),
    ),
    Case(
        Kind.ESTIMATE,
        Interval(np.array(0.0), np.array(np.inf), "stated"),
        Interval(np.array(3.0), np.array(4.0), "stated"),
        Interval.exact(-1.0),
        Interval(np.array(-1.0), np.array(1.0), "stated"),
    ),
    Case(
        Kind.ESTIMATE,
        Interval(np.array(-np.inf), np.array(np.inf), "stated"),
        Interval.exact(7.0),
        None,
        Interval(np.array(-np.inf), np.array(np.inf), "stated"),
    ),
]
NAMES = [f"{case.kind}-{k}" for k, case in enumerate(CASES)]


def test_every_kind_is_in_the_table() -> None:
    assert {case.kind for case in CASES} == set(Kind)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_judgement_by_kind(case: Case, claim: Any, run: Any) -> None:
    for measured, wanted in (
        (case.passes, Verdict.PASS),
        (case.fails, Verdict.FAIL),
        (case.straddles, Verdict.INCONCLUSIVE),
    ):
        if measured is None:  # a range without ends cannot be left
            continue
        fresh = claim(case.kind, [measured], case.predicted)
        outcome = evaluate_claim(fresh, type(run)(run.config))
        assert outcome.error == ""
        assert outcome.verdict is wanted, outcome.reason
        assert outcome.as_expected is (wanted is Verdict.PASS)
        assert outcome.instances[0].measured is not None


@pytest.mark.parametrize("case", CASES, ids=NAMES)
@pytest.mark.parametrize(
    ("status", "wanted"), [(Status.FAILS, Verdict.VACUOUS), (Status.UNDECIDED, Verdict.INCONCLUSIVE)]
)
def test_assumption_that_does_not_hold(
    case: Case, status: Status, wanted: Verdict, claim: Any, assumption: Any, run: Any
) -> None:
    """Neither a true nor a false statement is judged outside its assumptions."""
    for measured in (case.passes, case.fails):
        if measured is None:
            continue
        fresh = claim(case.kind, [measured], case.predicted, assumes=(assumption("A1", [status]),))
        outcome = evaluate_claim(fresh, type(run)(run.config))
        assert outcome.verdict is wanted
        assert not outcome.as_expected
        assert "A1 of instance 0" in outcome.reason
        assert outcome.instances[0].measured is None


@pytest.mark.parametrize("kind", [k for k in Kind if k not in (Kind.ORDERING, Kind.EMERGENCE)])
def test_wrong_value_is_an_error(kind: Kind, claim: Any, run: Any) -> None:
    outcome = evaluate_claim(claim(kind, [_ranking(a=one)], one), run)
    assert outcome.verdict is Verdict.ERROR
    assert not outcome.as_expected
    assert str(kind) in outcome.reason


@pytest.mark.parametrize("kind", [Kind.IDENTITY, Kind.UPPER, Kind.LOWER, Kind.TIGHT, Kind.ESTIMATE])
def test_empty_array_decides_nothing(kind: Kind, claim: Any, run: Any) -> None:
    outcome = evaluate_claim(claim(kind, [Interval.exact([])], one), run)
    assert outcome.verdict is Verdict.INCONCLUSIVE, outcome.error
    assert "nothing was measured" in outcome.reason


def test_windows_with_too_few_points_are_errors(claim: Any, run: Any) -> None:
    few = _curve([0.0, 1.0, 2.0, 3.0], x=[1.0, 2.0, 3.0, 4.0])
    uneven = _curve([0.0, 1.0, 2.0, 3.0, 4.0], x=[1.0, 1.1, 1.2, 1.3, 100.0])
    for name, curve, words in (("few", few, "needs at least 5"), ("uneven", uneven, "too unevenly spread")):
        outcome = evaluate_claim(claim(Kind.RATE, [curve], one, id=f"fake/{name}"), run)
        assert outcome.verdict is Verdict.ERROR
        assert words in outcome.reason
    outcome = evaluate_claim(claim(Kind.LIMIT, [few], one, window=(3.5, 9.0)), run)
    assert outcome.verdict is Verdict.ERROR
    assert "needs two" in outcome.reason


def test_power_law_down_to_zero_is_open_not_an_error(claim: Any, run: Any) -> None:
    y = Interval(np.zeros_like(X), X**-2.0, "stated")
    curve = Curve(x=X, y=y, x_name="step", y_name="loss", log_log=True)
    outcome = evaluate_claim(claim(Kind.RATE, [curve], Interval.exact(-2.0)), run)
    assert outcome.verdict is Verdict.INCONCLUSIVE, outcome.error


def test_norm_that_does_not_grow_decides_no_direction(claim: Any, run: Any) -> None:
    still = Approach(time=X, norm=np.ones_like(X), one_minus_cos=Interval.exact(1 / X))
    outcome = evaluate_claim(claim(Kind.DIRECTION, [still], one), run)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "norm does not grow" in outcome.reason


@pytest.mark.parametrize("order", [(), ("a",), ("a", "a")])
def test_order_of_fewer_than_two_is_an_error(order: tuple[str, ...], claim: Any, run: Any) -> None:
    outcome = evaluate_claim(claim(Kind.ORDERING, [_ranking(a=one)], order), run)
    assert outcome.verdict is Verdict.ERROR
    assert "at least two" in outcome.reason


@pytest.mark.parametrize("kind", [Kind.RATE, Kind.LIMIT, Kind.DIRECTION])
def test_trajectories_compare_with_one_interval(kind: Kind, claim: Any, run: Any) -> None:
    measured = _approach(1.0) if kind is Kind.DIRECTION else _curve(X)
    outcome = evaluate_claim(claim(kind, [measured], Interval.exact([1.0, 2.0])), run)
    assert outcome.verdict is Verdict.ERROR
    assert "single interval" in outcome.reason


def test_reason_names_the_worst_component(claim: Any, run: Any) -> None:
    outcome = evaluate_claim(claim(Kind.UPPER, [Interval.exact([[0.0, 3.0], [9.0, 2.0]])], one), run)
    assert outcome.verdict is Verdict.FAIL
    assert "measured 9, upper bound 1 at (1, 0)" in outcome.reason
    assert outcome.instances[0].observed == (9.0, 9.0)
    assert outcome.instances[0].expected == (1.0, 1.0)
