r"""Disentangled transformers: causal attention whose outputs are concatenated to the stream instead of added.

With h^(0) = X, one layer of heads makes

.. math:: h^{(l)} = [h^{(l-1)}, \mathrm{attn}_1(h^{(l-1)}), \mathrm{attn}_2(h^{(l-1)}), \ldots], \qquad
          \mathrm{attn}(h) = \mathrm{softmax}(\mathrm{mask}(h A h^\top + R))\, h, \quad R_{tj} = r_{t-j},

so that every coordinate of the stream keeps the name of what wrote it, and weights can be written down by hand. There
are no MLPs, norms, or separate query, key and value maps; a head may also hold relative keys and relative values.

Nichani, Damian, Lee, "How Transformers Learn Causal Structure with Gradient Descent", arXiv 2402.14735 (one matrix per
head, concatenated stream); Friedman, Wettig, Chen, "Learning Transformer Programs", arXiv 2306.01128 (disentangled
residual stream); Shaw, Uszkoreit, Vaswani, arXiv 1803.02155 (relative keys and values).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import Float, count, flag, float_array, frozen, shaped_array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AttentionHead:
    """One head that reads and copies a stream of width D; its arrays become read-only.

    The logit of query position t and key position j <= t, at distance d = t - j, is
    h_t^T A h_j + r_d + h_t^T K_d, and the head writes sum_j a_tj [h_j, v_d].

    Parameters
    ----------
    score : (D, D) array
        A; rows belong to the query. An entry of -inf forbids every pair whose query and key coordinates are both
        nonzero (0 times -inf counts as 0); the other entries are finite.
    relative : (R,) array, optional
        Bias r_d of distances 0..R-1, finite or -inf (never attended); none by default.
    beyond : float
        Bias of distances R and more: 0 by default, -inf for a head that sees a window of R positions.
    relative_keys : (R', D) array, optional
        K_d of distances 0..R'-1; zero beyond.
    relative_values : (R'', m) array, optional
        v_d of distances 0..R''-1, zero beyond: the head then writes D + m coordinates.

    Raises
    ------
    InvalidInput
        Arrays of shapes that do not fit, an empty axis, NaN or +inf, or -inf where it has no meaning.
    """

    score: Float
    relative: Float = None  # type: ignore[assignment]
    beyond: float = 0.0
    relative_keys: Float = None  # type: ignore[assignment]
    relative_values: Float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        score = _logits(shaped_array(self.score, "score", (None, None), finite=False), "score")
        width = len(score)
        if score.shape[1] != width:
            raise InvalidInput(f"score must be square, got shape {score.shape}.")
        beyond = _logits(float_array([self.beyond], "beyond", ndim=1, finite=False), "beyond")
        bias, keys, values = beyond, np.zeros((1, width)), np.zeros((1, 0))
        if self.relative is not None:
            bias = _logits(shaped_array(self.relative, "relative", (None,), finite=False), "relative")
        if self.relative_keys is not None:
            keys = shaped_array(self.relative_keys, "relative_keys", (None, width))
        if self.relative_values is not None and np.shape(self.relative_values) != (1, 0):
            values = shaped_array(self.relative_values, "relative_values", (None, None))
        canonical = {
            "score": frozen(score),
            "relative": frozen(bias),
            "beyond": float(beyond[0]),
            "relative_keys": frozen(keys),
            "relative_values": frozen(values),
        }
        for name, value in canonical.items():
            object.__setattr__(self, name, value)

    @property
    def reads(self) -> int:
        """Width D of the stream that the head reads."""
        return len(self.score)

    @property
    def writes(self) -> int:
        """Number of coordinates that the head appends: D, and the width of its relative values."""
        return self.reads + self.relative_values.shape[1]


Layers = Sequence[Sequence[AttentionHead]]


def attention_weights(h: Any, head: AttentionHead) -> Float:
    """Attention of a head on a stream h (..., T, D): an array (..., T, T) of rows that sum to one, causal.

    Raises
    ------
    InvalidInput
        A stream of another width or with NaN, logits beyond float64, or a row whose keys are all forbidden.

    Notes
    -----
    Each row is shifted by its largest logit, so that logits of any size are safe. A logit carries a rounding error of
    about eps times the largest product it sums, and a weight that relative error: 1e-12 for logits of 1e4.
    """
    stream = _stream(h, head.reads)
    T = stream.shape[-2]
    distance = np.arange(T)[:, None] - np.arange(T)
    causal, distance = distance >= 0, np.maximum(distance, 0)
    bias = np.full(T, head.beyond)
    relative = head.relative[:T]
    bias[: len(relative)] = relative

    finite = np.where(np.isneginf(head.score), 0.0, head.score)
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        logits = stream @ finite @ np.swapaxes(stream, -1, -2)
        by_distance = _by_distance(stream @ head.relative_keys.T, distance)
        if by_distance is not None:
            logits = logits + by_distance
    if not np.isfinite(logits).all():
        raise InvalidInput("logits must be finite in float64, the products of the stream with score are not.")
    logits = np.where(causal, logits + bias[distance], -np.inf)
    if np.isneginf(head.score).any():
        size = np.abs(stream)
        forbidden = size @ np.isneginf(head.score).astype(np.float64) @ np.swapaxes(size, -1, -2) > 0
        logits[forbidden] = -np.inf
    largest = logits.max(axis=-1, keepdims=True)
    if np.isneginf(largest).any():
        where = tuple(int(i) for i in np.argwhere(np.isneginf(largest[..., 0]))[0])
        raise InvalidInput(f"every query must have a key that is allowed, position {where[-1]} has none.")
    weights = np.exp(logits - largest)
    return weights / weights.sum(axis=-1, keepdims=True)


@overload
def forward(
    X: Any, layers: Layers, readout: Any = None, *, return_attention: Literal[False] = False
) -> Float: ...
@overload
def forward(
    X: Any, layers: Layers, readout: Any = None, *, return_attention: Literal[True]
) -> tuple[Float, tuple[Float, ...]]: ...
def forward(
    X: Any, layers: Layers, readout: Any = None, *, return_attention: bool = False
) -> Float | tuple[Float, tuple[Float, ...]]:
    """Forward pass of a disentangled transformer: the last stream, or its linear read-out.

    Parameters
    ----------
    X : (..., T, D) array
        Embedded sequences; leading axes are a batch.
    layers : sequence of sequences of AttentionHead
        The heads of a layer read the same stream, the one that all layers before have written.
    readout : (O, D_L) array, optional
        Linear map W of the last stream, applied as h W^T; there is no softmax behind it.
    return_attention : bool
        Return the attention maps as well.

    Returns
    -------
    (..., T, O) array, or (..., T, D_L) without a read-out
        D_L is what `block_slices` covers.
    tuple of (..., heads, T, T) arrays, one a layer
        Only with `return_attention`.

    Raises
    ------
    InvalidInput
        Arrays whose widths do not fit each other, NaN or infinities, an empty layer, or what `attention_weights` says.

    Notes
    -----
    Attention is causal: row t of the result is a function of X[..., :t + 1, :] alone.

    References
    ----------
    Nichani, Damian, Lee, arXiv 2402.14735; Friedman, Wettig, Chen, arXiv 2306.01128.

    Examples
    --------
    A head that copies the token before, and position 0 where there is none:

    >>> before = AttentionHead(score=np.zeros((2, 2)), relative=[0.0, 50.0])
    >>> forward([[1.0, 0.0], [0.0, 1.0]], [[before]]).round(12)
    array([[1., 0., 1., 0.],
           [0., 1., 1., 0.]])
    """
    stream = _stream(X, None)
    keep = flag(return_attention, "return_attention")
    width = block_slices(stream.shape[-1], layers)[-1][-1].stop
    weight = None if readout is None else shaped_array(readout, "readout", (None, width))
    maps = []
    for layer in layers:
        attention = [attention_weights(stream, head) for head in layer]
        copies = [_written(stream, a, head) for a, head in zip(attention, layer, strict=True)]
        stream = np.concatenate([stream, *copies], axis=-1)
        if keep:
            maps.append(np.stack(attention, axis=-3))
    out = stream if weight is None else stream @ weight.T
    return (out, tuple(maps)) if keep else out


def block_slices(width: int, layers: Layers) -> tuple[tuple[slice, ...], ...]:
    """Where each block of the stream stands: entry 0 holds the input's slice, entry l those of the heads of layer l.

    Parameters
    ----------
    width : int >= 1
        Width D of the input.
    layers : sequence of sequences of AttentionHead

    Raises
    ------
    InvalidInput
        A layer without heads, or a head that reads another width than its layer's stream has.

    Examples
    --------
    >>> head = AttentionHead(score=np.zeros((3, 3)))
    >>> block_slices(3, [(head, head)])
    ((slice(0, 3, None),), (slice(3, 6, None), slice(6, 9, None)))
    """
    width = count(width, "width")
    blocks: list[tuple[slice, ...]] = [(slice(0, width),)]
    for number, layer in enumerate(layers, start=1):
        if len(layer) == 0:
            raise InvalidInput(f"a layer must have at least one head, layer {number} has none.")
        end, written = width, []
        for head in layer:
            if head.reads != width:
                raise InvalidInput(
                    f"the heads of layer {number} must read the stream's width {width}, got one for {head.reads}."
                )
            written.append(slice(end, end + head.writes))
            end += head.writes
        blocks.append(tuple(written))
        width = end
    return tuple(blocks)


def copied_slice(blocks: tuple[tuple[slice, ...], ...], layer: int, head: int, block: slice) -> slice:
    """Where head `head` (from 0) of layer `layer` (from 1) has put its copy of the earlier slice `block`.

    Parameters
    ----------
    blocks : what `block_slices` returns
    layer, head : int
    block : slice
        Coordinates of the stream that the layer reads, with a start and a stop.

    Raises
    ------
    InvalidInput
        No such layer or head, or a slice that is not inside the stream that the layer reads.

    Examples
    --------
    >>> lag = AttentionHead(score=np.zeros((3, 3)))
    >>> match = AttentionHead(score=np.zeros((6, 6)))
    >>> blocks = block_slices(3, [[lag], [match]])
    >>> copied_slice(blocks, 2, 0, blocks[1][0])
    slice(9, 12, None)
    """
    layer, head = count(layer, "layer"), count(head, "head", least=0)
    if layer >= len(blocks):
        raise InvalidInput(f"layer must be at most {len(blocks) - 1}, got {layer}.")
    if head >= len(blocks[layer]):
        raise InvalidInput(f"head must be below {len(blocks[layer])} in layer {layer}, got {head}.")
    width = blocks[layer][0].start  # of the stream that this layer reads
    if block.start is None or block.stop is None or not 0 <= block.start <= block.stop <= width:
        raise InvalidInput(
            f"block must be a slice of the {width} coordinates that layer {layer} reads, got {block}."
        )
    offset = blocks[layer][head].start
    return slice(offset + block.start, offset + block.stop)


def _written(stream: Float, attention: Float, head: AttentionHead) -> Float:
    copied = attention @ stream
    values = head.relative_values
    if values.shape[1] == 0:
        return copied
    T = stream.shape[-2]
    # Attention summed along each diagonal: its mass at distance d.
    mass = np.zeros((*attention.shape[:-1], min(T, len(values))))
    for d in range(mass.shape[-1]):
        rows = np.arange(d, T)
        mass[..., rows, d] = attention[..., rows, rows - d]
    return np.concatenate([copied, mass @ values[: mass.shape[-1]]], axis=-1)


def _by_distance(products: Float, distance: np.ndarray) -> Float | None:
    """h_t^T K_{t-j} from the products h_t^T K_d, shape (..., T, T); None where all are zero."""
    if not products.any():
        return None
    T, kept = products.shape[-2:]
    padded = np.concatenate([products, np.zeros((*products.shape[:-1], 1))], axis=-1)
    column = np.minimum(distance, kept)
    return padded[..., np.arange(T)[:, None], column]


def _stream(value: Any, width: int | None) -> Float:
    stream = float_array(value, "the stream")
    if stream.ndim < 2 or 0 in stream.shape:
        raise InvalidInput(f"the stream must have shape (..., T, D) with no empty axis, got {stream.shape}.")
    if width is not None and stream.shape[-1] != width:
        raise InvalidInput(f"the stream must have width {width}, got {stream.shape[-1]}.")
    return stream


def _logits(array: Float, name: str) -> Float:
    bad = np.isnan(array) | np.isposinf(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidInput(f"{name} must hold finite numbers or -inf, got {array[where]} at index {where}.")
    return array
