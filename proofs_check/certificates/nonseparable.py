"""Certificates that no separator exists, or none of moderate norm."""

from __future__ import annotations

import numpy as np

from marginlab.proofs_check.certificates.certificate import NonSeparableCertificate
from marginlab.proofs_check.certificates.document import dual_block, too_much, unscaled_weights
from marginlab.proofs_check.certificates.dyadic import (
    Integers,
    ceil_float,
    ceil_root,
    decimal,
    power_of_two,
    rounded,
)
from marginlab.proofs_check.certificates.errors import CertificateError
from marginlab.proofs_check.certificates.problem import ScaledProblem, owned, scaled_problem
from marginlab.proofs_check.certificates.rational import (
    MAX_ROWS,
    RationalWeights,
    exact_weights,
    null_weights,
)
from marginlab.proofs_check.certificates.sandwich import weight_total
from marginlab.proofs_check.certificates.support import fixed_point
from marginlab.theory.constraints import RankOneConstraints
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, Int, frozen, shaped_array

#: Key entries of a problem whose constraints are all gone through in integers at each exchange: a tenth of a second.
MAX_SWEEP = 1 << 17


def certify_non_separable(constraints: Float | RankOneConstraints, weights: Float) -> NonSeparableCertificate:
    """Prove that nothing separates, or how small the margin of anything must be.

    Parameters
    ----------
    constraints : (N, D) array or RankOneConstraints
    weights : (N,) array, >= 0
        Convex weights with sum p_i z_i ~ 0 (of any positive sum); a starting point.

    Returns
    -------
    NonSeparableCertificate
        Of kind ``not-separable`` if exact rational weights with sum p_i z_i = 0 are found on the support of
        `weights` (at most 128 rows), or on all rows of a problem of moderate size; by Gordan's alternative no W
        then has all margins positive. Else of kind ``norm-bound``: with r = ||sum p_i z_i|| / sum p_i no W of
        Frobenius norm 1 has margin above r, so that any W with all margins >= 1 has norm >= 1/r. That leaves
        a separator of smaller margin open.

    Raises
    ------
    CertificateError
        Weights too large or small for the certificate's format.
    InvalidInput
        Wrong shape, a negative weight, no positive weight.
    """
    constraints = owned(constraints)
    problem = scaled_problem(constraints)
    weights = shaped_array(weights, "weights", (len(problem),))
    if (weights < 0).any():
        row = int(np.argmin(weights))
        raise InvalidInput(f"weights must be >= 0, got {weights[row]} for constraint {row}.")
    if not weights.any():
        raise InvalidInput("one of the weights must be positive, got all zero.")
    exact, unproved = _exact_weights(problem, np.flatnonzero(weights > 0))
    if exact is not None:
        try:
            return _certificate(
                constraints, problem, exact.rows, exact.numerators, 0, exact.denominator, None
            )
        except CertificateError as error:  # numbers too long for a file
            unproved = str(error)
    scaled = problem.scaled_weights(weights)
    rows = np.flatnonzero(scaled > 0)
    integers, exponent = fixed_point(scaled[rows])
    return _certificate(constraints, problem, rows, integers, exponent, 1, unproved)


def _exact_weights(problem: ScaledProblem, rows: Int) -> tuple[RationalWeights | None, str | None]:
    """Rational weights on `rows` that combine to exactly zero, or the reason why there are none."""
    zero = rows[problem.zero_rows()[rows]]
    if len(zero):  # a constraint 0 >= 1
        return RationalWeights(zero[:1], np.array([1], dtype=object), 1, False), None
    found = null_weights(problem, rows)
    if found is None and len(rows) <= MAX_ROWS // 2:  # the method makes a solve for each row
        found = exact_weights(problem.select(rows), np.zeros(0, dtype=np.intp))
        found = RationalWeights(rows[found.rows], found.numerators, found.denominator, found.separates)
        unit = problem.shape[0] * problem.shape[1]
        if found.separates and (
            len(problem) <= MAX_ROWS // 2 or (unit < MAX_ROWS // 2 and problem.keys.size <= MAX_SWEEP)
        ):
            try:
                found = exact_weights(problem, found.rows)
            except CertificateError as error:
                return None, f"sum p_i z_i = 0 exactly: {error}"
            if found.separates:
                return None, "sum p_i z_i = 0 exactly: the constraints are separable"
        if found.separates:
            return None, "sum p_i z_i = 0 exactly: the constraints with a weight are separable by themselves"
    if found is None:
        return None, f"sum p_i z_i = 0 exactly: no rational weights were found on the {len(rows)} rows given"
    return found, None


def _certificate(
    constraints: Float | RankOneConstraints,
    problem: ScaledProblem,
    rows: Int,
    weights: Integers,
    exponent: int,
    denominator: int,
    unproved: str | None,
) -> NonSeparableCertificate:
    """The bound that the weights prove, and its file."""
    norm = problem.integer_rows(rows).combine(weights, exponent).norm_squared()
    total = weight_total(problem, rows, weights, exponent)
    upper = ceil_root(norm / total**2) * power_of_two(problem.shift)
    plain, power = unscaled_weights(weights, exponent, problem.bits[rows], problem.shift)
    kind = "not-separable" if norm == 0 else "norm-bound"
    claims = {} if norm == 0 else {"margin_upper": decimal(upper, up=True)}
    block = dual_block(rows, plain, power, denominator)
    if limit := too_much(constraints, block, None, 0):
        raise CertificateError(limit)
    result = np.zeros(len(problem))
    scale = int(np.max([int(w).bit_length() for w in plain]))
    result[rows] = rounded(plain, -scale)
    return NonSeparableCertificate(
        kind=kind,
        constraints=constraints,
        weights_block=block,
        claims=claims,
        margin_upper=ceil_float(upper),
        weights=frozen(result / result.sum()),
        unproved=unproved if norm else None,
    )
