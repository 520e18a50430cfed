"""Random sequences and models that the claims of this family share, and their laws in exact and in ball arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.engine.claim import Instance
from marginlab.proofs_check.engine.context import Run
from marginlab.theory.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Model:
    """A sequence with a soft-matching model for it."""

    tokens: tuple[int, ...]
    vocab_size: int
    beta: Float
    kappa: float
    base: Float
    boundary: str

    @property
    def order(self) -> int:
        """k."""
        return len(self.beta)

    @property
    def size(self) -> float:
        """Bound on the size of a score, |beta|_1 + |kappa| (finite part)."""
        return float(np.abs(self.beta).sum()) + (abs(self.kappa) if self.kappa > -np.inf else 0.0)

    def how(self) -> dict[str, Any]:
        """Keywords of `soft_match`."""
        return {"kappa": self.kappa, "base": self.base, "boundary": self.boundary}


def drawn_model(seed: np.random.SeedSequence, boundary: str, *, most: int = 60, scale: float = 2.0) -> Model:
    """V 2-6, k 1-4, T up to `most`, signed scales and kappa, any base law."""
    rng = np.random.default_rng(seed)
    V, k = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    return Model(
        tokens=tuple(int(x) for x in rng.integers(0, V, rng.integers(k + 2, most))),
        vocab_size=V,
        beta=scale * rng.normal(size=k),
        kappa=float(rng.normal()),
        base=rng.dirichlet(np.ones(V)),
        boundary=boundary,
    )


def models(count: int, name: str, **how: Any) -> Any:
    """`count` models for each boundary."""

    def instances(run: Run) -> Iterable[Instance]:
        for boundary in ("interior", "padded"):
            config = {"models": name, "boundary": boundary, **how}
            for seed in run.seeds(count):
                model = drawn_model(run.stream(config, seed), boundary, **how)
                yield Instance(label=f"{boundary}, seed {seed}", data=model, seed=seed, config=config)

    return instances


# ---- Exact counts ----


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RationalModel:
    """The last row of a sequence, with rational weights e^beta_l = odds[l] > 0 and e^kappa = mass >= 0."""

    tokens: tuple[int, ...]
    vocab_size: int
    odds: tuple[Fraction, ...]
    mass: Fraction
    base: tuple[Fraction, ...]

    @property
    def order(self) -> int:
        """k."""
        return len(self.odds)

    def overlaps(self) -> dict[tuple[int, int], int]:
        """N_M(m) over interior positions, by listing them: {(mask, symbol): count}."""
        x, k, found = self.tokens, self.order, {}
        for s in range(k, len(x)):
            mask = sum(1 << (lag - 1) for lag in range(1, k + 1) if x[s - lag] == x[len(x) - lag])
            found[mask, x[s]] = found.get((mask, x[s]), 0) + 1
        return found

    def cumulative(self) -> list[list[int]]:
        """K_S(m), by listing the positions once for each set of lags."""
        x, k = self.tokens, self.order
        table = [[0] * self.vocab_size for _ in range(2**k)]
        for S in range(2**k):
            lags = [lag for lag in range(1, k + 1) if S >> (lag - 1) & 1]
            for s in range(k, len(x)):
                if all(x[s - lag] == x[len(x) - lag] for lag in lags):
                    table[S][x[s]] += 1
        return table

    def numerators(self) -> list[Fraction]:
        """e^kappa base(m) + sum over positions of the product of odds at the matching lags, if the symbol is m."""
        sums = [self.mass * b for b in self.base]
        for (mask, m), n in self.overlaps().items():
            sums[m] += n * product(self.odds[i] for i in range(self.order) if mask >> i & 1)
        return sums

    def law(self) -> list[Fraction]:
        """The estimate."""
        sums = self.numerators()
        return [v / sum(sums) for v in sums]


def product(values: Iterable[Fraction]) -> Fraction:
    """Product, 1 of nothing."""
    result = Fraction(1)
    for v in values:
        result *= v
    return result


def drawn_rational(
    seed: np.random.SeedSequence, *, order: int, vocab_size: int, length: int, odds: Sequence[Fraction]
) -> RationalModel:
    """A sequence, and odds and a BOS mass that are dyadic, so that sums of counts times weights are floats exactly."""
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(16, np.full(vocab_size, 1 / vocab_size))
    return RationalModel(
        tokens=tuple(int(x) for x in rng.integers(0, vocab_size, length)),
        vocab_size=vocab_size,
        odds=tuple(odds[int(i)] for i in rng.integers(0, len(odds), order)),
        mass=Fraction(int(rng.integers(0, 9)), 4),
        base=tuple(Fraction(int(w), 16) for w in weights),
    )


#: Odds e^beta above one, and below it, with which everything stays exact.
ABOVE = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5), Fraction(16))
BELOW = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def rational_models(count: int, odds: Sequence[Fraction], name: str) -> Any:
    """`count` rational models of each order 1..4."""

    def instances(run: Run) -> Iterable[Instance]:
        for order in (1, 2, 3, 4):
            config: Mapping[str, Any] = {"rational models": name, "order": order}
            for seed in run.seeds(count):
                model = drawn_rational(
                    run.stream(config, seed),
                    order=order,
                    vocab_size=2 + order % 2,
                    length=14 + order,
                    odds=odds,
                )
                yield Instance(label=f"k = {order}, seed {seed}", data=model, seed=seed, config=config)

    return instances


def floats(values: Iterable[Fraction]) -> list[float]:
    """Fractions that float64 holds, as floats; `Interval.exact` checks the others away."""
    found = list(values)
    for v in found:
        if Fraction(float(v)) != v:
            raise ValueError(f"float64 does not hold {v}")
    return [float(v) for v in found]
