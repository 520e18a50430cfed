"""Which theorem applies at an iterate, tried in ball arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from marginlab.proofs_check.certificates.dyadic import ceil_float, floor_float
from marginlab.proofs_check.convergence.document import document_of, ends
from marginlab.proofs_check.convergence.geometry import PRECISION, Geometry
from marginlab.proofs_check.convergence.proof import ConvergenceProof
from marginlab.proofs_check.convergence.theorems import assumptions, half_space, identifiable
from marginlab.simulations.attention import Problem
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, positive, shaped_array


def prove_convergence(problem: Problem, W: ArrayLike, step: float | None) -> ConvergenceProof:
    r"""Prove what gradient descent on the squared error does for ever from W on.

    Parameters
    ----------
    problem : Problem
        With exact targets: each is the value of its match.
    W : (d, d) array
        An iterate, taken as the exact dyadic numbers that it holds.
    step : float > 0 or None
        The fixed step of gradient descent on eq. (19); None for gradient flow.

    Returns
    -------
    ConvergenceProof
        Its `constants`, each an enclosure: ``loss`` L at W; ``rate`` r and ``rate_upper`` with
        1/L_0 + r k <= 1/L_k <= 1/L_0 + rate_upper k, k steps (or time) later; ``squared_gradients``, a bound of their
        sum (or integral); ``separator_norm`` ||W_hat||; ``alignment`` g = min <d_s, d_t>; ``theta``; ``x`` =
        sqrt(2 L/g), a bound of 1 - a_match; ``smoothness`` B with -B L <= Hessian <= B L; ``start_norm`` ||W||; ``c0``;
        ``margin`` log(1/x - 1), a bound of all later margins; ``excess`` of the path's length over the norm;
        ``direction`` b with 1 - cos <= b/||W_k||. With A3 alone: ``hull_distance`` gamma, ``equal_margins_norm``
        ||w_bar||, ``share`` with liminf min margin/||W_k|| >= share.

    Raises
    ------
    InvalidInput
        W of another shape, NaN, or a step that is not positive.

    Notes
    -----
    Theorems of this package, not of the paper; proofs in docs/convergence.md. They are about gradient descent in
    exact arithmetic from W on. What is proved is proved: every inequality is decided in balls of 256 bits.

    Examples
    --------
    >>> from marginlab.simulations.descent import run
    >>> from marginlab.theory.match_copy import MatchCopyTask, sample
    >>> task = MatchCopyTask.template(T=4, d=32, coordinate_std=1.0)
    >>> problem = Problem.from_match_copy(sample(task, n=8, seed=0))
    >>> iterate = run(problem, step=1e-4, steps=2_000, record=1).W[-1]
    >>> proof = prove_convergence(problem, iterate, step=1e-4)
    >>> proof.loss_to_zero, proof.direction, proof.norm_growth
    (True, True, True)
    """
    return _prove(_geometry(problem), problem, W, step)


def first_proof(
    problem: Problem, iterates: ArrayLike, step: float | None, conclusion: str = "explicit"
) -> tuple[int, ConvergenceProof] | None:
    """Index of an iterate whose proof reaches the conclusion while the one before it does not, and the proof.

    Found by bisection: along a run whose loss decreases, a proof that passes goes on passing.

    Parameters
    ----------
    problem : Problem
    iterates : (R, d, d) array
        In the order of the run.
    step : float > 0 or None
    conclusion : "explicit", "direction", "norm_growth" or "loss_to_zero"
        Attribute of the proof that must be true.

    Returns
    -------
    (int, ConvergenceProof) or None
        None if not even the last iterate's proof passes.
    """
    d = problem.shape[2]
    W = shaped_array(iterates, "iterates", (None, d, d))
    if conclusion not in ("explicit", "direction", "norm_growth", "loss_to_zero"):
        raise InvalidInput(f"a proof has no conclusion {conclusion!r}.")
    geometry = _geometry(problem)
    high = len(W) - 1
    best = _prove(geometry, problem, W[high], step)
    if not getattr(best, conclusion):
        return None
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        proof = _prove(geometry, problem, W[middle], step)
        if getattr(proof, conclusion):
            high, best = middle, proof
        else:
            low = middle
    return high, best


def _geometry(problem: Problem) -> Geometry:
    with ctx.workprec(PRECISION):
        return Geometry(problem)


def _prove(geometry: Geometry, problem: Problem, W: Any, step: float | None) -> ConvergenceProof:
    d = problem.shape[2]
    matrix: Float = shaped_array(W, "W", (d, d))
    size = None if step is None else positive(step, "step")
    exact = np.all(problem.targets == problem.values[np.arange(len(problem.match)), problem.match], axis=1)
    if not exact.all():
        text = f"exact targets: that of sample {int(np.argmin(exact))} is not the value of its match"
        return _nothing((text,), {})
    with ctx.workprec(PRECISION):
        loss = geometry.loss(matrix)
        eta = None if size is None else arb(size)
        alone, explicit = half_space(geometry, matrix, eta, loss)
        if explicit.holds:
            return _proved("half-space", geometry, matrix, size, explicit.constants, ())
        if alone.holds:
            return _proved("half-space-loss", geometry, matrix, size, alone.constants, explicit.failed)
        other = identifiable(geometry, eta, loss)
        failed = tuple(dict.fromkeys(explicit.failed + other.failed))
        if not other.holds:
            return _nothing(failed, alone.constants | other.constants)
        if all(f.holds for f in assumptions(geometry)):
            constants = other.constants | {"separator_norm": geometry.separator_norm}
            return _proved("identifiable-half-space", geometry, matrix, size, constants, failed)
        return _proved("identifiable", geometry, matrix, size, other.constants, failed)


def _proved(
    kind: str,
    geometry: Geometry,
    W: Float,
    step: float | None,
    constants: dict[str, Any],
    failed: Sequence[str],
) -> ConvergenceProof:
    document = document_of(kind, geometry, W, step, constants)
    aligned = kind != "identifiable"
    return ConvergenceProof(
        loss_to_zero=True,
        direction=aligned,
        norm_growth=aligned,
        kind=kind,
        failed=tuple(failed),
        constants=_floats(constants),
        statement=document["statement"],
        document=document,
    )


def _nothing(failed: tuple[str, ...], constants: dict[str, Any]) -> ConvergenceProof:
    return ConvergenceProof(
        loss_to_zero=False,
        direction=False,
        norm_growth=False,
        kind=None,
        failed=failed,
        constants=_floats(constants),
        statement="",
        document=None,
    )


def _floats(constants: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Ends rounded outward to float64; constants that no ball holds (a division by zero) are left out."""
    found = {}
    for name, value in constants.items():
        parts = value if isinstance(value, tuple) else (value,)
        if all(part.is_finite() for part in parts):
            low, high = ends(value)
            found[name] = (floor_float(low), ceil_float(high))
    return found
