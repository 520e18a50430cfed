"""Slips of the paper as published, each with the instance that shows it and the correction that passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.identities import (
    GROUP,
    differentiated_squared_error,
    rational_problems,
    squared_error_gradient,
)
from marginlab.proofs_check.claims.match_copy.rational import (
    dot,
    exact_floats,
)
from marginlab.proofs_check.engine.claim import (
    Claim,
    Evidence,
    Instance,
    Kind,
    Mend,
    Source,
    Verdict,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Ranking
from marginlab.theory.match_copy import MatchCopyTask, sample

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnormalised:
    """exp(e_t^T W e) of all tokens t = 1..T, as integers, and the match y in 1..T-1 (a position, from 1 on)."""

    scores: tuple[int, ...]
    match: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSeparator:
    """Constraint vectors <w, x_k> >= 1 in the plane, and the multipliers of their max-margin separator w.

    ``sum multipliers_k x_k`` is feasible and complementary: `optimal` checks both, which proves that it is w.
    """

    vectors: Rows
    multipliers: tuple[Fraction, ...]

    @property
    def separator(self) -> list[Fraction]:
        """The combination of the vectors with the multipliers."""
        columns = zip(*self.vectors, strict=True)
        return [dot(self.multipliers, column) for column in columns]

    @property
    def margins(self) -> list[Fraction]:
        """Margins of the separator."""
        return [dot(self.separator, x) for x in self.vectors]

    @property
    def optimal(self) -> bool:
        """The Karush-Kuhn-Tucker conditions, which are sufficient for this convex problem."""
        pairs = list(zip(self.multipliers, self.margins, strict=True))
        return all(a >= 0 and m >= 1 and a * (m - 1) == 0 for a, m in pairs)


def wrong_token_counts(instance: Instance) -> Interval:
    """Number of margin constraints of each sample, counted on the problem's data: keys that are not the match."""
    data = instance.data
    keys = data.tokens.shape[1] - 1  # the last token is never a match: nothing follows it
    counts = [sum(t != y for t in range(keys)) for y in data.match.tolist()]
    return Interval.exact(counts)


def drawn_tokens(run: Run) -> Iterable[Instance]:
    """Sampled tasks with T = 3, 5, 8."""
    for T in (3, 5, 8):
        config = {"kind": "template", "T": T, "d": 4, "n": 6, "coordinate_std": 1.0}
        task = MatchCopyTask.template(T=T, d=4, coordinate_std=1.0)
        yield Instance(label=f"T = {T}", data=sample(task, 6, run.stream(config, 0)), seed=0, config=config)


