"""Named random streams, and what a run hands to a claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check import Run, Tier
from marginlab.proofs_check.engine.context import RunConfig
from marginlab.proofs_check.engine.streams import config_hash, stream
from marginlab.theory.errors import InvalidInput


def _draw(root: int, config: dict[str, Any], index: int) -> list[int]:
    return np.random.default_rng(stream(root, config, index)).integers(0, 2**63, 4).tolist()


def test_known_value() -> None:
    """Stability: published reports name seeds, so the numbers behind a name may never change."""
    assert config_hash({"task": "match-copy", "n": 16}) == (
        "78565dfef7eec9eaf65c1d3a00c407853cac93e26a147321f3e174b071ce99cd"
    )
    assert _draw(0, {"task": "match-copy", "n": 16}, 3)[:2] == [5202375722145859918, 5078658878109891291]


def test_key_is_the_documented_one() -> None:
    """The words of the spelled-out hash, without the engine's own arithmetic."""
    config = {"n": 16, "task": "match-copy"}
    digest = config_hash(config)
    words = [int(digest[8 * k : 8 * k + 8], 16) for k in range(4)]
    found = stream(5, config, 2)
    assert found.entropy == 5
    assert list(found.spawn_key) == [*words, 2]


@settings(deadline=None, max_examples=50)
@given(root=st.integers(0, 2**40), index=st.integers(0, 2**33), n=st.integers(1, 10))
def test_same_name_same_data_in_any_order(root: int, index: int, n: int) -> None:
    first = _draw(root, {"a": 1, "n": n}, index)
    _draw(root, {"other": True}, 0)
    assert _draw(root, {"n": n, "a": 1}, index) == first
    others = [
        _draw(root + 1, {"a": 1, "n": n}, index),
        _draw(root, {"a": 1, "n": n}, index + 1),
        _draw(root, {"a": 1, "n": n + 1}, index),
        _draw(root, {"b": 1, "n": n}, index),
    ]
    assert len({tuple(d) for d in [first, *others]}) == 5


def test_tier_and_number_of_seeds_change_no_stream() -> None:
    config = {"task": "x"}
    keys = {
        Run(RunConfig(tier=tier, seeds=seeds)).stream(config, 1).spawn_key
        for tier in Tier
        for seeds in (None, 7)
    }
    assert len(keys) == 1
    assert Run(RunConfig(root_seed=1)).stream(config, 1).entropy == 1


def test_seeds_are_always_counted_from_zero() -> None:
    assert Run(RunConfig()).seeds(3) == range(3)
    assert Run(RunConfig(seeds=7)).seeds(3) == range(7)


@pytest.mark.parametrize(
    "changes",
    [{"seeds": 0}, {"seeds": -1}, {"seeds": 10_001}, {"seeds": 2.0}, {"seeds": True}, {"root_seed": -1}],
)
def test_configurations_that_make_no_sense(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        RunConfig(**changes)


def test_parsed_tier() -> None:
    assert RunConfig.parsed("full", 5) == RunConfig(tier=Tier.FULL, seeds=5)
    with pytest.raises(InvalidInput, match="tier must be one of quick, full, paper; got 'slow'"):
        RunConfig.parsed("slow")


def test_hash_of_a_run_tells_configurations_apart() -> None:
    runs = [RunConfig(), RunConfig(tier=Tier.FULL), RunConfig(seeds=3), RunConfig(root_seed=1)]
    assert len({r.config_hash for r in runs}) == len(runs)
    assert RunConfig().config_hash == RunConfig().config_hash


def test_once_is_once_per_run() -> None:
    run = Run(RunConfig())
    first = run.once("key", object)
    assert run.once("key", object) is first
    assert run.once("other", object) is not first
    assert Run(RunConfig()).once("key", object) is not first
