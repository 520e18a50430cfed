"""Judgements of intervals against brute force over the points inside them, and what widening may do."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check import Approach, Curve, Emergence, Interval, Kind, Ranking, Verdict
from marginlab.proofs_check.engine.judge import judge, slopes
from marginlab.theory.errors import InvalidInput

relaxed = settings(deadline=None, max_examples=100)
seeds = st.integers(0, 2**32 - 1)

#: What a kind states of one exact pair (measured, predicted range).
STATEMENTS = {
    Kind.IDENTITY: lambda x, b: x == b,
    Kind.UPPER: lambda x, b: x <= b,
    Kind.LOWER: lambda x, b: x >= b,
}
INTERVAL_KINDS = [Kind.IDENTITY, Kind.UPPER, Kind.LOWER, Kind.TIGHT, Kind.ESTIMATE]


def _random(rng: np.random.Generator, shape: tuple[int, ...], top: int = 6) -> Interval:
    """Ends on a small grid of integers, so that touching and equal ends are common."""
    ends = np.sort(rng.integers(0, top, (2, *shape)), axis=0)
    return Interval(ends[0], ends[1], "stated")


def _widened(value: Interval, rng: np.random.Generator) -> Interval:
    return Interval(
        value.lo - rng.integers(0, 3, value.shape), value.hi + rng.integers(0, 3, value.shape), "widened"
    )


def _points(value: Interval, index: tuple[int, ...]) -> list[int]:
    return list(range(int(value.lo[index]), int(value.hi[index]) + 1))


@relaxed
@given(seed=seeds)
@pytest.mark.parametrize("kind", list(STATEMENTS))
def test_bounds_quantify_over_all_points(kind: Kind, seed: int, claim: Any) -> None:
    """PASS means true (identity: possible) for every pair of points, FAIL impossible for some component."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 4)),)
    measured, predicted = _random(rng, shape), _random(rng, ())
    truths = [
        [STATEMENTS[kind](x, b) for x, b in product(_points(measured, (k,)), _points(predicted, ()))]
        for k in range(shape[0])
    ]
    if any(not any(t) for t in truths):
        wanted = Verdict.FAIL
    elif all(all(t) for t in truths) or kind is Kind.IDENTITY:
        wanted = Verdict.PASS
    else:
        wanted = Verdict.INCONCLUSIVE
    assert judge(claim(kind), measured, predicted).verdict is wanted


@relaxed
@given(seed=seeds)
def test_estimate_is_containment(seed: int, claim: Any) -> None:
    rng = np.random.default_rng(seed)
    measured, predicted = _random(rng, ()), _random(rng, ())
    inside = [x in _points(predicted, ()) for x in _points(measured, ())]
    wanted = Verdict.PASS if all(inside) else Verdict.INCONCLUSIVE if any(inside) else Verdict.FAIL
    assert judge(claim(Kind.ESTIMATE), measured, predicted).verdict is wanted


@relaxed
@given(seed=seeds)
def test_tight_is_a_bound_that_some_component_touches(seed: int, claim: Any) -> None:
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 4)),)
    measured, predicted = _random(rng, shape), _random(rng, shape)
    components = range(shape[0])
    over = any(measured.lo[k] > predicted.hi[k] for k in components)
    touches = any(set(_points(measured, (k,))) & set(_points(predicted, (k,))) for k in components)
    wanted = Verdict.PASS if touches and not over else Verdict.FAIL
    assert judge(claim(Kind.TIGHT), measured, predicted).verdict is wanted


@relaxed
@given(seed=seeds)
@pytest.mark.parametrize(
    "kind", [Kind.UPPER, Kind.LOWER, Kind.ESTIMATE, Kind.ORDERING, Kind.RATE, Kind.LIMIT]
)
def test_widening_what_was_measured_never_decides_more(kind: Kind, seed: int, claim: Any) -> None:
    """A verdict may become INCONCLUSIVE by widening; PASS and FAIL never turn into each other."""
    rng = np.random.default_rng(seed)
    narrow, wide = _measured_pair(kind, rng)
    predicted: Any = ("a", "b", "c") if kind is Kind.ORDERING else _random(rng, (), top=4)
    given_claim = claim(kind, window=(0.0, 10.0))
    before, after = (judge(given_claim, m, predicted) for m in (narrow, wide))
    if "moving away" in before.reason:  # a drift inside the band is an objection, and needs narrow intervals
        assert after.verdict is not Verdict.FAIL
    else:
        assert after.verdict in (before.verdict, Verdict.INCONCLUSIVE)


