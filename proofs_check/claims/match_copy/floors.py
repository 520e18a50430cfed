"""What happens where A1, A3 or A5 is broken: exact floors, finite interpolants, other directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.flowed import flow_run
from marginlab.proofs_check.claims.match_copy.regimes import START_DATA, cell
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import (
    Answer,
    Assumption,
    CannotForm,
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Status,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Ranking
from marginlab.proofs_check.tolerances import enclosed, gamma
from marginlab.theory.match_copy.geometry import hull_distance
from marginlab.theory.match_copy.losses import error_directions, residuals, squared_error

_SHARED: dict[str, Any] = {
    "paper": PAPER,
    "source": Source.DERIVED,
    "where": "Theorem D.2 without one of its assumptions",
    "evidence": Evidence.NUMERICAL,
    "group": "match-copy/floors",
}

#: How far W may be off its flow in margins and norms: a tenth of the level that a second run tells.
INTEGRATION = 1e-7


# ---- A1: the matched key stands twice ----


def doubled(run: Run) -> Iterable[Instance]:
    """The matched key of the first sample stands twice."""
    flow = {"first": 6.0, "last": 15.0, "number": 4}
    data = {**START_DATA, "kind": "doubled"}
    return [flow_run(run, data, flow, seed, f"seed {seed}") for seed in run.seeds(3)]


def _doubled_token(run: TrainedRun) -> int:
    problem = run.problem
    y = int(problem.match[0])
    same = np.all(problem.keys[0] == problem.keys[0, y], axis=1)
    same[y] = False
    return int(np.argmax(same))


def first_sample_error(instance: Instance) -> Interval:
    """||r_1||^2 / 2 in the end, with what it still fell by over the last third of the log time."""
    run: TrainedRun = instance.data
    errors = 0.5 * np.sum(residuals(run.problem, run.W)[:, 0] ** 2, axis=1)
    left = float(errors[-2] - errors[-1])
    return Interval(
        np.array(errors[-1] - left),
        np.array(errors[-1] * (1 + gamma(1_000))),
        "truncation: what it fell by over the last three units of log t",
    )


def exact_floor(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Half of the squared distance of 0 to the hull of the d_s and of d_dup / 2; or ||d_dup||^2 / 8, the crude one."""
    run: TrainedRun = instance.data
    d = error_directions(run.problem)[0]
    twin, y = _doubled_token(run), int(run.problem.match[0])
    if constants["crude"]:
        value = float(d[twin] @ d[twin]) / 8
        return Interval.around(value, gamma(100) * value, "rounding: a sum of squares")
    points = np.array([d[t] / (2.0 if t == twin else 1.0) for t in range(len(d)) if t != y])
    distance = hull_distance(points)
    return enclosed(distance.lower**2 / 2, distance.upper**2 / 2, "least distance to a hull, from both sides")


doubled_floor = Claim(
    **_SHARED,
    id="match-copy/doubled-floor",
    title="A matched key that stands twice leaves an error with an exact value",
    kind=Kind.IDENTITY,
    statement=r"If key $u$ equals the matched one, $m_u = 0$ for every $W$, and the sample's error tends to "
    r"$\min_{c \ge 0} \frac12 \|(d_u + \sum c_s d_s) / (2 + \sum c_s)\|^2$.",
    constants={"crude": False},
    instances=doubled,
    predict=exact_floor,
    measure=first_sample_error,
    controls=(Plant(name="the bound with no other token", constants={"crude": True}),),
    notes="The residual is a convex combination of d_u / 2 and the other d_s: the floor is a distance to a hull.",
)


# ---- A3: the matched value is a mixture of others ----


def mixed(run: Run) -> Iterable[Instance]:
    """The matched value is 0.7 v_a + 0.3 v_b, in all samples, with a third distractor."""
    flow = {"first": 4.0, "last": 10.0, "number": 13}
    data = {**START_DATA, "kind": "mixed-value"}
    return [flow_run(run, data, flow, seed, f"seed {seed}") for seed in run.seeds(3)]


