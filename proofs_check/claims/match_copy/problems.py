"""The problems that claims of match-and-copy are judged on, each made from a JSON-able description and a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from marginlab.proofs_check.engine.claim import CannotForm
from marginlab.proofs_check.engine.streams import stream
from marginlab.proofs_check.separators import MaxMargin, max_margin
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy import MatchCopyTask, sample, smallest_alignments
from marginlab.theory.match_copy.laws import TAILS, slack_rate, support_rates

#: About one draw in six is accepted; a hundred rejections in a row mean that something else is wrong.
MOST_DRAWS = 100


def problem_of(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """The problem that a data configuration describes, by its "kind": a key of `KINDS`."""
    return KINDS[data["kind"]](data, root, seed)


def template(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """Noiseless template of eq. (6): keys T, d, n, coordinate_std.

    Kinds that change a template draw it from the same stream, so that a seed's instances share their tokens.
    """
    task = MatchCopyTask.template(T=data["T"], d=data["d"], coordinate_std=data["coordinate_std"])
    return Problem.from_match_copy(
        sample(task, data["n"], stream(root, {**data, "kind": "template"}, seed or 0))
    )


def integers(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """Arrays as listed."""
    del root, seed
    arrays = {k: np.array(data[k], dtype=np.float64) for k in ("keys", "queries", "values")}
    return Problem(**arrays, match=np.array(data["match"]))


def mixture(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template whose targets are 0.7 v_a + 0.3 v_b, with a and b the first two distractors."""
    problem = template(data, root, seed)
    n, K, _, d_v = problem.shape
    first_two = problem.values[problem.rivals].reshape(n, K - 1, d_v)[:, :2]
    targets = np.einsum("t,itj->ij", np.array([0.7, 0.3]), first_two)
    return Problem(problem.keys, problem.queries, problem.values, problem.match, targets)


