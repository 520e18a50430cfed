"""Files of a report: all of them, whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from marginlab.proofs_check.inventory import inventory_document
from marginlab.proofs_check.reports import figure_drawers, report_schema, write_reports
from marginlab.proofs_check.reports import writing as module
from marginlab.theory.errors import InvalidInput

NAMES = {
    "report.json",
    "report.html",
    "report.md",
    "report.tex",
    "report.junit.xml",
    "graph.svg",
    "graph.dot",
}


def test_all_formats_are_written(document: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    paths = write_reports(document, folder, {"line": lambda claim: f"<svg>{claim['id']}</svg>"})
    written = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert written == {p.relative_to(folder).as_posix() for p in paths}
    certificates = {name for name in written if name.startswith("certificates/")}
    assert written == NAMES | certificates | {"figures/fake--slope.svg"}
    (certificate,) = certificates
    assert certificate in (folder / "report.html").read_text(encoding="utf-8")
    assert json.loads((folder / certificate).read_text(encoding="utf-8"))["x"] == 1.0
    assert json.loads((folder / "report.json").read_text(encoding="utf-8")) == document
    assert (folder / "figures" / "fake--slope.svg").read_text() == "<svg>fake/slope</svg>"
    umask = os.umask(0)
    os.umask(umask)
    assert all(p.stat().st_mode & 0o777 == 0o666 & ~umask for p in paths)


def test_an_earlier_report_is_replaced(
    good_document: dict[str, Any], document: dict[str, Any], tmp_path: Path
) -> None:
    write_reports(document, tmp_path)
    write_reports(good_document, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["exit_code"] == 0


def test_a_write_that_fails_leaves_the_old_file(
    good_document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "report.json").write_text("old")

    def full(source: Any, target: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "replace", full)
    with pytest.raises(InvalidInput, match=r"cannot write the report to .*: No space left on device"):
        write_reports(good_document, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]
    assert (tmp_path / "report.json").read_text() == "old"


def test_a_folder_that_is_a_file_is_refused(good_document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(InvalidInput, match="cannot write the report to"):
        write_reports(good_document, tmp_path / "x")


def test_drawers_are_loaded_only_when_called() -> None:
    code = "import sys; from marginlab.proofs_check.reports import figure_drawers; d = figure_drawers(); "
    code += "assert 'matplotlib' not in sys.modules; print(sorted(d))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "alignment" in done.stdout
    assert all(callable(d) for d in figure_drawers().values())


def test_reading_the_package_loads_no_template_engine() -> None:
    code = (
        "import sys, marginlab.proofs_check.reports; assert not {'jinja2', 'latex2mathml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _captioned(claim: Mapping[str, Any]) -> str:
    return f"<svg>{claim['id']}</svg>"


_captioned.caption = "A line $x$, dotted over <two> decades."  # type: ignore[attr-defined]


def test_a_drawer_s_caption_stands_below_its_picture(document: dict[str, Any], tmp_path: Path) -> None:
    write_reports(document, tmp_path, {"line": _captioned})
    page = (tmp_path / "report.html").read_text()
    assert '<p class="caption small soft">A line <math' in page
    assert "dotted over &lt;two&gt; decades." in page
    assert "dotted over &lt;two> decades." in (tmp_path / "report.md").read_text()


def test_a_report_of_others_claims_has_no_inventory(good_document: dict[str, Any], tmp_path: Path) -> None:
    foreign = {**good_document, "inventory": inventory_document(())}
    jsonschema.validate(foreign, report_schema())
    write_reports(foreign, tmp_path)
    for name in ("report.html", "report.md", "report.tex"):
        text = (tmp_path / name).read_text()
        assert "What is checked, and what is not" not in text
        assert "inventory items" not in text
