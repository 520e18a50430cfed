"""The page: complete, in the promised order, self-contained, and deaf to hostile text."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from marginlab.proofs_check.engine.claim import Evidence, Kind, Source, Status, Tier, Verdict
from marginlab.proofs_check.reports import html_report
from marginlab.proofs_check.reports.glossary import (
    CONTROLS,
    EVIDENCE,
    KINDS,
    SOURCES,
    STATUSES,
    TIERS,
    VERDICTS,
)
from marginlab.proofs_check.reports.html_page import anchor, draw_figures

VOID = {"meta", "br", "img", "wbr"}
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><text>σ</text></svg>'


class Page(HTMLParser):
    """Elements, attributes and text of a page, with a check that elements nest."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(source)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


@pytest.fixture(scope="module")
def source(document: dict[str, Any]) -> str:
    return html_report(document, draw_figures(document, {"line": lambda claim: SVG}))


@pytest.fixture(scope="module")
def page(source: str) -> Page:
    return Page(source)


def test_nothing_runs_and_nothing_is_fetched(page: Page, source: str) -> None:
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "iframe", "object", "embed", "link", "base", "form", "foreignobject"}
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in ("href", "src", "xlink:href", "action"):
            value = attributes.get(name)
            beside = value is not None and re.fullmatch(r"certificates/[A-Za-z0-9.-]+\.json", value)
            assert value is None or beside or value.startswith(("#", "data:image/svg+xml;base64,")), (
                tag,
                value,
            )
    assert "url(" not in source.replace("url(#claims-arrow)", "")
    assert "@import" not in source


def test_hostile_text_is_shown_as_text(page: Page, hostile: str, source: str) -> None:
    title = " ".join(hostile.split())
    assert title in " ".join(page.text.split())
    assert '<script>alert("x")' not in source
    assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|\b49\b", page.text)
    assert "{{ 7*7 }}" in page.text


def test_links_and_anchors_fit(page: Page) -> None:
    ids = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(ids) == len(set(ids))
    inner = [a["href"] or "" for _, a in page.elements if "href" in a]
    assert all(href[1:] in ids for href in inner if href.startswith("#"))
    assert len([href for href in inner if not href.startswith("#")]) == 1


def test_inventory_comes_first_then_the_outcome_then_the_claims(source: str) -> None:
    places = [source.index(f'<h2 id="{name}"') for name in
              ("inventory", "outcome", "claims", "run", "glossary", "bibliography")]  # fmt: skip
    assert places == sorted(places)


def test_everything_of_the_document_is_there(page: Page, document: dict[str, Any]) -> None:
    text = " ".join(page.text.split())

    def shown(words: str) -> bool:
        return " ".join(words.split()) in text

    for claim in document["claims"]:
        assert any(tag == "section" and a.get("id") == anchor(claim["id"]) for tag, a in page.elements)
        parts = [claim["outcome"], *claim["controls"]]
        assert all(shown(part["reason"]) for part in parts)
        for part in parts:
            for instance in part["instances"]:
                assert shown(instance["label"])
                assert shown(instance["reason"])
                assert all(shown(a["witness"]) for a in instance["assumptions"].values())
        assert all(shown(f) for f in claim["outcome"]["findings"])
        assert shown(claim["notes"].replace("$2$", "2")) or "$" in claim["notes"]
    for entry in (e for p in document["inventory"]["papers"] for e in p["entries"]):
        assert shown(entry["label"])
        assert "$" in entry["reason"] or shown(entry["reason"])
    assert shown(document["run"]["config_hash"])
    assert shown("NOT SELECTED fake/large")
    assert shown("NOT RUN swapped")
    assert shown("rests on fake/wrong")
    assert shown("rounding: 2 float64 operations")
    assert shown("predicted with <c> = 0.5")  # a warning of the claim's code,
    assert shown("predicted with <c> = 1.0")  # and of its control's


def test_exit_status_in_words(page: Page, good_document: dict[str, Any], document: dict[str, Any]) -> None:
    assert "Exit status 1: 5 of 11 claims" in " ".join(page.text.split())
    assert document["exit_code"] == 1
    good = Page(html_report(good_document)).text
    assert "Exit status 0: all 2 claims and 3 controls" in " ".join(good.split())


def test_an_empty_run_is_no_success(empty_document: dict[str, Any]) -> None:
    text = " ".join(Page(html_report(empty_document)).text.split())
    assert "Exit status 1: nothing ran" in text
    assert "No claim ran." in text


def test_figures_are_images_of_their_own(page: Page) -> None:
    images = [a for tag, a in page.elements if tag == "img"]
    assert len(images) == 1
    assert "fake/slope" in (images[0]["alt"] or "")
    data = (images[0]["src"] or "").removeprefix("data:image/svg+xml;base64,")
    assert base64.b64decode(data).decode() == SVG


def test_a_figure_that_fails_is_reported(good_document: dict[str, Any]) -> None:
    def broken(claim: Any) -> str:
        raise ValueError("<b>no data</b>")

    text = Page(html_report(good_document, draw_figures(good_document, {"line": broken}))).text
    assert "Figure line: it could not be drawn: <b>no data</b>." in text
    assert "nothing installed here draws it" in Page(html_report(good_document)).text


def test_the_glossary_knows_every_word() -> None:
    assert set(VERDICTS) >= {str(v) for v in Verdict}
    assert set(KINDS) == {str(k) for k in Kind}
    assert set(EVIDENCE) == {str(e) for e in Evidence}
    assert set(SOURCES) == {str(s) for s in Source}
    assert set(TIERS) == {str(t) for t in Tier}
    assert set(STATUSES) == {str(s) for s in Status}
    assert set(CONTROLS) == {"Plant", "Mend", "Break", "Waive"}


def test_same_document_same_bytes(document: dict[str, Any]) -> None:
    assert html_report(document) == html_report(document)
