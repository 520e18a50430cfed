"""The laws of large times on gradient flow: limits of margins and coefficients, constants of loss and gradient."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A2, A4_ALONE, TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.flow_runs import (
    ALL_SUPPORT,
    INTEGER_FLOW,
    INTEGRATION,
    LATE,
    SOME_SUPPORT,
    START,
    active,
    at,
    decayed,
    flows,
    late,
    loss_of,
    margin_error,
)
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.proofs_check.tolerances import truncated
from marginlab.theory.match_copy.gradient import error_alignments
from marginlab.theory.match_copy.laws import (
    TAILS,
    limit_alignments,
    limit_margins,
    loss_constant,
    slack_rate,
    squared_gradient_constant,
)
from marginlab.theory.match_copy.losses import error_directions
from marginlab.theory.match_copy.stability import support_domination
from marginlab.theory.validation import Float

# ---- Limits of margins and coefficients ---------------------------------------------------------------------------


def _supporting(run: TrainedRun, W: Float, tail: float) -> Float:
    """m - (1/kappa) log t on the support at the records of W, shape (R, k)."""
    margins = np.stack([run.problem.constraints().margins(w) for w in W])
    return margins[:, active(run)] - np.log(run.steps[-len(W) :])[:, None] / tail


def offsets(instance: Instance) -> Interval:
    """m - (1/kappa) log t of each supporting constraint at each late record."""
    run: TrainedRun = instance.data
    W = run.W[late(run)]
    value = _supporting(run, W, TAILS[loss_of(instance)])
    return Interval.around(value, margin_error(run, W)[:, None], INTEGRATION)


def predicted_offsets(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """-log p with p o (D p) = alpha / (2 eta), or -log(alpha / eta), at the step eta = constants["step"]."""
    run, loss = instance.data, loss_of(instance)
    limit = limit_margins(run.problem, active(run), run.separator.dual, loss=loss, step=constants["step"])
    k = at(run, START)
    margins = run.problem.constraints().margins(run.W[k])[active(run)]
    return decayed(limit, margins - np.log(run.steps[k]) / TAILS[loss], run, loss)


def coefficients(instance: Instance) -> Interval:
    """h of each rival whose limit is known, at each late record, shape (R, number of these rivals)."""
    run: TrainedRun = instance.data
    known, _ = limit_alignments(run.problem, active(run), run.separator.dual)
    W = run.W[late(run)]
    h = error_alignments(run.problem, W)[:, known]
    # h is a mean of inner products with weights e^-m: errors of margins by e change the weights by e^(2e) - 1.
    largest = float((np.linalg.norm(error_directions(run.problem), axis=2) ** 2).max())
    return Interval.around(h, (largest * np.expm1(2 * margin_error(run, W)))[:, None], INTEGRATION)


def predicted_coefficients(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """factor (D p)_t / sum_s p_s."""
    run: TrainedRun = instance.data
    known, limit = limit_alignments(run.problem, active(run), run.separator.dual)
    early = error_alignments(run.problem, run.W[at(run, START)])[known]
    return decayed(constants["factor"] * limit[known], early, run, loss_of(instance))


# ---- Constants of loss and gradient -------------------------------------------------------------------------------


def _scaled(run: TrainedRun, logarithm: Float, order: float) -> Interval:
    """exp(logarithm) at the late records; errors of margins by e change it by a factor e^(order e) at most."""
    value = np.exp(logarithm[late(run)])
    error = np.expm1(order * margin_error(run, run.W[late(run)]))
    return Interval.around(value, value * error, INTEGRATION)


def scaled_loss(instance: Instance) -> Interval:
    """t L(t): a sum of positive terms of order e^(-kappa m)."""
    run: TrainedRun = instance.data
    return _scaled(run, np.log(run.steps) + run.log_loss, TAILS[loss_of(instance)])


def scaled_squared_gradient(instance: Instance) -> Interval:
    """t^2 ||grad L||^2, quadratic in terms of order e^(-kappa m)."""
    run: TrainedRun = instance.data
    return _scaled(run, 2 * (np.log(run.steps) + run.log_grad_norm), 2 * TAILS[loss_of(instance)])


def _separator_norm(run: TrainedRun) -> float:
    return 1 / run.separator.margin_lower


def predicted_loss(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """||w_hat||^2 / kappa^2."""
    run: TrainedRun = instance.data
    limit = np.array(loss_constant(_separator_norm(run), constants["tail"], 1.0))
    k = at(run, START)
    return decayed(limit, np.exp(np.log(run.steps[k]) + run.log_loss[k]), run, loss_of(instance))


def predicted_squared_gradient(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """||w_hat||^2 / kappa^2."""
    run: TrainedRun = instance.data
    limit = np.array(squared_gradient_constant(_separator_norm(run), constants["tail"], 1.0))
    k = at(run, START)
    early = np.exp(2 * (np.log(run.steps[k]) + run.log_grad_norm[k]))
    return decayed(limit, early, run, loss_of(instance))


def multiplier_sum(instance: Instance) -> Interval:
    """sum alpha over ||w_hat||^2, each from the same solution, with the residuals of its optimality as its width."""
    separator = instance.data.separator
    ends = np.array([separator.margin_lower, separator.margin_upper]) ** 2 * separator.dual.sum()
    return Interval(ends.min(), ends.max(), "solver gap: margin between its recomputed bounds")


# ---- The share of rivals off the support ---------------------------------------------------------------------------


def log_domination(instance: Instance) -> Curve:
    """log g of A9, g the largest ratio among the samples, against log t."""
    run: TrainedRun = instance.data
    g = support_domination(run.problem, run.W, run.separator.active).max(axis=1)
    # A ratio of sums of e^-m: errors of margins by e change its logarithm by 2 e at most.
    y = Interval.around(np.log(g), 2 * margin_error(run, run.W), INTEGRATION)
    return Curve(x=np.log(run.steps), y=y, x_name="log t", y_name="log g")


def predicted_domination(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """-share theta, within a tenth of the way to twice that: an exponential tail has the rate theta."""
    run: TrainedRun = instance.data
    margins = run.problem.constraints().margins(run.separator.W)
    theta = float(np.nanmin(slack_rate(run.problem, margins, run.separator.active, tail=1.0)))
    power = -constants["share"] * theta
    return truncated(power, 2 * power)


# ---- The claims ---------------------------------------------------------------------------------------------------

FLOW_NOTES = (
    "Gradient flow from zero, integrated in log t and trusted to 1e-6 of ||W||. Draws are conditioned before anything "
    "runs: A4, a support in every sample, and a rate of at least 0.05; rejected ones are counted in the labels. The "
    "width is the deviation from the prediction at log t = 40, decayed with half of the rate that the same theory "
    "derives for the draw, to log t = 200. Derivation: docs/asymptotics.md. "
)


def flow_claim(**fields: Any) -> Claim:
    """A claim on late times of the flows; `fields` says what is its own."""
    shared: dict[str, Any] = {
        "paper": PAPER,
        "source": Source.DERIVED,
        "evidence": Evidence.NUMERICAL,
        "depends_on": ("match-copy/separator", "match-copy/frame-scaled-gradient"),
        "assumes": (A1, A2, A4_ALONE, TRUSTED),
        "instances": flows("mse", ALL_SUPPORT, SOME_SUPPORT),
        "group": "match-copy/flow-laws",
        "notes": FLOW_NOTES,
    }
    return Claim(**(shared | fields))


cross_entropy_flows = flows("cross-entropy", ALL_SUPPORT, SOME_SUPPORT)

supporting_margins = flow_claim(
    id="match-copy/supporting-margins",
    title="Margins on the support are half of log time minus log p, with p from the data alone",
    where="Definition E.1, in closed form",
    kind=Kind.IDENTITY,
    statement=(
        r"$m_{i,t}(\tau) = \frac12 \log \tau - \log p_{i,t} + o(1)$ on the support, where $p_i \circ (D_i p_i) = "
        r"\alpha_i / (2\eta)$."
    ),
    constants={"step": 1.0},
    predict=predicted_offsets,
    measure=offsets,
    controls=(
        Plant(name="alpha / eta instead of alpha / (2 eta)", constants={"step": 0.5}),
        Plant(name="the gradient of eq. (9)", constants={"step": 2.0}),
        INTEGER_FLOW,
    ),
)

limit_coefficients = flow_claim(
    id="match-copy/limit-coefficients",
    title="The limits of the coefficients h are D p over the sum of p",
    where="A7, in closed form",
    kind=Kind.IDENTITY,
    statement=r"$h_{i,t} \to h^\infty_{i,t} = (D_i p_i)_t / \sum_s p_{i,s}$.",
    constants={"factor": 1.0},
    predict=predicted_coefficients,
    measure=coefficients,
    controls=(Plant(name="one per cent more", constants={"factor": 1.01}), INTEGER_FLOW),
)

cross_entropy_margins = flow_claim(
    id="match-copy/cross-entropy-margins",
    title="Under cross-entropy margins on the support are log time minus the logarithm of the multiplier",
    where="Theorem D.1, with its constant",
    kind=Kind.IDENTITY,
    statement=r"$m_{i,t}(\tau) = \log \tau - \log(\alpha_{i,t}/\eta) + o(1)$ on the support.",
    assumes=(A1, A2, TRUSTED),
    instances=cross_entropy_flows,
    constants={"step": 1.0},
    predict=predicted_offsets,
    measure=offsets,
    controls=(Plant(name="alpha / (2 eta)", constants={"step": 2.0}),),
)


loss_limit = flow_claim(
    kind=Kind.IDENTITY,
    id="match-copy/loss-constant",
    title="Time times loss tends to a quarter of the squared norm of the separator",
    where="Theorem D.2, with its constant",
    statement=r"$\tau L(\tau) \to \|\hat w\|^2 / (4\eta)$.",
    constants={"tail": 2.0},
    predict=predicted_loss,
    measure=scaled_loss,
    controls=(
        Plant(name="an exponential tail", constants={"tail": 1.0}),
        Plant(name="a constant that is one per cent larger", constants={"tail": 2 / np.sqrt(1.01)}),
        INTEGER_FLOW,
    ),
)

gradient_limit = flow_claim(
    kind=Kind.IDENTITY,
    id="match-copy/gradient-constant",
    title="Squared time times squared gradient tends to a quarter of the squared norm of the separator",
    where="Fig. 11, with its constant",
    statement=r"$\tau^2 \|\nabla L(w(\tau))\|^2 \to \|\hat w\|^2 / (4\eta^2)$.",
    constants={"tail": 2.0},
    predict=predicted_squared_gradient,
    measure=scaled_squared_gradient,
    controls=(
        Plant(name="an exponential tail", constants={"tail": 1.0}),
        Plant(name="a constant that is one per cent larger", constants={"tail": 2 / np.sqrt(1.01)}),
        INTEGER_FLOW,
    ),
)

cross_entropy_loss = flow_claim(
    kind=Kind.IDENTITY,
    id="match-copy/cross-entropy-loss-constant",
    title="Under cross-entropy time times loss tends to the squared norm of the separator",
    where="Theorem D.1, with its constant",
    statement=r"$\tau\, \mathrm{CE}(\tau) \to \|\hat w\|^2 / \eta$, CE summed over the samples.",
    assumes=(A1, A2, TRUSTED),
    instances=cross_entropy_flows,
    constants={"tail": 1.0},
    predict=predicted_loss,
    measure=scaled_loss,
    controls=(
        Plant(name="the squared error's tail", constants={"tail": 2.0}),
        Plant(name="a constant that is one per cent larger", constants={"tail": 1 / np.sqrt(1.01)}),
    ),
)

sum_of_multipliers = flow_claim(
    id="match-copy/sum-of-multipliers",
    title="The multipliers sum to the squared norm of the separator",
    where="KKT conditions of eq. (11)",
    kind=Kind.IDENTITY,
    statement=r"$\sum_{i,t} \alpha_{i,t} = \|\hat w\|^2$.",
    assumes=(A1,),
    depends_on=("match-copy/separator",),
    constants={"factor": 1.0},
    predict=lambda instance, constants: Interval.exact(constants["factor"]),
    measure=multiplier_sum,
    controls=(Plant(name="twice the squared norm", constants={"factor": 2.0}),),
    notes="What makes the constants of loss and gradient universal: no single multiplier enters them.",
)

domination_rate = flow_claim(
    id="match-copy/domination-rate",
    title="The share of tokens off the support falls with half of the least slack as its power",
    where="A9, with its rate",
    kind=Kind.RATE,
    statement=(
        r"$\log g(\tau) \sim -\frac\theta2 \log \tau$ with the least slack $\theta$ of the separator off the support."
    ),
    instances=flows("mse", SOME_SUPPORT),
    constants={"share": 0.5},
    predict=predicted_domination,
    measure=log_domination,
    window=LATE,
    controls=(
        Plant(name="the whole slack", constants={"share": 1.0}),
        Plant(name="a third of the slack", constants={"share": 1 / 3}),
        INTEGER_FLOW,
    ),
    notes=FLOW_NOTES + "Here the band is a tenth of the way to the rate of an exponential tail.",
)

CLAIMS = (
    supporting_margins,
    limit_coefficients,
    cross_entropy_margins,
    loss_limit,
    gradient_limit,
    cross_entropy_loss,
    sum_of_multipliers,
    domination_rate,
)
