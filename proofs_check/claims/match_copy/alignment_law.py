"""The angle to the separator along gradient flow, in closed form, and the slope of the norm that goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A2, TRUSTED
from marginlab.proofs_check.claims.match_copy.flow_laws import FLOW_NOTES, flow_claim
from marginlab.proofs_check.claims.match_copy.flow_runs import (
    ALL_SUPPORT,
    INTEGER_FLOW,
    INTEGRATION,
    LATE,
    SOME_SUPPORT,
    START,
    at,
    flows,
    late,
    loss_of,
    offset_from_data,
    offset_from_run,
)
from marginlab.proofs_check.claims.match_copy.problems import rate_of
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Instance, Kind, Plant
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.simulations.trajectory import TRUSTED as TRUSTED_ERROR
from marginlab.theory.match_copy.laws import TAILS, Offset, misalignment, norm_slope

#: Where the part of w_infinity that the data do not give in closed form is read off a run: before what is predicted.
READ_OFF = 100.0


def _size(run: TrainedRun) -> float:
    return float(np.linalg.norm(run.separator.W))


def late_misalignment(instance: Instance) -> Interval:
    """1 - cos at the late records, from the certified separator; W is known to 1e-6 of its norm."""
    run: TrainedRun = instance.data
    enclosure = run.cosines
    # sin of half the angle; an error e of W / ||W|| turns it by at most arcsin(e), and half of that here.
    lo, hi = (np.sqrt(x[late(run)] / 2) for x in (enclosure.one_minus_lower, enclosure.one_minus_upper))
    turn = np.arcsin(TRUSTED_ERROR) / 2
    return Interval(2 * np.maximum(lo - turn, 0.0) ** 2, 2 * (hi + turn) ** 2, INTEGRATION)


def _law(run: TrainedRun, offset: Offset, constants: Mapping[str, Any], loss: str, start: float) -> Interval:
    """The law, with a band for what w - (1/kappa) log t w_hat still moves after `start`.

    Its deviation from the offset at `start` decays with half of the derived rate (see `decayed`); a move by r turns W
    by at most arcsin(r / ||W||), to first order r / <w, w_hat / ||w_hat||>.
    """
    log_t = np.log(run.steps)
    k, records = at(run, start), late(run)
    early = offset_from_run(run, loss, start)
    # <w, w_hat> and the part across are each off by at most the distance of the two offsets.
    moved = float(np.hypot(early.along - offset.along, early.across - offset.across))
    if not moved:
        # Read off the run at `start` itself: what it may still move by is read from one earlier record.
        before = offset_from_run(run, loss, START)
        moved = float(np.hypot(early.along - before.along, early.across - before.across))
    rest = moved * np.exp(-rate_of(run.problem, run.separator, loss) * (log_t[records] - log_t[k]) / 2)
    centre = constants["factor"] * misalignment(log_t[records], _size(run), offset, constants["tail"])
    along = _size(run) * log_t[records] / constants["tail"] + offset.along
    half = np.sqrt(centre / 2)
    turn = rest / along / 2
    return Interval(
        2 * np.maximum(half - turn, 0.0) ** 2,
        2 * (half + turn) ** 2,
        f"truncation: the offset's deviation at log t = {start:g}, decayed with half of the derived rate",
    )


def predicted_misalignment(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1 - cos with w_infinity from the data alone."""
    run, loss = instance.data, loss_of(instance)
    return _law(run, offset_from_data(run, loss), constants, loss, START)


