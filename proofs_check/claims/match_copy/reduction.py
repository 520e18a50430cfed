"""Fewer dimensions: descent as a recursion of its margins, and the dynamics of the supporting ones alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import identifiable
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    Break,
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.proofs_check.tolerances import truncated
from marginlab.simulations.attention import Problem
from marginlab.simulations.support_flow import support_flow
from marginlab.theory.match_copy.correction import NoFixedPoint
from marginlab.theory.match_copy.laws import support_rates
from marginlab.theory.match_copy.losses import error_directions
from marginlab.theory.match_copy.stability import correction_margins
from marginlab.theory.validation import Float

WHERE = "derived for this project (docs/flow.md)"

# ---- Span reduction ----

REDUCED_DATA = {"kind": "template", "T": 4, "d": 4, "n": 3, "coordinate_std": 0.5}

#: Updates, and their size as an exact binary number. Balls of 400 bits lose a few bits a step.
UPDATES, STEP, PRECISION = 60, 0.25, 400


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Start:
    """A problem and where descent starts."""

    problem: Problem
    W0: Float


def starts(run: Run) -> Iterable[Instance]:
    """Draws started from zero and from Gaussian entries outside the span of the constraints."""
    for seed in run.seeds(3):
        problem = problem_of(REDUCED_DATA, run.config.root_seed, seed)
        rng = np.random.default_rng(run.stream({"start": REDUCED_DATA}, seed))
        for name, W0 in (("zero", np.zeros((4, 4))), ("Gaussian", rng.standard_normal((4, 4)))):
            config = {"data": REDUCED_DATA, "start": name, "updates": UPDATES, "step": STEP}
            yield Instance(
                label=f"seed {seed}, start {name}",
                data=Start(problem=problem, W0=W0),
                seed=seed,
                config=config,
            )


def _balls(array: Float) -> Any:
    from flint import arb, arb_mat

    return arb_mat([[arb(float(x)) for x in row] for row in np.atleast_2d(array)])


def _enclosed(values: list[Any]) -> Interval:
    """Balls as intervals of float64, rounded outward."""
    ends = [(float(v.lower()), float(v.upper())) for v in values]
    lo = np.nextafter(np.array([e[0] for e in ends]), -np.inf)
    hi = np.nextafter(np.array([e[1] for e in ends]), np.inf)
    return Interval(lo, hi, f"ball arithmetic of {PRECISION} bits")


def full_margins(instance: Instance) -> Interval:
    """Margins after descent on all entries of W, by the textbook gradient E J(a) V^T (V a - v) q^T, in balls."""
    from flint import arb_mat, ctx

    problem: Problem = instance.data.problem
    with ctx.workprec(PRECISION):
        samples = [
            (_balls(k), _balls(q).transpose(), _balls(v), int(y))
            for k, q, v, y in zip(problem.keys, problem.queries, problem.values, problem.match, strict=True)
        ]
        W = _balls(instance.data.W0)
        for _ in range(UPDATES):
            total = arb_mat(W.nrows(), W.ncols())
            for keys, query, values, y in samples:
                scores = (keys * W * query).entries()
                odds = [(s - scores[y]).exp() for s in scores]
                a = [o / sum(odds[1:], odds[0]) for o in odds]
                output = arb_mat([a]) * values
                residual = [o - t for o, t in zip(output.entries(), values.tolist()[y], strict=True)]
                inner = (values * arb_mat([[r] for r in residual])).entries()
                mean = sum((p * x for p, x in zip(a[1:], inner[1:], strict=True)), a[0] * inner[0])
                g = arb_mat([[p * (x - mean)] for p, x in zip(a, inner, strict=True)])
                total += keys.transpose() * g * query.transpose()
            W = W - total * STEP
        found = []
        for keys, query, _, y in samples:
            scores = (keys * W * query).entries()
            found += [scores[y] - s for t, s in enumerate(scores) if t != y]
        return _enclosed(found)


def reduced_margins(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """m + eta K pi(m), `UPDATES` times, in balls: K the product, entry by entry, of the two Gram matrices.

    The power of the query Gram matrix is a constant of the claim.
    """
    from flint import arb, arb_mat, ctx

    problem: Problem = instance.data.problem
    n, per = len(problem.match), problem.shape[1] - 1
    with ctx.workprec(PRECISION):
        diffs, errors, sample = [], [], []
        for i, y in enumerate(problem.match):
            keys, values = _balls(problem.keys[i]).tolist(), _balls(problem.values[i]).tolist()
            for t in np.flatnonzero(problem.rivals[i]):
                diffs.append([a - b for a, b in zip(keys[y], keys[t], strict=True)])
                errors.append([a - b for a, b in zip(values[t], values[y], strict=True)])
                sample.append(i)
        keys_gram = arb_mat(diffs) * arb_mat(diffs).transpose()
        queries = _balls(problem.queries)
        query_gram = queries * queries.transpose()
        N = range(n * per)
        K = arb_mat(
            [
                [
                    keys_gram[j, k] * query_gram[sample[j], sample[k]] ** int(constants["query_power"])
                    for k in N
                ]
                for j in N
            ]
        )
        D = arb_mat(errors) * arb_mat(errors).transpose()
        turned = (_balls(instance.data.W0) * queries.transpose()).transpose().tolist()
        m = [sum((a * b for a, b in zip(diffs[j], turned[sample[j]], strict=True)), arb(0)) for j in N]
        for _ in range(UPDATES):
            pi = []
            for i in range(n):
                own = range(i * per, (i + 1) * per)
                odds = [(-m[j]).exp() for j in own]
                a = [o / (1 + sum(odds, arb(0))) for o in odds]
                pull = [sum((a[k - own[0]] * D[j, k] for k in own), arb(0)) for j in own]
                square = sum((x * p for x, p in zip(a, pull, strict=True)), arb(0))
                pi += [[x * (p - square)] for x, p in zip(a, pull, strict=True)]
            moved = (K * arb_mat(pi)).entries()
            m = [x + v * STEP for x, v in zip(m, moved, strict=True)]
        return _enclosed(m)


span_reduction = Claim(
    id="match-copy/span-reduction",
    title="Gradient descent is exactly a recursion of its margins",
    paper=PAPER,
    where=WHERE,
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.CERTIFIED,
    statement=r"$m \leftarrow m + \eta K \pi(m)$, $K$ the entrywise product of the Gram matrices of key differences "
    r"and queries: the $N = n(T-2)$ margins of gradient descent from any $W_0$ evolve by themselves.",
    constants={"query_power": 1},
    group="match-copy/reduction",
    instances=starts,
    predict=reduced_margins,
    measure=full_margins,
    controls=(Plant(name="the Gram matrix of the keys alone", constants={"query_power": 0}),),
    notes=(
        f"{UPDATES} updates on all entries of W by the textbook gradient, and the recursion, both in balls of "
        f"{PRECISION} bits: their enclosures, a few float64 spacings wide, must overlap in every margin. Proof: "
        "docs/flow.md."
    ),
)


# ---- The support alone ----

SUPPORT_DATA = {"kind": "template", "T": 5, "d": 6, "n": 3, "coordinate_std": 1.0}

#: Both rivals of a sample support here, and the match's value is their average.
INSIDE_DATA = {"kind": "inside", "T": 4, "d": 16, "n": 3, "coordinate_std": 1.0}

#: In units of the slowest relaxation: the start is forgotten, and rounding not yet reached.
RELAXED = (6.0, 18.0)

#: Standard deviation of the starts around zero.
SPREAD = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class SupportRun:
    """A problem whose supporting constraints are looked at alone, and a start of their dynamics."""

    problem: Problem
    start: Float


def support_runs(run: Run) -> Iterable[Instance]:
    """Three starts on each draw, with and without A4."""
    for seed in run.seeds(4):
        yield from _from_three_starts(run, SUPPORT_DATA, seed, f"seed {seed}")


def inside_runs(run: Run) -> Iterable[Instance]:
    """A match whose value is the average of its rivals': no strictly copositive D."""
    for seed in range(2):
        yield from _from_three_starts(run, INSIDE_DATA, seed, f"average value, seed {seed}")