def late_misalignment(instance: Instance) -> Interval:
    """1 - cos over the second half of the log time."""
    run: TrainedRun = instance.data
    half = len(run.steps) // 2
    return enclosed(
        run.cosines.one_minus_lower[half:], run.cosines.one_minus_upper[half:], "certified separator"
    )


def bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound."""
    del instance
    return Interval.exact(constants["least"])


def falling(instance: Instance) -> Answer:
    """Whether the loss is below e^-8 and the norm has grown to twice its first value."""
    run: TrainedRun = instance.data
    loss, growth = float(run.log_loss[-1]), float(run.norm[-1] / run.norm[0])
    status = Status.HOLDS if loss < -8 and growth > 2 else Status.FAILS
    return Answer(status, f"loss e^{loss:.3g}, norm {growth:.3g} times its value at log t = 4", loss)


mixture_direction = Claim(
    **_SHARED,
    id="match-copy/mixture-direction",
    title="Without identifiability the loss vanishes and the direction is another one",
    kind=Kind.LOWER,
    statement=r"If each matched value is $0.7 v_a + 0.3 v_b$, the loss tends to zero and $\|w\|$ to infinity, while "
    r"$1 - \cos(w, \hat w)$ stays above 0.3: attention settles on the mixture.",
    assumes=(
        TRUSTED,
        Assumption(name="falling", statement="the loss falls below e^-8, the norm doubles", check=falling),
    ),
    constants={"least": 0.3},
    instances=mixed,
    predict=bound,
    measure=late_misalignment,
    controls=(Plant(name="nearly orthogonal", constants={"least": 0.9}),),
    notes="Flow to log t = 10; from 11 on the residual is lost in rounding, and the gradient is not trusted.",
)


def interpolated(run: Run) -> Iterable[Instance]:
    """The same with the two distractors alone and few samples, so that a finite W can have the weights 0.7 : 0.3."""
    flow = {"first": 2.0, "last": 20.0, "number": 10}
    data = {**cell(16, 4, 4), "kind": "mixed-value"}
    return [flow_run(run, data, flow, seed, f"seed {seed}") for seed in run.seeds(3)]


def late_norm_slope(instance: Instance) -> Interval:
    """Growth of ||W|| a unit of log t from 12 to 20, in units of the theorem's slope ||W_hat|| / 2."""
    run: TrainedRun = instance.data
    late = np.flatnonzero(np.log(run.steps) >= 12.0 - 1e-9)
    rise = float(run.norm[late[-1]] - run.norm[late[0]]) / 8.0
    slope = float(np.linalg.norm(run.separator.W)) / 2
    return Interval.around(
        rise / slope, INTEGRATION * float(run.norm[-1]) / slope, "integration: W within 1e-7"
    )


