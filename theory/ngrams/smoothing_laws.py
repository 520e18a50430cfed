"""Laws of count-based smoothing, from the statistics of nested contexts (the last r tokens, r = 0..k).

Every law recurses over the order r, from the uniform law below order 0 up to order k. It needs, of each context, the
count of the symbol asked for and sums over all symbols; so one formula serves whole rows (W = V symbols) and the
realised symbol alone (W = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.theory.validation import Float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContextStatistics:
    """Statistics of the contexts of orders 0..k at many rows.

    Attributes
    ----------
    vocab_size : int
    count, customers : (..., k + 1, W)
        Of the symbols asked for: how often each followed; and Kneser-Ney's counts, the number of different tokens that
        stood before context and symbol (at order k, the count itself).
    total, types, customer_total, customer_types : (..., k + 1, 1)
        Sums over the vocabulary, and numbers of symbols with a positive count.
    below : (..., k + 1, 1)
        At order r, the count that the symbols seen there have at order r - 1 (unused at order 0).
    """

    vocab_size: int
    count: Float
    total: Float
    types: Float
    customers: Float
    customer_total: Float
    customer_types: Float
    below: Float

    @classmethod
    def of_rows(cls, counts: Any, customers: Any) -> ContextStatistics:
        """From counts and customers of every symbol, (..., k + 1, V)."""
        count, seats = np.asarray(counts, dtype=np.float64), np.asarray(customers, dtype=np.float64)
        below = np.zeros((*count.shape[:-1], 1))
        below[..., 1:, 0] = np.sum((count[..., 1:, :] > 0) * count[..., :-1, :], axis=-1)
        return cls(
            vocab_size=count.shape[-1],
            count=count,
            total=count.sum(-1, keepdims=True),
            types=(count > 0).sum(-1, keepdims=True).astype(np.float64),
            customers=seats,
            customer_total=seats.sum(-1, keepdims=True),
            customer_types=(seats > 0).sum(-1, keepdims=True).astype(np.float64),
            below=below,
        )

    @classmethod
    def of_symbols(cls, statistics: Any, vocab_size: int) -> ContextStatistics:
        """From the seven statistics of realised symbols, (..., k + 1, 7) in the order of `counting.symbol_blocks`."""
        columns = np.moveaxis(np.asarray(statistics, dtype=np.float64), -1, 0)[..., None]
        names = ("count", "total", "types", "customers", "customer_total", "customer_types", "below")
        return cls(vocab_size=vocab_size, **dict(zip(names, columns, strict=True)))

    @property
    def order(self) -> int:
        """k."""
        return self.count.shape[-2] - 1

    def at(self, rows: Any) -> ContextStatistics:
        """The statistics at some rows (an index of the first axis)."""
        names = ("count", "total", "types", "customers", "customer_total", "customer_types", "below")
        return ContextStatistics(
            vocab_size=self.vocab_size, **{name: getattr(self, name)[rows] for name in names}
        )


def _share(part: Float, whole: Float) -> Float:
    """part / whole, 0 where whole is 0."""
    return np.divide(part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0)


def _uniform(stats: ContextStatistics) -> Float:
    return np.full(stats.count[..., 0, :].shape, 1.0 / stats.vocab_size)


def ml_law(stats: ContextStatistics) -> Float:
    """count / total at order k; NaN for a context without count."""
    whole = stats.total[..., -1, :]
    return np.where(whole > 0, _share(stats.count[..., -1, :], whole), np.nan)


def add_alpha_law(stats: ContextStatistics, alpha: float) -> Float:
    """(count + alpha) / (total + alpha V) at order k."""
    return (stats.count[..., -1, :] + alpha) / (stats.total[..., -1, :] + alpha * stats.vocab_size)


def jelinek_mercer_law(stats: ContextStatistics, weights: Float) -> Float:
    """Fixed weights of the uniform law and of the estimates of orders 0..k; those of contexts without count are shared.

    A context without count has no estimate: the weights of the others are scaled to sum to 1.
    """
    seen = (stats.total[..., 0] > 0) * weights[1:]
    norm = weights[0] + seen.sum(-1)
    mixed = weights[0] / stats.vocab_size + np.einsum(
        "...r,...rw->...w", seen, _share(stats.count, stats.total)
    )
    # No weight at all on what is known: uniform.
    return np.where(norm[..., None] > 0, _share(mixed, norm[..., None]), 1.0 / stats.vocab_size)


def bucketed_jelinek_mercer_law(stats: ContextStatistics, weights: Float, edges: Float) -> Float:
    """p_r = w p_hat_r + (1 - w) p_{r-1} with w = weights[r, bucket of the context's total]; w = 0 without count."""
    p = _uniform(stats)
    for r in range(stats.order + 1):
        whole = stats.total[..., r, :]
        w = np.where(whole > 0, weights[r][np.searchsorted(edges, whole, side="right")], 0.0)
        p = w * _share(stats.count[..., r, :], whole) + (1 - w) * p
    return p


def katz_law(stats: ContextStatistics, discounts: Float) -> Float:
    """Back-off with absolute discounts: (count - D) / total if seen, else the freed mass in proportion to order r - 1.

    Where every symbol of positive lower-order probability has been seen, nothing takes the freed mass and nothing is
    discounted.
    """
    p = _uniform(stats)
    kept_below = np.zeros(stats.total[..., 0, :].shape, bool)
    for r, discount in enumerate(discounts):
        whole, types = stats.total[..., r, :], stats.types[..., r, :]
        if r == 0:
            seen_below = types / stats.vocab_size
        else:
            # Contexts are nested: symbols seen here were seen at order r - 1, with (count - D) / total each, or with
            # count / total where that order discounts nothing.
            lower, taken = stats.total[..., r - 1, :], np.where(kept_below, 0.0, discounts[r - 1])
            seen_below = _share(stats.below[..., r, :] - taken * types, lower)
        # Differences of numbers near 1: what is left is a multiple of 1/total or D/total, or nothing at all.
        left = 1 - seen_below
        left = np.where((types >= stats.vocab_size) | (left < 1e-12), 0.0, left)
        freed = _share(discount * types, whole)
        kept_below = left <= 0
        seen = _share(stats.count[..., r, :] - np.where(kept_below, 0.0, discount), whole)
        unseen = np.where(kept_below, 0.0, _share(freed, np.where(left > 0, left, 1.0)) * p)
        p = np.where(whole > 0, np.where(stats.count[..., r, :] > 0, seen, unseen), p)
        kept_below = np.where(whole > 0, kept_below, False)
    return p


def absolute_discounting_law(stats: ContextStatistics, discounts: Float) -> Float:
    """p_r = max(count - D, 0) / total + D types / total p_{r-1}."""
    p = _uniform(stats)
    for r, discount in enumerate(discounts):
        whole = stats.total[..., r, :]
        kept = _share(np.maximum(stats.count[..., r, :] - discount, 0.0), whole)
        p = np.where(whole > 0, kept + _share(discount * stats.types[..., r, :], whole) * p, p)
    return p


def kneser_ney_law(stats: ContextStatistics, discounts: Float) -> Float:
    """Absolute discounting with continuation counts below order k."""
    p = _uniform(stats)
    for r, discount in enumerate(discounts):
        whole = stats.customer_total[..., r, :]
        kept = _share(np.maximum(stats.customers[..., r, :] - discount, 0.0), whole)
        p = np.where(whole > 0, kept + _share(discount * stats.customer_types[..., r, :], whole) * p, p)
    return p


def mackay_peto_law(stats: ContextStatistics, concentrations: Float) -> Float:
    """p_r = (count + c_r p_{r-1}) / (total + c_r) with the counts themselves at every order."""
    p = _uniform(stats)
    for r, c in enumerate(concentrations):
        whole = stats.total[..., r, :] + c
        p = np.where(whole > 0, _share(stats.count[..., r, :] + c * p, whole), p)
    return p


def pitman_yor_law(stats: ContextStatistics, discounts: Float, strengths: Float, tables: str) -> Float:
    """Hierarchical Pitman-Yor predictive, p_r = (n - d t) / (theta + n.) + (theta + d t.) / (theta + n.) p_{r-1}.

    ``tables="one"``: one table for each symbol that has customers, who are then Kneser-Ney's; ``"all"``: a table for
    every customer, so that every order has the counts themselves.
    """
    p = _uniform(stats)
    for r, (d, theta) in enumerate(zip(discounts, strengths, strict=True)):
        if tables == "one":
            n, whole = stats.customers[..., r, :], stats.customer_total[..., r, :]
            t, all_tables = np.minimum(n, 1.0), stats.customer_types[..., r, :]
        else:
            n, whole = stats.count[..., r, :], stats.total[..., r, :]
            t, all_tables = n, whole
        norm = theta + whole
        p = np.where(norm > 0, _share(n - d * t, norm) + _share(theta + d * all_tables, norm) * p, p)
    return p
