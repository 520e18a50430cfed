"""The Bayes predictor under independent rows: additive smoothing, and its risk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import pairwise
from itertools import product as tuples
from math import factorial
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.trials import PAPER
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
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import NGramTask, add_alpha, sample
from marginlab.theory.ngrams.bayes import (
    bayes_risk,
    excess_risk,
    posterior_mean,
    stationary_start_mean,
    transition_counts,
)

CHAINS = "chain"


def bayes_claim(**fields: Any) -> Claim:
    return Claim(
        **{"paper": PAPER, "source": Source.DERIVED, "evidence": Evidence.NUMERICAL, "group": "ngrams/bayes"}
        | fields
    )


# ---- Additive smoothing is the posterior mean ----


def start_law(instance: Instance) -> Answer:
    """Whether the law of the first tokens depends on the rows."""
    start = instance.data["start"]
    return Answer(Status.HOLDS if start == "uniform" else Status.FAILS, f"the start is {start}")


FREE_START = Assumption(
    name="free start",
    statement="The law of the first $k$ tokens does not depend on the rows.",
    check=start_law,
)


def binary_chains(start: str, name: str) -> Any:
    """Two-state sequences with an integer alpha."""

    def instances(run: Run) -> Iterable[Instance]:
        config = {"bayes": name, "start": start}
        for seed in run.seeds(10):
            rng = np.random.default_rng(run.stream(config, seed))
            data = {
                "tokens": [int(v) for v in rng.integers(0, 2, 9)],
                "alpha": int(rng.integers(1, 4)),
                "start": start,
            }
            yield Instance(label=f"{start} start, seed {seed}", data=data, seed=seed, config=config)

    return instances


def _beta_integral(a: int, b: int) -> Fraction:
    """Integral of p^a (1 - p)^b over [0, 1]."""
    return Fraction(factorial(a) * factorial(b), factorial(a + b + 1))


def _row_integral(counts: tuple[int, int], alpha: int) -> Fraction:
    """Integral of the row's likelihood against p^(alpha-1) (1-p)^(alpha-1), by integer beta integrals."""
    return _beta_integral(counts[0] + alpha - 1, counts[1] + alpha - 1)


def bayes_by_integrals(instance: Instance) -> Interval:
    """p(next = 1 | sequence) as a ratio of evidences; for a stationary start by a two-dimensional rule."""
    x, alpha = instance.data["tokens"], instance.data["alpha"]
    counts = [[0, 0], [0, 0]]
    for a, b in pairwise(x):
        counts[a][b] += 1
    if instance.data["start"] == "stationary":
        value = stationary_start_mean(counts, x[0], alpha)[x[-1], 1]
        return rounded(value, operations=2**14)  # the rule's stated relative error, 1e-12
    longer = [list(row) for row in counts]
    longer[x[-1]][1] += 1
    ratio = Fraction(1)
    for before, after in zip(counts, longer, strict=True):
        ratio *= _row_integral((after[0], after[1]), alpha) / _row_integral((before[0], before[1]), alpha)
    return Interval.exact(float(ratio))  # both sides round one fraction once


