r"""Exact Bayes predictor of hierarchical Dirichlet rows whose parents are independent (base order r_0 = k - 1).

Rows :math:`P_{(w, b)} \sim \mathrm{Dir}(c P_w)` of the V contexts that continue w by one older token b are siblings,
:math:`P_w \sim \mathrm{Dir}(\alpha 1)` is their parent, and different parents are independent: the law of the next
token depends on the counts n_{bm} of the query's siblings alone,

.. math:: E[P_{(w, b)}(m)] = \frac{n_{bm} + c\, E[P_w(m)]}{n_b + c} .

The parent's mean is a sum over the numbers of tables t_{bm} (Chinese restaurant franchise), or, for V = 2, an integral
of a polynomial. The law of the tokens that come first must not depend on the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.markov import context_codes
from marginlab.theory.ngrams.bayes import checked_counts, concentration, log_rising
from marginlab.theory.validation import Float, Int, count, one_of

METHODS = ("tables", "quadrature")

#: Transitions of one group of siblings up to which its table counts are summed over.
MOST_CUSTOMERS = 2048

#: Smallest and largest alpha for which Gauss-Jacobi nodes near 0 and 1, and their weights, keep ten digits.
QUADRATURE_ALPHA = (0.4, 100.0)


def table_log_pmf(customers: int, c: float) -> Float:
    r"""log of the law of the number of tables in a Chinese restaurant of concentration c.

    P(t) = s(n, t) c^t / (c (c + 1) .. (c + n - 1)) with s the unsigned Stirling numbers of the first kind: the law of
    a sum of independent Bernoulli variables with means c / (c + i), i = 0..n-1.

    Parameters
    ----------
    customers : int in 0..MOST_CUSTOMERS
        n.
    c : float in 1e-100..1e100

    Returns
    -------
    (n + 1,) array
        Entry t: log P(t), -inf for t = 0 < n.

    Raises
    ------
    InvalidInput
        A rule above is broken.

    References
    ----------
    Antoniak, Ann. Statist. 2 (1974) 1152.
    """
    n, c = count(customers, "customers", least=0), concentration(c, "c")
    if n > MOST_CUSTOMERS:
        raise InvalidInput(f"customers must be at most {MOST_CUSTOMERS}, got {n}.")
    return _table_log_pmfs(n, c)[n]


def _table_log_pmfs(most: int, c: float) -> Float:
    """Row n: `table_log_pmf` of n customers, padded with -inf; (most + 1, most + 1)."""
    rows = np.full((most + 1, most + 1), -np.inf)
    rows[0, 0] = 0.0
    for i in range(most):
        opens, joins = np.log(c) - np.log(c + i), -np.inf if i == 0 else np.log(i) - np.log(c + i)
        rows[i + 1, 1 : i + 2] = np.logaddexp(rows[i, 1 : i + 2] + joins, rows[i, : i + 1] + opens)
    return rows


def parent_mean(counts: ArrayLike, alpha: float, c: float, *, method: str = "tables") -> Float:
    """E[P_w | counts of its children], (..., V); arguments as of `sibling_posterior`."""
    array, alpha, c = _siblings(counts, alpha, c)
    mean, _ = _solve(array, alpha, c, method)
    return mean.reshape(*array.shape[:-2], array.shape[-1])


def sibling_posterior(
    counts: ArrayLike, row: Any, alpha: float, c: float, *, method: str = "tables"
) -> Float:
    r"""Exact law of the next token after the context (w, b), given the transitions out of all siblings.

    Parameters
    ----------
    counts : (..., V, V) array of int >= 0
        n_{bm}: how often m followed the context (w, b).
    row : int or (...) array of int in 0..V-1
        b, the oldest token of the query context.
    alpha : float in 1e-100..1e100
        Concentration per symbol of the parent.
    c : float in 1e-100..1e100
        Concentration of the children around the parent.
    method : "tables" or "quadrature"
        Sums over table counts, O(V N^2) for N transitions; or, for V = 2 alone, Gauss-Jacobi nodes for the parent,
        exact because the likelihood is a polynomial of degree N in it.

    Returns
    -------
    (..., V) array
        Relative error below 1e-11 for hundreds of transitions.

    Raises
    ------
    InvalidInput
        A rule above is broken.
    MethodUnavailable
        More than `MOST_CUSTOMERS` transitions of one group; quadrature for V > 2 or for an alpha outside
        `QUADRATURE_ALPHA`.

    References
    ----------
    Derived; Teh, Jordan, Beal, Blei, J. Amer. Statist. Assoc. 101 (2006) 1566 for the table counts, MacKay, Peto,
    Nat. Lang. Eng. 1 (1995) 289 for the prior.
    """
    array, alpha, c = _siblings(counts, alpha, c)
    rows = _rows(row, array)
    mean, _ = _solve(array, alpha, c, method)
    own = np.take_along_axis(array, rows[..., None, None], axis=-2)[..., 0, :]
    parents = mean.reshape(own.shape)
    return (own + c * parents) / (own.sum(axis=-1, keepdims=True) + c)


def sibling_log_evidence(counts: ArrayLike, alpha: float, c: float, *, method: str = "tables") -> Float:
    """log probability of the transitions out of one group of siblings, in their order; (...).

    Groups with different parents are independent: the evidence of a sequence, given its first k tokens, is the sum over
    groups. Arguments as of `sibling_posterior`.
    """
    array, alpha, c = _siblings(counts, alpha, c)
    _, log_sum = _solve(array, alpha, c, method)
    return log_sum.reshape(array.shape[:-2]) - log_rising(c, array.sum(axis=-1)).sum(axis=-1)


def sibling_counts(tokens: ArrayLike, vocab_size: int, order: int) -> tuple[Int, Int]:
    """Transitions out of the siblings of each query context, (n, V, V), and which sibling the query is, (n,).

    Parameters
    ----------
    tokens : (n, T) array of int, T >= k
        Oldest first, in 0..V-1; the query context is the last k of them.
    vocab_size : int >= 2
        V.
    order : int >= 1
        k.

    Raises
    ------
    InvalidInput
        A rule above is broken.
    """
    k = count(order, "order")
    array = np.asarray(tokens)
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(f"tokens must have shape (n, T) and not be empty, got {array.shape}.")
    codes = context_codes(array, vocab_size, k)
    array, V, n = array.astype(np.intp), int(vocab_size), len(array)
    older, suffix = np.divmod(codes, V ** (k - 1))
    row = older[:, -1].copy()
    sequence, place = np.nonzero(suffix[:, :-1] == suffix[:, -1:])
    cells = (sequence * V + older[sequence, place]) * V + array[sequence, k + place]
    return np.bincount(cells, minlength=n * V * V).astype(np.intp).reshape(n, V, V), row


def posterior_mean_exact(
    tokens: ArrayLike, vocab_size: int, order: int, alpha: float, c: float, *, method: str = "tables"
) -> Float:
    """Exact law of the next token under the hierarchical prior of base order k - 1, (n, V).

    Parameters
    ----------
    tokens : (n, T) array of int, T >= k
    vocab_size, order : int
        V >= 2 and k >= 1.
    alpha, c, method
        As of `sibling_posterior`.

    Raises
    ------
    InvalidInput, MethodUnavailable
        As of `sibling_counts` and `sibling_posterior`.

    References
    ----------
    Derived.
    """
    counts, row = sibling_counts(tokens, vocab_size, order)
    return sibling_posterior(counts, row, alpha, c, method=method)


def _siblings(counts: Any, alpha: float, c: float) -> tuple[Int, float, float]:
    array = checked_counts(counts, ndim=2)
    if array.shape[-2] != array.shape[-1]:
        raise InvalidInput(f"counts must have shape (..., V, V), siblings by symbols, got {array.shape}.")
    return array, concentration(alpha, "alpha"), concentration(c, "c")


def _rows(row: Any, counts: Int) -> Int:
    V, rows = counts.shape[-1], np.asarray(row)
    if rows.dtype.kind not in "iu" or rows.shape not in ((), counts.shape[:-2]):
        raise InvalidInput(
            f"row must be an integer or an array of them of shape {counts.shape[:-2]}, "
            f"got dtype {rows.dtype} and shape {rows.shape}."
        )
    bad = (rows < 0) | (rows >= V)
    if bad.any():
        raise InvalidInput(f"row must lie in 0..{V - 1}, got {rows[bad].flat[0]}.")
    return np.broadcast_to(rows.astype(np.intp), counts.shape[:-2])


def _solve(array: Int, alpha: float, c: float, method: str) -> tuple[Float, Float]:
    """Parent's means (n, V), and logs of E[prod over b, m of (c p_m)(c p_m + 1)..(c p_m + n_bm - 1)] (n,)."""
    groups = array.reshape(-1, *array.shape[-2:])
    if one_of(method, "method", METHODS) == "quadrature":
        return _by_quadrature(groups, alpha, c)
    return _by_tables(groups, alpha, c)


