"""Disentangled attention against plain loops, mpmath and what hard attention must copy."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.theory.disentangled import (
    AttentionHead,
    attention_weights,
    block_slices,
    copied_slice,
    forward,
)
from marginlab.theory.errors import InvalidInput

INF = float("inf")
seeds = st.integers(0, 2**32 - 1)


def made(**parts: Any) -> AttentionHead:
    """A head from anything array-like."""
    return AttentionHead(**parts)


def random_head(rng: np.random.Generator, width: int) -> AttentionHead:
    """A head with every part, at random; the own position is always allowed."""
    relative = rng.normal(size=rng.integers(1, 6))
    relative[1:][rng.random(len(relative) - 1) < 0.3] = -INF
    return made(
        score=rng.normal(size=(width, width)),
        relative=relative,
        beyond=float(rng.choice([0.0, -INF, 0.7])),
        relative_keys=rng.normal(size=(rng.integers(1, 5), width)) if rng.random() < 0.5 else None,
        relative_values=rng.normal(size=(rng.integers(1, 5), 2)) if rng.random() < 0.5 else None,
    )


def head_by_loops(h: list[list[float]], head: AttentionHead) -> tuple[list[list[float]], list[list[float]]]:
    """What one head writes and its attention, a sum at a time."""
    width, out, maps = len(h[0]), [], []
    for t, query in enumerate(h):
        logits = []
        for j in range(t + 1):
            d = t - j
            total = head.relative[d] if d < len(head.relative) else head.beyond
            for a in range(width):
                total += sum(query[a] * head.score[a][b] * h[j][b] for b in range(width))
                if d < len(head.relative_keys):
                    total += query[a] * head.relative_keys[d][a]
            logits.append(total)
        weights = [float(mpmath.exp(x - max(logits))) for x in logits]
        weights = [w / sum(weights) for w in weights]
        row = [sum(w * h[j][a] for j, w in enumerate(weights)) for a in range(width)]
        for m in range(head.relative_values.shape[1]):
            kept = [(w, t - j) for j, w in enumerate(weights) if t - j < len(head.relative_values)]
            row.append(sum(w * head.relative_values[d][m] for w, d in kept))
        out.append(row)
        maps.append(weights + [0.0] * (len(h) - t - 1))
    return out, maps


@settings(max_examples=25)
@given(seeds)
def test_forward_pass_by_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(1, 7)), int(rng.integers(1, 4))))
    width, layers = X.shape[1], []
    for heads in (2, 1):
        layers.append(tuple(random_head(rng, width) for _ in range(heads)))
        width = block_slices(X.shape[1], layers)[-1][-1].stop
    readout = rng.normal(size=(3, width))
    out, maps = forward(X, layers, readout, return_attention=True)

    h = X.tolist()
    for layer, found in zip(layers, maps, strict=True):
        written = [head_by_loops(h, head) for head in layer]
        h = [row + [x for out, _ in written for x in out[t]] for t, row in enumerate(h)]
        np.testing.assert_allclose(found, [maps for _, maps in written], atol=1e-12)
    np.testing.assert_allclose(forward(X, layers), h, atol=1e-11, rtol=1e-11)
    np.testing.assert_allclose(out, np.array(h) @ readout.T, atol=1e-10, rtol=1e-10)


@settings(max_examples=25)
@given(seeds)
def test_causal_and_batched(seed: int) -> None:
    """Later positions change nothing, and a batch is its samples."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2, 3, 6, 3))
    layers = [(random_head(rng, 3),)]
    layers.append((random_head(rng, block_slices(3, layers)[-1][-1].stop),))
    whole, maps = forward(X, layers, return_attention=True)
    assert [m.shape for m in maps] == [(2, 3, 1, 6, 6)] * 2
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(forward(X[index], layers), whole[index], atol=1e-11, rtol=1e-11)
    t = int(rng.integers(1, 6))
    np.testing.assert_allclose(forward(X[..., :t, :], layers), whole[..., :t, :], atol=1e-11, rtol=1e-11)
    later = X.copy()
    later[..., t:, :] = rng.normal(size=later[..., t:, :].shape)
    np.testing.assert_allclose(forward(later, layers)[..., :t, :], whole[..., :t, :], atol=1e-11, rtol=1e-11)
    for attention in maps:
        np.testing.assert_array_equal(attention, np.tril(attention))
        np.testing.assert_allclose(attention.sum(axis=-1), 1.0, atol=1e-14)


@settings(max_examples=25)
@given(seeds, st.sampled_from([1e4, -1e4, 3e5]))
def test_softmax_of_huge_logits(seed: int, size: float) -> None:
    """Logits of 1e4 that differ by a few units, against 50 digits; each logit is exact in float64."""
    rng = np.random.default_rng(seed)
    tokens = size + rng.integers(-40, 40, size=8) / 8
    relative = np.where(rng.random(8) < 0.3, -INF, rng.integers(-40, 40, size=8) / 8)
    relative[0] = 0.25
    X = np.stack([np.ones(8), tokens], axis=1)
    head = made(score=[[0.0, 1.0], [0.0, 0.0]], relative=relative)
    found = attention_weights(X, head)
    with mpmath.workdps(50):
        for t in range(8):
            terms = [
                mpmath.exp(mpmath.mpf(tokens[j]) + mpmath.mpf(relative[t - j]))
                if np.isfinite(relative[t - j])
                else mpmath.mpf(0)
                for j in range(t + 1)
            ]
            wanted = [float(x / mpmath.fsum(terms)) for x in terms]
            np.testing.assert_allclose(found[t, : t + 1], wanted, rtol=1e-14, atol=0)


