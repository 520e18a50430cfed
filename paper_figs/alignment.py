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
        predicted limit of d||W|| / d log t, or None.

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
    drawn = io.StringIO()
    with mpl.rc_context(dict(style)):
        figure = Figure()
        FigureCanvasSVG(figure)
        left, right = figure.subplots(1, 2)
        everything = list(_series(claim))
        for look, name, series in _looks(everything):
            _draw_cosine(left, series, {**look, "label": name})
        predicted = False
        for k, (_, series, broken) in enumerate(everything):
            if not broken:
                predicted |= _draw_norm(right, series, {"color": f"C{k % 8}"})
        width = max(
            (
                np.max(np.subtract(s["one_minus_cos_upper"], s["one_minus_cos_lower"]))
                for _, s, _ in everything
            ),
            default=0.0,
        )
        left.set(xlabel="log t  (t: steps of descent)", ylabel="1 − cos(W, separator)", yscale="log")
        left.set_title(f"direction; certified within ± {width / 2:.0e}", loc="left")
        right.set(xlabel="log t  (t: steps of descent)", ylabel="‖W‖")
        right.set_title("norm; dotted: the predicted slope" if predicted else "norm", loc="left")
        if not predicted:
            right.set_yscale("log")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Title": str(claim["id"])})
    text = drawn.getvalue()
    return text[text.index("<svg") :]


_Named = tuple[str, Mapping[str, Any], bool]


def _looks(everything: list[_Named]) -> Iterator[tuple[dict[str, Any], str, Mapping[str, Any]]]:
    """A colour for each instance, a grey dash pattern for each broken assumption."""
    dashes = iter(["--", "-.", ":", (0, (5, 1))] * len(everything))
    for k, (name, series, broken) in enumerate(everything):
        yield ({"color": "0.35", "ls": next(dashes)} if broken else {"color": f"C{k % 8}"}), name, series


def _series(claim: Mapping[str, Any]) -> Iterator[_Named]:
    """(name, series, whether it belongs to a broken assumption) of every instance that has data."""
    for instance in (claim["outcome"] or {"instances": []})["instances"]:
        if instance["series"]:
            vacuous = "" if instance["verdict"] != "VACUOUS" else " (vacuous)"
            # What follows a comma in a label is detail that a legend has no room for.
            yield instance["label"].partition(",")[0] + vacuous, instance["series"], False
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


def _draw_norm(axes: Axes, series: Mapping[str, Any], look: dict[str, Any]) -> bool:
    """The norm, and the predicted slope over the last two decades; whether there is a prediction."""
    log_t, norm = np.array(series["log_t"]), np.array(series["norm"])
    axes.plot(log_t, norm, **look)
    if series["slope"] is None:
        return False
    late = log_t >= log_t[-1] - np.log(100.0)
    axes.plot(log_t[late], norm[-1] + series["slope"] * (log_t[late] - log_t[-1]), color="black", ls=":")
    return True


draw_alignment.caption = (  # type: ignore[attr-defined]
    "Left: 1 − cos between W and the max-margin separator along descent, enclosed by the separator's certificate (the "
    "enclosure is narrower than the line). Colours are the instances that were judged, grey dashes the first instance "
    "of each control that breaks an assumption. Right: the norm of W; dotted, where the statement predicts one, the "
    "slope over the last two decades, drawn through the end of the run."
)
