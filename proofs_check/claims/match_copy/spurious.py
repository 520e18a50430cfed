"""Points of small loss and no gradient: without A4 no threshold depends on the sizes of the data alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A2, A3
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.flowed import flow_run
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.match_copy.geometry import hull_distances
from marginlab.theory.match_copy.gradient import gradient, mse_coefficients

#: Powers of ten of delta.
POWERS = (-2, -4, -6)

#: Long enough for the flow to have stopped: see docs/convergence.md.
TIMES = {"first": 0.0, "last": 60.0, "number": 7}


def nearly_reflected(run: Run) -> Iterable[Instance]:
    """Tokens (1, 0), (-1, 0), (0, 0), (-1, 0) + sqrt(delta) (-0.99, sqrt(1 - 0.99^2)), the first one matched."""
    for power in POWERS:
        root = 10.0 ** (power / 2)
        last = [-1 - 0.99 * root, float(np.sqrt(1 - 0.99**2)) * root]
        tokens = [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], last]
        data = {
            "kind": "integers",
            "keys": [tokens[:3]],
            "queries": tokens[:1],
            "values": [tokens[1:]],
            "match": [0],
        }
        yield flow_run(run, data, {**TIMES, "power": power}, None, f"delta = 1e{power}")


def stalled(instance: Instance) -> Interval:
    """2 L / (gamma^2 delta), and |grad L| |w_hat| / L, at the point that the flow reaches."""
    run: TrainedRun = instance.data
    W, delta = run.W[-1], 10.0 ** instance.config["flow"]["power"]
    loss = float(np.exp(run.log_loss[-1]))
    # The lower bound of gamma makes the first ratio larger.
    share = 2 * loss / (hull_distances(run.problem)[0].lower ** 2 * delta)
    scale = float(np.linalg.norm(run.separator.W)) / loss
    lengths = np.sqrt(np.diag(run.problem.constraints().gram()))
    terms = np.abs(mse_coefficients(run.problem, W)[run.problem.rivals]) @ lengths
    # Errors of d_t and the residual cancel in pi by a factor of at most 1 / sqrt(delta), so that many more roundings.
    return rounded(
        np.array([share, np.linalg.norm(gradient(run.problem, W)) * scale]),
        operations=round(100 / np.sqrt(delta)),
        magnitude=np.array([share, float(terms) * scale]),
    )


def unit(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound that both are held to."""
    del instance
    return Interval.exact(constants["factor"])


spurious_point = Claim(
    id="match-copy/spurious-point",
    title="Without A4 the gradient can vanish at a loss as small as wanted beside the gap",
    paper=PAPER,
    where="derived for this project (docs/convergence.md)",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.NUMERICAL,
    statement=(
        r"For $\delta=10^{-2},10^{-4},10^{-6}$ there is a $w$ with $2L\le\delta\gamma^2$ and "
        r"$\|\nabla L\|\|\hat w\|\le L$."
    ),
    assumes=(A1, A2, A3),
    instances=nearly_reflected,
    constants={"factor": 1.0},
    predict=unit,
    measure=stalled,
    controls=(Plant(name="half of both", constants={"factor": 0.5}),),
    group="match-copy/identifiable",
    notes="So no threshold on 2 L / gamma^2 alone gives |grad L| |w_hat| >= 2 (1 - q) L, as A4 or equal margins do.",
)

CLAIMS = (spurious_point,)
