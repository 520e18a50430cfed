"""How often drawn data violate A4: Monte Carlo against the exact probability of a pair (Proposition G.2 (3))."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Float, Interval, Sample
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.match_copy.geometry import smallest_alignments
from marginlab.theory.match_copy.probability import (
    UNION_FACTOR,
    UNION_RATE,
    halfspace_violation_bound,
    halfspace_violation_probability,
    pair_violation_probability,
)

GROUP = "match-copy/chance"

DIMENSIONS = (4, 8, 16, 32)

#: Pairs drawn for each dimension: the rarest event, of probability 0.0013, is then seen some 250 times.
PAIRS = 200_000

#: Draws of eight samples each: a probability of 13 % is then told from one of 11 or 15 %.
DRAWS = 8_000

#: SciPy's incomplete beta function is tested to this many roundings against ball arithmetic.
BETA_ROUNDINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draws:
    """Whether each replication violates the half-space condition."""

    n: int
    T: int
    d: int
    violations: Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Sizes at which two closed forms are compared."""

    n: int
    T: int
    d: int


@dataclass(frozen=True, slots=True, eq=False)
class _Tokens:
    """The arrays of an attention problem whose values are all that matters."""

    keys: Float
    queries: Float
    values: Float
    match: np.ndarray
    targets: Float


