"""Windows: judged as a whole or not at all, between their recorded points too; and what no kind may compare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check import Approach, Curve, Interval, Kind, Ranking, Sample, Verdict
from marginlab.proofs_check.engine.judge import judge
from marginlab.proofs_check.engine.trajectories import PIECES, chords
from marginlab.theory.errors import InvalidInput


def _curve(x: Any, y: Any, log_log: bool = False) -> Curve:
    return Curve(x=np.asarray(x), y=Interval.exact(y), x_name="x", y_name="y", log_log=log_log)


def _band(centre: float, radius: float = 0.1) -> Interval:
    return Interval.around(centre, radius, "stated")


def _approach(time: Any, norm: Any, value: Any) -> Approach:
    return Approach(time=np.asarray(time), norm=np.asarray(norm), one_minus_cos=Interval.exact(value))


@pytest.mark.parametrize("x", [np.linspace(1, 2, 50), np.linspace(900, 1000, 50), np.linspace(100, 900, 50)])
def test_rate_on_a_part_of_its_window(x: Any, claim: Any) -> None:
    rate = claim(Kind.RATE, window=(1.0, 1000.0))
    part = judge(rate, _curve(x, 2 * x), _band(2.0))
    assert part.verdict is Verdict.INCONCLUSIVE
    assert "not covered" in part.reason
    whole = np.linspace(1, 1000, 50)
    assert judge(rate, _curve(whole, 2 * whole), _band(2.0)).verdict is Verdict.PASS


def test_power_law_on_a_part_of_its_window(claim: Any) -> None:
    rate = claim(Kind.RATE, window=(1.0, 1e6))
    for start, wanted in ((1.0, Verdict.PASS), (100.0, Verdict.INCONCLUSIVE)):
        x = np.geomspace(start, 1e6, 100)
        assert judge(rate, _curve(x, x**2.0, log_log=True), _band(2.0)).verdict is wanted
    with pytest.raises(InvalidInput, match="starts above 0, not at 0"):
        judge(
            claim(Kind.RATE, window=(0.0, 9.0)),
            _curve(np.arange(1.0, 9), np.ones(8), log_log=True),
            _band(0.0),
        )


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [1.0, 2.0, 1e6 - 1, 1e6], np.linspace(1e5, 1e6, 50)])
def test_limit_on_a_part_of_its_window(x: Any, claim: Any) -> None:
    limit = claim(Kind.LIMIT, window=(1.0, 1e6))
    assert judge(limit, _curve(x, np.full(len(x), 2.0)), _band(2.0)).verdict is Verdict.INCONCLUSIVE
    whole = np.linspace(1, 1e6, 20)
    assert judge(limit, _curve(whole, np.full(20, 2.0)), _band(2.0)).verdict is Verdict.PASS


def test_direction_on_a_part_of_its_window(claim: Any) -> None:
    direction = claim(Kind.DIRECTION, window=(1.0, 1e6))
    norm = np.linspace(1, 20, 200)
    for steps, wanted in (
        (np.geomspace(1, 1e6, 200), Verdict.PASS),
        (np.geomspace(1, 50, 200), Verdict.INCONCLUSIVE),
        (np.linspace(6e4, 1e6, 200), Verdict.INCONCLUSIVE),  # nearly all steps, but none of four decades
    ):
        assert judge(direction, _approach(steps, norm, 0.1 / norm), Interval.exact(0.9)).verdict is wanted


@pytest.mark.parametrize("power", [0.0, -1.0])
def test_direction_without_decay_is_refused(power: float, claim: Any) -> None:
    x = np.arange(1.0, 101.0)
    with pytest.raises(InvalidInput, match="a positive exponent, not"):
        judge(claim(Kind.DIRECTION), _approach(x, x, np.full(100, 0.3)), Interval.exact(power))


@settings(deadline=None, max_examples=60)
@given(per_window=st.floats(0.5, 12.0), phase=st.floats(0.0, 6.3))
def test_oscillation_of_any_period_is_seen(per_window: float, phase: float, claim: Any) -> None:
    """Amplitude 50 on a window of length 4: whatever the period, some half piece has another slope than 2."""
    x = np.linspace(0.0, 4.0, 401)
    y = 2 * x + 50 * np.sin(2 * np.pi * per_window * x / 4.0 + phase)
    assert judge(claim(Kind.RATE, window=(0.0, 4.0)), _curve(x, y), _band(2.0)).verdict is Verdict.FAIL


def test_spike_between_the_edges_of_a_direction(claim: Any) -> None:
    x = np.linspace(1.0, 100.0, 400)
    spiked = 0.01 / x
    spiked[50] = 0.3
    direction = claim(Kind.DIRECTION, window=(1.0, 100.0))
    assert judge(direction, _approach(x, x, 0.01 / x), Interval.exact(0.9)).verdict is Verdict.PASS
    assert judge(direction, _approach(x, x, spiked), Interval.exact(0.9)).verdict is Verdict.FAIL


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_extreme_chords_are_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = np.sort(rng.random(30))
    lo = rng.normal(size=30)
    y = Interval(lo, lo + rng.random(30), "drawn")
    found = chords(u, y, (u[-1] - u[0]) / (2 * PIECES))
    least = (u[-1] - u[0]) / (2 * PIECES)
    pairs = []
    for i in range(30):
        later = [j for j in range(30) if u[j] >= u[i] + least]
        pairs += [(i, j) for n, j in enumerate(later) if n == 0 or u[j] <= u[i] + 2 * least]
    lows = [(y.lo[j] - y.hi[i]) / (u[j] - u[i]) for i, j in pairs]
    highs = [(y.hi[j] - y.lo[i]) / (u[j] - u[i]) for i, j in pairs]
    assert (found.lo.min(), found.lo.max()) == pytest.approx((min(lows), max(lows)), rel=1e-12)
    assert (found.hi.min(), found.hi.max()) == pytest.approx((min(highs), max(highs)), rel=1e-12)


def test_order_leaves_nothing_out(claim: Any) -> None:
    found = Ranking(values={name: Interval.exact(v) for name, v in (("a", 1.0), ("b", 2.0), ("c", 1.5))})
    with pytest.raises(InvalidInput, match=r"where every measured quantity stands, not \['c'\]"):
        judge(claim(Kind.ORDERING), found, ("a", "b"))
    assert judge(claim(Kind.ORDERING), found, ("a", "c", "b")).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros(9), "law='proportion'"),
        (np.eye(9)[0], "law='proportion'"),
        (np.full(9, 0.3), "without any spread"),
    ],
)
def test_sample_that_no_student_interval_covers(values: Any, sentence: str, claim: Any) -> None:
    given_claim = claim(Kind.UPPER, evidence="statistical", judgements=1, unit="draw")
    with pytest.raises(InvalidInput, match=sentence):
        judge(given_claim, Sample(values=values, unit="draw"), Interval.exact(0.0), 1e-3)


@pytest.mark.parametrize("rule", ["exact", "", " "])
def test_a_width_has_a_rule(rule: str) -> None:
    with pytest.raises(InvalidInput, match="says by which rule it is so wide"):
        Interval(np.array(0.0), np.array(1.0), rule)
    assert Interval(np.array(1.0), np.array(1.0), rule).shape == ()
