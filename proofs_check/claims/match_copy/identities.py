"""Gradient identities of the minimal model (Lemma F.1, eqs. 38, 40, 47) in exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.rational import (
    TOTAL,
    RationalSample,
    cross_entropy_derivatives,
    dot,
    drawn_samples,
    exact_floats,
    squared_error_derivatives,
    unit_matrices,
)
from marginlab.proofs_check.engine.claim import Claim, Evidence, Instance, Kind, Plant, Source
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval

#: Problems of this many samples, keys a sample and dimensions; the second has fewer dimensions than rivals.
SIZES = ({"n": 3, "K": 4, "d": 3}, {"n": 2, "K": 6, "d": 2})

GROUP = "match-copy/exact"


def rational_problems(run: Run) -> Iterable[Instance]:
    """Samples drawn with integer data and dyadic weights; then the same with their values permuted."""
    root = run.config.root_seed
    for size in SIZES:
        config = {"kind": "rational", **size, "root": root}
        name = "n = {n}, K = {K}, d = {d}".format(**size)
        for seed in run.seeds(4):
            samples = drawn_samples(run.stream(config, seed), **size)
            yield Instance(label=f"{name}, seed {seed}", data=samples, seed=seed, config=config)
    # A fixed injective copy map t -> sigma(t): the value of a key stands elsewhere.
    config = {"kind": "rational", **SIZES[0], "root": root, "shift": 2}
    shifted = [
        RationalSample(
            keys=s.keys, query=s.query, values=s.values[2:] + s.values[:2], match=s.match, weights=s.weights
        )
        for s in drawn_samples(run.stream(config, 0), **SIZES[0])
    ]
    yield Instance(label="values permuted by a copy map", data=shifted, config=config)


def _combined(samples: list[RationalSample], coefficients: list[list[Fraction]], features: str) -> Interval:
    """-sum pi_{i,t} vec(f_{i,t} q_i^T), f the key differences or the error directions, entry by entry."""
    d = len(samples[0].query)
    total = [Fraction(0)] * (d * d)
    for sample, pi in zip(samples, coefficients, strict=True):
        vectors = sample.differences if features == "keys" else sample.errors
        for t in sample.rivals:
            for a in range(d):
                for b in range(d):
                    total[a * d + b] -= pi[t] * vectors[t][a] * sample.query[b]
    return Interval.exact(exact_floats(total))


def squared_error_gradient(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The gradient by eq. (40): pi_t = a_t (<d_t, r> - ||r||^2)."""
    coefficients = []
    for s in instance.data:
        r = s.residual
        square = Fraction(constants["square"]) * dot(r, r)
        coefficients.append([a * (dot(d, r) - square) for a, d in zip(s.attention, s.errors, strict=True)])
    return _combined(instance.data, coefficients, constants["features"])


