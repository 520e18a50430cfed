"""Max-margin separators: time and gap of every oracle side by side, in one run on one thread.

Run ``python benchmarks/separators.py [--quick]``. Answers are compared before anything is timed: the
enclosures of the margin must overlap. `floor` is fifteen products of the rows with a vector, about what any
method has to read.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from marginlab.proofs_check.separators import MaxMargin, RankOneConstraints, max_margin
from marginlab.theory.errors import MarginlabError

Constraints = np.ndarray | RankOneConstraints


def attention(n: int, K: int, d: int) -> RankOneConstraints:
    """n samples of K keys, the query equal to one of them: n (K - 1) rank-one constraints, d^2 unknowns."""
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((n, K, d))
    match = rng.integers(0, K, n)
    queries = keys[np.arange(n), match]
    rivals = np.arange(K)[None] != match[:, None]
    return RankOneConstraints((queries[:, None] - keys)[rivals], queries, np.repeat(np.arange(n), K - 1))


def rows(N: int, D: int) -> np.ndarray:
    """y_i x_i + w / 2 with Gaussian x_i and labels y_i of a unit vector w."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(D)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((N, D))
    return X * np.sign(X @ w)[:, None] + 0.5 * w


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Shortest of `repeats` runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def floor(constraints: Constraints) -> float | None:
    """Seconds for fifteen products with the rows, where they are stored as such."""
    if isinstance(constraints, RankOneConstraints):
        return None
    w = np.ones(constraints.shape[1])
    return seconds(lambda: [constraints @ w for _ in range(15)], 3)


def compared(reference: MaxMargin, other: MaxMargin) -> str:
    """Whether two enclosures of the largest margin overlap."""
    low = max(reference.margin_lower, other.margin_lower)
    return "agrees" if low <= min(reference.margin_upper, other.margin_upper) else "DISAGREES"


def measure(name: str, constraints: Constraints, oracles: tuple[str, ...]) -> list[str]:
    """One line of the table for each oracle."""
    reference = max_margin(constraints)
    fast = seconds(lambda: max_margin(constraints), 5)
    read = floor(constraints)
    note = f"{fast / read:5.1f} x floor" if read else ""
    lines = [f"{name:34}{'working-set':14}{fast:10.4f} s  gap {reference.gap:8.1e}  {note}"]
    for oracle in oracles:
        start = time.perf_counter()
        try:
            solution = max_margin(constraints, oracle=oracle)
        except MarginlabError as error:
            lines.append(f"{name:34}{oracle:14}{time.perf_counter() - start:10.4f} s  {error}")
            continue
        took = time.perf_counter() - start
        lines.append(
            f"{name:34}{oracle:14}{took:10.4f} s  gap {solution.gap:8.1e}  {took / fast:7.1f} x slower, "
            f"{compared(reference, solution)}"
        )
    return lines


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    for oracle in ("working-set", "nnls", "cvxpy", "first-order"):  # imports are not what is measured
        max_margin(np.eye(2), oracle=oracle)
    cases: list[tuple[str, Constraints, tuple[str, ...]]] = [
        ("attention 8 x 3, d = 16", attention(8, 4, 16), ("nnls", "cvxpy", "first-order")),
        ("rows 1e3 x 100", rows(1_000, 100), ("nnls", "cvxpy", "first-order")),
    ]
    if not quick:
        cases += [
            ("attention 50 x 31, d = 32", attention(50, 32, 32), ("nnls", "cvxpy", "first-order")),
            ("rows 1e4 x 100", rows(10_000, 100), ("nnls", "cvxpy", "first-order")),
            ("rows 1e5 x 100", rows(100_000, 100), ()),
            ("rows 1e3 x 1000", rows(1_000, 1_000), ("nnls",)),
            ("rows 1e4 x 1000", rows(10_000, 1_000), ()),
        ]
    for case in cases:
        for line in measure(*case):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
