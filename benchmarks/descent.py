"""Cost of one step of gradient descent on attention: the compiled engine against what a user would write.

Side by side in one process on one thread: a textbook torch-autograd loop for one problem, the same loop batched
over problems, and `marginlab.simulations.run`. Agreement of the final matrices is checked before anything is
timed. Run it with ``python benchmarks/descent.py``; times differ between machines, ratios much less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from marginlab.simulations import Problem, run, single_threaded, warm_up
from marginlab.theory.match_copy import MatchCopyTask, sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Noiseless match-and-copy data and a run of normalised descent that stays below gap 15.

    There the textbook gradient is right to 1e-9 (2^-53 e^15 = 4e-10), so that all loops must agree.
    """

    n: int
    T: int
    d: int
    seeds: int
    steps: int
    step: float

    def problems(self) -> list[Problem]:
        task = MatchCopyTask.template(T=self.T, d=self.d, coordinate_std=self.d**-0.25)
        return [Problem.from_match_copy(sample(task, self.n, seed)) for seed in range(self.seeds)]

    @property
    def flops(self) -> int:
        """Of one step, textbook count: scores, outputs and the two gradients, 2 (2 n T d + 2 n d^2)."""
        return 2 * (2 * self.n * self.T * self.d + 2 * self.n * self.d**2)


CASES = (
    Case(n=5, T=5, d=10, seeds=1, steps=5000, step=1e-3),
    Case(n=5, T=5, d=10, seeds=100, steps=1000, step=5e-3),
    Case(n=20, T=32, d=64, seeds=16, steps=100, step=1e-2),
)


def autograd_loop(problem: Problem, case: Case) -> np.ndarray:
    """Normalised descent on one problem as a user would write it."""
    keys, queries, values, targets = map(
        torch.tensor, (problem.keys, problem.queries, problem.values, problem.targets)
    )
    W = torch.zeros(case.d, case.d, dtype=torch.float64, requires_grad=True)
    for _ in range(case.steps):
        scores = torch.einsum("itj,ij->it", keys, queries @ W.T)
        outputs = torch.einsum("it,itj->ij", torch.softmax(scores, dim=-1), values)
        loss = 0.5 * ((outputs - targets) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            assert W.grad is not None
            W -= case.step * W.grad / W.grad.norm()
            W.grad = None
    return W.detach().numpy()


def batched_autograd_loop(problems: list[Problem], case: Case) -> np.ndarray:
    """The same with a batch axis, all problems in one graph."""
    stacks = zip(*((p.keys, p.queries, p.values, p.targets) for p in problems), strict=True)
    keys, queries, values, targets = (torch.tensor(np.stack(stack)) for stack in stacks)
    W = torch.zeros(len(problems), case.d, case.d, dtype=torch.float64, requires_grad=True)
    for _ in range(case.steps):
        scores = torch.einsum("bitj,bij->bit", keys, queries @ W.mT)
        outputs = torch.einsum("bit,bitj->bij", torch.softmax(scores, dim=-1), values)
        loss = 0.5 * ((outputs - targets) ** 2).sum()
        loss.backward()
        with torch.no_grad():
            assert W.grad is not None
            W -= case.step * W.grad / W.grad.norm(dim=(1, 2), keepdim=True)
            W.grad = None
    return W.detach().numpy()


def compiled(problem: Problem, case: Case) -> np.ndarray:
    """The engine of this package, its error bounds and the recording of the last step included."""
    return run(problem, rule="normalised", step=case.step, steps=case.steps, record=[case.steps]).W[-1]


def seconds(action: Callable[[], object]) -> float:
    """Processor time, which a busy machine changes less than it changes the clock on the wall."""
    start = time.process_time()
    action()
    return time.process_time() - start


def matrix_product_rate() -> float:
    """Flops a second of a 512 x 512 double-precision product on one thread: what the floor is counted in."""
    A = np.random.default_rng(0).standard_normal((512, 512))
    return 2 * 512**3 / min(seconds(lambda: A @ A) for _ in range(20))


def measured(case: Case, repeats: int) -> tuple[float, dict[str, float]]:
    """(largest disagreement of the final matrices, microseconds per problem and step of each loop).

    The least of `repeats` runs, which are interleaved so that a change of load meets all loops alike. The
    unbatched loop is timed on the first problem alone.
    """
    problems = case.problems()
    ours = np.array([compiled(problem, case) for problem in problems])
    slip = max(
        float(np.abs(batched_autograd_loop(problems, case) - ours).max()),
        float(np.abs(autograd_loop(problems[0], case) - ours[0]).max()),
    )
    actions: dict[str, tuple[int, Callable[[], object]]] = {
        "autograd": (1, lambda: autograd_loop(problems[0], case)),
        "autograd, batched": (case.seeds, lambda: batched_autograd_loop(problems, case)),
        "marginlab": (case.seeds, lambda: [compiled(problem, case) for problem in problems]),
    }
    best = dict.fromkeys(actions, np.inf)
    for _ in range(repeats):
        for name, (runs, action) in actions.items():
            best[name] = min(best[name], 1e6 * seconds(action) / (runs * case.steps))
    return slip, best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="runs of each loop; the fastest counts")
    repeats = parser.parse_args().repeats
    warm_up()
    table = Table(title="Normalised descent on the squared error, CPU microseconds per problem and step")
    for column in (
        "n, T, d",
        "problems",
        "autograd",
        "batched",
        "marginlab",
        "ratio",
        "to batched",
        "x floor",
    ):
        table.add_column(column, justify="right")
    with single_threaded():
        rate = matrix_product_rate()
        for case in CASES:
            slip, cost = measured(case, repeats)
            # Gradients agree to 1e-9 (see Case), and a path of `steps` steps to that times its length.
            if slip > 1e-9 * case.steps * case.step:
                raise SystemExit(f"the loops disagree by {slip:.2g} on {case}: not timing different things.")
            ours = cost["marginlab"]
            table.add_row(
                f"{case.n}, {case.T}, {case.d}",
                str(case.seeds),
                f"{cost['autograd']:.0f}",
                f"{cost['autograd, batched']:.1f}",
                f"{ours:.2f}",
                f"{cost['autograd'] / ours:.0f}",
                f"{cost['autograd, batched'] / ours:.0f}",
                f"{ours / (1e6 * case.flops / rate):.1f}",
            )
    console = Console(width=120)
    console.print(table)
    console.print(
        f"floor: 2(2nTd + 2nd^2) flops at {rate / 1e9:.0f} Gflop/s, the rate of a matrix product here"
    )


if __name__ == "__main__":
    main()
