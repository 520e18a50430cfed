"""Samples of in-context n-gram tasks: rows by the prior, sequences by the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginlab.theory.errors import InvalidInput
from marginlab.theory.markov import context_codes, sample_chains
from marginlab.theory.ngrams.task import NGramTask
from marginlab.theory.validation import Float, Int, count, frozen, named_stream, seed_sequence

# Child streams of the seed: those of the chains, then two for the rows of each order r.
_CHAINS, _FIRST_ORDER = range(2)

#: Entries of the rows of one sample (8 bytes each) above which it is refused.
MOST_ENTRIES = 2**30


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NGramData:
    """n sequences of a task and the chains that they come from; all arrays are read-only.

    Attributes
    ----------
    task : NGramTask
    tokens : (n, T) array of int
        x_1..x_T, oldest first.
    levels : tuple of (n, V^r, V) arrays
        Rows of the contexts of length r = r_0..k, lag 1 the least significant digit of a context; for independent rows
        those of order k alone.
    """

    task: NGramTask
    tokens: Int
    levels: tuple[Float, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def rows(self) -> Float:
        """Rows of order k that drive the chains, (n, V^k, V)."""
        return self.levels[-1]

    @property
    def next_rows(self) -> Float:
        """True law of the token after the last one, (n, V)."""
        return self.laws_at(self.tokens.shape[1])

    def laws_at(self, t: int) -> Float:
        """True law of x_{t+1} given x_1..x_t, (n, V).

        Parameters
        ----------
        t : int in k..T
            Number of tokens seen.

        Raises
        ------
        InvalidInput
            Another t.
        """
        k, T = self.task.order, self.tokens.shape[1]
        if not k <= count(t, "t", least=0) <= T:
            raise InvalidInput(f"t must lie in {k}..{T}, the order to the length, got {t}.")
        codes = context_codes(self.tokens[:, t - k : t], self.task.vocab_size, k)[:, 0]
        return self.rows[np.arange(len(self)), codes]


def sample(task: NGramTask, n: int, length: int, seed: int | np.random.SeedSequence) -> NGramData:
    r"""n sequences of `length` tokens, each of a chain of its own.

    The same task and seed give the same data. A larger n only appends sequences (with their rows), a larger `length`
    only appends tokens, and another start leaves the rows as they are. A `SeedSequence` is read, never spawned from.

    Dirichlet rows are normalised gamma variables on a logarithmic scale,
    :math:`\log G_a = \log G_{a + 1} - E / a` with E exponential, so that small concentrations do not end in 0/0; an
    entry below the range of float64 is exactly 0.

    Parameters
    ----------
    task : NGramTask
    n : int >= 1
    length : int >= k
        T.
    seed : int >= 0 or SeedSequence

    Raises
    ------
    InvalidInput
        A rule above is broken; a sample of more than `MOST_ENTRIES` row entries; or a stationary start for rows with
        so small a concentration that, rounded to float64, a chain has no single stationary law.
    MethodUnavailable
        A stationary start from too many contexts.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800 (the priors); Marsaglia, Tsang, ACM Trans. Math. Softw.
    26 (2000) 363 for the gamma variables of small shape.

    Examples
    --------
    >>> data = sample(NGramTask(vocab_size=3, order=2), n=4, length=10, seed=0)
    >>> data.tokens.shape, data.rows.shape, data.next_rows.shape
    ((4, 10), (4, 9, 3), (4, 3))
    """
    n, T, root = count(n, "n"), count(length, "length"), seed_sequence(seed)
    if task.order > T:
        raise InvalidInput(f"length must be at least the order {task.order}, got {T}.")
    if n * task.contexts * task.vocab_size > MOST_ENTRIES:
        raise InvalidInput(
            f"the rows of a sample must have at most {MOST_ENTRIES} entries, got n V^(k+1) = "
            f"{n} * {task.vocab_size}^{task.order + 1}."
        )
    levels = _levels(task, n, root)
    chains = np.random.SeedSequence(
        root.entropy, spawn_key=(*root.spawn_key, _CHAINS), pool_size=root.pool_size
    )
    tokens = sample_chains(levels[-1], T, start=task.start, seed=chains)
    return NGramData(task=task, tokens=frozen(tokens), levels=tuple(frozen(level) for level in levels))


def _levels(task: NGramTask, n: int, root: np.random.SeedSequence) -> list[Float]:
    """Rows of the contexts of each length from the first one that has rows to k."""
    V, r0 = task.vocab_size, task.first_order
    levels = [_dirichlet(np.full((n, V**r0, V), task.alpha), root, r0)]
    for r, concentration in enumerate(task.concentrations, start=r0 + 1):
        # A longer context's code is b V^(r-1) + code of its suffix: the parents repeat for each older token b.
        parents = np.tile(levels[-1], (1, V, 1))
        levels.append(_dirichlet(concentration * parents, root, r))
    return levels


def _dirichlet(shape: Float, root: np.random.SeedSequence, order: int) -> Float:
    """Dirichlet laws along the last axis with the parameters `shape` >= 0, those at 0 giving 0."""
    key = _FIRST_ORDER + 2 * order
    log_gamma = np.log(named_stream(root, key).standard_gamma(shape + 1))
    exponential = named_stream(root, key + 1).standard_exponential(shape.shape)
    with np.errstate(over="ignore"):  # -inf: an entry of 0
        log_gamma -= np.divide(exponential, shape, out=np.full(shape.shape, np.inf), where=shape > 0)
    weights = np.exp(log_gamma - log_gamma.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
