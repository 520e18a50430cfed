"""The integer instance on which A1 to A3 hold, A4 does not, and gradient flow goes to another direction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A2, A3, TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.broken import INTEGERS_DATA
from marginlab.proofs_check.claims.match_copy.flow_runs import TIMES, integer_flow
from marginlab.proofs_check.claims.match_copy.flowed import flow_run
from marginlab.proofs_check.claims.match_copy.rational import (
    TOTAL,
    RationalSample,
    dot,
    exact_floats,
    squared_error_derivatives,
)
from marginlab.proofs_check.claims.match_copy.trained import TrainedRun
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Curve, Interval
from marginlab.proofs_check.tolerances import truncated
from marginlab.simulations.trajectory import TRUSTED as TRUSTED_ERROR

DERIVED = "derived for this project (docs/convergence.md)"

#: Where directions are read: from log t = 50 on the smallest margin is above 20, and log 2 is little beside it.
LATE = (50.0, 300.0)

#: The distance to a limit that a flow may be off late, as a share of its distance to the rival. Here the flow is
#: smooth and its remainder O(1 / log t) with constant log 2 / 3, so a hundredth can be asked instead of a tenth.
SHARE = 0.01

# ---- In integers --------------------------------------------------------------------------------------------------


def sample_at(weights: tuple[int, int, int]) -> RationalSample:
    """The instance at a point where the match and the rivals 2, 3 have these weights over `TOTAL`."""
    data = INTEGERS_DATA
    return RationalSample(
        keys=tuple(tuple(key) for key in data["keys"][0]),
        values=tuple(tuple(value) for value in data["values"][0]),
        query=tuple(data["queries"][0]),
        match=data["match"][0],
        weights=weights,
    )


def whole_instance(run: Run) -> Iterable[Instance]:
    """The integer instance itself."""
    del run
    yield Instance(label="integer instance", data=sample_at((TOTAL - 2, 1, 1)), config=INTEGERS_DATA)


def grid(run: Run) -> Iterable[Instance]:
    """Every pair of positive weights of the two rivals over `TOTAL`, one instance for each weight of the first."""
    del run
    for second in range(1, TOTAL - 1):
        samples = [sample_at((TOTAL - second - w, second, w)) for w in range(1, TOTAL - second)]
        yield Instance(
            label=f"a_2 = {second}/{TOTAL}", data=samples, config={**INTEGERS_DATA, "second": second}
        )


def facts(instance: Instance) -> Interval:
    """What the proof uses of the instance, from its integers; `stated_facts` has the order."""
    sample: RationalSample = instance.data
    y, (s, t) = sample.match, sample.rivals
    features = [[k * q for k in sample.differences[u] for q in sample.query] for u in (s, t)]
    errors = [sample.errors[u] for u in (s, t)]
    K = [[dot(a, b) for a in features] for b in features]
    D = [[dot(a, b) for a in errors] for b in errors]
    # Least value of |c d_2 + (1 - c) d_3|^2 on [0, 1]: a convex parabola in c, so at its vertex or at an end.
    curvature = D[0][0] - 2 * D[0][1] + D[1][1]
    c = min(max((D[1][1] - D[0][1]) / curvature, Fraction(0)), Fraction(1))
    squared_gap = c * c * D[0][0] + 2 * c * (1 - c) * D[0][1] + (1 - c) ** 2 * D[1][1]
    mean = [Fraction(a + b, 3) for a, b in zip(*errors, strict=True)]
    # Equal margins: solve K beta = (1, 1) by Cramer's rule.
    det = K[0][0] * K[1][1] - K[0][1] ** 2
    beta = [(K[1][1] - K[0][1]) / det, (K[0][0] - K[0][1]) / det]
    # The separator is x~_3 / K_33: a margin of 1 there, more at the other, multipliers (0, 1 / K_33).
    separator_margins = [K[0][1] / K[1][1], Fraction(1)]
    bar_margins = [dot(row, beta) for row in K]
    bar_squared = dot(beta, bar_margins)
    hat_squared = 1 / K[1][1]
    inner = bar_margins[1] / K[1][1]
    squared_cosine = inner**2 / (bar_squared * hat_squared)
    values = [
        *(K[0][0], K[0][1], K[1][1]),
        *(D[0][0], D[0][1], D[1][1]),
        *(11 * squared_gap / 2, 9 * dot(mean, mean) / 2),
        *separator_margins,
        *beta,
        bar_squared,
        10 * squared_cosine,
    ]
    assert sample.errors[y] == [0] * len(mean)
    return Interval.exact(exact_floats(values).astype(float))


def stated_facts(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """K; D; 11 gamma^2 / 2 and 9 L(0); margins of w_hat; weights and squared norm of w_bar; 10 cos^2."""
    del instance
    names = ("K", "D", "losses", "separator", "equal", "cosine")
    return Interval.exact([float(x) for name in names for x in constants[name]])


def drift(instance: Instance) -> Interval:
    """d(m_2 - m_3)/dt along the flow: minus the loss's derivative along x~_2 - x~_3, from power series."""
    found = []
    for sample in instance.data:
        s, t = sample.rivals
        gap = [a - b for a, b in zip(sample.differences[s], sample.differences[t], strict=True)]
        direction = [[k * q for q in sample.query] for k in gap]
        found.append(-squared_error_derivatives(sample, sample.logit_changes(direction))[0])
    return Interval.exact(exact_floats(found).astype(float))


