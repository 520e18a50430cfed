"""Claims on n-gram induction heads (D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800)."""

from __future__ import annotations

from marginlab.proofs_check.claims.ngrams import (
    additive,
    bayes,
    comparisons,
    dictionary,
    estimator,
    finite_scale,
    hierarchical,
    limits,
    mixture,
    network,
    scales,
    smoothing,
    tables,
    task,
)
from marginlab.proofs_check.engine.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    *task.CLAIMS,
    *network.CLAIMS,
    *finite_scale.CLAIMS,
    *mixture.CLAIMS,
    *estimator.CLAIMS,
    *limits.CLAIMS,
    *additive.CLAIMS,
    *smoothing.CLAIMS,
    *dictionary.CLAIMS,
    *bayes.CLAIMS,
    *hierarchical.CLAIMS,
    *scales.CLAIMS,
    *comparisons.CLAIMS,
    *tables.CLAIMS,
)
