"""Named tolerances. Each returns a number and is documented by the argument that makes it a bound.

A claim never writes a bare ``1e-3``: it calls one of these, and the interval that comes out carries the
rule's sentence into the report.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from marginlab.proofs_check.engine.values import Float, Interval
from marginlab.theory.errors import InvalidInput

#: Unit roundoff of float64.
UNIT_ROUNDOFF = 2.0**-53


def gamma(operations: int) -> float:
    """Higham's gamma_k = k u / (1 - k u): relative error of k successive float64 operations."""
    if not 0 <= operations * UNIT_ROUNDOFF < 1:
        raise ValueError(f"gamma_k needs 0 <= k u < 1, got k = {operations}.")
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)


def rounded(value: ArrayLike, *, operations: int, magnitude: ArrayLike | None = None) -> Interval:
    """value +- gamma_k magnitude: a sum or product of k roundings of terms as large as `magnitude`.

    Parameters
    ----------
    value : array-like
    operations : int
        Length of the longest chain of roundings behind the value.
    magnitude : array-like, optional
        Sum of the absolute values of the terms; |value| by default (no cancellation).
    """
    array = np.asarray(value, dtype=np.float64)
    size = np.abs(array) if magnitude is None else np.asarray(magnitude)
    return Interval.around(array, gamma(operations) * size, f"rounding: {operations} float64 operations")


def enclosed(lo: ArrayLike, hi: ArrayLike, what: str) -> Interval:
    """Ends that a solver's recomputed gap or a certificate proves."""
    return Interval(np.asarray(lo, float), np.asarray(hi, float), f"solver gap: {what}")


def truncated(limit: ArrayLike, rival: ArrayLike, *, share: float = 0.1) -> Interval:
    """limit +- share |rival - limit|: what a finite window may still miss of an asymptotic constant.

    A theorem that names only a limit gives no remainder at a finite time (for attention, tokens with slack
    theta keep a share tau^(-theta/2) of the gradient, as slow as one likes). So the band is set before the
    run by the question that is asked: does the measurement tell the limit from its best rival (another
    published constant)? It must come within a tenth of the way between them.
    """
    centre, other = np.asarray(limit, dtype=np.float64), np.asarray(rival, dtype=np.float64)
    if not 0 < share < 0.5:
        raise ValueError(f"a share between 0 and 1/2 tells the limit from its rival, got {share}.")
    return Interval.around(
        centre,
        share * np.abs(other - centre),
        f"truncation: within {share:.0%} of the distance to the rival constant",
    )


def mean_interval(values: Float, level: float) -> Interval:
    """Student interval of a mean at error level `level`; infinite for fewer than two values.

    Exact for Gaussian replications, and an approximation otherwise, which is why statistical claims ask for
    at least five replications and say what their unit is.

    Raises
    ------
    InvalidInput
        All of several values are equal: no spread, no interval.
    """
    from scipy import stats

    n = len(values)
    if n < 2:
        return Interval(np.array(-np.inf), np.array(np.inf), "sampling: fewer than two replications")
    if np.ptp(values) == 0:
        raise InvalidInput(
            f"{n} replications all gave {values[0]:g}: without any spread no interval can be formed."
        )
    radius = stats.t.isf(level / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n)
    radius += gamma(n) * np.mean(np.abs(values))  # rounding of the mean: n - 1 sums and a division
    return Interval.around(np.mean(values), radius, f"sampling: Student interval, n = {n}, level {level:.1e}")


def proportion_interval(values: Float, level: float) -> Interval:
    """Exact Clopper-Pearson interval of a probability at error level `level`; values are 0 or 1."""
    from scipy import stats

    n, k = len(values), int(np.sum(values))
    lo = 0.0 if k == 0 else float(stats.beta.ppf(level / 2, k, n - k + 1))
    hi = 1.0 if k == n else float(stats.beta.isf(level / 2, k + 1, n - k))
    return Interval(
        np.array(lo), np.array(hi), f"sampling: Clopper-Pearson interval, {k} of {n}, level {level:.1e}"
    )
