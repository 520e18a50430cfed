"""Doubt between two candidates against integrals over its own definition, its limits and drawn posteriors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import (
    MatchCopyTask,
    bayes_excess_bounds,
    bayes_predict,
    pair_doubt,
    posterior_variances,
    sample,
)


@pytest.mark.parametrize(("d", "c"), [(1, 1.1), (2, 2.0), (5, 1.3), (16, 1.2)])
def test_doubt_by_its_definition(d: int, c: float) -> None:
    """Log-odds are N(m, 2 m) given m = chi^2_d rho^2 / (1 - rho^2): E q (1 - q) as a double integral."""
    kappa = c**-4 / (1 - c**-4)
    x, weights = np.polynomial.legendre.leggauss(400)
    z = 12 * x  # twelve standard deviations

    def given_distance(chi2: float) -> float:
        m = kappa * chi2
        odds = m + np.sqrt(2 * m) * z
        return float(12 * weights @ (stats.norm.pdf(z) / (4 * np.cosh(odds / 2) ** 2)))

    top = float(stats.chi2.isf(1e-16, d))
    # chi2 = u^2 removes the root singularity of the density at 0.
    expected, error = integrate.quad(
        lambda u: given_distance(u * u) * stats.chi2.pdf(u * u, d) * 2 * u,
        1e-12,
        np.sqrt(top),
        epsabs=0,
        epsrel=1e-10,
        limit=200,
    )
    assert abs(pair_doubt(d, c) - expected) <= error + 1e-9 * expected


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 2000), st.floats(1.001, 10.0))
def test_doubt_lies_between_its_bounds(d: int, c: float) -> None:
    rho2 = c**-4
    lower = 0.25 * (1 - rho2) ** (d / 2)
    upper = 0.25 * ((1 - rho2) / (1 - rho2 / 2)) ** (d / 2)
    rounding = 1 + 4 * (d + 1000) * float(np.finfo(np.float64).eps)
    assert lower / rounding <= pair_doubt(d, c) <= upper * rounding


def test_doubt_at_the_ends() -> None:
    assert pair_doubt(3, 1.0) == 0.0
    assert pair_doubt(3, 1e4) == pytest.approx(0.25, rel=1e-12)


def test_bounds_enclose_the_excess() -> None:
    """With three tokens the bounds differ by a factor of two, and the excess lies well inside."""
    task = MatchCopyTask(T=3, d_in=4, c=1.5, coordinate_std=0.7)
    data = sample(task, 20_000, 0)
    variances = posterior_variances(data, bayes_predict(task, data)[1])
    error = 5 * variances.std() / np.sqrt(len(variances))
    lower, upper = bayes_excess_bounds(task)
    assert upper == 2 * lower
    assert lower + error < variances.mean() < upper + error
    assert bayes_excess_bounds(MatchCopyTask(T=2, d_in=4, c=1.5)) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: pair_doubt(0, 1.1), "d must"),
        (lambda: pair_doubt(3, 0.9), "c must be at least 1"),
        (lambda: pair_doubt(3, float("nan")), "c must"),
        (lambda: bayes_excess_bounds(MatchCopyTask.template(T=4, d=3)), "given by c"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        call()
