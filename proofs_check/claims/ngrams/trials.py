"""Trials of estimators: parameters fitted on one set of chains, divergences to the true law on another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginlab.proofs_check.engine.context import Run
from marginlab.theory.markov import context_codes
from marginlab.theory.ngrams import (
    NGramTask,
    SoftMatchFit,
    batch_counts,
    fit_smoothing,
    fit_soft_match,
    overlap_counts,
    sample,
    soft_match_law,
)
from marginlab.theory.ngrams.bayes import posterior_mean
from marginlab.theory.ngrams.gibbs import gibbs_mean
from marginlab.theory.ngrams.hierarchical import posterior_mean_exact
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics, add_alpha_law, ml_law
from marginlab.theory.ngrams.tuning import SmoothingFit
from marginlab.theory.validation import Float, Int

PAPER = "dangelo2026ngrams"

#: Unit of replication: test chains, with the parameters as they were fitted.
CHAINS = "chain, given the fitted parameters"

#: Share of the uniform law that is mixed into every estimate before it is scored, so that a zero costs a finite sum.
FLOOR = 1e-4

#: Soft matching: one scale or one per lag, without or with BOS.
SOFT = {
    "soft matching, one scale": {"tied": True, "bos": False},
    "soft matching": {"tied": False, "bos": False},
    "soft matching, one scale, BOS": {"tied": True, "bos": True},
    "soft matching, BOS": {"tied": False, "bos": True},
}
ONE, PER_LAG, ONE_BOS, PER_LAG_BOS = SOFT

SMOOTHED = (
    "jelinek-mercer",
    "bucketed jelinek-mercer",
    "katz",
    "absolute discounting",
    "kneser-ney",
    "mackay-peto",
)

#: Everything that a table shows, in its order.
ESTIMATORS = (
    "maximum likelihood",
    "add-1/2",
    "add-1",
    "best add-alpha",
    *SMOOTHED,
    *SOFT,
    "Bayes",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chains:
    """Many chains with their counts at the last row."""

    tokens: Int
    laws: Float
    subsets: Any
    statistics: ContextStatistics

    @classmethod
    def drawn(cls, task: NGramTask, n: int, length: int, seed: np.random.SeedSequence) -> Chains:
        data = sample(task, n, length, seed)
        V, k = task.vocab_size, task.order
        subsets, _ = batch_counts(data.tokens, V, k)
        suffixes, customers = batch_counts(data.tokens, V, k, contexts="suffixes")
        return cls(
            tokens=data.tokens,
            laws=data.next_rows,
            subsets=subsets[:, 0],
            statistics=ContextStatistics.of_rows(suffixes[:, 0], customers[:, 0]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """A task, chains to fit on and chains to score on; estimates are made when they are asked for.

    Attributes
    ----------
    task : NGramTask
    length : int
    fitted, judged : Chains
    level : float
        Error level of one statistical judgement.
    """

    task: NGramTask
    length: int
    fitted: Chains
    judged: Chains
    level: float
    bayes_seed: np.random.SeedSequence
    known: dict[str, Any] = field(default_factory=dict)

    def fit(self, name: str) -> SoftMatchFit | SmoothingFit:
        """Parameters from the chains to fit on."""
        key = f"fit of {name}"
        if key not in self.known:
            V = self.task.vocab_size
            if name in SOFT:
                N = overlap_counts(self.fitted.subsets)
                self.known[key] = fit_soft_match(N, self.fitted.laws, vocab_size=V, floor=FLOOR, **SOFT[name])
            else:
                self.known[key] = fit_smoothing(name, self.fitted.statistics, self.fitted.laws, floor=FLOOR)
        return self.known[key]

    def law(self, name: str) -> Float:
        """Estimated laws of the judged chains' next tokens, (n, V)."""
        key = f"law of {name}"
        if key not in self.known:
            self.known[key] = self._law(name)
        return self.known[key]

    def _law(self, name: str) -> Float:
        stats = self.judged.statistics
        if name == "maximum likelihood":
            return ml_law(stats)
        if name in ("add-1/2", "add-1"):
            return add_alpha_law(stats, 0.5 if name == "add-1/2" else 1.0)
        if (
            name == "best add-alpha"
        ):  # chosen on the judged chains themselves: the strongest of all fixed ones
            best = fit_smoothing("add-alpha", stats, self.judged.laws, floor=FLOOR)
            self.known["best alpha"] = best.parameters["alpha"]
            return best.law(stats)
        if name == "Bayes":
            return self._bayes()
        fit = self.fit(name)
        if isinstance(fit, SoftMatchFit):
            return soft_match_law(self.judged.subsets, fit.beta, kappa=fit.kappa)
        return fit.law(stats)

    def _bayes(self) -> Float:
        task, tokens = self.task, self.judged.tokens
        if task.prior == "independent":
            return posterior_mean(self.judged.statistics.count[..., -1, :].astype(np.int64), task.alpha)
        if task.base_order == task.order - 1:
            (c,) = task.concentrations
            return posterior_mean_exact(tokens, task.vocab_size, task.order, task.alpha, c)
        return gibbs_mean(task, tokens, seed=self.bayes_seed)[0]

    def divergence(self, name: str) -> Float:
        """KL of the true law from the estimate with the floor mixed in, in nats, for each judged chain."""
        return kl(self.judged.laws, self.law(name))

    def table(self, names: tuple[str, ...] = ESTIMATORS) -> dict[str, Any]:
        """Mean divergences with their standard errors, by estimator, for the report."""
        scores = [self.divergence(name) for name in names]
        return {
            "estimator": list(names),
            "divergence": [float(s.mean()) for s in scores],
            "standard_error": [float(s.std(ddof=1) / np.sqrt(len(s))) for s in scores],
        }


