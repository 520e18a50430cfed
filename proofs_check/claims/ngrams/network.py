"""The two-layer network with explicit weights computes soft context matching (Proposition 3.1), and how closely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.models import Model, drawn_model, models
from marginlab.proofs_check.claims.ngrams.trials import PAPER
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import gamma, rounded
from marginlab.theory.ngrams import (
    InductionNetwork,
    boundary_mass,
    finite_scale_bound,
    induction_network,
    no_bos_boundary_law,
    soft_match,
    soft_match_definition,
)

#: Scale and sink at which the network is at its limit to rounding.
SCALE, SINK = 45.0, 120.0

GROUP = "ngrams/network"


def network_claim(**fields: Any) -> Claim:
    return Claim(**{"paper": PAPER, "evidence": Evidence.NUMERICAL, "group": GROUP} | fields)


def network_of(model: Model) -> InductionNetwork:
    """The construction at its limit."""
    interior = model.boundary == "interior"
    return induction_network(
        model.vocab_size, model.order, model.beta, scale=SCALE, sink=SINK if interior else None, **model.how()
    )


def rounding(network: InductionNetwork, length: int) -> float:
    """Rounding of a forward pass: scores of size |beta|_1 + |kappa| + 2 k Lambda from sums over the stream's width."""
    size = float(np.abs(network.beta).sum()) + (abs(network.kappa) if network.kappa > -np.inf else 0.0)
    size += 2 * network.order * network.sink + 1
    return gamma(2 * len(network.layers[1][0].score) + length + 20) * size


def network_rows(instance: Instance) -> Interval:
    """All rows from one forward pass, with the proved distance from the limit and the rounding."""
    model: Model = instance.data
    network, T = network_of(model), len(model.tokens)
    radius = np.nan_to_num(finite_scale_bound(network, T))[:, None] + rounding(network, T)
    rows = network.predict(model.tokens)
    return Interval.around(
        rows,
        np.broadcast_to(radius, rows.shape),
        "truncation at a finite scale, proved, and rounding of scores",
    )


