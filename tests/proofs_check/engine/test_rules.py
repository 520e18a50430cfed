"""Every rule that a claim must keep, broken once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check import (
    Answer,
    Assumption,
    Break,
    Evidence,
    Instance,
    Kind,
    Mend,
    Plant,
    Source,
    Status,
    Tier,
    Verdict,
    Waive,
)
from marginlab.proofs_check.engine.claim import waived_with
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.theory.errors import InvalidInput

PLANT = Plant(name="planted", constants={"bound": -1.0})


@dataclass(frozen=True, slots=True, kw_only=True)
class Flattering(Plant):
    """A plant of somebody's own, which the engine could not trust."""


def _none(run: Any) -> list[Any]:
    return []


@pytest.mark.parametrize(
    "name", ["noslash", "Upper/case", "a/b/c", "a/", "/b", "a b/c", "a--b/c", "a/b-", ""]
)
def test_ids(name: str, claim: Any) -> None:
    with pytest.raises(InvalidInput, match="an id is 'family/name' in lower case"):
        claim(id=name)


BROKEN = [
    ({"controls": ()}, "no control that can reach FAIL"),
    ({"controls": (Flattering(name="p", constants={"bound": 2.0}),)}, "not a Flattering"),
    ({"controls": (object(),)}, "not a object"),
    ({"controls": (PLANT, PLANT)}, "two controls share a name"),
    ({"controls": (PLANT, Mend(name="m", constants={"bound": 2.0}))}, "'m': a Mend belongs to a claim"),
    ({"controls": (Mend(name="m", constants={"bound": 2.0}),)}, "no control that can reach FAIL"),
    (
        {"controls": (Plant(name="p", constants={"slope": 2.0}),)},
        r"changes constants that the claim lacks: \['slope'\]",
    ),
    ({"controls": (Plant(name="p", constants={"bound": 1.0}),)}, "'p' changes no constant"),
    ({"controls": (Plant(name="p", constants={}),)}, "'p' changes no constant"),
    (
        {"controls": (Break(name="b", assumption="A9", instances=_none),)},
        r"names assumptions that the claim lacks: \['A9'\]",
    ),
    (
        {"controls": (PLANT, Waive(name="w", assumption="A9", instances=_none))},
        r"'w' names assumptions that the claim lacks",
    ),
    ({"expect": Verdict.VACUOUS}, "expected to PASS or to FAIL, not VACUOUS"),
    ({"expect": Verdict.ERROR}, "expected to PASS or to FAIL, not ERROR"),
    ({"expect": Verdict.FAIL}, "an erratum text goes with expect=FAIL"),
    ({"erratum": "it is wrong"}, "an erratum text goes with expect=FAIL"),
    ({"window": (2.0, 1.0)}, "first end lies below its last"),
    ({"window": (1.0, float("nan"))}, "first end lies below its last"),
    ({"min_valid": 0.0}, "min_valid is a fraction"),
    ({"min_valid": 1.5}, "min_valid is a fraction"),
    ({"min_valid": float("nan")}, "min_valid is a fraction"),
    ({"judgements": 1}, "a statistical claim states how many"),
    ({"judgements": -1}, "not negative"),
    ({"evidence": Evidence.STATISTICAL}, "a statistical claim states how many"),
    ({"evidence": Evidence.STATISTICAL, "judgements": 1, "unit": "seed"}, "belongs to the full tier"),
]


@pytest.mark.parametrize(("changes", "words"), BROKEN, ids=[words[:30] for _, words in BROKEN])
def test_broken_rule(changes: dict[str, Any], words: str, claim: Any) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        claim(**changes)
    assert str(refused.value).startswith("claim 'fake/claim': ")
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize("kind", [Kind.RATE, Kind.LIMIT, Kind.DIRECTION])
def test_window_is_stated_in_advance(kind: Kind, claim: Any) -> None:
    with pytest.raises(InvalidInput, match=f"a {kind} claim states its window in advance"):
        claim(kind, window=None)


