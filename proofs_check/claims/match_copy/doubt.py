"""What the uncertainty of the match costs at least, and at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marginlab.proofs_check.claims.match_copy.task import SEQUENCES, task_claim
from marginlab.proofs_check.engine.claim import Instance, Kind, Plant
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import gamma
from marginlab.theory.match_copy.doubt import bayes_excess_bounds, pair_doubt
from marginlab.theory.match_copy.predictors import bayes_predict, posterior_variances
from marginlab.theory.match_copy.sampling import sample
from marginlab.theory.match_copy.task import MatchCopyTask

#: (d, c) with two candidates: doubts from a few percent to most of the largest possible one, 1/4.
PAIRS = ((16, 1.2), (16, 1.3), (4, 1.5))

#: (d, T, c) where candidates are confused often enough for the bounds to be told from the error.
DOUBTFUL = ((16, 8, 1.2), (16, 8, 1.3), (16, 16, 1.3), (8, 8, 1.3))

DRAWN = 20_000


def doubts(run: Run) -> Iterable[Instance]:
    """pi_1 pi_2 of sequences of three tokens, which have two candidates."""
    for d, c in PAIRS:
        config = {"d": d, "T": 3, "c": c, "sequences": DRAWN}
        task = MatchCopyTask(T=3, d_in=d, c=c)
        _, posterior = bayes_predict(task, sample(task, DRAWN, run.stream({"pair": config}, 0)))
        yield Instance(label=f"d = {d}, c = {c}", data=(d, c, posterior.prod(axis=1)), config=config)


def doubt(instance: Instance) -> Sample:
    """The products."""
    return Sample(values=instance.data[2], unit=SEQUENCES)


def doubt_of_a_pair(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The integral, times a factor."""
    d, c, _ = instance.data
    value = constants["factor"] * pair_doubt(d * constants["dimensions"], c)
    # Powers d/2 of numbers below 1 multiply their rounding by d; the sum has some hundreds of terms of one sign.
    return Interval.around(value, gamma(1000 + 4 * d) * value, "rounding: powers and a trapezoidal sum")


pair = task_claim(
    id="match-copy/pair-doubt",
    title="The doubt between two candidates is an integral of hyperbolic secants",
    where="Section 1, consequence",
    kind=Kind.IDENTITY,
    statement=r"For $C = \rho I$ and $T = 3$: $E\,\pi_1 \pi_2 = P = \frac14 (1 - a^2)^{d/2} \int_0^\infty "
    r"\mathrm{sech}(\frac{\pi\theta}{2}) (1 + a^2 \theta^2)^{-d/2} d\theta$ with $a^2 = \frac{\rho^2}{2 - \rho^2}$.",
    constants={"factor": 1.0, "dimensions": 1},
    judgements=len(PAIRS),
    instances=doubts,
    predict=doubt_of_a_pair,
    measure=doubt,
    controls=(
        Plant(name="twice the doubt", constants={"factor": 2.0}),
        Plant(name="in twice the dimension", constants={"dimensions": 2}),
    ),
    notes="Derivation: docs/task.md. Measured: posteriors of drawn sequences.",
)


def excesses(run: Run) -> Iterable[Instance]:
    """Posterior variances of the copied token, whose mean is the posterior mean's error less noise^2."""
    for d, T, c in DOUBTFUL:
        config = {"d": d, "T": T, "c": c, "sequences": DRAWN}
        task = MatchCopyTask(T=T, d_in=d, c=c)
        data = sample(task, DRAWN, run.stream({"excess": config}, 0))
        variances = posterior_variances(data, bayes_predict(task, data)[1])
        yield Instance(label=f"d = {d}, T = {T}, c = {c}", data=(task, variances), config=config)


def excess(instance: Instance) -> Sample:
    """The variances."""
    return Sample(values=instance.data[1], unit=SEQUENCES)


def bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """2 (T - 2) P signal, divided by (T - 1) to the given power."""
    task = instance.data[0]
    _, upper = bayes_excess_bounds(task)
    value = upper * (task.T - 1.0) ** -constants["power"]
    size = gamma(1000 + 4 * task.d_in + task.d_in * task.d_out) * value
    return Interval.around(value, size, "rounding: the norm of W_V, powers and a trapezoidal sum")


_BOUND: dict[str, Any] = {
    "where": "Section 1, noise floor",
    "judgements": len(DOUBTFUL),
    "instances": excesses,
    "predict": bound,
    "measure": excess,
}

excess_lower = task_claim(
    **_BOUND,
    id="match-copy/bayes-excess-lower",
    title="No predictor comes closer to the noise than one confusable pair allows",
    kind=Kind.LOWER,
    statement=r"For $C = \rho I$ every predictor has error at least $\sigma_{noise}^2 + 2 \frac{T-2}{T-1} P$ times the "
    r"variance of the signal; $P \ge \frac14 (1 - \rho^2)^{d/2} > 0$.",
    constants={"power": 1},
    controls=(Plant(name="all pairs at once", constants={"power": 0}),),
    notes=(
        "Proof: a predictor that is told one wrong candidate of two has less to doubt (docs/task.md). So the published "
        "floor is reached by no model for T >= 3 and c > 1, with a proof and not only by measurement."
    ),
)

excess_upper = task_claim(
    **_BOUND,
    id="match-copy/bayes-excess-upper",
    title="The posterior mean pays at most for all confusable pairs",
    kind=Kind.UPPER,
    statement=r"For $C = \rho I$ the posterior mean's error is at most $\sigma_{noise}^2 + 2 (T-2) P$ times the "
    r"variance of the signal; $P \le \frac14 (1 - a^2)^{d/2}$.",
    constants={"power": 0},
    controls=(Plant(name="one pair alone", constants={"power": 1}),),
    notes=(
        "Nearly attained where confusions are rare, at most one wrong candidate a sequence: there the cells of the "
        "grid cannot tell the error from the bound, and are left to the claim on the floor. Proof: docs/task.md."
    ),
)

CLAIMS = (pair, excess_lower, excess_upper)
