"""Assumptions A1-A9 of Theorem D.2 as predicates of a trained run, each with the number that decides.

A1-A4 are about the data and are decided by certificates and rounding bounds. A5-A9 speak of a limit, which no
finite run decides: they are read off the last decade of the run by rules that were fixed before it, and the
witness says what was measured.
"""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.claims.match_copy.trained import LAST_DECADE, TrainedRun
from marginlab.proofs_check.engine.claim import Answer, Assumption, CannotForm, Instance, Status
from marginlab.proofs_check.engine.judge import slopes
from marginlab.proofs_check.engine.values import Float, Interval
from marginlab.proofs_check.geometry import Condition, identifiability, independence, separability
from marginlab.proofs_check.geometry import half_space as positive_products
from marginlab.proofs_check.separators import OracleFailed
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.match_copy.correction import NoFixedPoint
from marginlab.theory.match_copy.gradient import error_alignments
from marginlab.theory.match_copy.stability import cross_term_fraction, support_domination

#: The theorem makes the loss fall as 1/t and its squared gradient as 1/t^2. The loss tends to zero at any
#: negative power, and the squares are summable below the power -1: each is taken to hold if the measured power
#: is at least half-way from that watershed to the predicted one on every piece of the window.
LOSS_POWER, SQUARED_GRADIENT_POWER = -0.5, -1.5

#: h has settled if a tenth of its size, at most, is still to come by the measured ratio.
SETTLED = 0.1

#: Over a decade, half of the predicted decay of g must be at least this much in log g: less is no decay to be seen.
VISIBLE_DECAY = 0.1

#: A twentieth of the predicted power: such a loss falls by 11 % over a decade, and is not tending to zero.
STALLED_POWER = -0.05


def _window(instance: Instance) -> tuple[float, float]:
    """The last decade of the run."""
    last = float(instance.data.steps[-1])
    return (last * LAST_DECADE[0] / LAST_DECADE[1], last)


def _powers(instance: Instance, log_y: Float) -> Float:
    """Powers of exp(log_y) in the step, over the pieces of the last decade."""
    late = instance.data.steps >= _window(instance)[0]
    return _late_powers(np.log(instance.data.steps[late]), log_y[late])


def _log(window: tuple[float, float]) -> tuple[float, float]:
    return float(np.log(window[0])), float(np.log(window[1]))


def _listed(values: Float) -> str:
    return ", ".join(f"{v:.3g}" for v in values)


def _answer(condition: Condition) -> Answer:
    return Answer(condition.status, condition.witness, condition.value)


def separable(instance: Instance) -> Answer:
    """A1, by the certified separator or by a certificate that there is none."""
    run: TrainedRun = instance.data
    try:
        return _answer(separability(run.certificate))
    except CannotForm as reason:
        return Answer(Status.FAILS, str(reason))
    except OracleFailed as reason:
        return Answer(Status.UNDECIDED, str(reason))


def independent_support(instance: Instance) -> Answer:
    """A2, from the certificate: the Gram matrix of the supporting constraints is proved nonsingular."""
    return _answer(independence(instance.data.certificate))


def identifiable(instance: Instance) -> Answer:
    """A3: every target lies outside the convex hull of the other values."""
    return _answer(identifiability(instance.data.problem))


def half_space(instance: Instance) -> Answer:
    """A4: all error directions of one sample have positive inner products."""
    return _answer(positive_products(instance.data.problem))


def vanishing_loss(instance: Instance) -> Answer:
    """A5: the loss tends to zero, as far as the last decade shows."""
    powers = _powers(instance, instance.data.log_loss)
    worst = float(powers.max())
    loss = float(np.exp(instance.data.log_loss[-1]))
    witness = f"loss {loss:.3g} at the end, falling with the powers {_listed(powers)} of the step"
    if worst <= LOSS_POWER:
        return Answer(Status.HOLDS, witness, worst)
    return Answer(Status.FAILS if powers[-1] >= STALLED_POWER else Status.UNDECIDED, witness, worst)


