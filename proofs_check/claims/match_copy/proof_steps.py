"""Steps of the proof of Theorem D.2: the correction vector solves (24), and the residual is pulled back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A8
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.measured_run import ASSUMED, WINDOW, claim_on_run, last_decade
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.match_copy.attention import margins
from marginlab.theory.match_copy.gradient import error_alignments
from marginlab.theory.match_copy.stability import correction_margins
from marginlab.theory.validation import Float

# ---- Definition E.1 -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """One sample of eq. (24) in rationals: multipliers, coefficients h, a step, and the root of sum c."""

    alpha: tuple[Fraction, ...]
    h: tuple[Fraction, ...]
    step: Fraction
    root: Fraction


def balances(run: Run) -> Iterable[Instance]:
    """c with a rational root of its sum, from Pythagorean pairs and triples, for several h and steps.

    c_t = alpha_t / (2 eta h_t) = (x_t / 7)^2 with sum x_t^2 a square.
    """
    del run
    for x, h, step in product(
        ((3, 4), (5, 12), (1, 2, 2), (2, 3, 6)),
        (Fraction(1), Fraction(5, 3)),
        (Fraction(1), Fraction(1, 1000)),
    ):
        c = [Fraction(v * v, 49) for v in x]
        coefficients = tuple(h * (k + 1) for k in range(len(x)))
        alpha = tuple(2 * step * b * v for b, v in zip(coefficients, c, strict=True))
        root = Fraction(isqrt(sum(v * v for v in x)), 7)
        yield Instance(
            label=f"c = {x} squared / 49, h in multiples of {h}, step {step}",
            data=Balance(alpha=alpha, h=coefficients, step=step, root=root),
        )


def balance_ratio(instance: Instance) -> Interval:
    """eta h_t z_t sum_s z_s over alpha_t for each t, in rationals, z = c / sqrt(sum c) as the paper gives it."""
    b: Balance = instance.data
    c = [a / (2 * b.step * h) for a, h in zip(b.alpha, b.h, strict=True)]
    assert sum(c) == b.root**2  # the root is exact, or the instance is not what it says
    z = [v / b.root for v in c]
    ratios = [b.step * h * v * sum(z) / a for h, v, a in zip(b.h, z, b.alpha, strict=True)]
    near = np.array([float(r) for r in ratios])
    inexact = np.array([Fraction(float(r)) != r for r in ratios])
    radius = np.where(inexact, np.spacing(near), 0.0)
    return Interval.around(near, radius, "rounding: a rational to the nearest float64")


def half(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The right-hand side of (24) over alpha_t."""
    del instance
    return Interval.exact(constants["half"])


# ---- Lemma E.3 ----------------------------------------------------------------------------------------------------

#: R of Phi(u) = |u| (e^(2|u|) 1_{u <= -R} + 1_{u >= R}). On these runs the largest |u| of the last decade is
#: between 0.2 and 2.5.
R = 0.1


def _residuals(run: TrainedRun) -> tuple[np.ndarray, Float, Float, Float]:
    """Support, u = m - (1/2) log tau + log p and h at each record of the last decade, and p."""
    late = last_decade(run)
    separator = run.separator
    support, offsets = correction_margins(run.problem, separator.active, separator.dual, run.step)
    log_tau = np.log(run.steps[late])[:, None, None]
    u = np.where(support, margins(run.problem, run.W[late]) - 0.5 * log_tau - offsets, 0.0)
    h = np.where(support, error_alignments(run.problem, run.W[late]), 0.0)
    return support, u, h, np.where(support, np.exp(-offsets), 0.0)


def restoring_pull(instance: Instance) -> Interval:
    """-tau D at each record of the last decade.

    tau D = (eta / 2) sum_i sum_{t,s} p_t p_s (h_t u_t + h_s u_s)(e^(-u_t - u_s) - 1).
    """
    run: TrainedRun = instance.data
    _, u, h, p = _residuals(run)
    hu = h * u
    U = u[..., :, None] + u[..., None, :]
    H = hu[..., :, None] + hu[..., None, :]
    terms = run.step / 2 * p[:, :, None] * p[:, None, :] * H * np.expm1(-U)
    # Sums of all pairs, and margins that are sums of d^2 products and as large as 20.
    operations = terms[0].size + 20 * run.W[0].size
    return rounded(
        -terms.sum(axis=(1, 2, 3)), operations=operations, magnitude=np.abs(terms).sum(axis=(1, 2, 3))
    )


def phi_sum(u: Float) -> Float:
    """sum over i and t of Phi(u_{i,t}), shape (R,)."""
    size = np.abs(u)
    return (size * (np.exp(2 * size) * (u <= -R) + (u >= R))).sum(axis=(1, 2))


def derived_pull(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """share c sum Phi(u), c = eta min (h p^2) (1 - e^(-2R)) with the minimum over the support at each record."""
    run: TrainedRun = instance.data
    support, u, h, p = _residuals(run)
    least = np.where(support, h * p**2, np.inf).min(axis=(1, 2))
    value = constants["share"] * run.step * least * -np.expm1(-2 * R) * phi_sum(u)
    return rounded(value, operations=20 * run.W[0].size)


correction_vector = Claim(
    id="match-copy/correction-vector",
    title="The closed form of the correction vector solves its equation",
    paper=PAPER,
    where="Definition E.1, eq. (24)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"With $z_t = c_t / \sqrt{\sum_s c_s}$, $c_t = \alpha_t / (2\eta h_t)$ and $\tilde w^\top \tilde x_t = "
        r"-\log z_t$: $\eta h_t e^{-\tilde w^\top \tilde x_t} \sum_s e^{-\tilde w^\top \tilde x_s} = \frac12 \alpha_t$."
    ),
    instances=balances,
    constants={"half": 0.5},
    predict=half,
    measure=balance_ratio,
    controls=(Plant(name="the equation without its half", constants={"half": 1.0}),),
    notes=(
        "In rationals, with c whose sum has a rational root. h is given here: the paper takes its limit as known; "
        "match-copy/supporting-margins has the form in which it is eliminated."
    ),
)

restoring_force = claim_on_run(
    id="match-copy/restoring-force",
    title="On the paper's run the residual is pulled back at least with an explicit constant",
    where="Lemma E.3",
    source=Source.DERIVED,
    kind=Kind.LOWER,
    statement=(
        r"$-\tau\mathcal D \ge c \sum_{i,t} \Phi(u_{i,t})$ with $c = \eta \min_{SV} (h p^2) (1 - e^{-2R})$, where "
        r"$\tau\mathcal D = \frac\eta2 \sum_i \sum_{t,s \in SV(i)} p_t p_s (h_t u_t + h_s u_s)(e^{-u_t - u_s} - 1)$."
    ),
    assumes=(*ASSUMED, A8),
    depends_on=("match-copy/supporting-margins",),
    constants={"share": 1.0},
    predict=derived_pull,
    measure=restoring_pull,
    controls=(Plant(name="a constant a hundred times as large", constants={"share": 100.0}),),
    notes=(
        "The lemma says that some c > 0 exists for large R. Pairs t = s give the constant here for any R > 0; pairs "
        "t != s add to the pull by A8, those of the wrong sign carrying less than half. R = 0.1. The pull is 6 to 40 "
        "times the bound, so that a p off by a tenth would pass: match-copy/supporting-margins decides p. "
        + WINDOW
    ),
)

CLAIMS = (correction_vector, restoring_force)
