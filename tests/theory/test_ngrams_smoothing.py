"""Smoothing against plain loops over the sequence in exact fractions, and the identities between the methods."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams import (
    absolute_discounting,
    add_alpha,
    jelinek_mercer,
    katz,
    kneser_ney,
    mackay_peto,
    ml,
    pitman_yor,
    soft_match,
)
from marginlab.theory.ngrams.counting import Masks, checked_tokens, row_blocks, symbol_blocks
from marginlab.theory.ngrams.smoothing_laws import ContextStatistics, katz_law, kneser_ney_law

CASES = {
    "seed": st.integers(0, 10**6),
    "V": st.integers(1, 4),
    "k": st.integers(1, 3),
    "padded": st.booleans(),
}


def draw(seed: int, V: int, most: int = 25) -> tuple[np.random.Generator, list[int]]:
    rng = np.random.default_rng(seed)
    return rng, [int(x) for x in rng.integers(0, V, rng.integers(0, most))]


def brute_counts(x: list[int], V: int, k: int, r: int, padded: bool) -> list[int] | None:
    """Counts after the last r tokens, None if there are not r tokens."""
    t = len(x)
    if r > t:
        return None
    context = x[t - r :]
    counts = [0] * V
    for s in range(r if padded else k, t):
        if x[s - r : s] == context:
            counts[x[s]] += 1
    return counts


def brute_continuations(x: list[int], V: int, k: int, r: int) -> list[int]:
    """Kneser-Ney counts, interior: distinct tokens before (context, m), found by listing (r + 2)-grams."""
    t = len(x)
    if r == k:
        return brute_counts(x, V, k, k, False) or [0] * V
    if r > t:
        return [0] * V
    context = x[t - r :]
    # r + 1 tokens and the symbol, each of which is seen as part of a position with k tokens before it
    seen = {(x[s - r - 1], x[s]) for s in range(k, t) if x[s - r : s] == context}
    return [sum(m == y for _, y in seen) for m in range(V)]


def rows_by(function: Any, x: list[int]) -> np.ndarray:
    return np.array([[float(p) for p in function(x[:t])] for t in range(len(x) + 1)])


@settings(max_examples=60)
@given(**CASES)
def test_add_alpha_and_ml(seed: int, V: int, k: int, padded: bool) -> None:
    _, x = draw(seed, V)
    alpha = Fraction(3, 7)

    def exact(y: list[int]) -> list[Fraction]:
        c = brute_counts(y, V, k, k, padded) or [0] * V
        return [(n + alpha) / (sum(c) + alpha * V) for n in c]

    boundary = "padded" if padded else "interior"
    got = add_alpha(x, V, k, float(alpha), boundary=boundary)
    np.testing.assert_allclose(got, rows_by(exact, x), rtol=1e-14)
    likely = ml(x, V, k, boundary=boundary)
    for t, row in enumerate(likely):
        c = brute_counts(x[:t], V, k, k, padded) or [0] * V
        if sum(c) == 0:
            assert np.isnan(row).all()
        else:
            np.testing.assert_allclose(row, np.array(c) / sum(c), rtol=1e-15)


@settings(max_examples=60)
@given(**CASES)
def test_recursions_in_fractions(seed: int, V: int, k: int, padded: bool) -> None:
    """Interpolated discounting, MacKay-Peto, Jelinek-Mercer of both kinds and Katz by their textbook recursions."""
    rng, x = draw(seed, V)
    D = [Fraction(int(rng.integers(0, 8)), 8) for _ in range(k + 1)]
    c = [Fraction(int(rng.integers(0, 12)), 4) for _ in range(k + 1)]
    edges = [Fraction(1), Fraction(3)]
    table = [[Fraction(int(rng.integers(0, 9)), 8) for _ in range(3)] for _ in range(k + 1)]
    raw = [int(v) for v in rng.integers(1, 9, k + 2)]
    weights = [Fraction(v, sum(raw)) for v in raw]
    boundary = "padded" if padded else "interior"

    def levels(y: list[int]) -> list[list[int]]:
        return [brute_counts(y, V, k, r, padded) or [0] * V for r in range(k + 1)]

    def discounting(y: list[int]) -> list[Fraction]:
        p = [Fraction(1, V)] * V
        for n, d in zip(levels(y), D, strict=True):
            if sum(n):
                types = sum(v > 0 for v in n)
                p = [
                    max(v - d, 0) / Fraction(sum(n)) + d * types / Fraction(sum(n)) * q
                    for v, q in zip(n, p, strict=True)
                ]
        return p

    def dirichlet(y: list[int]) -> list[Fraction]:
        p = [Fraction(1, V)] * V
        for n, a in zip(levels(y), c, strict=True):
            if sum(n) + a:
                p = [(v + a * q) / (sum(n) + a) for v, q in zip(n, p, strict=True)]
        return p

    def fixed(y: list[int]) -> list[Fraction]:
        parts = [(weights[0], [Fraction(1, V)] * V)]
        parts += [
            (w, [Fraction(v, sum(n)) for v in n])
            for w, n in zip(weights[1:], levels(y), strict=True)
            if sum(n)
        ]
        norm = sum(w for w, _ in parts)
        return [sum((w * q[m] for w, q in parts), Fraction(0)) / norm for m in range(V)]

    def bucketed(y: list[int]) -> list[Fraction]:
        p = [Fraction(1, V)] * V
        for n, row in zip(levels(y), table, strict=True):
            if sum(n):
                w = row[sum(sum(n) >= e for e in edges)]
                p = [w * Fraction(v, sum(n)) + (1 - w) * q for v, q in zip(n, p, strict=True)]
        return p

    def back_off(y: list[int]) -> list[Fraction]:
        p = [Fraction(1, V)] * V
        for n, d in zip(levels(y), D, strict=True):
            total = sum(n)
            if not total:
                continue
            left = sum((q for v, q in zip(n, p, strict=True) if v == 0), Fraction(0))
            if left == 0:
                p = [Fraction(v, total) for v in n]
            else:
                freed = d * sum(v > 0 for v in n) / total
                p = [(v - d) / total if v else freed * q / left for v, q in zip(n, p, strict=True)]
        return p

    numbers = [float(v) for v in D]
    for function, want in (
        (absolute_discounting(x, V, k, numbers, boundary=boundary), discounting),
        (mackay_peto(x, V, k, [float(v) for v in c], boundary=boundary), dirichlet),
        (jelinek_mercer(x, V, k, [float(v) for v in weights], boundary=boundary), fixed),
        (
            jelinek_mercer(x, V, k, [[float(v) for v in r] for r in table], edges=[1, 3], boundary=boundary),
            bucketed,
        ),
        (katz(x, V, k, numbers, boundary=boundary), back_off),
    ):
        np.testing.assert_allclose(function, rows_by(want, x), atol=1e-13)
        np.testing.assert_allclose(function.sum(1), 1.0, atol=1e-13)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), V=st.integers(1, 4), k=st.integers(1, 3))
def test_kneser_ney_by_listing_contexts(seed: int, V: int, k: int) -> None:
    rng, x = draw(seed, V)
    D = [Fraction(int(rng.integers(0, 8)), 8) for _ in range(k + 1)]

    def exact(y: list[int]) -> list[Fraction]:
        p = [Fraction(1, V)] * V
        for r, d in enumerate(D):
            n = brute_continuations(y, V, k, r)
            if sum(n):
                types = sum(v > 0 for v in n)
                p = [
                    max(v - d, 0) / Fraction(sum(n)) + d * types / Fraction(sum(n)) * q
                    for v, q in zip(n, p, strict=True)
                ]
        return p

    got = kneser_ney(x, V, k, [float(d) for d in D])
    np.testing.assert_allclose(got, rows_by(exact, x), atol=1e-13)


@settings(max_examples=40)
@given(**CASES)
def test_ends_of_the_dictionary(seed: int, V: int, k: int, padded: bool) -> None:
    """Pitman-Yor with one table is Kneser-Ney, with all tables MacKay-Peto; one lag with BOS is MacKay-Peto too."""
    rng, x = draw(seed, V)
    boundary = "padded" if padded else "interior"
    D, c = rng.uniform(0, 1, k + 1), rng.uniform(0, 5, k + 1)
    zero = np.zeros(k + 1)
    np.testing.assert_allclose(
        pitman_yor(x, V, k, D, zero, boundary=boundary), kneser_ney(x, V, k, D, boundary=boundary), atol=1e-14
    )
    np.testing.assert_allclose(
        pitman_yor(x, V, k, zero, c, tables="all", boundary=boundary),
        mackay_peto(x, V, k, c, boundary=boundary),
        atol=1e-14,
    )
    beta, kappa = float(rng.uniform(0.1, 6)), float(rng.normal())
    soft = soft_match(x, V, [beta], kappa=kappa)
    for t in range(len(x) + 1):
        n = max(t - 1, 0)
        smooth = mackay_peto(x[:t], V, 1, [np.exp(kappa), (n + np.exp(kappa)) / np.expm1(beta)])
        np.testing.assert_allclose(soft[t], smooth[-1], atol=1e-13)


@settings(max_examples=40)
@given(**CASES)
def test_realised_symbols_give_the_rows_entries(seed: int, V: int, k: int, padded: bool) -> None:
    """The seven statistics of a realised symbol, from hashed tables, give the same laws as whole rows."""
    rng, x = draw(seed, V, most=60)
    boundary = "padded" if padded else "interior"
    D = rng.uniform(0, 1, k + 1)
    array, masks = checked_tokens(x, V), Masks.suffixes(k)
    blocks = [s.copy() for _, s in symbol_blocks(array, V, masks, boundary=boundary, below=True)]
    for law, rows in ((katz_law, katz), (kneser_ney_law, kneser_ney)):
        if not x:
            continue
        stats = ContextStatistics.of_symbols(np.concatenate(blocks), V)
        want = rows(x, V, k, D, boundary=boundary)[np.arange(len(x)), x]
        np.testing.assert_allclose(law(stats, D)[:, 0], want, atol=1e-13)
    dense = [
        (c.copy(), s.copy())
        for _, c, s in row_blocks(array, V, masks, boundary=boundary, customers=True, method="dense")
    ]
    hashed = [
        (c.copy(), s.copy())
        for _, c, s in row_blocks(array, V, masks, boundary=boundary, customers=True, method="hashed")
    ]
    for i in range(2):
        np.testing.assert_array_equal(
            np.concatenate([b[i] for b in dense]), np.concatenate([b[i] for b in hashed])
        )


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ml([0, 3], 3, 1), "tokens must lie in 0..2 .the vocabulary., got 3 at index 1"),
        (lambda: ml([0.5], 3, 1), "tokens must hold integers, got dtype float64"),
        (lambda: ml([[0]], 3, 1), "tokens must have 1 dimension"),
        (lambda: ml([0], 0, 1), "vocab_size must be at least 1, got 0"),
        (lambda: ml([0], 3, 0), "order must be at least 1, got 0"),
        (lambda: ml([0], 3, 13), "order must be at most 12"),
        (lambda: ml([0], 3, 1, boundary="cyclic"), "boundary must be one of interior, padded"),
        (lambda: add_alpha([0], 3, 1, 0.0), "alpha must be positive"),
        (lambda: add_alpha([0], 3, 1, np.nan), "alpha must be positive and finite, got nan"),
        (lambda: katz([0], 3, 1, [0.5]), r"discounts must have shape \(2\)"),
        (lambda: katz([0], 3, 1, [0.5, 1.5]), r"discounts must lie in \[0, 1\], got 1.5"),
        (lambda: kneser_ney([0], 3, 1, [0.5, np.inf]), "discounts must be finite"),
        (lambda: mackay_peto([0], 3, 1, [-1.0, 1.0]), "concentrations must be at least 0, got -1"),
        (lambda: pitman_yor([0], 3, 1, [0, 0], [0, 0], tables="two"), "tables must be one of one, all"),
        (lambda: jelinek_mercer([0], 3, 1, [0.5, 0.2, 0.2]), r"weights must sum to 1, they sum to 0\.8999"),
        (lambda: jelinek_mercer([0], 3, 1, [[0.5, 0.5]] * 2, edges=[2, 1]), "edges must increase"),
        (lambda: jelinek_mercer([0], 3, 1, [1.5, -0.5, 0]), r"weights must lie in \[0, 1\]"),
    ],
)  # fmt: skip
def test_errors(call: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        call()
