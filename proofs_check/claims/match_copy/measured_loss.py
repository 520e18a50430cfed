"""Loss and gradient along the paper's run (Figs. 10 (c) and 11), with the constants that are derived for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A4_ALONE, TRUSTED
from marginlab.proofs_check.claims.match_copy.measured_run import WINDOW, claim_on_run, partial_sums
from marginlab.proofs_check.claims.match_copy.trained import LAST_DECADE, TrainedRun
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    CannotForm,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.proofs_check.tolerances import rounded, truncated
from marginlab.theory.match_copy import error_radii, feature_radii, smallest_alignments
from marginlab.theory.match_copy.laws import loss_constant


def scaled_loss(instance: Instance) -> Curve:
    """tau L(tau) against log tau."""
    run: TrainedRun = instance.data
    # The logarithm of the loss and its exponential: roundings of |log| <= 100 and of the sums behind it.
    value = run.steps * np.exp(run.log_loss)
    y = rounded(value, operations=100 + run.problem.keys.size)
    return Curve(x=np.log(run.steps), y=y, x_name="log of the step", y_name="step times loss")


def predicted_loss(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """||w_hat||^2 / (kappa^2 eta), within a tenth of the way to the loss of eq. (9), which is twice as large."""
    run: TrainedRun = instance.data
    limit = loss_constant(1 / run.separator.margin_lower, constants["tail"], run.step)
    return truncated(limit, 2 * limit)


def squared_gradient(instance: Instance) -> Curve:
    """||grad L||^2 against the step, as a power law."""
    run: TrainedRun = instance.data
    y = rounded(np.exp(2 * run.log_grad_norm), operations=200 + run.W[0].size)
    return Curve(
        x=run.steps.astype(np.float64),
        y=y,
        x_name="step",
        y_name="squared norm of the gradient",
        log_log=True,
    )


def predicted_power(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The exponent, within a tenth of the way to -1, where squares cease to be summable."""
    del instance
    return truncated(constants["power"], -1.0)


def _curvature(run: TrainedRun) -> float:
    """eta B, B = 4 max R^2 X^2 / g: under A4 the Hessian of the loss lies within B L."""
    radii = error_radii(run.problem) ** 2 * feature_radii(run.problem) ** 2
    return run.step * 4 * float((radii / smallest_alignments(run.problem)).max())


def _descent_start(run: TrainedRun) -> int | None:
    """Index of the first recorded step with eta B L <= 1."""
    below = np.flatnonzero(_curvature(run) * np.exp(run.log_loss) <= 1)
    return int(below[0]) if len(below) else None


def small_curvature(instance: Instance) -> Answer:
    """From some recorded step on eta B L <= 1, so that each step lowers the loss."""
    run: TrainedRun = instance.data
    start = _descent_start(run)
    if start is None:
        return Answer(Status.FAILS, "eta B L stays above 1 along the run")
    return Answer(Status.HOLDS, f"eta B L <= 1 from step {run.steps[start]} on", float(run.steps[start]))


def gradient_sums(instance: Instance) -> Interval:
    """eta sum ||grad L||^2 from the first step with eta B L <= 1, over the loss at that step, at each record."""
    run: TrainedRun = instance.data
    start = _descent_start(run)
    if start is None:
        raise CannotForm("eta B L stays above 1 along the run.")
    late = slice(start, None)
    scaled = np.log(run.steps[late]) + 2 * run.log_grad_norm[late] - run.log_loss[start]
    return partial_sums(run.steps[late], run.step * np.exp(scaled), run.step * np.exp(scaled))


def loss_decrease(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """factor (L_0 - L) / (1 - eta B L_0 / 2) over L_0: what the loss can have lost, at each record after the first."""
    run: TrainedRun = instance.data
    start = _descent_start(run)
    if start is None:
        raise CannotForm("eta B L stays above 1 along the run.")
    lost = -np.expm1(run.log_loss[start + 1 :] - run.log_loss[start])
    slack = 1 - _curvature(run) * np.exp(run.log_loss[start]) / 2
    return rounded(constants["factor"] * lost / slack, operations=100 + run.problem.keys.size, magnitude=1.0)


SMALL_CURVATURE = Assumption(
    name="small-curvature",
    check=small_curvature,
    statement=r"$\eta B L(w_{\tau_0}) \le 1$ at some recorded step, with $B = 4 \max_i R_i^2 X_i^2 / g_i$",
)

loss_decay = claim_on_run(
    id="match-copy/loss-decay",
    title="On the paper's run the loss falls as the squared norm of the separator over four steps and times",
    where="Fig. 10 (c)",
    source=Source.DERIVED,
    kind=Kind.LIMIT,
    statement=r"$\tau L(w(\tau)) \to \|\hat w\|^2 / (4\eta)$, with $L$ of eq. (19).",
    constants={"tail": 2.0},
    predict=predicted_loss,
    measure=scaled_loss,
    window=(float(np.log(LAST_DECADE[0])), float(np.log(LAST_DECADE[1]))),
    controls=(
        Plant(name="the constant of an exponential tail", constants={"tail": 1.0}),
        Plant(name="the loss of eq. (9) with the time of eq. (19)", constants={"tail": float(np.sqrt(2))}),
    ),
    notes=(
        "The figure shows the fall; the constant is derived in docs/asymptotics.md. The band is a tenth of the way to "
        "twice the constant. " + WINDOW
    ),
)

gradient_decay = claim_on_run(
    id="match-copy/squared-gradient-decay",
    title="On the paper's run the squared gradient norm falls as the inverse square of time",
    where="Fig. 11",
    source=Source.REPORTED,
    kind=Kind.RATE,
    statement=r"$\|\nabla \mathrm{MSE}(w(\tau))\|^2 \sim \tau^{-2}$.",
    constants={"power": -2.0},
    predict=predicted_power,
    measure=squared_gradient,
    window=LAST_DECADE,
    controls=(
        Plant(name="the inverse of time", constants={"power": -1.0}),
        Plant(name="the power -3/2", constants={"power": -1.5}),
        Plant(name="a power that is a fifth larger", constants={"power": -2.4}),
    ),
    notes=(
        "The paper fits the last 10 000 steps; here the exponent is required on every piece of the last decade, within "
        "a tenth of the way to -1, above which squares are not summable. " + WINDOW
    ),
)

gradient_sum = claim_on_run(
    id="match-copy/squared-gradient-sum",
    title="On the paper's run the sum of squared gradient norms is what the loss loses, and so levels off",
    where="Fig. 11 and A6",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    statement=(
        r"If $\eta B L(w_{\tau_0}) \le 1$, then $\eta \sum_{\tau_0 \le \sigma < \tau} \|\nabla L(w_\sigma)\|^2 \le "
        r"(L(w_{\tau_0}) - L(w_\tau)) / (1 - \tfrac12 \eta B L(w_{\tau_0}))$: A6 holds."
    ),
    assumes=(A4_ALONE, TRUSTED, SMALL_CURVATURE),
    constants={"factor": 1.0},
    predict=loss_decrease,
    measure=gradient_sums,
    controls=(Plant(name="half of what the loss loses", constants={"factor": 0.5}),),
    notes=(
        "From the descent lemma with the Hessian bound of docs/half-space.md. The sum over all steps is enclosed from "
        "200 recorded ones, between which the summand is taken to be monotone. " + WINDOW
    ),
)

CLAIMS = (loss_decay, gradient_decay, gradient_sum)
