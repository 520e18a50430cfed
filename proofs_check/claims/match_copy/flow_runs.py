"""Flows to log t = 300 on draws whose laws set in fast enough, and how exactly a law must hold at such times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.broken import INTEGERS_DATA
from marginlab.proofs_check.claims.match_copy.flowed import flow_run
from marginlab.proofs_check.claims.match_copy.problems import rate_of, regular_problem
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Break, Instance
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval
from marginlab.simulations.trajectory import TRUSTED
from marginlab.theory.match_copy.laws import TAILS, Offset, limit_margins, support_offset
from marginlab.theory.validation import Float, Int

#: The paper's sizes with every constraint on the support, so that the laws have no constant but those of the data.
ALL_SUPPORT = {
    "kind": "regular",
    "rest": "none",
    "rate": 0.05,
    "T": 4,
    "d": 16,
    "n": 8,
    "coordinate_std": 1.0,
}

#: Constraints off the support, and every sample with one on it.
SOME_SUPPORT = {
    "kind": "regular",
    "rest": "some",
    "rate": 0.05,
    "T": 4,
    "d": 16,
    "n": 4,
    "coordinate_std": 1.0,
}

#: Recorded from log t = 10 to 300. Deviations are read at 40, where linear theory describes them.
TIMES = {"first": 10.0, "last": 300.0, "number": 30}
START = 40.0

#: Where laws are read: after deviations of order 0.1 at `START`, decaying with half of a rate of at least 0.05,
#: are below 2e-3 by their bound.
LATE = (200.0, 300.0)

#: Draws of each kind.
DRAWS = 2


def flows(loss: str, *kinds: Mapping[str, Any]) -> Callable[[Run], Iterable[Instance]]:
    """Instances of the flow under a loss on draws of each kind; rejected draws are counted in the labels."""

    def instances(run: Run) -> Iterable[Instance]:
        for data in kinds:
            support = "all" if data["rest"] == "none" else "some"
            for seed in run.seeds(DRAWS):
                rejected = regular_problem(data, run.config.root_seed, seed)[1]
                label = f"{loss}, {support} support, seed {seed}, {rejected} draws rejected"
                yield flow_run(run, data, {**TIMES, "loss": loss}, seed, label)

    return instances


def integer_flow(run: Run) -> Iterable[Instance]:
    """The flow of the integer instance on which A4 fails and the direction is another one."""
    return [flow_run(run, INTEGERS_DATA, {**TIMES, "loss": "mse"}, None, "integer instance, flow")]


#: The control of the squared error's laws: A4 cannot be dropped.
INTEGER_FLOW = Break(name="integer instance without A4", assumption="A4", instances=integer_flow)


def loss_of(instance: Instance) -> str:
    """Name of the loss of a flow."""
    return str(instance.config["flow"]["loss"])


def active(run: TrainedRun) -> Int:
    """The supporting constraints, in the order of all of them."""
    return np.sort(run.separator.active)


def at(run: TrainedRun, log_time: float) -> int:
    """Index of the first record from log t on."""
    return int(np.searchsorted(np.log(run.steps), log_time * (1 - 1e-12)))  # times are kept as exp(log t)


def late(run: TrainedRun) -> slice:
    """The records of `LATE`."""
    return slice(at(run, LATE[0]), None)


def decayed(limit: Float, early: Float, run: TrainedRun, loss: str) -> Interval:
    """limit +- |early - limit| e^(-rate (s - s_0) / 2), for a quantity whose value at s_0 = `START` was `early`.

    To first order deviations decay with powers of t of at least `rate_of`. Half of that is asked for: linear theory
    leaves out factors of order one (K M is not symmetric, deviations are not small), and e^(-rate (s - s_0) / 2) is
    below 1/50 at `LATE`. A wrong limit fails, since the deviation from it does not decay at all. The worst of the
    deviations is taken for all components, which are coupled. Judged where the bound is widest, at the start of `LATE`.
    """
    log_t = np.log(run.steps)
    lapse = log_t[at(run, LATE[0])] - log_t[at(run, START)]
    worst = float(np.abs(early - limit).max())
    shrunk = worst * np.exp(-rate_of(run.problem, run.separator, loss) * lapse / 2)
    return Interval.around(
        limit,
        shrunk,
        f"truncation: the deviation at log t = {START:g}, decayed with half of the derived rate",
    )


def margin_error(run: TrainedRun, W: Float) -> Float:
    """Bound on the error of any margin of W: a flow is trusted while ||error of W|| <= 1e-6 ||W||."""
    size = float(run.problem.constraints().norms().max())
    return TRUSTED * size * np.linalg.norm(W, axis=(-2, -1))


#: The rule that goes with it.
INTEGRATION = "integration: relative error of W at most 1e-6, the level at which a flow is trusted"


def offset_from_data(run: TrainedRun, loss: str) -> Offset:
    """w_infinity in closed form: exact where every constraint supports and w(0) = 0."""
    gram = run.problem.constraints().gram()
    dual = run.separator.dual
    return support_offset(gram, active(run), dual, limit_margins(run.problem, active(run), dual, loss=loss))


def offset_from_run(run: TrainedRun, loss: str, log_time: float) -> Offset:
    """w - (1/kappa) log t w_hat at one time, in its two parts."""
    k, separator = at(run, log_time), run.separator.W
    size = float(np.linalg.norm(separator))
    rest = run.W[k] - np.log(run.steps[k]) / TAILS[loss] * separator
    along = float((rest * separator).sum()) / size
    return Offset(along=along, across=float(np.linalg.norm(rest - along / size * separator)))