def theorem_slope(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """0: the norm is finite; 1: the theorem's slope."""
    del instance
    return Interval.exact(constants["slope"])


finite_interpolant = Claim(
    **_SHARED,
    id="match-copy/finite-interpolant",
    title="Without identifiability the loss can vanish at a finite matrix",
    kind=Kind.IDENTITY,
    statement=r"With two distractors a finite $W$ gives each the weight that cancels the residual: the loss is zero to "
    r"rounding, and $\|w\|$ no longer grows.",
    constants={"slope": 0.0},
    instances=interpolated,
    predict=theorem_slope,
    measure=late_norm_slope,
    controls=(Plant(name="the theorem's slope", constants={"slope": 1.0}),),
    notes="At the end the gradient is rounding alone, which does not move W; Lemma G.3 excludes this under A3.",
)


# ---- A5: noise in the targets ----


def noisy_targets(run: Run) -> Iterable[Instance]:
    """Targets with Gaussian noise of three sizes."""
    flow = {"first": 2.0, "last": 12.0, "number": 21}
    for sigma in (0.01, 0.05, 0.2):
        data = {**START_DATA, "kind": "noisy-target", "sigma": sigma}
        yield flow_run(run, data, flow, 0, f"noise {sigma:g}")


def share_of_noise(instance: Instance) -> Interval:
    """Loss at log t = 12 over half of the noise's squared norm."""
    run: TrainedRun = instance.data
    problem = run.problem
    rows = np.arange(len(problem.match))
    noise = problem.targets - problem.values[rows, problem.match]
    share = float(squared_error(problem, run.W[-1])) / (0.5 * float(np.sum(noise**2)))
    return Interval.around(share, 1e-6 * share, "integration: W within 1e-6")


noise_floor = Claim(
    **_SHARED,
    id="match-copy/target-noise",
    title="With noise in the targets the loss does not vanish",
    kind=Kind.LOWER,
    statement=r"With $v = e_{y+1} + \varepsilon$ the loss is still more than half of $\frac12 \sum "
    r"\|\varepsilon\|^2$ at $\log t = 12$: A5 fails.",
    constants={"least": 0.5},
    instances=noisy_targets,
    predict=bound,
    measure=share_of_noise,
    controls=(Plant(name="more than the noise itself", constants={"least": 1.5}),),
)


def best_and_last(instance: Instance) -> Ranking:
    """1 - cos where it is least, and at log t = 12."""
    cosines = instance.data.cosines
    best = int(np.argmin(cosines.one_minus_upper))
    return Ranking(
        values={
            name: enclosed(cosines.one_minus_lower[k], cosines.one_minus_upper[k], "certified separator")
            for name, k in (("on the way", best), ("in the end", -1))
        }
    )


def order(instance: Instance, constants: Mapping[str, Any]) -> tuple[str, ...]:
    """Names from the best aligned to the worst."""
    del instance
    return tuple(constants["order"])


noise_turns_away = Claim(
    **_SHARED,
    id="match-copy/target-noise-direction",
    title="With noise in the targets the direction first approaches the separator, then leaves it",
    kind=Kind.ORDERING,
    statement=r"$1 - \cos(w, \hat w)$ has a minimum on the way and is larger at $\log t = 12$.",
    constants={"order": ("on the way", "in the end")},
    instances=noisy_targets,
    predict=order,
    measure=best_and_last,
    controls=(Plant(name="best in the end", constants={"order": ("in the end", "on the way")}),),
)


# ---- A1: no separator ----


def inseparable(run: Run) -> Iterable[Instance]:
    """Too many samples for the dimension."""
    flow = {"first": 6.0, "last": 9.0, "number": 4}
    for d, n in ((2, 32), (3, 128)):
        yield flow_run(run, cell(d, 5, n), flow, 0, f"d = {d}, n = {n}")


def certified_inseparable(instance: Instance) -> Answer:
    """Whether it is certified that no W has all margins positive."""
    try:
        instance.data.separator  # noqa: B018
    except CannotForm as reason:
        return Answer(Status.HOLDS, str(reason))
    return Answer(Status.FAILS, "there is a separator")


def loss_kept(instance: Instance) -> Interval:
    """Loss at log t = 9 over that at log t = 6."""
    share = float(np.exp(instance.data.log_loss[-1] - instance.data.log_loss[0]))
    return Interval.around(share, 1e-6 * share, "integration: W within 1e-6")


inseparable_loss = Claim(
    **_SHARED,
    id="match-copy/inseparable-loss",
    title="Where no matrix separates the loss is stuck",
    kind=Kind.LOWER,
    statement=r"On data for which it is certified that no $W$ has all margins positive, the loss falls by less than "
    r"half from $t = e^6$ to $e^9$, where A1 and A4 make it fall by $e^{-3}$.",
    assumes=(
        Assumption(
            name="no-separator", statement="no $W$ has all margins positive", check=certified_inseparable
        ),
    ),
    constants={"least": 0.5},
    instances=inseparable,
    predict=bound,
    measure=loss_kept,
    controls=(Plant(name="a loss that grows", constants={"least": 1.5}),),
)

CLAIMS = (
    doubled_floor,
    mixture_direction,
    finite_interpolant,
    noise_floor,
    noise_turns_away,
    inseparable_loss,
)
