"""Lemma 4.1 and Corollary 4.2: soft matching as a mixture over cumulative counts, per lag and with BOS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.models import (
    ABOVE,
    BELOW,
    RationalModel,
    floats,
    product,
    rational_models,
)
from marginlab.proofs_check.claims.ngrams.trials import PAPER
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
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import soft_match


def mixture_claim(**fields: Any) -> Claim:
    return Claim(
        **{"paper": PAPER, "group": "ngrams/mixture", "instances": rational_models(6, ABOVE, "above")}
        | fields
    )


# ---- Lemma 4.1 by computer algebra ----


def symbolic_orders(run: Run) -> Iterable[Instance]:
    """k = 1..4, with one gamma for all lags and with one per lag."""
    del run
    for k in (1, 2, 3, 4):
        for tied in (True, False):
            name = "one gamma" if tied else "one gamma per lag"
            yield Instance(label=f"k = {k}, {name}", data=(k, tied), config={"k": k, "tied": tied})


def _symbols(k: int, tied: bool) -> tuple[list[Any], list[Any]]:
    import sympy

    gamma = [sympy.Symbol("g")] * k if tied else list(sympy.symbols(f"g1:{k + 1}"))
    return gamma, list(sympy.symbols(f"N0:{2**k}"))


def _coefficients(expression: Any, k: int, tied: bool) -> Interval:
    """Coefficients of a polynomial in gamma and N over all monomials of the statement, in one order."""
    import sympy

    gamma, N = _symbols(k, tied)
    unknowns = list(dict.fromkeys(gamma)) + N
    poly = sympy.Poly(sympy.expand(expression), *unknowns)
    degrees = range(k + 1) if tied else range(2**k)
    found = []
    for d in degrees:
        power = (d,) if tied else tuple(d >> i & 1 for i in range(k))
        for M in range(2**k):
            monomial = power + tuple(int(i == M) for i in range(2**k))
            found.append(
                float(poly.coeff_monomial(sympy.prod(u**e for u, e in zip(unknowns, monomial, strict=True))))
            )
    # Nothing may hide in another monomial.
    rest = float(len(poly.terms()) - np.count_nonzero(found))
    return Interval.exact([*found, rest])


def overlap_side(instance: Instance) -> Interval:
    """sum over M of e^{|beta|_M} N_M, with e^beta_l = 1 + gamma_l."""
    k, tied = instance.data
    gamma, N = _symbols(k, tied)
    return _coefficients(
        sum(_product(1 + gamma[i] for i in range(k) if M >> i & 1) * N[M] for M in range(2**k)), k, tied
    )


def cumulative_side(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """sum over S of gamma_S K_S, K_S the sum of N_M over the M that contain S (or, planted, that meet it)."""
    k, tied = instance.data
    gamma, N = _symbols(k, tied)

    def counted(S: int, M: int) -> bool:
        return M & S == S if constants["containing"] else S == 0 or bool(M & S)

    total = 0
    for S in range(2**k):
        K = sum(N[M] for M in range(2**k) if counted(S, M))
        total += _product(constants["factor"] * gamma[i] for i in range(k) if S >> i & 1) * K
    return _coefficients(total, k, tied)


def _product(values: Iterable[Any]) -> Any:
    result: Any = 1
    for v in values:
        result = result * v
    return result


lemma_symbolic = mixture_claim(
    id="ngrams/cumulative-form",
    title="Soft matching interpolates over cumulative counts, symbolically",
    where="Lemma 4.1; eq. (12)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.SYMBOLIC,
    statement=r"With $\gamma_l = e^{\beta_l} - 1$: $\sum_M e^{|\beta|_M} N_M = \sum_S \gamma_S K_S$, "
    r"$\gamma_S = \prod_{l \in S} \gamma_l$, for $k \le 4$, as polynomials; with one $\gamma$ this is (12).",
    constants={"factor": 1, "containing": True},
    instances=symbolic_orders,
    predict=cumulative_side,
    measure=overlap_side,
    controls=(
        Plant(name="the wrong sign of gamma", constants={"factor": -1}),
        Plant(name="counts of positions that agree somewhere", constants={"containing": False}),
    ),
    notes="Holds for numerator and denominator alike, N_M standing for N_M(m) or its sum over m.",
)


# ---- On sequences, in exact rationals ----


def exact_numerators(instance: Instance) -> Interval:
    """e^kappa base + the sum over positions, by listing them."""
    model: RationalModel = instance.data
    return Interval.exact(floats(model.numerators()))


def exact_mixture(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """e^kappa base + sum over S of gamma_S K_S."""
    model: RationalModel = instance.data
    K, sums = model.cumulative(), [model.mass * b for b in model.base]
    for S, counts in enumerate(K):
        gamma = product(model.odds[i] - Fraction(constants["one"]) for i in range(model.order) if S >> i & 1)
        sums = [v + gamma * c for v, c in zip(sums, counts, strict=True)]
    return Interval.exact(floats(sums))


per_lag_exact = mixture_claim(
    id="ngrams/per-lag-mixture",
    title="The identity of Lemma 4.1 for one weight per lag and any value of BOS",
    where="Lemma 4.1; derived: lag weights and BOS in the mixture",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$e^\kappa v(m) + \sum_{s} e^{|\beta|_{M_s}} 1[x_s = m] = e^\kappa v(m) + \sum_S \gamma_S K_S(m)$ on "
    r"drawn sequences, $k \le 4$, rational $e^{\beta_l}$ and $e^\kappa$.",
    constants={"one": 1.0},
    predict=exact_mixture,
    measure=exact_numerators,
    controls=(Plant(name="gamma = e^beta", constants={"one": 0.0}),),
    depends_on=("ngrams/cumulative-form",),
)


def mixture_weights(model: RationalModel) -> tuple[list[Fraction], list[list[int]]]:
    """gamma_S K_S for each S, and K_S(m)."""
    K = model.cumulative()
    gamma = [product(model.odds[i] - 1 for i in range(model.order) if S >> i & 1) for S in range(len(K))]
    return [g * sum(c) for g, c in zip(gamma, K, strict=True)], K


def package_law(instance: Instance) -> Interval:
    """The last row of the package's one-pass estimator."""
    model: RationalModel = instance.data
    beta = np.log(np.array([float(o) for o in model.odds]))
    kappa = float(np.log(float(model.mass))) if model.mass else -np.inf
    if not model.mass and not any(sum(row) for row in model.cumulative()):
        raise CannotForm("there is neither evidence nor BOS")
    row = soft_match(model.tokens, model.vocab_size, beta, kappa=kappa, base=[float(b) for b in model.base])[
        -1
    ]
    return rounded(
        row, operations=20 + 2**model.order, magnitude=1 + float(np.abs(beta).sum()) + abs(max(kappa, -9.0))
    )