def _from_three_starts(run: Run, data: Mapping[str, Any], seed: int, label: str) -> Iterable[Instance]:
    problem = problem_of(data, run.config.root_seed, seed)
    rng = np.random.default_rng(run.stream({"support starts": dict(data)}, seed))
    for k in range(3):
        start = SPREAD * rng.standard_normal(problem.rivals.sum())
        yield Instance(
            label=f"{label}, start {k}",
            data=SupportRun(problem=problem, start=start),
            seed=seed,
            config={"data": dict(data), "start": k},
        )


def relaxation(instance: Instance) -> Curve:
    """log of the distance to the predicted limit, against log time in units of the slowest predicted rate.

    Raises
    ------
    CannotForm
        The limit does not exist: D is not strictly copositive.
    """
    run: SupportRun = instance.data
    problem = run.problem
    separator = TrainedRun.untrained(problem).separator
    gram, active = problem.constraints().gram(), np.sort(separator.active)
    try:
        support, offsets = correction_margins(problem, active, separator.dual, 1.0)
        rate = float(support_rates(problem, gram, active, separator.dual)[0])
    except NoFixedPoint as reason:
        raise CannotForm(f"there is no limit: {reason}") from None
    sample = np.nonzero(support)[0]
    d = error_directions(problem)[support]
    times = np.linspace(RELAXED[0], RELAXED[1], 41)
    z = support_flow(
        gram[np.ix_(active, active)],
        (d @ d.T) * (sample[:, None] == sample),
        separator.dual[active],
        run.start[: len(active)],
        times / rate,
    )
    distance = np.abs(z + offsets[support]).max(axis=1)
    # The integrator keeps z to 1e-11 a unit of its own scale, and the fixed point is right to 1e-14: a thousandth of
    # the smallest distance in the window, e^-18 = 1.5e-8.
    return Curve(
        x=times,
        y=Interval.around(np.log(distance), 1e-3, "integrator: 1e-11 beside distances above 1e-8"),
        x_name="log time times the slowest rate",
        y_name="log of the distance to -log p",
    )


