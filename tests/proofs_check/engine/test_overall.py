"""From verdicts of instances to the claim's: min_valid, exclusions, findings, errors, memory of a run."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check import CannotForm, Instance, Interval, Mend, Run, Status, Verdict
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.runner import evaluate_claim

HOLDS, FAILS, UNDECIDED = Status.HOLDS, Status.FAILS, Status.UNDECIDED
GOOD, BAD = Interval.exact(0.5), Interval.exact(2.0)
OPEN = Interval(np.array(0.5), np.array(2.0), "stated")
SORTS = {
    "good": (GOOD, HOLDS),
    "bad": (BAD, HOLDS),
    "open": (OPEN, HOLDS),
    "vacuous": (GOOD, FAILS),
    "undecided": (GOOD, UNDECIDED),
}


def _evaluated(claim: Any, assumption: Any, sorts: list[str], **changes: Any) -> Any:
    a1 = assumption("A1", [SORTS[s][1] for s in sorts])
    given_claim = claim(measured=[SORTS[s][0] for s in sorts], assumes=(a1,), **changes)
    return evaluate_claim(given_claim, Run(RunConfig()))


@settings(deadline=None, max_examples=150)
@given(
    sorts=st.lists(st.sampled_from(sorted(SORTS)), min_size=1, max_size=12),
    percent=st.integers(1, 100),
)
def test_verdict_of_a_claim(sorts: list[str], percent: int, claim: Any, assumption: Any) -> None:
    """The rule of the design in exact arithmetic, on every mixture of instances."""
    found = Counter(sorts)
    outcome = _evaluated(claim, assumption, sorts, min_valid=percent / 100)
    enough = Fraction(found["good"], len(sorts)) >= Fraction(percent, 100)
    if found["bad"]:
        wanted = Verdict.FAIL
    elif found["open"]:
        wanted = Verdict.INCONCLUSIVE
    elif enough:
        wanted = Verdict.PASS
    else:
        wanted = Verdict.INCONCLUSIVE if found["undecided"] else Verdict.VACUOUS
    assert outcome.verdict is wanted, outcome.reason
    assert outcome.as_expected is (wanted is Verdict.PASS)
    # Every instance is in the outcome, with the number of each verdict in the reason.
    assert len(outcome.instances) == len(sorts)
    for verdict, number in Counter(str(i.verdict) for i in outcome.instances).items():
        assert f"{number} {verdict}" in outcome.reason


def test_seven_of_a_hundred_are_seven_percent(claim: Any, assumption: Any) -> None:
    """0.07 * 100 > 7 in float64."""
    assert 0.07 * 100 > 7
    sorts = ["good"] * 7 + ["vacuous"] * 93
    assert _evaluated(claim, assumption, sorts, min_valid=0.07).verdict is Verdict.PASS
    assert _evaluated(claim, assumption, sorts, min_valid=0.08).verdict is Verdict.VACUOUS


def test_vacuous_claim_is_not_measured_for_its_verdict(claim: Any, assumption: Any) -> None:
    outcome = _evaluated(claim, assumption, ["vacuous", "vacuous"])
    assert all(i.measured is None and i.observed is None for i in outcome.instances)
    assert outcome.instances[0].assumptions == {
        "A1": {"status": "FAILS", "witness": "A1 of instance 0", "value": 0.0}
    }


def test_cannot_form_where_the_assumptions_hold_is_a_failure(claim: Any) -> None:
    def measured() -> Interval:
        raise CannotForm("there is no separator")

    outcome = evaluate_claim(claim(measured=[measured]), Run(RunConfig()))
    assert outcome.verdict is Verdict.FAIL
    assert "cannot be formed: there is no separator" in outcome.reason
    assert outcome.error == ""


def test_other_exceptions_are_errors_even_if_a_failure_is_expected(claim: Any) -> None:
    def measured() -> Interval:
        raise RuntimeError("bug")

    mend = Mend(name="corrected", constants={"bound": 2.0})
    outcome = evaluate_claim(
        claim(measured=[measured], expect=Verdict.FAIL, erratum="wrong", controls=(mend,)), Run(RunConfig())
    )
    assert outcome.verdict is Verdict.ERROR
    assert not outcome.as_expected
    assert "RuntimeError: bug" in outcome.reason
    assert "Traceback" in outcome.error


def test_assumption_that_cannot_be_formed_is_undecided(claim: Any, assumption: Any) -> None:
    def check(instance: Instance) -> Any:
        raise CannotForm("no certificate")

    outcome = evaluate_claim(claim(assumes=(assumption("A1", check),)), Run(RunConfig()))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.instances[0].assumptions["A1"]["status"] == "UNDECIDED"
    assert "no certificate" in outcome.reason


def test_assumption_that_raises_is_an_error(claim: Any, assumption: Any) -> None:
    def check(instance: Instance) -> Any:
        raise ArithmeticError("bug in the predicate")

    outcome = evaluate_claim(claim(assumes=(assumption("A1", check),)), Run(RunConfig()))
    assert outcome.verdict is Verdict.ERROR


@pytest.mark.parametrize(
    ("labels", "words"), [([], "made no instance"), (["a", "a"], "two instances of one label")]
)
def test_instances_that_check_nothing(labels: list[str], words: str, claim: Any) -> None:
    made = [Instance(label=label, data=0) for label in labels]
    outcome = evaluate_claim(claim(instances=lambda run: made), Run(RunConfig()))
    assert outcome.verdict is Verdict.ERROR
    assert words in outcome.reason


class TestFindings:
    def _evaluated(self, claim: Any, *assumes: Any, measured: Any) -> Any:
        return evaluate_claim(claim(measured=measured, assumes=assumes, min_valid=0.1), Run(RunConfig()))

    def test_assumption_that_was_not_needed(self, claim: Any, assumption: Any) -> None:
        a1 = assumption("A1", [HOLDS, FAILS, FAILS])
        outcome = self._evaluated(claim, a1, measured=[GOOD, GOOD, GOOD])
        assert outcome.verdict is Verdict.PASS
        (finding,) = outcome.findings
        assert "A1 is not needed on the instances tried: waived, 2 of the 2" in finding

    def test_assumption_that_was_needed(self, claim: Any, assumption: Any) -> None:
        a1 = assumption("A1", [HOLDS, FAILS, FAILS])
        (finding,) = self._evaluated(claim, a1, measured=[GOOD, GOOD, BAD]).findings
        assert "A1 is needed" in finding
        assert "instance 2" in finding

    def test_only_instances_where_nothing_else_failed_are_asked(self, claim: Any, assumption: Any) -> None:
        """Instance 1 breaks both, so it says nothing about either alone."""
        a1, a2 = assumption("A1", [HOLDS, FAILS, FAILS]), assumption("A2", [HOLDS, FAILS, HOLDS])
        (finding,) = self._evaluated(claim, a1, a2, measured=[GOOD, BAD, GOOD]).findings
        assert "A1 is not needed on the instances tried: waived, 1 of the 1" in finding

    def test_implied_assumptions_are_waived_together(self, claim: Any, assumption: Any) -> None:
        a1 = assumption("A1", [HOLDS, FAILS])
        a2 = assumption("A2", [HOLDS, FAILS], implies=("A1",))
        (finding,) = self._evaluated(claim, a1, a2, measured=[GOOD, GOOD]).findings
        assert finding.startswith("A1 is not needed")

    def test_code_that_breaks_down_outside_the_assumptions_leaves_the_verdict(
        self, claim: Any, assumption: Any
    ) -> None:
        def measured() -> Interval:
            raise np.linalg.LinAlgError("singular")

        outcome = self._evaluated(claim, assumption("A1", [HOLDS, FAILS]), measured=[GOOD, measured])
        assert outcome.verdict is Verdict.PASS
        (finding,) = outcome.findings
        assert "LinAlgError: singular" in finding

    def test_undecided_instances_are_not_asked(self, claim: Any, assumption: Any) -> None:
        outcome = self._evaluated(claim, assumption("A1", [HOLDS, UNDECIDED]), measured=[GOOD, BAD])
        assert outcome.findings == ()


def test_series_are_kept_for_the_figure_and_not_for_controls(claim: Any) -> None:
    given_claim = claim(series=lambda instance: {"x": np.arange(3), "y": [1.0, np.inf]}, figure="alignment")
    run = Run(RunConfig())
    outcome = evaluate_claim(given_claim, run)
    assert outcome.instances[0].series == {"x": [0, 1, 2], "y": [1.0, "inf"]}
    assert evaluate_control(given_claim, given_claim.controls[0], run).instances[0].series is None


def test_a_run_remembers_instances(claim: Any) -> None:
    made = []

    def instances(run: Run) -> list[Instance]:
        made.append(1)
        return [Instance(label="only", data=0)]

    given_claim, run = claim(instances=instances), Run(RunConfig())
    for _ in range(2):
        evaluate_claim(given_claim, run)
    evaluate_control(given_claim, given_claim.controls[0], run)
    assert len(made) == 1
    evaluate_claim(given_claim, Run(RunConfig()))
    assert len(made) == 2