def doubled(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template whose matched key stands twice in the first sample: no W tells the two apart (A1 fails)."""
    problem = template(data, root, seed)
    keys = np.array(problem.keys)
    keys[0, int(np.argmax(problem.rivals[0]))] = keys[0, problem.match[0]]
    return Problem(keys, problem.queries, problem.values, problem.match)


def inside(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template whose matched value is replaced by the average of the other values of its sample."""
    problem = template(data, root, seed)
    n, K, _, d_v = problem.shape
    values = np.array(problem.values)
    others = problem.values[problem.rivals].reshape(n, K - 1, d_v)
    values[np.arange(n), problem.match] = others.mean(axis=1)
    return Problem(problem.keys, problem.queries, values, problem.match)


def mixed_value(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template whose matched value is 0.7 v_a + 0.3 v_b, with a and b the first two distractors."""
    problem = template(data, root, seed)
    n, K, _, d_v = problem.shape
    values = np.array(problem.values)
    first_two = problem.values[problem.rivals].reshape(n, K - 1, d_v)[:, :2]
    values[np.arange(n), problem.match] = np.einsum("t,itj->ij", np.array([0.7, 0.3]), first_two)
    return Problem(problem.keys, problem.queries, values, problem.match)


def noisy(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """Noisy match, C = c^-2 I, with exact copies: keys T, d, n, c."""
    task = MatchCopyTask(T=data["T"], d_in=data["d"], c=data["c"], noise=0.0, copy="identity")
    return Problem.from_match_copy(sample(task, data["n"], stream(root, data, seed or 0)))


def noisy_target(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template with Gaussian noise of standard deviation ``sigma`` in every coordinate of the targets."""
    problem = template(data, root, seed)
    rng = np.random.default_rng(stream(root, {"target noise": dict(data)}, seed or 0))
    targets = problem.targets + data["sigma"] * rng.standard_normal(problem.targets.shape)
    return Problem(problem.keys, problem.queries, problem.values, problem.match, targets)


def settled(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template drawn until A4 holds and the slack is large enough: see `settled_problem`."""
    return settled_problem(data, root, seed)[0]


def settled_problem(data: Mapping[str, Any], root: int, seed: int | None) -> tuple[Problem, int]:
    """The first draw of this seed that satisfies the condition of `SETTLED_DATA`, and how many were rejected.

    Raises
    ------
    CannotForm
        None of the first `MOST_DRAWS` draws does.
    """
    task = MatchCopyTask.template(T=data["T"], d=data["d"], coordinate_std=data["coordinate_std"])
    draws = stream(root, data, seed or 0).spawn(MOST_DRAWS)
    for rejected, draw in enumerate(draws):
        problem = Problem.from_match_copy(sample(task, data["n"], draw))
        if smallest_alignments(problem).min() > 0 and least_slack(problem) >= data["slack"]:
            return problem, rejected
    raise CannotForm(f"none of {MOST_DRAWS} draws satisfies A4 with a slack of at least {data['slack']}.")


def least_slack(problem: Problem) -> float:
    """Smallest separator margin off the support, minus 1; infinite where every constraint supports."""
    constraints = problem.constraints()
    separator = max_margin(constraints)
    rest = np.setdiff1d(np.arange(len(constraints)), separator.active)
    return float(constraints.margins(separator.W)[rest].min() - 1) if len(rest) else np.inf


def regular(data: Mapping[str, Any], root: int, seed: int | None) -> Problem:
    """A template drawn until it converges fast enough: see `regular_problem`."""
    return regular_problem(data, root, seed)[0]


def regular_problem(data: Mapping[str, Any], root: int, seed: int | None) -> tuple[Problem, int]:
    """The first draw of this seed whose laws set in at a rate of at least data["rate"], and how many were rejected.

    Every draw has A4 and a supporting constraint in each sample. data["rest"] says which constraints support the
    margin: "none" is off the support, or "some" are; data["slack_rate"], if it is there, is the most that half
    of the least slack may be. The rate is `rate_of`.

    Raises
    ------
    CannotForm
        None of the first `MOST_DRAWS` draws is such.
    """
    return _regular_problem(tuple(sorted(data.items())), root, seed)


@cache
def _regular_problem(items: tuple[tuple[str, Any], ...], root: int, seed: int | None) -> tuple[Problem, int]:
    data = dict(items)
    task = MatchCopyTask.template(T=data["T"], d=data["d"], coordinate_std=data["coordinate_std"])
    for rejected, draw in enumerate(stream(root, data, seed or 0).spawn(MOST_DRAWS)):
        problem = Problem.from_match_copy(sample(task, data["n"], draw))
        if smallest_alignments(problem).min() <= 0:
            continue
        constraints = problem.constraints()
        separator = max_margin(constraints)
        if (data["rest"] == "some") != (len(separator.active) < len(constraints)):
            continue
        slack = slack_rate(problem, constraints.margins(separator.W), separator.active)
        if np.isnan(slack).any() or slack.min() > data.get("slack_rate", np.inf):
            continue
        if rate_of(problem, separator, "mse") >= data["rate"]:
            return problem, rejected
    raise CannotForm(f"none of {MOST_DRAWS} draws converges with a power of at least {data['rate']}.")


def rate_of(problem: Problem, separator: MaxMargin, loss: str) -> float:
    """Slowest power of tau with which margins, loss and gradient approach their laws, to first order.

    The slowest of: the relaxation on the support, the share of rivals off the support, and the weights e^{-m}
    themselves, which the laws neglect against 1.
    """
    constraints, tail = problem.constraints(), TAILS[loss]
    relaxation = support_rates(problem, constraints.gram(), separator.active, separator.dual, loss=loss)
    slack = slack_rate(problem, constraints.margins(separator.W), separator.active, tail)
    # A sample without support has no ratio of its own: its weights fall with the margin of w_hat that is least there.
    alone = np.isnan(slack)
    return float(min(relaxation[0], slack[~alone].min(initial=np.inf), 1 / tail))


KINDS: dict[str, Callable[[Mapping[str, Any], int, int | None], Problem]] = {
    "template": template,
    "integers": integers,
    "inside": inside,
    "mixed-value": mixed_value,
    "noisy": noisy,
    "noisy-target": noisy_target,
    "mixture": mixture,
    "doubled": doubled,
    "settled": settled,
    "regular": regular,
}