def published_count(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """T minus the planted number, for each sample."""
    n, T, _ = instance.data.tokens.shape
    return Interval.exact(np.full(n, T - constants["less"]))


def token_scores(run: Run) -> Iterable[Instance]:
    """Four tokens with exp-scores 4, 7, 5, 20; the match is the second or the third."""
    del run
    for match in (2, 3):
        yield Instance(
            label=f"match at {match}",
            data=Unnormalised(scores=(4, 7, 5, 20), match=match),
            config={"scores": [4, 7, 5, 20], "match": match},
        )


def softmax_at_match(instance: Instance) -> Interval:
    """a_y of eq. (8): the softmax runs over the keys s = 1..T-1."""
    data: Unnormalised = instance.data
    return Interval.exact(exact_floats([Fraction(data.scores[data.match - 1], sum(data.scores[:-1]))]))


def match_weight_of_odds(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """1 / (1 + S), S = sum over s != y of exp(-m_s), s in the range first..T - less."""
    data: Unnormalised = instance.data
    own = data.scores[data.match - 1]
    positions = range(constants["first"], len(data.scores) - constants["less"] + 1)
    odds = sum((Fraction(data.scores[s - 1], own) for s in positions if s != data.match), Fraction(0))
    return Interval.exact(exact_floats([1 / (1 + odds)]))


def plane_separators(run: Run) -> Iterable[Instance]:
    """Two constraint vectors, (1, 0) and (1, 1): both support w = (1, 0), and the second multiplier is 0."""
    del run
    data = PlaneSeparator(vectors=((1, 0), (1, 1)), multipliers=(Fraction(1), Fraction(0)))
    yield Instance(label="vectors (1, 0), (1, 1)", data=data, config={"vectors": [[1, 0], [1, 1]]})


def sizes_of_feasible_points(instance: Instance) -> Ranking:
    """||w||^2 / 2 of the separator and of twice the separator, which is feasible too."""
    data: PlaneSeparator = instance.data
    assert data.optimal
    w = data.separator
    half = [float(scale**2 * dot(w, w) / 2) for scale in (1, 2)]
    return Ranking(
        values={
            "max-margin solution": Interval.exact(half[0]),
            "another feasible point": Interval.exact(half[1]),
        }
    )


def sense(instance: Instance, constants: Mapping[str, Any]) -> tuple[str, ...]:
    """Names from the smallest objective to the largest."""
    del instance
    return tuple(constants["order"])


def least_support_multiplier(instance: Instance) -> Interval:
    """Smallest multiplier over the constraints of margin exactly 1."""
    data: PlaneSeparator = instance.data
    assert data.optimal
    support = [a for a, m in zip(data.multipliers, data.margins, strict=True) if m == 1]
    return Interval.exact(exact_floats([min(support)]))


def least_allowed(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The smallest value that the statement allows a multiplier to have."""
    del instance
    return Interval.exact([constants["least"]])


SMALLEST = float(np.nextafter(0.0, 1.0))


value_space_features = Claim(
    id="match-copy/erratum-value-features",
    title="Features made of error directions give the gradient (as Section G.1 writes them)",
    paper=PAPER,
    where="Section G.1",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=(
        r"$-\nabla \mathrm{MSE} = \sum \pi_{i,t}\, \tilde x_{i,t}$ with "
        r"$\tilde x_{i,t} = \mathrm{vec}(d_{i,t} e^\top)$."
    ),
    expect=Verdict.FAIL,
    erratum=(
        r"The features are key differences, $\tilde x_{i,t} = \mathrm{vec}((e_{y_i} - e_t) e^\top)$, as in eq. (14); "
        r"$d_{i,t}$ lives in the space of the values, one token later."
    ),
    constants={"square": 1, "features": "values"},
    group=GROUP,
    instances=rational_problems,
    predict=squared_error_gradient,
    measure=differentiated_squared_error,
    controls=(Mend(name="key differences, as in eq. (14)", constants={"features": "keys"}),),
    depends_on=("match-copy/gradient-mse",),
    notes="Proposition G.2 (1), which uses these features, holds for the right ones by the same argument.",
)


distractor_count = Claim(
    id="match-copy/erratum-distractors",
    title="A sample has T - 1 wrong tokens (as the dimension condition of A3 counts them)",
    paper=PAPER,
    where="Proposition G.2 (2)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$|\{t : t \ne y_i\}| = T - 1$.",
    expect=Verdict.FAIL,
    erratum=(
        r"The match lies in $\{1, \ldots, T - 1\}$, as does every key, so that $T - 2$ tokens are wrong: A3 needs only "
        r"$d \ge T - 2$."
    ),
    constants={"less": 1},
    group=GROUP,
    instances=drawn_tokens,
    predict=published_count,
    measure=wrong_token_counts,
    controls=(Mend(name="T - 2", constants={"less": 2}),),
)


index_of_odds = Claim(
    id="match-copy/erratum-odds-index",
    title="The match's weight is 1 / (1 + S) with S summed over s = 2..T (as eq. (15) writes it)",
    paper=PAPER,
    where="eq. (15)",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    evidence=Evidence.EXACT,
    statement=r"$a_{y+1} = 1 / (1 + S)$ with $S = \sum_{s = 2, s \ne y}^{T} e^{-m_s}$.",
    expect=Verdict.FAIL,
    erratum=(
        r"The softmax of (8) runs over the keys $1, \ldots, T - 1$, so that $S$ runs over $\{1, \ldots, T - 1\} "
        r"\setminus \{y\}$: the range $2, \ldots, T$ is that of the copied tokens."
    ),
    constants={"first": 2, "less": 0},
    group=GROUP,
    instances=token_scores,
    predict=match_weight_of_odds,
    measure=softmax_at_match,
    controls=(Mend(name="s = 1..T-1", constants={"first": 1, "less": 1}),),
)


sense_of_separator = Claim(
    id="match-copy/erratum-argmax",
    title="The max-margin separator maximises the squared norm (as eq. (18) writes it)",
    paper=PAPER,
    where="eq. (18)",
    source=Source.REPORTED,
    kind=Kind.ORDERING,
    evidence=Evidence.EXACT,
    statement=r"$\hat w = \arg\max \frac12 \|w\|^2$ subject to $\langle w, \tilde x_{i,t} \rangle \ge 1$.",
    expect=Verdict.FAIL,
    erratum=r"Read argmin: with $w$ every $c w$, $c \ge 1$, is feasible, so that there is no maximum.",
    constants={"order": ("another feasible point", "max-margin solution")},
    group=GROUP,
    instances=plane_separators,
    predict=sense,
    measure=sizes_of_feasible_points,
    controls=(Mend(name="argmin", constants={"order": ("max-margin solution", "another feasible point")}),),
)


positive_multipliers = Claim(
    id="match-copy/erratum-multipliers",
    title="Every supporting constraint has a positive multiplier (as Definition E.1 uses)",
    paper=PAPER,
    where="Definition E.1",
    source=Source.REPORTED,
    kind=Kind.LOWER,
    evidence=Evidence.EXACT,
    statement=r"$\alpha_{i,t} > 0$ for all $(i, t) \in \mathcal I_{SV} = \{\hat w^\top \tilde x_{i,t} = 1\}$.",
    expect=Verdict.FAIL,
    erratum=(
        r"With constraint vectors $(1, 0)$ and $(1, 1)$, linearly independent, $\hat w = (1, 0)$ has margin 1 on both "
        r"and $\alpha = (1, 0)$: strict positivity is a further assumption (it holds for almost all data). Without it "
        r"$\tilde w$ of eq. (24) does not exist."
    ),
    constants={"least": SMALLEST},
    group=GROUP,
    instances=plane_separators,
    predict=least_allowed,
    measure=least_support_multiplier,
    controls=(Mend(name="not negative", constants={"least": 0.0}),),
    notes=(
        "Keys (0, 0), (-1, 0), (-1, -1) with the first one matched and the query (1, 0) give these vectors. "
        "'Positive' is read as at least the smallest positive float64."
    ),
)

CLAIMS = (
    value_space_features,
    distractor_count,
    index_of_odds,
    sense_of_separator,
    positive_multipliers,
)
