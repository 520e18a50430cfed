"""Rigorous certificates of max-margin separators."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.optimize import nnls

from marginlab.proofs_check.certificates.certificate import Certificate
from marginlab.proofs_check.certificates.document import claims_of, dual_block, too_much, unscaled_weights
from marginlab.proofs_check.certificates.dyadic import ceil_float, floor_float, power_of_two, rounded_over
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import ScaledProblem, gamma, owned, scaled_problem
from marginlab.proofs_check.certificates.rational import MAX_ROWS, exact_weights
from marginlab.proofs_check.certificates.sandwich import sandwich, weight_total
from marginlab.proofs_check.certificates.support import Support, fixed_point, proved_support
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, Int, flag, frozen, shaped_array

#: Rows or dimensions of a Gram matrix that is factored, and entries of that factor: a minute, and 1 GB.
MAX_FACTOR, MAX_CELLS = 2048, 1 << 27

#: Rows among which supports are exchanged in exact rationals (a tenth of a second a solve at this size), and
#: how often more rows join them.
MAX_EXCHANGED, MAX_EXCHANGES = 48, 8


class Solution(Protocol):
    """What `certify` reads of a solution: a separator and its dual weights (a `MaxMargin`, say)."""

    @property
    def W(self) -> Float: ...  # noqa: N802

    @property
    def dual(self) -> Float: ...


def certify(
    constraints: Float | RankOneConstraints, solution: Solution, *, exact: bool = False
) -> Certificate:
    """Prove an enclosure of the margin and of the direction of the max-margin separator.

    The data are taken as the exact dyadic rationals that their float64 entries are. Residuals are computed in
    integers; the Gram system of the supporting constraints is enclosed by Krawczyk's test in float64 with
    a-priori rounding bounds, and in Arb balls where float64 is too short.

    Parameters
    ----------
    constraints : (N, D) array or RankOneConstraints
    solution : MaxMargin
        Any object with `W` and `dual` in the Frobenius norm; a starting point, nothing of it is believed.
    exact : bool
        Solve for the optimum in exact rationals (small problems with short entries).

    Returns
    -------
    Certificate
        Of kind ``active-set`` where the support can be proved, else ``gap`` (which constraints that are
        linearly dependent, or a dual weight of exactly zero, force) with the inequality that failed in
        `unproved`; of kind ``exact`` if that was asked for. A support that would take the checker more than
        about a minute (some 800 constraints) is not written as one. The data are copied.

    Raises
    ------
    CertificateError
        Nothing could be proved; the message names the inequality. Or float64 cannot hold the separator, or a
        certificate file the numbers.
    InvalidInput
        Shapes that do not fit, NaN, a solution for another norm.

    Notes
    -----
    min ||W||_F^2 / 2 subject to <W, z_i> >= 1 is strictly convex, so that W* is unique, and W* = sum p_i z_i
    with p >= 0, p_i (<W*, z_i> - 1) = 0 is necessary and sufficient for it.
    """
    flag(exact, "exact")
    constraints = owned(constraints)
    # float steps only choose what to prove, or end in bounds that infinities and NaN leave unproved
    with np.errstate(all="ignore"):
        problem = scaled_problem(constraints)
        W, dual = _checked(constraints, problem, solution)
        scaled = problem.scaled_weights(dual)
        rows = np.flatnonzero(scaled > 0)
        if exact:
            return _exact_certificate(constraints, problem, W, rows)
        support = proved_support(problem, rows, scaled[rows])
        if support is None or support.unproved is not None:
            support = _second_try(problem, W, scaled, support)
        return _certificate(constraints, problem, W, support)


def _checked(
    constraints: Float | RankOneConstraints, problem: ScaledProblem, solution: Solution
) -> tuple[Float, Float]:
    """W as a (d_k, d_q) matrix and the dual weights of a solution."""
    norm = getattr(solution, "norm", "frobenius")
    if norm != "frobenius":
        raise InvalidInput(f"only Frobenius separators have rigorous certificates, got norm {norm!r}.")
    dense = not isinstance(constraints, RankOneConstraints)
    wanted = (problem.shape[0],) if dense else problem.shape
    W = shaped_array(solution.W, "solution.W", wanted)
    dual = shaped_array(solution.dual, "solution.dual", (len(problem),))
    if (dual < 0).any():
        row = int(np.argmin(dual))
        raise InvalidInput(f"dual weights must be >= 0, got {dual[row]} for constraint {row}.")
    zero = problem.zero_rows()
    if zero.any():
        raise CertificateError(
            f"margin of constraint {int(np.argmax(zero))} > 0 cannot hold: its vector is zero."
        )
    if not dual.any():
        raise CertificateError("dual weights prove a bound only if one of them is positive, got all zero.")
    return W.reshape(problem.shape), dual


def basic_weights(problem: ScaledProblem, rows: Int) -> Float:
    """Dual weights of the problem restricted to `rows` whose support is linearly independent.

    Least-distance programming (Lawson and Hanson, ch. 23) by NNLS on a factor F of the Gram matrix: with
    residual r of min ||F^T p|| , b^T p = 1 in the least-squares sense, the weights are p / (1 - b^T p). NNLS
    passes only through linearly independent supports.
    """
    dimension = problem.shape[0] * problem.shape[1]
    if (
        min(len(rows), dimension) > MAX_FACTOR
        or max(len(rows), dimension) * min(len(rows), dimension) > MAX_CELLS
    ):
        return np.zeros(len(rows))
    if len(rows) > dimension:  # the rows themselves are the smaller factor
        factor = problem.dense(rows)
    else:
        gram, _ = problem.gram(rows)
        values, vectors = np.linalg.eigh(gram)
        # eigh is off by a modest multiple of k u ||G||: what is below is taken for zero (nothing rests on it)
        keep = values > values[-1] * gamma(16 * len(rows))
        factor = vectors[:, keep] * np.sqrt(values[keep])
    system = np.vstack([factor.T, problem.thresholds[rows][None, :]])
    target = np.zeros(len(system))
    target[-1] = 1.0
    try:
        weights, _ = nnls(system, target)
    except RuntimeError:  # its iteration limit
        return np.zeros(len(rows))
    rest = 1.0 - problem.thresholds[rows] @ weights
    return weights / rest if rest > 0 else np.zeros(len(rows))


def _exchanged(problem: ScaledProblem, near: Int, support: Support) -> Support | None:
    """A proved support from exact exchanges of rows, where float64 cannot tell nearly equal ones apart.

    Every constraint that is proved to be violated joins `near`, whose exact optimum is the next guess.
    """
    for _ in range(MAX_EXCHANGES):
        near = np.union1d(near, np.array([*support.rows, *support.refuted], dtype=np.intp))
        if len(near) > MAX_EXCHANGED:
            return None
        local = problem.select(near)
        try:
            found = exact_weights(local, np.searchsorted(near, support.rows))
        except CertificateError:
            return None
        if not found.separates:
            return None
        weights = rounded_over(found.numerators, 0, found.denominator)
        tried = proved_support(problem, near[found.rows], weights)
        if tried is None or tried.unproved is None:
            return tried
        if not set(tried.refuted) - set(near.tolist()):
            return None
        support = tried
    return None


def _second_try(problem: ScaledProblem, W: Float, scaled: Float, first: Support | None) -> Support:
    """A support from NNLS on the rows near the margin; the weights as given if that leads nowhere."""
    unit = np.ldexp(W, -np.frexp(np.abs(W).max())[1])  # of order one, whatever the scale of W
    margins = np.einsum("ij,ij->i", problem.keys, (problem.queries @ unit.T)[problem.sample])
    ratio = margins / problem.thresholds
    # a heuristic choice of candidates (what is proved about them is not): float oracles leave 1e-9 at most
    near = problem.distinct(np.flatnonzero((scaled > 0) | (ratio <= ratio.min() * (1 + 1e-6))))
    tries = [] if first is None else [first]
    weights = basic_weights(problem, near)
    for least in (0.0, 2.0**-40 * weights.max()):  # NNLS leaves rounding where an exact weight is zero
        chosen = weights > least
        tried = proved_support(problem, near[chosen], weights[chosen]) if chosen.any() else None
        if tried is not None and tried.unproved is None:
            return tried
        tries += [] if tried is None else [tried]
    for tried in tries:
        better = _exchanged(problem, near, tried) if tried.refuted or not tried.positive else None
        if better is not None:
            return better
    for tried in reversed(tries):
        if tried.positive:
            return tried
    rows = np.flatnonzero(scaled > 0)
    weights, exponent = fixed_point(scaled[rows])
    reason = (
        "the Gram matrix of the supporting constraints is nonsingular" if first is None else first.unproved
    )
    return Support(
        rows, weights, exponent, problem.integer_rows(rows).combine(weights, exponent), False, reason
    )


def _exact_certificate(
    constraints: Float | RankOneConstraints, problem: ScaledProblem, W: Float, rows: Int
) -> Certificate:
    """The rational optimum, started from the rows with a dual weight."""
    if len(rows) <= MAX_ROWS:
        chosen = basic_weights(problem, rows) > 0
        rows = rows[chosen] if chosen.any() else rows
    found = exact_weights(problem, rows)
    if not found.separates:
        raise CertificateError(
            "min_i <W, z_i> > 0 cannot hold: nonnegative weights on constraints "
            f"{', '.join(map(str, sorted(found.rows.tolist())))} combine to exactly zero."
        )
    V = problem.integer_rows(found.rows).combine(found.numerators, 0)
    support = Support(found.rows, found.numerators, 0, V, True, None)
    return _certificate(constraints, problem, W, support, denominator=found.denominator)


def _certificate(
    constraints: Float | RankOneConstraints,
    problem: ScaledProblem,
    W: Float,
    support: Support,
    *,
    denominator: int | None = None,
) -> Certificate:
    """Bounds of a support, and its file; with a denominator, of an exact optimum.

    A common factor of all weights changes neither bound, so that the denominator does not enter them.
    """
    total = weight_total(problem, support.rows, support.weights, support.exponent)
    bounds = sandwich(problem, W, support.combination, total, support.margin)
    if bounds.lower <= 0:
        raise CertificateError("the largest margin > 0 could not be proved.")
    unproved = support.unproved
    kind = "exact" if denominator else "active-set" if unproved is None else "gap"
    weights, exponent = unscaled_weights(
        support.weights, support.exponent, problem.bits[support.rows], problem.shift
    )
    block = dual_block(support.rows, weights, exponent, denominator or 1)
    claims = claims_of(bounds)
    squared = None
    if denominator:
        squared = denominator / (sum(map(int, weights)) * power_of_two(exponent))
        claims["margin_squared"] = f"{squared.numerator}/{squared.denominator}"
    dual = np.zeros(len(problem))
    dual[support.rows] = rounded_over(weights, exponent, denominator or 1)
    limit = too_much(constraints, block, W, support.rungs if kind == "active-set" else 0)
    if limit and kind == "active-set":
        kind, unproved = "gap", f"the support is proved, but {limit}"
        limit = too_much(constraints, block, W, 0)
    if limit:
        raise CertificateError(limit)
    shape = problem.shape if isinstance(constraints, RankOneConstraints) else problem.shape[:1]
    return Certificate(
        kind=kind,
        constraints=constraints,
        weights_block=block,
        claims=claims,
        margin_lower=floor_float(bounds.lower),
        margin_upper=ceil_float(bounds.upper),
        achieved=floor_float(bounds.achieved),
        gap=ceil_float(bounds.gap),
        angle_bound=ceil_float(bounds.angle),
        W=frozen(W.reshape(shape)),
        centre=frozen(bounds.centre.reshape(shape)),
        radius=ceil_float(bounds.radius),
        dual=frozen(dual),
        active=frozen(np.array(block["support"], dtype=np.intp)),
        unproved=unproved,
        margin_squared=squared,
    )