def _measured_pair(kind: Kind, rng: np.random.Generator) -> tuple[Any, Any]:
    if kind is Kind.ORDERING:
        narrow = {name: _random(rng, ()) for name in "abc"}
        return Ranking(values=narrow), Ranking(values={k: _widened(v, rng) for k, v in narrow.items()})
    if kind in (Kind.RATE, Kind.LIMIT):
        x = np.arange(9.0)
        y = Interval.exact(rng.integers(0, 3) * x if kind is Kind.RATE else rng.integers(0, 4, 9))
        narrow, wide = (Curve(x=x, y=v, x_name="x", y_name="y") for v in (y, _widened(y, rng)))
        return narrow, wide
    narrow = _random(rng, (2,))
    return narrow, _widened(narrow, rng)


@relaxed
@given(seed=seeds)
@pytest.mark.parametrize("kind", [Kind.UPPER, Kind.LOWER])
def test_from_fail_to_pass_through_inconclusive(kind: Kind, seed: int, claim: Any) -> None:
    """Moving a measured interval of positive width over the bound meets FAIL, INCONCLUSIVE, PASS in order."""
    rng = np.random.default_rng(seed)
    width = float(rng.integers(1, 4))
    sign = 1 if kind is Kind.UPPER else -1
    order = {Verdict.FAIL: 0, Verdict.INCONCLUSIVE: 1, Verdict.PASS: 2}
    found = []
    for shift in range(12, -13, -1):
        lo = np.array(float(sign * shift))
        found.append(
            order[judge(claim(kind), Interval(lo, lo + width, "stated"), Interval.exact(0.0)).verdict]
        )
    assert found == sorted(found)
    assert set(found) == {0, 1, 2}


@relaxed
@given(seed=seeds)
@pytest.mark.parametrize("kind", INTERVAL_KINDS)
def test_broadcasting_equals_one_by_one(kind: Kind, seed: int, claim: Any) -> None:
    """A scalar prediction stands for an array of copies, and FAIL of one component fails the array."""
    rng = np.random.default_rng(seed)
    measured, predicted = _random(rng, (2, 3)), _random(rng, ())
    full = Interval(np.full((2, 3), predicted.lo), np.full((2, 3), predicted.hi), "stated")
    assert judge(claim(kind), measured, predicted) == judge(claim(kind), measured, full)
    if kind is not Kind.TIGHT:
        each = [
            judge(claim(kind), Interval(measured.lo[i], measured.hi[i], "stated"), predicted).verdict
            for i in np.ndindex(2, 3)
        ]
        worst = next(v for v in (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS) if v in each)
        assert judge(claim(kind), measured, predicted).verdict is worst


