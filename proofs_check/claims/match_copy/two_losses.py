"""The two losses that the paper calls MSE, eqs. (9) and (19): one is twice the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.identities import (
    GROUP,
)
from marginlab.proofs_check.claims.match_copy.rational import (
    TOTAL,
    RationalSample,
    dot,
    drawn_samples,
    exact_floats,
)
from marginlab.proofs_check.engine.claim import (
    Claim,
    Evidence,
    Instance,
    Kind,
    Mend,
    Plant,
    Source,
    Verdict,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval


def two_losses(run: Run) -> Iterable[Instance]:
    """Rational samples at which (9) and (19) are evaluated."""
    size = {"n": 3, "K": 4, "d": 3}
    for seed in run.seeds(3):
        config = {"kind": "rational", **size, "root": run.config.root_seed}
        yield Instance(
            label=f"seed {seed}",
            data=drawn_samples(run.stream(config, seed), **size),
            seed=seed,
            config=config,
        )


def gradient_of_plain_squares(instance: Instance) -> Interval:
    """Derivatives of ||v - model||^2, eq. (9), along each sample's logits: by exact finite differences.

    The loss is a rational function of one unnormalised weight p, of degree 2 over 2: with P(p) = ||sum p_t e_t||^2 and
    total Z(p), its derivative is (P' Z - 2 P Z') / Z^3, with P' = (P(p + 1) - P(p - 1)) / 2 exact for a quadratic.
    """
    values = []
    for s in instance.data:
        for t in range(len(s.keys)):
            low, here, high = (_scaled_square(s, t, shift) for shift in (-1, 0, 1))
            slope = Fraction(high - low, 2)
            # d/d logit = p d/dp
            values.append(s.weights[t] * (slope * TOTAL - 2 * here) / Fraction(TOTAL) ** 3)
    return Interval.exact(exact_floats(values))


def _scaled_square(s: RationalSample, t: int, shift: int) -> int:
    """||sum_u p_u (v_u - v_y)||^2, with p_t raised by `shift`: the loss (9) times the squared total of p."""
    p = [w + shift * (u == t) for u, w in enumerate(s.weights)]
    total = [sum(p[u] * e[j] for u, e in enumerate(s.errors)) for j in s.coordinates]
    return sum(x * x for x in total)


def gradient_of_half_squares(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """`factor` times the derivatives of (19), a_t (<d_t, r> - ||r||^2), along each logit."""
    values = []
    for s in instance.data:
        r = s.residual
        square = dot(r, r)
        values += [
            constants["factor"] * a * (dot(d, r) - square) for a, d in zip(s.attention, s.errors, strict=True)
        ]
    return Interval.exact(exact_floats(values))


half_square = Claim(
    id="match-copy/erratum-half",
    title="The losses (9) and (19) have the same gradient (both are called MSE)",
    paper=PAPER,
    where="eqs. (9), (19)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"The loss of eq. (9), $\sum_i \|v - \mathrm{model}\|^2$, and that of eq. (19) have one gradient.",
    expect=Verdict.FAIL,
    erratum=r"Eq. (9) is twice eq. (19): a run with step $\eta$ on one is a run with step $2 \eta$ on the other.",
    constants={"factor": 1},
    group=GROUP,
    instances=two_losses,
    predict=gradient_of_half_squares,
    measure=gradient_of_plain_squares,
    controls=(Mend(name="twice", constants={"factor": 2}),),
)


half_step = Claim(
    id="match-copy/half-step",
    title="Descent on (9) with half the step is descent on (19)",
    paper=PAPER,
    where="eqs. (9), (19)",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"The gradient of (9) is twice that of (19), so that a step of $\eta / 2$ on (9) equals one of $\eta$ on "
        r"(19)."
    ),
    constants={"factor": 2},
    group=GROUP,
    instances=two_losses,
    predict=gradient_of_half_squares,
    measure=gradient_of_plain_squares,
    controls=(Plant(name="four times", constants={"factor": 4}),),
    notes="In exact rationals, along every logit; equal gradients at every point give equal runs by induction.",
)

CLAIMS = (
    half_square,
    half_step,
)
