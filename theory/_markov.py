"""Compiled kernels of order-k chains: stationary laws by elimination without subtraction, and the walk.

A context is packed with lag 1 as its least significant digit, so that token m leads from `code` to
(code V + m) mod V^k. Kernels that call each other share this file: numba's cache on disk knows only the file
that a function stands in.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Range in which a sum of products has lost nothing that matters to underflow.
LOW, HIGH = 1e-290, 1e290


@njit(cache=True)
def _reach(rows, start, backward, seen, stack):
    """Mark in `seen` what `start` leads to by positive steps (backward: what leads to it); the number newly marked."""
    states, vocab = rows.shape
    older = max(states // vocab, 1)
    seen[start] = True
    stack[0] = start
    top = marked = 1
    while top > 0:
        top -= 1
        code = stack[top]
        for m in range(vocab):
            if backward:
                other = (code // vocab + m * older) % states
                positive = rows[other, code % vocab] > 0
            else:
                other = (code * vocab + m) % states
                positive = rows[code, m] > 0
            if positive and not seen[other]:
                seen[other] = True
                stack[top] = other
                top += 1
                marked += 1
    return marked


@njit(cache=True)
def _closed_class(rows, seen, stack, members):
    """States of the only closed class, in order, into `members`; their number, or 0 if there are several classes.

    The class is the only one if and only if some state is reached from all. If there is such a state, the last root
    of a search along reversed steps is one.
    """
    states = len(rows)
    seen[:] = False
    root = 0
    for code in range(states):
        if not seen[code]:
            root = code
            _reach(rows, code, True, seen, stack)
    seen[:] = False
    if _reach(rows, root, True, seen, stack) < states:
        return 0
    seen[:] = False
    size = 0
    _reach(rows, root, False, seen, stack)
    for code in range(states):
        if seen[code]:
            members[size] = code
            size += 1
    return size


@njit(cache=True)
def _load(rows, members, size, place, rates):
    """Transition rates among the members of a closed class into rates[:size, :size]."""
    states, vocab = rows.shape
    for i in range(size):
        place[members[i]] = i
        for j in range(size):
            rates[i, j] = 0.0
    for i in range(size):
        for m in range(vocab):
            if rows[members[i], m] > 0:
                rates[i, place[(members[i] * vocab + m) % states]] = rows[members[i], m]


@njit(cache=True)
def _eliminate(rates, size, x):
    """Stationary measure of an irreducible chain, x[0] = 1; False if a number leaves the safe range.

    Grassmann, Taksar, Heyman: censor one state after the other; the probability of leaving one is the sum of its
    rates, never 1 minus something, so that nothing is ever subtracted.
    """
    for s in range(size - 1, 0, -1):
        total = 0.0
        for j in range(s):
            total += rates[s, j]
        least = 1.0  # no product below underflows, so that the total of an irreducible chain is above zero
        for j in range(s):
            rates[s, j] /= total
            if rates[s, j] > 0:
                least = min(least, rates[s, j])
        for i in range(s):
            rate = rates[i, s]
            if rate > 0:
                if rate * least < LOW:
                    return False
                for j in range(s):
                    rates[i, j] += rate * rates[s, j]
                rates[i, s] = rate / total
    x[0] = 1.0
    for s in range(1, size):
        mass = 0.0
        for i in range(s):
            mass += x[i] * rates[i, s]
        x[s] = mass
        if not (LOW <= mass <= HIGH):
            return False
    return True


@njit(cache=True)
def _log_add(a, b):
    """log(e^a + e^b)."""
    top, low = max(a, b), min(a, b)
    return top if low == -np.inf else top + np.log1p(np.exp(low - top))


@njit(cache=True)
def _eliminate_logs(rates, size, x):
    """`_eliminate` on logarithms of the rates (in place); x is the logarithm of the measure, x[0] = 0."""
    for s in range(size - 1, 0, -1):
        total = -np.inf
        for j in range(s):
            total = _log_add(total, rates[s, j])
        for j in range(s):
            rates[s, j] -= total
        for i in range(s):
            rate = rates[i, s]
            if rate > -np.inf:
                for j in range(s):
                    rates[i, j] = _log_add(rates[i, j], rate + rates[s, j])
                rates[i, s] = rate - total
    x[0] = 0.0
    for s in range(1, size):
        x[s] = -np.inf
        for i in range(s):
            x[s] = _log_add(x[s], x[i] + rates[i, s])


@njit(cache=True)
def stationary_laws(rows, out):
    """Stationary law of each of c chains, rows (c, V^k, V), into out (c, V^k).

    Returns the number of the first chain whose law is not unique, -1 if there is none.
    """
    chains, states, _ = rows.shape
    seen = np.empty(states, np.bool_)
    stack, members, place = np.empty(states, np.int64), np.empty(states, np.int64), np.empty(states, np.int64)
    rates, x = np.empty((states, states)), np.empty(states)
    for c in range(chains):
        size = _closed_class(rows[c], seen, stack, members)
        if size == 0:
            return c
        _load(rows[c], members, size, place, rates)
        if not _eliminate(rates, size, x):
            _load(rows[c], members, size, place, rates)
            for i in range(size):
                for j in range(size):
                    rates[i, j] = np.log(rates[i, j]) if rates[i, j] > 0 else -np.inf
            _eliminate_logs(rates, size, x)
            top = x[:size].max()
            for i in range(size):
                x[i] = np.exp(x[i] - top)
        total = x[:size].sum()
        out[c, :] = 0.0
        for i in range(size):
            out[c, members[i]] = x[i] / total
    return -1


@njit(cache=True)
def _pick(law, u):
    """Smallest symbol whose cumulative probability exceeds u; never one of probability 0."""
    total, last = 0.0, 0
    for m in range(len(law)):
        if law[m] > 0:
            last = m
            total += law[m]
            if u < total:
                return m
    return last  # u above the rounded sum


@njit(cache=True)
def pick_each(laws, uniforms, out):
    """Symbol of each uniform number under its law; laws (n, S), or (1, S) for all."""
    shared = len(laws) == 1
    for i in range(len(uniforms)):
        out[i] = _pick(laws[0 if shared else i], uniforms[i])


@njit(cache=True)
def walk(rows, codes, uniforms, out):
    """Next tokens of n chains from the contexts `codes`, which move on; rows (n, V^k, V), or (1, V^k, V) for all."""
    n, steps = out.shape
    shared = len(rows) == 1
    _, states, vocab = rows.shape
    for i in range(n):
        chain = rows[0 if shared else i]
        code = codes[i]
        for t in range(steps):
            m = _pick(chain[code], uniforms[i, t])
            out[i, t] = m
            code = (code * vocab + m) % states
        codes[i] = code