@pytest.mark.parametrize("kind", INTERVAL_KINDS)
def test_shapes_that_do_not_fit(kind: Kind, claim: Any) -> None:
    with pytest.raises(InvalidInput, match=r"\(2,\).*\(3,\).*do not fit"):
        judge(claim(kind), Interval.exact([1.0, 2.0]), Interval.exact([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("kind", INTERVAL_KINDS)
@pytest.mark.parametrize(("lo", "hi"), [(-np.inf, np.inf), (-np.inf, 5.0), (0.0, np.inf)])
def test_unbounded_measurement_never_passes_where_a_finite_one_could_fail(
    kind: Kind, lo: float, hi: float, claim: Any
) -> None:
    measured, predicted = Interval(np.array(lo), np.array(hi), "stated"), Interval.exact(3.0)
    assert judge(claim(kind), measured, predicted).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("kind", "measured", "predicted", "wanted"),
    [
        (Kind.IDENTITY, np.inf, np.inf, Verdict.INCONCLUSIVE),
        (Kind.IDENTITY, np.inf, -np.inf, Verdict.FAIL),
        (Kind.UPPER, np.inf, np.inf, Verdict.INCONCLUSIVE),
        (Kind.UPPER, 3.0, np.inf, Verdict.INCONCLUSIVE),
        (Kind.LOWER, 3.0, -np.inf, Verdict.INCONCLUSIVE),
        (Kind.TIGHT, np.inf, np.inf, Verdict.INCONCLUSIVE),
        (Kind.UPPER, np.inf, 3.0, Verdict.FAIL),
        (Kind.LOWER, -np.inf, 3.0, Verdict.FAIL),
        (Kind.LOWER, np.inf, 3.0, Verdict.INCONCLUSIVE),
    ],
)
def test_exact_infinities(kind: Kind, measured: float, predicted: float, wanted: Verdict, claim: Any) -> None:
    assert judge(claim(kind), Interval.exact(measured), Interval.exact(predicted)).verdict is wanted


@pytest.mark.parametrize("value", [1e308, 5e-324])
def test_extreme_magnitudes_are_compared_not_subtracted(value: float, claim: Any) -> None:
    """The difference of the ends overflows, or is the smallest number there is."""
    low, high = Interval.exact(-value), Interval.exact(value)
    assert judge(claim(Kind.UPPER), low, high).verdict is Verdict.PASS
    assert judge(claim(Kind.UPPER), high, low).verdict is Verdict.FAIL
    assert judge(claim(Kind.IDENTITY), high, low).verdict is Verdict.FAIL


@relaxed
@given(seed=seeds)
def test_slopes_enclose_every_curve_between_the_ends(seed: int) -> None:
    """Against exact rationals: a curve inside the enclosure has piece slopes inside the slope intervals."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.integers(1, 3, 12)).astype(float)
    lo = rng.integers(-8, 8, 12)
    hi = lo + rng.integers(0, 4, 12)
    pieces, edges = slopes(
        x, Interval(lo.astype(float), hi.astype(float), "stated"), (x[0], x[-1]), log_log=False
    )
    inside = rng.integers(lo, hi + 1)
    at = [int(np.flatnonzero(x == e)[0]) for e in edges]
    slack = Fraction(1, 2**48)  # the ends are rounded twice: 2 u of a quotient below 2^5
    for k, (i, j) in enumerate(pairwise(at)):
        slope = Fraction(int(inside[j] - inside[i])) / Fraction(x[j] - x[i])
        assert Fraction(pieces.lo[k]) - slack <= slope <= Fraction(pieces.hi[k]) + slack
    ideal = np.linspace(x[0], x[-1], len(edges))
    assert (np.abs(edges - ideal) <= 1.0).all()  # the nearest recorded points: gaps are at most 2


@relaxed
@given(seed=seeds)
def test_power_law_has_its_exponent(seed: int, claim: Any) -> None:
    rng = np.random.default_rng(seed)
    power, scale = rng.uniform(-3, 3), np.exp(rng.uniform(-20, 20))
    x = np.geomspace(1.0, 1e4, 60)
    curve = Curve(x=x, y=Interval.exact(scale * x**power), x_name="x", y_name="y", log_log=True)
    # Twice log y, each rounded to 2^-52 |log y| <= 2^-52 64, over pieces at least log(1e4)/5 long.
    error = 2 * 2.0**-46 / (np.log(1e4) / 5)
    band = Interval(np.array(power - error), np.array(power + error), "stated")
    given_claim = claim(Kind.RATE, window=(1.0, 1e4))
    assert judge(given_claim, curve, band).verdict is Verdict.PASS
    other = Interval(np.array(power + 0.1), np.array(power + 0.2), "stated")
    assert judge(given_claim, curve, other).verdict is Verdict.FAIL


@relaxed
@given(seed=seeds)
def test_emergence_encloses_the_true_crossing(seed: int, claim: Any) -> None:
    """A step at a time between recorded points passes exactly for windows that hold its neighbours."""
    rng = np.random.default_rng(seed)
    x = np.arange(0.0, 20.0, 2.0)
    crossing = float(rng.integers(0, 9)) * 2 + 1.0
    curve = Curve(x=x, y=Interval.exact((x > crossing).astype(float)), x_name="x", y_name="y")
    window = tuple(float(v) for v in np.sort(rng.choice(20, 2, replace=False)))
    predicted = Emergence(before=0.1, after=0.5, window=(window[0], window[1]))
    verdict = judge(claim(Kind.EMERGENCE), curve, predicted).verdict
    if verdict is Verdict.PASS:
        assert window[0] <= crossing <= window[1]
    if verdict is Verdict.FAIL:
        assert not window[0] <= crossing <= window[1]
    if window[0] <= crossing - 1 and crossing + 1 <= window[1]:
        assert verdict is Verdict.PASS


@pytest.mark.parametrize(
    "build",
    [
        lambda: Interval(np.array(np.nan), np.array(1.0), "stated"),
        lambda: Interval.exact([0.0, np.nan]),
        lambda: Interval(np.array(2.0), np.array(1.0), "stated"),
        lambda: Interval(np.zeros(2), np.zeros(3), "stated"),
        lambda: Interval.around(1.0, -1e-300, "wrong"),
        lambda: Interval.around(1.0, np.nan, "wrong"),
        lambda: Curve(x=np.array([1.0, 1.0]), y=Interval.exact([0.0, 1.0]), x_name="x", y_name="y"),
        lambda: Curve(x=np.array([1.0, np.nan]), y=Interval.exact([0.0, 1.0]), x_name="x", y_name="y"),
        lambda: Curve(x=np.array([1.0]), y=Interval.exact([0.0]), x_name="x", y_name="y"),
        lambda: Curve(x=np.arange(3.0), y=Interval.exact([0.0, 1.0]), x_name="x", y_name="y"),
        lambda: Curve(x=np.arange(2.0), y=Interval.exact([1.0, 1.0]), x_name="x", y_name="y", log_log=True),
        lambda: Approach(
            time=np.arange(2.0), norm=np.array([0.0, 1.0]), one_minus_cos=Interval.exact([1, 1])
        ),
        lambda: Approach(
            time=np.arange(2.0), norm=np.array([1.0, 2.0]), one_minus_cos=Interval.exact([1, 3])
        ),
        lambda: Approach(
            time=np.arange(3.0), norm=np.array([1.0, 2.0]), one_minus_cos=Interval.exact([1, 1])
        ),
        lambda: Approach(time=np.zeros(2), norm=np.array([1.0, 2.0]), one_minus_cos=Interval.exact([1, 1])),
        lambda: Emergence(before=1.0, after=1.0, window=(0.0, 1.0)),
        lambda: Emergence(before=0.0, after=1.0, window=(1.0, 1.0)),
    ],
)
def test_values_that_make_no_sense_are_refused(build: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        build()
    assert str(refused.value).endswith(".")


@relaxed
@given(seed=seeds)
def test_around_loses_nothing_by_rounding(seed: int) -> None:
    """The exact ends, as rationals, lie inside; a radius of zero stays one number."""
    rng = np.random.default_rng(seed)
    centre = rng.standard_normal() * 10.0 ** rng.integers(-300, 300)
    radius = abs(centre) * 10.0 ** rng.integers(-20, 3)
    interval = Interval.around(centre, radius, "test")
    assert Fraction(float(interval.lo)) <= Fraction(centre) - Fraction(radius)
    assert Fraction(centre) + Fraction(radius) <= Fraction(float(interval.hi))
    assert Interval.around(centre, 0.0, "test").lo == centre == Interval.around(centre, 0.0, "test").hi


def test_mid_of_half_infinite_intervals() -> None:
    value = Interval(np.array([0.0, -np.inf, 1.0, 1e308]), np.array([np.inf, 2.0, 3.0, 1.7e308]), "stated")
    np.testing.assert_array_equal(value.mid, [0.0, 2.0, 2.0, 1.35e308])
    np.testing.assert_array_equal(value.bounded, [False, False, True, True])
