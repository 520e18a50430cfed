"""The dependency graph: complete, layered, and drawn without overlaps."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import fromstring

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.engine.registry import Registry
from marginlab.proofs_check.reports import claims_graph_dot, claims_graph_svg, claims_graph_text
from marginlab.proofs_check.reports.layers import Pass, layered_rows

SVG = "{http://www.w3.org/2000/svg}"


def random_graph(seed: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)
    names = [f"family/claim-{k}" for k in range(int(rng.integers(1, 18)))]
    return {name: [p for p in names[:k] if rng.random() < 0.2] for k, name in enumerate(names)}


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1))
def test_rows_hold_every_name_once_and_edges_go_down(seed: int) -> None:
    parents = random_graph(seed)
    rows = layered_rows(parents)
    where = {slot: k for k, row in enumerate(rows) for slot in row}
    assert sorted(n for n in where if isinstance(n, str)) == sorted(parents)
    assert sum(map(len, rows)) == len(where)
    passes = {slot for slot in where if isinstance(slot, Pass)}
    for child, above in parents.items():
        for parent in above:
            assert where[parent] < where[child]
            for k in range(where[parent] + 1, where[child]):
                assert where[Pass(parent, child, k)] == k
                passes.remove(Pass(parent, child, k))
    assert not passes


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_boxes_and_passing_edges_do_not_touch(seed: int) -> None:
    parents = random_graph(seed)
    document = {"claims": [
        {"id": n, "depends_on": above, "outcome": None, "as_expected": True} for n, above in parents.items()
    ]}  # fmt: skip
    tree = fromstring(claims_graph_svg(document))
    boxes = [[float(r.get(a, "nan")) for a in ("x", "y", "width", "height")] for r in tree.iter(f"{SVG}rect")]
    assert len(boxes) == len(parents)
    width, height = float(tree.get("width", "0")), float(tree.get("height", "0"))
    for k, (x, y, w, h) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
        for x2, y2, w2, _ in boxes[:k]:
            assert y != y2 or x + w <= x2 or x2 + w2 <= x
    paths = [p.get("d", "") for p in tree.iter(f"{SVG}path") if p.get("marker-end")]
    assert len(paths) == sum(map(len, parents.values()))
    for path in paths:
        for px, py in re.findall(r"L(\S+) (\S+)", path):  # where the edge leaves a row that it passes
            assert not [
                b for b in boxes if b[0] < float(px) < b[0] + b[2] and b[1] < float(py) - 1 < b[1] + b[3]
            ]


def test_text_and_dot_name_every_claim_and_edge(registry: Registry, document: dict[str, Any]) -> None:
    text = claims_graph_text(registry)
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [c.id for c in registry]
    assert text.count("rests on") == sum(len(c.depends_on) for c in registry)
    assert "fake/wrong  FAIL (unexpected)" in claims_graph_text(document)
    dot = claims_graph_dot(document)
    assert dot.count(" -> ") == sum(len(c["depends_on"]) for c in document["claims"])
    assert dot.count("label=") == len(document["claims"])


def test_an_empty_graph_is_drawn() -> None:
    assert fromstring(claims_graph_svg(Registry([]))).tag == f"{SVG}svg"
    assert claims_graph_text(Registry([])) == ""


def test_verdicts_colour_the_nodes(document: dict[str, Any]) -> None:
    tree = fromstring(claims_graph_svg(document))
    titles = {t.text for t in tree.iter(f"{SVG}title")}
    assert {"fake/square: PASS", "fake/erratum: FAIL", "fake/wrong: FAIL, unexpected"} <= titles
    dashed = [r for r in tree.iter(f"{SVG}rect") if r.get("stroke-dasharray")]
    assert len(dashed) == sum(not c["as_expected"] for c in document["claims"])
