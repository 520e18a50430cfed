"""Bits per symbol of every estimator on a text, the learned scales, and how soft matching interpolates."""

from __future__ import annotations

import io
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

#: Marks by kind of estimator.
_LOOKS = (
    ("soft matching", "C1", "D"),
    ("maximum likelihood", "C7", "s"),
    ("uniform", "C7", "s"),
    ("", "C0", "o"),
)


def draw_text_scores(document: Mapping[str, Any]) -> bytes:
    """PNG of the scores that ``marginlab ngrams`` writes as JSON.

    Parameters
    ----------
    document : mapping
        With ``estimators`` (name, bits, standard_error, parameters), ``mixture_weights``, ``unit`` and ``order``.

    Returns
    -------
    bytes
        The same for the same data.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style = mpl.rc_params_from_file(
        str(files("marginlab.paper_figs") / "marginlab.mplstyle"), use_default_template=False
    )
    drawn = io.BytesIO()
    with mpl.rc_context(dict(style)):
        figure = Figure(figsize=(7.2, 3.4), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.add_gridspec(2, 2, width_ratios=(1.7, 1))
        _bits(figure.add_subplot(grid[:, 0]), document)
        _scales(figure.add_subplot(grid[0, 1]), document)
        _weights(figure.add_subplot(grid[1, 1]), document)
        figure.savefig(drawn, format="png", dpi=200, metadata={"Software": None, "Title": "marginlab ngrams"})
    return drawn.getvalue()


def _bits(axes: Any, document: Mapping[str, Any]) -> None:
    """One row an estimator, best on top; those far off stand at the edge with their value."""
    found = [s for s in document["estimators"] if s["name"] != "uniform"]
    best = found[0]["bits"]
    others = sorted(s["bits"] for s in found)
    edge = best + 1.5 * (others[int(0.85 * (len(others) - 1))] - best) + 1e-3
    for row, s in enumerate(found):
        _, colour, mark = next(look for look in _LOOKS if s["name"].startswith(look[0]))
        if s["bits"] <= edge:
            axes.errorbar(s["bits"], row, xerr=s["standard_error"], fmt=mark, color=colour, ms=4, capsize=2)
        else:
            axes.plot(edge, row, ">", color=colour, ms=4)
            axes.annotate(f"{s['bits']:.2f}  ", (edge, row), ha="right", va="center", fontsize=7)
    axes.set_yticks(range(len(found)), [s["name"] for s in found])
    axes.invert_yaxis()
    axes.set_xlim(right=edge + 0.03 * (edge - best))
    axes.set(xlabel=f"bits per {document['unit']}  (± standard error)")
    axes.set_title(f"estimators, order {document['order']}", loc="left")


def _scales(axes: Any, document: Mapping[str, Any]) -> None:
    """Fitted scales by lag, with and without BOS."""
    for name, colour, mark in (("soft matching, BOS", "C1", "D"), ("soft matching", "C2", "o")):
        beta = next(s for s in document["estimators"] if s["name"] == name)["parameters"]["beta"]
        axes.plot(range(1, len(beta) + 1), beta, mark + "-", color=colour, ms=4, label=name)
    axes.set_xticks(range(1, document["order"] + 1))
    axes.set(xlabel="lag", ylabel="scale β")
    axes.legend(fontsize=6)


def _weights(axes: Any, document: Mapping[str, Any]) -> None:
    """Mean mixture weights by order."""
    weights = document["mixture_weights"]
    names = ["BOS", *(str(r) for r in range(document["order"] + 1))]
    axes.bar(names, [weights["bos"], *weights["orders"]], color="C1")
    axes.set(xlabel="number of matching lags", ylabel="mean weight")
