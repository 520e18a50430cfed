"""When do drawn data satisfy A1-A3? Ranks over the rationals (Proposition G.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.rational import constraint_vectors, error_vectors, exact_rank
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
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
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import gamma
from marginlab.simulations.attention import Problem

GROUP = "match-copy/data"


#: (d, T, n) with d = max(n, T - 2): the edge of the sufficient condition, from either side.
EDGE = ((5, 7, 5), (8, 10, 8), (4, 6, 2), (6, 4, 6))


#: (d, T, n) beyond it: more constraints than unknowns.
BEYOND = ((3, 6, 4), (4, 8, 3))


def template_data(d: int, T: int, n: int) -> dict[str, Any]:
    """A template of n samples with T tokens of unit variance in d dimensions."""
    return {"kind": "template", "T": T, "d": d, "n": n, "coordinate_std": 1.0}


def _drawn(run: Run, sizes: Iterable[tuple[int, int, int]], seeds: int) -> Iterable[Instance]:
    root = run.config.root_seed
    for d, T, n in sizes:
        data = template_data(d, T, n)
        for seed in run.seeds(seeds):
            yield Instance(
                label=f"d = {d}, T = {T}, n = {n}, seed {seed}",
                data=TrainedRun.untrained(problem_of(data, root, seed)),
                seed=seed,
                config={"data": data, "root": root},
            )


def edge_draws(run: Run) -> Iterable[Instance]:
    """Draws at the edge of d >= max(n, T - 2)."""
    return _drawn(run, EDGE, 3)


def crowded_draws(run: Run) -> Iterable[Instance]:
    """Draws with more constraints than unknowns."""
    return _drawn(run, BEYOND, 2)


def enough_dimensions(instance: Instance) -> Answer:
    """d >= max(n, T - 2), the number of samples and of rivals of each."""
    n, K, d, _ = instance.data.problem.shape
    need = max(n, K - 1)
    status = Status.HOLDS if d >= need else Status.FAILS
    return Answer(status, f"d = {d}, and max(n, T - 2) = {need}", float(d))


def feature_rank(instance: Instance) -> Interval:
    """Rank over the rationals of all constraint vectors."""
    return Interval.exact(exact_rank(constraint_vectors(instance.data.problem)))


def feature_count(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """n (T - 2), or with T - 1 as planted."""
    n, K, _, _ = instance.data.problem.shape
    return Interval.exact(n * (K + 1 - constants["less"]))


def support_draws(run: Run) -> Iterable[Instance]:
    """Draws of 8 dimensions with up to 7 rivals, whose supports are smaller than the whole."""
    return _drawn(run, ((8, 9, 8), (8, 6, 8)), 3)


def tied_support(run: Run) -> Iterable[Instance]:
    """One sample in two dimensions with three rivals on the margin: key differences (1, -1), (1, 0), (1, 1)."""
    del run
    problem = Problem(
        keys=[[[0, 0], [-1, 1], [-1, 0], [-1, -1]]],
        queries=[[1, 0]],
        values=[[[0, 0], [1, 0], [1, 1], [2, 1]]],
        match=[0],
    )
    yield Instance(
        label="three rivals tied in the plane", data=TrainedRun.untrained(problem), config={"plane": 3}
    )


def _support(run: TrainedRun) -> np.ndarray:
    """Every constraint that may have margin 1, those with zero multiplier included.

    The certificate encloses the separator in a ball, and so each margin within its radius times the constraint's
    length; evaluating a margin takes 2 d + 4 roundings of products of size at most d ||W|| times that length.
    """
    constraints, certificate = run.problem.constraints(), run.certificate
    d = max(constraints.shape)
    rounding = gamma(2 * d + 4) * d * float(np.linalg.norm(certificate.centre))
    reach = (certificate.radius + rounding) * constraints.norms()
    return np.flatnonzero(constraints.margins(certificate.centre) <= 1 + 2 * reach)


def support_fits(instance: Instance) -> Answer:
    """d >= max(n_SV, T_SV): samples with supporting constraints, and the most of them in one sample."""
    run: TrainedRun = instance.data
    _, counts = np.unique(run.problem.constraints().sample[_support(run)], return_counts=True)
    d, need = run.problem.shape[2], int(max(len(counts), counts.max()))
    status = Status.HOLDS if d >= need else Status.FAILS
    return Answer(
        status, f"d = {d}; {len(counts)} samples support, the most in one sample are {counts.max()}", float(d)
    )


def support_rank(instance: Instance) -> Interval:
    """Rank over the rationals of the supporting constraint vectors."""
    run: TrainedRun = instance.data
    return Interval.exact(exact_rank(constraint_vectors(run.problem)[_support(run)]))


def support_count(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Number of supporting constraints."""
    return Interval.exact(len(_support(instance.data)) + constants["more"])


