"""Theorem D.1: gradient descent on the cross-entropy goes to the same separator, with twice the slope of the norm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.alignment_law import READ_OFF
from marginlab.proofs_check.claims.match_copy.assumptions import A1, A2, A4_ALONE, A5, TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import (
    PAPER,
    approach_to_separator,
    decay_power,
    norm_against_log_time,
    norm_slope,
)
from marginlab.proofs_check.claims.match_copy.flow_laws import FLOW_NOTES
from marginlab.proofs_check.claims.match_copy.flow_runs import (
    ALL_SUPPORT,
    INTEGRATION,
    LATE,
    SOME_SUPPORT,
    TIMES,
    late,
    offset_from_run,
)
from marginlab.proofs_check.claims.match_copy.flowed import flow_run
from marginlab.proofs_check.claims.match_copy.problems import regular_problem
from marginlab.proofs_check.claims.match_copy.trained import (
    LAST_DECADE,
    PAPER_DATA,
    PAPER_DESCENT,
    TrainedRun,
    trained,
)
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    Break,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.simulations.trajectory import TRUSTED as TRUSTED_ERROR
from marginlab.theory.match_copy import feature_radii
from marginlab.theory.match_copy.laws import TAILS, misalignment

#: Descent on the sum over the samples; the paper's mean of n = 8 has the same steps at eight times the step size.
CROSS_ENTROPY_DESCENT = {**PAPER_DESCENT, "loss": "cross-entropy", "step": 2e-4}

#: Under the cross-entropy ||w|| / ||w_hat|| is log t + O(1): the times of `LATE`, and a bit more on both sides.
NORMS = (LATE[0], LATE[1] + 10.0)

#: Seeds 0..3 by default.
SEEDS = 4


def cross_entropy_runs(run: Run) -> Iterable[Instance]:
    """The paper's data, trained on the cross-entropy."""
    return [trained(run, PAPER_DATA, CROSS_ENTROPY_DESCENT, s, f"seed {s}") for s in run.seeds(SEEDS)]


def ambiguous_match(run: Run) -> Iterable[Instance]:
    """The matched key stands twice in one sample."""
    data = {**PAPER_DATA, "kind": "doubled"}
    return [trained(run, data, CROSS_ENTROPY_DESCENT, s, f"doubled match, seed {s}") for s in range(2)]


def below_smoothness(instance: Instance) -> Answer:
    """eta < 2 / beta with beta <= sum_i X_i^2.

    The Hessian of one sample is the covariance of its features x~, zero at the match, under the attention weights:
    a variance of a quantity within [-X, X].
    """
    run: TrainedRun = instance.data
    product = run.step * float((feature_radii(run.problem) ** 2).sum())
    status = Status.HOLDS if product < 2 else Status.UNDECIDED
    return Answer(status, f"eta sum X_i^2 = {product:.3g}; condition (iii) is eta beta < 2", product)


SMALL_STEP = Assumption(
    name="small-step",
    check=below_smoothness,
    statement=r"$\eta < 2/\beta$, $\beta$ the smoothness of the loss",
)

_ASSUMED = (A1, A2, A5, SMALL_STEP, TRUSTED)

_NOTES = (
    "The correction vector of condition (ii) exists where the multipliers are positive and the supporting constraints "
    "independent, which the certificate proves (A2). Read off the last decade of the run; A5 follows from the theorem "
    "and is read off the run all the same. "
)

_DOUBLED = Break(name="matched key doubled", assumption="A1", also=("A2", "A5"), instances=ambiguous_match)


def _claim(**fields: Any) -> Claim:
    return Claim(
        paper=PAPER,
        source=Source.REPORTED,
        evidence=Evidence.NUMERICAL,
        depends_on=("match-copy/separator", "match-copy/frame-scaled-gradient"),
        **fields,
    )


direction = _claim(
    id="match-copy/cross-entropy-direction",
    title="Gradient descent on the cross-entropy converges in direction to the same separator",
    where="Theorem D.1",
    kind=Kind.DIRECTION,
    statement=r"Under A1, with a correction vector and $\eta < 2/\beta$, $\frac{w(\tau)}{\|w(\tau)\|} \to "
    r"\frac{\hat w}{\|\hat w\|}$.",
    assumes=_ASSUMED,
    instances=cross_entropy_runs,
    constants={"power": 1.0},
    predict=decay_power,
    measure=approach_to_separator,
    window=LAST_DECADE,
    group="match-copy/cross-entropy-run",
    controls=(Plant(name="a decay to the power 2.5 of the norm", constants={"power": 2.5}), _DOUBLED),
    notes=_NOTES
    + "Required is a decay of the certified 1 - cos at least like 1/||W||, as for the squared error.",
)

