"""Rows of a layered drawing of a directed acyclic graph (Sugiyama, Tagawa and Toda 1981)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

#: Nodes side by side before a level continues in a further row.
ROW = 4
#: Passes of the median heuristic; the order of rows settles after a few.
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Pass:
    """Room in a row for an edge that only passes through it."""

    start: str
    end: str
    row: int


Slot = str | Pass


def dependency_order(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Names with their parents first."""
    return list(TopologicalSorter(parents).static_order())


def layered_rows(parents: Mapping[str, Sequence[str]]) -> list[list[Slot]]:
    """Rows from top to bottom: parents above children, nodes without any edge in rows of their own below.

    Parameters
    ----------
    parents : mapping of name to the names above it
        Every parent is itself a name; no cycles.

    Returns
    -------
    list of list of str or Pass
        Each name once, and a `Pass` wherever an edge crosses a row.
    """
    children = {p for above in parents.values() for p in above}
    alone = [name for name, above in parents.items() if not above and name not in children]
    level: dict[str, int] = {}
    for name in dependency_order(parents):
        level[name] = max((level[p] + 1 for p in parents[name]), default=0)
    rows: list[list[Slot]] = []
    for depth in range(max(level.values(), default=-1) + 1):
        rows += _folded([n for n in parents if level[n] == depth and n not in alone])
    row_of = {name: k for k, row in enumerate(rows) for name in row}
    links: dict[Slot, list[Slot]] = {slot: [] for row in rows for slot in row}
    for child, above in parents.items():
        for parent in above:
            chain: list[Slot] = [parent]
            for k in range(row_of[parent] + 1, row_of[child]):
                chain.append(Pass(parent, child, k))
                rows[k].append(chain[-1])
            for one, other in zip(chain, [*chain[1:], child], strict=True):
                links.setdefault(one, []).append(other)
                links.setdefault(other, []).append(one)
    _order_by_medians(rows, links)
    return rows + _folded(alone)


def _folded(names: Sequence[str]) -> list[list[Slot]]:
    return [list(names[k : k + ROW]) for k in range(0, len(names), ROW)]


def _order_by_medians(rows: list[list[Slot]], links: Mapping[Slot, Sequence[Slot]]) -> None:
    """Sort every row in place by the middle of each slot's neighbours, downwards and upwards in turn."""
    for sweep in range(_SWEEPS):
        place = {slot: x for row in rows for slot, x in _centred(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {slot: _median([place[n] for n in links[slot]], place[slot]) for slot in row}
            row.sort(key=lambda slot, w=wanted, p=place: (w[slot], p[slot]))
            place |= dict(_centred(row))


def _centred(row: Sequence[Slot]) -> list[tuple[Slot, float]]:
    return [(slot, k - (len(row) - 1) / 2) for k, slot in enumerate(row)]


def _median(values: Sequence[float], default: float) -> float:
    ordered = sorted(values)
    if not ordered:
        return default
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