def test_forbidden_pairs() -> None:
    """-inf forbids the pairs with both coordinates nonzero, and only those; zero times -inf is zero."""
    score = [[0.0, -INF], [0.0, 0.0]]  # a query of kind 0 never attends to a key of kind 1
    kinds = np.eye(2)[[1, 0, 0, 1]]
    found = attention_weights(kinds, made(score=score))
    wanted = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.5, 0.5, 0], [0.25] * 4]
    np.testing.assert_allclose(found, wanted, atol=1e-15)
    assert found[2, 0] == 0.0
    with pytest.raises(InvalidInput, match="position 0 has none"):
        attention_weights(kinds[1:], made(score=[[-INF, -INF], [0.0, 0.0]]))
    own_alone = made(score=[[-INF, 0.0], [0.0, 0.0]], relative=[0.0], beyond=-INF)
    with pytest.raises(InvalidInput, match="position 1 has none"):
        attention_weights(kinds[:2], own_alone)


def test_window() -> None:
    """`beyond` is the bias of every distance that `relative` leaves out."""
    X = np.ones((5, 1))
    windowed = attention_weights(X, made(score=[[0.0]], relative=[0.0, 0.0], beyond=-INF))
    np.testing.assert_allclose(windowed[3], [0, 0, 0.5, 0.5, 0])
    shifted = attention_weights(X, made(score=[[0.0]], relative=[0.0], beyond=np.log(3.0)))
    np.testing.assert_allclose(shifted[2], [3 / 7, 3 / 7, 1 / 7, 0, 0])
    alone = attention_weights(X, made(score=[[0.0]], beyond=2.0))
    np.testing.assert_allclose(alone[4], 0.2)


def test_blocks_name_what_was_copied() -> None:
    """Hard attention by distance: every block of the last stream is a token that can be named."""
    X = np.eye(6)
    one, two = (made(score=np.zeros((6, 6)), relative=[0.0] * d + [800.0]) for d in (1, 2))
    last = made(score=np.zeros((18, 18)), relative=[0, 0, 0, 900.0], relative_values=[[0.0], [1], [2], [3]])
    layers = [(one, two), (last,)]
    blocks = block_slices(6, layers)
    assert blocks == ((slice(0, 6),), (slice(6, 12), slice(12, 18)), (slice(18, 37),))
    out = forward(X, layers)[5]
    copies = [out[blocks[0][0]], out[blocks[1][0]], out[blocks[1][1]]]
    copies += [out[copied_slice(blocks, 2, 0, b)] for b in (blocks[0][0], *blocks[1])]
    assert [int(np.argmax(c)) for c in copies] == [5, 4, 3, 2, 1, 0]
    assert [float(np.sum(c)) for c in copies] == [1.0] * 6
    assert out[-1] == 3.0  # the relative value of distance 3


def test_heads_hold_their_own_arrays() -> None:
    score = np.zeros((2, 2))
    head = made(score=score)
    score[0, 0] = 5.0
    assert head.score[0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        head.score[0, 0] = 1.0
    again = made(
        score=head.score,
        relative=head.relative,
        relative_keys=head.relative_keys,
        relative_values=head.relative_values,
    )
    assert (again.reads, again.writes) == (2, 2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: made(score=np.zeros((2, 3))), "score must be square"),
        (lambda: made(score=np.zeros((0, 0))), "score must have shape"),
        (lambda: made(score=[[np.nan]]), "score must hold finite numbers or -inf"),
        (lambda: made(score=[[INF]]), "score must hold finite numbers or -inf"),
        (lambda: made(score=[["a"]]), "score must hold real numbers"),
        (lambda: made(score=[[1.0]], relative=[[1.0]]), "relative must have 1"),
        (lambda: made(score=[[1.0]], relative=[]), "relative must have shape"),
        (lambda: made(score=[[1.0]], relative=[0.0, INF]), "relative must hold finite"),
        (lambda: made(score=[[1.0]], beyond=np.nan), "beyond must hold finite"),
        (lambda: made(score=[[1.0]], beyond=True), "beyond must hold real"),
        (lambda: made(score=[[1.0]], relative_keys=[[1.0, 2.0]]), "relative_keys must have shape"),
        (lambda: made(score=[[1.0]], relative_values=[1.0]), "relative_values must have 2"),
        (lambda: made(score=[[1.0]], relative_values=[[np.nan]]), "relative_values must be finite"),
        (lambda: forward(np.zeros((0, 1)), []), "no empty axis"),
        (lambda: forward(np.zeros(3), []), "stream must have shape"),
        (lambda: forward([[np.nan]], []), "stream must be finite"),
        (lambda: forward([[1.0]], [[]]), "layer 1 has none"),
        (lambda: forward([[1.0]], [[made(score=np.eye(2))]]), "width 1, got one for 2"),
        (lambda: forward([[1.0]], [], readout=[[1.0, 2.0]]), "readout must have shape"),
        (lambda: forward([[1.0]], [], return_attention=1), "return_attention must be"),  # type: ignore[call-overload]
        (lambda: attention_weights([[1.0]], made(score=np.eye(2))), "width 2, got 1"),
        (lambda: attention_weights([[1e200]], made(score=[[1e200]])), "logits must be finite"),
        (lambda: block_slices(0, []), "width must be at least 1"),
        (lambda: copied_slice(block_slices(1, []), 1, 0, slice(0, 1)), "layer must be at most 0"),
        (
            lambda: copied_slice(block_slices(1, [[made(score=[[0.0]])]]), 1, 1, slice(0, 1)),
            "head must",
        ),
        (
            lambda: copied_slice(block_slices(1, [[made(score=[[0.0]])]]), 1, 0, slice(0, 2)),
            "block must",
        ),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        call()
