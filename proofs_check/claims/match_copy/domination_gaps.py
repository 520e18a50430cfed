"""Two gaps in assumption A9, each with the instance that shows it and what holds instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.measured_run import WINDOW, claim_on_run, last_decade
from marginlab.proofs_check.claims.match_copy.problems import MOST_DRAWS, settled_problem
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DESCENT, SETTLED_DATA, TrainedRun, trained
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Kind,
    Mend,
    Plant,
    Source,
    Status,
    Verdict,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.separators import max_margin
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.match_copy.attention import margins, rivals
from marginlab.theory.match_copy.stability import support_mask
from marginlab.theory.validation import Float

# ---- g need not tend to zero --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Spikes:
    """g(tau) = 1 at the powers of `base`, and 0 at every other step: g / tau has the sum base / (base - 1)."""

    base: int
    number: int

    def height(self, tau: int) -> int:
        """g(tau)."""
        while tau % self.base == 0:
            tau //= self.base
        return int(tau == 1)

    def tail(self, k: int) -> Fraction:
        """sum over tau >= base^k of g(tau) / tau, a geometric series."""
        return Fraction(1, self.base**k) / (1 - Fraction(1, self.base))

    def partial(self, k: int) -> Fraction:
        """The same sum over tau < base^k, term by term."""
        return sum((Fraction(1, self.base**j) for j in range(k)), Fraction(0))


def sparse_spikes(run: Run) -> Iterable[Instance]:
    """Powers of 2 and of 4: tails are then dyadic or thirds."""
    del run
    for base in (2, 4):
        yield Instance(label=f"spikes at the powers of {base}", data=Spikes(base=base, number=40))


def summable(instance: Instance) -> Answer:
    """The sum of A9 is finite: every partial sum and its tail make the same total, in rationals."""
    spikes: Spikes = instance.data
    totals = {spikes.partial(k) + spikes.tail(k) for k in range(spikes.number + 1)}
    status = Status.HOLDS if len(totals) == 1 else Status.FAILS
    return Answer(status, f"partial sums and tails add to {max(totals)}", float(max(totals)))


def spike_heights(instance: Instance) -> Interval:
    """g at the spike tau = base^k, k = 0, 1, ..., by its definition."""
    spikes: Spikes = instance.data
    return Interval.exact(
        np.array([spikes.height(spikes.base**k) for k in range(spikes.number)], dtype=np.float64)
    )


def tail_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """tau^power sum_{s >= tau} g(s) / s at tau = base^k.

    The tails tend to zero: with power 0 the bound says that g does, too. With power 1 it is one term of the sum.
    """
    spikes: Spikes = instance.data
    bounds = [
        spikes.tail(k) * Fraction(spikes.base) ** (k * constants["power"]) for k in range(spikes.number)
    ]
    near = np.array([float(b) for b in bounds])
    return Interval.around(near, np.spacing(near), "rounding: rationals to the nearest float64")


A9_SUM = Assumption(name="A9-sum", check=summable, statement=r"$\sum_\tau g(\tau)/\tau < \infty$")

_SPIKES: dict[str, Any] = {
    "paper": PAPER,
    "kind": Kind.UPPER,
    "evidence": Evidence.EXACT,
    "assumes": (A9_SUM,),
    "instances": sparse_spikes,
    "predict": tail_bound,
    "measure": spike_heights,
}

vanishing_share = Claim(
    id="match-copy/domination-vanishes",
    title="The sum of A9 makes g tend to zero",
    where="Assumption A9, as the proof uses it",
    source=Source.REPORTED,
    statement=r"$\sum_\tau g(\tau)/\tau < \infty$ gives $g(\tau) \to 0$, along with the tails of the sum.",
    constants={"power": 0},
    expect=Verdict.FAIL,
    erratum=(
        "g = 1 at the powers of 2 and 0 elsewhere has the sum 2 and does not tend to zero. A9 gives "
        r"$g(\tau) \le \tau \sum_{\sigma \ge \tau} g(\sigma)/\sigma = o(\tau)$ and no more; the proof needs "
        r"$g \to 0$ to be assumed, or g to be monotone."
    ),
    controls=(Mend(name="g is o(tau)", constants={"power": 1}),),
    notes=(
        "On trajectories the gap is closed where the theorem's direction holds: g then falls like a power of tau "
        "(match-copy/domination-decay, docs/asymptotics.md)."
    ),
    **_SPIKES,
)

small_share = Claim(
    id="match-copy/domination-bounded",
    title="The sum of A9 makes g(t) smaller than t times the tail of the sum",
    where="Assumption A9, corrected",
    source=Source.DERIVED,
    statement=r"$g(\tau) \le \tau \sum_{\sigma \ge \tau} g(\sigma)/\sigma$, so that $g(\tau) = o(\tau)$.",
    constants={"power": 1},
    controls=(Plant(name="the tail alone", constants={"power": 0}),),
    notes="One term of the sum is not larger than the sum. The instances come within a factor 2 of it.",
    **_SPIKES,
)

# ---- A sample without support ---------------------------------------------------------------------------------------


def unsupported_runs(run: Run) -> Iterable[Instance]:
    """The paper's run on the first draw of `SETTLED_DATA` in which a sample has no supporting constraint."""
    for seed in range(MOST_DRAWS):
        problem, rejected = settled_problem(SETTLED_DATA, run.config.root_seed, seed)
        support = support_mask(problem, max_margin(problem.constraints()).active)
        if not support.any(axis=1).all():
            return [
                trained(run, SETTLED_DATA, PAPER_DESCENT, seed, f"seed {seed}, {rejected} draws rejected")
            ]
    raise CannotForm(f"every sample of the first {MOST_DRAWS} draws has a supporting constraint.")


