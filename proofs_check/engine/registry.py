"""All claims of a run, checked as a whole: unique ids, known dependencies, no cycles, one error level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

from marginlab.proofs_check.engine.claim import Claim, Tier
from marginlab.proofs_check.engine.context import ERROR_LEVEL
from marginlab.proofs_check.engine.rules import broken_rules
from marginlab.theory.errors import InvalidInput


class Registry:
    """Claims by id, in an order in which dependencies come first.

    Parameters
    ----------
    claims : iterable of Claim

    Raises
    ------
    InvalidInput
        A claim of a class of somebody's own, or that breaks a rule; two different claims with one id, a
        dependency that is not registered, or a cycle (it is named).
    """

    def __init__(self, claims: Iterable[Claim]) -> None:
        by_id: dict[str, Claim] = {}
        for claim in claims:
            _whole(claim)
            if by_id.setdefault(claim.id, claim) is not claim:
                raise InvalidInput(f"two different claims are called {claim.id!r}.")
        for claim in by_id.values():
            if unknown := [i for i in claim.depends_on if i not in by_id]:
                raise InvalidInput(f"claim {claim.id!r} depends on unknown claims: {', '.join(unknown)}.")
        graph = {claim.id: claim.depends_on for claim in by_id.values()}
        try:
            order = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            raise InvalidInput(
                f"claims depend on each other in a circle: {' -> '.join(error.args[1])}."
            ) from None
        self._claims = {i: by_id[i] for i in order}

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._claims.values())

    def __len__(self) -> int:
        return len(self._claims)

    def __contains__(self, claim_id: object) -> bool:
        return claim_id in self._claims

    def __getitem__(self, claim_id: str) -> Claim:
        try:
            return self._claims[claim_id]
        except KeyError:
            raise InvalidInput(f"there is no claim {claim_id!r}{self._nearest(claim_id)}.") from None

    def _nearest(self, claim_id: str) -> str:
        from difflib import get_close_matches

        families = dict.fromkeys(claim.family for claim in self)
        if claim_id in families:
            members = ", ".join(claim.id for claim in self if claim.family == claim_id)
            return f": that is a family, of {members}"
        near = get_close_matches(claim_id, [*self._claims, *families], n=1)
        return f"; the nearest is {near[0]!r}" if near else ""

    @property
    def level(self) -> float:
        """Error level of one statistical judgement: the run's, divided over all that are registered.

        All registered claims count, selected or not, so that a selection changes no number.
        """
        return ERROR_LEVEL / max(1, sum(claim.judgements for claim in self))

    def select(self, patterns: Iterable[str] = ()) -> list[Claim]:
        """Claims whose id equals a pattern, or starts with it as a family; all without patterns.

        Raises
        ------
        InvalidInput
            A pattern that selects nothing.
        """
        patterns = list(patterns)
        chosen: set[str] = set()
        for pattern in patterns:
            matches = [c.id for c in self if pattern in (c.id, c.family)]
            chosen.update(matches or [self[pattern].id])
        return [c for c in self if not patterns or c.id in chosen]

    @staticmethod
    def split(claims: Iterable[Claim], tier: Tier) -> tuple[list[Claim], list[Claim]]:
        """Claims that a run of this tier runs, and those above it."""
        claims = list(claims)
        return (
            [c for c in claims if tier.includes(c.min_tier)],
            [c for c in claims if not tier.includes(c.min_tier)],
        )


def _whole(claim: Claim) -> None:
    """Check once more what a subclass could have left out when it was made."""
    if type(claim) is not Claim:
        raise InvalidInput(f"claim {claim.id!r} is a Claim itself, not a {type(claim).__name__}.")
    for problem in broken_rules(claim):
        raise InvalidInput(f"claim {claim.id!r}: {problem}.")