def summable_gradients(instance: Instance) -> Answer:
    """A6: the squared gradient norms are summable, as far as the last decade shows."""
    powers = _powers(instance, 2 * instance.data.log_grad_norm)
    worst = float(powers.max())
    witness = f"squared gradient norm falls with the powers {_listed(powers)} of the step"
    if worst <= SQUARED_GRADIENT_POWER:
        return Answer(Status.HOLDS, witness, worst)
    return Answer(Status.FAILS if powers[-1] >= -1.0 else Status.UNDECIDED, witness, worst)


def stable_coefficients(instance: Instance) -> Answer:
    """A7: the coefficients h converge, summably against 1/t.

    Their rate of change in log t shrinks from each piece of the last decade to the next. A rate that goes on
    shrinking geometrically makes the integral of |h - h_infinity| d log t finite; what h would still change by then
    must be a small part of it, or nothing is decided.
    """
    run: TrainedRun = instance.data
    _, edges = slopes(np.log(run.steps), Interval.exact(run.log_loss), _log(_window(instance)), log_log=False)
    at = np.searchsorted(np.log(run.steps), edges)
    h = error_alignments(run.problem, run.W[at])
    changes = np.abs(np.diff(h, axis=0)).max(axis=(1, 2)) / np.diff(edges)
    size = float(np.abs(h).max())
    negligible = float(rounded(size, operations=run.problem.keys.size).hi - size)
    if (changes <= negligible).all():
        return Answer(Status.HOLDS, f"h does not change over the last decade (it is up to {size:.3g})", 0.0)
    ratio = float((changes[1:] / np.maximum(changes[:-1], negligible)).max())
    length = float(np.diff(edges).max())
    left = float(changes[-1]) * length * ratio / (1 - ratio) if ratio < 1 else np.inf
    witness = (
        f"|dh / d log t| on the pieces of the last decade: {_listed(changes)}; shrinking on at this ratio, h "
        f"(up to {size:.3g}) still changes by {left:.2g}"
    )
    return Answer(Status.HOLDS if left <= SETTLED * size else Status.UNDECIDED, witness, left / size)


def small_cross_terms(instance: Instance) -> Answer:
    """A8: pairs of supporting constraints whose signs disagree carry a fraction below 1/2 over the last decade.

    The assumption is about large times, so that a larger fraction decides nothing.
    """
    run: TrainedRun = instance.data
    late = run.steps >= _window(instance)[0]
    try:
        fraction = cross_term_fraction(
            run.problem, run.W[late], run.steps[late], run.separator.active, run.separator.dual, run.step
        )
    except NoFixedPoint as reason:
        return Answer(Status.UNDECIDED, f"the correction vector could not be formed: {reason}")
    worst = float(fraction.max())
    witness = f"largest fraction over the last decade is {worst:.3g}"
    return Answer(Status.HOLDS if worst < 0.5 else Status.UNDECIDED, witness, worst)


