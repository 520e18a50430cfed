"""The posterior mean: the form of the posterior, and what the uncertainty of the match costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.task import (
    QUICK_CELLS,
    SEQUENCES,
    Cell,
    error_of,
    general_match,
    task_claim,
)
from marginlab.proofs_check.engine.claim import Evidence, Instance, Kind, Mend, Plant, Source, Verdict
from marginlab.proofs_check.engine.context import Run
from marginlab.proofs_check.engine.values import Interval, Sample
from marginlab.proofs_check.tolerances import gamma, mean_interval
from marginlab.theory.match_copy.sampling import sample
from marginlab.theory.match_copy.task import MatchCopyTask
from marginlab.theory.validation import Float

# ---- The posterior mean ----


def likelihood_ratios(run: Run) -> Iterable[Instance]:
    """Log-likelihoods of all matches of some sequences: C = c^-2 I, and a general C."""
    for label, task in (
        ("c = 1.1", MatchCopyTask(T=6, d_in=5, c=1.1)),
        ("c = 1.3", MatchCopyTask(T=6, d_in=5, c=1.3)),
        ("a general C", general_match(run, 5)),
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
    """The scores less that of match 0: bilinear, less `bias` times the norm of C e_t in (I - C C^T)^-1."""
    task, data = instance.data
    explained = data.tokens[:, :-1] @ task.match_matrix.T  # C e_t
    C, variance = task.match_matrix, task.coordinate_std**2
    weighed = np.linalg.solve(np.eye(task.d_in) - C @ C.T, explained.reshape(-1, task.d_in).T).T
    weighed = weighed.reshape(explained.shape)
    overlap = np.einsum("itj,ij->it", weighed, data.query)
    norms = np.sum(weighed * explained, axis=2)
    scores = (overlap - constants["bias"] * norms) / variance
    # d products and an inverse whose condition is at most 1/(1 - ||C||^2), below 6 here; distances of size d.
    size = 6 * (np.abs(scores).max() + task.d_in)
    return Interval.around(
        scores - scores[:, :1], gamma(40 * task.d_in) * size, "rounding: a solve and products"
    )


bayes_softmax = task_claim(
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


bilinear_not_bayes = task_claim(
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

noise_floor = task_claim(
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
        r"some 27 times the published floor."
    ),
    controls=(Mend(name="with the posterior variance", constants={"weight": 1.0}),),
    notes=(
        "The instance is each cell on which the error of the posterior mean, the least there is, exceeds 0.01; with a "
        "proof in match-copy/bayes-excess-lower."
    ),
)

bayes_floor = task_claim(
    **_FLOOR,
    id="match-copy/bayes-floor",
    title="The least possible error is the variance of the noise plus that of the posterior",
    statement=r"$\min_f E\|v - f\|^2 / d_{out} = \sigma_{noise}^2 + "
    r"E \sum_t \pi_t \|W_V e_{t+1} - \hat v\|^2 / d_{out}$.",
    constants={"weight": 1.0},
    controls=(Plant(name="the noise alone", constants={"weight": 0.0}),),
)

CLAIMS = (bayes_softmax, bilinear_not_bayes, noise_floor, bayes_floor)
