"""Alignment and norm along training: the enclosure of 1 - cos, and ||W|| against log t."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_alignment(claim: Mapping[str, Any]) -> str:
    """SVG of a claim's trained instances, and of those that its controls break.

    Parameters
    ----------
    claim : mapping
        One claim of a report document. Each instance's ``series`` holds ``log_t``,
        ``one_minus_cos_lower``, ``one_minus_cos_upper``, ``norm`` (lists of one length) and ``slope``, the
        predicted limit of d||W|| / d log t.

    Returns
    -------
    str
        An ``<svg>`` element, the same bytes for the same data.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style = mpl.rc_params_from_file(
        str(files("marginlab.paper_figs") / "marginlab.mplstyle"), use_default_template=False
    )
    with mpl.rc_context(dict(style)):
        figure = Figure()
        FigureCanvasSVG(figure)
        left, right = figure.subplots(1, 2)
        for k, (name, series, broken) in enumerate(_series(claim)):
            look: dict[str, Any] = {"color": "0.35", "ls": "--"} if broken else {"color": f"C{k % 8}"}
            _draw_cosine(left, series, {**look, "label": name})
            if not broken:
                _draw_norm(right, series, {**look, "label": name}, first=k == 0)
        left.set(xlabel="log t (t: steps of descent)", ylabel="1 − cos(W, separator)", yscale="log")
        left.set_title("direction: certified enclosure", loc="left")
        right.set(xlabel="log t", ylabel="‖W‖")
        right.set_title("norm, and the predicted slope", loc="left")
        left.legend(ncols=2)
        right.legend(ncols=2)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Title": str(claim["id"])})
    text = drawn.getvalue()
    return text[text.index("<svg") :]


def _series(claim: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """(name, series, whether it belongs to a broken assumption) of every instance that has data."""
    for instance in (claim["outcome"] or {"instances": []})["instances"]:
        if instance["series"]:
            vacuous = "" if instance["verdict"] != "VACUOUS" else " (vacuous)"
            yield instance["label"] + vacuous, instance["series"], False
    for control in claim["controls"]:
        if control["type"] == "Break":
            with_data = [i for i in control["instances"] if i["series"]]
            for instance in with_data[:1]:
                yield control["name"], instance["series"], True


def _draw_cosine(axes: Axes, series: Mapping[str, Any], look: dict[str, Any]) -> None:
    log_t = np.array(series["log_t"])
    lower, upper = (np.array(series[f"one_minus_cos_{end}"]) for end in ("lower", "upper"))
    positive = lower > 0
    axes.plot(log_t, upper, **look)
    axes.fill_between(log_t[positive], lower[positive], upper[positive], color=look["color"], alpha=0.3, lw=0)


def _draw_norm(axes: Axes, series: Mapping[str, Any], look: dict[str, Any], *, first: bool) -> None:
    log_t, norm = np.array(series["log_t"]), np.array(series["norm"])
    axes.plot(log_t, norm, **look)
    late = log_t >= log_t[-1] - np.log(100.0)  # the last two decades
    predicted = norm[-1] + series["slope"] * (log_t[late] - log_t[-1])
    axes.plot(log_t[late], predicted, color="black", ls=":", label="predicted slope" if first else None)
