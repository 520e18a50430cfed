"""What a claim's functions get from the engine: tier, seeds, named random streams, stored results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from marginlab.proofs_check.engine.claim import Tier
from marginlab.proofs_check.engine.streams import config_hash, stream
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import count, one_of

if TYPE_CHECKING:
    import numpy as np

    from marginlab.simulations.store import Arrays, ResultStore

#: Probability that a whole run raises one false alarm, divided over its statistical judgements.
ERROR_LEVEL = 1e-3

#: Most seeds that a run takes: far beyond what any tier needs, and a typing error rather than a wish above it.
MOST_SEEDS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """What decides every number of a run.

    Parameters
    ----------
    tier : Tier
    seeds : int, optional
        Number of seeds 0..n-1 for every claim that draws instances; each claim's own number by default.
    root_seed : int
        Root of all random streams.

    Raises
    ------
    InvalidInput
        A number of seeds below 1 or above `MOST_SEEDS`, or a negative root.
    """

    tier: Tier = Tier.QUICK
    seeds: int | None = None
    root_seed: int = 0

    def __post_init__(self) -> None:
        if self.seeds is not None:
            count(self.seeds, "seeds")
            if self.seeds > MOST_SEEDS:
                raise InvalidInput(f"seeds must be at most {MOST_SEEDS}, got {self.seeds}.")
        count(self.root_seed, "root_seed", least=0)

    @classmethod
    def parsed(cls, tier: str, seeds: int | None = None) -> RunConfig:
        """From what a user typed.

        Raises
        ------
        InvalidInput
            Not a tier, or a number of seeds that no run takes.
        """
        return cls(tier=Tier(one_of(tier, "tier", tuple(Tier))), seeds=seeds)

    def to_json(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self) | {"tier": str(self.tier)}

    @property
    def config_hash(self) -> str:
        """SHA-256 of the canonical JSON."""
        return config_hash(self.to_json())


class Run:
    """One run of the engine.

    Parameters
    ----------
    config : RunConfig
    store : ResultStore, optional
        In memory by default: a run starts from nothing.
    level : float
        Error level of one statistical judgement (`Registry.level`).
    """

    def __init__(
        self, config: RunConfig, store: ResultStore | None = None, level: float = ERROR_LEVEL
    ) -> None:
        self.config = config
        self.level = level
        self._store = store
        self._memo: dict[Any, Any] = {}

    def seeds(self, default: int) -> range:
        """Seed indices 0..n-1: the run's number, or the claim's own `default`."""
        return range(self.config.seeds if self.config.seeds is not None else default)

    def stream(self, config: Mapping[str, Any], index: int) -> np.random.SeedSequence:
        """Random stream of replication `index` of the object that `config` describes."""
        return stream(self.config.root_seed, config, index)

    def recall(
        self,
        compute: Callable[[Mapping[str, Any], int | None], Arrays],
        config: Mapping[str, Any],
        seed: int | None,
    ) -> Arrays:
        """``compute(config, seed)``, computed once per run and kept in the store."""
        if self._store is None:
            from marginlab.simulations.store import ResultStore

            self._store = ResultStore()
        return self._store.recall(compute, config, seed)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """`make()` at the first call with this hashable key, the same object afterwards."""
        if key not in self._memo:
            self._memo[key] = make()
        return self._memo[key]
