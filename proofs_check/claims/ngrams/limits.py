"""Large scales: back-off limits with their rates; and what fixed scales tend to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.trials import PAPER
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Curve, Interval, Sample
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.markov import sample_chains
from marginlab.theory.ngrams import batch_counts, overlap_counts, soft_match, soft_match_law
from marginlab.theory.ngrams.limits import (
    back_off_error_bound,
    back_off_gap,
    back_off_law,
    fixed_scale_limit,
)
from marginlab.theory.validation import Float

#: Directions: all lags alike, and each above the sum of those beyond it.
DIRECTIONS: Mapping[str, Callable[[int], Float]] = {
    "equal": lambda k: np.ones(k),
    "super-decreasing": lambda k: np.float64(2.5) ** -np.arange(k, dtype=np.float64),
}

#: Scales at which bounds are checked.
TAUS = (0.5, 1.0, 2.0, 4.0, 8.0)


def limit_claim(**fields: Any) -> Claim:
    return Claim(
        **{"paper": PAPER, "source": Source.DERIVED, "evidence": Evidence.NUMERICAL, "group": "ngrams/limits"}
        | fields
    )


def counted(
    count: int, name: str, orders: tuple[int, ...] = (1, 2, 3, 4)
) -> Callable[[Run], Iterable[tuple[Any, ...]]]:
    """Sequences with their exact-overlap counts N (2^k, V) and cumulative ones K."""

    def cases(run: Run) -> Iterable[tuple[Any, ...]]:
        for k in orders:
            config = {"counts": name, "order": k}
            for seed in run.seeds(count):
                rng = np.random.default_rng(run.stream(config, seed))
                V = int(rng.integers(2, 5))
                x = rng.integers(0, V, int(rng.integers(k + 3, 40)))
                K = batch_counts(x[None], V, k)[0][0, 0]
                yield f"k = {k}, seed {seed}", x, V, K, overlap_counts(K), config, seed

    return cases


def backed_off(run: Run) -> Iterable[Instance]:
    """Sequences in both directions."""
    for label, x, V, K, N, config, seed in counted(8, "back-off")(run):
        for name, direction in DIRECTIONS.items():
            k = len(N).bit_length() - 1
            yield Instance(
                label=f"{name}, {label}",
                data=(x, V, K, N, direction(k)),
                seed=seed,
                config=config | {"direction": name},
            )


def distance_to_back_off(instance: Instance) -> Interval:
    """Total variation to the limit at each tau."""
    _, _, K, N, b = instance.data
    limit = back_off_law(N, b)
    rows = np.array([soft_match_law(K, tau * b) for tau in TAUS])
    size = np.array(TAUS) * b.sum() + 2
    return rounded(np.abs(rows - limit).sum(-1) / 2, operations=2 * len(N) + 20, magnitude=size)


def back_off_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """e^{-tau Delta} times the ratio of counts, with the rounding of the measured side beside it."""
    _, _, _, N, b = instance.data
    bounds = np.array([back_off_error_bound(N, b, constants["speed"] * tau) for tau in TAUS])
    # A bound of 0 (all evidence agrees) is met by a distance of 0 up to rounding, which both sides name.
    slack = rounded(np.zeros(len(TAUS)), operations=2 * len(N) + 20, magnitude=np.array(TAUS) * b.sum() + 2)
    return Interval.around(bounds + 3 * slack.hi, slack.hi, slack.rule)


back_off = limit_claim(
    id="ngrams/back-off",
    title="For growing scales soft matching backs off, at an exponential rate",
    where="Derived: back-off limits",
    kind=Kind.UPPER,
    statement=r"$\beta = \tau b$: $TV(T, T_\infty) \le e^{-\tau \Delta}\, \#\{s : M_s \notin \mathcal M^*\} / "
    r"N_{\mathcal M^*}$, $\Delta$ the gap between the largest $|b|_M$ with evidence and the next.",
    constants={"speed": 1.0},
    instances=backed_off,
    predict=back_off_bound,
    measure=distance_to_back_off,
    controls=(Plant(name="twice the speed", constants={"speed": 2.0}),),
)


def limits_by_listing(run: Run) -> Iterable[Instance]:
    """The last row's positions with the lags at which they agree."""
    for label, x, V, K, N, config, seed in counted(8, "listing")(run):
        for name, direction in DIRECTIONS.items():
            k = len(N).bit_length() - 1
            yield Instance(
                label=f"{name}, {label}",
                data=(x, V, K, direction(k), name),
                seed=seed,
                config=config | {"direction": name},
            )


