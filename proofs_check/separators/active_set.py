"""Least-distance programming on a set of rows: which of them support the separator, and with what weights.

min_{y >= 0} || sum_i y_i (x_i, beta_i) - (0, 1) ||^2 has the max-margin separator of the rows as its residual
(Lawson and Hanson's least-distance programming): with g = sum y_i x_i and tau = 1 - sum beta_i y_i,
<x_i, g> >= beta_i tau for all i, with equality where y_i > 0. The matrix H = X X^T + beta beta^T stays well
conditioned as the margin goes to zero, and the problem has a solution whether or not the rows are separable
(tau = 0 and g = 0 if they are not).

References
----------
.. [1] C. L. Lawson, R. J. Hanson. Solving Least Squares Problems, chapter 23. SIAM, 1995.
.. [2] L. F. Portugal, J. J. Judice, L. N. Vicente. A comparison of block pivoting and interior-point
   algorithms for linear least squares problems with nonnegative variables. Math. Comp. 63 (1994).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs

from marginlab.proofs_check.separators import double_double as dd
from marginlab.proofs_check.separators.double_double import DoubleDouble
from marginlab.proofs_check.separators.evaluation import UNIT_ROUNDOFF
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.theory.validation import Float, Int

_potrf, _potrs, _pstrf = get_lapack_funcs(("potrf", "potrs", "pstrf"), dtype=np.float64)


def independent_factor(H: Float) -> tuple[Float, Int]:
    """Cholesky factor L of a well-conditioned principal block of H, and that block's indices.

    Where H is singular to working precision (rows repeated or dependent), rows are dropped by diagonal
    pivoting until what is left is not.
    """
    k = len(H)
    # A Cholesky pivot carries a rounding error of about k u max(diag): one below a few of those is noise.
    noise = 4 * k * UNIT_ROUNDOFF * float(H.diagonal().max())
    L, info = _potrf(H, lower=1, clean=0)
    if info == 0 and float(L.diagonal().min()) ** 2 > noise:
        return L, np.arange(k)
    _, pivots, rank, _ = _pstrf(H, tol=noise, lower=1)
    kept = np.sort(pivots[:rank] - 1)
    while True:
        L, info = _potrf(H[np.ix_(kept, kept)], lower=1, clean=0)
        if info == 0:
            return L, kept
        kept = np.delete(kept, info - 1)


def block_pivoting(H: Float, beta: Float, start: Int, *, block: int, rounds: int = 60) -> Float | None:
    """Solution y >= 0 of min y^T H y / 2 - beta^T y, or None if it was not found within `rounds` exchanges.

    All negative weights leave at once and the `block` most violated rows enter, as in [2]; where that does
    not make progress, ever fewer are exchanged. There is no guarantee for singular H: callers fall back
    on a finite method.

    Parameters
    ----------
    H : (m, m) symmetric positive semidefinite matrix
    beta : (m,) array
    start : indices of the first guess of the support
    block : int
        Largest number of rows that enter in one exchange.
    """
    m = len(beta)
    support = np.zeros(m, dtype=bool)
    support[start] = True
    leaving, best, stalled = m, m + 1, 0
    for _ in range(rounds):
        rows = np.flatnonzero(support)
        y = np.zeros(m)
        if len(rows):
            L, kept = independent_factor(H[np.ix_(rows, rows)])
            rows = rows[kept]
            solution, _ = _potrs(L, beta[rows], lower=1)
            y[rows] = solution
        slack = H[:, rows] @ y[rows] - beta
        # H y - beta sums at most m terms below |y_j| max(H); max(H) <= 2 for rows of norm at most 1.
        noise = 4 * len(rows) * UNIT_ROUNDOFF * float(np.abs(y).sum()) + 4 * UNIT_ROUNDOFF
        support[:] = False
        support[rows] = True
        negative = support & (y < 0)
        violated = ~support & (slack < -noise)
        wrong = int(negative.sum() + violated.sum())
        if wrong == 0:
            return y
        stalled = 0 if wrong < best else stalled + 1
        best = min(best, wrong)
        if stalled > 3:  # as many tries with full exchanges as in [2], then smaller blocks
            leaving, block, stalled = max(1, min(leaving, wrong) // 2), max(1, block // 2), 0
        support &= ~_largest(negative, -y, leaving)
        support |= _largest(violated, -slack, block)
    return None


def _largest(chosen: np.ndarray, size: Float, count: int) -> np.ndarray:
    """`chosen`, cut down to the `count` entries of largest `size`."""
    index = np.flatnonzero(chosen)
    if len(index) <= count:
        return chosen
    keep = index[np.argpartition(size[index], len(index) - count)[len(index) - count :]]
    result = np.zeros_like(chosen)
    result[keep] = True
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Support:
    """The linear system of a set of supporting rows, solved to twice the working precision.

    Attributes
    ----------
    rows : (k,) indices, independent
    y : (k,) double-double weights: <x_i, g> = beta_i tau on all rows, signs not forced
    g : double-double, sum y_i x_i in the shape of W
    lift : array in the shape of W
        Direction with <x_i, lift> = 1 up to a multiple of beta_i: adding a little of it gives every
        supporting row the same extra slack.
    """

    rows: Int
    y: DoubleDouble
    g: DoubleDouble
    lift: Float

    @property
    def weights(self) -> Float:
        return self.y[0] + self.y[1]

    @property
    def separator(self) -> Float:
        return self.g[0] + self.g[1]

    def rounded_separator(self) -> Float:
        """g moved by 2 u ||g|| towards the inside of every supporting constraint before rounding.

        Rounding g moves <x_i, g> by at most u ||g||; the slack absorbs it, at a cost in length that is of
        the order of u / delta (see `default_tolerance`), whatever the units of the rows.
        """
        shift = 2 * UNIT_ROUNDOFF * float(np.linalg.norm(self.separator))
        return self.g[0] + (self.g[1] + shift * self.lift)


def support_system(problem: ScaledProblem, rows: Int, *, refinements: int = 6) -> Support:
    """Solve H y = beta on `rows` by Cholesky and iterative refinement with double-double residuals.

    Dependent rows are dropped. Each refinement gains a factor of about 1 / (k u cond(H)), estimated from
    the first one; it stops at k u^2, or at once where there is nothing to gain.
    """
    H = problem.gram(rows, rows)
    H += np.multiply.outer(problem.beta[rows], problem.beta[rows])
    L, kept = independent_factor(H)
    rows = rows[kept]
    beta = problem.beta[rows]
    first, _ = _potrs(L, beta, lower=1)
    y: DoubleDouble = first, np.zeros_like(first)
    largest = float(np.abs(first).max())
    contraction: float | None = None
    for _ in range(refinements):
        g = problem.combine_dd(y, rows)
        share = dd.total(dd.times(beta, y), axis=0)
        tau = dd.add((np.array(1.0), np.array(0.0)), dd.negate(share))
        residual = dd.add(dd.times(beta, tau), dd.negate(problem.margins_dd(g, rows)))
        correction, _ = _potrs(L, residual[0] + residual[1], lower=1)
        y = dd.add(y, (correction, np.zeros_like(correction)))
        # The first correction shows the contraction; the next one would be smaller by as much.
        size = float(np.abs(correction).max()) / largest
        contraction = size if contraction is None else contraction
        if size * contraction <= UNIT_ROUNDOFF**2 * len(rows) or contraction >= 0.5:
            break
    g = problem.combine_dd(y, rows)
    ones, _ = _potrs(L, np.ones_like(beta), lower=1)
    return Support(rows=rows, y=y, g=g, lift=problem.combine(ones, rows))
