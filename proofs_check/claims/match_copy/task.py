"""The task itself: its covariances, its predictors, and what the uncertainty of the match costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.engine.claim import (
    Claim,
    Evidence,
    Instance,
    Kind,
    Plant,
    Source,
    Tier,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import gamma
from marginlab.theory.match_copy.predictors import (
    attention_predict,
    bayes_predict,
    best_attention_scale,
    hard_match_predict,
    posterior_variances,
    signal_variance,
    squared_errors,
    uniform_copy_predict,
    zero_predict,
)
from marginlab.theory.match_copy.sampling import MatchCopyData, sample
from marginlab.theory.match_copy.task import MatchCopyTask
from marginlab.theory.validation import Float

SEQUENCES = "sequence, given W_V"

#: (d, T, c) of the cells that the quick tier looks at: an easy one, a hard one, and one of the larger dimension.
QUICK_CELLS = ((16, 8, 1.1), (16, 16, 1.3), (32, 8, 1.2))

#: The paper's grid.
CELLS = tuple((d, T, c) for d in (16, 32) for T in (8, 16) for c in (1.1, 1.2, 1.3))

#: Sequences that are judged, and others on which the bilinear score's scale is fitted.
JUDGED, FITTED = 40_000, 3_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """A task, and the error of each predictor on each of many sequences.

    Attributes
    ----------
    task : MatchCopyTask
    errors : mapping of name to (n,) array
        In the order "Bayes", "bilinear", "hard match", "uniform copy", "zero".
    variances : (n,) array
        Posterior variances.
    level : float
        Error level of one statistical judgement.
    """

    task: MatchCopyTask
    errors: Mapping[str, Float]
    variances: Float
    level: float

    @classmethod
    def of(cls, task: MatchCopyTask, streams: Sequence[np.random.SeedSequence], level: float) -> Cell:
        """The scale of the bilinear score is fitted on the first stream, each other is a batch that is judged."""
        W = best_attention_scale(sample(task, FITTED, streams[0])) * np.eye(task.d_in)
        batches = [_errors(task, sample(task, JUDGED, stream), W) for stream in streams[1:]]
        joined = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
        variances = joined.pop("variances")
        return cls(task=task, errors=joined, variances=variances, level=level)


def _errors(task: MatchCopyTask, data: MatchCopyData, W: Float) -> dict[str, Float]:
    prediction, posterior = bayes_predict(task, data)
    return {
        "Bayes": squared_errors(prediction, data),
        "bilinear": squared_errors(attention_predict(data, W), data),
        "hard match": squared_errors(hard_match_predict(task, data)[0], data),
        "uniform copy": squared_errors(uniform_copy_predict(data), data),
        "zero": squared_errors(zero_predict(data), data),
        "variances": posterior_variances(data, posterior),
    }


def cells(chosen: Iterable[tuple[int, int, float]], batches: int = 1) -> Any:
    """Instances of the given cells, shared by the claims of a run."""

    def instances(run: Run) -> Iterable[Instance]:
        for d, T, c in chosen:
            config = {"T": T, "d": d, "c": c, "judged": batches * JUDGED, "fitted": FITTED}

            def make(config: Mapping[str, Any] = config, c: float = c, T: int = T, d: int = d) -> Instance:
                task = MatchCopyTask(T=T, d_in=d, c=c)
                cell = Cell.of(task, run.stream({"predictors": config}, 0).spawn(1 + batches), run.level)
                return Instance(label=f"d = {d}, T = {T}, c = {c}", data=cell, config=config)

            yield run.once(("cell", repr(config)), make)

    return instances


def task_claim(**fields: Any) -> Claim:
    return Claim(
        **{
            "paper": PAPER,
            "source": Source.DERIVED,
            "evidence": Evidence.STATISTICAL,
            "unit": SEQUENCES,
            "group": "match-copy/task",
            "instances": cells(QUICK_CELLS),
            "judgements": len(QUICK_CELLS),
        }
        | fields
    )


# ---- Definition 1.1 ----


def general_match(run: Run, d: int) -> MatchCopyTask:
    """A task of six tokens whose C has no symmetry, of spectral norm 0.8."""
    C = np.random.default_rng(run.stream({"general C": d}, 0)).standard_normal((d, d))
    C *= 0.8 / np.linalg.norm(C, 2)
    return MatchCopyTask(T=6, d_in=d, C=tuple(map(tuple, C.tolist())))


def moments(run: Run) -> Iterable[Instance]:
    """Products of the query with the match and with another token, and its variances, in units of a token's."""
    for label, task in (
        ("c = 1.1", MatchCopyTask(T=8, d_in=16, c=1.1)),
        ("c = 1.3", MatchCopyTask(T=8, d_in=16, c=1.3)),
        ("a general C", general_match(run, 5)),
    ):
        data = sample(task, 8_000, run.stream({"moments": label}, 0))
        rows = np.arange(len(data))
        other = data.tokens[rows, (data.match + 1) % (task.T - 1)]
        C, variance = task.match_matrix, task.coordinate_std**2
        axis = np.linalg.svd(C)[0][:, 0]  # the direction of the query that the match explains best
        for name, products in (
            ("along C with the match", np.sum((data.tokens[rows, data.match] @ C.T) * data.query, axis=1)),
            ("along C with another token", np.sum((other @ C.T) * data.query, axis=1)),
            ("squared", np.sum(data.query**2, axis=1) / task.d_in),
            ("squared, along one axis", (data.query @ axis) ** 2),
        ):
            yield Instance(
                label=f"{label}, query {name}",
                data=(products / variance, C, name),
                config={"task": label, "query": name},
            )


def covariance(instance: Instance) -> Sample:
    """The products."""
    return Sample(values=instance.data[0], unit=SEQUENCES)


