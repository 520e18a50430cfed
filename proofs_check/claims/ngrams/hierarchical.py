"""The Bayes predictor under the hierarchical prior: exact by table counts, and by Gibbs sampling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.bayes import CHAINS, bayes_claim
from marginlab.proofs_check.engine.claim import Evidence, Instance, Kind, Plant
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import NGramTask, sample
from marginlab.theory.ngrams.gibbs import gibbs_mean
from marginlab.theory.ngrams.hierarchical import posterior_mean_exact, sibling_posterior


def families(run: Run) -> Iterable[Instance]:
    """Counts of two sibling rows over two symbols, with integer concentrations."""
    config = {"siblings": True}
    for seed in run.seeds(12):
        rng = np.random.default_rng(run.stream(config, seed))
        data = (
            rng.integers(0, 7, (2, 2)),
            int(rng.integers(2)),
            int(rng.integers(1, 4)),
            int(rng.integers(1, 6)),
        )
        yield Instance(label=f"seed {seed}", data=data, seed=seed, config=config)


def sibling_row(instance: Instance) -> Interval:
    """The package's posterior mean, by sums over table counts."""
    counts, row, alpha, c = instance.data
    return rounded(sibling_posterior(counts, row, float(alpha), float(c)), operations=2000)


def polynomial_integral(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """E[(n_bm + c p(m)) / (n_b + c)] with the parent's law integrated as a polynomial in fractions."""
    counts, row, alpha, c = instance.data
    c = Fraction(c) * Fraction(constants["share"])
    polynomial = [Fraction(1)]  # coefficients in p; the factors are rising factorials of c p and of c (1 - p)
    for b in range(2):
        for i in range(int(counts[b][0])):
            polynomial = _times(polynomial, [Fraction(i), c])
        for i in range(int(counts[b][1])):
            polynomial = _times(polynomial, [c + i, -c])
    prior = [Fraction((-1) ** j * comb(alpha - 1, j)) for j in range(alpha)]
    polynomial = [Fraction(0)] * (alpha - 1) + _times(polynomial, prior)
    norm = sum(v / (j + 1) for j, v in enumerate(polynomial))
    mean = sum(v / (j + 2) for j, v in enumerate(polynomial)) / norm
    n = [int(v) for v in counts[row]]
    law = [(n[0] + c * mean) / (sum(n) + c), (n[1] + c * (1 - mean)) / (sum(n) + c)]
    return rounded([float(v) for v in law], operations=1)


def _times(p: list[Fraction], q: list[Fraction]) -> list[Fraction]:
    out = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            out[i + j] += a * b
    return out


hierarchical_exact = bayes_claim(
    id="ngrams/hierarchical-exact",
    title="The exact predictor under the hierarchical prior, by table counts and by polynomials",
    where="Derived: hierarchical Bayes predictor",
    kind=Kind.IDENTITY,
    statement=r"$r_0 = k - 1$: the sum over table counts $\prod_b \frac{\Gamma(c)}{\Gamma(c + n_b)} \prod_m "
    r"s(n_{bm}, t_{bm}) c^{t_{bm}}$ with the parent's Dirichlet-multinomial gives the posterior mean of the row.",
    constants={"share": 1.0},
    instances=families,
    predict=polynomial_integral,
    measure=sibling_row,
    controls=(Plant(name="twice the concentration", constants={"share": 2.0}),),
    notes="V = 2: the parent's likelihood is a polynomial in its probability, integrated in exact fractions.",
)


def gibbs_chains(run: Run) -> Iterable[Instance]:
    """Chains with r_0 = k - 1, where the predictor is known exactly."""
    config = {"gibbs": True, "V": 3, "T": 25}
    task = NGramTask(vocab_size=3, order=2, prior="hierarchical", base_order=1, concentrations=(4.0,))
    first, second = run.stream(config, 0).spawn(2)
    tokens = sample(task, 400, 25, first).tokens
    exact = posterior_mean_exact(tokens, 3, 2, 1.0, 4.0)
    drawn = gibbs_mean(task, tokens, sweeps=1_060, burn_in=60, seed=second)[0]
    for m in range(3):
        yield Instance(label=f"symbol {m}", data=(drawn[:, m], exact[:, m]), config=config | {"symbol": m})


def gibbs_difference(instance: Instance) -> Sample:
    """Gibbs less exact, weighted by the sign of exact - 1/3: a bias towards uniform would show."""
    drawn, exact = instance.data
    return Sample(values=(drawn - exact) * np.sign(exact - 1 / 3), unit=CHAINS)


def gibbs_bias(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """0, or planted the difference to the exact law with a tenth of the uniform law mixed in."""
    _, exact = instance.data
    return Interval.exact(-constants["mixed"] * float(np.abs(exact - 1 / 3).mean()))


gibbs_agrees = bayes_claim(
    id="ngrams/hierarchical-gibbs",
    title="Blocked Gibbs sampling agrees with the exact predictor",
    where="Derived: hierarchical Bayes predictor",
    kind=Kind.IDENTITY,
    evidence=Evidence.STATISTICAL,
    statement=r"$t_{um} | P \sim \sum_{i < n} \mathrm{Bern}(c P(m) / (c P(m) + i))$, then rows from their Dirichlet "
    r"laws: the averages of $(n_r + c_r p_{r-1}) / (n_r + c_r)$ have the exact posterior mean.",
    constants={"mixed": 0.0},
    judgements=3,
    unit=CHAINS,
    instances=gibbs_chains,
    predict=gibbs_bias,
    measure=gibbs_difference,
    controls=(Plant(name="a tenth of the uniform law", constants={"mixed": 0.1}),),
    depends_on=("ngrams/hierarchical-exact",),
)

CLAIMS = (hierarchical_exact, gibbs_agrees)
