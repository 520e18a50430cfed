"""Bounds along runs that follow from one small loss: each piece of the convergence theorem, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A4_ALONE
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.certified_run import (
    DATA,
    DESCENT,
    PROVED,
    SPARSE,
    Ledger,
    ProvedRun,
    ledgers,
    paper_proofs,
)
from marginlab.proofs_check.convergence import prove_convergence
from marginlab.proofs_check.engine.claim import (
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
)
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.proofs_check.tolerances import enclosed, gamma, rounded, truncated
from marginlab.theory.match_copy.convergence import LARGEST_THETA, gradient_ratio
from marginlab.theory.validation import Float

#: Where limits are read.
WINDOW = (5_000.0, 20_000.0)


def judged(values: Iterable[Float]) -> Interval:
    """Values of both starts in one vector; margins are sums of d^2 products, and sums over steps have as many terms."""
    return rounded(np.concatenate(list(values)), operations=DESCENT["steps"] + 4 * DATA["d"] ** 2)


def both(instance: Instance, piece: Callable[[Ledger, int], Float]) -> Interval:
    """A piece of the theorem from both starts."""
    return judged(piece(instance.data, start) for start in instance.data.starts)


def unit(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound that a ratio is held to."""
    del instance
    return Interval.exact(constants["factor"])


# ---- One small loss -----------------------------------------------------------------------------------------------


def conditions(instance: Instance) -> Interval:
    """theta, the least for which L <= L*(theta), over 2/3; and eta B L: both enclosed by the proof."""
    ledger: ProvedRun = instance.data
    proof = prove_convergence(ledger.problem, ledger.W, ledger.step)
    if not (proof.explicit and proof.direction and proof.norm_growth):
        raise CannotForm(f"no proof at step {ledger.first}: {'; '.join(proof.failed)}.")
    loss, B, theta = (proof.constants[name] for name in ("loss", "smoothness", "theta"))
    lo, hi = (np.array([theta[k] * 1.5, ledger.step * B[k] * loss[k]]) for k in (0, 1))
    return enclosed(np.nextafter(lo * (1 - gamma(3)), 0), np.nextafter(hi * (1 + gamma(3)), 2), "balls")


def proof_file(instance: Instance) -> Mapping[str, Any]:
    """The certificate file of the first step with a proof."""
    document = prove_convergence(instance.data.problem, instance.data.W, instance.data.step).document
    assert document is not None  # `conditions` has asked for it
    return document


# ---- Pieces -------------------------------------------------------------------------------------------------------