def cross_entropy_gradient(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The gradient by eq. (38): pi_t = a_t."""
    scale = Fraction(constants["scale"])
    return _combined(instance.data, [[scale * a for a in s.attention] for s in instance.data], "keys")


def differentiated_squared_error(instance: Instance) -> Interval:
    """Derivatives of eq. (19) along every unit matrix, from its definition."""
    samples = instance.data
    entries = [
        sum((squared_error_derivatives(s, s.logit_changes(U))[0] for s in samples), Fraction(0))
        for U in unit_matrices(len(samples[0].query))
    ]
    return Interval.exact(exact_floats(entries))


def differentiated_cross_entropy(instance: Instance) -> Interval:
    """Derivatives of sum_i -log a_{y_i} along every unit matrix, from its definition."""
    samples = instance.data
    entries = [
        sum((cross_entropy_derivatives(s, s.logit_changes(U))[0] for s in samples), Fraction(0))
        for U in unit_matrices(len(samples[0].query))
    ]
    return Interval.exact(exact_floats(entries))


def coefficient_totals(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """a_y ||r||^2 of each sample, eq. (47)."""
    powers = [s.attention[s.match] ** constants["power"] * dot(s.residual, s.residual) for s in instance.data]
    return Interval.exact(exact_floats(powers))


def fall_along_the_match(instance: Instance) -> Interval:
    """How fast each sample's loss falls as the match's logit alone grows: every margin grows at rate 1."""
    falls = []
    for s in instance.data:
        changes = [Fraction(int(t == s.match)) for t in range(len(s.keys))]
        falls.append(-squared_error_derivatives(s, changes)[0])
    return Interval.exact(exact_floats(falls))


def _direction_changes(sample: RationalSample) -> list[Fraction]:
    """Logit changes along an arbitrary but fixed integer direction."""
    d = len(sample.query)
    return sample.logit_changes([[(3 * a + 5 * b) % 7 - 3 for b in range(d)] for a in range(d)])


def cross_entropy_curvature(instance: Instance) -> Interval:
    """Second derivative of each sample's -log a_y along a direction, from its definition."""
    return Interval.exact(
        exact_floats([cross_entropy_derivatives(s, _direction_changes(s))[1] for s in instance.data])
    )


def pairwise_variance(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """sum_{s < t} a_s a_t (u_s - u_t)^2 of each sample: no term is negative."""
    values = []
    for sample in instance.data:
        a, u = sample.attention, _direction_changes(sample)
        pairs = [(s, t) for t in range(len(a)) for s in range(t)]
        spread = sum((a[s] * a[t] * (u[s] - u[t]) ** 2 for s, t in pairs), Fraction(0))
        values.append(Fraction(constants["scale"]) * spread)
    return Interval.exact(exact_floats(values))


def single_rivals(run: Run) -> Iterable[Instance]:
    """One rival of weight a = 1/2, 3/4, 7/8: the curvature is positive at first, then negative."""
    del run
    for share in (TOTAL // 2, 3 * TOTAL // 4, 7 * TOTAL // 8):
        sample = RationalSample(
            keys=((1, 2), (-1, 1)),
            query=(2, -1),
            values=((0, 1), (2, 2)),
            match=0,
            weights=(TOTAL - share, share),
        )
        yield Instance(label=f"weight {share}/{TOTAL} on the rival", data=[sample], config={"share": share})


def squared_error_curvature(instance: Instance) -> Interval:
    """Second derivative of the squared error along the constraint vector (k_y - k_t) q^T, from its definition."""
    curvatures = []
    for s in instance.data:
        difference = s.differences[s.rivals[0]]
        direction = [[x * q for q in s.query] for x in difference]
        curvatures.append(squared_error_derivatives(s, s.logit_changes(direction))[1])
    return Interval.exact(exact_floats(curvatures))


def single_rival_curvature(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """a^2 (1 - a) (2 - 3 a) ||d||^2 ||x~||^4 with a the rival's weight."""
    values = []
    for s in instance.data:
        t = s.rivals[0]
        a, d, x = s.attention[t], s.errors[t], s.differences[t]
        feature = dot(x, x) * dot(s.query, s.query)
        values.append(a**2 * (1 - a) * (2 - constants["three"] * a) * dot(d, d) * feature**2)
    return Interval.exact(exact_floats(values))


gradient_squared_error = Claim(
    id="match-copy/gradient-mse",
    title="The gradient of the squared error is the stated combination of the constraint vectors",
    paper=PAPER,
    where="Lemma F.1, eq. (40)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"$-\nabla \mathrm{MSE} = \sum_{i, t \ne y_i} \pi_{i,t}\, \tilde x_{i,t}$ with $\tilde x_{i,t} = "
        r"\mathrm{vec}((e_{y_i} - e_t)\, e^\top)$ and $\pi_{i,t} = a_{t+1} (\langle d_{i,t}, r_i \rangle - "
        r"\|r_i\|^2)$, whatever injective map $t_0 \mapsto \sigma(t_0)$ gives the copied values."
    ),
    constants={"square": 1, "features": "keys"},
    group=GROUP,
    instances=rational_problems,
    predict=squared_error_gradient,
    measure=differentiated_squared_error,
    controls=(
        Plant(name="without the squared residual", constants={"square": 0}),
        Plant(name="the squared residual with the other sign", constants={"square": -1}),
    ),
    notes=(
        "Integer data and weights that are rational numbers. The loss is differentiated by its definition, as a "
        "quotient of power series in exact arithmetic, along each of the d^2 unit matrices."
    ),
)

gradient_cross_entropy = Claim(
    id="match-copy/gradient-cross-entropy",
    title="The gradient of the cross-entropy combines the constraint vectors with the attention weights",
    paper=PAPER,
    where="Lemma F.1, eq. (38)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$-\nabla \mathrm{CE} = \sum_{i, t \ne y_i} a_{t+1}\, \tilde x_{i,t}$ (the sum over samples).",
    constants={"scale": 1},
    group=GROUP,
    instances=rational_problems,
    predict=cross_entropy_gradient,
    measure=differentiated_cross_entropy,
    controls=(Plant(name="twice as large", constants={"scale": 2}),),
    notes="As for the squared error, in exact rationals.",
)

coefficient_total = Claim(
    id="match-copy/coefficient-total",
    title="The coefficients of a sample sum to the match's weight times the squared residual",
    paper=PAPER,
    where="eq. (47)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$\sum_{t \ne y_i} \pi_{i,t} = a_{T_0} \|r_i\|^2$.",
    constants={"power": 1},
    group=GROUP,
    instances=rational_problems,
    predict=coefficient_totals,
    measure=fall_along_the_match,
    controls=(Plant(name="without the weight of the match", constants={"power": 0}),),
    depends_on=("match-copy/gradient-mse",),
    notes=(
        "Measured as the derivative of the loss along the logit of the match alone, which raises every margin of the "
        "sample at rate 1: by the definition of the loss, in exact rationals."
    ),
)

cross_entropy_convex = Claim(
    id="match-copy/cross-entropy-convex",
    title="The cross-entropy is convex: its curvature is a sum of squares",
    paper=PAPER,
    where="eq. (17)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"Along $U$ the second derivative of $-\log a_{y}$ is $\sum_{s < t} a_s a_t (u_s - u_t)^2 \ge 0$, with $u_t = "
        r"e_t^\top U e$."
    ),
    constants={"scale": 1},
    group=GROUP,
    instances=rational_problems,
    predict=pairwise_variance,
    measure=cross_entropy_curvature,
    controls=(Plant(name="half as large", constants={"scale": 0.5}),),
    notes="In exact rationals, along one integer direction; the right-hand side shows the sign.",
)

squared_error_not_convex = Claim(
    id="match-copy/mse-not-convex",
    title="The squared error is not convex: its curvature is negative where a rival has more than 2/3 of the weight",
    paper=PAPER,
    where="Section F.2",
    source=Source.DERIVED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"With one rival of weight $a$ the second derivative along its constraint vector $\tilde x$ is $a^2 (1 - a) "
        r"(2 - 3 a)\, \|d\|^2 \|\tilde x\|^4$, negative for $a > \frac23$."
    ),
    constants={"three": 3},
    group=GROUP,
    instances=single_rivals,
    predict=single_rival_curvature,
    measure=squared_error_curvature,
    controls=(Plant(name="a factor 2 - 2a, which is never negative", constants={"three": 2}),),
    notes=(
        "That the loss is not convex is the paper's remark; the formula is ours. With $a = \\sigma(-m)$: $a' = -a(1-a)$"
        " in the margin, and the loss is $a^2 \\|d\\|^2 / 2$."
    ),
)

CLAIMS = (
    gradient_squared_error,
    gradient_cross_entropy,
    coefficient_total,
    cross_entropy_convex,
    squared_error_not_convex,
)