def dominated_rest(instance: Instance) -> Answer:
    """A9 as published: tokens off the support are dominated by those on it, for every sample.

    Any negative power of g makes the sum of g / tau finite; as for A5 and A6, it is taken to hold if the
    measured power is at least half-way to the predicted one, and to fail if it is below a twentieth of it.

    A sample without a supporting constraint has 0 on the right-hand side, so that A9 cannot hold for it.
    """
    run: TrainedRun = instance.data
    late = run.steps >= _window(instance)[0]
    ratio = support_domination(run.problem, run.W[late], run.separator.active)
    alone = np.flatnonzero(np.isinf(ratio).all(axis=0))
    if len(alone):
        return Answer(
            Status.FAILS,
            f"sample {int(alone[0])} has no supporting constraint: the right-hand side is 0",
            np.inf,
        )
    g = ratio.max(axis=1)
    if not g.any():
        return Answer(Status.HOLDS, "every constraint supports the margin: g = 0", 0.0)
    # Along w = (1/2) log tau w_hat + O(1), a token with separator margin 1 + theta decays as tau^(-theta/2).
    constraints = run.problem.constraints()
    rest = np.setdiff1d(np.arange(len(constraints)), run.separator.active)
    predicted = -0.5 * float(constraints.margins(run.separator.W)[rest].min() - 1)
    powers = _late_powers(np.log(run.steps[late]), np.log(g))
    witness = (
        f"g falls from {g[0]:.3g} to {g[-1]:.3g} over the last decade, with the powers {_listed(powers)} of the "
        f"step; the least slack predicts {predicted:.3g}"
    )
    if -predicted / 2 * np.log(10.0) < VISIBLE_DECAY:
        return Answer(Status.UNDECIDED, f"{witness}, too little to be told from none", float(powers.max()))
    if powers.max() <= predicted / 2:
        return Answer(Status.HOLDS, witness, float(powers.max()))
    stalled = bool(powers[-1] >= predicted / 20)
    return Answer(Status.FAILS if stalled else Status.UNDECIDED, witness, float(powers.max()))


def _late_powers(log_t: Float, log_y: Float) -> Float:
    pieces, _ = slopes(log_t, Interval.exact(log_y), (log_t[0], log_t[-1]), log_log=False)
    return pieces.mid


def trusted_gradient(instance: Instance) -> Answer:
    """Every gradient of the run is right to 1e-6 by its engine's own rounding bound."""
    first = instance.data.valid_until
    if first is None:
        return Answer(Status.HOLDS, "the engine's error bound stays below 1e-6 at every step")
    return Answer(
        Status.FAILS, f"the gradient's relative error bound exceeds 1e-6 from step {first:.6g} on", first
    )


A1 = Assumption(
    name="A1",
    check=separable,
    statement=r"separability: some $W$ has $m_{i,t}(W) \ge 1$ for all $i$ and $t \ne y_i$",
)
A2 = Assumption(
    name="A2",
    check=independent_support,
    statement=r"the supporting constraint vectors $\tilde x_{i,t}$ are linearly independent",
)
A3 = Assumption(
    name="A3",
    check=identifiable,
    statement=r"identifiability: the target of each sample lies outside the convex hull of its other values",
)
A4 = Assumption(
    name="A4",
    check=half_space,
    implies=("A3",),
    statement=r"half-space: $\langle d_{i,t}, d_{i,s} \rangle > 0$ for all $i$ and $t, s \ne y_i$",
)
A4_ALONE = Assumption(name="A4", check=half_space, statement=A4.statement)
A5 = Assumption(name="A5", check=vanishing_loss, statement=r"$\mathrm{MSE}(w(\tau)) \to 0$")
A6 = Assumption(
    name="A6", check=summable_gradients, statement=r"$\sum_\tau \|\nabla \mathrm{MSE}(w(\tau))\|^2 < \infty$"
)
A7 = Assumption(
    name="A7",
    check=stable_coefficients,
    statement=r"$h_{i,t}(w(\tau))$ converges to $h_{i,t}^\infty$ with $\sum_\tau \tau^{-1}|h - h^\infty| < \infty$",
)
A8 = Assumption(
    name="A8",
    check=small_cross_terms,
    statement=r"pairs of supporting tokens whose signs disagree carry a fraction $\varepsilon < \frac12$",
)
A9 = Assumption(
    name="A9",
    check=dominated_rest,
    statement=r"support domination: $\sum_{s \notin SV(i)} e^{-m_{i,s}} \le g(\tau) \sum_{s \in SV(i)} e^{-m_{i,s}}$ "
    r"for all $i$, with $\sum_\tau g(\tau)/\tau < \infty$",
)
TRUSTED = Assumption(
    name="trusted-gradient",
    check=trusted_gradient,
    statement="the float64 gradient of every step is right to a relative error of 1e-6",
)