def unit_rate(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The slope in these units, within a tenth of the way to twice the rate."""
    del instance
    return truncated(-constants["factor"], -constants["rival"] * constants["factor"])


def a3(instance: Instance) -> Answer:
    """A3, on the problem of the run."""
    return identifiable(Instance(label="", data=TrainedRun.untrained(instance.data.problem)))


support_dynamics = Claim(
    id="match-copy/support-dynamics",
    title="The supporting margins alone have one limit, reached at a linear rate in log time",
    paper=PAPER,
    where=WHERE,
    source=Source.DERIVED,
    kind=Kind.RATE,
    evidence=Evidence.NUMERICAL,
    statement=r"$\dot z = -\eta K \nabla F(z)$ on the support has the unique limit $z^* = \log p$, $p \circ Dp = c$, "
    r"from every start, and $|z - z^*|$ falls as $\tau^{-\lambda_{\min}(KM)/2}$.",
    assumes=(Assumption(name="A3", statement="identifiability", check=a3),),
    constants={"factor": 1.0, "rival": 2.0},
    window=RELAXED,
    group="match-copy/reduction",
    instances=support_runs,
    predict=unit_rate,
    measure=relaxation,
    controls=(
        Plant(name="the factor 1/2 left out", constants={"factor": 2.0, "rival": 0.5}),
        Break(name="the match's value is the average of its rivals'", assumption="A3", instances=inside_runs),
    ),
    notes=(
        "Three starts on each draw; draws that violate A4 are among them: A3 is enough here. It is about the "
        "supporting constraints alone and does not carry over to the full flow without A4 (docs/flow.md, and "
        "match-copy/counterexample-direction). The distance is to the closed-form limit, so that a common limit of all "
        "starts is part of what is measured."
    ),
)

CLAIMS = (span_reduction, support_dynamics)
