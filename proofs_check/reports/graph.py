"""How claims depend on each other, as text, as DOT and as a drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from marginlab.proofs_check.reports.layers import Pass, Slot, dependency_order, layered_rows

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
#: Room in a row for an edge that passes through it.
_PASS = 6


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
    for name in dependency_order(_parents(nodes)):
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
    rows = layered_rows(_parents(nodes))
    widths = [[_width(slot) for slot in row] for row in rows]
    width = max((_row_width(row) for row in widths), default=0) + 2 * _MARGIN
    height = len(rows) * _HEIGHT + max(0, len(rows) - 1) * _GAP_Y + 2 * _MARGIN
    place: dict[Slot, tuple[float, float]] = {}
    for k, row in enumerate(rows):
        x = (width - _row_width(widths[k])) / 2
        for slot, own in zip(row, widths[k], strict=True):
            place[slot] = (x + own / 2, _MARGIN + k * (_HEIGHT + _GAP_Y))
            x += own + _GAP_X
    row_of = {slot: k for k, row in enumerate(rows) for slot in row}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="Dependencies of the claims" '
        'font-family="ui-monospace, Liberation Mono, Menlo, Consolas, monospace" font-size="13">',
        '<defs><marker id="claims-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#78909c"/></marker></defs>',
    ]
    for child, above in _parents(nodes).items():
        for parent in above:
            passes = [Pass(parent, child, k) for k in range(row_of[parent] + 1, row_of[child])]
            parts.append(_edge([place[slot] for slot in (parent, *passes, child)]))
    parts += [_box(name, node, place[name]) for name, node in nodes.items()]
    return "\n".join([*parts, "</svg>", ""])


def _width(slot: Slot) -> float:
    return _PASS if isinstance(slot, Pass) else len(slot) * _CHARACTER + 2 * _PADDING


def _row_width(widths: Sequence[float]) -> float:
    return sum(widths) + _GAP_X * (len(widths) - 1)


def _edge(stops: Sequence[tuple[float, float]]) -> str:
    """A curve from the lower edge of the first box to the upper edge of the last, straight through rows."""
    x, y = stops[0][0], stops[0][1] + _HEIGHT
    path = [f"M{x:.1f} {y:.1f}"]
    for k, (to_x, to_y) in enumerate(stops[1:], 1):
        bend = (to_y - y) / 2
        path.append(f"C{x:.1f} {y + bend:.1f} {to_x:.1f} {to_y - bend:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
        if k < len(stops) - 1:
            y = to_y + _HEIGHT
            path.append(f"L{x:.1f} {y:.1f}")
    return (
        f'<path d="{" ".join(path)}" fill="none" stroke="#78909c" stroke-width="1.4" '
        'marker-end="url(#claims-arrow)"/>'
    )


def _box(name: str, node: _Node, place: tuple[float, float]) -> str:
    fill, ink = _COLOURS[node.verdict]
    outline = "" if node.as_expected else ' stroke-dasharray="5 3"'
    word = node.verdict or "not run"
    mark = "" if node.as_expected else ", unexpected"
    width, (x, y) = _width(name), place
    return (
        f"<g><title>{escape(f'{name}: {word}{mark}')}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="{ink}" stroke-width="{1 if node.as_expected else 2}"{outline}/>'
        f'<text x="{x:.1f}" y="{y + _HEIGHT / 2 + 4.5:.1f}" text-anchor="middle" '
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


def _parents(nodes: Mapping[str, _Node]) -> dict[str, list[str]]:
    """What each claim rests on, as far as it is drawn."""
    return {name: [d for d in node.depends_on if d in nodes] for name, node in nodes.items()}
