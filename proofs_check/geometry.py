"""Do data satisfy the geometric assumptions A1-A4 of the max-margin theorem? Each with what shows it.

Gonon, Cordonnier and Boumal (arXiv 2602.07562v1), Theorem D.2, part I.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marginlab.proofs_check.engine.claim import Status
from marginlab.proofs_check.tolerances import rounded
from marginlab.theory.match_copy.geometry import hull_distance
from marginlab.theory.validation import Float

if TYPE_CHECKING:
    from marginlab.proofs_check.certificates import Certificate
    from marginlab.proofs_check.separators import NonSeparability
    from marginlab.simulations.attention import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One assumption's answer.

    Attributes
    ----------
    status : Status
        HOLDS, FAILS, or UNDECIDED where rounding or a solver does not let it be told.
    witness : str
        What shows it, in words.
    value : float or None
        The number that decides.
    where : tuple of int
        The sample, and the rivals in it (counted without the match), of that number; empty if it is of all.
    """

    status: Status
    witness: str
    value: float | None = None
    where: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GeometryReport:
    """The four assumptions on one problem.

    Attributes
    ----------
    separability : Condition
        A1: some W has all margins at least 1. Its value is a lower bound of the largest margin.
    independence : Condition
        A2: the constraint vectors that support the margin are linearly independent. Its value is their number.
    identifiability : Condition
        A3: no target lies in the hull of its sample's other values. Its value is the least distance.
    half_space : Condition
        A4: error directions of a sample have positive inner products. Its value is the least of them.
    certificate : Certificate, NonSeparability or None
        Of A1 and A2: the enclosed separator, or weights with which the constraints combine to zero.
    """

    separability: Condition
    independence: Condition
    identifiability: Condition
    half_space: Condition
    certificate: Certificate | NonSeparability | None

    @property
    def holds(self) -> bool:
        """Whether all four are known to hold."""
        four = (self.separability, self.independence, self.identifiability, self.half_space)
        return all(condition.status is Status.HOLDS for condition in four)


def check_geometry(problem: Problem) -> GeometryReport:
    """Decide A1-A4 on a problem.

    Parameters
    ----------
    problem : Problem
        Of `marginlab.simulations.attention`; the targets may be any vectors.

    Returns
    -------
    GeometryReport
        A1 and A2 by a certificate in exact and ball arithmetic; A3 by a separating hyperplane, A4 by float64 inner
        products, both with their rounding bounded.

    Notes
    -----
    Nothing is raised where a condition fails: the report says so. A2 is about the support of the separator, and is
    undecided where there is none.
    """
    from marginlab.proofs_check.certificates import CertificateError, certify
    from marginlab.proofs_check.separators import NotSeparable, OracleFailed, max_margin

    constraints = problem.constraints()
    certificate: Certificate | NonSeparability | None = None
    try:
        certificate = certify(constraints, max_margin(constraints))
        first, second = separability(certificate), independence(certificate)
    except NotSeparable as reason:
        certificate = reason.certificate
        first = Condition(status=Status.FAILS, witness=f"no separator exists: {reason}", value=0.0)
        second = Condition(status=Status.UNDECIDED, witness="there is no separator, and so no support")
    except (OracleFailed, CertificateError) as reason:
        first = second = Condition(status=Status.UNDECIDED, witness=str(reason))
    return GeometryReport(
        separability=first,
        independence=second,
        identifiability=identifiability(problem),
        half_space=half_space(problem),
        certificate=certificate,
    )


def separability(certificate: Certificate) -> Condition:
    """A1, from a certified separator."""
    margin = certificate.margin_lower
    return Condition(
        status=Status.HOLDS, witness=f"separator certified, its margin is at least {margin:.6g}", value=margin
    )


def independence(certificate: Certificate) -> Condition:
    """A2: the Gram matrix of the supporting constraints is proved nonsingular."""
    if certificate.kind == "gap":
        return Condition(status=Status.UNDECIDED, witness=f"not proved: {certificate.unproved}")
    size = len(certificate.active)
    return Condition(
        status=Status.HOLDS,
        witness=f"Gram matrix of the {size} supporting constraints proved nonsingular",
        value=float(size),
    )


def target_errors(problem: Problem) -> Float:
    """v_t - target_i for the rivals t != y_i, shape (n, K - 1, d_v): d_{i,t} where the target is v_y."""
    n, K, _, d_v = problem.shape
    return problem.values[problem.rivals].reshape(n, K - 1, d_v) - problem.targets[:, None]


def identifiability(problem: Problem) -> Condition:
    """A3: every target lies outside the convex hull of the other values."""
    distances = [hull_distance(errors) for errors in target_errors(problem)]
    i = min(range(len(distances)), key=lambda k: distances[k].lower)
    lower, upper = distances[i].lower, distances[i].upper
    if lower > 0:
        witness = f"least distance to the hull is {lower:.4g}, at sample {i}"
        return Condition(status=Status.HOLDS, witness=witness, value=lower, where=(i,))
    # Without a separating hyperplane the target is in the hull as far as float64 can tell.
    inside = not distances[i].normal.any()
    return Condition(
        status=Status.FAILS if inside else Status.UNDECIDED,
        witness=f"the target of sample {i} is within {upper:.2g} of the hull of the other values",
        value=upper,
        where=(i,),
    )


def half_space(problem: Problem) -> Condition:
    """A4: all error directions of one sample have positive inner products."""
    errors = target_errors(problem)
    products = np.einsum("itj,isj->its", errors, errors)
    sizes = np.einsum("itj,isj->its", np.abs(errors), np.abs(errors))
    enclosed = rounded(products, operations=errors.shape[2] + 2, magnitude=sizes)
    i, t, s = (int(k) for k in np.unravel_index(int(np.argmin(enclosed.lo)), products.shape))
    value = float(products[i, t, s])
    status = Status.FAILS if (enclosed.hi <= 0).any() else Status.UNDECIDED
    if enclosed.lo[i, t, s] > 0:
        status = Status.HOLDS
    witness = f"least <d_t, d_s> is {value:.4g}, at sample {i}, rivals {t} and {s}"
    return Condition(status=status, witness=witness, value=value, where=(i, t, s))