norm_growth = _claim(
    id="match-copy/cross-entropy-norm-growth",
    title="Under cross-entropy the norm grows as log time times the norm of the separator",
    where="Theorem D.1",
    kind=Kind.RATE,
    statement=r"$\|W(\tau)\|_F \sim \|\hat W\|_F \log\tau$.",
    assumes=_ASSUMED,
    instances=cross_entropy_runs,
    constants={"slope": 1.0, "rival": 0.5},
    predict=norm_slope,
    measure=norm_against_log_time,
    window=(float(np.log(LAST_DECADE[0])), float(np.log(LAST_DECADE[1]))),
    group="match-copy/cross-entropy-run",
    controls=(
        Plant(name="the squared error's slope", constants={"slope": 0.5, "rival": 1.0}),
        Plant(name="a slope that is 12 % steeper", constants={"slope": 1.12}),
        _DOUBLED,
    ),
    notes=_NOTES + "The band is a tenth of the way to the squared error's slope.",
)


# ---- The two losses against each other ------------------------------------------------------------------------------


class TwoLosses(TrainedRun):
    """The flow of the squared error, with the norm under the cross-entropy at the same times on the same data."""

    def __init__(self, mse: TrainedRun, other: TrainedRun) -> None:
        arrays = {
            name: getattr(mse, name) for name in ("steps", "W", "log_loss", "log_grad_norm", "min_margin")
        }
        ends = [v for v in (mse.valid_until, other.valid_until) if v is not None]
        super().__init__(mse.problem, {**arrays, "valid_until": np.array(min(ends, default=-1.0))}, mse.step)
        self.other = other


def both_flows(run: Run) -> Iterable[Instance]:
    """Both flows on each draw, at the same times."""
    for data in (ALL_SUPPORT, SOME_SUPPORT):
        for seed in run.seeds(2):
            rejected = regular_problem(data, run.config.root_seed, seed)[1]
            label = f"{data['rest']} off the support, seed {seed}, {rejected} draws rejected"
            pair = [
                flow_run(run, data, {**TIMES, "loss": loss}, seed, f"{loss}, {label}")
                for loss in ("mse", "cross-entropy")
            ]
            yield Instance(
                label=label,
                data=TwoLosses(pair[0].data, pair[1].data),
                seed=seed,
                config={"mse": dict(pair[0].config), "cross-entropy": dict(pair[1].config)},
            )


def norm_against_norm(instance: Instance) -> Curve:
    """||W|| under the squared error against ||W|| under the cross-entropy, both over ||w_hat||, at late times.

    The errors of both norms are put on the first one; the slope is about 1/2.
    """
    pair: TwoLosses = instance.data
    size = float(np.linalg.norm(pair.separator.W))
    records = late(pair)
    x, y = pair.other.norm[records] / size, pair.norm[records] / size
    return Curve(
        x=x,
        y=Interval.around(y, TRUSTED_ERROR * (y + x), INTEGRATION),
        x_name="norm under cross-entropy over the separator's",
        y_name="norm under the squared error over the separator's",
    )


def ratio_of_slopes(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The ratio, up to the cosines of the alignment laws of both losses at the start of the window.

    Each slope is ||w_hat|| / kappa times such a cosine. The errors of both norms add 1e-6 of their sum at both ends,
    over the shortest chord of an eighth of the window.
    """
    pair: TwoLosses = instance.data
    size = float(np.linalg.norm(pair.separator.W))
    cosines = [
        1 - float(misalignment(np.array([LATE[0]]), size, offset_from_run(r, loss, READ_OFF), TAILS[loss])[0])
        for r, loss in ((pair, "mse"), (pair.other, "cross-entropy"))
    ]
    ratio = constants["ratio"]
    x, y = pair.other.norm[late(pair)] / size, pair.norm[late(pair)] / size
    error = 2 * TRUSTED_ERROR * float(x[-1] + y[-1]) / (float(x[-1] - x[0]) / 8)
    return Interval(
        np.array(ratio * cosines[0] - error),
        np.array(ratio / cosines[1] + error),
        "truncation: cosines of the alignment laws at the start of the window, and the integration's error",
    )


slope_ratio = _claim(
    id="match-copy/slope-ratio",
    title="The norm under the squared error grows half as fast as under the cross-entropy",
    where="Theorems D.1 and D.2",
    kind=Kind.RATE,
    statement=r"On the same data $d\|w_{\mathrm{MSE}}\| / d\|w_{\mathrm{CE}}\| \to \frac12$.",
    assumes=(A1, A2, A4_ALONE, TRUSTED),
    instances=both_flows,
    constants={"ratio": 0.5},
    predict=ratio_of_slopes,
    measure=norm_against_norm,
    window=NORMS,
    group="match-copy/flow-laws",
    controls=(
        Plant(name="equal slopes", constants={"ratio": 1.0}),
        Plant(name="one per cent more", constants={"ratio": 0.505}),
    ),
    notes=FLOW_NOTES
    + "The ratio does not need the separator; both norms are divided by its norm to share a window.",
)

CLAIMS = (direction, norm_growth, slope_ratio)
