"""Scores of attention heads at initialisation, where attention is uniform over what the mask allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Mend, Plant, Source, Verdict
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.theory.match_copy.head_scores import uniform_scores

NAMES = ("PTH", "IH-MC", "IH-Repeat")


def settings(run: Run) -> Iterable[Instance]:
    """Context lengths of the paper, with K = T, and the smallest one."""
    del run
    for T in (2, 8, 16):
        yield Instance(label=f"T = K = {T}", data=T, config={"T": T, "K": T, "diagonal": True})


def causal_softmax(length: int) -> list[list[Fraction]]:
    """Softmax of zero scores under a causal mask that keeps the diagonal, as exact rationals."""
    rows = []
    for t in range(length):
        allowed = [Fraction(int(s <= t)) for s in range(length)]  # exp(0) = 1 where the mask lets through
        total = sum(allowed, Fraction(0))
        rows.append([x / total for x in allowed])
    return rows


def scores_of_the_map(instance: Instance) -> Interval:
    """PTH, IH-MC (for every match: all are equal) and IH-Repeat, summed entry by entry as they are defined."""
    T = K = instance.data
    once, twice = causal_softmax(T + 1), causal_softmax(2 * K)
    previous = sum((once[t][t - 1] for t in range(1, T + 1)), Fraction(0)) / T
    induction = {once[T][match + 1] for match in range(T - 1)}
    assert len(induction) == 1
    repeat = sum((twice[K + t][t + 1] for t in range(K)), Fraction(0)) / K
    return _rational([previous, *induction, repeat])


def closed_forms(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The closed forms for a mask with or without its diagonal."""
    scores = uniform_scores(instance.data, instance.data, diagonal=bool(constants["diagonal"]))
    return _rational([scores[name] for name in NAMES])


def _rational(values: list[Fraction]) -> Interval:
    floats = np.array([float(v) for v in values])
    return Interval.around(floats, np.spacing(floats), "rounding: a rational to the nearest float64")


_SHARED: dict[str, Any] = {
    "paper": PAPER,
    "where": "Section A.3",
    "kind": Kind.IDENTITY,
    "evidence": Evidence.EXACT,
    "group": "match-copy/task",
    "instances": settings,
    "predict": closed_forms,
    "measure": scores_of_the_map,
}

initial_scores_published = Claim(
    **_SHARED,
    id="match-copy/erratum-initial-scores",
    title="At initialisation the scores are H_T/T, 1/T and (H_{2K-1} - H_{K-1})/K",
    source=Source.REPORTED,
    statement=r"At initialisation, where attention is about uniform, PTH $= H_T / T$, IH-MC $= 1/T$ and IH-Repeat $= "
    r"(H_{2K-1} - H_{K-1}) / K$.",
    constants={"diagonal": False},
    expect=Verdict.FAIL,
    erratum=(
        r"The values assume that position $t$ attends to $t - 1$ others. The masks of the models in question keep the "
        r"diagonal, so that weights are $1/t$: PTH $= (H_{T+1} - 1)/T$, IH-MC $= 1/(T+1)$, IH-Repeat $= (H_{2K} - "
        r"H_K)/K$."
    ),
    controls=(Mend(name="a mask that keeps the diagonal", constants={"diagonal": True}),),
    notes="The instance is uniform causal attention with the diagonal, built entry by entry in exact rationals.",
)

initial_scores = Claim(
    **_SHARED,
    id="match-copy/initial-scores",
    title="Scores of uniform causal attention with the diagonal",
    source=Source.DERIVED,
    statement=r"PTH $= (H_{T+1} - 1)/T$, IH-MC $= 1/(T+1)$ and IH-Repeat $= (H_{2K} - H_K)/K$.",
    constants={"diagonal": True},
    controls=(Plant(name="a mask without its diagonal", constants={"diagonal": False}),),
)

CLAIMS = (initial_scores_published, initial_scores)
