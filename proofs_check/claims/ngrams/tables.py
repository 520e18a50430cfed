"""Tables of every estimator with standard errors, all positions at once, and the plateau of fixed scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.comparisons import (
    HIERARCHICAL,
    INDEPENDENT,
    MANY,
    Setting,
    comparison,
    least,
)
from marginlab.proofs_check.claims.ngrams.trials import (
    CHAINS,
    FLOOR,
    ONE_BOS,
    PER_LAG,
    PER_LAG_BOS,
    hierarchical,
    independent,
    kl,
    label,
    trial,
)
from marginlab.proofs_check.engine.claim import Claim, Instance, Kind, Plant, Tier
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Sample
from marginlab.theory.ngrams import (
    NGramTask,
    batch_counts,
    fit_soft_match,
    overlap_counts,
    sample,
    soft_match_law,
)
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics, add_alpha_law

#: Chains to fit on in a table.
FITTED = 4_000


def neighbours(settings: tuple[Setting, ...], order: tuple[str, ...]) -> Callable[[Run], Iterable[Instance]]:
    """Neighbours in an order of estimators, on every setting."""

    def instances(run: Run) -> Iterable[Instance]:
        for fields, length in settings:
            tried = trial(run, fields, length, fitted=FITTED, judged=MANY)
            for better, worse in pairwise(order):
                yield Instance(
                    label=f"{label(fields, length)}: {better} before {worse}",
                    data=(tried, better, worse),
                    config={"task": dict(fields), "length": length, "pair": [better, worse]},
                )

    return instances


def paired(instance: Instance) -> Sample:
    """Divergence of the worse less that of the better."""
    tried, better, worse = instance.data
    return Sample(values=tried.divergence(worse) - tried.divergence(better), unit=CHAINS)


def whole_table(instance: Instance) -> Mapping[str, Any]:
    """Mean divergences of all estimators with their standard errors: the row of the table."""
    return instance.data[0].table()


def _table(settings: tuple[Setting, ...], order: tuple[str, ...], name: str, **fields: Any) -> Claim:
    return comparison(
        id=f"ngrams/{name}",
        where="Section 5, trained transformers",
        kind=Kind.LOWER,
        constants={"least": 0.0},
        min_tier=Tier.FULL,
        group=f"ngrams/{name}",
        judgements=len(settings) * (len(order) - 1),
        instances=neighbours(settings, order),
        predict=least,
        measure=paired,
        series=whole_table,
        controls=(Plant(name="a gain of one nat", constants={"least": 1.0}),),
        **fields,
    )


independent_table = _table(
    INDEPENDENT,
    (PER_LAG_BOS, PER_LAG, "katz", "absolute discounting", "maximum likelihood"),
    "independent-table",
    title="Independent rows: BOS before no BOS before discounting before maximum likelihood",
    statement=r"On every setting each of these has a larger expected divergence than the one before it: soft matching "
    r"with BOS, without BOS, Katz, interpolated absolute discounting, maximum likelihood.",
    notes="All fifteen estimators with standard errors stand in the data of each instance.",
)

hierarchical_table = _table(
    HIERARCHICAL,
    ("Bayes", PER_LAG_BOS, ONE_BOS, "best add-alpha"),
    "hierarchical-table",
    title="Hierarchical rows: Bayes before one scale per lag before one scale before the best additive smoothing",
    statement=r"On every setting each of these has a larger expected divergence than the one before it: the Bayes "
    r"predictor, soft matching with BOS and one scale per lag, with one scale, the best fixed additive smoothing.",
    notes=(
        "Bayes is exact for r0 = k - 1 and by Gibbs sampling otherwise. All fifteen estimators with standard errors "
        "stand in the data of each instance."
    ),
)


# ---- One set of parameters for all positions ----

ALL_POSITIONS: tuple[Setting, ...] = (
    (hierarchical(3, 4.0), 64),
    (hierarchical(5, 4.0), 64),
    (hierarchical(5, 16.0), 64),
    (hierarchical(5, 4.0, 4.0), 64),
    (hierarchical(10, 10.0), 64),
)

#: The fixed additive smoothings of a figure.
FIXED = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)

#: First position that is predicted.
FIRST = 3


def _rows(
    task: NGramTask, n: int, length: int, seed: np.random.SeedSequence
) -> tuple[Any, Any, ContextStatistics]:
    data = sample(task, n, length, seed)
    V, k = task.vocab_size, task.order
    laws = np.stack([data.laws_at(t) for t in range(FIRST, length + 1)], axis=1)
    subsets, _ = batch_counts(data.tokens, V, k, first=FIRST)
    suffixes, customers = batch_counts(data.tokens, V, k, first=FIRST, contexts="suffixes")
    return laws, subsets, ContextStatistics.of_rows(suffixes, customers)


def everywhere(run: Run) -> Iterable[Instance]:
    """Mean over positions of the divergence: soft matching fitted to all of them, and each fixed alpha."""
    for fields, length in ALL_POSITIONS:
        task = NGramTask(**fields)
        config = {"all positions": dict(fields), "length": length}
        first, second = run.stream(config, 0).spawn(2)
        laws, subsets, _ = _rows(task, 1_000, length, first)
        V, masks = task.vocab_size, subsets.shape[-2]
        fit = fit_soft_match(
            overlap_counts(subsets).reshape(-1, masks, V), laws.reshape(-1, V), vocab_size=V, floor=FLOOR
        )
        laws, subsets, stats = _rows(task, 4_000, length, second)
        soft = kl(laws, soft_match_law(subsets, fit.beta, kappa=fit.kappa)).mean(-1)
        fixed = {alpha: kl(laws, add_alpha_law(stats, alpha)).mean(-1) for alpha in FIXED}
        best = min(fixed, key=lambda alpha: float(fixed[alpha].mean()))
        yield Instance(
            label=f"{label(fields, length)}: against alpha = {best:g}", data=fixed[best] - soft, config=config
        )


def over_positions(instance: Instance) -> Sample:
    """Best fixed additive smoothing less soft matching, one value a chain."""
    return Sample(values=instance.data, unit=CHAINS)


all_positions = comparison(
    id="ngrams/all-positions",
    title="One set of scales for all positions beats the best of the fixed additive smoothings",
    where="Fig. 3",
    kind=Kind.LOWER,
    statement=r"$T = 64$, hierarchical rows: averaged over the positions from the third on, soft matching with BOS and "
    r"one set of parameters has a smaller divergence than with any additive $\alpha$ of .05, .1, .25, .5, 1, 2.",
    constants={"least": 0.0},
    min_tier=Tier.FULL,
    group="ngrams/all-positions",
    judgements=len(ALL_POSITIONS),
    instances=everywhere,
    predict=least,
    measure=over_positions,
    controls=(Plant(name="a gain of one nat", constants={"least": 1.0}),),
)


# ---- Fixed scales do not converge ----

PLATEAU = 10_000


def plateaus(run: Run) -> Iterable[Instance]:
    """Divergences of soft matching at a fixed scale, and of additive smoothing, at a long length."""
    task = NGramTask(**independent(3))
    config = {"plateau": "independent rows", "length": PLATEAU}
    data = sample(task, 800, PLATEAU, run.stream(config, 0))
    subsets, _ = batch_counts(data.tokens, 3, 2)
    suffixes, customers = batch_counts(data.tokens, 3, 2, contexts="suffixes")
    additive = kl(
        data.next_rows, add_alpha_law(ContextStatistics.of_rows(suffixes[:, 0], customers[:, 0]), 1.0)
    )
    for beta in (1.0, 2.0):
        soft = kl(data.next_rows, soft_match_law(subsets[:, 0], [beta, beta]))
        yield Instance(
            label=f"beta = {beta:g}, T = {PLATEAU}", data=(soft, additive), config=config | {"beta": beta}
        )


def ten_times_additive(instance: Instance) -> Sample:
    """Divergence at the fixed scale less ten times that of additive smoothing."""
    soft, additive = instance.data
    return Sample(values=soft - 10 * additive, unit=CHAINS)


fixed_scale_plateau = comparison(
    id="ngrams/fixed-scale-plateau",
    title="At a fixed scale the divergence stays, while additive smoothing's goes to zero",
    where="Section 3; derived: inconsistency at a fixed scale",
    kind=Kind.LOWER,
    statement=r"$T = 10^4$, $V = 3$, $k = 2$, independent rows: at $\beta \in \{1, 2\}$ the expected divergence of "
    r"soft matching is more than ten times that of add-1.",
    constants={"least": 0.0},
    judgements=2,
    instances=plateaus,
    predict=least,
    measure=ten_times_additive,
    controls=(Plant(name="a gap of one nat", constants={"least": 1.0}),),
    depends_on=("ngrams/fixed-scale-limit",),
)

CLAIMS = (independent_table, hierarchical_table, all_positions, fixed_scale_plateau)
