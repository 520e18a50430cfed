"""Formulas become mathematics, and nothing but mathematics."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marginlab
from marginlab.proofs_check.inventory import inventory
from marginlab.proofs_check.reports.mathematics import convertible, fallbacks, mathml, pieces, text_to_html

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


def leaves(source: str) -> str:
    """Text of the formula's elements, in order."""
    converted = mathml(source)
    assert converted is not None
    return "".join(fromstring(f"<r>{converted.replace('<wbr>', '')}</r>").itertext())


def test_no_statement_of_ours_falls_back_to_source() -> None:
    texts = [text for paper in inventory() for e in paper.entries for text in (e.statement, e.reason)]
    for claim in marginlab.claims():
        texts += [claim.statement, claim.erratum, claim.notes, *(a.statement for a in claim.assumes)]
    assert sum(sort == "math" for text in texts for sort, _ in pieces(text)) > 100
    assert [(text, bad) for text in texts if (bad := fallbacks(text))] == []
    # A dollar that is left over in the text is a formula that was not recognised.
    assert [text for text in texts if any("$" in part for sort, part in pieces(text) if sort == "text")] == []


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"\mathbb R^d", "ℝd"),
        (r"\mathcal I", "ℐ"),
        (r"\mathcal D", unicodedata.lookup("MATHEMATICAL SCRIPT CAPITAL D")),
        (r"\mathbf 1", unicodedata.lookup("MATHEMATICAL BOLD DIGIT ONE")),
        (r"\mathrm{MSE}", "MSE"),
        (r"a\sim b", "a∼b"),
        (r"A\setminus B", "A∖B"),
        (r"\langle x,y\rangle", "⟨x,y⟩"),
        (r"x < y & z", None),
        (r"\text{<b>&amp;</b>}", None),
        (r"\text{<b>bold</b>}", "<b>bold</b>"),
        (r"\arg\min_x f", "argminxf"),
    ],
)
def test_symbols(source: str, shown: str | None) -> None:
    if shown is None:
        assert mathml(source) is None
    else:
        assert leaves(source).replace("\u2009", "") == shown


@pytest.mark.parametrize(
    "source",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(//x)}{x}",
        r"\class{a}{x}",
        r"\input{/etc/passwd}",
        r"\undefined x",
        r"\frac{1}{",
        "a % b",
        "a # b",
    ],
)
def test_what_is_not_mathematics_is_shown_as_source(source: str) -> None:
    assert not convertible(source)
    assert text_to_html(f"${source}$").startswith("<code>")


def test_long_formulas_break_after_relations_outside_brackets() -> None:
    converted = mathml(r"f(a,b)=(c-d)^2\le\{x: y=z\},\ w")
    assert converted is not None
    ends = ["".join(fromstring(part).itertext())[-1] for part in converted.split("<wbr>")]
    assert ends[:-1] == ["=", "≤", "=", ","]


def test_norm_bars_do_not_stretch_and_functions_have_room() -> None:
    converted = mathml(r"\lVert W\rVert_F\log\tau")
    assert converted is not None
    tree = fromstring(converted)
    bars = [e for e in tree.iter(f"{NAMESPACE}mo") if e.text == "‖"]
    assert len(bars) == 2
    assert all(e.get("stretchy") == "false" for e in bars)
    kinds = [(e.tag.removeprefix(NAMESPACE), e.text) for e in tree]
    at = kinds.index(("mi", "log"))
    assert [kinds[at - 1][0], kinds[at + 1][0]] == ["mspace", "mspace"]


def test_dollars() -> None:
    assert list(pieces("costs 5 $ or 6 $ each")) == [("text", "costs 5 $ or 6 $ each")]
    assert list(pieces(r"a \$ b $x$")) == [("text", "a $ b "), ("math", "x")]
    assert list(pieces("$a$ and $b$")) == [("math", "a"), ("text", " and "), ("math", "b")]


class Tags(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


FRAGMENTS = st.sampled_from(
    ["$", "\\", "{", "}", "<script>", "</math>", "&lt;", "&", "\\text{", "\\href{a}{", "\\mathbb", "\\frac", "^", "_",
     "x", "1", " ", "\\left(", "\\right)", "\\begin{cases}", "\\end{cases}", '"', "onload=", "\\\\", "σ", "%"]
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(FRAGMENTS, max_size=14).map("".join))
def test_any_text_gives_only_mathematics(text: str) -> None:
    page = Tags(text_to_html(text))
    assert not page.tags & {"script", "a", "img", "style", "iframe", "svg"}
    assert not {name for name in page.attributes if name.startswith("on")} | page.attributes & {
        "href",
        "style",
    }
    if "$" not in text:
        assert page.text == text


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=40))
def test_text_without_formulas_is_kept(text: str) -> None:
    if "$" not in text and "\r" not in text:
        assert Tags(text_to_html(text)).text == text
