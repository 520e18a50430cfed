"""Other starts of gradient flow: against the separator, large and random, at the wrong keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A4_ALONE, TRUSTED
from marginlab.proofs_check.claims.match_copy.flowed import flow_run
from marginlab.proofs_check.claims.match_copy.regimes import (
    BUDGET,
    DIRECTION,
    FASTER,
    SHARED,
    START_DATA,
    UNSEPARABLE,
    cell,
    order,
)
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    Claim,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Curve, Emergence, Interval, Ranking
from marginlab.proofs_check.tolerances import enclosed

#: A worker of their own: flows from plateaus are the slowest here.
_STARTS: dict[str, Any] = {"group": "match-copy/starts"}


def start_flows(starts: Iterable[Mapping[str, Any]], seeds: int, first: float) -> Any:
    """Flows from the given starts."""
    chosen = tuple(dict(start) for start in starts)

    def instances(run: Run) -> Iterable[Instance]:
        for start in chosen:
            for seed in run.seeds(seeds):
                size = start.get("factor", start.get("std"))
                flow = {"first": first, "last": 46.0, "number": 40, "start": start}
                yield flow_run(run, START_DATA, flow, seed, f"{start['kind']} start {size:g}, seed {seed}")

    return instances


opposite_start = Claim(
    **DIRECTION | _STARTS,
    id="match-copy/opposite-start",
    title="Started against the separator, flow turns round",
    where="Theorem D.2 holds for any start",
    source=Source.DERIVED,
    statement=r"From $W_0 = -\hat W$ and $-5 \hat W$ gradient flow goes to the max-margin direction.",
    assumes=(A1, TRUSTED),
    window=(15.0, 46.0),
    instances=start_flows(({"kind": "separator", "factor": f} for f in (-1.0, -5.0)), 2, BUDGET),
    controls=(FASTER, UNSEPARABLE),
)


def sizes_together(run: Run) -> Iterable[Instance]:
    """Gaussian starts of several sizes on one draw."""
    for seed in run.seeds(3):
        flow = {"first": BUDGET, "last": 46.0, "number": 12}
        data = {
            f"std {std:g}": flow_run(
                run, START_DATA, {**flow, "start": {"kind": "gaussian", "std": std}}, seed, f"{std:g}, {seed}"
            ).data
            for std in (0.1, 0.5, 2.0, 4.0)
        }
        yield Instance(label=f"seed {seed}", data=data, seed=seed, config={"data": START_DATA})


def all_solved(instance: Instance) -> Answer:
    """Whether the loss is below e^-40 in every run, with trusted gradients."""
    for name, run in instance.data.items():
        if run.valid_until is not None:
            return Answer(Status.UNDECIDED, f"{name}: not trusted from t = {run.valid_until:.3g} on")
    worst = max(float(run.log_loss[-1]) for run in instance.data.values())
    return Answer(Status.HOLDS if worst < -40 else Status.FAILS, f"loss at most e^{worst:.3g}", worst)


def last_misalignments(instance: Instance) -> Ranking:
    """1 - cos of all of W at log t = 46."""
    return Ranking(
        values={
            name: enclosed(
                run.cosines.one_minus_lower[-1], run.cosines.one_minus_upper[-1], "certified separator"
            )
            for name, run in instance.data.items()
        }
    )


start_size = Claim(
    **SHARED | _STARTS,
    id="match-copy/start-size",
    title="A large random start is beaten only logarithmically",
    where="Theorem D.2 holds for any start",
    source=Source.DERIVED,
    kind=Kind.ORDERING,
    statement=r"From Gaussian starts of standard deviation $0.1 < 0.5 < 2 < 4$ the loss is below $e^{-40}$ at "
    r"$\log t = 46$, and $1 - \cos(w, \hat w)$ grows with the start: the part of $W_0$ off the separator stays.",
    assumes=(Assumption(name="solved", statement="the loss is below e^-40 in every run", check=all_solved),),
    constants={"order": ("std 0.1", "std 0.5", "std 2", "std 4")},
    instances=sizes_together,
    predict=order,
    measure=last_misalignments,
    controls=(
        Plant(name="the largest start first", constants={"order": ("std 4", "std 2", "std 0.5", "std 0.1")}),
    ),
    notes="The law behind it, with the part of the start in its constant, is match-copy/alignment-law-rest.",
)


def plateaus(run: Run) -> Iterable[Instance]:
    """One sample, started at its wrong keys with gaps of 20 and 40."""
    for gap in (20.0, 40.0):
        for seed in run.seeds(2):
            start = {"kind": "separator", "factor": -gap}
            flow = {"first": -5.0, "last": 60.0, "number": 66, "start": start}
            yield flow_run(run, cell(8, 3, 1), flow, seed, f"gap {gap:g}, seed {seed}")


def loss_drop(instance: Instance) -> Curve:
    """log L(0) - log L(t) against log t; log L is right to a millionth by the trusted gradient's own bound."""
    run: TrainedRun = instance.data
    drop = run.log_loss[0] - run.log_loss
    return Curve(
        x=np.log(run.steps),
        y=Interval.around(drop, 1e-6 * (1 + np.abs(drop)), "integration: W within 1e-6, by a second run"),
        x_name="log t",
        y_name="fall of log L",
    )


def leaving(instance: Instance, constants: Mapping[str, Any]) -> Emergence:
    """Below 1 at first, above 10 in the end, past 1 within 6 of log t = gap."""
    gap = -instance.config["flow"]["start"]["factor"] * constants["share"]
    return Emergence(before=0.5, after=1.0, window=(gap - 6.0, gap + 6.0))


plateau = Claim(
    **SHARED | _STARTS,
    id="match-copy/plateau",
    title="A start at the wrong keys is a plateau whose length is exponential in the gap",
    where="Theorem D.2 holds for any start",
    source=Source.DERIVED,
    kind=Kind.EMERGENCE,
    statement=r"From $W_0 = -m \hat W$ the loss does not fall before $\log t \approx m$: every gradient there carries "
    r"the factor $e^{-m}$. A budget of steps would call it stuck.",
    assumes=(A1, A4_ALONE, TRUSTED),
    constants={"share": 1.0},
    instances=plateaus,
    predict=leaving,
    measure=loss_drop,
    controls=(Plant(name="half of the gap", constants={"share": 0.5}),),
)

CLAIMS = (opposite_start, start_size, plateau)
