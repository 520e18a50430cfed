"""Oracle `cvxpy`: the quadratic program by an interior-point solver, as an independent reviewer."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
from scipy.optimize import nnls

from marginlab.proofs_check.separators.decision import decided
from marginlab.proofs_check.separators.dense_qp import nonnegative_weights
from marginlab.proofs_check.separators.evaluation import max_margin_of
from marginlab.proofs_check.separators.scaled import ScaledProblem
from marginlab.proofs_check.separators.solution import MaxMargin, OracleFailed
from marginlab.theory.validation import Float

# What Clarabel is asked for (relative gap and feasibility): far enough below CONIC_GAP that a
# solution with a status of reduced accuracy is still told apart by our own gap.
_SOLVER_TOLERANCE = 1e-11

# Interior-point solvers in float64 end between 1e-9 and 1e-11 of relative gap on dense data; two digits more
# are allowed for the scaling of W to margin 1, which multiplies feasibility errors by ||W||.
CONIC_GAP = 1e-7


def quadratic_program(problem: ScaledProblem) -> MaxMargin:
    """Max-margin separator by Clarabel on min ||w||^2 / 2 subject to X w >= beta, one vectorised constraint.

    The weights are not the solver's: they are fitted to its w by non-negative least squares on the rows that
    w leaves nearly active.

    Raises
    ------
    NotSeparable, OracleFailed
    """
    X = problem.dense(np.arange(len(problem)))
    w = cp.Variable(X.shape[1])
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w)), [X @ w >= problem.beta])
    if solved(program, clarabel_options(_SOLVER_TOLERANCE)) and w.value is not None:
        y = fitted_weights(X, problem.beta, np.asarray(w.value))
        separator = np.asarray(w.value).reshape(problem.shape)
        solution = max_margin_of(problem, separator, y, oracle="cvxpy", iterations=iterations(program))
        if solution is not None:
            return solution
    # Not a separator: only a vanishing combination of the rows may say that there is none.
    y = nonnegative_weights(X, problem.beta)
    return decided(problem, y, oracle="cvxpy")


def clarabel_options(tolerance: float) -> dict[str, object]:
    """Options that ask Clarabel for `tolerance` in relative gap and feasibility."""
    return {
        "solver": cp.CLARABEL,
        "tol_gap_abs": tolerance,
        "tol_gap_rel": tolerance,
        "tol_feas": tolerance,
    }


def solved(program: cp.Problem, options: dict[str, object]) -> bool:
    """Whether the solver left anything to judge; failures and rough answers are for our own gap to tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "Solution may be inaccurate"
        try:
            program.solve(**options)
        except cp.SolverError:
            return False
    return True


def iterations(program: cp.Problem) -> int:
    """The solver's own count of iterations, for information."""
    stats = program.solver_stats
    return int(stats.num_iters or 0) if stats is not None else 0


def fitted_weights(X: Float, beta: Float, w: Float) -> Float:
    """Weights a >= 0 that minimise ||w - sum a_i x_i|| over rows whose margin is near the smallest.

    The interior-point tolerance leaves active rows within about sqrt(tolerance) of their bound.
    """
    excess = X @ w - beta
    near = np.flatnonzero(excess <= np.sqrt(_SOLVER_TOLERANCE) * (beta + np.linalg.norm(w)))
    weights = np.zeros(len(X))
    if len(near):
        size = float(np.linalg.norm(w))
        try:
            part, _ = nnls(X[near].T, w / size, maxiter=30 * max(X.shape))
        except RuntimeError as error:
            raise OracleFailed(f"the weights of the cvxpy solution could not be fitted: {error}.") from None
        weights[near] = part * size
    return weights
