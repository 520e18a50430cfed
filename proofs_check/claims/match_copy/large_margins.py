"""Coefficients of the gradient at large margins (Lemma F.3), in ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A4_ALONE
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.broken import INTEGERS_DATA
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA
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
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.separators import max_margin
from marginlab.proofs_check.tolerances import rounded
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy.attention import key_differences
from marginlab.theory.match_copy.geometry import error_radii, smallest_alignments
from marginlab.theory.match_copy.gradient import error_alignments
from marginlab.theory.match_copy.losses import log_odds
from marginlab.theory.validation import Float

#: Smallest margins of the points at which coefficients are compared with their asymptotic form.
SCALES = (5.0, 20.0, 100.0, 1000.0)


#: Draws of the paper's run data that satisfy A4 are drawn until this many are found; the rest are vacuous.
DRAWS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FarPoint:
    """A problem and a point W with large margins."""

    problem: Problem
    W: Float


def _far(problem: Problem, noise: np.ndarray) -> Float:
    separator = max_margin(problem.constraints()).W
    # Perturbed, so that margins differ; scaled back to a smallest margin of 1.
    W = separator + 0.1 * np.linalg.norm(separator) * noise / np.linalg.norm(noise)
    return W / problem.constraints().margins(W).min()


def far_points(run: Run) -> Iterable[Instance]:
    """Draws of the paper's run, at W = s W_1 with s up to 1000 times the separator's margins, perturbed."""
    root = run.config.root_seed
    for seed in run.seeds(DRAWS):
        problem = problem_of(PAPER_DATA, root, seed)
        rng = np.random.default_rng(run.stream({"far points": PAPER_DATA}, seed))
        W = _far(problem, rng.standard_normal((problem.shape[2],) * 2))
        for scale in SCALES:
            yield Instance(
                label=f"seed {seed}, smallest margin {scale:g}",
                data=FarPoint(problem=problem, W=scale * W),
                seed=seed,
                config={"data": PAPER_DATA, "root": root, "scale": scale},
            )


def integer_points(run: Run) -> Iterable[Instance]:
    """The integer instance without A4, along its separator."""
    problem = problem_of(INTEGERS_DATA, run.config.root_seed, None)
    W = max_margin(problem.constraints()).W
    for scale in SCALES[1:]:
        yield Instance(
            label=f"integer instance, margin {scale:g}",
            data=FarPoint(problem=problem, W=scale * W),
            config={"data": INTEGERS_DATA, "scale": scale},
        )


def saturated(instance: Instance) -> Answer:
    """S_i <= g / (2 R^2) with g = min <d_s, d_t> > 0: margins are large for these data."""
    point: FarPoint = instance.data
    least, radius = np.abs(smallest_alignments(point.problem)), error_radii(point.problem)
    odds = np.exp(log_odds(point.problem, point.W))
    worst = float((2 * odds * radius**2 / least).max())
    status = Status.HOLDS if worst <= 1 else Status.FAILS
    return Answer(status, f"the largest 2 S R^2 / |g| is {worst:.3g}", worst)


def _coefficients(point: FarPoint) -> tuple[list[Any], list[Any]]:
    """pi_t / (e^{-m_t} S) and h_t of every rival of every sample, in ball arithmetic from the textbook softmax.

    pi_t = a_t <v_t - sum_s a_s v_s, r> with r = sum_s a_s v_s - v_y, weights from raw logits; h_t by its definition.
    """
    from flint import arb

    quotients, alignments = [], []
    problem = point.problem
    W = [[arb(float(x)) for x in row] for row in point.W]
    for i, y in enumerate(problem.match.tolist()):
        query = [arb(float(x)) for x in problem.queries[i]]
        moved = [_dot(row, query) for row in W]
        exponentials = [_dot([arb(float(k)) for k in key], moved).exp() for key in problem.keys[i]]
        total = sum(exponentials, arb(0))
        a = [e / total for e in exponentials]
        values = [[arb(float(x)) for x in v] for v in problem.values[i]]
        output = [_dot(a, column) for column in zip(*values, strict=True)]
        r = [o - v for o, v in zip(output, values[y], strict=True)]
        errors = [[p - q for p, q in zip(v, values[y], strict=True)] for v in values]
        rivals = [t for t in range(len(a)) if t != y]
        S = sum((exponentials[t] / exponentials[y] for t in rivals), arb(0))
        for t in rivals:
            pull = a[t] * _dot([v - o for v, o in zip(values[t], output, strict=True)], r)
            quotients.append(pull / (exponentials[t] / exponentials[y] * S))
            alignments.append(sum((_dot(errors[t], errors[s]) * a[s] / (1 - a[y]) for s in rivals), arb(0)))
    return quotients, alignments


def _dot(x: Iterable[Any], y: Iterable[Any]) -> Any:
    from flint import arb

    return sum((a * b for a, b in zip(x, y, strict=True)), arb(0))


def _enclosed(point: FarPoint, of: Callable[[Any, Any], Any]) -> Interval:
    """`of(quotient, h)` of every rival, with as many bits as the logits cancel: weights go down to exp(-spread)."""
    from flint import ctx

    scores = np.einsum("ita,ab,ib->it", point.problem.keys, point.W, point.problem.queries)
    saved = ctx.prec
    try:
        ctx.prec = 200 + int(4 * float(np.ptp(scores, axis=1).max()) / np.log(2))
        balls = [of(q, h) for q, h in zip(*_coefficients(point), strict=True)]
        lo = np.nextafter([float(b.lower()) for b in balls], -np.inf)
        hi = np.nextafter([float(b.upper()) for b in balls], np.inf)
    finally:
        ctx.prec = saved
    return Interval(lo, hi, "enclosed by ball arithmetic")


def scaled_coefficients(instance: Instance) -> Interval:
    """pi_t / (e^{-m_t} S) of every rival."""
    return _enclosed(instance.data, lambda quotient, _: quotient)


def least_coefficient(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """A share of g_i, or zero where A4 fails: then this says no more than that coefficients are positive."""
    problem = instance.data.problem
    least = np.maximum(smallest_alignments(problem), 0.0).repeat(problem.shape[1] - 1)
    # g is a sum of d_v products of differences, here of positive sign: what cancels in it is below R^2.
    squares = error_radii(problem).repeat(problem.shape[1] - 1) ** 2
    share = constants["share"]
    return rounded(share * least, operations=problem.shape[3] + 6, magnitude=share * squares)


def log_relative_error(instance: Instance) -> Interval:
    """log |pi_t / (h_t e^{-m_t} S) - 1| of every rival."""
    return _enclosed(instance.data, lambda quotient, h: abs(quotient / h - 1).log())


def log_relative_bound(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """log(factor S^power (1 + R^2 / |h_t|))."""
    point: FarPoint = instance.data
    problem = point.problem
    _, K, d, _ = problem.shape
    h = np.abs(error_alignments(problem, point.W)[problem.rivals])
    squares = error_radii(problem).repeat(K - 1) ** 2
    log_S = constants["power"] * log_odds(problem, point.W).repeat(K - 1)
    value = log_S + np.log(constants["factor"] * (1 + squares / h))
    # Margins are sums of d^2 products that may cancel: each is known to 2 d + 4 roundings of the sum of their sizes,
    # and the logarithm of h changes at most by as much, times R^2 / |h|.
    sizes = np.einsum(
        "ita,ab,ib->it", np.abs(key_differences(problem)), np.abs(point.W), np.abs(problem.queries)
    )
    return rounded(value, operations=2 * d + 4, magnitude=2 * float(sizes.max()) * (1 + squares / h))


coefficients_asymptotic = Claim(
    id="match-copy/coefficients-asymptotic",
    title="At large margins the coefficients are h e^{-m} S up to a relative error of order S",
    paper=PAPER,
    where="Lemma F.3",
    source=Source.DERIVED,
    kind=Kind.UPPER,
    evidence=Evidence.CERTIFIED,
    statement=(
        r"$\big|\frac{\pi_{i,t}}{h_{i,t} e^{-m_{i,t}} S_i} - 1\big| \le 2 S_i (1 + R_i^2 / |h_{i,t}|)$, so that "
        r"$\pi_{i,t} \sim h_{i,t} e^{-m_{i,t}} S_i$ as all margins diverge (Lemma F.3)."
    ),
    constants={"factor": 2.0, "power": 1.0},
    group="match-copy/large-margins",
    instances=far_points,
    predict=log_relative_bound,
    measure=log_relative_error,
    controls=(
        Plant(name="an error of order S^2", constants={"power": 2.0}),
        Plant(name="half of the bound", constants={"factor": 1.0}),
    ),
    depends_on=("match-copy/gradient-mse",),
    notes=(
        r"The lemma with a bound: $\pi_t = a_t ((1 - a_y) h_t - \|r\|^2)$ with $a_t = e^{-m_t} / (1 + S)$, "
        r"$1 - a_y = S / (1 + S)$ and $\|r\| \le R S / (1 + S)$. Logarithms of both sides are compared; the "
        r"coefficients and $h$ are from the textbook softmax in ball arithmetic."
    ),
)


coefficients_positive = Claim(
    id="match-copy/coefficients-positive",
    title="Under A4 all coefficients are positive once S is below g / (2 R^2)",
    paper=PAPER,
    where="Lemma F.3",
    source=Source.DERIVED,
    kind=Kind.LOWER,
    evidence=Evidence.CERTIFIED,
    statement=(
        r"$\pi_{i,t} \ge \frac{2 g_i}{9} e^{-m_{i,t}} S_i > 0$ if $g_i = \min \langle d_{i,s}, d_{i,t} \rangle > 0$ "
        r"and $S_i \le g_i / (2 R_i^2)$."
    ),
    assumes=(
        A4_ALONE,
        Assumption(name="saturated", statement=r"$S_i \le g_i / (2 R_i^2)$", check=saturated),
    ),
    constants={"share": 2 / 9},
    group="match-copy/large-margins",
    instances=far_points,
    predict=least_coefficient,
    measure=scaled_coefficients,
    controls=(
        Break(name="integer instance without A4", assumption="A4", instances=integer_points),
        Plant(name="four times as large", constants={"share": 4.0}),
    ),
    depends_on=("match-copy/gradient-mse",),
    notes=(
        r"$\pi_t / (e^{-m_t} S) \ge (g - R^2 S) / (1 + S)^2$, as $h_t \ge g$ is a mean of products, and $g \le R^2$. "
        r"Without A4 the integer instance has $h < 0$, and its second rival is pushed back at every margin."
    ),
)

CLAIMS = (
    coefficients_asymptotic,
    coefficients_positive,
)