def mixture_of_estimates(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """lambda_BOS base + sum over S of lambda_S p_hat_S, lambda proportional to gamma_S K_S."""
    model: RationalModel = instance.data
    parts, K = mixture_weights(model)
    parts = [p * Fraction(constants["order_factor"]) ** S.bit_count() for S, p in enumerate(parts)]
    norm = model.mass + sum(parts)
    law = [model.mass * b / norm for b in model.base]
    for part, counts in zip(parts, K, strict=True):
        if total := sum(counts):
            law = [v + part / norm * Fraction(c, total) for v, c in zip(law, counts, strict=True)]
    # Rounded once when a fraction becomes a float.
    return rounded([float(v) for v in law], operations=1)


mixture_form = mixture_claim(
    id="ngrams/mixture-form",
    title="The output is a mixture of the estimates of all sets of lags, with weights from the realised counts",
    where="Corollary 4.2",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.NUMERICAL,
    statement=r"$T(x) = \lambda_{BOS}\, v + \sum_S \lambda_S(x)\, \hat p_S$ with $\hat p_S = K_S(\cdot)/K_S$, "
    r"$\lambda_S = \gamma_S K_S / Z$, $\lambda_{BOS} = e^\kappa / Z$, $Z = e^\kappa + \sum_S \gamma_S K_S$.",
    constants={"order_factor": 1.0},
    predict=mixture_of_estimates,
    measure=package_law,
    controls=(Plant(name="twice the weight for each lag", constants={"order_factor": 2.0}),),
    depends_on=("ngrams/per-lag-mixture",),
    notes="The mixture in exact rationals against the package's estimator. The paper's words are not known to us.",
)


def sign_of_scales(instance: Instance) -> Answer:
    """Whether every e^beta_l is at least 1."""
    model: RationalModel = instance.data
    least = min(model.odds)
    return Answer(Status.HOLDS if least >= 1 else Status.FAILS, f"smallest e^beta_l = {least}", float(least))


NON_NEGATIVE = Assumption(name="beta >= 0", statement=r"$\beta_l \ge 0$ for all lags.", check=sign_of_scales)


def smallest_weight(instance: Instance) -> Interval:
    """min over S of gamma_S K_S: the sign of the smallest mixture weight."""
    parts, _ = mixture_weights(instance.data)
    return Interval.exact(floats([min(parts)]))


def least(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound."""
    del instance
    return Interval.exact([constants["least"]])


def negative_scales(run: Run) -> Iterable[Instance]:
    """Models with e^beta below one whose sequence has a match at that lag."""
    for instance in rational_models(4, BELOW, "below")(run):
        if min(mixture_weights(instance.data)[0]) < 0:
            yield instance


convex_mixture = mixture_claim(
    id="ngrams/convex-mixture",
    title="The mixture is convex for non-negative scales, and only then",
    where="Corollary 4.2; erratum on negative lag weights",
    source=Source.DERIVED,
    kind=Kind.LOWER,
    evidence=Evidence.EXACT,
    statement=r"If $\beta_l \ge 0$ for all $l$, every weight satisfies $\lambda_S \ge 0$ (and they sum to 1): a convex "
    r"mixture.",
    constants={"least": 0.0},
    assumes=(NON_NEGATIVE,),
    predict=least,
    measure=smallest_weight,
    controls=(
        Break(name="negative scales", assumption="beta >= 0", instances=negative_scales),
        Plant(name="weights of at least one", constants={"least": 1e6}),
    ),
    depends_on=("ngrams/mixture-form",),
)


def grouped(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Mixture by orders: Lambda_i proportional to gamma^i sum K_S over |S| = i, for one scale (the first lag's)."""
    model: RationalModel = instance.data
    K, gamma = model.cumulative(), model.odds[0] - 1
    sums = [model.mass * b for b in model.base]
    for i in range(model.order + 1):
        pooled = [sum(K[S][m] for S in range(len(K)) if S.bit_count() == i) for m in range(model.vocab_size)]
        weight = gamma ** (i + constants["extra"])
        sums = [v + weight * c for v, c in zip(sums, pooled, strict=True)]
    return Interval.exact(floats(sums))


def tied_numerators(instance: Instance) -> Interval:
    """The sum over positions with one scale for all lags."""
    model: RationalModel = instance.data
    tied = RationalModel(
        tokens=model.tokens,
        vocab_size=model.vocab_size,
        odds=(model.odds[0],) * model.order,
        mass=model.mass,
        base=model.base,
    )
    return Interval.exact(floats(tied.numerators()))


by_order = mixture_claim(
    id="ngrams/mixture-by-order",
    title="With one scale the mixture groups by order: a data-dependent Jelinek-Mercer scheme",
    where="Corollary 4.2; abstract",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"With $\gamma = e^\beta - 1$: $T = \sum_{i=0}^k \Lambda_i(x) q_i$, $\Lambda_i \propto \gamma^i "
    r"\sum_{|M| = i} K_M$, $q_i \propto \sum_{|M| = i} K_M(\cdot)$, contiguous or not.",
    constants={"extra": 0},
    predict=grouped,
    measure=tied_numerators,
    controls=(Plant(name="one power of gamma more", constants={"extra": 1}),),
)


CLAIMS = (lemma_symbolic, per_lag_exact, mixture_form, convex_mixture, by_order)
