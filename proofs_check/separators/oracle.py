"""`max_margin`: one front for every oracle, and the checks that no oracle is trusted with."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginlab.proofs_check.separators.evaluation import TARGET_GAP, accepted
from marginlab.proofs_check.separators.scaled import DenseProblem, row_norms, scaled_problem
from marginlab.proofs_check.separators.solution import Constraints, MaxMargin, NonSeparability, NotSeparable
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.validation import float_array, one_of, positive

ORACLES = ("working-set", "nnls", "cvxpy", "first-order")
NORMS = ("frobenius", "nuclear")


def max_margin(
    constraints: Any, *, oracle: str = "working-set", norm: str = "frobenius", tolerance: float | None = None
) -> MaxMargin:
    """Max-margin separator argmin ||W|| subject to <W, z_i> >= 1 for all i.

    Parameters
    ----------
    constraints : (N, D) array of constraint vectors z_i, or RankOneConstraints
        Integers are taken as floats where that is exact; booleans are refused. Nonzero vectors (for
        RankOneConstraints also the key differences and queries) have norms between 2^-256 and 2^256, about
        1e-77 and 1e77: multiply all by one number where they do not.
    oracle : {"working-set", "nnls", "cvxpy", "first-order"}
        Families: active set (the fast one); Lawson and Hanson's least-distance programming by SciPy;
        interior point by cvxpy with Clarabel (the independent reviewer); accelerated projected
        gradient (memory of a few copies of the data, for problems too large to factor).
    norm : {"frobenius", "nuclear"}
        Nuclear needs `RankOneConstraints` (W must be a matrix) and oracle "cvxpy" or "first-order".
    tolerance : float, optional
        Largest accepted gap (margin_upper - margin_lower) / margin_upper. By default what the oracle's family
        can reach, plus the cost of rounding W where the data are nearly inseparable, up to 1e-6
        (`evaluation.default_tolerance`).

    Returns
    -------
    MaxMargin

    Raises
    ------
    NotSeparable
        Proved: some convex combination of the z_i is exactly zero; the exception carries it, rounded.
    OracleFailed
        The gap that we recompute from W and the dual weights is above the tolerance, or separability could
        not be decided in float64.
    InvalidInput
        Not an (N, D) array of finite real numbers with N, D >= 1; norms beyond the limits; numbers that
        float64 does not hold; unknown oracle or norm; tolerance not > 0.
    MethodUnavailable
        This oracle has no method for this norm or this size.

    Notes
    -----
    The bounds follow from weak duality: for every W and every p in the simplex,
    min_i <W, z_i> / ||W|| <= max_U min_i <U, z_i> / ||U|| <= ||sum p_i z_i||_*. No solver's status is used.
    """
    one_of(oracle, "oracle", ORACLES)
    one_of(norm, "norm", NORMS)
    if tolerance is not None:
        tolerance = positive(tolerance, "tolerance")
    checked, norms = _checked(constraints)
    zero = np.flatnonzero(norms == 0)
    if len(zero):
        weights = np.zeros(len(norms))
        weights[zero[0]] = 1.0
        raise NotSeparable(
            f"the constraints are not separable: constraint vector {zero[0]} is zero, so no W gives it a "
            f"margin.",
            NonSeparability(weights=weights, residual=0.0),
        )
    problem = DenseProblem(checked, norms) if isinstance(checked, np.ndarray) else scaled_problem(checked)
    if norm == "nuclear":
        if not isinstance(checked, RankOneConstraints):
            raise InvalidInput("the nuclear norm needs RankOneConstraints, got an array whose W is a vector.")
        from marginlab.proofs_check.separators.nuclear import NUCLEAR_GAP, NUCLEAR_METHODS

        if oracle not in NUCLEAR_METHODS:
            raise MethodUnavailable(
                f"oracle {oracle} has no method for the nuclear norm: use {' or '.join(NUCLEAR_METHODS)}."
            )
        solution, target = NUCLEAR_METHODS[oracle](problem), NUCLEAR_GAP[oracle]
    elif oracle == "working-set":
        from marginlab.proofs_check.separators.working_set import working_set

        solution, target = working_set(problem), TARGET_GAP
    elif oracle == "nnls":
        from marginlab.proofs_check.separators.nnls import nonnegative_least_squares

        solution, target = nonnegative_least_squares(problem), TARGET_GAP
    elif oracle == "cvxpy":
        from marginlab.proofs_check.separators.conic import CONIC_GAP, quadratic_program

        solution, target = quadratic_program(problem), CONIC_GAP
    else:
        from marginlab.proofs_check.separators.first_order import FIRST_ORDER_GAP, projected_gradient

        target = FIRST_ORDER_GAP if tolerance is None else tolerance
        solution = projected_gradient(problem, target)
    return accepted(solution, problem, tolerance, target)


def _checked(constraints: Any) -> tuple[Constraints, np.ndarray]:
    """Validated constraints and the norms of their vectors."""
    if isinstance(constraints, RankOneConstraints):
        queries = row_norms(constraints.queries)[constraints.sample]
        # min: a product of two norms could underflow to zero although neither vector is zero.
        return constraints, np.minimum(row_norms(constraints.key_diffs), queries)
    Z = float_array(constraints, "constraints", ndim=2)
    if Z.size == 0:
        raise InvalidInput(
            f"a separator problem needs at least one constraint and one dimension, got shape {Z.shape}."
        )
    return Z, row_norms(Z)
