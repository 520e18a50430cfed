"""Gradient flow to t = 1e30: log time against plain gradient descent, extrapolated to the same time.

Descent follows the flow to t = step * steps; what a step costs is measured, and how many it would take computed. Both
ways are run to a common time first, where their matrices must agree to the order of the step. Run it with
``python benchmarks/flow.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from marginlab.simulations import Problem, gradient_flow, run, single_threaded, warm_up
from marginlab.theory.match_copy import MatchCopyTask, sample

#: (n, T, d)
SIZES = ((6, 8, 12), (8, 4, 16), (16, 16, 64))

#: Log of the time that is asked for, and the step and number of steps of descent.
LOG_T, STEP, STEPS = 30 * np.log(10), 1e-2, 2_000


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def main() -> None:
    """Print one row for each size."""
    warm_up()
    table = Table("n, T, d", "flow to t = 1e30", "GD step", "GD to t = 1e30", "ratio", title="one thread")
    for n, T, d in SIZES:
        problem = Problem.from_match_copy(sample(MatchCopyTask.template(T=T, d=d), n, 0))
        common = gradient_flow(problem, log_t=[np.log(STEP * STEPS)]).W[0]
        descended = run(problem, step=STEP, steps=STEPS, record=[STEPS]).W[0]
        apart = np.linalg.norm(common - descended) / np.linalg.norm(common)
        assert apart < STEP, f"descent and flow differ by {apart:.2g} at t = {STEP * STEPS:g}"
        with single_threaded():
            flow = seconds(lambda problem=problem: gradient_flow(problem, log_t=[LOG_T]))
            step = (
                seconds(lambda problem=problem: run(problem, step=STEP, steps=STEPS, record=[STEPS])) / STEPS
            )
        descent = step * np.exp(LOG_T) / STEP
        table.add_row(
            f"{n}, {T}, {d}",
            f"{flow:.2f} s",
            f"{1e6 * step:.1f} us",
            f"{descent:.1e} s",
            f"{descent / flow:.1e}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
