"""Statistical claims through the runner: the level is the run's, replications are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from marginlab.proofs_check import Evidence, Instance, Interval, Kind, Run, Sample, Tier, Verdict
from marginlab.proofs_check.engine.context import ERROR_LEVEL, RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.registry import Registry
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.theory.errors import InvalidInput

UNIT = "sequence, given this run"


def _statistical(claim: Any, *samples: Any, **changes: Any) -> Any:
    fields = {
        "evidence": Evidence.STATISTICAL,
        "judgements": len(samples),
        "unit": UNIT,
        "kind": Kind.IDENTITY,
        "measured": samples,
    }
    return claim(**(fields | changes))


def _gaussian(n: int = 200, seed: int = 0, mean: float = 1.0) -> Sample:
    rng = np.random.default_rng(seed)
    return Sample(values=mean + rng.standard_normal(n), unit=UNIT)


def test_mean_passes_and_its_plant_fails(claim: Any) -> None:
    given = _statistical(claim, _gaussian())
    run = Run(RunConfig(), level=ERROR_LEVEL)
    outcome = evaluate_claim(given, run)
    assert outcome.verdict is Verdict.PASS, outcome.reason
    assert evaluate_control(given, given.controls[0], run).as_expected
    assert outcome.instances[0].measured == {
        "sample": "mean",
        "n": 200,
        "unit": UNIT,
        "mean": pytest.approx(1.0, abs=0.5),
    }


def test_proportion(claim: Any) -> None:
    values = (np.arange(100) < 30).astype(float)
    sample = Sample(values=values, unit=UNIT, law="proportion")
    run = Run(RunConfig(), level=1e-3)
    for bound, wanted in ((0.3, Verdict.PASS), (0.9, Verdict.FAIL)):
        given = _statistical(claim, sample, constants={"bound": bound})
        outcome = evaluate_claim(given, Run(run.config, level=run.level))
        assert outcome.verdict is wanted
    low, high = stats.binomtest(30, 100).proportion_ci(1 - 1e-3, method="exact")
    assert outcome.instances[0].observed == pytest.approx((low, high), rel=1e-12)


def test_the_level_decides(claim: Any) -> None:
    """A value 4 standard errors off is refuted at 1e-3, and not once the level is shared by 10^6."""
    values = np.tile([0.0, 2.0], 200) + 4 / np.sqrt(400)
    given = _statistical(claim, Sample(values=values, unit=UNIT))
    assert evaluate_claim(given, Run(RunConfig(), level=1e-3)).verdict is Verdict.FAIL
    assert evaluate_claim(given, Run(RunConfig(), level=1e-9)).verdict is Verdict.PASS


def test_selection_changes_no_number(claim: Any) -> None:
    claims = [_statistical(claim, _gaussian(seed=k), id=f"fake/c{k}") for k in range(4)]
    registry = Registry(claims)
    assert registry.level == ERROR_LEVEL / 4

    def found(chosen: list[Any]) -> dict[str, Any]:
        run = Run(RunConfig(), level=registry.level)
        return {c.id: evaluate_claim(c, run).instances[0].observed for c in chosen}

    every = found(registry.select())
    assert found(registry.select(["fake/c2"])) == {"fake/c2": every["fake/c2"]}
    assert found(registry.select()[::-1]) == every


def test_false_alarms_of_a_whole_run(claim: Any) -> None:
    """300 runs of 4 true statements at a level of 0.2 per run: alarms are at most binomial(300, 0.2).

    The bound is its quantile at 1e-9, so that a right engine fails this test once in 10^9 choices of seed.
    """
    level, runs = 0.2, 300
    alarms = 0
    given = {}
    for r in range(runs):
        samples = [_gaussian(12, seed=4 * r + k) for k in range(4)]
        given = _statistical(claim, *samples)
        run = Run(RunConfig(), level=level / given.judgements)
        alarms += evaluate_claim(given, run).verdict is Verdict.FAIL
    assert alarms <= stats.binom.isf(1e-9, runs, level)
    # Independent judgements: nearly all of the level is used, which a level per judgement would exceed.
    assert alarms >= stats.binom.ppf(1e-9, runs, 1 - (1 - level / 4) ** 4)


def test_more_judgements_than_declared(claim: Any) -> None:
    outcome = evaluate_claim(_statistical(claim, _gaussian(), _gaussian(), judgements=1), Run(RunConfig()))
    assert outcome.verdict is Verdict.ERROR
    assert "declares 1 statistical judgements and makes 2" in outcome.reason


def test_fewer_judgements_than_declared_is_conservative(claim: Any) -> None:
    outcome = evaluate_claim(_statistical(claim, _gaussian(), judgements=5), Run(RunConfig()))
    assert outcome.verdict is Verdict.PASS


class TestSeeds:
    def _seeded(self, claim: Any, n: int) -> Any:
        def instances(run: Run) -> list[Instance]:
            return [Instance(label="all seeds", data=0)]

        sample = Sample(values=1 + np.linspace(-1, 1, n), unit="seed")
        return _statistical(claim, sample, unit="seed", min_tier=Tier.FULL, instances=instances)

    @pytest.mark.parametrize("n", [0, 1, 4])
    def test_fewer_than_five_in_the_sample(self, n: int, claim: Any) -> None:
        outcome = evaluate_claim(self._seeded(claim, n), Run(RunConfig(tier=Tier.FULL)))
        assert outcome.verdict is Verdict.ERROR
        assert f"at least 5 replications (seed), got {n}" in outcome.reason

    def test_fewer_than_five_asked_for(self, claim: Any) -> None:
        outcome = evaluate_claim(self._seeded(claim, 9), Run(RunConfig(tier=Tier.FULL, seeds=4)))
        assert outcome.verdict is Verdict.ERROR
        assert "needs at least 5, got 4" in outcome.reason

    def test_five_are_enough(self, claim: Any) -> None:
        assert evaluate_claim(self._seeded(claim, 5), Run(RunConfig(tier=Tier.FULL))).verdict is Verdict.PASS


def test_mean_of_few_sequences_is_refused_too(claim: Any) -> None:
    outcome = evaluate_claim(_statistical(claim, _gaussian(4)), Run(RunConfig()))
    assert outcome.verdict is Verdict.ERROR
    assert "at least 5 replications" in outcome.reason


def test_unit_of_the_sample_is_the_claim_s(claim: Any) -> None:
    other = Sample(values=np.ones(9), unit="token")
    outcome = evaluate_claim(_statistical(claim, other), Run(RunConfig()))
    assert outcome.verdict is Verdict.ERROR
    assert "'token'" in outcome.reason


def test_sample_without_declared_judgements(claim: Any) -> None:
    outcome = evaluate_claim(claim(Kind.IDENTITY, [_gaussian()]), Run(RunConfig()))
    assert outcome.verdict is Verdict.ERROR
    assert "declares no statistical judgement" in outcome.reason


@pytest.mark.parametrize(
    ("values", "law"),
    [([0.5, 1.0], "proportion"), ([1.0, np.nan], "mean"), ([[1.0]], "mean"), ([1.0], "median")],
)
def test_samples_that_make_no_sense(values: Any, law: str) -> None:
    with pytest.raises(InvalidInput):
        Sample(values=values, unit="seed", law=law)


def test_wide_sample_is_open_where_the_kind_is_containment(claim: Any) -> None:
    sample = _gaussian(6)
    narrow = Interval(np.array(0.99), np.array(1.01), "stated")
    outcome = evaluate_claim(
        _statistical(claim, sample, kind=Kind.ESTIMATE, predicted=narrow), Run(RunConfig())
    )
    assert outcome.verdict is Verdict.INCONCLUSIVE
