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
    Mend,
    Plant,
    Source,
    Tier,
    Verdict,
)
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import gamma, mean_interval
from marginlab.theory.match_copy.predictors import (
    attention_predict,
    bayes_predict,
    best_attention_scale,
    hard_match_predict,
    match_log_likelihoods,
    posterior_variances,
    squared_errors,
    uniform_copy_error,
    uniform_copy_predict,
    zero_error,
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


def _claim(**fields: Any) -> Claim:
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


def moments(run: Run) -> Iterable[Instance]:
    """Products of the query with the match, with another token, and with itself, in units of a token's square."""
    for c in (1.1, 1.3):
        task = MatchCopyTask(T=8, d_in=16, c=c)
        data = sample(task, 4_000, run.stream({"moments": c}, 0))
        rows = np.arange(len(data))
        other = data.tokens[rows, (data.match + 1) % (task.T - 1)]
        unit = task.d_in * task.coordinate_std**2
        for name, token, power in (
            ("the match", data.tokens[rows, data.match], 1),
            ("another token", other, None),
            ("itself", data.query, 0),
        ):
            products = np.sum(token * data.query, axis=1) / unit
            yield Instance(
                label=f"c = {c}, query with {name}",
                data=(products, c, power),
                config={"c": c, "with": name},
            )


def covariance(instance: Instance) -> Sample:
    """The products."""
    return Sample(values=instance.data[0], unit=SEQUENCES)


def covariance_of_the_task(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """c^-2 with the match, 0 with another token, 1 with itself."""
    _, c, power = instance.data
    value = 0.0 if power is None else c ** (constants["power"] * power)
    return Interval.around(value, gamma(4) * value, "rounding: a power")


task_covariance = _claim(
    id="match-copy/task-covariance",
    title="The query correlates with the match alone, and has the law of a token",
    where="Definition 1.1",
    source=Source.REPORTED,
    kind=Kind.IDENTITY,
    statement=r"$\mathrm{Cov}(e, e_t) = \frac{\sigma_{token}^2}{d_{in}} C\, 1[t = t_0]$, and $\mathrm{Cov}(e) = "
    r"\frac{\sigma_{token}^2}{d_{in}} I$.",
    constants={"power": -2.0},
    judgements=6,
    instances=moments,
    predict=covariance_of_the_task,
    measure=covariance,
    controls=(Plant(name="C = I / c", constants={"power": -1.0}),),
    notes="Traces of the covariances in units of a token's; $C = c^{-2} I$.",
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
    value = constants["signal"] * (zero_error(task) - task.noise**2) + task.noise**2
    return Interval.around(value, gamma(task.d_in * task.d_out + 8) * value, "rounding: the norm of W_V")


def uniform_error_of(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """(1 - 1/(T - offset)) signal + noise^2."""
    task = instance.data.task
    signal = zero_error(task) - task.noise**2
    value = (1 - 1 / (task.T - constants["offset"])) * signal + task.noise**2
    assert constants["offset"] != 1 or value == uniform_copy_error(task)
    return Interval.around(value, gamma(task.d_in * task.d_out + 8) * value, "rounding: the norm of W_V")


zero_predictor = _claim(
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

uniform_copy = _claim(
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


# ---- The posterior mean ----


def likelihood_ratios(run: Run) -> Iterable[Instance]:
    """Log-likelihoods of all matches of some sequences: C = c^-2 I, and a general C."""
    rng = np.random.default_rng(run.stream({"general C": 5}, 0))
    general = rng.standard_normal((5, 5))
    general *= 0.8 / np.linalg.norm(general, 2)
    for label, task in (
        ("c = 1.1", MatchCopyTask(T=6, d_in=5, c=1.1)),
        ("c = 1.3", MatchCopyTask(T=6, d_in=5, c=1.3)),
        ("general C", MatchCopyTask(T=6, d_in=5, C=tuple(map(tuple, general.tolist())))),
    ):
        data = sample(task, 4, run.stream({"likelihoods": label}, 0))
        yield Instance(label=label, data=(task, data), config={"task": task.to_json()})


def exact_log_ratios(instance: Instance) -> Interval:
    """log p(context, query | match t) - the same for match 0, from the joint densities in 40 digits."""
    import mpmath

    task, data = instance.data
    d, std = task.d_in, task.coordinate_std
    with mpmath.workdps(40):
        C = mpmath.matrix(task.match_matrix.tolist())
        precision = (mpmath.eye(d) - C * C.T) ** -1 / mpmath.mpf(std) ** 2

        def log_density(tokens: Float, query: Float, t: int) -> Any:
            own = -mpmath.fsum(mpmath.mpf(float(x)) ** 2 for x in tokens.ravel()) / (2 * mpmath.mpf(std) ** 2)
            gap = mpmath.matrix(query.tolist()) - C * mpmath.matrix(tokens[t].tolist())
            return own - (gap.T * precision * gap)[0] / 2

        values = [
            [log_density(x, q, t) - log_density(x, q, 0) for t in range(task.T - 1)]
            for x, q in zip(data.tokens, data.query, strict=True)
        ]
        rounded = np.array([[float(v) for v in row] for row in values])
    return Interval.around(rounded, np.spacing(np.abs(rounded)), "rounding: 40 digits to the nearest float64")


def softmax_scores(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The closed form less that of match 0; for C = rho I as a softmax with the key-norm bias written out."""
    task, data = instance.data
    tokens = data.tokens[:, :-1]
    if task.c is None:
        scores = match_log_likelihoods(task, data)
        if constants["bias"] != 0.5:  # the bias of a general C is in its quadratic form
            scores = scores + (0.5 - constants["bias"]) * np.sum(tokens**2, axis=2) / task.coordinate_std**2
    else:
        rho = task.c**-2
        overlap = np.einsum("itj,ij->it", tokens, data.query)
        norms = np.sum(tokens**2, axis=2)
        scores = (rho * overlap - constants["bias"] * rho**2 * norms) / (
            task.coordinate_std**2 * (1 - rho**2)
        )
    # d products and an inverse whose condition is at most 1/(1 - ||C||^2), below 6 here; distances of size d.
    size = 6 * (np.abs(scores).max() + task.d_in)
    return Interval.around(
        scores - scores[:, :1], gamma(40 * task.d_in) * size, "rounding: eigenvalues and products"
    )


bayes_softmax = _claim(
    id="match-copy/bayes-softmax",
    title="The posterior of the match is softmax attention with a key-norm bias",
    where="Definition 1.1, consequence",
    kind=Kind.IDENTITY,
    evidence=Evidence.NUMERICAL,
    unit="instance",
    judgements=0,
    statement=r"For $C = \rho I$ the posterior is $\mathrm{softmax}_t\big(\frac{d}{\sigma_{token}^2} "
    r"\frac{\rho e_t^\top e - \frac12 \rho^2 \|e_t\|^2}{1 - \rho^2}\big)$.",
    constants={"bias": 0.5},
    instances=likelihood_ratios,
    predict=softmax_scores,
    measure=exact_log_ratios,
    controls=(Plant(name="a purely bilinear score", constants={"bias": 0.0}),),
    notes=(
        "Measured: ratios of the joint Gaussian densities of context and query, in 40 digits. A general C is among the "
        "instances. Derivation: docs/task.md."
    ),
)


def gain_over_bilinear(instance: Instance) -> Sample:
    """Error of the best bilinear score less that of the posterior mean, sequence by sequence."""
    errors = instance.data.errors
    return Sample(values=errors["bilinear"] - errors["Bayes"], unit=SEQUENCES)


def least_gain(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """The bound, in units of the posterior mean's own error."""
    return Interval.exact(constants["least"] * float(instance.data.errors["Bayes"].mean()))


bilinear_not_bayes = _claim(
    id="match-copy/bilinear-not-bayes",
    title="No multiple of the identity as a bilinear score reaches the Bayes error",
    where="Section 1",
    kind=Kind.LOWER,
    statement=r"$\min_\beta E\,\|v - \hat v_{\beta I}\|^2$ exceeds the error of the posterior mean.",
    constants={"least": 0.0},
    predict=least_gain,
    measure=gain_over_bilinear,
    controls=(Plant(name="a hundredfold error", constants={"least": 100.0}),),
    notes=(
        "Differences on the same sequences; the scale is fitted on others. For C = rho I the law does not change under "
        "rotations, which makes multiples of the identity the natural scores; that no other W does better is not shown."
    ),
)


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
    return _claim(
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


# ---- The floor ----


def floor_of(instance: Instance, constants: Mapping[str, Any]) -> Interval:
    """noise^2 + weight times the mean posterior variance."""
    cell: Cell = instance.data
    variance = mean_interval(cell.variances, cell.level)
    floor = cell.task.noise**2
    return Interval(
        floor + constants["weight"] * variance.lo, floor + constants["weight"] * variance.hi, variance.rule
    )


_FLOOR: dict[str, Any] = {
    "kind": Kind.IDENTITY,
    "where": "Section 1, noise floor",
    "predict": floor_of,
    "measure": error_of("Bayes"),
    "judgements": 2 * len(QUICK_CELLS),
}

noise_floor = _claim(
    **_FLOOR,
    id="match-copy/noise-floor",
    title="The population error that can be reached is the variance of the noise",
    source=Source.REPORTED,
    statement=r"The noise floor of the task is $\sigma_{noise}^2 = 0.01$.",
    constants={"weight": 0.0},
    expect=Verdict.FAIL,
    erratum=(
        r"No model reaches $\sigma_{noise}^2$ here: the match itself is uncertain, and the least possible error is "
        r"$\sigma_{noise}^2$ plus the mean posterior variance of the copied token. At $d = T = 16$, $c = 1.3$ it is "
        r"some thirty times the published floor."
    ),
    controls=(Mend(name="with the posterior variance", constants={"weight": 1.0}),),
    notes="The instance is each cell on which the error of the posterior mean, the least there is, exceeds 0.01.",
)

bayes_floor = _claim(
    **_FLOOR,
    id="match-copy/bayes-floor",
    title="The least possible error is the variance of the noise plus that of the posterior",
    statement=r"$\min_f E\|v - f\|^2 / d_{out} = \sigma_{noise}^2 + "
    r"E \sum_t \pi_t \|W_V e_{t+1} - \hat v\|^2 / d_{out}$.",
    constants={"weight": 1.0},
    controls=(Plant(name="the noise alone", constants={"weight": 0.0}),),
)

CLAIMS = (
    task_covariance,
    zero_predictor,
    uniform_copy,
    bayes_softmax,
    bilinear_not_bayes,
    predictor_table,
    predictor_grid,
    noise_floor,
    bayes_floor,
)
