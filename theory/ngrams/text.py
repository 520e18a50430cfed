"""Estimators on a real text: tuned on its first part, judged on the rest, with counts that grow all along."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams import smoothing_laws as laws
from marginlab.theory.ngrams.counting import Masks, Tokens, checked_order, checked_tokens, symbol_blocks
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics
from marginlab.theory.ngrams.soft_matching import ReadOut
from marginlab.theory.ngrams.tuning import SMOOTHINGS, SoftMatchFit, fit_smoothing, fit_soft_match
from marginlab.theory.validation import Float, count, one_of

UNITS = ("byte", "char", "word")

#: Share of the uniform law in the bits that compare estimators: some give probability zero to what then occurs.
FLOOR = 1e-4

#: Share of the text that parameters are tuned on.
TUNED_SHARE = 0.2

#: Positions of the first part that the fit looks at, at most.
MOST_TUNED = 20_000

#: Stretches of the rest whose means give the standard error.
STRETCHES = 50

#: Least number of symbols per lag (and one more).
LEAST_PER_LAG = 20

SOFT_MATCHING = {
    "soft matching, one scale": {"tied": True, "bos": False},
    "soft matching": {"tied": False, "bos": False},
    "soft matching, one scale, BOS": {"tied": True, "bos": True},
    "soft matching, BOS": {"tied": False, "bos": True},
}

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextTokens:
    """A text as tokens.

    Attributes
    ----------
    tokens : (T,) array of int
    vocab_size : int
        256 for bytes; otherwise the number of different symbols of the whole text, which are taken as known.
    unit : str
    dropped_mark : bool
        Whether a byte order mark at the start was left out.
    """

    tokens: Tokens
    vocab_size: int
    unit: str
    dropped_mark: bool = False


def text_tokens(data: bytes, unit: str = "char") -> TextTokens:
    """Tokens of a text.

    Parameters
    ----------
    data : bytes
    unit : "byte", "char" or "word"
        Characters and words are those of UTF-8; a byte order mark at the start is left out. A word is a run of letters,
        digits and underscores; every other visible character is a word of its own, and white space is none.

    Raises
    ------
    InvalidInput
        An unknown unit, an empty text, or bytes that are not UTF-8 (the first one is named).
    """
    one_of(unit, "unit", UNITS)
    if not data:
        raise InvalidInput("the text must not be empty, got 0 bytes.")
    if unit == "byte":
        tokens = np.frombuffer(data, dtype=np.uint8).astype(np.int32)
        return TextTokens(tokens=tokens, vocab_size=256, unit=unit)
    mark = data.startswith(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"characters and words need UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start}: take the "
            "unit byte for such a text."
        ) from None
    symbols: Any
    if unit == "char":
        symbols = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    else:
        symbols = np.array(_WORD.findall(text), dtype=object)
    if not len(symbols):
        raise InvalidInput(f"the text must hold at least one {unit}, got {len(data)} bytes without any.")
    if unit == "char":
        alphabet, tokens = np.unique(symbols, return_inverse=True)
    else:
        known: dict[str, int] = {}
        tokens = np.array([known.setdefault(word, len(known)) for word in symbols])
        alphabet = known
    return TextTokens(tokens=tokens.astype(np.int32), vocab_size=len(alphabet), unit=unit, dropped_mark=mark)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimatorScore:
    """One estimator on the rest of a text.

    Attributes
    ----------
    name : str
    bits : float
        Bits per symbol with the floor mixed in.
    standard_error : float
        Of `bits`, from the means of equal stretches.
    raw_bits : float or None
        Bits per symbol of the estimator itself; None if it gave probability zero to a symbol that occurred.
    zero_share : float
        Share of symbols to which it gave probability zero.
    unknown_share : float
        Share of symbols before which it had no evidence; these count as uniform.
    parameters : mapping
        What was tuned.
    """

    name: str
    bits: float
    standard_error: float
    raw_bits: float | None
    zero_share: float
    unknown_share: float
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextScores:
    """Scores of all estimators, best first, and how soft matching with BOS interpolates.

    Attributes
    ----------
    order, vocab_size, tuned_symbols, judged_symbols : int
        Orders, alphabet, symbols of the first part and of the rest.
    estimators : tuple of EstimatorScore
    order_weights : (k + 1,) array
        Mean mixture weight of all sets of r lags (Corollary 4.2) of soft matching with one scale per lag and BOS;
        may be negative if a scale is.
    bos_weight : float
    """

    order: int
    vocab_size: int
    tuned_symbols: int
    judged_symbols: int
    estimators: tuple[EstimatorScore, ...]
    order_weights: Float
    bos_weight: float


def score_text(tokens: Any, vocab_size: int, order: int, *, tuned_share: float = TUNED_SHARE) -> TextScores:
    """Tune every estimator on the first part of a sequence, then judge it on the rest.

    The sequence is read once. Every prediction uses the counts of all tokens before it (padded boundary);
    parameters are fitted to at most `MOST_TUNED` positions of the second half of the first part, and then stay.

    Parameters
    ----------
    tokens : (T,) array of int in 0..vocab_size-1
    vocab_size : int >= 1
    order : int, 1..12
    tuned_share : float in (0, 1)

    Raises
    ------
    InvalidInput
        A token outside the vocabulary, a sequence shorter than 20 (k + 1) symbols, or a share out of range.
    MethodUnavailable
        The tables would not fit into memory.
    """
    vocab_size, k = count(vocab_size, "vocab_size"), checked_order(order)
    array = checked_tokens(tokens, vocab_size)
    if not 0 < tuned_share < 1:
        raise InvalidInput(f"tuned_share must lie between 0 and 1, got {tuned_share}.")
    T, least = len(array), LEAST_PER_LAG * (k + 1)
    if least > T:
        raise InvalidInput(f"an order of {k} needs at least {least} symbols, got {T}.")
    first = max(k + 2, int(T * tuned_share))
    masks = Masks.subsets(k)
    most = max(64, min(MOST_TUNED, 2**22 // len(masks)))
    tuned = np.unique(np.linspace(first // 2, first - 1, most).astype(np.int64))
    kept: list[Any] = []
    judge: _Judge | None = None
    for start, stats in symbol_blocks(array, vocab_size, masks, boundary="padded", below=True):
        stop = start + len(stats)
        here = tuned[(tuned >= start) & (tuned < stop)]
        kept.append(stats[here - start].copy())
        if stop <= first:
            continue
        if judge is None:
            judge = _Judge.fitted(np.concatenate(kept), vocab_size, masks, first, T)
        judge.take(stats[max(first - start, 0) :], max(first, start))
    assert judge is not None  # T > first
    return judge.scores()


def check_request(length: int, order: int, tuned_share: float) -> None:
    """Whether `score_text` can work on so many symbols, before any work.

    Raises
    ------
    InvalidInput
        As `score_text`.
    """
    k = checked_order(order)
    if not 0 < tuned_share < 1:
        raise InvalidInput(f"tuned_share must lie between 0 and 1, got {tuned_share}.")
    if length < LEAST_PER_LAG * (k + 1):
        raise InvalidInput(f"an order of {k} needs at least {LEAST_PER_LAG * (k + 1)} symbols, got {length}.")


class _Judge:
    """Fitted estimators and the sums of what they cost."""

    def __init__(self, fits: Mapping[str, Any], vocab_size: int, masks: Masks, first: int, last: int) -> None:
        self.fits, self.V, self.masks = fits, vocab_size, masks
        self.first, self.last = first, last
        self.names = ("uniform", "maximum likelihood", *fits)
        size = (len(self.names), STRETCHES)
        self.floored, self.raw = np.zeros(size), np.zeros(size)
        self.zeros, self.unknown = np.zeros(len(self.names), np.int64), np.zeros(len(self.names), np.int64)
        self.symbols = np.zeros(STRETCHES, np.int64)
        self.weights, self.bos = np.zeros(len(masks)), 0.0
        self.how = {
            name: ReadOut.of(f.beta, f.kappa) for name, f in fits.items() if isinstance(f, SoftMatchFit)
        }

    @classmethod
    def fitted(cls, stats: Any, vocab_size: int, masks: Masks, first: int, last: int) -> _Judge:
        """Fit everything to the statistics (n, M, 7) of realised symbols."""
        ones = np.ones((len(stats), 1))
        overlaps = stats[..., :2].astype(np.int64)  # counts and totals, to exact overlaps
        for lag in range(masks.order):
            bits = np.arange(len(masks))
            without = bits[bits >> lag & 1 == 0]
            overlaps[:, without] -= overlaps[:, without | 1 << lag]
        nested = ContextStatistics.of_symbols(stats[:, masks.nested], vocab_size)
        fits: dict[str, Any] = {name: fit_smoothing(name, nested, ones, floor=FLOOR) for name in SMOOTHINGS}
        for name, how in SOFT_MATCHING.items():
            fits[name] = fit_soft_match(
                overlaps[..., :1].astype(float),
                ones,
                vocab_size=vocab_size,
                totals=overlaps[..., 1].astype(float),
                floor=FLOOR,
                **how,
            )
        return cls(fits, vocab_size, masks, first, last)

    def take(self, stats: Any, start: int) -> None:
        """Judge the rows of a block, (B, M, 7)."""
        stretch = (np.arange(start, start + len(stats)) - self.first) * STRETCHES // (self.last - self.first)
        self.symbols += np.bincount(stretch, minlength=STRETCHES)
        nested = ContextStatistics.of_symbols(stats[:, self.masks.nested], self.V)
        for i, name in enumerate(self.names):
            p = self._probability(name, stats, nested)
            unknown = np.isnan(p)
            p = np.where(unknown, 1 / self.V, p)
            self.unknown[i] += unknown.sum()
            self.zeros[i] += (p == 0).sum()
            mixed = -np.log2((1 - FLOOR) * p + FLOOR / self.V)
            self.floored[i] += np.bincount(stretch, weights=mixed, minlength=STRETCHES)
            raw = -np.log2(np.where(p > 0, p, 1.0))
            self.raw[i] += np.bincount(stretch, weights=raw, minlength=STRETCHES)
        self._weigh(stats)

    def _probability(self, name: str, stats: Any, nested: ContextStatistics) -> Float:
        if name == "uniform":
            return np.full(len(stats), 1 / self.V)
        if name == "maximum likelihood":
            return laws.ml_law(nested)[:, 0]
        if name not in self.how:
            return self.fits[name].law(nested)[:, 0]
        from marginlab.theory.ngrams._combining import soft_symbols

        how, out = self.how[name], np.empty(len(stats))
        pair = np.ascontiguousarray(stats[..., :2])  # a copy: it is changed in place
        soft_symbols(pair, how.negative, how.log_weight, how.kappa, np.full(len(stats), -np.log(self.V)), out)
        return np.exp(out)

    def _weigh(self, stats: Any) -> None:
        """Mixture weights of soft matching with BOS, summed over rows."""
        fit = self.fits["soft matching, BOS"]
        gamma = np.ones(1)
        for b in fit.beta:
            gamma = np.concatenate([gamma, gamma * np.expm1(b)])
        scale = max(float(np.abs(gamma).max()), np.exp(fit.kappa))
        parts = gamma / scale * stats[..., 1]
        bos = np.exp(fit.kappa) / scale
        norm = bos + parts.sum(-1, keepdims=True)
        self.weights += (parts / norm).sum(0)
        self.bos += float((bos / norm).sum())

    def scores(self) -> TextScores:
        """What was summed, as means."""
        total = self.symbols.sum()
        used = self.symbols > 0
        found = []
        for i, name in enumerate(self.names):
            means = self.floored[i][used] / self.symbols[used]
            error = float(means.std(ddof=1) / np.sqrt(len(means))) if len(means) > 1 else 0.0
            found.append(
                EstimatorScore(
                    name=name,
                    bits=float(self.floored[i].sum() / total),
                    standard_error=error,
                    raw_bits=None if self.zeros[i] else float(self.raw[i].sum() / total),
                    zero_share=float(self.zeros[i] / total),
                    unknown_share=float(self.unknown[i] / total),
                    parameters=self._parameters(name),
                )
            )
        sizes = self.masks.sizes()
        orders = np.array([self.weights[sizes == r].sum() for r in range(self.masks.order + 1)]) / total
        return TextScores(
            order=self.masks.order,
            vocab_size=self.V,
            tuned_symbols=self.first,
            judged_symbols=int(total),
            estimators=tuple(sorted(found, key=lambda s: s.bits)),
            order_weights=orders,
            bos_weight=self.bos / float(total),
        )

    def _parameters(self, name: str) -> dict[str, Any]:
        fit = self.fits.get(name)
        if fit is None:
            return {}
        if not isinstance(fit, SoftMatchFit):
            return {key: np.asarray(value).tolist() for key, value in fit.parameters.items()}
        found: dict[str, Any] = {"beta": fit.beta.tolist()}
        if np.isfinite(fit.kappa):
            found |= {"kappa": fit.kappa, "log_pseudo_count": fit.log_pseudo_count}
        return found
