"""An independent route to the truth: fractions, brute force over supports, and SciPy's NNLS for a start."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import nnls

from marginlab.proofs_check.separators.solution import MaxMargin, Residuals
from marginlab.theory.constraints import RankOneConstraints

Rows = list[list[Fraction]]


class Optimum(NamedTuple):
    """The exact optimum: W, the square of the largest margin, and every support with positive weights."""

    W: list[Fraction]
    margin_squared: Fraction
    supports: list[tuple[int, ...]]
    margins: list[Fraction]


def dot(a: list[Fraction], b: list[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def fractions_of(Z: np.ndarray) -> Rows:
    return [[Fraction(float(v)) for v in row] for row in Z]


def solve(matrix: Rows, right: list[Fraction]) -> list[Fraction] | None:
    """Gauss-Jordan elimination in fractions; None if singular."""
    n = len(matrix)
    work = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for c in range(n):
        pivot = next((r for r in range(c, n) if work[r][c]), None)
        if pivot is None:
            return None
        work[c], work[pivot] = work[pivot], work[c]
        work[c] = [v / work[c][c] for v in work[c]]
        for r in range(n):
            if r != c and work[r][c]:
                work[r] = [a - work[r][c] * b for a, b in zip(work[r], work[c], strict=True)]
    return [row[-1] for row in work]


def brute_force(rows: Rows) -> Optimum | None:
    """argmin ||W|| s.t. <W, z_i> >= 1 by trying every linearly independent support; None if infeasible."""
    best, supports = None, []
    for size in range(1, min(len(rows), len(rows[0])) + 1):
        for S in combinations(range(len(rows)), size):
            gram = [[dot(rows[i], rows[j]) for j in S] for i in S]
            p = solve(gram, [Fraction(1)] * size)
            if p is None or min(p) <= 0:
                continue
            W = [
                sum((q * rows[i][c] for q, i in zip(p, S, strict=True)), Fraction(0))
                for c in range(len(rows[0]))
            ]
            margins = [dot(W, z) for z in rows]
            if min(margins) < 1:
                continue
            supports.append(S)
            if best is None:
                best = W, 1 / sum(p, Fraction(0)), margins
            assert best[0] == W, "the minimiser is unique"
    return None if best is None else Optimum(best[0], best[1], supports, best[2])


def as_solution(Z: np.ndarray | RankOneConstraints, W: np.ndarray, dual: np.ndarray) -> MaxMargin:
    """A `MaxMargin` around W and dual weights, with its float bounds."""
    dense = Z.dense() if isinstance(Z, RankOneConstraints) else Z
    lower = float((dense @ W.ravel()).min() / np.linalg.norm(W))
    upper = float(np.linalg.norm(dense.T @ dual) / dual.sum())
    nothing = Residuals(primal=0.0, dual=0.0, complementarity=0.0, strict=0.0)
    return MaxMargin(
        W=W,
        dual=dual,
        margin_lower=lower,
        margin_upper=upper,
        gap=(upper - lower) / upper,
        active=np.flatnonzero(dual > 0),
        residuals=nothing,
        oracle="nnls",
    )


def nnls_solution(Z: np.ndarray | RankOneConstraints) -> MaxMargin:
    """Least-distance programming by SciPy, on rows of unit norm."""
    dense = Z.dense() if isinstance(Z, RankOneConstraints) else Z
    norms = np.linalg.norm(dense, axis=1)
    unit, b = dense / norms[:, None], norms.min() / norms
    system = np.vstack([unit.T, b])
    target = np.zeros(len(system))
    target[-1] = 1.0
    q, _ = nnls(system, target, maxiter=100 * len(dense))
    q = q / (1 - b @ q)
    W, dual = unit.T @ q / norms.min(), q / norms / norms.min()
    W = W / (dense @ W).min()
    return as_solution(Z, W.reshape(Z.shape) if isinstance(Z, RankOneConstraints) else W, dual)


def separable(rng: np.random.Generator, N: int, D: int, *, integer: bool, least: float = 0.2) -> np.ndarray:
    """Rows with a known separator: sign-fixed and pushed along it, never filtered."""
    if integer:
        Z = rng.integers(-3, 4, size=(N, D)).astype(float)
        w = rng.integers(-2, 3, size=D).astype(float)
        w[rng.integers(D)] = 1.0
        need = 1 - Z @ w
        push = np.where(need > 0, np.ceil(need / (w @ w)), 0.0)
        return Z + push[:, None] * w
    Z = rng.normal(size=(N, D))
    w = rng.normal(size=D)
    w /= np.linalg.norm(w)
    return Z + (np.abs(Z @ w) + least - Z @ w)[:, None] * w


def attention(rng: np.random.Generator, n: int, T: int, d: int) -> RankOneConstraints:
    """n samples whose first of T keys is selected: n (T - 1) constraints on d x d matrices."""
    keys, queries = rng.normal(size=(n, T, d)), rng.normal(size=(n, d))
    differences = (keys[:, :1] - keys[:, 1:]).reshape(-1, d)
    return RankOneConstraints(differences, queries, np.repeat(np.arange(n), T - 1))


class Reference:
    """The functions above, for tests."""

    dot = staticmethod(dot)
    fractions_of = staticmethod(fractions_of)
    solve = staticmethod(solve)
    brute_force = staticmethod(brute_force)
    as_solution = staticmethod(as_solution)
    nnls_solution = staticmethod(nnls_solution)
    separable = staticmethod(separable)
    attention = staticmethod(attention)


@pytest.fixture(scope="session")
def reference() -> type[Reference]:
    return Reference