def drift_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """a_2^2 Q(xi), xi = a_3 / a_2, Q with the given coefficients."""
    a, b, c = constants["Q"]
    bounds = []
    for sample in instance.data:
        _, second, third = sample.weights
        bounds.append(Fraction(a * third**2 + b * second * third + c * second**2, TOTAL**2))
    return Interval.exact(exact_floats(bounds).astype(float))


def barrier_points(run: Run) -> Iterable[Instance]:
    """Every point of the grid with xi = 2."""
    del run
    samples = [sample_at((TOTAL - 3 * w, w, 2 * w)) for w in range(1, (TOTAL - 1) // 3 + 1)]
    yield Instance(label="xi = 2", data=samples, config={**INTEGERS_DATA, "xi": 2})


def barrier_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """Q(2) a_2^2."""
    return Interval.exact([constants["value"] * (s.weights[1] / TOTAL) ** 2 for s in instance.data])


# ---- Along the flow -----------------------------------------------------------------------------------------------


def gaps(run: TrainedRun) -> Interval:
    """m_2 - m_3 at every record, with the flow's own error bound on W."""
    constraints = run.problem.constraints()
    m = np.array([constraints.margins(w) for w in run.W])
    reach = np.abs(np.sqrt(np.diag(constraints.gram()))).sum()
    return Interval.around(
        m[:, 0] - m[:, 1],
        TRUSTED_ERROR * run.norm * reach,
        "integration: W is right to the trusted relative error, times the lengths of both constraint vectors",
    )


def ratio(instance: Instance) -> Curve:
    """xi = exp(m_2 - m_3) against log t."""
    run: TrainedRun = instance.data
    gap = gaps(run)
    return Curve(
        x=np.log(run.steps),
        y=Interval(np.exp(gap.lo), np.exp(gap.hi), gap.rule),
        x_name="log t",
        y_name="exp(m_2 - m_3)",
    )


def predicted_ratio(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The root of Q at which Q decreases; the rival is where the flow starts, xi = 1."""
    del instance
    a, b, c = constants["Q"]
    root = (-b + constants["branch"] * np.sqrt(b * b - 4 * a * c)) / (2 * a)
    return truncated(root, 1.0)


def cosine(instance: Instance) -> Curve:
    """cos(W, w_hat), w_hat along the constraint vector that supports, against log t."""
    run: TrainedRun = instance.data
    hat = run.separator.W
    value = np.einsum("rab,ab->r", run.W, hat) / (run.norm * np.linalg.norm(hat))
    return Curve(
        x=np.log(run.steps),
        y=Interval.around(value, 2 * TRUSTED_ERROR, "integration: twice the trusted relative error of W"),
        x_name="log t",
        y_name="cos(W, separator)",
    )


def predicted_cosine(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The limit, told from 1: the direction of Theorem D.2."""
    del instance
    return truncated(constants["cosine"], 1.0 if constants["cosine"] < 1 else 0.0, share=SHARE)


#: x~_3 = (1, 0) and x~_2 = (1 + delta, h) with delta = 3; h = 1 has the Gram matrix of the integers.
DELTA = 3.0
#: Below 1/4 the engine's own error bound is lost before log t = 300.
HEIGHTS = (1.0, 0.5, 0.25)


def family(run: Run) -> Iterable[Instance]:
    """Flows of the family with delta = 3, for each h."""
    for h in HEIGHTS:
        data = {
            **INTEGERS_DATA,
            "keys": [[[0.0, 0.0], [-1.0 - DELTA, -h], [-1.0, 0.0]]],
            "queries": [[1.0, 0.0]],
        }
        yield flow_run(run, data, {**TIMES, "loss": "mse", "h": h}, None, f"h = {h:g}")


def late_cosine(instance: Instance) -> Interval:
    """cos(W, w_hat) at every record of the late window."""
    curve = cosine(instance)
    late = (curve.x >= LATE[0]) & (curve.x <= LATE[1])
    return Interval(curve.y.lo[late], curve.y.hi[late], curve.y.rule)


def family_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """m_3 / sqrt(m_3^2 + ((delta m_3 - log 2) / h)^2): the cosine if m_2 - m_3 were log 2, the most it can be."""
    run: TrainedRun = instance.data
    log_t = np.log(run.steps)
    late = (log_t >= LATE[0]) & (log_t <= LATE[1])
    m = np.array([run.problem.constraints().margins(w)[1] for w in run.W[late]])
    h = constants["factor"] * instance.config["flow"]["h"]
    return Interval.around(
        1 / np.sqrt(1 + ((DELTA - np.log(2.0) / m) / h) ** 2),
        TRUSTED_ERROR,
        "integration: the trusted relative error of m_3, whose factor in the bound is below 1",
    )


Q = (42, -160, 130)

_SHARED: dict[str, Any] = {
    "paper": PAPER,
    "source": Source.DERIVED,
    "group": "match-copy/counterexample",
    "where": DERIVED,
}

integer_facts = Claim(
    **_SHARED,
    id="match-copy/counterexample-facts",
    title="An integer instance satisfies A1 to A3 and starts below the loss from which it must vanish",
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"$K=\begin{pmatrix}17&4\\4&1\end{pmatrix}$, $D=\begin{pmatrix}10&-10\\-10&14\end{pmatrix}$, "
        r"$\gamma^2/2=5/11$, $L(0)=2/9$; $\hat w=\tilde x_3$ has margins $4,1$; $K^{-1}1=(-3,13)$, $\|\bar w\|^2=10$, "
        r"$10\cos^2(\bar w,\hat w)=1$."
    ),
    instances=whole_instance,
    constants={
        "K": (17, 4, 1),
        "D": (10, -10, 14),
        "losses": (5, 2),
        "separator": (4, 1),
        "equal": (-3, 13, 10),
        "cosine": (1,),
    },
    predict=stated_facts,
    measure=facts,
    controls=(
        Plant(name="alignments of the sign that A4 asks for", constants={"D": (10, 10, 14)}),
        Plant(name="the direction of the separator", constants={"cosine": (10,)}),
    ),
    notes="In rationals. Hull distance from the vertex of a parabola, equal margins by Cramer's rule.",
)

drift_below = Claim(
    **_SHARED,
    id="match-copy/counterexample-drift",
    title="On the integer instance the rival off the support is drawn back to the margin",
    kind=Kind.UPPER,
    evidence=Evidence.EXACT,
    statement=r"$\frac{d}{dt}(m_2-m_3)=13\pi_2+3\pi_3\le a_2^2(42\xi^2-160\xi+130)$ with $\xi=e^{m_2-m_3}=a_3/a_2$.",
    instances=grid,
    constants={"Q": Q},
    predict=drift_bound,
    measure=drift,
    controls=(Plant(name="a constant term of 120", constants={"Q": (42, -160, 120)}),),
    notes=(
        "The left side by power series of the loss along x~_2 - x~_3, for all weights that are multiples of 1/32; for "
        "all others on paper: the difference is |r|^2 (13 a_2 + 3 a_3)."
    ),
)

barrier = Claim(
    **_SHARED,
    id="match-copy/counterexample-barrier",
    title="On the integer instance the rivals' weights never come to the ratio 2",
    kind=Kind.UPPER,
    evidence=Evidence.EXACT,
    statement=r"At $\xi=2$: $\frac{d}{dt}(m_2-m_3)\le -22\,a_2^2<0$, so that $\xi\le2$ for ever if $\xi(0)=1$.",
    instances=barrier_points,
    depends_on=("match-copy/counterexample-drift",),
    constants={"value": -22},
    predict=barrier_bound,
    measure=drift,
    controls=(Plant(name="twice the pull", constants={"value": -44}),),
    notes="So the direction is not w_hat's, for which (m_2 - m_3) / |w| would tend to 3: docs/convergence.md.",
)

ratio_limit = Claim(
    **_SHARED,
    id="match-copy/counterexample-ratio",
    title="The ratio of the rivals' weights tends to a root of the drift",
    kind=Kind.LIMIT,
    evidence=Evidence.NUMERICAL,
    statement=r"$\xi=a_3/a_2\to(80-\sqrt{940})/42$, the root of $42\xi^2-160\xi+130$ below 2.",
    assumes=(A1, A2, A3, TRUSTED),
    instances=integer_flow,
    depends_on=("match-copy/counterexample-drift",),
    constants={"Q": Q, "branch": -1},
    window=LATE,
    predict=predicted_ratio,
    measure=ratio,
    controls=(
        Plant(name="the other root", constants={"branch": 1}),
        Plant(name="a constant term of 132", constants={"Q": (42, -160, 132)}),
    ),
)

cosine_limit = Claim(
    **_SHARED,
    id="match-copy/counterexample-direction",
    title="Without A4 the direction can be another one: cosine 1/sqrt(10) with the separator",
    kind=Kind.LIMIT,
    evidence=Evidence.NUMERICAL,
    statement=r"$\cos(w(t),\hat w)\to1/\sqrt{10}$ for the flow from 0 on the integer instance, where A1 to A3 hold.",
    assumes=(A1, A2, A3, TRUSTED),
    instances=integer_flow,
    depends_on=("match-copy/counterexample-barrier", "match-copy/counterexample-facts"),
    constants={"cosine": 10**-0.5},
    window=LATE,
    predict=predicted_cosine,
    measure=cosine,
    controls=(
        Plant(name="the direction of Theorem D.2", constants={"cosine": 1.0}),
        Plant(name="the cosine 1/3", constants={"cosine": 1 / 3}),
    ),
)

family_cosine = Claim(
    **_SHARED,
    id="match-copy/counterexample-family",
    title="Without A4 the cosine of the limit can be as small as wanted",
    kind=Kind.UPPER,
    evidence=Evidence.NUMERICAL,
    statement=(
        r"With $\tilde x_3=(1,0)$, $\tilde x_2=(1+\delta,h)$, $\delta=3$ and the values of the integer instance: "
        r"$\cos(w(t),\hat w)\le m_3/\sqrt{m_3^2+(\delta m_3-\log2)^2/h^2}\to h/\sqrt{h^2+\delta^2}$."
    ),
    assumes=(A1, A2, A3, TRUSTED),
    instances=family,
    depends_on=("match-copy/counterexample-barrier",),
    constants={"factor": 1.0},
    predict=family_bound,
    measure=late_cosine,
    controls=(Plant(name="99/100 of the height", constants={"factor": 0.99}),),
    notes="The barrier at 2 holds for every h, since (delta + delta^2 + h^2)(-10) + 36 delta < 0 at delta = 3.",
)

CLAIMS = (integer_facts, drift_below, barrier, ratio_limit, cosine_limit, family_cosine)
