"""The dictionary of smoothing rules: the two ends of hierarchical Pitman-Yor, and Jelinek-Mercer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.smoothing import smoothing_claim
from marginlab.proofs_check.engine.claim import Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import jelinek_mercer, kneser_ney, mackay_peto


def sequences(run: Run) -> Iterable[Instance]:
    """Sequences with discounts and strengths in eighths."""
    for k in (1, 2, 3):
        config = {"dictionary": True, "order": k}
        for seed in run.seeds(8):
            rng = np.random.default_rng(run.stream(config, seed))
            V = int(rng.integers(2, 4))
            data = (
                [int(v) for v in rng.integers(0, V, 24)],
                V,
                [Fraction(int(v), 8) for v in rng.integers(1, 8, k + 1)],
                [Fraction(int(v), 8) for v in rng.integers(1, 24, k + 1)],
            )
            yield Instance(label=f"k = {k}, seed {seed}", data=data, seed=seed, config=config)


def restaurant_law(
    x: list[int], V: int, d: list[Fraction], theta: list[Fraction], *, one_table: bool
) -> list[Fraction]:
    """Pitman-Yor predictive by seating every customer: a new table sends a customer to the parent restaurant."""
    k, t = len(d) - 1, len(x)
    seated: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for s in range(k, t):
        context = tuple(x[s - k : s])
        while True:
            tables = seated.setdefault(context, {}).setdefault(x[s], [])
            new = not tables or not one_table
            if new:
                tables.append(1)
            else:
                tables[0] += 1
            if not context or not new:
                break
            context = context[1:]
    p = [Fraction(1, V)] * V
    for r in range(k + 1):
        dishes = seated.get(tuple(x[t - r :]), {})
        customers = sum(sum(tables) for tables in dishes.values())
        all_tables = sum(len(tables) for tables in dishes.values())
        norm = theta[r] + customers
        if norm:
            p = [
                (
                    sum(dishes.get(m, []))
                    - d[r] * len(dishes.get(m, []))
                    + (theta[r] + d[r] * all_tables) * p[m]
                )
                / norm
                for m in range(V)
            ]
    return p


def _end(one_table: bool) -> Callable[[Instance, Mapping[str, Any]], Interval]:
    """The restaurant at one of its ends; planted, with one more unit of strength or discount an order."""

    def predict(instance: Instance, constants: Mapping[str, Any]) -> Interval:
        x, V, d, theta = instance.data
        extra, zero = Fraction(constants["extra"]), [Fraction(0)] * len(d)
        if one_table:
            law = restaurant_law(x, V, d, [extra] * len(d), one_table=True)
        else:
            law = restaurant_law(x, V, zero, [c + extra for c in theta], one_table=False)
        return rounded([float(v) for v in law], operations=1)

    return predict


def kneser_ney_row(instance: Instance) -> Interval:
    """Interpolated Kneser-Ney with these discounts."""
    x, V, d, _ = instance.data
    return rounded(
        kneser_ney(x, V, len(d) - 1, [float(v) for v in d])[-1], operations=8 * len(d), magnitude=2.0
    )


def mackay_peto_row(instance: Instance) -> Interval:
    """MacKay-Peto with these concentrations."""
    x, V, _, theta = instance.data
    row = mackay_peto(x, V, len(theta) - 1, [float(v) for v in theta])[-1]
    return rounded(row, operations=8 * len(theta), magnitude=2.0)


_DICTIONARY: dict[str, Any] = {
    "where": "Derived: dictionary of smoothing methods",
    "kind": Kind.IDENTITY,
    "constants": {"extra": 0.0},
    "instances": sequences,
    "controls": (Plant(name="more strength at every order", constants={"extra": 0.5}),),
}

kneser_ney_end = smoothing_claim(
    **_DICTIONARY,
    id="ngrams/kneser-ney-end",
    title="Interpolated Kneser-Ney is hierarchical Pitman-Yor with one table a symbol and no strength",
    statement=r"$p_u(m) = \frac{c_{um} - d\,t_{um} + (\theta + d\,t_u) p_{\pi(u)}(m)}{\theta + c_u}$ with $\theta = 0$ "
    r"and $t_{um} = \min(1, c_{um})$, children's tables being the parent's customers, is interpolated Kneser-Ney.",
    predict=_end(True),
    measure=kneser_ney_row,
)

mackay_peto_end = smoothing_claim(
    **_DICTIONARY,
    id="ngrams/mackay-peto-end",
    title="MacKay-Peto with raw counts is hierarchical Pitman-Yor with a table for every customer and no discount",
    statement=r"The same predictive with $d = 0$ and $t_{um} = c_{um}$ is MacKay-Peto smoothing with raw counts.",
    predict=_end(False),
    measure=mackay_peto_row,
    notes="For k = 1 this is soft matching with BOS (ngrams/one-lag-mackay-peto): the end opposite to Kneser-Ney's.",
)


# ---- Jelinek-Mercer ----


def fixed_weights(run: Run) -> Iterable[Instance]:
    """Sequences with weights in sixteenths, all contexts seen."""
    for k in (1, 2):
        config = {"jelinek-mercer": True, "order": k}
        for seed in run.seeds(8):
            rng = np.random.default_rng(run.stream(config, seed))
            x = [int(v) for v in rng.integers(0, 2, 30)]
            weights = [Fraction(int(w), 16) for w in rng.multinomial(16, np.full(k + 2, 1 / (k + 2)))]
            if any(x[s - k : s] == x[len(x) - k :] for s in range(k, len(x))):
                yield Instance(label=f"k = {k}, seed {seed}", data=(x, weights), seed=seed, config=config)


def contiguous_mixture(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """sum of lambda_i p_hat_i over contiguous suffixes, from lists of positions."""
    x, weights = instance.data
    k, t = len(weights) - 2, len(x)
    law = [weights[0] / 2] * 2
    for r in range(k + 1):
        after = [x[s] for s in range(k, t) if x[s - r : s] == x[t - r :]]
        weight = weights[r + 1] if not constants["reversed"] else weights[::-1][r]
        law = [v + weight * Fraction(after.count(m), len(after)) for m, v in enumerate(law)]
    return rounded([float(v) for v in law], operations=1)


def jelinek_mercer_row(instance: Instance) -> Interval:
    """The package's row."""
    x, weights = instance.data
    row = jelinek_mercer(x, 2, len(weights) - 2, [float(w) for w in weights])[-1]
    return rounded(row, operations=20, magnitude=2.0)


jelinek_mercer_definition = smoothing_claim(
    id="ngrams/jelinek-mercer",
    title="Jelinek-Mercer smoothing interpolates contiguous suffixes with fixed weights",
    where="Eq. (11)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    statement=r"$P_{JM}(m|u_T) = \sum_{i=0}^k \lambda_i \hat p_i(m|u_T^{(i)})$, $\sum_i \lambda_i = 1$.",
    constants={"reversed": False},
    instances=fixed_weights,
    predict=contiguous_mixture,
    measure=jelinek_mercer_row,
    controls=(Plant(name="weights in reverse order", constants={"reversed": True}),),
    notes="The baseline that comparisons use, from the package's one pass against lists of positions.",
)

CLAIMS = (kneser_ney_end, mackay_peto_end, jelinek_mercer_definition)
