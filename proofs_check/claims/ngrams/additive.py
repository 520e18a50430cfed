"""Corollary 4.1: with BOS, growing scales lead to additive smoothing, and how far it is at a finite scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.limits import counted, limit_claim
from marginlab.proofs_check.engine.claim import Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import soft_match_law
from marginlab.theory.ngrams.limits import additive_distance_bounds
from marginlab.theory.validation import Float

BETAS = (2.0, 5.0, 10.0)


def additive_cases(run: Run) -> Iterable[Instance]:
    """Sequences with an alpha each."""
    for label, x, V, K, N, config, seed in counted(50, "additive")(run):
        alpha = float(np.random.default_rng(run.stream(config | {"alpha": True}, seed)).uniform(0.05, 3))
        yield Instance(label=label, data=(x, V, K, N, alpha), seed=seed, config=config)


def soft_additive(K: Any, V: int, alpha: float, beta: float) -> Float:
    """Soft matching with the scales of Corollary 4.1."""
    k = len(K).bit_length() - 1
    return soft_match_law(K, np.full(k, beta), kappa=k * beta + np.log(alpha * V))


def limit_of_large_scale(instance: Instance) -> Interval:
    """The output at beta = 200."""
    _, V, K, _, alpha = instance.data
    k = len(K).bit_length() - 1
    return rounded(soft_additive(K, V, alpha, 200.0), operations=2 * len(K) + 20, magnitude=200.0 * k + 2)


def additive(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(N_u(m) + alpha) / (N_u + alpha V); planted, with kappa = k beta + ln alpha."""
    _, V, _, N, alpha = instance.data
    alpha = alpha if constants["times_V"] else alpha / V
    return rounded((N[-1] + alpha) / (N[-1].sum() + alpha * V), operations=V + 4)


additive_limit = limit_claim(
    id="ngrams/additive-limit",
    title="With BOS the limit of large scales is additive smoothing",
    where="Corollary 4.1; eq. (10)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    statement=r"With $\kappa = k\beta + \ln(\alpha|\mathcal V|)$: $\lim_{\beta \to \infty} T(x)(m) = "
    r"\frac{N_{u_T}(m) + \alpha}{N_{u_T} + \alpha|\mathcal V|}$.",
    constants={"times_V": True},
    instances=additive_cases,
    predict=additive,
    measure=limit_of_large_scale,
    controls=(Plant(name="kappa = k beta + ln alpha", constants={"times_V": False}),),
    depends_on=("ngrams/additive-bound",),
    notes="At beta = 200, where what is left is below e^-200 by ngrams/additive-bound, far below rounding.",
)


def distance_to_additive(instance: Instance) -> Interval:
    """Total variation at each beta."""
    _, V, K, N, alpha = instance.data
    target = (N[-1] + alpha) / (N[-1].sum() + alpha * V)
    rows = np.array([soft_additive(K, V, alpha, beta) for beta in BETAS])
    k = len(K).bit_length() - 1
    return rounded(
        np.abs(rows - target).sum(-1) / 2, operations=2 * len(K) + 20, magnitude=k * np.array(BETAS) + 2
    )


def _bounds(sharp: bool) -> Callable[[Instance, Mapping[str, Any]], Interval]:
    def predict(instance: Instance, constants: Mapping[str, Any]) -> Interval:
        _, _, K, N, alpha = instance.data
        k = len(K).bit_length() - 1
        values = np.array([additive_distance_bounds(N, alpha, beta)[1 - sharp] for beta in BETAS])
        slack = rounded(np.zeros(len(BETAS)), operations=2 * len(K) + 20, magnitude=k * np.array(BETAS) + 2)
        return Interval.around(constants["share"] * values + 3 * slack.hi, slack.hi, slack.rule)

    return predict


additive_bound = limit_claim(
    id="ngrams/additive-bound",
    title="Distance from additive smoothing at a finite scale",
    where="Derived: finite-scale error of Corollary 4.1",
    kind=Kind.UPPER,
    statement=r"$TV(T, \text{add-}\alpha) \le \rho / (\alpha V + N_{[k]} + \rho)$ with "
    r"$\rho = \sum_{M \ne [k]} e^{-\beta(k - |M|)} N_M$.",
    constants={"share": 1.0},
    instances=additive_cases,
    predict=_bounds(True),
    measure=distance_to_additive,
    controls=(Plant(name="three quarters of it", constants={"share": 0.75}),),
)

additive_bound_simple = limit_claim(
    id="ngrams/additive-bound-simple",
    title="Distance from additive smoothing in one exponential",
    where="Derived: finite-scale error of Corollary 4.1",
    kind=Kind.UPPER,
    statement=r"$TV(T, \text{add-}\alpha) \le e^{-\beta} (n - N_{[k]}) / (\alpha V + N_{[k]})$.",
    constants={"share": 1.0},
    instances=additive_cases,
    predict=_bounds(False),
    measure=distance_to_additive,
    controls=(Plant(name="a tenth of it", constants={"share": 0.1}),),
    depends_on=("ngrams/additive-bound",),
)


CLAIMS = (additive_bound, additive_bound_simple, additive_limit)
