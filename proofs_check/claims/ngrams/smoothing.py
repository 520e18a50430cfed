"""Where soft matching is MacKay-Peto smoothing: with one lag, and with separated scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.limits import counted
from marginlab.proofs_check.claims.ngrams.models import ABOVE, RationalModel, drawn_rational, floats
from marginlab.proofs_check.claims.ngrams.trials import PAPER
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import mackay_peto, soft_match, soft_match_law
from marginlab.theory.ngrams.limits import scale_separation_law, single_lag_concentration


def smoothing_claim(**fields: Any) -> Claim:
    return Claim(
        **{
            "paper": PAPER,
            "source": Source.DERIVED,
            "evidence": Evidence.NUMERICAL,
            "group": "ngrams/smoothing",
        }
        | fields
    )


# ---- One lag ----


def one_lag_rational(run: Run) -> Iterable[Instance]:
    """Rational models of one lag with e^beta > 1 and a BOS mass."""
    config = {"one lag": "rational"}
    for seed in run.seeds(24):
        model = drawn_rational(run.stream(config, seed), order=1, vocab_size=3, length=14, odds=ABOVE[1:])
        yield Instance(label=f"seed {seed}", data=model, seed=seed, config=config)


def head_numerators(instance: Instance) -> Interval:
    """Numerators of the head with BOS."""
    return Interval.exact(floats(instance.data.numerators()))


def smoothing_numerators(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """gamma (K_1(m) + c p_0(m)), c = (n + e^kappa)/gamma, p_0 = (K_0(m) + e^kappa v(m))/(n + e^kappa)."""
    model: RationalModel = instance.data
    unigram, bigram = model.cumulative()
    gamma = model.odds[0] - 1
    n = sum(unigram)
    c = Fraction(constants["share"]) * (n + model.mass) / gamma
    parent = [(k + model.mass * b) / (n + model.mass) for k, b in zip(unigram, model.base, strict=True)]
    return Interval.exact(floats(gamma * (k + c * p) for k, p in zip(bigram, parent, strict=True)))


one_lag_exact = smoothing_claim(
    id="ngrams/one-lag-mackay-peto",
    title="One lag with BOS is MacKay-Peto smoothing, exactly",
    where="Derived: one lag is MacKay-Peto",
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$k = 1$: $T(m) = \frac{K_1(m) + c\,p_0(m)}{K_1 + c}$ with $c = \frac{n + e^\kappa}{e^\beta - 1}$ and "
    r"$p_0(m) = \frac{K_\varnothing(m) + e^\kappa v(m)}{n + e^\kappa}$.",
    constants={"share": 1.0},
    instances=one_lag_rational,
    predict=smoothing_numerators,
    measure=head_numerators,
    controls=(Plant(name="half the concentration", constants={"share": 0.5}),),
    notes="Numerators, multiplied by e^beta - 1; the denominators are their sums over the vocabulary.",
)


def one_lag_sequences(run: Run) -> Iterable[Instance]:
    """Sequences with a scale and a BOS weight."""
    config = {"one lag": "float"}
    for seed in run.seeds(24):
        rng = np.random.default_rng(run.stream(config, seed))
        V = int(rng.integers(2, 6))
        data = (rng.integers(0, V, 30), V, float(rng.uniform(0.1, 6)), float(rng.normal()))
        yield Instance(label=f"seed {seed}", data=data, seed=seed, config=config)


def head_rows(instance: Instance) -> Interval:
    """All rows of the head."""
    x, V, beta, kappa = instance.data
    return rounded(soft_match(x, V, [beta], kappa=kappa), operations=40, magnitude=2 + beta + abs(kappa))


def mackay_peto_rows(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """MacKay-Peto with the concentration that belongs to each row."""
    x, V, beta, kappa = instance.data
    rows = []
    for t in range(len(x) + 1):
        c = constants["share"] * single_lag_concentration(max(t - 1, 0), beta, kappa)
        rows.append(mackay_peto(x[:t], V, 1, [np.exp(kappa), float(c)])[-1])
    return rounded(rows, operations=40, magnitude=2 + beta + abs(kappa))


one_lag_rows = smoothing_claim(
    id="ngrams/one-lag-rows",
    title="The head with one lag equals the MacKay-Peto estimator on every row",
    where="Derived: one lag is MacKay-Peto",
    kind=Kind.IDENTITY,
    statement=r"The package's soft matching with $k = 1$ and BOS gives the rows of its MacKay-Peto smoothing with "
    r"concentrations $e^\kappa$ and $(n + e^\kappa)/(e^\beta - 1)$.",
    constants={"share": 1.0},
    instances=one_lag_sequences,
    predict=mackay_peto_rows,
    measure=head_rows,
    controls=(Plant(name="half the concentration", constants={"share": 0.5}),),
    depends_on=("ngrams/one-lag-mackay-peto",),
)


# ---- Scale separation ----


def separated_cases(run: Run) -> Iterable[Instance]:
    """Sequences of two to four lags, the scale of the last one, and what is left of kappa."""
    for label, _, V, K, N, config, seed in counted(12, "separation", orders=(2, 3, 4))(run):
        rng = np.random.default_rng(run.stream(config | {"scales": True}, seed))
        data = (V, K, N, float(rng.uniform(0.2, 4)), float(rng.normal()))
        yield Instance(label=label, data=data, seed=seed, config=config)


#: Scale of the lags that separate in the claim on the error.
LARGE = 12.0


def separation_distance(instance: Instance) -> Interval:
    """Total variation to the limit at beta_1 = ... = beta_{k-1} = 12."""
    _, K, N, beta, kappa = instance.data
    k = len(K).bit_length() - 1
    row = soft_match_law(K, np.append(np.full(k - 1, LARGE), beta), kappa=kappa + LARGE * (k - 1))
    distance = np.abs(row - scale_separation_law(N, beta, kappa)).sum() / 2
    return rounded(distance, operations=2 * len(K) + 20, magnitude=LARGE * k + 6.0)


def separation_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(e^-12 max(1, e^beta) n) / e^kappa': the lighter sets against BOS alone; slack for rounding beside it."""
    _, K, N, beta, kappa = instance.data
    k = len(K).bit_length() - 1
    lighter = N.sum() - N[-1].sum() - N[len(N) // 2 - 1].sum()
    value = constants["share"] * np.exp(-LARGE + beta - kappa) * lighter
    slack = rounded(0.0, operations=2 * len(K) + 20, magnitude=LARGE * k + 6.0)
    return Interval.around(value + 3 * slack.hi, slack.hi, slack.rule)


scale_separation = smoothing_claim(
    id="ngrams/scale-separation",
    title="Separated scales give the two-level MacKay-Peto rule",
    where="Derived: scale separation",
    kind=Kind.UPPER,
    statement=r"Let $\beta_1 = \dots = \beta_{k-1} = B$ and $\kappa - (k-1)B = \kappa'$. Then $TV(T, T_\infty) \le "
    r"e^{-B + \beta_k - \kappa'}\, \#\{s : M_s \not\supseteq [k-1]\}$, $T_\infty = \frac{N_{[k]}(m) + "
    r"c\,p'(m)}{N_{[k]} + c}$, $c = \frac{K_{[k-1]} + e^{\kappa'}}{e^{\beta_k} - 1}$, $p' = \frac{K_{[k-1]}(m) + "
    r"e^{\kappa'}/V}{K_{[k-1]} + e^{\kappa'}}$.",
    constants={"share": 1.0},
    instances=separated_cases,
    predict=separation_bound,
    measure=separation_distance,
    controls=(Plant(name="a five-thousandth of it", constants={"share": 2e-4}),),
    notes="A set that lacks one of the first lags has weight e^(-B + beta_k) at most beside a full match of them.",
)


def separated_row(instance: Instance) -> Interval:
    """The row at B = 60."""
    _, K, _, beta, kappa = instance.data
    k = len(K).bit_length() - 1
    row = soft_match_law(K, np.append(np.full(k - 1, 60.0), beta), kappa=kappa + 60.0 * (k - 1))
    return rounded(row, operations=2 * len(K) + 20, magnitude=60.0 * k + 6)


def two_level_rule(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The limit, with the concentration times a constant."""
    V, K, N, beta, kappa = instance.data
    del K
    full, suffix = N[-1], N[-1] + N[len(N) // 2 - 1]
    mass = np.exp(kappa)
    c = constants["share"] * (suffix.sum() + mass) / np.expm1(beta)
    parent = (suffix + mass / V) / (suffix.sum() + mass)
    return rounded((full + c * parent) / (full.sum() + c), operations=30, magnitude=2.0)


separation_limit = smoothing_claim(
    id="ngrams/scale-separation-limit",
    title="The limit of separated scales is two-level MacKay-Peto with a concentration that grows with the suffix",
    where="Derived: scale separation",
    kind=Kind.IDENTITY,
    statement=r"At $B = 60$ the output is $\frac{N_{[k]}(m) + c\,p'(m)}{N_{[k]} + c}$ with $c = (K_{[k-1]} + "
    r"e^{\kappa'}) / (e^{\beta_k} - 1)$: in proportion to the suffix's count, where the Bayes rule has a constant.",
    constants={"share": 1.0},
    instances=separated_cases,
    predict=two_level_rule,
    measure=separated_row,
    controls=(Plant(name="a tenth more concentration", constants={"share": 1.1}),),
    depends_on=("ngrams/scale-separation",),
)


CLAIMS = (one_lag_exact, one_lag_rows, scale_separation, separation_limit)
