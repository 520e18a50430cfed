"""The figure of the alignment: drawn from a report's data alone, the same bytes each time."""

from __future__ import annotations

import copy
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np

from marginlab.paper_figs.alignment import draw_alignment


def _series(slope: float | None) -> dict[str, Any]:
    log_t = np.linspace(0, 10, 40)
    off = np.exp(-0.3 * log_t)
    return {
        "log_t": log_t.tolist(),
        "one_minus_cos_lower": (off * 0.999).tolist(),
        "one_minus_cos_upper": off.tolist(),
        "norm": (1 + 0.1 * log_t).tolist(),
        "slope": slope,
    }


def _claim(slope: float | None = 0.1) -> dict[str, Any]:
    instances = [{"label": f"seed {k}", "verdict": "PASS", "series": _series(slope)} for k in range(3)]
    broken = [{"label": "broken one", "verdict": "FAIL", "series": _series(slope)}]
    return {
        "id": "fake/direction",
        "outcome": {"instances": instances},
        "controls": [
            {"type": "Break", "name": "without an assumption", "instances": broken},
            {"type": "Plant", "name": "planted", "instances": instances},
        ],
    }


def _paths(svg: str) -> int:
    return len(re.findall(r'<g id="line2d_\d+">', svg))


def test_it_is_an_svg_with_the_same_bytes_each_time() -> None:
    first, second = draw_alignment(_claim()), draw_alignment(_claim())
    assert first == second
    assert ElementTree.fromstring(first).tag.endswith("svg")


def test_drawing_leaves_the_data_alone_and_shows_what_there_is() -> None:
    claim = _claim()
    before = copy.deepcopy(claim)
    svg = draw_alignment(claim)
    assert claim == before
    without = copy.deepcopy(claim)
    without["controls"] = []
    assert _paths(svg) == _paths(draw_alignment(without)) + 2  # its curve, and its entry in the legend


def test_a_prediction_is_drawn_where_there_is_one() -> None:
    dotted = re.compile("stroke-dasharray: 1.2,1.98")
    assert len(dotted.findall(draw_alignment(_claim()))) == 3
    assert not dotted.findall(draw_alignment(_claim(slope=None)))


def test_a_claim_that_did_not_run_gives_an_empty_figure() -> None:
    claim = {"id": "fake/direction", "outcome": None, "controls": []}
    assert "<svg" in draw_alignment(claim)
