"""Parameters of soft matching and of the smoothing rules, fitted on held-out rows by SciPy.

A row has a target: the true law of its next token (rows of all V symbols), or the realised token alone (one column of
ones). The loss is the mean cross-entropy of (1 - floor) p + floor / V; against a true law it differs from the mean
Kullback-Leibler divergence by a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams import smoothing_laws as laws
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics
from marginlab.theory.ngrams.soft_matching import checked_base
from marginlab.theory.validation import Float, float_array, one_of

#: Weight of the squared scales in the fit. The loss is flat where scales go to infinity together (Corollary 4.1): this
#: picks the smallest ones that are as good, and changes the loss by less than a millionth.
RIDGE = 1e-9

#: Largest scale: e^-40 is far below anything that a count can show.
MOST_SCALE = 40.0

#: Default edges of Jelinek-Mercer buckets, by the total count of a context: 1, 2, 3, 4-5, 6-9, 10-19, 20-49, 50-.
EDGES = (2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0)

SMOOTHINGS = (
    "add-alpha",
    "jelinek-mercer",
    "bucketed jelinek-mercer",
    "katz",
    "absolute discounting",
    "kneser-ney",
    "mackay-peto",
)


def cross_entropy(p: Float, target: Float, *, vocab_size: int, floor: float = 0.0) -> Float:
    """-sum over symbols of target log((1 - floor) p + floor / V), (...,); NaN laws count as uniform.

    A symbol of probability 0 that the target asks for costs infinity where the floor is 0.
    """
    mixed = (1 - floor) * np.where(np.isnan(p), 1 / vocab_size, p) + floor / vocab_size
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.sum(np.where(target > 0, target * np.log(mixed), 0.0), axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SoftMatchFit:
    """Fitted soft matching.

    Attributes
    ----------
    beta : (k,) array
    kappa : float
        -inf without BOS.
    loss : float
        Mean cross-entropy on the rows of the fit, in nats.
    """

    beta: Float
    kappa: float
    loss: float

    @property
    def log_pseudo_count(self) -> float:
        """kappa - sum of beta: by Corollary 4.1 ln(alpha V) of the additive smoothing that full matches get."""
        return self.kappa - float(np.sum(self.beta))


def fit_soft_match(
    counts: Any,
    target: Any,
    *,
    vocab_size: int,
    totals: Any = None,
    tied: bool = False,
    bos: bool = True,
    base: Any = None,
    floor: float = 0.0,
) -> SoftMatchFit:
    """Scales (and BOS pseudo-count) that minimise the cross-entropy, by L-BFGS from several starts.

    Parameters
    ----------
    counts : (n, 2^k, W) array
        Exact-overlap counts N_M of the symbols asked for (`overlap_counts`), W = V or 1.
    target : (n, W) array
        True laws, or ones for realised symbols.
    totals : (n, 2^k) array, optional
        N_M summed over the vocabulary; needed if W = 1, the sum of `counts` otherwise.
    tied : bool
        One scale for all lags.
    bos : bool
        Whether there is a BOS pseudo-count.
    base : (V,) or (n, W) array, optional
        What BOS stands for (per row if W = 1), uniform by default.
    floor : float
        Share of the uniform law that is mixed in.

    Raises
    ------
    InvalidInput
        Shapes do not fit, or nothing to fit on.

    Notes
    -----
    The search runs over beta and kappa - sum(beta), in which the loss is flat in at most the directions in which scales
    go to infinity; a ridge of 1e-9 picks the smallest of equally good scales there.
    """
    N, P = float_array(counts, "counts", ndim=3), float_array(target, "target", ndim=2)
    n, masks, W = N.shape
    k = masks.bit_length() - 1
    if masks != 2**k or k < 1:
        raise InvalidInput(f"counts must have 2^k masks, got {masks}.")
    if P.shape != (n, W) or n == 0:
        raise InvalidInput(f"target must have shape ({n}, {W}) with at least one row, got {P.shape}.")
    if vocab_size != W and totals is None:
        raise InvalidInput("totals must be given where counts hold only the realised symbols.")
    whole = N.sum(-1) if totals is None else float_array(totals, "totals", ndim=2)
    v = (
        checked_base(base, vocab_size)
        if base is None or np.ndim(base) == 1
        else float_array(base, "base", ndim=2)
    )
    v = np.full((1, W), 1.0 / vocab_size) if base is None else np.atleast_2d(v)
    has = (np.arange(masks)[:, None] >> np.arange(k)) & 1  # (2^k, k)
    known = (whole.sum(-1) > 0) | bos

    def loss(theta: Float) -> tuple[float, Float]:
        beta = np.full(k, theta[0]) if tied else theta[:k]
        kappa = theta[-1] + beta.sum() if bos else -np.inf
        log_weight = has @ beta
        top = max(float(log_weight.max()), kappa)
        weight, pseudo = np.exp(log_weight - top), np.exp(kappa - top)
        norm = np.where(known, whole @ weight + pseudo, 1.0)[:, None]
        p = np.where(known[:, None], (np.einsum("nmw,m->nw", N, weight) + pseudo * v) / norm, 1 / vocab_size)
        # An infinite loss has no direction: 1e-300 stands for a probability of zero during the search.
        mixed = np.maximum((1 - floor) * p + floor / vocab_size, 1e-300)
        value = -np.sum(P * np.log(mixed)) / n
        slope = np.where(known[:, None] & (P > 0), -(1 - floor) * P / mixed, 0.0) / (n * norm)
        by_mask = weight * (
            np.einsum("nw,nmw->m", slope, N, optimize=True)
            - np.einsum("nw,nw,nm->m", slope, p, whole, optimize=True)
        )
        by_bos = pseudo * float(np.sum(slope * (v - p)))
        gradient = by_mask @ has + by_bos
        gradient = gradient + 2 * RIDGE * beta
        value += RIDGE * float(beta @ beta)
        parts = [np.array([gradient.sum()]) if tied else gradient]
        return value, np.concatenate([*parts, [by_bos]] if bos else parts)

    lags = 1 if tied else k
    shapes = [np.full(lags, 1.0), np.full(lags, 4.0)]
    shapes += [] if tied or k == 1 else [np.linspace(6.0, 1.0, lags)]
    tails = [[0.0], [np.log(vocab_size)]] if bos else [[]]
    starts = [np.concatenate([s, t]) for s in shapes for t in tails]
    bounds = [(-MOST_SCALE, MOST_SCALE)] * len(starts[0])
    theta = _least(loss, starts, bounds, gradient=True)
    beta = np.full(k, theta[0]) if tied else theta[:k]
    value = loss(theta)[0] - RIDGE * float(beta @ beta)
    return SoftMatchFit(beta=beta, kappa=float(theta[-1] + beta.sum()) if bos else -np.inf, loss=value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SmoothingFit:
    """Fitted smoothing rule.

    Attributes
    ----------
    name : str
        One of `SMOOTHINGS`.
    parameters : mapping
        As the public function of that name takes them.
    loss : float
    """

    name: str
    parameters: Mapping[str, Any]
    loss: float

    def law(self, stats: ContextStatistics) -> Float:
        """The fitted law on other rows."""
        return smoothing_law(self.name, stats, self.parameters)


def smoothing_law(name: str, stats: ContextStatistics, parameters: Mapping[str, Any]) -> Float:
    """Law of a smoothing rule by name, (..., W)."""
    return _LAWS[one_of(name, "name", SMOOTHINGS)](stats, **parameters)


def fit_smoothing(
    name: str, stats: ContextStatistics, target: Any, *, floor: float = 0.0, edges: Sequence[float] = EDGES
) -> SmoothingFit:
    """Parameters of a smoothing rule that minimise the cross-entropy, by bounded L-BFGS.

    Parameters
    ----------
    name : str
        One of `SMOOTHINGS`.
    stats : ContextStatistics with one row axis
    target : (n, W) array
    floor : float
    edges : increasing floats
        Of the buckets, where the rule has them.

    Raises
    ------
    InvalidInput
        An unknown rule, or shapes that do not fit.
    """
    one_of(name, "name", SMOOTHINGS)
    P = float_array(target, "target", ndim=2)
    if stats.count[..., 0, :].shape != P.shape or not len(P):
        raise InvalidInput(f"target must have shape {stats.count[..., 0, :].shape}, got {P.shape}.")
    unpack, start, bounds = _search(name, stats.order, np.asarray(edges, dtype=np.float64))

    def loss(theta: Float) -> float:
        p = _LAWS[name](stats, **unpack(theta))
        # An infinite loss has no direction: 1e-300 stands for a probability of zero during the search.
        mixed = np.maximum((1 - floor) * p + floor / stats.vocab_size, 1e-300)
        return float(-np.sum(P * np.log(mixed)) / len(P))

    theta = _least(loss, [start], bounds)
    return SmoothingFit(name=name, parameters=unpack(theta), loss=loss(theta))


def _search(
    name: str, order: int, edges: Float
) -> tuple[Callable[[Float], dict[str, Any]], Float, list[Any]]:
    """From a vector to parameters; its start and bounds."""
    if name == "add-alpha":
        return lambda x: {"alpha": float(np.exp(x[0]))}, np.array([-0.7]), [(-12.0, 8.0)]
    if name == "jelinek-mercer":

        def weights(x: Float) -> dict[str, Any]:
            e = np.exp(np.concatenate([[0.0], x]))
            return {"weights": e / e.sum()}

        return weights, np.linspace(1.0, 3.0, order + 1), [(-12.0, 12.0)] * (order + 1)
    if name == "bucketed jelinek-mercer":
        size = (order + 1, len(edges) + 1)
        start = np.tile(np.linspace(0.3, 0.8, size[1]), size[0])
        return (
            lambda x: {"weights": np.clip(x, 0, 1).reshape(size), "edges": edges},
            start,
            [(0.0, 0.9999)] * start.size,  # at 1 an order would deny the lower ones any symbol
        )
    if name == "mackay-peto":
        return (
            lambda x: {"concentrations": np.exp(x)},
            np.full(order + 1, 1.0),
            [(-9.0, 12.0)] * (order + 1),
        )
    return lambda x: {"discounts": np.clip(x, 0, 1)}, np.full(order + 1, 0.5), [(0.0, 1.0)] * (order + 1)


_LAWS: dict[str, Callable[..., Float]] = {
    "add-alpha": laws.add_alpha_law,
    "jelinek-mercer": laws.jelinek_mercer_law,
    "bucketed jelinek-mercer": laws.bucketed_jelinek_mercer_law,
    "katz": laws.katz_law,
    "absolute discounting": laws.absolute_discounting_law,
    "kneser-ney": laws.kneser_ney_law,
    "mackay-peto": laws.mackay_peto_law,
}


#: Stop where the loss no longer changes in its last digits.
_STOP = {"maxiter": 300, "ftol": 1e-13}


def _least(loss: Any, starts: Sequence[Float], bounds: Sequence[Any], *, gradient: bool = False) -> Float:
    """The best of the bounded L-BFGS minima from several starts."""
    from scipy.optimize import minimize

    found = [
        minimize(loss, x0, jac=gradient or None, method="L-BFGS-B", bounds=bounds, options=_STOP)
        for x0 in starts
    ]
    return np.asarray(min(found, key=lambda r: r.fun).x)
