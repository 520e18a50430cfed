"""Head scores on maps whose scores are plain to see, and uniform attention in rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import induction_score, previous_token_score, repeat_score, uniform_scores


def causal(length: int, *, diagonal: bool) -> Any:
    mask = np.tril(np.ones((length, length)), 0 if diagonal else -1)
    return mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)


def test_perfect_heads_score_one() -> None:
    previous = np.eye(9, k=-1)
    assert previous_token_score(previous) == 1.0
    K = 5
    repeat = np.zeros((2 * K, 2 * K))
    for t in range(K, 2 * K):
        repeat[t, t - K + 1] = 1.0
    assert repeat_score(repeat) == 1.0
    match = np.array([0, 3, 6])
    maps = np.zeros((3, 2, 9, 9))
    maps[np.arange(3), 1, -1, match + 1] = 1.0
    assert np.array_equal(induction_score(maps, match), [[0.0, 1.0]] * 3)


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("T", [2, 8, 16])
def test_uniform_attention(T: int, *, diagonal: bool) -> None:
    exact = uniform_scores(T, T, diagonal=diagonal)
    once, twice = causal(T + 1, diagonal=diagonal), causal(2 * T, diagonal=diagonal)
    assert previous_token_score(once) == pytest.approx(float(exact["PTH"]), rel=1e-14)
    assert induction_score(once[None], [0])[0] == pytest.approx(float(exact["IH-MC"]), rel=1e-14)
    assert repeat_score(twice) == pytest.approx(float(exact["IH-Repeat"]), rel=1e-14)


def test_values_at_length_eight() -> None:
    with_diagonal = uniform_scores(8, 8, diagonal=True)
    assert with_diagonal["IH-MC"] == Fraction(1, 9)
    assert float(with_diagonal["PTH"]) == pytest.approx(0.2286, abs=5e-5)
    assert float(uniform_scores(8, 8, diagonal=False)["PTH"]) == pytest.approx(0.340, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: previous_token_score(np.zeros((2, 3))), "square maps"),
        (lambda: previous_token_score(np.zeros(4)), "square maps"),
        (lambda: repeat_score(np.zeros((5, 5))), "even length"),
        (lambda: repeat_score(np.zeros((2, 2))), "even length"),
        (lambda: induction_score(np.zeros((3, 3)), [0]), "one map or more"),
        (lambda: induction_score(np.zeros((1, 4, 4)), [2]), "match must lie in 0..1"),
        (lambda: previous_token_score(np.full((3, 3), np.nan)), "attention"),
        (lambda: uniform_scores(1, 2, diagonal=True), "T"),
        (lambda: uniform_scores(2, 1, diagonal=True), "K"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        call()