def test_assumptions(claim: Any, assumption: Any) -> None:
    one = assumption("A1", [Status.HOLDS])
    with pytest.raises(InvalidInput, match="two assumptions share a name"):
        claim(assumes=(one, one))
    with pytest.raises(InvalidInput, match=r"'A2' implies unknown assumptions: \['A7'\]"):
        claim(assumes=(one, assumption("A2", [Status.HOLDS], implies=("A7",))))
    with pytest.raises(InvalidInput, match=r"lacks: \['A8'\]"):
        claim(
            assumes=(one,),
            controls=(Break(name="b", assumption="A1", instances=_none, also=("A8",)),),
        )


def test_what_keeps_the_rules_is_accepted(claim: Any, assumption: Any) -> None:
    one = assumption("A1", [Status.HOLDS])
    claim(controls=(Break(name="b", assumption="A1", instances=_none),), assumes=(one,))
    claim(expect=Verdict.FAIL, erratum="wrong", controls=(Mend(name="m", constants={"bound": 9.0}),))
    claim(evidence=Evidence.STATISTICAL, judgements=1, unit="sequence, given this run")
    claim(evidence=Evidence.STATISTICAL, judgements=1, unit="seed", min_tier=Tier.FULL)
    assert claim(id="two-words/a-name1").family == "two-words"
    assert claim(id="two-words/a-name1").group == "two-words"
    assert claim(group="shared").group == "shared"


def test_waiving_follows_implications_backwards_only(claim: Any, assumption: Any) -> None:
    chain = tuple(
        assumption(name, [Status.HOLDS], implies=implied)
        for name, implied in (("A1", ()), ("A2", ("A1",)), ("A3", ("A2",)), ("A4", ()), ("A5", ("A4", "A3")))
    )
    given = claim(assumes=chain)
    assert waived_with(given, ["A1"]) == {"A1", "A2", "A3", "A5"}
    assert waived_with(given, ["A3"]) == {"A3", "A5"}
    assert waived_with(given, ["A4"]) == {"A4", "A5"}
    assert waived_with(given, ["A5"]) == {"A5"}
    assert waived_with(given, []) == frozenset()


def test_implications_in_a_circle_end(claim: Any, assumption: Any) -> None:
    circle = (
        assumption("A1", [Status.HOLDS], implies=("A2",)),
        assumption("A2", [Status.HOLDS], implies=("A1",)),
    )
    assert waived_with(claim(assumes=circle), ["A1"]) == {"A1", "A2"}


@pytest.mark.parametrize("answer", ["FAILS", Status.FAILS])
def test_a_spelled_answer_counts_as_the_word(answer: Any, claim: Any, run: Any) -> None:
    said = Assumption(name="A", statement="A", check=lambda i: Answer(answer, "as told"))
    assert evaluate_claim(claim(assumes=(said,)), run).verdict is Verdict.VACUOUS


@pytest.mark.parametrize("status", [False, None, "fails", "UNSURE", 0])
def test_an_answer_that_is_no_word_is_an_error(status: Any, claim: Any, run: Any) -> None:
    said = Assumption(name="A", statement="A", check=lambda i: Answer(status, "as told"))
    outcome = evaluate_claim(claim(assumes=(said,)), run)
    assert outcome.verdict is Verdict.ERROR
    assert "an assumption's answer is one of HOLDS, FAILS, UNDECIDED" in outcome.reason


@pytest.mark.parametrize("answer", [True, None, Status.HOLDS, (Status.HOLDS, "a pair")])
def test_a_check_returns_an_answer(answer: Any, claim: Any, run: Any) -> None:
    outcome = evaluate_claim(
        claim(assumes=(Assumption(name="A", statement="A", check=lambda i: answer),)), run
    )
    assert outcome.verdict is Verdict.ERROR
    assert "answers with an Answer, not" in outcome.reason


@pytest.mark.parametrize(
    ("field", "spelled", "word"),
    [
        ("kind", "upper", Kind.UPPER),
        ("evidence", "exact", Evidence.EXACT),
        ("source", "quoted", Source.QUOTED),
        ("min_tier", "full", Tier.FULL),
        ("expect", "PASS", Verdict.PASS),
    ],
)
def test_spelled_words_become_words(field: str, spelled: str, word: Any, claim: Any) -> None:
    assert getattr(claim(**{field: spelled}), field) is word
    with pytest.raises(InvalidInput, match=f"'fake/claim': its {field} is one of .*, not 'nonsense'"):
        claim(**{field: "nonsense"})