def kl(truth: Float, estimate: Float) -> Float:
    """KL of laws (n, V) from estimates mixed with the floor; a row without any estimate counts as uniform."""
    V = truth.shape[-1]
    mixed = (1 - FLOOR) * np.where(np.isnan(estimate), 1 / V, estimate) + FLOOR / V
    # 0 log 0 = 0; a true probability may be exactly 0 in float64.
    return np.sum(np.where(truth > 0, truth * np.log(np.where(truth > 0, truth, 1.0) / mixed), 0.0), axis=-1)


def codes(chains: Chains, task: NGramTask) -> Int:
    """Packed context of the last row of each chain."""
    return context_codes(chains.tokens, task.vocab_size, task.order)[:, -1]


def trial(
    run: Run, fields: Mapping[str, Any], length: int, *, fitted: int, judged: int, index: int = 0
) -> Trial:
    """The trial of a task, given by its fields; shared by the claims of a run.

    Streams are keyed by the task, the length and the replication, so that one trial's chains do not depend on others.
    """
    config = {"trial": dict(fields), "length": length, "fitted": fitted, "judged": judged}

    def make() -> Trial:
        task = NGramTask(**fields)
        first, second, third = run.stream(config, index).spawn(3)
        return Trial(
            task=task,
            length=length,
            fitted=Chains.drawn(task, fitted, length, first),
            judged=Chains.drawn(task, judged, length, second),
            level=run.level,
            bayes_seed=third,
        )

    return run.once(("ngrams trial", repr(config), index), make)


def independent(V: int, alpha: float = 1.0, k: int = 2) -> dict[str, Any]:
    """Fields of a task with independent rows."""
    return {"vocab_size": V, "order": k, "prior": "independent", "alpha": alpha}


def hierarchical(V: int, *c: float, alpha: float = 1.0, k: int = 2) -> dict[str, Any]:
    """Fields of a task with hierarchical rows; the number of concentrations gives the base order."""
    return {
        "vocab_size": V,
        "order": k,
        "prior": "hierarchical",
        "alpha": alpha,
        "base_order": k - len(c),
        "concentrations": c,
    }


def label(fields: Mapping[str, Any], length: int) -> str:
    """A task in words."""
    rows = (
        "independent rows"
        if fields["prior"] == "independent"
        else f"r0 = {fields['base_order']}, c = {', '.join(f'{c:g}' for c in fields['concentrations'])}"
    )
    return f"V = {fields['vocab_size']}, k = {fields['order']}, T = {length}, alpha = {fields['alpha']:g}, {rows}"
