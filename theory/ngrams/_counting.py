"""Compiled one-pass counting of contexts by sets of lags: dense tables, and hashed ones that grow.

At row t (the first t tokens are known) the query has a context for each mask S of lags up to t. The kernels read the
counts of what followed that context, and then count the token that follows. A context's identity is built along
``parent[S]``, S without its oldest lag ``lag[S]``, so that a token costs one step a mask.

Kernels that call each other share this file: numba's cache on disk knows only the file that a function stands in.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Columns of the statistics of a realised symbol.
COUNT, TOTAL, TYPES, CUSTOMERS, CUSTOMER_TOTAL, CUSTOMER_TYPES, BELOW = range(7)


@njit(cache=True)
def _dense_ids(tokens, t, vocab, lag, parent, power, offset, code, ids):
    """Context number of every mask at row t, -1 where a lag reaches before the first token; the number of masks."""
    code[0] = 0
    ids[0] = 0
    for j in range(1, len(lag)):
        if lag[j] > t:
            ids[j] = -1
        else:
            code[j] = code[parent[j]] + tokens[t - lag[j]] * power[j]
            ids[j] = offset[j] + code[j]


@njit(cache=True)
def dense_rows(
    tokens, start, stop, order, padded, lag, parent, power, offset, counts, customers, out, out_customers
):
    """Counts of every next symbol, (stop - start, masks, V), for rows start..stop-1; then those tokens are counted.

    ``customers`` are Kneser-Ney's counts along nested masks (each mask the parent of the next): a token is a customer
    of its longest context, and of a shorter one each time that it is new in the context above. Empty: not kept.
    """
    masks, vocab = len(lag), counts.shape[1]
    code, ids = np.empty(masks, np.int64), np.empty(masks, np.int64)
    nested = len(customers) > 0
    for t in range(start, stop):
        _dense_ids(tokens, t, vocab, lag, parent, power, offset, code, ids)
        row = t - start
        for j in range(masks):
            i = ids[j]
            for m in range(vocab):
                out[row, j, m] = 0 if i < 0 else counts[i, m]
            if nested:
                for m in range(vocab):
                    out_customers[row, j, m] = 0 if i < 0 else customers[i, m]
        if t < len(tokens) and (padded or t >= order):
            m = tokens[t]
            for j in range(masks):
                if ids[j] >= 0:
                    counts[ids[j], m] += 1
            if nested:
                for j in range(masks - 1, -1, -1):
                    if ids[j] >= 0:
                        customers[ids[j], m] += 1
                        if customers[ids[j], m] > 1:
                            break


@njit(cache=True)
def dense_batch(
    tokens, first, order, padded, lag, parent, power, offset, counts, customers, out, out_customers
):
    """`dense_rows` of each of n sequences, rows first..T: out is (n, T + 1 - first, masks, V)."""
    n, length = tokens.shape
    scratch = np.empty((first, out.shape[2], out.shape[3]), out.dtype)
    scratch_customers = np.empty_like(scratch) if len(customers) > 0 else np.empty((0, 0, 0), out.dtype)
    for i in range(n):
        counts[:] = 0
        customers[:] = 0
        dense_rows(
            tokens[i],
            0,
            first,
            order,
            padded,
            lag,
            parent,
            power,
            offset,
            counts,
            customers,
            scratch,
            scratch_customers,
        )
        dense_rows(
            tokens[i], first, length + 1, order, padded, lag, parent, power, offset, counts, customers, out[i],
            out_customers[i],
        )  # fmt: skip


@njit(cache=True)
def dense_symbols(tokens, start, stop, order, padded, lag, parent, power, offset, counts, totals, out):
    """Count of the realised symbol and total of its context, out (stop - start, masks, 2), for rows start..stop-1."""
    masks, vocab = len(lag), counts.shape[1]
    code, ids = np.empty(masks, np.int64), np.empty(masks, np.int64)
    for t in range(start, stop):
        _dense_ids(tokens, t, vocab, lag, parent, power, offset, code, ids)
        row, m = t - start, tokens[t]
        counted = padded or t >= order
        for j in range(masks):
            i = ids[j]
            if i < 0:
                out[row, j, 0] = 0
                out[row, j, 1] = 0
                continue
            out[row, j, 0] = counts[i, m]
            out[row, j, 1] = totals[i]
            if counted:
                counts[i, m] += 1
                totals[i] += 1


# ---- Hashed tables ----
# contexts (int32 columns): parent, token, mask | first entry, total, types, customers, types of customers
# entries  (int32 columns): context, symbol | next entry of the context, count, customers
PARENT, TOKEN, MASK, HEAD, C_TOTAL, C_TYPES, C_CUSTOMERS, C_CUSTOMER_TYPES = range(8)
CONTEXT, SYMBOL, NEXT, E_COUNT, E_CUSTOMERS = range(5)
CONTEXT_COLUMNS, ENTRY_COLUMNS = 8, 5


@njit(cache=True)
def _mix(a, b, c):
    """64-bit mix of three small integers (the finaliser of splitmix64)."""
    h = (
        np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
        + np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
        + np.uint64(c)
    )
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(cache=True)
def _context(parent, token, mask, slots, contexts, used, create):
    """Number of the context (parent, token at the oldest lag of mask), made if it is new; -1 if not made."""
    last = np.uint64(len(slots) - 1)
    place = _mix(parent, token, mask) & last
    while slots[place] >= 0:
        i = slots[place]
        if contexts[i, PARENT] == parent and contexts[i, TOKEN] == token and contexts[i, MASK] == mask:
            return i
        place = (place + np.uint64(1)) & last
    if not create:
        return -1
    i = used[0]
    used[0] += 1
    slots[place] = i
    contexts[i, :] = 0
    contexts[i, PARENT] = parent
    contexts[i, TOKEN] = token
    contexts[i, MASK] = mask
    contexts[i, HEAD] = -1
    return i


@njit(cache=True)
def _find(context, symbol, slots, entries):
    """Place in `slots` of the entry (context, symbol), or the free one where it belongs."""
    last = np.uint64(len(slots) - 1)
    place = _mix(context, symbol, 7) & last
    while slots[place] >= 0:
        i = slots[place]
        if entries[i, CONTEXT] == context and entries[i, SYMBOL] == symbol:
            break
        place = (place + np.uint64(1)) & last
    return place


@njit(cache=True)
def _hashed_ids(tokens, t, lag, parent, slots, contexts, used, create, ids):
    ids[0] = 0
    for j in range(1, len(lag)):
        above = ids[parent[j]]
        if lag[j] > t or above < 0:
            ids[j] = -1
        else:
            ids[j] = _context(above, tokens[t - lag[j]], j, slots, contexts, used, create)


@njit(cache=True)
def _count_token(m, ids, suffix, entry_slots, contexts, entries, used):
    """Count symbol m in every context; along nested masks (suffix) also its customers."""
    masks = len(ids)
    for j in range(masks):
        i = ids[j]
        if i < 0:
            continue
        place = _find(i, m, entry_slots, entries)
        e = entry_slots[place]
        if e < 0:
            e = used[1]
            used[1] += 1
            entry_slots[place] = e
            entries[e, CONTEXT] = i
            entries[e, SYMBOL] = m
            entries[e, NEXT] = contexts[i, HEAD]
            entries[e, E_COUNT] = 0
            entries[e, E_CUSTOMERS] = 0
            contexts[i, HEAD] = e
            contexts[i, C_TYPES] += 1
        entries[e, E_COUNT] += 1
        contexts[i, C_TOTAL] += 1
    for j in range(masks - 1, -1, -1):
        if suffix[j] and ids[j] >= 0:
            i = ids[j]
            e = entry_slots[_find(i, m, entry_slots, entries)]
            entries[e, E_CUSTOMERS] += 1
            contexts[i, C_CUSTOMERS] += 1
            if entries[e, E_CUSTOMERS] > 1:
                break
            contexts[i, C_CUSTOMER_TYPES] += 1


@njit(cache=True)
def _room(masks, slots, contexts, entry_slots, entries, used):
    """Whether one more token fits into both tables at half load."""
    return (
        used[0] + masks <= len(contexts)
        and used[1] + masks <= len(entries)
        and 2 * (used[0] + masks) <= len(slots)
        and 2 * (used[1] + masks) <= len(entry_slots)
    )


@njit(cache=True)
def hashed_rows(
    tokens, start, stop, order, padded, lag, parent, suffix, slots, contexts, entry_slots, entries, used, out,
    out_customers,
):  # fmt: skip
    """`dense_rows` on hashed tables; returns the first row that found no room (stop if all did)."""
    masks = len(lag)
    ids = np.empty(masks, np.int64)
    nested = len(out_customers) > 0
    for t in range(start, stop):
        counted = t < len(tokens) and (padded or t >= order)
        if counted and not _room(masks, slots, contexts, entry_slots, entries, used):
            return t
        _hashed_ids(tokens, t, lag, parent, slots, contexts, used, counted, ids)
        row = t - start
        out[row] = 0
        if nested:
            out_customers[row] = 0
        for j in range(masks):
            if ids[j] < 0:
                continue
            e = contexts[ids[j], HEAD]
            while e >= 0:
                out[row, j, entries[e, SYMBOL]] = entries[e, E_COUNT]
                if nested:
                    out_customers[row, j, entries[e, SYMBOL]] = entries[e, E_CUSTOMERS]
                e = entries[e, NEXT]
        if counted:
            _count_token(tokens[t], ids, suffix, entry_slots, contexts, entries, used)
    return stop


@njit(cache=True)
def hashed_symbols(
    tokens, start, stop, order, padded, lag, parent, suffix, vocab, slots, contexts, entry_slots, entries, used,
    out,
):  # fmt: skip
    """Statistics of the realised symbol, out (stop - start, masks, 7) in the order of the columns above.

    BELOW, for nested masks, is the total count that the symbols seen in this context have in the parent's context; it
    is left out where ``vocab`` is 0, else the number of symbols.
    """
    masks = len(lag)
    ids = np.empty(masks, np.int64)
    for t in range(start, stop):
        if not _room(masks, slots, contexts, entry_slots, entries, used):
            return t
        counted = padded or t >= order
        _hashed_ids(tokens, t, lag, parent, slots, contexts, used, counted, ids)
        row, m = t - start, tokens[t]
        out[row] = 0
        for j in range(masks):
            i = ids[j]
            if i < 0:
                continue
            e = entry_slots[_find(i, m, entry_slots, entries)]
            if e >= 0:
                out[row, j, COUNT] = entries[e, E_COUNT]
                out[row, j, CUSTOMERS] = entries[e, E_CUSTOMERS]
            out[row, j, TOTAL] = contexts[i, C_TOTAL]
            out[row, j, TYPES] = contexts[i, C_TYPES]
            out[row, j, CUSTOMER_TOTAL] = contexts[i, C_CUSTOMERS]
            out[row, j, CUSTOMER_TYPES] = contexts[i, C_CUSTOMER_TYPES]
            if vocab > 0 and suffix[j] and j > 0:
                above = ids[parent[j]]
                e = contexts[i, HEAD]
                if contexts[i, C_TYPES] == vocab:  # every symbol has been seen here: no need to look them up
                    out[row, j, BELOW] = contexts[above, C_TOTAL]
                    e = -1
                while e >= 0:
                    same = entry_slots[_find(above, entries[e, SYMBOL], entry_slots, entries)]
                    out[row, j, BELOW] += entries[same, E_COUNT]
                    e = entries[e, NEXT]
        if counted:
            _count_token(m, ids, suffix, entry_slots, contexts, entries, used)
    return stop


@njit(cache=True)
def refill_contexts(slots, contexts, used):
    """Enter every context into empty slots."""
    last = np.uint64(len(slots) - 1)
    for i in range(used):
        place = _mix(contexts[i, PARENT], contexts[i, TOKEN], contexts[i, MASK]) & last
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & last
        slots[place] = i


@njit(cache=True)
def refill_entries(slots, entries, used):
    """Enter every entry into empty slots."""
    last = np.uint64(len(slots) - 1)
    for i in range(used):
        place = _mix(entries[i, CONTEXT], entries[i, SYMBOL], 7) & last
        while slots[place] >= 0:
            place = (place + np.uint64(1)) & last
        slots[place] = i