def extrapolated_misalignment(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1 - cos with w_infinity read off the run at log t = 100."""
    run, loss = instance.data, loss_of(instance)
    return _law(run, offset_from_run(run, loss, READ_OFF), constants, loss, READ_OFF)


def norm_growth(instance: Instance) -> Curve:
    """||W||_F against log t."""
    run: TrainedRun = instance.data
    y = Interval.around(run.norm, TRUSTED_ERROR * run.norm, INTEGRATION)
    return Curve(x=np.log(run.steps), y=y, x_name="log t", y_name="Frobenius norm of W")


def predicted_slope(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """||w_hat|| / kappa, times a cosine between that at the start of the window and 1.

    ||w|| = hypot(along, across) with along = ||w_hat|| log t / kappa + const and across constant has this slope. The
    error of W adds 1e-6 (||W|| at both ends) over the shortest chord, an eighth of the window.
    """
    run: TrainedRun = instance.data
    loss = loss_of(instance)
    slope = norm_slope(_size(run), constants["tail"])
    offset = offset_from_run(run, loss, READ_OFF)
    least = 1 - float(misalignment(np.array([LATE[0]]), _size(run), offset, TAILS[loss])[0])
    error = _chord_error(run)
    return Interval(
        np.array(slope * least - error),
        np.array(slope + error),
        "truncation: the cosine of the alignment law at the start of the window, and the integration's error",
    )


def _chord_error(run: TrainedRun) -> float:
    return 2 * 2 * TRUSTED_ERROR * float(run.norm[-1]) / ((LATE[1] - LATE[0]) / 8)


_LAW = (
    r"$1 - \cos(w(\tau), \hat w) = 1 - (1 + \tan^2)^{-1/2}$ up to a factor $1 + O(\tau^{-\rho})$, $\rho > 0$, with "
    r"$\tan = \kappa \|P^\perp w_\infty\| / (\|\hat w\| (\log(\eta\tau) + \kappa \langle w_\infty, \hat w \rangle / "
    r"\|\hat w\|^2))$, $\kappa = "
)

_PLANTS = (
    Plant(name="a constant that is one per cent larger", constants={"factor": 1.01}),
    Plant(name="half of the constant", constants={"factor": 0.5}),
)

alignment_law = flow_claim(
    id="match-copy/alignment-law",
    title="The angle to the separator follows a law in log time whose constants come from the data alone",
    where="Theorem D.2, with its remainder",
    kind=Kind.IDENTITY,
    statement=_LAW + r"2$, where every constraint supports and $w(0) = 0$.",
    instances=flows("mse", ALL_SUPPORT),
    constants={"tail": 2.0, "factor": 1.0},
    predict=predicted_misalignment,
    measure=late_misalignment,
    controls=(*_PLANTS, Plant(name="cross-entropy's law", constants={"tail": 1.0}), INTEGER_FLOW),
    notes=FLOW_NOTES,
)

alignment_law_rest = flow_claim(
    id="match-copy/alignment-law-rest",
    title="With constraints off the support the angle follows the same law, one offset being read off the run",
    where="Theorem D.2, with its remainder",
    kind=Kind.IDENTITY,
    statement=_LAW + r"2$ and $w_\infty$ from $w(\tau) - \frac12 \log\tau\, \hat w$ at $\log\tau = 100$.",
    instances=flows("mse", SOME_SUPPORT),
    constants={"tail": 2.0, "factor": 1.0},
    predict=extrapolated_misalignment,
    measure=late_misalignment,
    controls=(*_PLANTS, Plant(name="cross-entropy's law", constants={"tail": 1.0})),
    notes="Constraints off the support leave a transient across the support that no limit theorem gives. "
    + FLOW_NOTES,
)

cross_entropy_alignment = flow_claim(
    id="match-copy/cross-entropy-alignment-law",
    title="Under cross-entropy the angle follows the same law with twice the slope",
    where="Theorem D.1, with its remainder",
    kind=Kind.IDENTITY,
    statement=_LAW + r"1$, where every constraint supports and $w(0) = 0$.",
    assumes=(A1, A2, TRUSTED),
    instances=flows("cross-entropy", ALL_SUPPORT),
    constants={"tail": 1.0, "factor": 1.0},
    predict=predicted_misalignment,
    measure=late_misalignment,
    controls=(*_PLANTS, Plant(name="the squared error's law", constants={"tail": 2.0})),
    notes=FLOW_NOTES,
)

norm_slope_late = flow_claim(
    id="match-copy/norm-slope-late",
    title="At log t from 200 to 300 the norm grows with the slope half of the separator's norm",
    where="Theorem D.2 (Theorem 4.1)",
    kind=Kind.RATE,
    statement=r"$\|w(\tau)\| \sim \frac{\|\hat w\|}{2} \log \tau$, the slope within the cosine of the alignment law.",
    constants={"tail": 2.0},
    predict=predicted_slope,
    measure=norm_growth,
    window=LATE,
    controls=(
        Plant(name="cross-entropy's slope", constants={"tail": 1.0}),
        Plant(name="a slope that is one per cent larger", constants={"tail": 2 / 1.01}),
        INTEGER_FLOW,
    ),
    notes=FLOW_NOTES,
)

cross_entropy_slope_late = flow_claim(
    id="match-copy/cross-entropy-norm-slope-late",
    title="Under cross-entropy the norm grows with the separator's norm as its slope, twice as fast",
    where="Theorem D.1",
    kind=Kind.RATE,
    statement=r"$\|w(\tau)\| \sim \|\hat w\| \log \tau$, the slope within the cosine of the alignment law.",
    assumes=(A1, A2, TRUSTED),
    instances=flows("cross-entropy", ALL_SUPPORT, SOME_SUPPORT),
    constants={"tail": 1.0},
    predict=predicted_slope,
    measure=norm_growth,
    window=LATE,
    controls=(
        Plant(name="the squared error's slope", constants={"tail": 2.0}),
        Plant(name="a slope that is one per cent larger", constants={"tail": 1 / 1.01}),
    ),
    notes=FLOW_NOTES,
)

CLAIMS = (
    alignment_law,
    alignment_law_rest,
    cross_entropy_alignment,
    norm_slope_late,
    cross_entropy_slope_late,
)
