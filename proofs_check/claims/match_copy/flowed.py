"""Instances of gradient flow, followed in log time far beyond any budget of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Instance
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.streams import stream
from marginlab.proofs_check.separators import max_margin
from marginlab.simulations.attention import Problem
from marginlab.simulations.flow import gradient_flow
from marginlab.theory.validation import Float


def flow_times(flow: Mapping[str, Any]) -> Float:
    """Recorded log t: ``number`` values, evenly spaced from ``first`` to ``last``."""
    return np.linspace(flow["first"], flow["last"], flow["number"])


def start_of(flow: Mapping[str, Any], problem: Problem, root: int, seed: int | None) -> Float | None:
    """W at t = 0: zero without a "start"; else a multiple of the separator, or Gaussian entries.

    Kinds: {"kind": "separator", "factor": f}, {"kind": "gaussian", "std": s}.
    """
    start = flow.get("start")
    if start is None:
        return None
    if start["kind"] == "separator":
        return start["factor"] * max_margin(problem.constraints()).W
    d = problem.shape[2]
    rng = np.random.default_rng(stream(root, {"start": dict(start), "d": d}, seed or 0))
    return start["std"] * rng.standard_normal((d, d))


def flowed(config: Mapping[str, Any], seed: int | None) -> dict[str, np.ndarray]:
    """Recorded flow of the run that `config` (keys data, flow, root) describes, as arrays of `TrainedRun`."""
    problem = problem_of(config["data"], config["root"], seed)
    flow = config["flow"]
    log_t = flow_times(flow)
    path = gradient_flow(
        problem,
        log_t=log_t,
        loss=flow.get("loss", "mse"),
        W0=start_of(flow, problem, config["root"], seed),
    )
    margins = problem.constraints().margins
    return {
        "steps": np.exp(log_t),
        "W": path.W,
        "log_loss": path.log_loss,
        "log_grad_norm": path.log_grad_norm,
        "min_margin": np.array([margins(W).min() for W in path.W]),
        "valid_until": np.array(-1.0 if path.valid_until is None else np.exp(path.valid_until)),
    }


def flow_run(
    run: Run, data: Mapping[str, Any], flow: Mapping[str, Any], seed: int | None, label: str
) -> Instance:
    """Instance of one flow; computed once per run of the engine, and shared by the claims.

    `flow` holds first, last, number (of log t) and, if they are not the defaults, loss and start. The instance's
    data is a `TrainedRun` with ``steps`` = t and step size 1.
    """
    config = {"data": data, "flow": flow, "root": run.config.root_seed}

    def make() -> Instance:
        arrays = run.recall(flowed, config, seed)
        object_ = TrainedRun(problem_of(data, run.config.root_seed, seed), arrays, step=1.0)
        return Instance(label=label, data=object_, seed=seed, config=config)

    return run.once(("flowed", label, repr(config), seed), make)