def error_draws(run: Run) -> Iterable[Instance]:
    """Draws with d = T - 2 exactly."""
    return _drawn(run, ((3, 5, 6), (6, 8, 4)), 3)


def one_dimension_less(run: Run) -> Iterable[Instance]:
    """Draws with d = T - 3."""
    return _drawn(run, ((2, 5, 6), (5, 8, 4)), 2)


def enough_for_errors(instance: Instance) -> Answer:
    """d >= T - 2, the number of error directions of a sample."""
    _, K, _, d = instance.data.problem.shape
    status = Status.HOLDS if d >= K - 1 else Status.FAILS
    return Answer(status, f"d = {d}, T - 2 = {K - 1}", float(d))


def error_ranks(instance: Instance) -> Interval:
    """Rank over the rationals of each sample's v_t - v_y."""
    return Interval.exact([exact_rank(errors) for errors in error_vectors(instance.data.problem)])


def error_counts(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """T - 2 for each sample."""
    n, K, _, _ = instance.data.problem.shape
    return Interval.exact(np.full(n, K + 1 - constants["less"]))


independent_features = Claim(
    id="match-copy/independent-features",
    title="With d at least max(n, T - 2) all constraint vectors are linearly independent: A1 and A2 for free",
    paper=PAPER,
    where="beside Proposition G.2 (1)",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$d \ge \max(n, T - 2)$ implies $\mathrm{rank} \{\tilde x_{i,t}\} = n (T - 2)$ almost surely.",
    assumes=(Assumption(name="dimension", statement=r"$d \ge \max(n, T - 2)$", check=enough_dimensions),),
    constants={"less": 2},
    group=GROUP,
    instances=edge_draws,
    predict=feature_count,
    measure=feature_rank,
    min_valid=1.0,
    controls=(
        Break(name="more constraints than unknowns", assumption="dimension", instances=crowded_draws),
        Plant(name="T - 1 rivals", constants={"less": 1}),
    ),
    notes=(
        "Ranks are exact, of the drawn numbers as the dyadic rationals that they are. Proof: docs/geometry.md. "
        "Independent vectors can be given any margins at once, so that a separator exists."
    ),
)


support_independent = Claim(
    id="match-copy/support-independent",
    title="With d at least max(n_SV, T_SV) the supporting constraints are linearly independent",
    paper=PAPER,
    where="Proposition G.2 (1)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.CERTIFIED,
    statement=r"$d \ge \max(n_{SV}, T_{SV})$ implies A2 almost surely.",
    assumes=(Assumption(name="dimension", statement=r"$d \ge \max(n_{SV}, T_{SV})$", check=support_fits),),
    depends_on=("match-copy/separator",),
    constants={"more": 0},
    group=GROUP,
    instances=support_draws,
    predict=support_count,
    measure=support_rank,
    min_valid=1.0,
    controls=(
        Break(name="three rivals tied in the plane", assumption="dimension", instances=tied_support),
        Plant(name="one more", constants={"more": 1}),
    ),
    notes=(
        "The support is every constraint whose margin may be 1 by the certified separator, those with zero "
        "multiplier included; its rank is exact. 'Almost surely' is over Gaussian tokens: the control is not drawn."
    ),
)


identifiable = Claim(
    id="match-copy/identifiable",
    title="With d at least T - 2 the error directions of a sample are independent, which gives A3",
    paper=PAPER,
    where="Proposition G.2 (2), with T - 2 for T - 1",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$d \ge T - 2$ implies $\mathrm{rank} \{d_{i,t}\}_{t \ne y_i} = T - 2$, hence A3, almost surely.",
    assumes=(Assumption(name="dimension", statement=r"$d \ge T - 2$", check=enough_for_errors),),
    constants={"less": 2},
    group=GROUP,
    instances=error_draws,
    predict=error_counts,
    measure=error_ranks,
    min_valid=1.0,
    controls=(
        Break(name="d = T - 3", assumption="dimension", instances=one_dimension_less),
        Plant(name="T - 1 rivals", constants={"less": 1}),
    ),
    notes=(
        "The paper asks for d >= T - 1, which is one more than needed. Independent directions have no combination "
        "that vanishes, let alone a convex one. That one dimension less is not enough: match-copy/identifiable-tight."
    ),
)

CLAIMS = (
    independent_features,
    support_independent,
    identifiable,
)
