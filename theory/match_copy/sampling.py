"""Samples of Gaussian match-and-copy (Definition 1.1), one named stream for each random quantity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginlab.theory.match_copy.task import MatchCopyTask, query_noise_factor
from marginlab.theory.validation import Float, Int, count, frozen, named_stream, seed_sequence

# Child streams of a sample's seed. One stream each: the first n samples do not change when n grows, and
# the tokens do not change when the noise is switched off.
_TOKENS, _MATCH, _QUERY, _TARGET = range(4)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchCopyData:
    """n samples of a task; all arrays are read-only.

    Attributes
    ----------
    task : MatchCopyTask
    tokens : (n, T, d_in) array
        Context e_1..e_T, in order.
    query : (n, d_in) array
    target : (n, d_out) array
    match : (n,) array of int
        Hidden position t_0, counted from 0: in 0..T-2. The token to copy is ``tokens[i, match[i] + 1]``.
    W_V : (d_out, d_in) array
    """

    task: MatchCopyTask
    tokens: Float
    query: Float
    target: Float
    match: Int
    W_V: Float

    def __len__(self) -> int:
        return len(self.match)


def sample(task: MatchCopyTask, n: int, seed: int | np.random.SeedSequence) -> MatchCopyData:
    """n independent samples of Definition 1.1.

    The same task and seed give the same data, whatever else was drawn before; a larger n only appends. A
    `SeedSequence` is read, never spawned from.

    Parameters
    ----------
    task : MatchCopyTask
    n : int >= 1
    seed : int >= 0 or SeedSequence

    Raises
    ------
    InvalidInput
        n < 1, or a seed that is neither.

    References
    ----------
    Gonon, Cordonnier, Boumal, arXiv 2602.07562v1, Definition 1.1; eq. (6) for the noiseless template.

    Examples
    --------
    >>> data = sample(MatchCopyTask.template(T=4, d=16, coordinate_std=1.0), n=8, seed=0)
    >>> data.tokens.shape, data.match.shape
    ((8, 4, 16), (8,))
    """
    n = count(n, "n")
    root = seed_sequence(seed)
    std, rows = task.coordinate_std, np.arange(n)
    tokens = std * named_stream(root, _TOKENS).standard_normal((n, task.T, task.d_in))
    match = named_stream(root, _MATCH).integers(0, task.T - 1, size=n).astype(np.intp)
    query = matched = tokens[rows, match]
    if not task.exact:
        C = task.match_matrix
        xi = std * named_stream(root, _QUERY).standard_normal((n, task.d_in))
        query = matched @ C.T + xi @ query_noise_factor(C).T
    W_V = task.copy_matrix
    target = tokens[rows, match + 1] if task.copy == "identity" else tokens[rows, match + 1] @ W_V.T
    if task.noise > 0:
        target = target + task.noise * named_stream(root, _TARGET).standard_normal(target.shape)
    return MatchCopyData(
        task=task,
        tokens=frozen(tokens),
        query=frozen(query),
        target=frozen(target),
        match=frozen(match),
        W_V=frozen(W_V),
    )
