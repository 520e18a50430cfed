r"""Two-sided bounds on what the uncertainty of the match costs the posterior mean.

For C = rho I the doubt between two candidates, the mean of q (1 - q) for the posterior q of one against the other, is

.. math:: P = \tfrac14 (1 - a^2)^{d/2} \int_0^\infty
              \mathrm{sech}\big(\tfrac{\pi \theta}{2}\big)\, (1 + a^2 \theta^2)^{-d/2}\, d\theta, \qquad
          a^2 = \frac{\rho^2}{2 - \rho^2},

and the error of the posterior mean exceeds the noise by at least 2 (T - 2)/(T - 1) and at most 2 (T - 2) times P times
the signal's variance. Derived in docs/task.md.
"""

from __future__ import annotations

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.predictors import signal_variance
from marginlab.theory.match_copy.task import MatchCopyTask
from marginlab.theory.validation import count, positive


def pair_doubt(d: int, c: float) -> float:
    """E q (1 - q), q the posterior of one of two candidates in dimension d for C = c^-2 I, c >= 1; 0 for c = 1.

    Raises
    ------
    InvalidInput
        d < 1, or c < 1.

    Notes
    -----
    Between (1 - rho^2)^{d/2} / 4 and (1 - a^2)^{d/2} / 4. The integrand is smooth, even and below 2 e^{-pi theta / 2},
    so that the trapezoidal rule converges geometrically.
    """
    d, c = count(d, "d"), positive(c, "c")
    if c < 1:
        raise InvalidInput(f"c must be at least 1, so that the query can have the law of a token; got {c:g}.")
    rho2 = c**-4
    a2 = rho2 / (2 - rho2)
    # The trapezoidal rule with step h errs by about exp(-2 pi y / h), y the width of the strip around the real axis on
    # which the integrand is analytic and of moderate size: 1 (the pole of sech), or 1/(a sqrt d), where the other
    # factor has grown by e^{1/2}. With h below as much divided by 8 that is exp(-50), and so is the cut at 26:
    # exp(-26 pi / 2). Both are far below a rounding error of the integral, which is at least 1/sqrt(1 + a^2 d).
    step = 1 / (8 * np.sqrt(1 + a2 * d))
    theta = np.arange(0.0, 26.0, step)
    values = np.exp(-0.5 * d * np.log1p(a2 * theta**2)) / np.cosh(0.5 * np.pi * theta)
    integral = step * (values.sum() - 0.5 * values[0])
    return float(0.25 * (1 - a2) ** (0.5 * d) * integral)


def bayes_excess_bounds(task: MatchCopyTask) -> tuple[float, float]:
    """Lower and upper bound on the posterior mean's expected error less noise^2, given W_V, for C = c^-2 I.

    Raises
    ------
    InvalidInput
        A task with a general C, or an exact match.
    """
    if task.c is None:
        raise InvalidInput("the bounds hold for C = c^-2 I: the task must be given by c.")
    per_candidate = 2 * (task.T - 2) * pair_doubt(task.d_in, task.c) * signal_variance(task)
    return per_candidate / (task.T - 1), per_candidate