def drawn_pairs(run: Run) -> Iterable[Instance]:
    """Pairs d_s = v_s - v_y, d_t = v_t - v_y of standard Gaussian tokens, block by block."""
    for d in DIMENSIONS:
        config = {"kind": "pairs", "d": d, "pairs": PAIRS}
        rng = np.random.default_rng(run.stream(config, 0))
        blocks = []
        for _ in range(10):
            own, first, second = rng.standard_normal((3, PAIRS // 10, d))
            blocks.append(np.einsum("id,id->i", first - own, second - own) <= 0)
        violations = np.concatenate(blocks).astype(float)
        yield Instance(
            label=f"d = {d}", data=Draws(n=1, T=4, d=d, violations=violations), seed=0, config=config
        )


def _draws(run: Run, n: int, T: int, d: int, draws: int) -> Instance:
    """`draws` data sets of n samples with T tokens: does one of their samples violate A4?"""
    config = {"kind": "half-space draws", "n": n, "T": T, "d": d, "draws": draws}
    rng = np.random.default_rng(run.stream(config, 0))
    violated = []
    for _ in range(10):
        count = draws * n // 10
        values = rng.standard_normal((count, T - 1, d))
        match = rng.integers(T - 1, size=count)
        tokens = _Tokens(values, values[:, 0], values, match, values[np.arange(count), match])
        violated.append((smallest_alignments(tokens).reshape(-1, n) <= 0).any(axis=1))
    violations = np.concatenate(violated).astype(float)
    return Instance(
        label=f"d = {d}, T = {T}, n = {n}",
        data=Draws(n=n, T=T, d=d, violations=violations),
        seed=0,
        config=config,
    )


def four_token_draws(run: Run) -> Iterable[Instance]:
    """The size of the paper's run."""
    return [_draws(run, 8, 4, 16, DRAWS)]


def longer_draws(run: Run) -> Iterable[Instance]:
    """More rivals, so that the pairs of a sample are dependent."""
    return [_draws(run, 2, 6, 16, DRAWS), _draws(run, 1, 8, 16, DRAWS)]


def violation_share(instance: Instance) -> Sample:
    """The replications, 1 where the half-space condition is violated."""
    return Sample(values=instance.data.violations, unit="draw", law="proportion")


def pair_probability(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """I_{1/4}(d/2, d/2), times a factor; or of a planted dimension d + shift."""
    return rounded(
        pair_violation_probability(instance.data.d + constants["shift"]), operations=BETA_ROUNDINGS
    )


def draw_probability(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1 - (1 - p)^n, with the planted number of pairs a sample."""
    data: Draws = instance.data
    value = halfspace_violation_probability(data.n * constants["pairs"], data.d)
    return rounded(value, operations=BETA_ROUNDINGS)


def union_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """n C(T - 2, 2) I_{1/4}(d/2, d/2), times a factor."""
    data: Draws = instance.data
    value = constants["factor"] * halfspace_violation_bound(data.n, data.T, data.d)
    return rounded(value, operations=BETA_ROUNDINGS)


def sizes(run: Run) -> Iterable[Instance]:
    """Small and large sizes, the paper's run among them."""
    del run
    for n, T, d in ((8, 4, 16), (1, 4, 1), (4, 6, 32), (1, 1000, 2), (100, 1000, 100), (64, 512, 400)):
        yield Instance(
            label=f"n = {n}, T = {T}, d = {d}",
            data=Size(n=n, T=T, d=d),
            config={"n": n, "T": T, "d": d},
        )


def log_exact_union(instance: Instance) -> Interval:
    """log(n C(T - 2, 2) I_{1/4}(d/2, d/2)) in ball arithmetic."""
    from flint import arb, ctx

    data: Size = instance.data
    saved = ctx.prec
    try:
        ctx.prec = 200
        half = arb(data.d) / 2
        pairs = (data.T - 2) * (data.T - 3) // 2
        value = (arb(data.n * pairs) * (arb(1) / 4).beta_lower(half, half, True)).log()
        lo, hi = float(value.lower()), float(value.upper())
    finally:
        ctx.prec = saved
    return Interval(
        np.array(np.nextafter(lo, -np.inf)), np.array(np.nextafter(hi, np.inf)), "enclosed by ball arithmetic"
    )


def log_stated_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """log(c_1 n T^2 e^{-c_2 d})."""
    data: Size = instance.data
    terms = np.array([np.log(constants["c1"]), np.log(data.n), 2 * np.log(data.T), -constants["c2"] * data.d])
    return rounded(terms.sum(), operations=8, magnitude=np.abs(terms).sum())


def small_dimensions(run: Run) -> Iterable[Instance]:
    """d = 1, 2, 3."""
    del run
    for d in (1, 2, 3):
        yield Instance(label=f"d = {d}", data=Size(n=1, T=4, d=d), config={"d": d})


def expanded_moments(instance: Instance) -> Interval:
    """Mean and variance of <v_s - v_y, v_t - v_y>, multiplied out in independent Gaussians of variance 1.

    The polynomial is kept as a count of monomials; E z^k is (k - 1)!! for even k and 0 for odd k.
    """
    d: int = instance.data.d
    first: Counter[tuple[int, ...]] = Counter()
    for j in range(d):
        own, s, t = 3 * j, 3 * j + 1, 3 * j + 2
        for (x, a), (y, b) in product(((s, 1), (own, -1)), ((t, 1), (own, -1))):
            first[tuple(sorted((x, y)))] += a * b
    mean = _expectation(first)
    second: Counter[tuple[int, ...]] = Counter()
    for (x, a), (y, b) in product(first.items(), repeat=2):
        second[x + y] += a * b
    return Interval.exact([float(mean), float(_expectation(second) - mean**2)])


def _expectation(polynomial: Mapping[tuple[int, ...], int]) -> Fraction:
    total = Fraction(0)
    for monomial, coefficient in polynomial.items():
        powers = Counter(monomial).values()
        if all(p % 2 == 0 for p in powers):
            total += coefficient * prod(prod(range(1, p, 2)) for p in powers)
    return total


def stated_moments(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """d and 5 d."""
    d = instance.data.d
    return Interval.exact([constants["mean"] * d, constants["variance"] * d])


moments = Claim(
    id="match-copy/halfspace-moments",
    title="The product of two error directions has mean d and variance 5 d",
    paper=PAPER,
    where="Proposition G.2 (3), proof",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"For tokens $\mathcal N(0, I_d)$: $\mathbb E \langle d_s, d_t \rangle = d$ and $\mathrm{Var} \langle d_s, d_t "
        r"\rangle = 5 d$."
    ),
    constants={"mean": 1, "variance": 5},
    group=GROUP,
    instances=small_dimensions,
    predict=stated_moments,
    measure=expanded_moments,
    controls=(
        Plant(name="variance 4 d", constants={"variance": 4}),
        Plant(name="mean 0", constants={"mean": 0}),
    ),
    notes="Multiplied out exactly for d = 1, 2, 3; coordinates are independent, which gives every d.",
)

pair_chance = Claim(
    id="match-copy/halfspace-pair",
    title="A pair of error directions violates A4 with probability I_{1/4}(d/2, d/2)",
    paper=PAPER,
    where="beside Proposition G.2 (3)",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"$P(\langle d_s, d_t \rangle \le 0) = P(F_{d,d} \le \frac13) = I_{1/4}(\frac d2, \frac d2)$.",
    constants={"shift": 0},
    group=GROUP,
    instances=drawn_pairs,
    predict=pair_probability,
    measure=violation_share,
    unit="draw",
    judgements=len(DIMENSIONS),
    controls=(
        Plant(name="one degree of freedom less", constants={"shift": -1}),
        Plant(name="one degree of freedom more", constants={"shift": 1}),
    ),
    notes="Monte Carlo of independent pairs; the proof is in docs/geometry.md.",
)

draw_chance = Claim(
    id="match-copy/halfspace-draw",
    title="In the setting of the paper's run 13.0 % of the draws violate A4",
    paper=PAPER,
    where="beside Proposition G.2 (3)",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=(
        r"For $T = 4$, one pair a sample, $P(\text{A4 fails}) = 1 - (1 - I_{1/4}(\frac d2, \frac d2))^n$: 0.1303 at "
        r"$d = 16$, $n = 8$."
    ),
    constants={"pairs": 1},
    group=GROUP,
    instances=four_token_draws,
    predict=draw_probability,
    measure=violation_share,
    unit="draw",
    judgements=1,
    depends_on=("match-copy/halfspace-pair",),
    controls=(Plant(name="three pairs a sample, as T - 1 rivals would have", constants={"pairs": 3}),),
    notes="Draws of eight samples, judged as the assumption A4 is: by the least product of each.",
)

union_chance = Claim(
    id="match-copy/halfspace-union",
    title="With more tokens A4 fails at most as often as the union bound says",
    paper=PAPER,
    where="Proposition G.2 (3)",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.STATISTICAL,
    statement=r"$P(\text{A4 fails}) \le n \binom{T - 2}{2} I_{1/4}(\frac d2, \frac d2)$.",
    constants={"factor": 1.0},
    group=GROUP,
    instances=longer_draws,
    predict=union_bound,
    measure=violation_share,
    unit="draw",
    judgements=2,
    depends_on=("match-copy/halfspace-pair",),
    controls=(Plant(name="half of it", constants={"factor": 0.5}),),
    notes="Sizes at which the bound is not yet near the truth, so that draws can tell them apart.",
)

stated_bound = Claim(
    id="match-copy/halfspace-bound",
    title="The paper's bound c1 n T^2 exp(-c2 d) holds with c1 = 1/2 and c2 = ln(4/3) / 2",
    paper=PAPER,
    where="Proposition G.2 (3)",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.CERTIFIED,
    statement=(
        r"$n \binom{T - 2}{2} I_{1/4}(\frac d2, \frac d2) \le \frac12 n T^2 (\frac34)^{d/2}$: Proposition G.2 (3) with "
        r"constants."
    ),
    constants={"c1": UNION_FACTOR, "c2": UNION_RATE},
    group=GROUP,
    instances=sizes,
    predict=log_stated_bound,
    measure=log_exact_union,
    depends_on=("match-copy/halfspace-pair",),
    controls=(Plant(name="a rate larger by a fifth", constants={"c2": 1.2 * UNION_RATE}),),
    notes=(
        "Logarithms of both sides, the left one in ball arithmetic. The paper leaves its constants open; Chernoff's "
        "bound gives these (docs/geometry.md). For large d the rate cannot be improved."
    ),
)

CLAIMS = (moments, pair_chance, draw_chance, union_chance, stated_bound)
