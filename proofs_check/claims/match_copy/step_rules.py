"""How fast the direction is reached: powers of the step count where a fixed step has logarithms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A4_ALONE, A5, TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER, alignment_series
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, SEEDS, TrainedRun, trained
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    Break,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Curve, Interval, Ranking
from marginlab.proofs_check.tolerances import enclosed, truncated
from marginlab.theory.match_copy.losses import log_loss

#: Steps of each run; rates are read off its last decade.
STEPS = 10_000
LAST = (1_000.0, 10_000.0)

#: The steps 1/sqrt(s) cover only a root of the distance, so that their last decade lies later.
SQRT_STEPS = 100_000

#: Rule and step size. The path of `SQRT_STEPS` steps of 0.3/sqrt(s) has length 190, that of `STEPS` steps of 0.02 200.
STEP = {"gd": 1e-3, "normalised": 2e-2, "normalised-sqrt": 0.3, "loss-scaled": 3e-3}

#: The data on which too large a step shows: the paper's sizes with one more token, tokens of length about one.
OVERSHOT_DATA = {**PAPER_DATA, "T": 5, "coordinate_std": 0.25}

#: Steps of gradient descent from the largest that changes little, upwards by factors of four.
LARGE_STEPS = (8.0, 32.0, 128.0)


def _descent(rule: str, steps: int = STEPS, engine: str = "numba") -> dict[str, Any]:
    record = 200
    return {
        "loss": "mse",
        "rule": rule,
        "step": STEP[rule],
        "steps": steps,
        "record": record,
        "engine": engine,
    }


def runs_of(rule: str, steps: int = STEPS) -> Any:
    """Instances of one rule on the paper's data."""

    def instances(run: Run) -> Iterable[Instance]:
        return [trained(run, PAPER_DATA, _descent(rule, steps), s, f"seed {s}") for s in run.seeds(SEEDS)]

    return instances


def textbook_runs(rule: str) -> Any:
    """The same with the textbook gradient, which loses the selected token beyond the gap 36.7."""

    def instances(run: Run) -> Iterable[Instance]:
        descent = _descent(rule, engine="naive")
        return [trained(run, PAPER_DATA, descent, s, f"textbook gradient, seed {s}") for s in range(3)]

    return instances


def misalignment(instance: Instance) -> Curve:
    """Certified 1 - cos(W, W_hat) against the step, as a power law."""
    run: TrainedRun = instance.data
    value = enclosed(run.cosines.one_minus_lower, run.cosines.one_minus_upper, "certified separator")
    return Curve(
        x=run.steps.astype(np.float64), y=value, x_name="step", y_name="1 - cos(W, W_hat)", log_log=True
    )


