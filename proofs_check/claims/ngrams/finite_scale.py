"""The network at a finite scale, evaluated from its weights in ball arithmetic, against its proved bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.models import Model, drawn_model
from marginlab.proofs_check.claims.ngrams.network import SINK, network_claim
from marginlab.proofs_check.engine.claim import Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import enclosed, rounded
from marginlab.theory.ngrams import InductionNetwork, finite_scale_bound, induction_network

SCALES = (4.0, 8.0, 15.0, 20.0, 25.0, 30.0)

#: Binary digits of the balls.
PRECISION = 500


def ball_forward(network: InductionNetwork, tokens: tuple[int, ...]) -> Any:
    """The network's rows in balls, from its weights and relative positions alone."""
    import flint

    X = network.embed(tokens)
    stream = flint.arb_mat([[flint.arb(float(v)) for v in row] for row in X])
    n = stream.nrows()
    for layer in network.layers:
        outputs = [stream]
        for head in layer:
            score = flint.arb_mat([[flint.arb(float(v)) for v in row] for row in head.score])
            logits = stream * score * stream.transpose()
            weights = flint.arb_mat(n, n)
            for t in range(n):
                row = []
                for j in range(t + 1):
                    bias = (
                        head.relative[t - j]
                        if head.relative is not None and t - j < len(head.relative)
                        else 0.0
                    )
                    row.append((logits[t, j] + flint.arb(float(bias))).exp())
                norm = sum(row, flint.arb(0))
                for j, w in enumerate(row):
                    weights[t, j] = w / norm
            outputs.append(weights * stream)
        stream = flint.arb_mat(
            [[part[t, j] for part in outputs for j in range(part.ncols())] for t in range(n)]
        )
    readout = flint.arb_mat([[flint.arb(float(v)) for v in row] for row in network.readout])
    return stream * readout.transpose()


def ball_closed_form(model: Model) -> list[list[Any]]:
    """Equation (8) in balls, by its definition."""
    import flint

    x, k, rows = model.tokens, model.order, []
    beta = [flint.arb(float(b)) for b in model.beta]
    for t in range(len(x) + 1):
        mass = flint.arb(model.kappa).exp()
        sums = [mass * flint.arb(float(b)) for b in model.base]
        for s in range(k if model.boundary == "interior" else 0, t):
            score = flint.arb(0)
            for lag in range(1, k + 1):
                if s >= lag and t >= lag and x[s - lag] == x[t - lag]:
                    score += beta[lag - 1]
            sums[x[s]] += score.exp()
        # The base law is a float vector that sums to 1 only to rounding: the read-out does not normalise it either.
        total = (
            mass
            + sum((v for v in sums), flint.arb(0))
            - mass * sum((flint.arb(float(b)) for b in model.base), flint.arb(0))
        )
        rows.append([v / total for v in sums])
    return rows


def scaled_models(run: Run) -> Iterable[Instance]:
    """Three models at every scale, for both boundaries."""
    for boundary in ("interior", "padded"):
        config = {"models": "finite scale", "boundary": boundary}
        for seed in run.seeds(3):
            model = drawn_model(run.stream(config, seed), boundary, most=16)
            for mu in SCALES:
                yield Instance(
                    label=f"{boundary}, mu = {mu:g}, seed {seed}",
                    data=(model, mu),
                    seed=seed,
                    config=config | {"scale": mu},
                )


def _at_scale(model: Model, mu: float) -> InductionNetwork:
    sink = SINK / 2 if model.boundary == "interior" else None
    return induction_network(model.vocab_size, model.order, model.beta, scale=mu, sink=sink, **model.how())


def certified_distance(instance: Instance) -> Interval:
    """Total variation between network and closed form at every row, enclosed."""
    import flint

    model, mu = instance.data
    with flint.ctx.workprec(PRECISION):
        got, want = ball_forward(_at_scale(model, mu), model.tokens), ball_closed_form(model)
        balls = [
            sum((abs(got[t, m] - want[t][m]) for m in range(model.vocab_size)), flint.arb(0)) / 2
            for t in range(1, len(want))  # before the first token both are the base law, without any error
        ]
        lo = [float(b.lower()) for b in balls]
        hi = [float(b.upper()) for b in balls]
    return enclosed(np.nextafter(lo, -np.inf), np.nextafter(hi, np.inf), "ball arithmetic with 500 bits")


def distance_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The proved bound, with the leak delta scaled by planting another share of it."""
    model, mu = instance.data
    bound = finite_scale_bound(_at_scale(model, mu), len(model.tokens))[1:]
    return rounded(constants["share"] * bound, operations=200)


finite_scale_error = network_claim(
    id="ngrams/finite-scale-error",
    title="At a finite scale the network is within a proved bound of its limit",
    where="Proposition 3.1; derived: error of the construction at finite scale",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.CERTIFIED,
    statement=r"With a leak $\delta = \max\{(k-1)e^{-\mu},\, e^{-\mu} + (T-1)e^{-2\mu}\}$ of the lag heads, the total "
    r"variation to (8) is at most $\tanh(\delta(2\|\beta\|_1 - |\beta_1|)/2)$ for a padded boundary, and for an "
    r"interior one at most that with the mass of the first positions and the payments to the sink added.",
    constants={"share": 1.0},
    instances=scaled_models,
    predict=distance_bound,
    measure=certified_distance,
    controls=(Plant(name="a thousandth of the bound", constants={"share": 1e-3}),),
    notes=(
        "mu in {4, 8, 15, 20, 25, 30}, scales of both signs. The network is evaluated from its weights in ball "
        "arithmetic, so that distances down to 1e-14 are proved and not rounding. The proof stands with the function."
    ),
)


CLAIMS = (finite_scale_error,)
