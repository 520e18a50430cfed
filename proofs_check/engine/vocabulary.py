"""The words of claims and reports: verdicts, kinds, evidence, sources, tiers."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from marginlab.theory.errors import InvalidInput

Word = TypeVar("Word", bound=StrEnum)


class Verdict(StrEnum):
    """What a judgement says. ERROR means that the claim's own code raised: never an expected verdict."""

    PASS = "PASS"
    FAIL = "FAIL"
    VACUOUS = "VACUOUS"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


class Kind(StrEnum):
    """What sort of statement a claim makes; the judgement follows from it."""

    IDENTITY = "identity"
    LIMIT = "limit"
    TIGHT = "tight"
    UPPER = "upper"
    LOWER = "lower"
    RATE = "rate"
    DIRECTION = "direction"
    ORDERING = "ordering"
    EMERGENCE = "emergence"
    ESTIMATE = "estimate"


class Evidence(StrEnum):
    """How strong the check is, strongest first."""

    SYMBOLIC = "symbolic"
    EXACT = "exact"
    CERTIFIED = "certified"
    NUMERICAL = "numerical"
    STATISTICAL = "statistical"

    @property
    def proves(self) -> bool:
        """Whether a check with this evidence proves its comparison, for all values or for the instances at hand."""
        return self in (Evidence.SYMBOLIC, Evidence.EXACT, Evidence.CERTIFIED)


class Source(StrEnum):
    """Where the words of a statement come from."""

    QUOTED = "quoted"
    REPORTED = "reported"
    DERIVED = "derived"


class Tier(StrEnum):
    """How much work a claim needs; a run of a tier includes the tiers below it."""

    QUICK = "quick"
    FULL = "full"
    PAPER = "paper"

    def includes(self, other: Tier) -> bool:
        """Whether a run of this tier runs claims whose least tier is `other`."""
        order = list(Tier)
        return order.index(self) >= order.index(other)


class Status(StrEnum):
    """Answer of an assumption's predicate."""

    HOLDS = "HOLDS"
    FAILS = "FAILS"
    UNDECIDED = "UNDECIDED"


def word(vocabulary: type[Word], value: object, what: str) -> Word:
    """The member of `vocabulary` that `value` is or spells.

    Comparisons are by identity everywhere, so that a mere spelling ("FAILS") must never get past this.

    Raises
    ------
    InvalidInput
        `value` is no word of it.
    """
    try:
        return vocabulary(value)
    except ValueError:
        words = ", ".join(vocabulary)
        raise InvalidInput(f"{what} is one of {words}, not {value!r}.") from None
