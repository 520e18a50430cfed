"""Markov chains of order k on V tokens: their stationary laws, their entropy rates, samples of them.

A context is the last k tokens, packed as the integer sum_l u_l V^(l-1) with u_l the token at lag l: lag 1, the newest
token, is the least significant digit. The rows of a chain are an array (V^k, V), row `code` the law of the next token
after that context. The lifted chain, of order one on contexts, goes from `code` to (code V + m) mod V^k with
probability rows[code, m]. Order 0 (one row) is a sequence of independent tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from marginlab.theory.errors import InvalidInput, MethodUnavailable
from marginlab.theory.validation import Float, Int, count, float_array, named_stream, seed_sequence

# Child streams of the seed of a sample: the start, then one for each stretch of the walk.
_START, _FIRST_STRETCH = range(2)

Seed = int | np.random.SeedSequence

#: Steps of one stretch; each stretch has a stream of its own, so that more of them only append.
_STRETCH = 64

#: Contexts up to which the stationary law is solved for (a square table of them is eliminated).
MOST_CONTEXTS = 4096


def checked_rows(rows: Any, vocab_size: int, *, name: str = "rows") -> tuple[Float, int]:
    """Rows of chains as float64, and their order.

    Parameters
    ----------
    rows : (..., V^k, V) array-like
        Each row a law of the next token: entries >= 0 that sum to 1 to rounding.
    vocab_size : int >= 2
        V.
    name : str
        How messages call them.

    Returns
    -------
    (..., V^k, V) array, and k >= 0

    Raises
    ------
    InvalidInput
        Another shape, an empty axis, a number that is not finite or below zero, or a row that does not sum to 1.
    """
    V = count(vocab_size, "vocab_size", least=2)
    array = float_array(rows, name)
    order, contexts = 0, 1
    while array.ndim >= 2 and contexts < array.shape[-2]:
        order, contexts = order + 1, contexts * V
    if array.ndim < 2 or array.shape[-2:] != (contexts, V) or array.size == 0:
        raise InvalidInput(
            f"{name} must have shape (..., V^k, V) with V = {V} and no empty axis, got {array.shape}."
        )
    _check_laws(array, name)
    return array, order


def _check_laws(array: Float, name: str) -> None:
    """Raise unless the last axis of `array` holds laws."""
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise InvalidInput(f"{name} must hold probabilities >= 0, got {array[where]} at index {where}.")
    sums = array.sum(axis=-1)
    # A law that was divided by its sum: half an ulp for each entry and for each addition, twice over.
    wrong = np.abs(sums - 1) > 2 * (array.shape[-1] + 4) * np.finfo(np.float64).eps
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"{name}[{', '.join(map(str, where))}]" if where else name
        raise InvalidInput(
            f"{name} must sum to 1 along the last axis, the sum of {place} is {float(sums[where])!r}."
        )


def context_codes(tokens: Any, vocab_size: int, order: int) -> Int:
    """Packed contexts after each number t = k..T of tokens.

    Parameters
    ----------
    tokens : (..., T) array-like of int, T >= k
        Oldest first, in 0..V-1.
    vocab_size : int >= 2
    order : int >= 0
        k.

    Returns
    -------
    (..., T - k + 1) array of int
        Entry i is the code of the context after t = k + i tokens, lag 1 its least significant digit.

    Raises
    ------
    InvalidInput
        Tokens that are no integers, outside the vocabulary, or fewer than k; or more contexts than 64 bits hold.
    """
    V, k = count(vocab_size, "vocab_size", least=2), count(order, "order", least=0)
    array = _tokens(tokens, V, "tokens")
    if array.shape[-1] < k:
        raise InvalidInput(
            f"tokens must have at least order = {k} along the last axis, got shape {array.shape}."
        )
    if V**k > np.iinfo(np.intp).max:
        raise InvalidInput(f"contexts must be packed into 64 bits, got V^k = {V}^{k}.")
    starts = array.shape[-1] - k + 1
    codes = np.zeros((*array.shape[:-1], starts), dtype=np.intp)
    for position in range(k):  # oldest lag first
        codes = codes * V + array[..., position : position + starts]
    return codes


def _tokens(tokens: Any, V: int, name: str) -> Int:
    array = np.asarray(tokens)
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must hold integers, got dtype {array.dtype}.")
    if array.ndim < 1:
        raise InvalidInput(f"{name} must be a sequence, got the number {array}.")
    bad = (array < 0) | (array >= V)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InvalidInput(
            f"{name} must lie in 0..{V - 1} (the vocabulary), got {array[where]} at index {where}."
        )
    return np.ascontiguousarray(array, dtype=np.intp)


def stationary_distribution(rows: Any, vocab_size: int) -> Float:
    r"""Stationary law over contexts of each chain.

    It is solved for by elimination without subtraction: states are censored one after the other, and the chance to
    leave a state is the sum of its rates, not 1 minus the chance to stay. Every entry so keeps its relative accuracy,
    a modest multiple of V^k roundings, however small it is and however nearly the chain falls apart. Rates whose
    products leave the range of float64 are eliminated as logarithms. The chance to stay in a context is therefore
    read as 1 minus the rest of its row, and a rounded sum of a row does no harm. Time is cubic in V^k.

    Parameters
    ----------
    rows : (..., V^k, V) array-like
        Laws of the next token; zeros are allowed.
    vocab_size : int >= 2

    Returns
    -------
    (..., V^k) array
        Exactly 0 on transient contexts.

    Raises
    ------
    InvalidInput
        Rows that are no laws; or a chain with several closed classes of contexts, which has no single stationary
        law (the first such chain and its classes are named).
    MethodUnavailable
        More than `MOST_CONTEXTS` contexts.

    References
    ----------
    Grassmann, Taksar, Heyman, Oper. Res. 33 (1985) 1107; relative accuracy: O'Cinneide, Numer. Math. 65 (1993) 109.

    Examples
    --------
    >>> stationary_distribution([[0.9, 0.1], [0.3, 0.7]], 2).round(12).tolist()
    [0.75, 0.25]
    """
    array, order = checked_rows(rows, vocab_size)
    return _stationary(array, order)


def _stationary(array: Float, order: int) -> Float:
    from marginlab.theory._markov import stationary_laws

    contexts, V = array.shape[-2:]
    if contexts > MOST_CONTEXTS:
        raise MethodUnavailable(
            f"a stationary law is solved for at most {MOST_CONTEXTS} contexts, got V^k = {contexts}: "
            "start from the uniform law or give the first tokens."
        )
    flat = array.reshape(-1, contexts, V)
    laws = np.empty(flat.shape[:2])
    first = stationary_laws(_read_only(flat), laws)
    if first >= 0:
        where = ", ".join(str(int(i)) for i in np.unravel_index(first, array.shape[:-2]))
        raise InvalidInput(
            f"the stationary law of {f'rows[{where}]' if where else 'rows'} must be unique, but its contexts "
            f"(lag 1 first) fall into {_closed_classes(flat[first], order)}."
        )
    return laws.reshape(array.shape[:-1])


def _read_only(array: Float) -> Float:
    """View of `array` that cannot be written through: kernels are compiled for one kind of array only."""
    view = array.view()
    view.flags.writeable = False
    return view


def _closed_classes(rows: Float, order: int) -> str:
    """Closed communicating classes of the lifted chain of one (V^k, V) array, each by its first contexts."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    contexts, V = rows.shape
    source, token = np.nonzero(rows)
    target = (source * V + token) % contexts
    graph = csr_array((np.ones(len(source)), (source, target)), shape=(contexts, contexts))
    number, label = connected_components(graph, connection="strong")
    left = label[source[label[source] != label[target]]]
    closed = np.setdiff1d(np.arange(number), left)
    shown = []
    for members in (np.flatnonzero(label == c) for c in closed[:3]):
        first = [str(tuple(int(code) // V**lag % V for lag in range(order))) for code in members[:3]]
        shown.append("{" + ", ".join(first + ["..."] * (len(members) > 3)) + "}")
    return f"{len(closed)} closed classes: {'; '.join(shown + ['...'] * (len(closed) > 3))}"


def entropy_rate(rows: Any, vocab_size: int) -> Float:
    """Entropy rate in nats per token of each stationary chain, the mean entropy of its rows under the stationary law.

    Parameters
    ----------
    rows : (..., V^k, V) array-like
    vocab_size : int >= 2

    Returns
    -------
    (...) array (one chain: a scalar)

    Raises
    ------
    InvalidInput, MethodUnavailable
        As `stationary_distribution`.

    References
    ----------
    Cover, Thomas, Elements of Information Theory, Theorem 4.2.4.
    """
    from scipy.special import entr

    array, order = checked_rows(rows, vocab_size)
    return (_stationary(array, order) * entr(array).sum(axis=-1)).sum(axis=-1)


def sample_chains(rows: Any, length: int, *, seed: Seed, start: Any = "uniform", n: int | None = None) -> Int:
    """Sequences of order-k chains, oldest token first.

    The same rows, start and seed give the same tokens. A longer `length` only appends tokens to each sequence, and
    more sequences (a larger `n`, or more chains after the first ones) leave those before as they are. A `SeedSequence`
    is read, never spawned from.

    Parameters
    ----------
    rows : (n, V^k, V) or (V^k, V) array-like
        One chain for each sequence, or one chain for all; V >= 2 is the length of the last axis.
    length : int >= max(k, 1)
        T.
    seed : int >= 0 or SeedSequence
    start : str or array-like
        The first k tokens: "uniform", independent and uniform; "stationary", a context from the chain's stationary
        law; a law over contexts, (V^k,) or (n, V^k); or the tokens themselves, integers (k,) or (n, k), oldest first.
        Laws and tokens are told apart by the length of the last axis.
    n : int >= 1, optional
        Number of sequences; needed for rows (V^k, V), and equal to the first axis for the others if given.

    Returns
    -------
    (n, T) array of int

    Raises
    ------
    InvalidInput
        A rule above is broken, or a stationary law is not unique.
    MethodUnavailable
        A stationary start from more than `MOST_CONTEXTS` contexts.

    Examples
    --------
    >>> sample_chains([[0.0, 1.0], [1.0, 0.0]], 5, seed=0, start=[0], n=2).tolist()
    [[0, 1, 0, 1, 0], [0, 1, 0, 1, 0]]
    """
    from marginlab.theory._markov import walk

    given = float_array(rows, "rows")
    if given.ndim not in (2, 3):
        raise InvalidInput(f"rows must have shape (n, V^k, V) or (V^k, V), got {given.shape}.")
    V = given.shape[-1]
    if V < 2:
        raise InvalidInput(f"rows must be laws of at least 2 tokens, got shape {given.shape}.")
    array, k = checked_rows(given, V)
    size = _number(array, n)
    T, root = count(length, "length"), seed_sequence(seed)
    if k > T:
        raise InvalidInput(f"length must be at least the order {k}, got {T}.")
    chains = _read_only(array.reshape(-1, *array.shape[-2:]))
    first = _first_tokens(start, array, k, size, named_stream(root, _START))
    tokens = np.empty((size, T), dtype=np.intp)
    tokens[:, :k] = first
    codes = context_codes(first, V, k)[:, 0].astype(np.int64)
    for stretch, begin in enumerate(range(k, T, _STRETCH)):
        uniforms = named_stream(root, _FIRST_STRETCH + stretch).random((size, _STRETCH))
        walk(chains, codes, uniforms, tokens[:, begin : begin + _STRETCH])
    return tokens


def _number(array: Float, n: int | None) -> int:
    if array.ndim == 2:
        if n is None:
            raise InvalidInput(
                f"n must say how many sequences to draw of one chain, rows have shape {array.shape}."
            )
        return count(n, "n")
    if n is not None and count(n, "n") != len(array):
        raise InvalidInput(f"n must be the number of chains, {len(array)}, or left out, got {n}.")
    return len(array)


def _first_tokens(start: Any, array: Float, k: int, n: int, rng: np.random.Generator) -> Int:
    """First k tokens of each sequence, (n, k)."""
    from marginlab.theory._markov import pick_each

    contexts, V = array.shape[-2:]
    if isinstance(start, str):
        if start not in ("uniform", "stationary"):
            raise InvalidInput(
                f"start must be uniform, stationary, a law or the first tokens; got {start!r}."
            )
        if start == "uniform":
            return rng.integers(0, V, size=(n, k)).astype(np.intp)
        laws = _stationary(array, k)
    else:
        try:
            given = np.asarray(start)
        except ValueError as error:
            raise InvalidInput(f"start must be a rectangular array: {error}.") from None
        fits = given.ndim in (1, 2) and given.shape[:-1] in ((), (n,)) and given.shape[-1] in (k, contexts)
        if not fits:
            raise InvalidInput(
                f"start must be a law over contexts, ({contexts},) or ({n}, {contexts}), or the first tokens, "
                f"({k},) or ({n}, {k}); got shape {given.shape}."
            )
        if given.shape[-1] == k:
            return np.broadcast_to(_tokens(given if k else given.astype(np.intp), V, "start"), (n, k))
        laws = float_array(given, "start")
        _check_laws(laws, "start")
    codes = np.empty(n, dtype=np.intp)
    pick_each(_read_only(laws.reshape(-1, contexts)), rng.random(n), codes)
    return codes[:, None] // V ** np.arange(k - 1, -1, -1) % V