def additive_fraction(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(N + alpha) / (N. + alpha V), rounded once."""
    x, alpha = instance.data["tokens"], Fraction(instance.data["alpha"]) * Fraction(constants["share"])
    after = [b for a, b in pairwise(x) if a == x[-1]]
    return Interval.exact(float((sum(after) + alpha) / (len(after) + 2 * alpha)))


additive_is_bayes = bayes_claim(
    id="ngrams/additive-is-bayes",
    title="Additive smoothing is the Bayes predictor under independent Dirichlet rows",
    where="Derived: additive smoothing is Bayes; erratum on the stationary start",
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"If the law of the first $k$ tokens does not depend on $P$ and $P_u \sim \mathrm{Dir}(\alpha 1)$: "
    r"$p(x_{T+1} = m | x_{1:T}) = \frac{N_{u_T}(m) + \alpha}{N_{u_T} + \alpha V}$.",
    constants={"share": 1.0},
    assumes=(FREE_START,),
    instances=binary_chains("uniform", "additive"),
    predict=additive_fraction,
    measure=bayes_by_integrals,
    controls=(
        Plant(name="half the alpha", constants={"share": 0.5}),
        Break(
            name="a start from the chain's stationary law",
            assumption="free start",
            instances=binary_chains("stationary", "additive"),
        ),
    ),
    notes=(
        "Ratio of evidences by integer beta integrals in exact fractions, V = 2, k = 1; both sides are one fraction, "
        "rounded once. A stationary start makes the first token tell something of all rows: integrated in two "
        "dimensions."
    ),
)


def sequences(run: Run) -> Iterable[Instance]:
    """Sequences over three symbols, two lags."""
    for alpha in (0.5, 1.0, 2.5):
        config = {"bayes": "rows", "alpha": alpha}
        for seed in run.seeds(4):
            rng = np.random.default_rng(run.stream(config, seed))
            yield Instance(
                label=f"alpha = {alpha:g}, seed {seed}",
                data=(rng.integers(0, 3, 30), alpha),
                seed=seed,
                config=config,
            )


def evidence_ratio(instance: Instance) -> Interval:
    """p(x, m) / p(x) for every m, by Dirichlet integrals of whole sequences (rising factorials in fractions)."""
    x, alpha = instance.data
    a = Fraction(alpha)

    def evidence(tokens: list[int]) -> Fraction:
        value = Fraction(1)
        for u in tuples(range(3), repeat=2):
            after = [tokens[s] for s in range(2, len(tokens)) if (tokens[s - 1], tokens[s - 2]) == u]
            for m in range(3):
                for i in range(after.count(m)):
                    value *= a + i
            for i in range(len(after)):
                value /= 3 * a + i
        return value

    tokens = [int(v) for v in x]
    base = evidence(tokens)
    return rounded([float(evidence([*tokens, m]) / base) for m in range(3)], operations=1)


def additive_row(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The package's additive smoothing."""
    x, alpha = instance.data
    return rounded(add_alpha(x, 3, 2, constants["share"] * alpha)[-1], operations=6)


additive_rows = bayes_claim(
    id="ngrams/additive-rows",
    title="The package's additive smoothing is the ratio of evidences of the sequence and its continuation",
    where="Derived: additive smoothing is Bayes",
    kind=Kind.IDENTITY,
    statement=r"$p(x_{1:T}) = c \prod_u \frac{\Gamma(\alpha V)}{\Gamma(\alpha V + N_u)} \prod_m \frac{\Gamma(\alpha + "
    r"N_u(m))}{\Gamma(\alpha)}$, and $p(x_{1:T}, m) / p(x_{1:T})$ is add-$\alpha$ (Krichevsky-Trofimov at 1/2, "
    r"Laplace at 1).",
    constants={"share": 1.0},
    instances=sequences,
    predict=additive_row,
    measure=evidence_ratio,
    controls=(Plant(name="a tenth more alpha", constants={"share": 1.1}),),
    depends_on=("ngrams/additive-is-bayes",),
)


# ---- The risk ----

RISK = {"n": 40_000, "V": 4, "T": 64}

RISK_TASK = NGramTask(vocab_size=4, order=2)


def risk_chains(run: Run) -> Any:
    """Chains of the independent prior with the counts of the query's row."""

    def make() -> Any:
        data = sample(RISK_TASK, RISK["n"], RISK["T"], run.stream({"risk": RISK}, 0))
        counts = transition_counts(data.tokens, RISK["V"], 2)
        code = np.asarray(data.tokens[:, -1]) + RISK["V"] * np.asarray(data.tokens[:, -2])
        return data.next_rows, counts[np.arange(RISK["n"]), code]

    return run.once("ngrams risk chains", make)


def risk_instance(run: Run) -> Iterable[Instance]:
    """The chains."""
    yield Instance(label="V = 4, k = 2, T = 64, alpha = 1", data=risk_chains(run), config=RISK)


def divergence_less_formula(instance: Instance) -> Sample:
    """KL of the true row from the posterior mean, less the risk given the data."""
    laws, counts = instance.data
    mean = posterior_mean(counts, 1.0)
    kl = np.sum(np.where(laws > 0, laws * np.log(np.where(laws > 0, laws, 1.0) / mean), 0.0), axis=-1)
    return Sample(values=kl - bayes_risk(counts, 1.0), unit=CHAINS)


def no_difference(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """0, or a planted share of the mean risk."""
    _, counts = instance.data
    return Interval.exact(constants["share"] * float(bayes_risk(counts, 1.0).mean()))


digamma_risk = bayes_claim(
    id="ngrams/digamma-risk",
    title="The Bayes risk in digamma functions is the mean divergence of the posterior mean",
    where="Derived: additive smoothing is Bayes",
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"$E[\mathrm{KL}(P_u \| \bar p)\,|\,x] = \sum_m \frac{a_m}{A} [\psi(a_m + 1) - \psi(A + 1) - "
    r"\ln\frac{a_m}{A}]$, $a = N_u + \alpha$, $A = \sum_m a_m$.",
    constants={"share": 0.0},
    judgements=1,
    unit=CHAINS,
    instances=risk_instance,
    predict=no_difference,
    measure=divergence_less_formula,
    controls=(Plant(name="a twentieth more risk", constants={"share": 0.05}),),
)


def risk_cells(run: Run) -> Iterable[Instance]:
    """Counts of a row over two symbols, with alpha."""
    del run
    for counts in ((0, 0), (3, 1), (40, 7), (1000, 0)):
        for alpha in (0.5, 1.0, 3.0):
            yield Instance(
                label=f"counts {counts}, alpha = {alpha:g}",
                data=(counts, alpha),
                config={"counts": counts, "alpha": alpha},
            )


def integrated_risk(instance: Instance) -> Interval:
    """E[KL(P || mean)] under a Beta posterior, by integration in balls."""
    import flint

    (n0, n1), alpha = instance.data
    with flint.ctx.workprec(120):
        a, b = flint.arb(n0) + flint.arb(alpha), flint.arb(n1) + flint.arb(alpha)
        mean = a / (a + b)
        # E[p ln p] = mean (psi(a+1) - psi(A+1)): from the derivative of the beta function in its first argument, by a
        # central difference with a remainder that the third derivative bounds.
        h = flint.arb(2) ** -40

        def log_beta(s: Any, t: Any) -> Any:
            return s.lgamma() + t.lgamma() - (s + t).lgamma()

        def expectation(s: Any, t: Any) -> Any:
            """E[p ln p] of Beta(s, t): d/de of E[p^(1 + e)] at 0."""
            up = (log_beta(s + 1 + h, t) - log_beta(s, t)).exp()
            down = (log_beta(s + 1 - h, t) - log_beta(s, t)).exp()
            third = flint.arb(0, 2)  # |E[p^(1+e) (ln p)^3]|: p |ln p|^3 is at most 27 e^-3 < 1.4 on [0, 1]
            return (up - down) / (2 * h) + h * h / 6 * third

        value = expectation(a, b) + expectation(b, a) - mean * mean.log() - (1 - mean) * (1 - mean).log()
        lo, hi = float(value.lower()), float(value.upper())
    return Interval(np.array(lo), np.array(hi), "ball arithmetic with a bounded remainder")


def digamma_formula(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The package's formula; its absolute error is stated as 1e-13 (V + 1) / A."""
    counts, alpha = instance.data
    value = float(bayes_risk(np.array(counts), alpha)) * constants["factor"]
    return Interval.around(
        value, 3e-13 / (sum(counts) + 2 * alpha), "rounding: the stated error of the digamma formula"
    )


risk_in_balls = bayes_claim(
    id="ngrams/digamma-risk-balls",
    title="The digamma formula of the Bayes risk, enclosed",
    where="Derived: additive smoothing is Bayes",
    kind=Kind.IDENTITY,
    evidence=Evidence.CERTIFIED,
    statement=r"For $V = 2$ the formula is $E[p \ln p] + E[(1-p) \ln(1-p)]$ under the Beta posterior, less the "
    r"entropy of its mean.",
    constants={"factor": 1.0},
    instances=risk_cells,
    predict=digamma_formula,
    measure=integrated_risk,
    controls=(Plant(name="a millionth more", constants={"factor": 1 + 1e-6}),),
)


def mismatched(run: Run) -> Iterable[Instance]:
    """Other alphas than the prior's."""
    for alpha in (0.25, 0.5, 2.0, 4.0):
        yield Instance(
            label=f"alpha = {alpha:g}", data=(*risk_chains(run), alpha), config=RISK | {"alpha": alpha}
        )


def extra_divergence(instance: Instance) -> Sample:
    """Divergence of add-alpha less that of the posterior mean, less KL(posterior mean || add-alpha)."""
    laws, counts, alpha = instance.data
    mean, other = posterior_mean(counts, 1.0), posterior_mean(counts, alpha)
    gain = np.sum(laws * np.log(mean / other), axis=-1)
    return Sample(values=gain - excess_risk(counts, 1.0, other), unit=CHAINS)


def share_of_excess(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """0, or a planted share of the mean excess."""
    _, counts, alpha = instance.data
    return Interval.exact(
        constants["share"] * float(excess_risk(counts, 1.0, posterior_mean(counts, alpha)).mean())
    )


wrong_alpha = bayes_claim(
    id="ngrams/excess-risk",
    title="What a wrong alpha costs is the divergence of the posterior mean from the estimate",
    where="Derived: additive smoothing is Bayes",
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"$E\,\mathrm{KL}(P \| \hat p) = E\,\mathrm{KL}(P \| \bar p) + E\,\mathrm{KL}(\bar p \| \hat p)$, so "
    r"that the posterior mean is optimal and every other estimate strictly worse.",
    constants={"share": 0.0},
    judgements=4,
    unit=CHAINS,
    instances=mismatched,
    predict=share_of_excess,
    measure=extra_divergence,
    controls=(Plant(name="half of the excess", constants={"share": 0.5}),),
    depends_on=("ngrams/digamma-risk",),
)


CLAIMS = (additive_is_bayes, additive_rows, digamma_risk, risk_in_balls, wrong_alpha)