def power(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The power, within a tenth of the way to a fixed step's, which is slower than any power (0)."""
    del instance
    return truncated(constants["power"], 0.0)


def _rate(rule: str, title: str, predicted: float, why: str, **fields: Any) -> Claim:
    return Claim(
        id=f"match-copy/rate-{rule}",
        title=title,
        paper=PAPER,
        source=Source.DERIVED,
        kind=Kind.RATE,
        evidence=Evidence.NUMERICAL,
        where="Theorem D.2, for other step rules",
        statement=rf"$1 - \cos(w(\tau), \hat w)$ falls as $\tau^{{{predicted:g}}}$: " + why,
        assumes=(A1, A4_ALONE, A5, TRUSTED),
        depends_on=("match-copy/separator", "match-copy/frame-scaled-gradient"),
        constants={"power": predicted},
        predict=power,
        measure=misalignment,
        series=alignment_series,
        figure="alignment",
        notes=(
            "Observed on these runs and derived from the law of the alignment (docs/step-rules.md); not proved for "
            "these rules. Read off the last decade, set before the run; the band is a tenth of the way to a fixed "
            "step's rate, for which 1 - cos falls slower than any power of the step count."
        ),
        **fields,
    )


rate_normalised = _rate(
    "normalised",
    "Normalised descent reaches the direction at the rate of one over the step count",
    -2.0,
    r"steps of constant length make $\|w\|$ grow like $\tau$, and the direction error like $1/\|w\|$.",
    instances=runs_of("normalised"),
    window=LAST,
    group="match-copy/step-rules",
    controls=(
        Plant(name="the power of steps 1/sqrt(tau)", constants={"power": -1.0}),
        Break(
            name="textbook gradient beyond the gap 36.7",
            assumption="trusted-gradient",
            also=("A5",),
            instances=textbook_runs("normalised"),
        ),
    ),
)

rate_loss_scaled = _rate(
    "loss-scaled",
    "Steps divided by the loss reach the direction at the rate of one over the step count",
    -2.0,
    r"$\|\nabla L\|/L$ tends to $2/\|\hat w\|$, so that these steps have constant length in the end.",
    instances=runs_of("loss-scaled"),
    window=LAST,
    group="match-copy/step-rules",
    controls=(Plant(name="the power of steps 1/sqrt(tau)", constants={"power": -1.0}),),
)

rate_normalised_sqrt = _rate(
    "normalised-sqrt",
    "Normalised steps of length 1/sqrt(tau) reach the direction at the rate of 1/sqrt(tau)",
    -1.0,
    r"$\|w\|$ grows like $2\eta\sqrt\tau$, and the direction error like $1/\|w\|$.",
    instances=runs_of("normalised-sqrt", SQRT_STEPS),
    window=(10_000.0, 100_000.0),
    group="match-copy/step-rules",
    controls=(Plant(name="the power of constant steps", constants={"power": -2.0}),),
)


# ---- Rules and sizes beside each other ----


def rules_together(run: Run) -> Iterable[Instance]:
    """Runs of three rules on one draw, with the same number of steps."""
    for seed in run.seeds(SEEDS):
        runs = {
            rule: trained(run, PAPER_DATA, _descent(rule), seed, f"seed {seed}")
            for rule in ("normalised", "normalised-sqrt", "gd")
        }
        data = {rule: instance.data for rule, instance in runs.items()}
        yield Instance(label=f"seed {seed}", data=data, seed=seed, config={"steps": STEPS, "step": STEP})


def steps_together(run: Run) -> Iterable[Instance]:
    """Gradient descent with steps that are too large, on one draw."""
    for seed in run.seeds(SEEDS):
        data = {}
        for step in LARGE_STEPS:
            descent = {**_descent("gd"), "step": step, "steps": 4_000, "record": [1, 4_000]}
            data[f"step {step:g}"] = trained(run, OVERSHOT_DATA, descent, seed, f"seed {seed}").data
        yield Instance(label=f"seed {seed}", data=data, seed=seed, config={"data": OVERSHOT_DATA})


def last_misalignments(instance: Instance) -> Ranking:
    """1 - cos at the end of each run, certified."""
    ends = {}
    for name, run in instance.data.items():
        cosines = run.cosines
        ends[name] = enclosed(cosines.one_minus_lower[-1], cosines.one_minus_upper[-1], "certified separator")
    return Ranking(values=ends)


def order(instance: Instance, constants: Mapping[str, Any]) -> tuple[str, ...]:
    """Names from the best aligned to the worst."""
    del instance
    return tuple(constants["order"])


def all_trusted(instance: Instance) -> Answer:
    """Whether every gradient of every run is trusted."""
    for name, run in instance.data.items():
        if run.valid_until is not None:
            return Answer(Status.FAILS, f"{name}: past the trusted range from step {run.valid_until:g} on")
    return Answer(Status.HOLDS, "the engine's error bound stays below 1e-6 in every run")


def all_solved(instance: Instance) -> Answer:
    """Whether every run brought the loss below a thousandth of its value at W = 0."""
    worst = max(
        float(run.log_loss[-1] - log_loss(run.problem, np.zeros_like(run.W[0])))
        for run in instance.data.values()
    )
    status = Status.HOLDS if worst < np.log(1e-3) else Status.FAILS
    return Answer(status, f"the loss fell by a factor e^{worst:.3g} at least", float(worst))


_ALL_TRUSTED = Assumption(name="trusted-gradient", statement=TRUSTED.statement, check=all_trusted)

_ORDERING: dict[str, Any] = {
    "paper": PAPER,
    "source": Source.DERIVED,
    "kind": Kind.ORDERING,
    "evidence": Evidence.NUMERICAL,
    "predict": order,
    "measure": last_misalignments,
    "group": "match-copy/step-rules",
}

rule_order = Claim(
    **_ORDERING,
    id="match-copy/rule-order",
    title="After the same number of steps the direction is best where steps keep their length",
    where="Theorem D.2, for other step rules",
    statement=r"After $10^4$ steps $1 - \cos(w, \hat w)$ is least for steps of constant length, larger for lengths "
    r"$1/\sqrt\tau$, and largest for a fixed step, whose error falls as $1/\log^2 \tau$.",
    assumes=(_ALL_TRUSTED,),
    constants={"order": ("normalised", "normalised-sqrt", "gd")},
    instances=rules_together,
    controls=(
        Plant(name="a fixed step first", constants={"order": ("gd", "normalised-sqrt", "normalised")}),
    ),
    notes="The rules differ by orders of magnitude here, so that the choice of their step sizes does not decide.",
)

overshoot = Claim(
    **_ORDERING,
    id="match-copy/overshoot",
    title="Too large a step still solves the task, with a worse direction",
    where="beyond the step sizes of Section 4",
    statement=r"Gradient descent with steps 8, 32 and 128 brings the loss to zero within 4000 steps, and "
    r"$1 - \cos(w, \hat w)$ grows with the step: an early jump leaves a component off the separator that fixed "
    r"steps beat only logarithmically.",
    assumes=(
        _ALL_TRUSTED,
        Assumption(
            name="solved", statement="the loss falls below a thousandth in every run", check=all_solved
        ),
    ),
    constants={"order": tuple(f"step {step:g}" for step in LARGE_STEPS)},
    instances=steps_together,
    controls=(
        Plant(
            name="the largest step first",
            constants={"order": tuple(f"step {s:g}" for s in LARGE_STEPS[::-1])},
        ),
    ),
    notes="The bounds of docs/convergence.md ask for step B L <= 1: not at the start of these runs, only later.",
)

CLAIMS = (rate_normalised, rate_loss_scaled, rate_normalised_sqrt, rule_order, overshoot)