def growth(ledger: Ledger, start: int) -> tuple[Float, Float]:
    """1/L - 1/L_0, and the steps it took: from a tenth of the start on, where the difference has lost one digit."""
    inverse = 1 / ledger.loss[start:]
    steps = np.arange(max(1, start // 10), len(inverse))
    return inverse[steps] - inverse[0], steps.astype(float)


def least_growth(ledger: Ledger, start: int) -> Float:
    """Growth of 1/L over 2 eta (1 - x_0)^2 k / ||w_hat||^2."""
    gained, steps = growth(ledger, start)
    start_loss = float(ledger.loss[start])
    return gained / (1 / ledger.constants.loss_upper(start_loss, ledger.step, steps) - 1 / start_loss)


def most_growth(ledger: Ledger, start: int) -> Float:
    """Growth of 1/L over 7 eta X^2 k."""
    gained, steps = growth(ledger, start)
    start_loss = float(ledger.loss[start])
    return gained / (1 / ledger.constants.loss_lower(start_loss, ledger.step, steps) - 1 / start_loss)


def squared_sum(ledger: Ledger, start: int) -> Float:
    """eta times the sum of squared gradients over 2 L_0."""
    total = np.cumsum(ledger.grad_norm[start:] ** 2)
    return ledger.step * total / (2 * ledger.loss[start])


def potential(ledger: Ledger, start: int) -> Float:
    """mu's gain since the start over the sum of (1 - eta B L / 2) Delta / ||w_hat||."""
    mu = ledger.constants.mu(ledger.loss[start:])
    # mu is of the order 1 to 10 and its gain at first 1e-3: ratios are formed once a tenth of a unit is gained.
    gained = mu[1:] - mu[0]
    return (gained / ledger.correction_sum(start))[gained >= 0.1]


def margin_excess(ledger: Ledger, start: int) -> Float:
    """min m over mu."""
    mu = ledger.constants.mu(ledger.loss[start:])
    return (ledger.margin[start:] / mu)[mu > 0]


def angle_share(ledger: Ledger, start: int) -> Float:
    """1 - cos over its bound, at the steps looked at after the start."""
    later = start <= SPARSE
    bound = ledger.constants.misalignment(
        ledger.loss[start], ledger.norm[start], ledger.step, ledger.norm[SPARSE[later]]
    )
    return ledger.one_minus_cos[later] / bound


def path_share(ledger: Ledger, start: int) -> Float:
    """Length of the path over its bound ||w|| + ||w_hat|| (c_0 - mu_0)."""
    bound = ledger.norm[start:] + ledger.constants.offset(ledger.loss[start], ledger.step)
    return ledger.path(start) / bound


def least_alignment(ledger: Ledger, start: int) -> Float:
    """min over i, t of pi / (a q), over g (1 - x R^2 / g) with the least g and the largest R, from the start on."""
    c = ledger.constants
    bound = (c.alignments - c.x(ledger.loss[start]) * c.error_radii**2).min()
    return ledger.least_pi[start:] / max(float(bound), c.g * (1 - LARGEST_THETA))


def ratio_curve(instance: Instance) -> Curve:
    """rho = ||grad L|| ||w_hat|| / (2 L) along the run."""
    ledger: Ledger = instance.data
    rho = gradient_ratio(ledger.loss[SPARSE], ledger.grad_norm[SPARSE], ledger.constants.separator_norm)
    return Curve(
        x=SPARSE.astype(float), y=rounded(rho, operations=4 * DATA["d"] ** 2), x_name="step", y_name="rho"
    )


def one(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The limit 1; the rival is the factor 2 of the theorem's bound left out, that is rho -> 1/2."""
    del instance
    return truncated(constants["limit"], 0.5)


NOTE = (
    "From the first step with a proof, and again from step 2000 on, where the bounds are sharp. The run is float64 "
    "descent, whose gradients are right to 1e-6 by the engine's own bound; the theorem is about exact descent."
)


def piece(
    name: str, kind: Kind, measure: Callable[[Ledger, int], Float], wrong: float, **fields: Any
) -> Claim:
    """A claim on one piece: a ratio against 1, with a wrong factor as its control."""

    def measured(instance: Instance) -> Interval:
        return both(instance, measure)

    return Claim(
        **_SHARED,
        id=f"match-copy/certified-{name}",
        kind=kind,
        evidence=Evidence.NUMERICAL,
        depends_on=("match-copy/convergence-proved",),
        constants={"factor": 1.0},
        predict=unit,
        measure=measured,
        notes=NOTE,
        controls=(Plant(name=f"the bound times {wrong:g}", constants={"factor": wrong}),),
        **fields,
    )


_SHARED: dict[str, Any] = {
    "paper": PAPER,
    "source": Source.DERIVED,
    "where": "derived for this project (docs/convergence.md)",
    "group": "match-copy/certified",
    "assumes": (PROVED,),
    "instances": ledgers,
}

convergence_proved = Claim(
    **_SHARED | {"instances": paper_proofs, "assumes": (A4_ALONE,)},
    id="match-copy/convergence-proved",
    title="Convergence of the paper's run is proved from one of its steps on",
    kind=Kind.UPPER,
    evidence=Evidence.CERTIFIED,
    statement=r"$L(w_{\tau_0})\le L^\star(\theta)$ with $\theta\le\frac23$ and $\eta BL(w_{\tau_0})\le1$: "
    r"loss, direction and norm converge for ever after.",
    constants={"factor": 1.0},
    predict=unit,
    measure=conditions,
    certificate=proof_file,
    controls=(Plant(name="a tenth of the admitted sizes", constants={"factor": 0.1}),),
    notes=(
        "The paper's run, seeds 0 to 7; the step from which the proof passes stands in each label (every step was "
        "looked at, by bisection). Draws without A4 are excluded and counted: the loss is proved to vanish on them in "
        "match-copy/loss-to-zero-identifiable. Measured: 3 theta / 2 and eta B L, in balls; the theorem is proved on "
        "paper (docs/convergence.md). "
        "The certificate file holds data, iterate and witnesses, for `marginlab verify`."
    ),
)

CLAIMS = (
    convergence_proved,
    piece(
        "loss-upper",
        Kind.LOWER,
        least_growth,
        3.0,
        title="After the proof the loss stays below its explicit bound",
        statement=r"$1/L_\tau\ge1/L_0+2\eta(1-x_0)^2(\tau-\tau_0)/\|\hat w\|^2$.",
    ),
    piece(
        "loss-lower",
        Kind.UPPER,
        most_growth,
        0.01,
        title="After the proof the loss stays above its explicit bound",
        statement=r"$1/L_\tau\le1/L_0+7\eta X^2(\tau-\tau_0)$.",
    ),
    piece(
        "squared-gradients",
        Kind.UPPER,
        squared_sum,
        0.25,
        title="After the proof the squared gradients sum to at most twice the loss over the step",
        statement=r"$\sum\|\nabla L\|^2\le2L_0/\eta$.",
    ),
    piece(
        "alignments",
        Kind.LOWER,
        least_alignment,
        20.0,
        title="After the proof every coefficient of the gradient is positive, by an explicit amount",
        statement=r"$\pi_{i,t}\ge a_{i,t}q_i(g_i-q_iR_i^2)>0$.",
    ),
    piece(
        "potential",
        Kind.LOWER,
        potential,
        2.0,
        title="After the proof the margin's potential gains what the path is long",
        statement=r"$\mu_\tau-\mu_0\ge\sum(1-\frac12\eta BL)\Delta/\|\hat w\|$.",
    ),
    piece(
        "margins",
        Kind.LOWER,
        margin_excess,
        2.0,
        title="After the proof every margin is at least the potential",
        statement=r"$\min m(w_\tau)\ge\mu_\tau=\log(\sqrt{g/2L_\tau}-1)$.",
    ),
    piece(
        "angle",
        Kind.UPPER,
        angle_share,
        0.001,
        title="After the proof the angle to the separator stays below its explicit bound",
        statement=r"$1-\cos\le(\|w_{\tau_0}\|+\|\hat w\|(c_0-\mu_0))/\|w_\tau\|$.",
    ),
    piece(
        "path-length",
        Kind.UPPER,
        path_share,
        0.25,
        title="After the proof the path has bounded excess length",
        statement=r"$\ell_\tau\le\|w_\tau\|+\|\hat w\|(c_0-\mu_0)$.",
    ),
    Claim(
        **_SHARED,
        id="match-copy/certified-ratio",
        title="The gradient's norm tends to twice the loss over the separator's norm",
        kind=Kind.LIMIT,
        evidence=Evidence.NUMERICAL,
        statement=r"$\rho_\tau=\|\nabla L\|\|\hat w\|/2L\to1$.",
        depends_on=("match-copy/convergence-proved",),
        constants={"limit": 1.0},
        window=WINDOW,
        predict=one,
        measure=ratio_curve,
        controls=(Plant(name="nine tenths", constants={"limit": 0.9}),),
    ),
)