def test_statistical_spelled_out_keeps_its_rules(claim: Any) -> None:
    with pytest.raises(InvalidInput, match="states how many judgements it makes"):
        claim(evidence="statistical", unit="seed")


HALF = "half \ud800 pair"
A = Assumption(name="A", statement="A", check=lambda i: Answer(Status.HOLDS, "yes"))

MALFORMED = [
    ({"id": None}, "its id is text, not None"),
    ({"title": 5}, "its title is text, not 5"),
    ({"statement": None}, "its statement is text, not None"),
    ({"title": HALF}, "its title holds half of a surrogate pair"),
    ({"controls": (Plant(name=HALF, constants={"bound": 2.0}),)}, "a control's name holds half"),
    ({"assumes": (replace(A, statement=HALF),)}, "the statement of assumption 'A' holds half"),
    ({"assumes": None}, "its assumes is a tuple, not None"),
    ({"controls": None}, "its controls is a tuple, not None"),
    ({"depends_on": "fake/other"}, "its depends_on is a tuple, not 'fake/other'"),
    ({"depends_on": (3,)}, "an id in depends_on is text, not 3"),
    ({"constants": None}, "its constants map names to values, None does not"),
    ({"constants": {"bound": (k for k in range(3))}}, "its constants cannot be copied"),
    ({"controls": (Plant(name="p", constants=None),)}, "'p': its constants map names"),  # type: ignore[arg-type]
    ({"window": (1,)}, "a window is a pair of numbers, not (1,)"),
    ({"window": 3.0}, "a window is a pair of numbers, not 3.0"),
    ({"window": ("1", "2")}, "a window is a pair of numbers"),
    ({"window": (1.0, float("inf"))}, "a window's ends are finite"),
    ({"min_valid": "half"}, "min_valid is a number, not 'half'"),
    ({"judgements": 1.5}, "judgements is a whole number, not 1.5"),
    ({"measure": None}, "its measure is a function, not None"),
    ({"series": 3}, "its series is a function or None, not 3"),
    ({"assumes": ("A1",)}, "an assumption is an Assumption"),
    ({"assumes": (replace(A, implies="AB"),)}, "what assumption 'A' implies is a tuple of names"),  # type: ignore[arg-type]
    (
        {"assumes": (A,), "controls": (Break(name="b", assumption="A", instances=_none, also="A"),)},  # type: ignore[arg-type]
        "'b': its also is a tuple of names",
    ),
]


@pytest.mark.parametrize(("changes", "words"), MALFORMED, ids=[words[:40] for _, words in MALFORMED])
def test_malformed_field(changes: dict[str, Any], words: str, claim: Any) -> None:
    with pytest.raises(InvalidInput, match=re.escape(words)) as refused:
        claim(**changes)
    assert str(refused.value).count("\n") == 0


def test_lists_become_tuples_and_constants_a_copy(claim: Any) -> None:
    kept = {"bound": [1.0]}
    made = claim(constants=kept, assumes=[A], depends_on=["fake/other"], controls=[PLANT])
    kept["bound"].append(2.0)
    assert (made.assumes, made.depends_on, made.controls) == ((A,), ("fake/other",), (PLANT,))
    assert made.constants == {"bound": [1.0]}


def test_arrays_as_constants(claim: Any) -> None:
    own = {"bound": np.array([1.0, 2.0])}

    def planted(value: Any) -> Any:
        return claim(constants=own, controls=(Plant(name="p", constants={"bound": value}),))

    assert planted(np.array([1.0, 3.0])).constants["bound"].tolist() == [1.0, 2.0]
    assert planted(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(InvalidInput, match="'p' changes no constant"):
        planted(np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "returns a mapping, not None"),
        ({"statement": "x"}, "its schema and its statement"),
        ({}, "its schema"),
    ],
)
def test_certificate_says_what_it_is(returned: Any, words: str, claim: Any, run: Any) -> None:
    outcome = evaluate_claim(claim(certificate=lambda i: returned), run)
    assert outcome.verdict is Verdict.ERROR
    assert words in outcome.reason


@pytest.mark.parametrize("made", [[3], [Instance(label=5, data=0)]])  # type: ignore[arg-type]
def test_instances_are_instances(made: Any, claim: Any, run: Any) -> None:
    assert (
        "instances with a text as their label" in evaluate_claim(claim(instances=lambda r: made), run).reason
    )
