r"""The two-layer disentangled transformer that computes soft context matching, with its weights written out.

Layer 1 has one head per lag; head l copies the token l places back into block l of the stream. The head of layer 2
compares query block l - 1, which holds x_{t+1-l}, with key block l, which holds x_{s-l}: a block shift, weighted by
beta_l. It copies the tokens that followed, and a BOS token at position 0 (code V) that carries the pseudo-count.

D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, Proposition 3.1 (existence); weights and bounds derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.theory.disentangled import AttentionHead, block_slices, copied_slice, forward
from marginlab.theory.errors import InvalidInput
from marginlab.theory.ngrams.counting import BOUNDARIES, checked_tokens
from marginlab.theory.ngrams.soft_matching import checked_base, checked_kappa
from marginlab.theory.validation import (
    Float,
    count,
    flag,
    float_array,
    frozen,
    non_negative,
    one_of,
    positive,
)

#: Log of the odds that the default sink keeps against all positions with a missing lag.
_SINK_ODDS = 50.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InductionNetwork:
    """Weights of the construction and what they were made of; `induction_network` makes it.

    Attributes
    ----------
    vocab_size, order : int
        V and k.
    beta : (k,) array
        Scale of each lag, lag 1 first.
    kappa : float
        Log pseudo-count of BOS.
    base : (V,) array, or None without BOS
        Law that BOS is read as.
    boundary : "interior" or "padded"
    scale, sink : float
        mu and Lambda.
    bos : bool
    layers : tuple of tuples of AttentionHead
        k heads on the embedding (width V + 1, or V without BOS), then one head on the k + 1 blocks.
    readout : (V, width of the last stream) array
    """

    vocab_size: int
    order: int
    beta: Float
    kappa: float
    base: Float | None
    boundary: str
    scale: float
    sink: float
    bos: bool
    layers: tuple[tuple[AttentionHead, ...], ...]
    readout: Float

    def embed(self, tokens: Any) -> Float:
        """One-hot rows of the tokens (T,), with BOS before them if there is one: (T + 1, V + 1) or (T, V).

        Raises
        ------
        InvalidInput
            Not integers, or a token outside the vocabulary.
        """
        array = checked_tokens(tokens, self.vocab_size)
        if not self.bos:
            return np.eye(self.vocab_size)[array]
        return np.eye(self.vocab_size + 1)[np.append(self.vocab_size, array)]

    def predict(self, tokens: Any) -> Float:
        """Law of the next token after each prefix, (T + 1, V), by one causal forward pass.

        Parameters
        ----------
        tokens : (T,) array of int in 0..V-1

        Returns
        -------
        (T + 1, V) array
            Row t follows the first t tokens. Rows without evidence are NaN: row 0 without BOS, and the rows in which
            equation (8) has no position and kappa is -inf (its weights then still attend somewhere).

        Raises
        ------
        InvalidInput
            Not integers, or a token outside the vocabulary.
        """
        X = self.embed(tokens)
        rows = np.full((len(X) + (not self.bos), self.vocab_size), np.nan)
        if len(X):
            rows[not self.bos :] = forward(X, self.layers, self.readout)
        rows[: self.first_row] = np.nan
        return rows

    def attention(self, tokens: Any) -> tuple[Float, Float]:
        """Attention maps of layer 1, (k, n, n), and of layer 2, (1, n, n); n = T + 1 with BOS at position 0, else T.

        Raises
        ------
        InvalidInput
            As `predict`, or no position at all.
        """
        first, second = forward(self.embed(tokens), self.layers, return_attention=True)[1]
        return first, second

    @property
    def first_row(self) -> int:
        """First row of `predict` with evidence."""
        if not self.bos or self.kappa > -np.inf:
            return int(not self.bos)
        return 1 if self.boundary == "padded" else self.order + 1


def induction_network(
    vocab_size: int,
    order: int,
    beta: Any,
    *,
    kappa: float = -np.inf,
    base: Any = None,
    boundary: str = "interior",
    scale: float = 45.0,
    sink: float | None = None,
    bos: bool = True,
) -> InductionNetwork:
    r"""The network whose rows tend to soft context matching, equation (8), as `scale` and `sink` grow.

    Parameters
    ----------
    vocab_size, order : int >= 1
        V and k.
    beta : float or (k,) array
        One scale per lag, lag 1 first, of any sign; a number is that of every lag.
    kappa : float
        Log pseudo-count of BOS; -inf: no position attends to BOS.
    base : (V,) array, optional
        Law that BOS is read as, uniform by default.
    boundary : "interior" or "padded"
        Positions that count: those with k lags inside the sequence, or all, a missing lag never matching.
    scale : float > 0
        mu: a lag head scores its lag 2 mu and BOS mu.
    sink : float >= 0, optional
        Lambda, what a missing lag costs; interior only. By default large enough for double precision.
    bos : bool
        Without BOS: no pseudo-count and no base, and positions s <= k stay (the limit is `no_bos_boundary_law`).

    Raises
    ------
    InvalidInput
        An argument that breaks these rules, or kappa, base, padded or sink given to a network without BOS.

    Notes
    -----
    With D = V + 1, 1 the sum of the tokens' unit vectors, e the one of BOS, and blocks 0..k of width D:

    - layer 1, head l: A = mu (1 + e) e^T, r_d = 2 mu [d = l]. It copies x_{t-l}, or BOS where t <= l.
    - layer 2: blocks (l - 1, l) hold beta_l on the tokens' diagonal; block (0, 0) holds kappa' 1 e^T, where kappa' is
      kappa for padded and kappa + k Lambda for interior, whose blocks (0, l) hold -Lambda 1 e^T: BOS pays k Lambda and
      gets it back, positions s > k pay nothing, and positions s <= k pay Lambda for each missing lag.
    - read-out of block 0 of that head: tokens to themselves, BOS to base.

    Missing lags of the query never match, because the diagonal of block (l - 1, l) leaves out BOS. For kappa = -inf the
    entry of block (0, 0) is -inf; BOS itself as the query has no token in block 0, so that it still has a key.
    Without BOS, D = V and layer 1 has A = 0: a head without its lag averages the prefix.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800, Proposition 3.1; the weights are derived.

    Examples
    --------
    >>> induction_network(2, 1, 50.0, kappa=50.0).predict([0, 1, 0, 1]).round(3)[-2:]
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    V, k = count(vocab_size, "vocab_size"), count(order, "order")
    scales = float_array(beta, "beta")
    if np.ndim(beta) == 0:
        scales = np.full(k, scales.item())
    if scales.shape != (k,):
        raise InvalidInput(f"beta must be a number or have shape ({k},), one per lag, got {scales.shape}.")
    kappa, mu = checked_kappa(kappa), positive(scale, "scale")
    one_of(boundary, "boundary", BOUNDARIES)
    bos = flag(bos, "bos")
    interior = boundary == "interior"
    if not bos:
        given = {
            "kappa": kappa > -np.inf,
            "base": base is not None,
            "padded": not interior,
            "sink": sink is not None,
        }
        for name, wrong in given.items():
            if wrong:
                raise InvalidInput(
                    f"a network without BOS must have none of kappa, base, padded, sink; got {name}."
                )
    law = checked_base(base, V) if bos else None
    cost = 0.0 if sink is None else non_negative(sink, "sink")
    if not interior and cost > 0:
        raise InvalidInput(f"sink must be zero for a padded boundary, got {cost}.")
    if sink is None and bos and interior:
        cost = _sink(scales, kappa)

    D = V + bos
    layers = (
        tuple(_lag_head(lag, D, mu, bos) for lag in range(1, k + 1)),
        (_matching_head(scales, kappa, cost, D, bos),),
    )
    blocks = block_slices(D, layers)
    copied = copied_slice(blocks, 2, 0, blocks[0][0])
    readout = np.zeros((V, blocks[-1][-1].stop))
    readout[:, copied.start : copied.start + V] = np.eye(V)
    if law is not None:
        readout[:, copied.start + V] = law
    return InductionNetwork(
        vocab_size=V,
        order=k,
        beta=frozen(scales),
        kappa=kappa,
        base=None if law is None else frozen(law),
        boundary=boundary,
        scale=mu,
        sink=cost,
        bos=bos,
        layers=layers,
        readout=frozen(readout),
    )


