"""Nuclear norm: min ||W||_* subject to <W, z_i> >= 1, the separator of a factorised W = K^T Q.

The dual norm is the spectral norm: for every p in the simplex no W has a margin per nuclear norm above
||sum p_i z_i||_2. Two solvers of different families, both judged by that bound: Clarabel (interior point) and
SCS (operator splitting). Neither's status is used.
"""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np

from marginlab.proofs_check.separators.conic import clarabel_options, iterations, solved
from marginlab.proofs_check.separators.decision import decided
from marginlab.proofs_check.separators.dense_qp import nonnegative_weights
from marginlab.proofs_check.separators.evaluation import max_margin_of
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin

# What each solver is asked for. Clarabel factors a semidefinite cone of side d_k + d_q to about 1e-10; SCS
# converges linearly at best, and 1e-8 takes it some thousands of cheap steps.
_CLARABEL_TOLERANCE = 1e-10
_SCS_TOLERANCE = 1e-8

# Accepted gaps: three digits above what is asked for, since feasibility errors, absolute to the solver, are
# relative to the margin here. The first-order figure is also what SCS reaches on data of moderate condition.
NUCLEAR_GAP = {"cvxpy": 1e-7, "first-order": 1e-5}


def by_interior_point(problem: ScaledProblem) -> MaxMargin:
    """Nuclear-norm separator by Clarabel.

    Raises
    ------
    NotSeparable, OracleFailed
    """
    return _separator(problem, "cvxpy", clarabel_options(_CLARABEL_TOLERANCE))


def by_splitting(problem: ScaledProblem) -> MaxMargin:
    """Nuclear-norm separator by SCS.

    Raises
    ------
    NotSeparable, OracleFailed
    """
    options = {
        "solver": cp.SCS,
        "eps_abs": _SCS_TOLERANCE,
        "eps_rel": _SCS_TOLERANCE,
        "max_iters": 100_000,
    }
    return _separator(problem, "first-order", options)


NUCLEAR_METHODS: dict[str, Callable[[ScaledProblem], MaxMargin]] = {
    "cvxpy": by_interior_point,
    "first-order": by_splitting,
}


def _separator(problem: ScaledProblem, oracle: str, options: dict[str, object]) -> MaxMargin:
    X = problem.dense(np.arange(len(problem)))
    W = cp.Variable(problem.shape)
    rows = X @ cp.reshape(W, (X.shape[1],), order="C") >= problem.beta
    program = cp.Problem(cp.Minimize(cp.normNuc(W)), [rows])
    if solved(program, options) and W.value is not None and rows.dual_value is not None:
        # The weights only have to be non-negative to give a bound: negative ones are noise, and cut.
        y = np.maximum(np.asarray(rows.dual_value, dtype=np.float64).ravel(), 0.0)
        solution = max_margin_of(
            problem,
            np.asarray(W.value, dtype=np.float64),
            y,
            oracle=oracle,
            norm="nuclear",
            iterations=iterations(program),
        )
        if solution is not None:
            return solution
    # Separability does not depend on the norm.
    return decided(problem, nonnegative_weights(X, problem.beta), oracle=oracle, norm="nuclear")