def _sums(run: TrainedRun) -> tuple[Float, Float]:
    """sum of e^-m off the support and on it, for each late record and sample."""
    support = support_mask(run.problem, run.separator.active)
    weights = np.exp(-margins(run.problem, run.W[last_decade(run)]))
    rest = rivals(run.problem) & ~support
    return np.where(rest, weights, 0.0).sum(axis=-1), np.where(support, weights, 0.0).sum(axis=-1)


def _rounding(run: TrainedRun) -> int:
    return 20 * run.W[0].size  # margins below 20, each a sum of d^2 products


def off_support(instance: Instance) -> Interval:
    """The left-hand side of A9."""
    run: TrainedRun = instance.data
    return rounded(_sums(run)[0], operations=_rounding(run))


def on_support(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """g times the right-hand side of A9: of the sample itself, or of all samples together."""
    run: TrainedRun = instance.data
    _, on = _sums(run)
    if constants["support"] == "all":
        on = np.broadcast_to(on.sum(axis=1, keepdims=True), on.shape)
    return rounded(constants["g"] * on, operations=_rounding(run))


_SAMPLES: dict[str, Any] = {
    "kind": Kind.UPPER,
    "instances": unsupported_runs,
    "predict": on_support,
    "measure": off_support,
}

domination_of_all = claim_on_run(
    id="match-copy/domination-every-sample",
    title="In every sample the tokens off the support are dominated by those on it",
    where="Assumption A9",
    source=Source.REPORTED,
    statement=(
        r"$\sum_{s \notin SV(i)} e^{-w^\top \tilde x_{i,s}} \le g(\tau) \sum_{s \in SV(i)} e^{-w^\top \tilde x_{i,s}}$ "
        r"for all $i$."
    ),
    constants={"support": "sample", "g": 1e6},
    expect=Verdict.FAIL,
    erratum=(
        "A sample without a supporting constraint has 0 on the right, and no finite g serves: such samples occur on "
        "the paper's own data. What the proof needs is that they are dominated by the support of all samples together."
    ),
    controls=(Mend(name="the support of all samples", constants={"support": "all", "g": 1.0}),),
    notes="The right-hand side is exactly 0 whatever g is; a million stands for any. " + WINDOW,
    **_SAMPLES,
)

domination_by_all = claim_on_run(
    id="match-copy/domination-pooled",
    title="In every sample the tokens off the support are dominated by the support of all samples together",
    where="Assumption A9, corrected",
    source=Source.DERIVED,
    statement=(
        r"$\sum_{s \notin SV(i)} e^{-w^\top \tilde x_{i,s}} \le g \sum_{j} \sum_{s \in SV(j)} "
        r"e^{-w^\top \tilde x_{j,s}}$ for all $i$, with $g = 1$ over the last decade."
    ),
    constants={"support": "all", "g": 1.0},
    controls=(Plant(name="the sample's own support", constants={"support": "sample"}),),
    notes="The constant is 1 here; by the direction it falls like a power of tau. " + WINDOW,
    **_SAMPLES,
)

CLAIMS = (vanishing_share, small_share, domination_of_all, domination_by_all)