def _sink(beta: Float, kappa: float) -> float:
    """A sink with which the positions s <= k keep e^-50 of the mass, however large the scales are.

    The heaviest one lacks one lag and matches the others; against it stand BOS, or one position that matches where
    the scales are negative.
    """
    early = np.maximum(beta[:-1], 0).sum()
    rest = kappa if kappa > -np.inf else -np.maximum(-beta, 0).sum()
    return _SINK_ODDS + max(0.0, float(early - rest))


def _lag_head(lag: int, width: int, mu: float, bos: bool) -> AttentionHead:
    score, relative = np.zeros((width, width)), np.zeros(lag + 1)
    if bos:
        score[:, -1] = mu
    relative[lag] = 2 * mu
    return AttentionHead(score=score, relative=relative)


def _matching_head(beta: Float, kappa: float, sink: float, width: int, bos: bool) -> AttentionHead:
    k, V = len(beta), width - bos
    blocks = np.zeros((k + 1, width, k + 1, width))
    tokens = np.arange(V)
    for lag, b in enumerate(beta, start=1):
        blocks[lag - 1, tokens, lag, tokens] = b
        if bos:
            blocks[0, :V, lag, V] -= sink
    if bos:
        blocks[0, :V, 0, V] = kappa + k * sink
    return AttentionHead(score=blocks.reshape((k + 1) * width, -1))
