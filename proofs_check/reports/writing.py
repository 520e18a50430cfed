"""Every format of a report written to a folder, each file atomically."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from marginlab.proofs_check.reports.graph import claims_graph_dot, claims_graph_svg
from marginlab.proofs_check.reports.html_page import Drawer, draw_figures, figure_captions, html_report
from marginlab.proofs_check.reports.junit import junit_report
from marginlab.proofs_check.reports.latex import latex_report
from marginlab.proofs_check.reports.markdown import markdown_report
from marginlab.proofs_check.reports.wording import certificate_file
from marginlab.theory.errors import InvalidInput


def write_reports(
    document: Mapping[str, Any], folder: str | os.PathLike[str], figures: Mapping[str, Drawer] | None = None
) -> list[Path]:
    """Write a report in every format.

    Parameters
    ----------
    document : mapping
        The report document.
    folder : path
        Made if missing; files of an earlier report are replaced.
    figures : mapping of figure name to callable(claim document) -> SVG, optional
        A figure that cannot be drawn is reported in its place.

    Returns
    -------
    list of Path
        report.json, report.html, report.md, report.tex, report.junit.xml, graph.svg, graph.dot, and
        figures/NAME.svg for each figure that was drawn, certificates/NAME.json for each certificate.

    Raises
    ------
    InvalidInput
        The folder has an empty name, or cannot be made or written to.
    """
    if not os.fspath(folder):
        raise InvalidInput("the report needs the name of a folder, got an empty one.")
    drawings = draw_figures(document, figures)
    drawn = {i: svg for i, svg in drawings.items() if isinstance(svg, str)}
    captions = {i: text for i, text in figure_captions(document, figures).items() if i in drawn}
    pictures = {i: f"figures/{i.replace('/', '--')}.svg" for i in drawn}
    texts = {
        "report.json": json_report(document),
        "report.html": html_report(document, drawings, captions),
        "report.md": markdown_report(document, pictures, captions),
        "report.tex": latex_report(document),
        "report.junit.xml": junit_report(document),
        "graph.svg": claims_graph_svg(document),
        "graph.dot": claims_graph_dot(document),
    }
    texts |= {pictures[i]: svg for i, svg in drawn.items()}
    texts |= {file: json.dumps(c, separators=(",", ":")) for file, c in _certificates(document)}
    try:
        return [_write(Path(folder) / name, text) for name, text in texts.items()]
    except OSError as error:
        raise InvalidInput(f"cannot write the report to {str(folder)!r}: {error.strerror}.") from None


def _certificates(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """File name and content of every certificate of a claim's instances."""
    for claim in document["claims"]:
        for instance in (claim["outcome"] or {"instances": ()})["instances"]:
            if instance["certificate"]:
                yield certificate_file(claim["id"], instance["label"]), instance["certificate"]


def json_report(document: Mapping[str, Any]) -> str:
    """The document itself as strict JSON, every digit kept."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def figure_drawers() -> dict[str, Drawer]:
    """Drawers that installed packages offer (entry point group ``marginlab.figures``), loaded when called."""

    return {point.name: _LazyDrawer(point) for point in entry_points(group="marginlab.figures")}


class _LazyDrawer:
    """A drawer that is loaded when it draws."""

    def __init__(self, point: EntryPoint) -> None:
        self._point = point
        self.caption = ""

    def __call__(self, claim: Mapping[str, Any]) -> str:
        drawer = self._point.load()
        drawing = drawer(claim)
        self.caption = str(getattr(drawer, "caption", ""))
        return drawing


def _write(path: Path, text: str) -> Path:
    """Write a file as a whole or not at all: readers never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
        # mkstemp makes files private; a report is to be read like any other new file.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
