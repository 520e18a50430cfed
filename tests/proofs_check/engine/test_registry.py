"""The registry: unique ids, known dependencies, no circles, selection, one error level."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check import Claim, Evidence, Tier
from marginlab.proofs_check.engine.context import ERROR_LEVEL
from marginlab.proofs_check.engine.registry import Registry
from marginlab.theory.errors import InvalidInput


def test_two_claims_of_one_id(claim: Any) -> None:
    with pytest.raises(InvalidInput, match="two different claims are called 'fake/claim'"):
        Registry([claim(), claim()])


def test_one_claim_twice_counts_once(claim: Any) -> None:
    one = claim()
    assert list(Registry([one, one])) == [one]


def test_unknown_dependency(claim: Any) -> None:
    with pytest.raises(InvalidInput, match="'fake/claim' depends on unknown claims: fake/other, fake/third"):
        Registry([claim(depends_on=("fake/other", "fake/third"))])


@pytest.mark.parametrize(
    "edges", [{"a": ("a",)}, {"a": ("b",), "b": ("a",)}, {"a": ("b",), "b": ("c",), "c": ("a",), "d": ("a",)}]
)
def test_circles_are_named(edges: dict[str, tuple[str, ...]], claim: Any) -> None:
    claims = [claim(id=f"fake/{k}", depends_on=tuple(f"fake/{i}" for i in v)) for k, v in edges.items()]
    with pytest.raises(InvalidInput, match="in a circle") as refused:
        Registry(claims)
    assert "fake/a" in str(refused.value)
    assert "fake/d" not in str(refused.value)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_dependencies_come_first(seed: int, claim: Any) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    names = [f"fake/c{k}" for k in range(n)]
    claims = [
        claim(id=names[k], depends_on=tuple(names[j] for j in range(k) if rng.random() < 0.4))
        for k in range(n)
    ]
    rng.shuffle(claims)  # type: ignore[arg-type]
    order = [c.id for c in Registry(claims)]
    assert sorted(order) == sorted(names)
    for c in claims:
        assert all(order.index(i) < order.index(c.id) for i in c.depends_on)


def test_lookup_and_suggestions(claim: Any) -> None:
    registry = Registry([claim(id="match-copy/norm-growth"), claim(id="ngrams/limit")])
    assert len(registry) == 2
    assert "ngrams/limit" in registry
    assert registry["ngrams/limit"].id == "ngrams/limit"
    for wrong, near in (
        ("match-copy/norm-grow", "match-copy/norm-growth"),
        ("match-cpy", "match-copy"),
        ("ngrams/limits", "ngrams/limit"),
    ):
        with pytest.raises(InvalidInput, match=f"there is no claim '{wrong}'; the nearest is '{near}'"):
            registry[wrong]
    with pytest.raises(InvalidInput, match=r"there is no claim 'zzz'\.$"):
        registry["zzz"]


def test_selection(claim: Any) -> None:
    ids = ["a/x", "a/y", "ab/x", "b/x"]
    registry = Registry([claim(id=i) for i in ids])

    def chosen(*patterns: str) -> list[str]:
        return [c.id for c in registry.select(patterns)]

    assert chosen() == ids
    assert chosen("a") == ["a/x", "a/y"]
    assert chosen("b/x", "a/y") == ["a/y", "b/x"]
    assert chosen("a", "a/x") == ["a/x", "a/y"]
    with pytest.raises(InvalidInput, match="no claim 'c'"):
        registry.select(["a", "c"])


def test_tiers_include_those_below(claim: Any) -> None:
    registry = Registry([claim(id=f"a/{tier}", min_tier=tier) for tier in Tier])
    split = {t: [[c.min_tier for c in part] for part in registry.split(registry, t)] for t in Tier}
    quick, full, paper = Tier
    assert split == {
        quick: [[quick], [full, paper]],
        full: [[quick, full], [paper]],
        paper: [[quick, full, paper], []],
    }


def test_level_is_divided_over_everything_registered(claim: Any) -> None:
    def statistical(name: str, judgements: int, tier: Tier) -> Any:
        return claim(id=name, evidence=Evidence.STATISTICAL, judgements=judgements, min_tier=tier)

    registry = Registry([statistical("a/x", 3, Tier.QUICK), statistical("b/x", 5, Tier.PAPER), claim()])
    assert registry.level == ERROR_LEVEL / 8
    registry.select(["a"])
    registry.split(registry, Tier.QUICK)
    assert registry.level == ERROR_LEVEL / 8
    assert Registry([claim()]).level == ERROR_LEVEL


def test_own_claims_register() -> None:
    import marginlab

    registry = marginlab.claims()
    assert len(registry) > 0
    assert marginlab.claims() is registry


class _Free(Claim):
    """A claim that skips the rules."""

    __slots__ = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "group", "x")


def test_a_subclass_is_refused(claim: Any) -> None:
    fields: dict[str, Any] = {f.name: getattr(claim(), f.name) for f in dataclasses.fields(Claim)}
    fields["controls"] = ()
    with pytest.raises(InvalidInput, match="is a Claim itself, not a _Free"):
        Registry([_Free(**fields)])


def test_rules_are_asked_again(claim: Any) -> None:
    changed = claim()
    object.__setattr__(changed, "controls", ())
    with pytest.raises(InvalidInput, match="no control that can reach FAIL"):
        Registry([changed])


def test_a_family_is_named_as_one(claim: Any) -> None:
    registry = Registry([claim(id="fake/a"), claim(id="fake/b"), claim(id="other/c")])
    with pytest.raises(InvalidInput, match=r"no claim 'fake': that is a family, of fake/a, fake/b\."):
        registry["fake"]
