"""Controls: what each must come out as, and every way in which one could be faked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check import (
    Break,
    CannotForm,
    Instance,
    Interval,
    Mend,
    Plant,
    Run,
    Status,
    Verdict,
    Waive,
)
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.runner import evaluate_claim

HOLDS, FAILS, UNDECIDED = Status.HOLDS, Status.FAILS, Status.UNDECIDED


def _raise(error: BaseException) -> Callable[..., Any]:
    def raises(*_: Any) -> Any:
        raise error

    return raises


def _some(*indices: int) -> Callable[[Run], list[Instance]]:
    """Control instances by index into what the fake claim measures."""
    return lambda run: [Instance(label=f"broken {k}", data=k) for k in indices]


def _only(index: int) -> Callable[[Run], list[Instance]]:
    return lambda run: [Instance(label="own", data=index)]


def _outcome(claim: Any, name: str | None = None) -> Any:
    control = claim.controls[0] if name is None else next(c for c in claim.controls if c.name == name)
    return evaluate_control(claim, control, Run(RunConfig()))


class TestPlant:
    def test_wrong_constants_must_fail(self, claim: Any) -> None:
        outcome = _outcome(claim())
        assert (outcome.verdict, outcome.as_expected) == (Verdict.FAIL, True)
        assert outcome.constants == {"bound": -1.0}

    def test_that_passes_is_unexpected(self, claim: Any) -> None:
        outcome = _outcome(claim(controls=(Plant(name="weak", constants={"bound": 0.9}),)))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.PASS, False)

    def test_that_straddles_is_unexpected(self, claim: Any) -> None:
        wide = Interval(np.array(-2.0), np.array(0.5), "stated")
        assert evaluate_claim(claim(measured=[wide]), Run(RunConfig())).verdict is Verdict.PASS
        outcome = _outcome(claim(measured=[wide]))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.INCONCLUSIVE, False)

    def test_that_is_vacuous_is_unexpected(self, claim: Any, assumption: Any) -> None:
        outcome = _outcome(claim(assumes=(assumption("A1", [FAILS]),)))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.VACUOUS, False)

    def test_that_raises_is_an_error_and_not_the_fail_it_wants(self, claim: Any) -> None:
        def predicted(data: Any, constants: Any) -> Interval:
            if constants["bound"] < 0:
                raise ZeroDivisionError("no such bound")
            return Interval.exact(constants["bound"])

        outcome = _outcome(claim(predicted=predicted))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)
        assert "ZeroDivisionError: no such bound" in outcome.reason
        assert "Traceback" in outcome.error

    def test_that_only_refuses_its_constants_shows_nothing(self, claim: Any) -> None:
        def predicted(data: Any, constants: Any) -> Interval:
            if constants["bound"] < 0:
                raise CannotForm("a bound is positive")
            return Interval.exact(constants["bound"])

        outcome = _outcome(claim(predicted=predicted))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.FAIL, False)
        assert "compared on no instance" in outcome.reason

    def test_other_constants_stay(self, claim: Any) -> None:
        seen = []

        def predicted(data: Any, constants: Any) -> Interval:
            seen.append(dict(constants))
            return Interval.exact(constants["bound"])

        _outcome(claim(predicted=predicted, constants={"bound": 1.0, "other": 7}))
        own = {"bound": 1.0, "other": 7}
        assert seen == [
            own,
            {"bound": -1.0, "other": 7},
            own,
        ]  # held against the claim's own, before and after

    def test_uses_the_claims_own_measurements(self, claim: Any) -> None:
        calls = []

        def measured() -> Interval:
            calls.append(1)
            return Interval.exact(0.5)

        given, run = claim(measured=[measured]), Run(RunConfig())
        evaluate_claim(given, run)
        evaluate_control(given, given.controls[0], run)
        assert len(calls) == 1


class TestMend:
    def _erratum(self, claim: Any, mended: float) -> Any:
        return claim(
            measured=[Interval.exact(2.0)],
            expect=Verdict.FAIL,
            erratum="the bound is 3",
            controls=(Mend(name="mended", constants={"bound": mended}),),
        )

    def test_published_statement_fails_as_expected(self, claim: Any) -> None:
        outcome = evaluate_claim(self._erratum(claim, 3.0), Run(RunConfig()))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.FAIL, True)

    def test_published_statement_that_passes_is_unexpected(self, claim: Any) -> None:
        published = claim(
            expect=Verdict.FAIL,
            erratum="it is said to fail",
            controls=(Mend(name="corrected", constants={"bound": 2.0}),),
        )
        outcome = evaluate_claim(published, Run(RunConfig()))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.PASS, False)

    def test_correction_must_pass(self, claim: Any) -> None:
        outcome = _outcome(self._erratum(claim, 3.0))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.PASS, True)

    def test_correction_that_fails_is_unexpected(self, claim: Any) -> None:
        outcome = _outcome(self._erratum(claim, 1.5))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.FAIL, False)


class TestBreak:
    """Own instance: index 0, which passes; 1 violates the bound; 2 keeps it."""

    measured = (Interval.exact(0.5), Interval.exact(2.0), Interval.exact(0.6))

    def _claim(self, claim: Any, assumes: Any, *broken: int, also: tuple[str, ...] = ()) -> Any:
        control = Break(name="broken", assumption="A1", instances=_some(*broken), also=also)
        return claim(measured=self.measured, instances=_only(0), assumes=assumes, controls=(control,))

    def test_vacuous_and_fails_once_waived(self, claim: Any, assumption: Any) -> None:
        outcome = _outcome(self._claim(claim, (assumption("A1", [HOLDS, FAILS, FAILS]),), 1))
        assert (outcome.verdict, outcome.waived_verdict) == (Verdict.VACUOUS, Verdict.FAIL)
        assert outcome.as_expected
        assert outcome.waived == ("A1",)

    def test_that_passes_once_waived_is_unexpected(self, claim: Any, assumption: Any) -> None:
        outcome = _outcome(self._claim(claim, (assumption("A1", [HOLDS, FAILS, FAILS]),), 2))
        assert (outcome.verdict, outcome.waived_verdict) == (Verdict.VACUOUS, Verdict.PASS)
        assert not outcome.as_expected

    @pytest.mark.parametrize("status", [HOLDS, UNDECIDED])
    def test_assumption_that_is_not_broken_is_unexpected(
        self, status: Status, claim: Any, assumption: Any
    ) -> None:
        outcome = _outcome(self._claim(claim, (assumption("A1", [HOLDS, status, FAILS]),), 1))
        assert outcome.verdict is not Verdict.VACUOUS
        assert not outcome.as_expected

    def test_one_instance_that_keeps_the_assumption_is_unexpected(self, claim: Any, assumption: Any) -> None:
        """Two vacuous instances of three would make the control vacuous as a whole."""
        outcome = _outcome(self._claim(claim, (assumption("A1", [FAILS, FAILS, HOLDS]),), 0, 1, 2))
        assert not outcome.as_expected
        assert "A1 does not fail on broken 2" in outcome.reason

    def test_another_assumption_that_fails_hides_nothing(self, claim: Any, assumption: Any) -> None:
        both = (assumption("A1", [HOLDS, FAILS, FAILS]), assumption("A2", [HOLDS, FAILS, FAILS]))
        outcome = _outcome(self._claim(claim, both, 1))
        assert (outcome.verdict, outcome.waived_verdict) == (Verdict.VACUOUS, Verdict.VACUOUS)
        assert not outcome.as_expected
        outcome = _outcome(self._claim(claim, both, 1, also=("A2",)))
        assert outcome.as_expected
        assert outcome.waived == ("A1", "A2")

    def test_an_assumption_waived_without_need_is_unexpected(self, claim: Any, assumption: Any) -> None:
        both = (assumption("A1", [HOLDS, FAILS, FAILS]), assumption("A2", [HOLDS, HOLDS, HOLDS]))
        outcome = _outcome(self._claim(claim, both, 1, also=("A2",)))
        assert (outcome.verdict, outcome.waived_verdict) == (Verdict.VACUOUS, Verdict.FAIL)
        assert not outcome.as_expected
        assert "waived without need, as it holds everywhere: A2" in outcome.reason

    def test_other_assumption_undecided_is_unexpected(self, claim: Any, assumption: Any) -> None:
        both = (assumption("A1", [HOLDS, FAILS, FAILS]), assumption("A2", [HOLDS, UNDECIDED, HOLDS]))
        outcome = _outcome(self._claim(claim, both, 1))
        assert outcome.waived_verdict is Verdict.INCONCLUSIVE
        assert not outcome.as_expected

    def test_stronger_assumptions_are_waived_with_it(self, claim: Any, assumption: Any) -> None:
        """A3 implies A2 implies A1: where A1 fails they fail too, and A4 stays."""
        chain = (
            assumption("A1", [HOLDS, FAILS, FAILS]),
            assumption("A2", [HOLDS, FAILS, FAILS], implies=("A1",)),
            assumption("A3", [HOLDS, FAILS, FAILS], implies=("A2",)),
            assumption("A4", [HOLDS, HOLDS, HOLDS]),
        )
        outcome = _outcome(self._claim(claim, chain, 1))
        assert outcome.as_expected
        assert outcome.waived == ("A1", "A2", "A3")

    def test_false_implication_is_an_error(self, claim: Any, assumption: Any) -> None:
        """Otherwise a claim could have everything waived by declaring that all implies the broken one."""
        two = (
            assumption("A1", [HOLDS, FAILS, FAILS]),
            assumption("A2", [HOLDS, HOLDS, FAILS], implies=("A1",)),
        )
        outcome = _outcome(self._claim(claim, two, 1))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)
        assert "A2 holds and A1 fails" in outcome.reason

    @pytest.mark.parametrize("planted", [(), (Plant(name="planted", constants={"bound": -1.0}),)])
    @pytest.mark.parametrize("where", ["measure", "predict"])
    def test_object_that_cannot_be_formed_counts_as_fail(
        self, where: str, planted: tuple[Plant, ...], claim: Any, assumption: Any
    ) -> None:
        given = self._claim(claim, (assumption("A1", [HOLDS, FAILS, FAILS]),), 2)
        changed = claim(
            measured=self.measured,
            instances=_only(0),
            assumes=given.assumes,
            controls=(*given.controls, *planted),
            **{where: _raise(CannotForm("the data are not separable"))},
        )
        outcome = _outcome(changed)
        # As the only control it would show nothing of the judgement.
        assert (outcome.waived_verdict, outcome.as_expected) == (Verdict.FAIL, bool(planted))
        assert "cannot be formed: the data are not separable" in outcome.reason
        assert ("has no Plant, and here nothing could be compared" in outcome.reason) is not bool(planted)

    @pytest.mark.parametrize(
        "error", [ValueError("bad"), np.linalg.LinAlgError("singular"), AssertionError()]
    )
    def test_other_exception_is_an_error(self, error: Exception, claim: Any, assumption: Any) -> None:
        given = self._claim(claim, (assumption("A1", [HOLDS, FAILS, FAILS]),), 1)
        changed = claim(
            measured=self.measured,
            instances=_only(0),
            assumes=given.assumes,
            controls=given.controls,
            measure=_raise(error),
        )
        outcome = _outcome(changed)
        assert (outcome.verdict, outcome.waived_verdict, outcome.as_expected) == (Verdict.ERROR, None, False)
        assert type(error).__name__ in outcome.reason

    def test_no_instance_is_an_error(self, claim: Any, assumption: Any) -> None:
        outcome = _outcome(self._claim(claim, (assumption("A1", [HOLDS, FAILS, FAILS]),)))
        assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)
        assert "made no instance" in outcome.reason


class TestWaive:
    measured = (Interval.exact(0.5), Interval.exact(2.0), Interval.exact(0.6))

    def _asked(self, claim: Any, a1: Any, *indices: int) -> Any:
        controls = (
            Plant(name="planted", constants={"bound": -1.0}),
            Waive(name="asked", assumption="A1", instances=_some(*indices)),
        )
        given = claim(measured=self.measured, instances=_only(0), assumes=(a1,), controls=controls)
        return _outcome(given, "asked")

    def test_not_needed_on_the_instances_tried(self, claim: Any, assumption: Any) -> None:
        outcome = self._asked(claim, assumption("A1", [HOLDS, FAILS, FAILS]), 2)
        assert (outcome.verdict, outcome.as_expected) == (Verdict.PASS, True)
        assert "not needed on the instances tried: waived, 1 of the 1" in outcome.finding

    def test_needed(self, claim: Any, assumption: Any) -> None:
        outcome = self._asked(claim, assumption("A1", [HOLDS, FAILS, FAILS]), 1, 2)
        assert (outcome.verdict, outcome.as_expected) == (Verdict.FAIL, True)
        assert "A1 is needed" in outcome.finding
        assert "broken 1" in outcome.finding

    def test_instances_that_keep_the_assumption_ask_nothing(self, claim: Any, assumption: Any) -> None:
        """Index 1 would fail, but not because of A1, which holds there."""
        outcome = self._asked(claim, assumption("A1", [HOLDS, HOLDS, FAILS]), 1, 2)
        assert "not needed on the instances tried: waived, 1 of the 1" in outcome.finding
        outcome = self._asked(claim, assumption("A1", [HOLDS, HOLDS, HOLDS]), 1, 2)
        assert outcome.verdict is Verdict.INCONCLUSIVE
        assert "fails on none of the 2 instance(s)" in outcome.finding
        assert "not needed" not in outcome.finding

    def test_does_not_count_as_the_control(self, claim: Any, assumption: Any) -> None:
        waive = Waive(name="asked", assumption="A1", instances=_some(1))
        with pytest.raises(ValueError, match="no control that can reach FAIL"):
            claim(assumes=(assumption("A1", [HOLDS]),), controls=(waive,))

    def test_that_raises_is_unexpected(self, claim: Any, assumption: Any) -> None:
        given = claim(
            measured=[Interval.exact(0.5), _raise(ValueError("bad"))],
            instances=_only(0),
            assumes=(assumption("A1", [HOLDS, FAILS]),),
            controls=(
                Plant(name="planted", constants={"bound": -1.0}),
                Waive(name="asked", assumption="A1", instances=_some(1)),
            ),
        )
        outcome = _outcome(given, "asked")
        assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)


def test_warnings_are_kept_for_the_report(claim: Any) -> None:
    def measured() -> Interval:
        return Interval.exact(float(np.log(np.float64(0.0))))

    outcome = evaluate_claim(claim(measured=[measured]), Run(RunConfig()))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert outcome.warnings == ("RuntimeWarning: divide by zero encountered in log",)


def test_interruption_is_not_swallowed(claim: Any) -> None:
    given = claim(measured=[_raise(KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        evaluate_claim(given, Run(RunConfig()))
    with pytest.raises(KeyboardInterrupt):
        evaluate_control(given, given.controls[0], Run(RunConfig()))


def test_an_instance_that_raises_keeps_the_outcomes_of_the_others(claim: Any) -> None:
    raising = _raise(ZeroDivisionError("by design"))
    outcome = evaluate_claim(
        claim(measured=(Interval.exact(0.5), raising, Interval.exact(0.5))), Run(RunConfig())
    )
    assert (outcome.verdict, outcome.as_expected) == (Verdict.ERROR, False)
    assert [i.verdict for i in outcome.instances] == [Verdict.PASS, Verdict.ERROR, Verdict.PASS]
    assert "by design" in outcome.reason
    assert "ZeroDivisionError" in outcome.error
