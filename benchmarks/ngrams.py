"""Soft matching at every row of a sequence: one pass over count tables against what a user would write.

The rivals: the definition (a softmax over positions at every row, NumPy), the two-layer network as a torch forward, and
a counter in dictionaries. They run in turn with our pass, at a length that they can afford, where all answers are first
compared; what is quadratic is then extrapolated to the long sequence. Run it with ``python benchmarks/ngrams.py``.
"""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from marginlab.simulations import single_threaded
from marginlab.theory.ngrams import induction_network, log_loss, soft_match, soft_match_definition
from marginlab.theory.ngrams.kernels import warm_up

#: Vocabulary, scales, BOS weight; the length that rivals run at, and the one that is asked for.
V, BETA, KAPPA, SHORT, LONG = 4, (2.0, 1.0, 0.5), 1.0, 3_000, 100_000

REPEATS = 5


def torch_forward(tokens: np.ndarray) -> np.ndarray:
    """The construction's two layers as dense causal attention in torch, weights taken from the explicit network."""
    network = induction_network(V, len(BETA), BETA, kappa=KAPPA)
    stream = torch.tensor(network.embed(tokens))
    n = len(stream)
    mask = torch.full((n, n), -torch.inf, dtype=torch.float64).triu(1)
    for layer in network.layers:
        outputs = [stream]
        for head in layer:
            logits = stream @ torch.tensor(head.score) @ stream.T + mask
            if head.relative is not None:
                for distance in np.flatnonzero(head.relative):
                    logits.diagonal(-int(distance)).add_(float(head.relative[distance]))
            outputs.append(torch.softmax(logits, dim=1) @ stream)
        stream = torch.cat(outputs, dim=1)
    return (stream @ torch.tensor(network.readout).T).numpy()


def counter_rows(tokens: np.ndarray) -> np.ndarray:
    """Cumulative counts in dictionaries, one for each set of lags."""
    k, x = len(BETA), tokens.tolist()
    gamma = [float(np.prod([np.expm1(BETA[i]) for i in range(k) if S >> i & 1])) for S in range(2**k)]
    tables: list[dict[tuple[int, ...], Counter[int]]] = [{} for _ in gamma]
    rows = []
    for t in range(len(x) + 1):
        row, norm = [np.exp(KAPPA) / V] * V, np.exp(KAPPA)
        contexts = []
        if t >= k:
            contexts = [tuple(x[t - 1 - i] for i in range(k) if S >> i & 1) for S in range(2**k)]
            for S, context in enumerate(contexts):
                for m, c in tables[S].get(context, {}).items():
                    row[m] += gamma[S] * c
                    norm += gamma[S] * c
        rows.append([v / norm for v in row])
        if t < len(x):
            for S, context in enumerate(contexts):
                tables[S].setdefault(context, Counter())[x[t]] += 1
    return np.array(rows)


def medians(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each call, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            begun = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begun)
    return {name: float(np.median(found)) for name, found in times.items()}


def main() -> None:
    """Print the comparison, then what a token costs by order and memory by length."""
    warm_up()
    console, rng = Console(), np.random.default_rng(0)
    short, long = rng.integers(0, V, SHORT), rng.integers(0, V, LONG)
    rivals = {
        "definition": lambda: soft_match_definition(short, V, BETA, kappa=KAPPA),
        "torch two-layer forward": lambda: torch_forward(short),
        "dictionaries": lambda: counter_rows(short),
    }
    ours = soft_match(short, V, BETA, kappa=KAPPA)
    for name, tolerance in (
        ("definition", 1e-12),
        ("torch two-layer forward", 1e-10),
        ("dictionaries", 1e-12),
    ):
        apart = np.abs(rivals[name]() - ours).max()  # type: ignore[operator]
        assert apart <= tolerance, f"{name} and soft_match differ by {apart:.1e}"
    with single_threaded():
        torch.set_num_threads(1)
        times = medians(
            {
                "short": lambda: soft_match(short, V, BETA, kappa=KAPPA),
                "long": lambda: soft_match(long, V, BETA, kappa=KAPPA),
                **rivals,
            }
        )
        table = Table(title=f"all rows, V = {V}, k = {len(BETA)}, one thread; {SHORT} tokens, then {LONG}")
        for heading in ("way", f"T = {SHORT}", "ratio", f"T = {LONG}", "ratio"):
            table.add_column(heading, justify="left" if heading == "way" else "right")
        table.add_row("soft_match", f"{1e3 * times['short']:.3f} ms", "", f"{1e3 * times['long']:.2f} ms", "")
        for name in rivals:
            growth = LONG / SHORT if name == "dictionaries" else (LONG / SHORT) ** 2
            far = times[name] * growth
            table.add_row(
                name,
                f"{1e3 * times[name]:.1f} ms",
                f"{times[name] / times['short']:.0f}x",
                f"{far:.3g} s (extrapolated)",
                f"{far / times['long']:.0f}x",
            )
        console.print(table)

        costs = Table("k", "V = 4, log_loss", "V = 256, log_loss", title=f"time a token, T = {LONG}")
        wide = np.minimum(rng.geometric(0.05, LONG) - 1, 255)
        for k in range(1, 7):
            beta = np.linspace(2, 0.5, k)
            found = medians(
                {
                    "narrow": lambda beta=beta: log_loss(long, 4, beta, kappa=KAPPA),
                    "wide": lambda beta=beta: log_loss(wide, 256, beta, kappa=KAPPA),
                }
            )
            costs.add_row(str(k), *(f"{1e9 * found[name] / LONG:.0f} ns" for name in ("narrow", "wide")))
        console.print(costs)

        memory = Table("T", "peak of log_loss", "bytes a token", title="memory, V = 4, k = 3")
        for T in (100_000, 400_000, 1_600_000):
            x = rng.integers(0, V, T).astype(np.int32)
            tracemalloc.start()
            log_loss(x, V, BETA, kappa=KAPPA)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            memory.add_row(str(T), f"{peak / 2**20:.1f} MiB", f"{peak / T:.1f}")
        console.print(memory)


if __name__ == "__main__":
    main()
