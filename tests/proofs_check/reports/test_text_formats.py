"""Markdown, LaTeX and JUnit, each read back by something that knows the format."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from marginlab.proofs_check.reports import junit_report, latex_report, markdown_report
from marginlab.proofs_check.reports.latex import latex_maths, latex_text


def test_markdown_renders_without_foreign_elements(document: dict[str, Any], hostile: str) -> None:
    source = markdown_report(document, {"fake/slope": "figures/fake--slope.svg"})
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(source)
    tags = {tag.lower() for tag in re.findall(r"<([a-zA-Z][a-zA-Z0-9]*)", rendered)}
    allowed = "h1 h2 h3 p ul li strong em code table thead tbody tr th td img a"
    assert tags <= set(allowed.split())
    assert all(
        re.fullmatch(r"certificates/[\w.-]+\.json", href) for href in re.findall(r'href="(.*?)"', rendered)
    )
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in rendered
    assert 'src="figures/fake--slope.svg"' in rendered
    # Every row of every table has the cells of its head: no bar of a text split one.
    for table in re.findall(r"<table>.*?</table>", rendered, re.DOTALL):
        rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        assert len({len(re.findall("<t[hd]", row)) for row in rows}) == 1
    cells = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    assert any("|b|" in cell for cell in cells)
    assert hostile.split("|")[0].startswith("<script>")


def test_markdown_says_what_the_page_says(document: dict[str, Any]) -> None:
    source = markdown_report(document)
    assert source.index("What is checked") < source.index("## Outcome") < source.index("## Claims")
    assert "Exit status 1: 5 of 11 claims" in source
    assert "NOT SELECTED `fake/large`" in source
    for claim in document["claims"]:
        assert f"`{claim['id']}`: **{claim['outcome']['verdict']}**" in source
        assert source.count("- control **") == sum(
            len(c["controls"]) + len(c["controls_missing"]) for c in document["claims"]
        )
    assert "P HOLDS, value 1 (x = 1.0 against 0)" in source


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=60))
def test_latex_text_holds_no_command_of_its_own(text: str) -> None:
    escaped = latex_text(text)
    bare = re.sub(r"\\(textbackslash|textasciicircum|textasciitilde|textless|textgreater|textquotedbl|"
                  r"textquotesingle|textasciigrave|textbar)\{\}", "", escaped)  # fmt: skip
    bare = re.sub(r"\\ensuremath\{[^{}]*\}", "", bare)
    bare = re.sub(r"\\[{}$&#%_]", "", bare)
    assert not set(bare) & set("\\{}$&#%_^~<>"), escaped
    assert all(c.isascii() or "À" <= c <= "ÿ" for c in bare)


@pytest.mark.parametrize(
    "source",
    [r"\input{x}", r"\def\a{b}", r"\csname x\endcsname", r"\write18{ls}", "^^5cinput", "a % b", "a # b", "a & b",
     r"\catcode`a=1", r"\begin{document}", r"\undefined", r"\href{a}{b}", "🦊"],
)  # fmt: skip
def test_latex_formulas_that_are_no_mathematics_become_source(source: str) -> None:
    assert latex_maths(f"${source}$").startswith(r"\texttt{")


def test_latex_keeps_mathematics() -> None:
    source = r"If $\lVert W\rVert_F\ge1$ & σ>0, then $\hat W\in\mathbb{R}^{d\times d}$."
    assert latex_maths(source) == (
        r"If $\lVert W\rVert_F\ge1$ \& \ensuremath{\sigma}\textgreater{}0, then $\hat W\in\mathbb{R}^{d\times d}$."
    )


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex on this machine")
@pytest.mark.parametrize("name", ["document", "good_document", "empty_document"])
def test_latex_compiles(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    (tmp_path / "report.tex").write_text(latex_report(request.getfixturevalue(name)), encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "-no-shell-escape", "report.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert (tmp_path / "report.pdf").stat().st_size > 0


def test_every_inventory_statement_is_latex(document: dict[str, Any]) -> None:
    statements = [e["statement"] for p in document["inventory"]["papers"] for e in p["entries"]]
    assert [s for s in statements if r"\texttt" in latex_maths(s)] == []


def test_junit_counts(document: dict[str, Any]) -> None:
    root = fromstring(junit_report(document))
    outcomes = [o for c in document["claims"] for o in (c["outcome"], *c["controls"])]
    assert len(list(root.iter("testcase"))) == len(outcomes) == int(root.get("tests", "0"))
    bad = [o for o in outcomes if not o["as_expected"]]
    assert (
        len(list(root.iter("failure"))) == sum(not o["error"] for o in bad) == int(root.get("failures", "0"))
    )
    assert len(list(root.iter("error"))) == sum(bool(o["error"]) for o in bad) == int(root.get("errors", "0"))
    assert not list(root.iter("skipped"))
    assert {s.get("name") for s in root} == {c["family"] for c in document["claims"]}
    assert sum(int(s.get("tests", "0")) for s in root) == len(outcomes)


@settings(deadline=None, max_examples=60)
@given(text=st.text(max_size=40))
def test_junit_is_xml_whatever_the_texts(good_document: dict[str, Any], text: str) -> None:
    claim = good_document["claims"][0]
    outcome = {**claim["outcome"], "reason": text, "as_expected": False}
    root = fromstring(junit_report({**good_document, "claims": [{**claim, "outcome": outcome}]}))
    message = next(root.iter("failure")).get("message") or ""
    allowed = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
    assert message == f"PASS, expected PASS: {allowed}"