def _by_tables(groups: Int, alpha: float, c: float) -> tuple[Float, Float]:
    V, most = groups.shape[-1], int(groups.sum(axis=(1, 2)).max())
    if most > MOST_CUSTOMERS:
        raise MethodUnavailable(
            f"sums over table counts are limited to {MOST_CUSTOMERS} transitions of one group of siblings, got {most}: "
            "use quadrature (V = 2) or Gibbs sampling."
        )
    from marginlab.theory.ngrams._tables import sibling_sums

    totals = np.arange(most + 1)
    mean, log_sum = np.empty((len(groups), V)), np.empty(len(groups))
    sibling_sums(
        groups,
        _table_log_pmfs(int(groups.max()), c),
        log_rising(alpha, totals),
        log_rising(alpha * V, totals),
        alpha,
        mean,
        log_sum,
    )
    mean /= mean.sum(axis=1, keepdims=True)
    return mean, log_sum + log_rising(c, groups).sum(axis=(1, 2))


def _by_quadrature(groups: Int, alpha: float, c: float) -> tuple[Float, Float]:
    low, high = QUADRATURE_ALPHA
    if groups.shape[-1] != 2:
        raise MethodUnavailable(f"quadrature needs V = 2, got V = {groups.shape[-1]}: use tables.")
    if not low <= alpha <= high:
        raise MethodUnavailable(f"quadrature needs alpha between {low} and {high}, got {alpha}: use tables.")
    degree = int(groups.sum(axis=(1, 2)).max()) + 1  # of the likelihood times the parent
    if degree > MOST_CUSTOMERS:
        raise MethodUnavailable(
            f"quadrature is limited to {MOST_CUSTOMERS - 1} transitions of one group of siblings, got {degree - 1}: "
            "use Gibbs sampling."
        )
    x, weights = special.roots_jacobi(degree // 2 + 1, alpha - 1, alpha - 1)
    parents = np.stack([(1 + x) / 2, (1 - x) / 2])  # (symbols, nodes)
    customers = np.arange(int(groups.max()) + 1)
    with np.errstate(divide="ignore"):  # the weight of a node may underflow
        log_values = np.log(weights / weights.sum()) + np.zeros((len(groups), 1))
    for m in range(2):
        factors = log_rising(c * parents[m], customers[:, None])
        log_values = log_values + factors[groups[:, 0, m]] + factors[groups[:, 1, m]]
    top = log_values.max(axis=1, keepdims=True)
    values = np.exp(log_values - top)
    total = values.sum(axis=1)
    return values @ parents.T / total[:, None], top[:, 0] + np.log(total)
