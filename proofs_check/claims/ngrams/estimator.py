"""The estimator itself: all rows in one pass, back-off without a rule, a law for scales of any sign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.ngrams.mixture import (
    mixture_claim,
    mixture_weights,
    negative_scales,
    package_law,
)
from marginlab.proofs_check.claims.ngrams.models import ABOVE, Model, RationalModel, models, rational_models
from marginlab.proofs_check.engine.claim import CannotForm, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.ngrams import soft_match, soft_match_definition
from marginlab.theory.ngrams.soft_matching import log_subset_weights

# ---- Back-off without a rule ----


def unseen_contexts(run: Run) -> Iterable[Instance]:
    """Models whose full context has not occurred, although others have."""
    for instance in rational_models(8, ABOVE, "unseen")(run):
        model: RationalModel = instance.data
        K = model.cumulative()
        if sum(K[-1]) == 0 and sum(K[0]) > 0:
            yield instance


def without_full_context(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The mixture with the full context left out (planted: the empty one)."""
    model: RationalModel = instance.data
    parts, K = mixture_weights(model)
    left = [S for S in range(len(K)) if constants["left_out"] % len(K) != S]
    norm = model.mass + sum(parts[S] for S in left)
    if not norm:
        raise CannotForm("no weight is left")
    law = [model.mass * b / norm for b in model.base]
    for S in left:
        if total := sum(K[S]):
            law = [v + parts[S] / norm * Fraction(c, total) for v, c in zip(law, K[S], strict=True)]
    return rounded([float(v) for v in law], operations=1)


automatic_back_off = mixture_claim(
    id="ngrams/automatic-back-off",
    title="Where the full context has not occurred its weight is zero: back-off without a rule",
    where="Corollary 4.2",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.NUMERICAL,
    statement=r"If $K_{[k]} = 0$ the output is the mixture over the other sets of lags alone.",
    constants={"left_out": -1},
    instances=unseen_contexts,
    predict=without_full_context,
    measure=package_law,
    controls=(Plant(name="the unigram left out", constants={"left_out": 0}),),
)


# ---- The package's own function ----


def one_pass(instance: Instance) -> Interval:
    """All rows from one pass over the count tables."""
    model: Model = instance.data
    rows = soft_match(model.tokens, model.vocab_size, model.beta, **model.how())
    return rounded(rows, operations=len(model.tokens) + 20, magnitude=1 + model.size)


def by_positions(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """All rows by the softmax over positions."""
    model: Model = instance.data
    scale = constants["scale"]
    rows = soft_match_definition(model.tokens, model.vocab_size, scale * model.beta, **model.how())
    return rounded(rows, operations=len(model.tokens) + 20, magnitude=1 + model.size)


def of_all_sizes(run: Run) -> Iterable[Instance]:
    """Scales of ordinary size and of hundreds, of both signs."""
    for scale in (0.1, 2.0, 300.0):
        for instance in models(10, f"one pass, scale {scale:g}", most=40, scale=scale)(run):
            yield Instance(
                label=f"scale {scale:g}, {instance.label}",
                data=instance.data,
                seed=instance.seed,
                config=instance.config,
            )


overlap_form = mixture_claim(
    id="ngrams/overlap-weights",
    title="Contributions of exact and partial matches are weighted exponentially by their overlap",
    where="Eq. (8); abstract",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.NUMERICAL,
    statement=r"$T(x)(m) \propto e^\kappa v(m) + \sum_M e^{|\beta|_M} N_M(m)$ at every row, from one pass over $2^k$ "
    r"count tables, for scales of both signs with $\|\beta\|_1$ up to a thousand.",
    constants={"scale": 1.0},
    instances=of_all_sizes,
    predict=by_positions,
    measure=one_pass,
    controls=(Plant(name="scales a tenth larger", constants={"scale": 1.1}),),
)


def row_sums(instance: Instance) -> Interval:
    """Sum and smallest entry of the last row, scales below zero."""
    model: RationalModel = instance.data
    beta = np.log(np.array([float(o) for o in model.odds]))
    row = soft_match(model.tokens, model.vocab_size, beta, kappa=0.0)[-1]
    return rounded([row.sum(), min(float(row.min()), 0.0)], operations=40)


def sum_and_sign(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1 and 0; or, planted, what the mixture without its negative weights would sum to."""
    model: RationalModel = instance.data
    if constants["signed"]:
        return Interval.exact([1.0, 0.0])
    gamma = np.exp(log_subset_weights(np.log(np.array([float(1 / o) for o in model.odds]))))
    totals = np.array([sum(c) for c in model.cumulative()])
    return Interval.exact([float(1 + gamma @ totals), 0.0])


signed_law = mixture_claim(
    id="ngrams/negative-scales-law",
    title="For negative scales the output is still a law on the vocabulary",
    where="Erratum on negative lag weights",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.NUMERICAL,
    statement=r"For $\beta_l < 0$, (8) is non-negative and sums to 1, although some mixture weights are negative.",
    constants={"signed": True},
    instances=negative_scales,
    predict=sum_and_sign,
    measure=row_sums,
    controls=(Plant(name="absolute weights", constants={"signed": False}),),
    depends_on=("ngrams/convex-mixture",),
)


CLAIMS = (automatic_back_off, overlap_form, signed_law)
