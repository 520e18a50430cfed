r"""Bayes predictor of hierarchical Dirichlet rows of any base order, by blocked Gibbs sampling.

A sweep draws the numbers of tables of all rows from the highest order down to r_0 + 1, and then the laws of the rows
from r_0 up to k - 1:

.. math:: t_{um} \mid P \sim \sum_{i < n_{um}} \mathrm{Bern}\frac{c_r P_w(m)}{c_r P_w(m) + i}, \qquad
          n_{wm} = \sum_b t_{(w, b) m}, \qquad P_{(w, b)} \mid P_w \sim \mathrm{Dir}(c_r P_w + n_{(w, b)}) .

The tables of order r are drawn with the laws of the orders from r to k - 1 summed out, so that a sweep leaves the
posterior as it is. What is averaged is the mean of the query's row given the table counts of its suffixes,
p_r = (n_r + c_r p_{r-1}) / (n_r + c_r), which varies less than the row itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginlab.theory.errors import InvalidInput
from marginlab.theory.markov import context_codes
from marginlab.theory.ngrams.bayes import concentration
from marginlab.theory.ngrams.task import NGramTask
from marginlab.theory.validation import Float, Int, count, named_stream, seed_sequence

#: Batches of kept sweeps; the standard error comes from the spread of their means.
BATCHES = 20


def gibbs_mean(
    task: NGramTask,
    tokens: ArrayLike,
    *,
    seed: int | np.random.SeedSequence,
    sweeps: int = 300,
    burn_in: int = 60,
) -> tuple[Float, Float]:
    """Estimate of the law of the next token given each sequence, and its standard error.

    Parameters
    ----------
    task : NGramTask
        With the hierarchical prior and a uniform start.
    tokens : (n, T) array of int, T >= k
        Oldest first, in 0..V-1.
    seed : int >= 0 or SeedSequence
        Sequence i has the child stream i: its estimate does not depend on the other sequences or on their number.
    sweeps : int >= burn_in + 20
        Sweeps of each chain.
    burn_in : int >= 0
        Sweeps at its start that are left out.

    Returns
    -------
    mean, error : (n, V) arrays
        The error is that of batch means over `BATCHES` batches: too small when a batch is short against the correlation
        time of the chain, and unable to see a burn-in that is too short.

    Raises
    ------
    InvalidInput
        A rule above is broken.

    References
    ----------
    Derived; Antoniak, Ann. Statist. 2 (1974) 1152 (law of the table counts); Teh, Jordan, Beal, Blei, J. Amer. Statist.
    Assoc. 101 (2006) 1566 (the franchise).

    Examples
    --------
    >>> task = NGramTask(vocab_size=2, order=2, prior="hierarchical", base_order=0, concentrations=(4.0, 4.0))
    >>> mean, error = gibbs_mean(task, [[0, 1, 1, 0, 1], [1, 1, 1, 1, 1]], seed=0)
    >>> mean.shape, error.shape
    ((2, 2), (2, 2))
    """
    root, burn_in = seed_sequence(seed), count(burn_in, "burn_in", least=0)
    kept = count(sweeps, "sweeps") - burn_in
    if kept < BATCHES:
        raise InvalidInput(
            f"sweeps must be at least burn_in + {BATCHES}, one for each batch, got {sweeps} and burn_in = {burn_in}."
        )
    _check_task(task)
    array = np.asarray(tokens)
    if array.ndim != 2 or array.size == 0:
        raise InvalidInput(f"tokens must have shape (n, T) and not be empty, got {array.shape}.")
    rows = _franchise(array, task)
    from marginlab.theory.ngrams._gibbs import run_chain

    n, V = len(array), task.vocab_size
    laws = np.full(rows.customers.shape, 1 / V)
    batch_ends = np.arange(1, BATCHES + 1) * kept // BATCHES
    weights = np.diff(batch_ends, prepend=0) / kept
    concentrations = np.array(task.concentrations)
    mean, error, means = np.empty((n, V)), np.empty((n, V)), np.empty((BATCHES, V))
    for i in range(n):
        run_chain(
            named_stream(root, i),
            rows.begin[i],
            rows.begin[i + 1],
            rows.parent,
            rows.query[i],
            rows.customers,
            laws,
            task.alpha,
            concentrations,
            burn_in,
            batch_ends,
            means,
        )
        mean[i] = weights @ means
        error[i] = means.std(axis=0, ddof=1) / BATCHES**0.5
    return mean / mean.sum(axis=1, keepdims=True), error


def _check_task(task: Any) -> None:
    if not isinstance(task, NGramTask):
        raise InvalidInput(f"task must be an NGramTask, got {task!r}.")
    if task.base_order is None:
        raise InvalidInput(
            "task must have the hierarchical prior; with independent rows the mean is add-alpha."
        )
    if task.start != "uniform":
        raise InvalidInput(
            f"task must have a uniform start, got {task.start!r}: the first tokens would tell something about the rows."
        )
    concentration(task.alpha, "alpha")
    for c in task.concentrations:
        concentration(c, "concentrations")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Franchise:
    """Rows that occur or that the queries ask for, level by level, those of one sequence next to each other.

    Attributes
    ----------
    begin : (n + 1, levels) array of int
        First row of each sequence at each level.
    parent : (rows,) array of int
        Row of the suffix one level up; at the first level the row itself.
    query : (n, levels) array of int
        Rows of the suffixes of the query contexts.
    customers : (rows, V) array of int
        Transitions of order k at the last level, 0 elsewhere.
    """

    begin: Int
    parent: Int
    query: Int
    customers: Int


def _franchise(array: Any, task: NGramTask) -> _Franchise:
    V, k, n = task.vocab_size, task.order, len(array)
    codes = context_codes(array, V, k)  # the last one is the query
    if n * V**k > np.iinfo(np.intp).max:
        raise InvalidInput(
            f"contexts of all sequences must be packed into 64 bits, got n V^k = {n} * {V}^{k}."
        )
    sequence = np.broadcast_to(np.arange(n)[:, None], codes.shape)
    begins, parents, queries, offset = [], [], [], 0
    suffix_rows = np.zeros(0, np.intp)
    for r in range(task.first_order, k + 1):
        keys, found = np.unique(sequence * V**r + codes % V**r, return_inverse=True)
        own = found.reshape(codes.shape) + offset
        parent = np.empty(len(keys), np.intp)
        parent[own - offset] = own if r == task.first_order else suffix_rows
        begins.append(offset + np.searchsorted(keys, np.arange(n + 1) * V**r))
        parents.append(parent)
        queries.append(own[:, -1])
        suffix_rows, offset = own, offset + len(keys)
    cells = suffix_rows[:, :-1] * V + array[:, k:].astype(np.intp)
    customers = np.bincount(cells.ravel(), minlength=offset * V).astype(np.intp).reshape(offset, V)
    return _Franchise(
        begin=np.ascontiguousarray(np.stack(begins, axis=1)),
        parent=np.concatenate(parents),
        query=np.ascontiguousarray(np.stack(queries, axis=1)),
        customers=customers,
    )