def closed_form_rows(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Equation (8) by its definition, with the scales of the lags in turn moved by `shift`."""
    model: Model = instance.data
    rows = soft_match_definition(
        model.tokens,
        model.vocab_size,
        np.roll(model.beta, constants["shift"]),
        **model.how() | {"kappa": model.kappa + constants["extra_kappa"]},
    )
    return rounded(rows, operations=len(model.tokens) + 20, magnitude=1 + model.size)


closed_form = network_claim(
    id="ngrams/induction-network",
    title="A two-layer disentangled transformer with explicit weights is soft context matching",
    where="Proposition 3.1",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    statement=r"There is a two-layer disentangled transformer with relative positions, $k$ heads in layer 1 and one in "
    r"layer 2, whose output is $T(x)(m) = \frac{e^\kappa/|\mathcal V| + \sum_M e^{|\beta|_M} N_M(m)}{e^\kappa + \sum_M "
    r"e^{|\beta|_M} N_M}$, for free $\beta \in \mathbb R^k$ and $\kappa$.",
    constants={"shift": 0, "extra_kappa": 0.0},
    instances=models(40, "network"),
    predict=closed_form_rows,
    measure=network_rows,
    controls=(
        Plant(name="each lag matched with the next one's scale", constants={"shift": 1}),
        Plant(name="a tenth more kappa", constants={"extra_kappa": 0.1}),
    ),
    notes=(
        "Eighty random models with signed scales and any law for BOS, interior and padded, every row of every "
        "sequence from one causal pass. Weights at scale mu are within a proved bound of the limit: see "
        "ngrams/finite-scale-error."
    ),
)


# ---- Without BOS ----


def no_bos_rows(instance: Instance) -> Interval:
    """The network without BOS; its row 0 is left out, where nothing is known."""
    model: Model = instance.data
    network, T = _without_bos(model), len(model.tokens)
    radius = np.nan_to_num(finite_scale_bound(network, T))[1:, None] + rounding(network, T)
    rows = network.predict(model.tokens)[1:]
    return Interval.around(
        rows,
        np.broadcast_to(radius, rows.shape),
        "truncation at a finite scale, proved, and rounding of scores",
    )


def _without_bos(model: Model) -> InductionNetwork:
    return induction_network(model.vocab_size, model.order, model.beta, scale=SCALE, bos=False)


def boundary_rows(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The boundary formula with fractional matches."""
    model: Model = instance.data
    rows = no_bos_boundary_law(model.tokens, model.vocab_size, constants["scale"] * model.beta)[1:]
    return rounded(rows, operations=len(model.tokens) + 20, magnitude=1 + model.size)


no_bos_boundary = network_claim(
    id="ngrams/no-bos-boundary",
    title="Without BOS the first positions match in fractions",
    where="Proposition 3.1; derived",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    statement=r"Without BOS the output is $\propto \sum_s e^{\sum_l \beta_l f_{s,l}} 1[x_s = m]$ over all positions, "
    r"where for $s \le l$ the match $f_{s,l}$ is the share of $x_1..x_s$ that equals $x_{T+1-l}$.",
    constants={"scale": 1.0},
    instances=models(20, "no bos"),
    predict=boundary_rows,
    measure=no_bos_rows,
    controls=(Plant(name="scales a tenth larger", constants={"scale": 1.1}),),
)


def all_models(run: Run) -> Iterable[Instance]:
    """Twenty models as one instance: a bound is attained by the best of them."""
    config = {"models": "no bos distance"}
    drawn = [drawn_model(run.stream(config, seed), "interior") for seed in run.seeds(20)]
    yield Instance(label=f"{len(drawn)} models", data=drawn, config=config)


def distance_to_interior(instance: Instance) -> Interval:
    """Total variation from the interior closed form, rows with evidence."""
    values, sizes = [], []
    for model in instance.data:
        without = no_bos_boundary_law(model.tokens, model.vocab_size, model.beta)
        interior = soft_match(model.tokens, model.vocab_size, model.beta)
        values.append(np.abs(without - interior).sum(axis=-1)[model.order + 1 :] / 2)
        sizes.append(np.full(len(values[-1]), 1 + model.size))
    return rounded(np.concatenate(values), operations=100, magnitude=np.concatenate(sizes))


def early_mass(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Attention on the first k positions."""
    values, sizes = [], []
    for model in instance.data:
        mass = boundary_mass(model.tokens, model.vocab_size, model.beta)[model.order + 1 :]
        values.append(constants["share"] * mass)
        sizes.append(np.full(len(mass), 1 + model.size))
    return rounded(np.concatenate(values), operations=100, magnitude=np.concatenate(sizes))


no_bos_distance = network_claim(
    id="ngrams/no-bos-distance",
    title="Without BOS the distance to the closed form is at most the attention on the first positions",
    where="Proposition 3.1; derived",
    source=Source.DERIVED,
    kind=Kind.TIGHT,
    statement=r"Without BOS the total variation to the interior form of (8) is at most the attention on $s \le k$, "
    r"which is attained.",
    constants={"share": 1.0},
    instances=all_models,
    predict=early_mass,
    measure=distance_to_interior,
    controls=(Plant(name="nine tenths of it", constants={"share": 0.9}),),
    depends_on=("ngrams/no-bos-boundary",),
    notes="Attained where the first positions hold other symbols than the later ones.",
)


# ---- BOS as a sink ----


def sink_mass(instance: Instance) -> Interval:
    """Attention on BOS times the total weight of the other positions, over that of the others: e^kappa."""
    model: Model = instance.data
    network = network_of(model)
    maps = network.attention(model.tokens)[1][0]
    rows = maps[model.order + 1 :]  # rows with interior positions
    bos = rows[:, 0]
    x, k, weights = model.tokens, model.order, []
    for t in range(k + 1, len(x) + 1):
        first = k if model.boundary == "interior" else 0
        score = [
            sum(
                float(model.beta[lag - 1]) for lag in range(1, k + 1) if s >= lag and x[s - lag] == x[t - lag]
            )
            for s in range(first, t)
        ]
        weights.append(float(np.exp(score).sum()))
    value = bos / (1 - bos) * np.array(weights)
    slack = rounding(network, len(x)) + np.nan_to_num(finite_scale_bound(network, len(x)))[k + 1 :]
    # The odds of BOS have the relative error of its mass and of the mass of the others.
    return Interval.around(
        value, 4 * value * slack / np.minimum(bos, 1 - bos), "rounding and finite scale, by the odds"
    )


def pseudo_count(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """e^kappa, whatever the sequence is."""
    model: Model = instance.data
    return rounded(constants["factor"] * np.exp(model.kappa), operations=4)


bos_sink = network_claim(
    id="ngrams/bos-sink",
    title="BOS is a fixed sink: its weight beside the matches does not depend on the sequence",
    where="Section 4, BOS as a sink",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    statement=r"The attention on BOS has the odds $e^\kappa : \sum_s e^{|\beta|_{M_s}}$: a pseudo-count $e^\kappa$ "
    r"that is the same for every sequence and every row.",
    constants={"factor": 1.0},
    instances=models(20, "sink"),
    predict=pseudo_count,
    measure=sink_mass,
    controls=(Plant(name="a thousandth more", constants={"factor": 1.001}),),
)

CLAIMS = (closed_form, no_bos_boundary, no_bos_distance, bos_sink)
