"""Count-based smoothing of k-gram estimates: the baselines that induction heads are compared with.

All of them return (T + 1, V) arrays: row t is the law of the next token after the first t tokens, from the counts of
the last 0..k tokens. Below order 0 stands the uniform law, so that a row is NaN only for maximum likelihood.

``boundary="interior"`` counts the positions with k tokens before them; ``"padded"`` counts all positions, each in the
contexts that lie inside the sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams import smoothing_laws as laws
from marginlab.theory.ngrams.counting import BOUNDARIES, Masks, checked_order, checked_tokens, row_blocks
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics
from marginlab.theory.ngrams.soft_matching import empty_rows
from marginlab.theory.validation import Float, count, one_of, positive, shaped_array


def ml(tokens: Any, vocab_size: int, order: int, *, boundary: str = "interior") -> Float:
    """Maximum likelihood: N_u(m) / N_u for the context u of the last k tokens.

    Parameters
    ----------
    tokens : (T,) array of int in 0..vocab_size-1
    vocab_size : int >= 1
    order : int, 1..12
        k.
    boundary : "interior" or "padded"

    Returns
    -------
    (T + 1, vocab_size) array
        NaN in rows whose context has not occurred.

    Raises
    ------
    InvalidInput
        A token outside the vocabulary, or another argument that breaks these rules.
    """
    return _rows(tokens, vocab_size, order, boundary, laws.ml_law)


def add_alpha(tokens: Any, vocab_size: int, order: int, alpha: float, *, boundary: str = "interior") -> Float:
    """Additive smoothing (N_u(m) + alpha) / (N_u + alpha V): Laplace for alpha = 1, Krichevsky-Trofimov for 1/2.

    Parameters
    ----------
    tokens, vocab_size, order, boundary : as for `ml`
    alpha : float > 0

    Returns
    -------
    (T + 1, vocab_size) array

    Raises
    ------
    InvalidInput
        As `ml`, or an alpha that is not positive.

    Notes
    -----
    The posterior mean if the rows are independent Dir(alpha, ..., alpha) and the first k tokens tell nothing of them.
    """
    alpha = positive(alpha, "alpha")
    return _rows(tokens, vocab_size, order, boundary, lambda s: laws.add_alpha_law(s, alpha))


def jelinek_mercer(
    tokens: Any,
    vocab_size: int,
    order: int,
    weights: Any,
    *,
    edges: Any = None,
    boundary: str = "interior",
) -> Float:
    """Jelinek-Mercer interpolation of the estimates of orders 0..k.

    Parameters
    ----------
    tokens, vocab_size, order, boundary : as for `ml`
    weights : (k + 2,) array, or (k + 1, B) array with `edges`
        Fixed weights of the uniform law and of orders 0..k, which sum to 1 (equation 11); orders whose context has not
        occurred leave theirs to the others. Or the weight of each order's own estimate against all lower orders, by
        bucket of the context's total count.
    edges : (B - 1,) increasing array, optional
        Bucket b holds the totals from edges[b - 1] (inclusive) to edges[b].

    Returns
    -------
    (T + 1, vocab_size) array

    Raises
    ------
    InvalidInput
        As `ml`, or weights that are not probabilities, or edges that do not increase.

    References
    ----------
    Jelinek, Mercer (1980), Interpolated estimation of Markov source parameters from sparse data.
    """
    order = checked_order(order)
    if edges is None:
        fixed = shaped_array(weights, "weights", (order + 2,))
        _in_unit_interval(fixed, "weights")
        if abs(fixed.sum() - 1) > 4 * len(fixed) * np.finfo(float).eps:
            raise InvalidInput(f"weights must sum to 1, they sum to {fixed.sum():.17g}.")
        return _rows(tokens, vocab_size, order, boundary, lambda s: laws.jelinek_mercer_law(s, fixed))
    limits = shaped_array(edges, "edges", (None,))
    if (np.diff(limits) <= 0).any():
        raise InvalidInput(f"edges must increase, got {limits}.")
    table = shaped_array(weights, "weights", (order + 1, len(limits) + 1))
    _in_unit_interval(table, "weights")
    return _rows(
        tokens, vocab_size, order, boundary, lambda s: laws.bucketed_jelinek_mercer_law(s, table, limits)
    )


def katz(tokens: Any, vocab_size: int, order: int, discounts: Any, *, boundary: str = "interior") -> Float:
    """Katz back-off with an absolute discount for each order.

    Parameters
    ----------
    tokens, vocab_size, order, boundary : as for `ml`
    discounts : (k + 1,) array in [0, 1]
        Taken from every positive count of orders 0..k and given, in proportion to the order below, to the symbols not
        seen in that context. (Good-Turing discounts need counts of counts that short sequences do not have.)

    Returns
    -------
    (T + 1, vocab_size) array

    Raises
    ------
    InvalidInput
        As `ml`, or a discount outside [0, 1].

    References
    ----------
    Katz (1987), Estimation of probabilities from sparse data for the language model component of a speech recognizer.
    """
    D = _discounts(discounts, order)
    return _rows(tokens, vocab_size, order, boundary, lambda s: laws.katz_law(s, D))


def absolute_discounting(
    tokens: Any, vocab_size: int, order: int, discounts: Any, *, boundary: str = "interior"
) -> Float:
    """Interpolated absolute discounting: max(c - D, 0) / c. + D types / c. times the order below.

    Parameters, return value and errors are those of `katz`.

    References
    ----------
    Ney, Essen, Kneser (1994), On structuring probabilistic dependences in stochastic language modelling.
    """
    D = _discounts(discounts, order)
    return _rows(tokens, vocab_size, order, boundary, lambda s: laws.absolute_discounting_law(s, D))


def kneser_ney(
    tokens: Any, vocab_size: int, order: int, discounts: Any, *, boundary: str = "interior"
) -> Float:
    """Interpolated Kneser-Ney: absolute discounting, with continuation counts below order k.

    Parameters, return value and errors are those of `katz`.

    Notes
    -----
    The continuation count of (u, m) is the number of different tokens b for which (b u, m) has occurred. With padding,
    a position whose context is cut off by the start counts once more in its longest context.

    References
    ----------
    Kneser, Ney (1995), Improved backing-off for m-gram language modeling; Teh (2006) for the view as Pitman-Yor.
    """
    D = _discounts(discounts, order)
    return _rows(tokens, vocab_size, order, boundary, lambda s: laws.kneser_ney_law(s, D))


def mackay_peto(
    tokens: Any, vocab_size: int, order: int, concentrations: Any, *, boundary: str = "interior"
) -> Float:
    """MacKay-Peto smoothing: (c(m) + c_r p_{r-1}(m)) / (c. + c_r), with the counts themselves at every order.

    Parameters
    ----------
    tokens, vocab_size, order, boundary : as for `ml`
    concentrations : (k + 1,) array >= 0
        c_0..c_k, order 0 (towards the uniform law) first.

    Returns
    -------
    (T + 1, vocab_size) array

    Raises
    ------
    InvalidInput
        As `ml`, or a negative concentration.

    References
    ----------
    MacKay, Peto (1995), A hierarchical Dirichlet language model.
    """
    c = _strengths(concentrations, order, "concentrations")
    return _rows(tokens, vocab_size, order, boundary, lambda s: laws.mackay_peto_law(s, c))


def pitman_yor(
    tokens: Any,
    vocab_size: int,
    order: int,
    discounts: Any,
    strengths: Any,
    *,
    tables: str = "one",
    boundary: str = "interior",
) -> Float:
    """Hierarchical Pitman-Yor predictive with table counts at one of their two ends.

    Parameters
    ----------
    tokens, vocab_size, order, boundary : as for `ml`
    discounts : (k + 1,) array in [0, 1]
    strengths : (k + 1,) array >= 0
    tables : "one" or "all"
        One table for each symbol of a context (so that strengths 0 give interpolated Kneser-Ney), or a table for every
        customer (so that discounts 0 give MacKay-Peto).

    Returns
    -------
    (T + 1, vocab_size) array

    Raises
    ------
    InvalidInput
        As `ml`, or a discount or strength out of range.

    References
    ----------
    Teh (2006), A hierarchical Bayesian language model based on Pitman-Yor processes.
    """
    d, theta = _discounts(discounts, order), _strengths(strengths, order, "strengths")
    one_of(tables, "tables", ("one", "all"))
    return _rows(tokens, vocab_size, order, boundary, lambda s: laws.pitman_yor_law(s, d, theta, tables))


def _rows(
    tokens: Any, vocab_size: Any, order: Any, boundary: Any, law: Callable[[ContextStatistics], Float]
) -> Float:
    """`law` at every row, in blocks."""
    one_of(boundary, "boundary", BOUNDARIES)
    vocab_size, order = count(vocab_size, "vocab_size"), checked_order(order)
    array = checked_tokens(tokens, vocab_size)
    out = empty_rows(len(array) + 1, vocab_size)
    for start, counts, customers in row_blocks(
        array, vocab_size, Masks.suffixes(order), boundary=boundary, customers=True
    ):
        out[start : start + len(counts)] = law(ContextStatistics.of_rows(counts, customers))
    return out


def _discounts(values: Any, order: Any) -> Float:
    D = shaped_array(values, "discounts", (checked_order(order) + 1,))
    _in_unit_interval(D, "discounts")
    return D


def _strengths(values: Any, order: Any, name: str) -> Float:
    c = shaped_array(values, name, (checked_order(order) + 1,))
    if (c < 0).any():
        raise InvalidInput(f"{name} must be at least 0, got {c.min()}.")
    return c


def _in_unit_interval(values: Float, name: str) -> None:
    bad = (values < 0) | (values > 1)
    if bad.any():
        raise InvalidInput(f"{name} must lie in [0, 1], got {values[bad][0]}.")