def far_out(instance: Instance) -> Interval:
    """Soft matching at tau = 400, where what is left is below 1e-16."""
    _, _, K, b, _ = instance.data
    row = soft_match_law(K, 400.0 * b / b.min())
    # What is left of the other positions is below e^-400 by ngrams/back-off: far below a rounding of 1.
    return rounded(row, operations=2 * len(K) + 40, magnitude=1.0)


def pooled_by_rule(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Symbols pooled over the positions that the rule prefers: most agreeing lags, or first in lexicographic order."""
    x, V, _, b, name = instance.data
    k, T = len(b), len(x)
    agree = [tuple(bool(x[s - lag] == x[T - lag]) for lag in range(1, k + 1)) for s in range(k, T)]
    lexicographic = (name == "super-decreasing") != constants["swapped"]
    key: Callable[[Any], Any] = (lambda m: m) if lexicographic else sum
    best = max(key(m) for m in agree)
    chosen = [int(x[k + i]) for i, m in enumerate(agree) if key(m) == best]
    return rounded(np.bincount(chosen, minlength=V) / len(chosen), operations=2)


back_off_rules = limit_claim(
    id="ngrams/back-off-rules",
    title="Equal scales back off to the largest overlap, super-decreasing ones to the longest suffix",
    where="Derived: back-off limits",
    kind=Kind.IDENTITY,
    statement=r"As $\tau \to \infty$: with equal $b_l$ the output pools the positions of largest overlap, "
    r"non-contiguous sets included; with $b_l > \sum_{j > l} b_j$ those first in the lexicographic order of lags "
    r"(longest suffix, then skips); with $N_{[k]} > 0$ both are the $k$-gram maximum-likelihood estimate.",
    constants={"swapped": False},
    instances=limits_by_listing,
    predict=pooled_by_rule,
    measure=far_out,
    controls=(Plant(name="the other rule", constants={"swapped": True}),),
    depends_on=("ngrams/back-off",),
)

#: Where the logarithm of the distance is a straight line: the next set's share is below 1e-2, above 1e-12.
RATE_WINDOW = (8.0, 20.0)


def rate_cases(run: Run) -> Iterable[Instance]:
    """Sequences whose gap is one, so that the second-best sets fade as e^-tau."""
    for label, x, V, K, N, config, seed in counted(6, "rates", orders=(2, 3))(run):
        k = len(N).bit_length() - 1
        b = np.ones(k)
        limit, gap = back_off_law(N, b), float(back_off_gap(N, b))
        # The second-best sets must not have the law of the best, or their trace is no e^-tau gap.
        second = [soft_match_law(K, t * b) for t in (8.0, 20.0)]
        if np.isfinite(gap) and all(np.abs(row - limit).sum() > 1e-12 for row in second):
            yield Instance(label=label, data=(x, V, K, b, limit, gap), seed=seed, config=config)


def log_distance(instance: Instance) -> Curve:
    """Total variation against e^tau, on logarithmic axes."""
    _, _, K, b, limit, _ = instance.data
    taus = np.arange(6.0, 22.1, 1.0)
    distance = np.array([np.abs(soft_match_law(K, t * b) - limit).sum() / 2 for t in taus])
    y = rounded(distance, operations=2 * len(K) + 20, magnitude=distance + 2e-14)
    return Curve(x=np.exp(taus), y=y, x_name="e^tau", y_name="total variation", log_log=True)


def gap_rate(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """-Delta, within 2 % of the way to nothing: higher sets still count e^-Delta of the next ones."""
    gap = instance.data[-1]
    return Interval.around(
        -constants["share"] * gap, 0.02 * gap, "stated range: the next sets but one, e^-8 at most"
    )


back_off_rate = limit_claim(
    id="ngrams/back-off-rate",
    title="The distance to the back-off limit falls as e to the minus tau times the gap",
    where="Derived: back-off limits",
    kind=Kind.RATE,
    statement=r"$\log TV(T, T_\infty) = -\tau \Delta + O(1)$ where the second-best sets have another law.",
    constants={"share": 1.0},
    window=(float(np.exp(RATE_WINDOW[0])), float(np.exp(RATE_WINDOW[1]))),
    instances=rate_cases,
    predict=gap_rate,
    measure=log_distance,
    controls=(Plant(name="half the rate", constants={"share": 0.5}),),
    depends_on=("ngrams/back-off",),
)


# ---- Fixed scales ----

#: Length of a chain, chains of each transition law, and unit of replication.
LONG, CHAINS, UNIT = 100_000, 24, "chain, given its rows"


def chains(run: Run) -> Iterable[Instance]:
    """Small ergodic chains, fixed scales of both signs, without BOS and with it."""
    for kappa in (-np.inf, 0.0):
        for beta in ((1.0,), (1.0, 2.0), (-0.5, 1.0)):
            k = len(beta)
            config = {"fixed scales": list(beta), "length": LONG, "chains": CHAINS, "bos": kappa == 0}
            rows_seed, walk_seed = run.stream(config, 0).spawn(2)
            P = np.random.default_rng(rows_seed).dirichlet(np.full(3, 2.0), 3**k)
            reached, limits, truth = [], [], []
            for x in sample_chains(P, LONG, seed=walk_seed, n=CHAINS):
                context = x[: -k - 1 : -1]
                reached.append(soft_match(x, 3, beta, kappa=kappa)[-1, 0])
                limits.append(fixed_scale_limit(P, 3, np.array(beta), context)[0])
                truth.append(P[int((context * 3 ** np.arange(k)).sum()), 0])
            data = np.array(reached), np.array(limits), np.array(truth)
            yield Instance(label=f"beta = {beta}, kappa = {kappa:g}", data=data, config=config)


def long_run(instance: Instance) -> Sample:
    """Row after 100 000 tokens less the limit, first symbol, counted in the direction away from the true row."""
    reached, limits, truth = instance.data
    return Sample(values=(reached - limits) * np.sign(limits - truth), unit=UNIT)


def distance_from_limit(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """0 for the limit; planted, what the true row would give, -|limit - true row|."""
    _, limits, truth = instance.data
    return Interval.exact(-constants["share"] * float(np.abs(limits - truth).mean()))


fixed_scale = limit_claim(
    id="ngrams/fixed-scale-limit",
    title="At fixed scales long sequences lead to a mixture over orders, whatever kappa is",
    where="Derived: inconsistency at a fixed scale",
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"Ergodic chain, fixed $\beta$: $T(x) \to \sum_S \gamma_S \pi(u_S) P(\cdot|u_S) / "
    r"\sum_S \gamma_S \pi(u_S)$ as $T \to \infty$, and $\kappa$ is forgotten.",
    constants={"share": 0.0},
    judgements=6,
    unit=UNIT,
    instances=chains,
    predict=distance_from_limit,
    measure=long_run,
    controls=(
        Plant(name="the true row", constants={"share": 1.0}),
        Plant(name="a tenth of the way to the true row", constants={"share": 0.1}),
    ),
    notes=(
        "Means over 24 chains of 100 000 tokens. What is left at that length is of the order of 1/T in the mean. The "
        "first control is the inconsistency itself: the true row is not the limit."
    ),
)

CLAIMS = (back_off, back_off_rules, back_off_rate, fixed_scale)
