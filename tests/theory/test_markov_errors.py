"""Order-k chains: what is refused, and in which words."""

from __future__ import annotations

import numpy as np
import pytest

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.markov import (
    checked_rows,
    context_codes,
    entropy_rate,
    sample_chains,
    stationary_distribution,
)

HALF = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("rows", "V", "message"),
    [
        ([0.5, 0.5], 2, r"shape \(..., V\^k, V\) with V = 2 .* got \(2,\)"),
        ([[0.5, 0.5]] * 3, 2, r"got \(3, 2\)"),
        (HALF, 3, r"V = 3 .* got \(2, 2\)"),
        (np.empty((0, 2, 2)), 2, "no empty axis"),
        ([[0.5, 0.5], [np.nan, 0.5]], 2, r"rows must be finite, got nan at index \(1, 0\)"),
        ([[0.5, 0.5], [np.inf, 0.5]], 2, "rows must be finite, got inf"),
        ([[0.5, 0.5], [1.5, -0.5]], 2, r"probabilities >= 0, got -0.5 at index \(1, 1\)"),
        ([[0.5, 0.5], [0.5, 0.5 + 1e-12]], 2, r"sum of rows\[1\] is 1.000000000001"),
        ([[0.5, 0.5], [0.0, 0.0]], 2, "must sum to 1"),
        (np.array(HALF, dtype=complex), 2, "real numbers"),
        ([[0.5, 0.5], [1.0]], 2, "rectangular"),
        ([[1.0]], 1, "vocab_size must be at least 2, got 1"),
        (HALF, 2.0, "vocab_size must be an integer"),
    ],
)
def test_bad_rows_are_refused(rows, V, message):
    for function in (checked_rows, stationary_distribution, entropy_rate):
        with pytest.raises(InvalidInput, match=message):
            function(rows, V)


def test_rows_rounded_by_a_division_are_laws():
    rng = np.random.default_rng(0)
    for V in (2, 10, 500):
        rows = rng.random((1000, 1, V)) ** 8
        checked_rows(rows / rows.sum(axis=-1, keepdims=True), V)


def test_several_closed_classes_are_named():
    split = np.eye(3)
    with pytest.raises(InvalidInput, match=r"3 closed classes: \{\(0,\)\}; \{\(1,\)\}; \{\(2,\)\}"):
        stationary_distribution(split, 3)
    rows = np.stack([np.full((4, 2), 0.5), [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]])
    with pytest.raises(InvalidInput, match=r"rows\[1\] .* 2 closed classes: \{\(0, 0\)\}; \{\(1, 1\)\}"):
        stationary_distribution(rows, 2)
    alternate = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])  # repeat the token at lag 2
    with pytest.raises(InvalidInput, match=r"3 closed classes: .*\{\(1, 0\), \(0, 1\)\}"):
        stationary_distribution(alternate, 2)
    with pytest.raises(InvalidInput, match="closed classes"):
        sample_chains(split, 5, seed=0, n=2, start="stationary")
    assert sample_chains(split, 5, seed=0, n=2).shape == (2, 5)  # no law is needed


def test_too_many_contexts_to_eliminate():
    rows = np.full((2**13, 2), 0.5)
    with pytest.raises(MethodUnavailable, match="at most 4096 contexts, got V\\^k = 8192"):
        stationary_distribution(rows, 2)
    assert sample_chains(rows, 13, seed=0, n=1).shape == (1, 13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 0.5}, "shape"),
        ({"rows": [HALF, HALF]}, "n must be the number of chains, 2, or left out, got 3"),
        ({"rows": [[1.0]]}, "at least 2 tokens"),
        ({"rows": [[[[0.5, 0.5]]]]}, r"\(n, V\^k, V\) or \(V\^k, V\)"),
        ({"n": None}, "n must say how many sequences"),
        ({"n": 0}, "n must be at least 1"),
        ({"length": 0}, "length must be at least 1"),
        ({"length": 1, "rows": HALF * 2}, "length must be at least the order 2, got 1"),
        ({"seed": None}, "seed must be an integer"),
        ({"start": "zero"}, "start must be uniform, stationary, a law or the first tokens; got 'zero'"),
        ({"start": [0.2, 0.9]}, "start must sum to 1"),
        ({"start": [-0.5, 1.5]}, "start must hold probabilities"),
        ({"start": [np.nan, 1.0]}, "start must be finite"),
        ({"start": [2]}, r"start must lie in 0..1 \(the vocabulary\), got 2 at index \(0,\)"),
        ({"start": [1.0]}, "start must hold integers"),
        ({"start": [[0], [1]]}, r"start must be .* got shape \(2, 1\)"),
        ({"start": [0, 1, 0]}, r"got shape \(3,\)"),
        ({"start": [[0], [1, 2], [0]]}, "start must be a rectangular array"),
        ({"start": None}, "got shape"),
    ],
)
def test_bad_walks_are_refused(change, message):
    arguments = {"rows": HALF, "length": 5, "seed": 0, "n": 3} | change
    with pytest.raises(InvalidInput, match=message):
        sample_chains(**arguments)


@pytest.mark.parametrize(
    ("tokens", "V", "k", "message"),
    [
        ([0, 1], 2, 3, "at least order = 3"),
        ([0, 2], 2, 1, r"tokens must lie in 0..1 \(the vocabulary\), got 2 at index \(1,\)"),
        ([0, -1], 2, 1, "got -1"),
        ([0.0, 1.0], 2, 1, "integers"),
        (3, 4, 0, "tokens must be a sequence, got the number 3"),
        ([0] * 70, 2, 64, r"64 bits, got V\^k = 2\^64"),
        ([0, 1], 1, 1, "vocab_size must be at least 2"),
        ([0, 1], 2, -1, "order must be at least 0"),
    ],
)
def test_bad_tokens_are_refused(tokens, V, k, message):
    with pytest.raises(InvalidInput, match=message):
        context_codes(tokens, V, k)