def covariance_of_the_task(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """<C', C> with the match, for C' the covariance; 0 with another token; 1 for each square."""
    _, C, name = instance.data
    of_match = constants["scale"] * (C.T if constants["transposed"] else C)
    value = {"along C with the match": float(np.sum(of_match * C)), "along C with another token": 0.0}.get(
        name, 1.0
    )
    return Interval.around(value, gamma(C.size + 1) * float(np.sum(C**2)), "rounding: a sum of products")


task_covariance = task_claim(
    id="match-copy/task-covariance",
    title="The query correlates with the match alone, and has the variances of a token",
    where="Definition 1.1",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    statement=r"$\mathrm{Cov}(e, e_t) = \frac{\sigma_{token}^2}{d_{in}} C\, 1[t = t_0]$, and $\mathrm{Cov}(e) = "
    r"\frac{\sigma_{token}^2}{d_{in}} I$.",
    constants={"scale": 1.0, "transposed": False},
    judgements=12,
    instances=moments,
    predict=covariance_of_the_task,
    measure=covariance,
    controls=(
        Plant(name="a covariance a tenth larger", constants={"scale": 1.1}),
        Plant(name="the transpose of C", constants={"transposed": True}),
    ),
    notes=(
        "Inner products of the covariances with C, the trace of Cov(e), and Cov(e) along the axis on which C acts "
        "most, in units of a token's variance; $C = c^{-2} I$, and one C without symmetry."
    ),
)


# ---- Errors of the simple predictors ----


def error_of(name: str) -> Any:
    """Errors of one predictor."""

    def measure(instance: Instance) -> Sample:
        return Sample(values=instance.data.errors[name], unit=SEQUENCES)

    return measure


def zero_error_of(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """signal + noise^2."""
    task = instance.data.task
    value = constants["signal"] * signal_variance(task) + task.noise**2
    return Interval.around(value, gamma(task.d_in * task.d_out + 8) * value, "rounding: the norm of W_V")


def uniform_error_of(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(1 - 1/(T - offset)) signal + noise^2."""
    task = instance.data.task
    value = (1 - 1 / (task.T - constants["offset"])) * signal_variance(task) + task.noise**2
    return Interval.around(value, gamma(task.d_in * task.d_out + 8) * value, "rounding: the norm of W_V")


zero_predictor = task_claim(
    id="match-copy/zero-predictor",
    title="Predicting zero costs the variance of the signal and of the noise",
    where="Section 1; Table 1",
    kind=Kind.IDENTITY,
    statement=r"The expected error of zeros is $\sigma_{token}^2 \|W_V\|_F^2 / (d_{in} d_{out}) + \sigma_{noise}^2$.",
    constants={"signal": 1.0},
    predict=zero_error_of,
    measure=error_of("zero"),
    controls=(Plant(name="a tenth more signal", constants={"signal": 1.1}),),
    notes="Given W_V: another draw of W_V changes the figure by some ten percent, so that errors must be normalised.",
)

uniform_copy = task_claim(
    id="match-copy/uniform-copy-predictor",
    title="Copying all successors alike saves one part in T - 1",
    where="Section 1",
    kind=Kind.IDENTITY,
    statement=r"The expected error of $\frac{1}{T-1} W_V \sum_{t \ge 2} e_t$ is $(1 - \frac{1}{T-1})$ signal "
    r"$+ \sigma_{noise}^2$.",
    constants={"offset": 1},
    predict=uniform_error_of,
    measure=error_of("uniform copy"),
    controls=(Plant(name="half of the candidates", constants={"offset": 5}),),
)


# ---- In order ----


def pairs(chosen: tuple[tuple[int, int, float], ...], batches: int) -> Any:
    """Neighbours in the order of the errors, on every cell."""

    def instances(run: Run) -> Iterable[Instance]:
        for cell in cells(chosen, batches)(run):
            for better, worse in pairwise(_ORDER):
                yield Instance(
                    label=f"{cell.label}: {better} before {worse}",
                    data=(cell.data, better, worse),
                    config={**cell.config, "pair": [better, worse]},
                )

    return instances


def paired_difference(instance: Instance) -> Sample:
    """Error of the worse less that of the better, on the same sequences."""
    cell, better, worse = instance.data
    return Sample(values=cell.errors[worse] - cell.errors[better], unit=SEQUENCES)


def least_difference(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound."""
    del instance
    return Interval.exact(constants["least"])


_ORDER = ("Bayes", "bilinear", "hard match", "uniform copy", "zero")


def _table(chosen: tuple[tuple[int, int, float], ...], batches: int = 1, **fields: Any) -> Claim:
    return task_claim(
        title="Errors grow from Bayes over bilinear attention, hard match and uniform copy to zero",
        where="Section 1, match-then-copy strategy",
        kind=Kind.LOWER,
        statement=r"On every cell of the grid each of these has a larger expected error than the one before it: "
        r"maximising the overlap $e_t^\top C e$ and copying is worse than the soft rules.",
        constants={"least": 0.0},
        judgements=(len(_ORDER) - 1) * len(chosen),
        instances=pairs(chosen, batches),
        predict=least_difference,
        measure=paired_difference,
        controls=(Plant(name="a difference of one", constants={"least": 1.0}),),
        **fields,
    )


predictor_table = _table(
    QUICK_CELLS,
    id="match-copy/predictor-table",
    notes="Paired differences on three of the paper's twelve cells; the others are in match-copy/predictor-grid.",
)

predictor_grid = _table(
    CELLS,
    batches=12,
    id="match-copy/predictor-grid",
    min_tier=Tier.FULL,
    notes="Paired differences on the paper's whole grid; on the easiest, rules seldom differ.",
)


CLAIMS = (task_covariance, zero_predictor, uniform_copy, predictor_table, predictor_grid)
