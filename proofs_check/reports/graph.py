"""How claims depend on each other, as text, as DOT and as a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginlab.proofs_check.engine.registry import Registry

#: Fill and ink of a node by verdict; "" is a claim that has not run.
_COLOURS = {
    "PASS": ("#d8efdf", "#14532d"),
    "FAIL": ("#f9d9d6", "#7f1d1d"),
    "VACUOUS": ("#e5def5", "#432f73"),
    "INCONCLUSIVE": ("#f8e6c4", "#6a4500"),
    "ERROR": ("#f6d3e4", "#6d1042"),
    "": ("#eceff1", "#37474f"),
}
#: Width of one character of the 13 px monospace labels; 0.6 em is what such fonts have in common.
_CHARACTER, _PADDING, _HEIGHT = 13 * 0.6, 12, 30
_GAP_X, _GAP_Y, _MARGIN = 24, 46, 12
#: Nodes side by side before a level continues in a further row.
_ROW = 4
#: Rounds of the median heuristic that orders the rows (Sugiyama); it settles after a few.
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class _Node:
    """A claim as the graph sees it."""

    depends_on: tuple[str, ...]
    verdict: str = ""
    as_expected: bool = True


def claims_graph_text(source: Registry | Mapping[str, Any]) -> str:
    """The graph for a terminal: each claim once, what it rests on below it.

    Parameters
    ----------
    source : Registry or report document
        With a document, verdicts are shown.
    """
    nodes = _nodes(source)
    lines = []
    for name in _order(nodes):
        node = nodes[name]
        mark = f"  {node.verdict}{'' if node.as_expected else ' (unexpected)'}" if node.verdict else ""
        lines.append(f"{name}{mark}")
        kept = [d for d in node.depends_on if d in nodes]
        lines += [f"  {'└─' if d == kept[-1] else '├─'} rests on {d}" for d in kept]
    return "\n".join(lines)


def claims_graph_dot(source: Registry | Mapping[str, Any]) -> str:
    """The graph in the DOT language; an arrow leads from a claim to those that rest on it."""
    nodes = _nodes(source)
    lines = ["digraph claims {", '  node [shape=box, style=filled, fontname="monospace"];']
    for name, node in nodes.items():
        fill, ink = _COLOURS[node.verdict]
        style = "" if node.as_expected else ', style="filled,dashed"'
        label = f"{name}\\n{node.verdict}" if node.verdict else name
        lines.append(f'  "{name}" [label="{label}", fillcolor="{fill}", fontcolor="{ink}"{style}];')
    lines += [f'  "{d}" -> "{name}";' for name, node in nodes.items() for d in node.depends_on if d in nodes]
    return "\n".join([*lines, "}", ""])


def claims_graph_svg(source: Registry | Mapping[str, Any]) -> str:
    """The graph as a stand-alone SVG in layers: what a claim rests on stands above it."""
    nodes = _nodes(source)
    rows = _rows(nodes)
    width_of = {name: len(name) * _CHARACTER + 2 * _PADDING for name in nodes}
    row_width = [sum(width_of[n] for n in row) + _GAP_X * (len(row) - 1) for row in rows]
    width = max(row_width, default=0) + 2 * _MARGIN
    height = len(rows) * _HEIGHT + max(0, len(rows) - 1) * _GAP_Y + 2 * _MARGIN
    place: dict[str, tuple[float, float]] = {}
    for k, row in enumerate(rows):
        x = (width - row_width[k]) / 2
        for name in row:
            place[name] = (x, _MARGIN + k * (_HEIGHT + _GAP_Y))
            x += width_of[name] + _GAP_X
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="Dependencies of the claims" '
        'font-family="ui-monospace, Liberation Mono, Menlo, Consolas, monospace" font-size="13">',
        '<defs><marker id="claims-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#78909c"/></marker></defs>',
    ]
    for name, node in nodes.items():
        parts += [
            _edge(place[d], width_of[d], place[name], width_of[name]) for d in node.depends_on if d in nodes
        ]
    parts += [_box(name, node, place[name], width_of[name]) for name, node in nodes.items()]
    return "\n".join([*parts, "</svg>", ""])


def _edge(start: tuple[float, float], start_width: float, end: tuple[float, float], end_width: float) -> str:
    """A curve from the lower edge of one box to the upper edge of another."""
    x0, y0 = start[0] + start_width / 2, start[1] + _HEIGHT
    x1, y1 = end[0] + end_width / 2, end[1]
    bend = (y1 - y0) / 2
    return (
        f'<path d="M{x0:.1f} {y0:.1f} C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}" '
        'fill="none" stroke="#78909c" stroke-width="1.4" marker-end="url(#claims-arrow)"/>'
    )


def _box(name: str, node: _Node, place: tuple[float, float], width: float) -> str:
    fill, ink = _COLOURS[node.verdict]
    outline = "" if node.as_expected else ' stroke-dasharray="5 3"'
    word = node.verdict or "not run"
    mark = "" if node.as_expected else ", unexpected"
    return (
        f"<g><title>{escape(f'{name}: {word}{mark}')}</title>"
        f'<rect x="{place[0]:.1f}" y="{place[1]:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="{ink}" stroke-width="{1 if node.as_expected else 2}"{outline}/>'
        f'<text x="{place[0] + width / 2:.1f}" y="{place[1] + _HEIGHT / 2 + 4.5:.1f}" text-anchor="middle" '
        f'fill="{ink}">{escape(name)}</text></g>'
    )


def _nodes(source: Registry | Mapping[str, Any]) -> dict[str, _Node]:
    if isinstance(source, Mapping):
        return {
            c["id"]: _Node(
                depends_on=tuple(c["depends_on"]),
                verdict=c["outcome"]["verdict"] if c["outcome"] else "",
                as_expected=c["as_expected"],
            )
            for c in source["claims"]
        }
    return {claim.id: _Node(depends_on=tuple(claim.depends_on)) for claim in source}


def _order(nodes: Mapping[str, _Node]) -> list[str]:
    """Names with dependencies first; the order of `nodes` where nothing else decides."""
    graph = {name: [d for d in node.depends_on if d in nodes] for name, node in nodes.items()}
    return list(TopologicalSorter(graph).static_order())


def _rows(nodes: Mapping[str, _Node]) -> list[list[str]]:
    """Layers by longest path, wide ones folded, each ordered by the middle of its neighbours above."""
    level: dict[str, int] = {}
    for name in _order(nodes):
        level[name] = max((level[d] + 1 for d in nodes[name].depends_on if d in nodes), default=0)
    rows: list[list[str]] = []
    for depth in range(max(level.values(), default=-1) + 1):
        layer = [name for name in nodes if level[name] == depth]
        rows += [layer[k : k + _ROW] for k in range(0, len(layer), _ROW)]
    near: dict[str, set[str]] = {name: {d for d in nodes[name].depends_on if d in nodes} for name in nodes}
    for name in nodes:
        for d in nodes[name].depends_on:
            if d in nodes:
                near[d].add(name)
    for sweep in range(_SWEEPS):
        position = {name: k - (len(row) - 1) / 2 for row in rows for k, name in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(key=lambda name, p=position: (_middle([p[d] for d in near[name]], p[name]), p[name]))
            position |= {name: k - (len(row) - 1) / 2 for k, name in enumerate(row)}
    return rows


def _middle(positions: Iterable[float], default: float) -> float:
    ordered = sorted(positions)
    if not ordered:
        return default
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
