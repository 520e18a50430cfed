"""The task: laws of the sampled rows under both priors, and of the chains that they drive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.trials import PAPER, hierarchical, independent, label
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.markov import stationary_distribution
from marginlab.theory.ngrams import NGramTask, sample

#: Chains that are drawn for each law.
CHAINS = 20_000

UNIT = "chain"


def task_claim(**fields: Any) -> Claim:
    common: dict[str, Any] = {"paper": PAPER, "group": "ngrams/task"}
    return Claim(**common | fields)


def second_moments(run: Run) -> Iterable[Instance]:
    """E[P_u(m)^2] for the independent prior; (P_u(m) - P_w(m))^2 around its suffix for the hierarchical one."""
    for fields in (
        independent(3),
        independent(4, alpha=0.3),
        hierarchical(3, 4.0),
        hierarchical(3, 2.0, 8.0),
        hierarchical(3, 16.0, alpha=0.5),
    ):
        task = NGramTask(**fields)
        data = sample(task, CHAINS, task.order, run.stream({"rows": dict(fields)}, 0))
        row = data.levels[-1][:, 1]  # the context (1, 0), lag 1 first
        config = {"task": dict(fields), "chains": CHAINS}
        V, alpha = task.vocab_size, task.alpha
        if task.prior == "independent":
            values, expected = row[:, 0] ** 2, (alpha + 1) / (V * (alpha * V + 1))
        else:
            parent, c = data.levels[-2][:, 1 % V ** (task.order - 1)], task.concentrations[-1]
            values = (c + 1) * (row[:, 0] - parent[:, 0]) ** 2 - parent[:, 0] * (1 - parent[:, 0])
            expected = 0.0
        yield Instance(label=label(fields, task.order), data=(values, expected, row[:, 0]), config=config)


def squares(instance: Instance) -> Sample:
    """The squares."""
    return Sample(values=instance.data[0], unit=UNIT)


def dirichlet_square(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Their Dirichlet mean, with a planted shift relative to the mean square of the row."""
    _, expected, row = instance.data
    return rounded(expected + constants["shift"] * float(np.mean(row**2)), operations=8)


row_laws = task_claim(
    id="ngrams/row-laws",
    title="Rows have the Dirichlet laws of both priors",
    where="Task, independent prior; task, hierarchical prior",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"Independent: $P_u \sim \mathrm{Dir}(\alpha 1)$. Hierarchical, base order $r_0$: $P_{(w, b)} \sim "
    r"\mathrm{Dir}(c_r P_w)$, so that $E[(P_{(w,b)}(m) - P_w(m))^2 | P_w] = P_w(m)(1 - P_w(m)) / (c_r + 1)$.",
    constants={"shift": 0.0},
    judgements=5,
    unit=UNIT,
    instances=second_moments,
    predict=dirichlet_square,
    measure=squares,
    controls=(Plant(name="a tenth more", constants={"shift": 0.1}),),
    notes="Both readings of the hierarchical prior, r0 = 0 and r0 = 1; which one the paper uses is not known to us.",
)


def chains(run: Run) -> Iterable[Instance]:
    """Order-2 chains on three tokens with uneven rows."""
    for seed in run.seeds(6):
        config = {"stationary": True, "V": 3, "k": 2}
        rng = np.random.default_rng(run.stream(config, seed))
        yield Instance(label=f"seed {seed}", data=rng.dirichlet(np.full(3, 0.3), 9), seed=seed, config=config)


def residual(instance: Instance) -> Interval:
    """Mass that flows into each context, over its stationary mass: 1 everywhere."""
    rows = instance.data
    pi = stationary_distribution(rows, 3)
    inflow = np.zeros(9)
    for code in range(9):
        for m in range(3):
            inflow[m + 3 * (code % 3)] += pi[code] * rows[code, m]
    return rounded(np.append(inflow / pi, pi.sum()), operations=400)


def balance(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1."""
    del instance
    return Interval.exact(np.full(10, constants["one"]))


stationary_start = task_claim(
    id="ngrams/stationary-start",
    title="The stationary law of an order-k chain is solved for, to relative accuracy",
    where="Task, independent prior; erratum on the stationary start",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.NUMERICAL,
    statement=r"$\pi(v) = \sum_u \pi(u) P(v | u)$ over contexts, relative to $\pi(v)$ however small it is.",
    constants={"one": 1.0},
    instances=chains,
    predict=balance,
    measure=residual,
    controls=(Plant(name="a billionth more", constants={"one": 1 + 1e-9}),),
)

CLAIMS = (row_laws, stationary_start)
