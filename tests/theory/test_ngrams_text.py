"""Estimators on a text: every score against whole rows computed one by one, tokens, and awkward texts."""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams import (
    absolute_discounting,
    add_alpha,
    jelinek_mercer,
    katz,
    kneser_ney,
    mackay_peto,
    ml,
    soft_match,
)
from marginlab.theory.ngrams.text import FLOOR, TextScores, score_text, text_tokens


def a_text(module: str = "textwrap") -> bytes:
    """A text that Python ships."""
    return inspect.getsource(importlib.import_module(module)).encode()


def rows_of(name: str, tokens: np.ndarray, V: int, k: int, parameters: dict) -> np.ndarray:
    """The same estimator by its public function, all rows."""
    found = {key: value for key, value in parameters.items() if key != "log_pseudo_count"}
    if name == "uniform":
        return np.full((len(tokens) + 1, V), 1 / V)
    if name.startswith("soft matching"):
        return soft_match(tokens, V, found["beta"], kappa=found.get("kappa", -np.inf), boundary="padded")
    functions = {
        "maximum likelihood": ml,
        "add-alpha": add_alpha,
        "jelinek-mercer": jelinek_mercer,
        "bucketed jelinek-mercer": jelinek_mercer,
        "katz": katz,
        "absolute discounting": absolute_discounting,
        "kneser-ney": kneser_ney,
        "mackay-peto": mackay_peto,
    }
    return functions[name](tokens, V, k, boundary="padded", **found)


@pytest.mark.parametrize(("unit", "k"), [("char", 2), ("byte", 1), ("word", 2)])
def test_scores_are_those_of_the_public_functions(unit: str, k: int) -> None:
    text = text_tokens(a_text()[:4_000], unit)
    scores = score_text(text.tokens, text.vocab_size, k)
    x, V, first = text.tokens, text.vocab_size, scores.tuned_symbols
    assert first + scores.judged_symbols == len(x)
    assert len(scores.estimators) == 13
    for s in scores.estimators:
        p = rows_of(s.name, x, V, k, dict(s.parameters))[np.arange(len(x)), x][first:]
        assert s.unknown_share == pytest.approx(np.isnan(p).mean())
        p = np.where(np.isnan(p), 1 / V, p)
        assert s.bits == pytest.approx(-np.log2((1 - FLOOR) * p + FLOOR / V).mean(), rel=1e-11)
        assert s.zero_share == pytest.approx((p == 0).mean())
        if s.raw_bits is None:
            assert (p == 0).any()
        else:
            assert s.raw_bits == pytest.approx(-np.log2(p).mean(), rel=1e-11)
    assert scores.order_weights.sum() + scores.bos_weight == pytest.approx(1, abs=1e-12)


def test_tuning_pays() -> None:
    """On a text of Python, tuned estimators beat untuned ones, BOS helps, and everything beats uniform."""
    text = text_tokens(a_text("argparse"), "char")
    scores = score_text(text.tokens, text.vocab_size, 3)
    bits = {s.name: s.bits for s in scores.estimators}
    assert list(bits.values()) == sorted(bits.values())
    assert bits["soft matching, BOS"] < bits["soft matching, one scale, BOS"] < bits["maximum likelihood"]
    assert bits["kneser-ney"] < bits["add-alpha"] < bits["uniform"]
    beta = next(s for s in scores.estimators if s.name == "soft matching, BOS").parameters["beta"]
    assert beta[0] > beta[1] > beta[2] > 0


def test_units() -> None:
    data = "naïve café, naïve.\n".encode()
    assert text_tokens(data, "byte").tokens.tolist() == list(data)
    assert text_tokens(data, "byte").vocab_size == 256
    char = text_tokens(data, "char")
    assert (len(char.tokens), char.vocab_size) == (19, len(set(data.decode())))
    word = text_tokens(data, "word")
    assert word.tokens.tolist() == [0, 1, 2, 0, 3]  # naïve café , naïve .
    marked = text_tokens(b"\xef\xbb\xbf" + data, "char")
    assert marked.dropped_mark
    np.testing.assert_array_equal(marked.tokens, char.tokens)
    assert len(text_tokens(b"\xef\xbb\xbf" + data, "byte").tokens) == len(data) + 3


@pytest.mark.parametrize("unit", ["byte", "char", "word"])
@pytest.mark.parametrize("k", [1, 4, 12])
def test_one_symbol_only(unit: str, k: int) -> None:
    """A text of one repeated symbol is predicted with hardly a bit, and nothing divides by zero."""
    data = b"a " * 400 if unit == "word" else b"a" * 400
    text = text_tokens(data, unit)
    scores = score_text(text.tokens, text.vocab_size, k)
    assert finite(scores)
    assert min(s.bits for s in scores.estimators) < 0.1


def finite(scores: TextScores) -> bool:
    numbers = [v for s in scores.estimators for v in (s.bits, s.standard_error, s.raw_bits or 0.0)]
    return bool(np.isfinite([*numbers, *scores.order_weights, scores.bos_weight]).all())


def test_random_bytes_cost_eight_bits() -> None:
    data = np.random.default_rng(0).integers(0, 256, 60_000, dtype=np.uint8).tobytes()
    scores = score_text(text_tokens(data, "byte").tokens, 256, 3)
    assert finite(scores)
    best = scores.estimators[0]
    assert 7.9 < best.bits < 8.2
    with pytest.raises(InvalidInput, match="characters and words need UTF-8, got byte 0x"):
        text_tokens(data, "char")


@pytest.mark.parametrize(
    ("data", "unit", "sentence"),
    [
        (b"", "byte", "the text must not be empty, got 0 bytes"),
        (b"\xef\xbb\xbf", "char", "the text must hold at least one char, got 3 bytes without any"),
        (b" \n\t", "word", "the text must hold at least one word"),
        (b"abc\xed\xa0\x80", "char", "got byte 0xed at offset 3: take the unit byte"),
        (b"abc\xff", "word", "got byte 0xff at offset 3"),
        (b"abc", "letter", "unit must be one of byte, char, word; got 'letter'"),
    ],
)
def test_texts_that_are_refused(data: bytes, unit: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        text_tokens(data, unit)


@pytest.mark.parametrize("length", [0, 1, 3, 79])
def test_too_short(length: int) -> None:
    with pytest.raises(InvalidInput, match=f"an order of 3 needs at least 80 symbols, got {length}"):
        score_text(np.zeros(length, int), 2, 3)


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0, np.nan])
def test_shares_that_are_refused(share: float) -> None:
    with pytest.raises(InvalidInput, match="tuned_share must lie between 0 and 1"):
        score_text(np.zeros(100, int), 2, 1, tuned_share=share)


@pytest.mark.parametrize("share", [1e-9, 0.999999])
def test_extreme_shares(share: float) -> None:
    """At least k + 2 symbols are tuned on, and at least one is judged."""
    x = np.random.default_rng(1).integers(0, 3, 200)
    scores = score_text(x, 3, 2, tuned_share=share)
    assert finite(scores)
    assert 1 <= scores.judged_symbols <= 196
