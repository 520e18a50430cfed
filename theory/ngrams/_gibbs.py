"""Compiled blocked Gibbs chain for hierarchical Dirichlet rows of one sequence.

Kernels that call each other share this file: numba's cache on disk knows only the file that a function stands in.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _tables(rng, customers, mass):
    """Number of tables of `customers` >= 1 when a new one opens with odds mass to those who sit."""
    tables = 1
    for i in range(1, customers):
        if rng.random() * (mass + i) < mass:
            tables += 1
    return tables


@njit(cache=True)
def _dirichlet(rng, shape, out):
    """A Dirichlet law with parameters `shape` >= 0, at least one of them >= 1, so that the sum is never 0."""
    total = 0.0
    for m in range(len(shape)):
        if shape[m] >= 1:
            out[m] = rng.standard_gamma(shape[m])
        elif shape[m] > 0:  # log G_a = log G_(a+1) - E / a
            out[m] = rng.standard_gamma(shape[m] + 1) * np.exp(-rng.standard_exponential() / shape[m])
        else:
            out[m] = 0.0
        total += out[m]
    for m in range(len(shape)):
        out[m] /= total


@njit(cache=True)
def run_chain(
    rng, begin, end, parent, query, customers, laws, alpha, concentrations, burn_in, batch_ends, means
):
    """One chain; levels l = 0..L are the orders r_0..k.

    Parameters
    ----------
    begin, end : (L + 1,) rows of each level that belong to the sequence
    parent : (rows,) row of the suffix, one level up
    query : (L + 1,) rows of the suffixes of the query context
    customers : (rows, V) int; those of level L are the data, the others are written
    laws : (rows, V), the current laws of levels 0..L-1; start values are read
    concentrations : (L,), of levels 1..L
    batch_ends : (batches,) numbers of kept sweeps after which a batch ends
    means : (batches, V), means of the predictions of each batch, written
    """
    last, vocab = len(begin) - 1, customers.shape[1]
    shape, prediction = np.empty(vocab), np.empty(vocab)
    means[:] = 0.0
    batch, kept = 0, 0
    for sweep in range(burn_in + batch_ends[-1]):
        for level in range(last, 0, -1):
            customers[begin[level - 1] : end[level - 1]] = 0
            for row in range(begin[level], end[level]):
                above = parent[row]
                for m in range(vocab):
                    if customers[row, m] > 0:
                        mass = concentrations[level - 1] * laws[above, m]
                        customers[above, m] += _tables(rng, customers[row, m], mass)
        for level in range(last):
            for row in range(begin[level], end[level]):
                total = 0
                for m in range(vocab):
                    total += customers[row, m]
                    prior = alpha if level == 0 else concentrations[level - 1] * laws[parent[row], m]
                    shape[m] = prior + customers[row, m]
                if total > 0:  # nobody asks for the law of a row without customers
                    _dirichlet(rng, shape, laws[row])
        if sweep < burn_in:
            continue
        for level in range(last + 1):
            counts = customers[query[level]]
            weight = alpha * vocab if level == 0 else concentrations[level - 1]
            for m in range(vocab):
                pseudo = alpha if level == 0 else weight * prediction[m]
                prediction[m] = (counts[m] + pseudo) / (counts.sum() + weight)
        kept += 1
        if kept > batch_ends[batch]:
            batch += 1
        for m in range(vocab):
            means[batch, m] += prediction[m]
    start = 0
    for batch in range(len(batch_ends)):
        for m in range(vocab):
            means[batch, m] /= batch_ends[batch] - start
        start = batch_ends[batch]
