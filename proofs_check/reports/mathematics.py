"""Text with $...$ mathematics, turned to MathML or LaTeX without letting anything else through.

Claims are written by anyone, so a formula is never copied into a page: it is parsed, its elements and
attributes are checked against MathML's own, and what cannot be converted is shown as escaped source.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

#: A `$` that is not escaped opens and closes a formula that neither begins nor ends with a space.
_FORMULA = re.compile(r"(?<!\\)\$(?!\s)((?:[^$\\]|\\.)+)(?<!\s)\$", re.DOTALL)
#: Characters that are no mathematics unless escaped: TeX's comment, parameter and tie.
_STRAY = re.compile(r"(?<!\\)[%#~]")

_ELEMENTS = frozenset(
    [
        "math",
        "mrow",
        "mi",
        "mo",
        "mn",
        "mtext",
        "mspace",
        "msub",
        "msup",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mfrac",
        "msqrt",
        "mroot",
        "mstyle",
        "mtable",
        "mtr",
        "mtd",
        "mpadded",
        "mphantom",
        "menclose",
        "mmultiscripts",
        "mprescripts",
        "none",
    ]
)
_ATTRIBUTES = frozenset(
    [
        "display",
        "displaystyle",
        "scriptlevel",
        "mathvariant",
        "stretchy",
        "fence",
        "form",
        "separator",
        "lspace",
        "rspace",
        "minsize",
        "maxsize",
        "accent",
        "accentunder",
        "movablelimits",
        "largeop",
        "linethickness",
        "width",
        "height",
        "depth",
        "voffset",
        "columnalign",
        "columnspacing",
        "rowspacing",
        "columnlines",
        "rowlines",
        "symmetric",
        "notation",
    ]
)
#: latex2mathml knows no \arg; spelled out, it is upright text as TeX sets it.
_REWRITTEN = {r"\arg": r"\mathrm{arg}\,"}
_VARIANTS = {
    "bold": "MATHEMATICAL BOLD",
    "script": "MATHEMATICAL SCRIPT",
    "double-struck": "MATHEMATICAL DOUBLE-STRUCK",
    "fraktur": "MATHEMATICAL FRAKTUR",
    "sans-serif": "MATHEMATICAL SANS-SERIF",
    "monospace": "MATHEMATICAL MONOSPACE",
}
_DIGITS = ("ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE")
#: Letters that Unicode had before its mathematical alphabets, and so left out of them.
_OLDER = (
    {("script", letter): char for letter, char in zip("BEFHILMRego", "ℬℰℱℋℐℒℳℛℯℊℴ", strict=True)}
    | {("double-struck", letter): char for letter, char in zip("CHNPQRZ", "ℂℍℕℙℚℝℤ", strict=True)}
    | {("fraktur", letter): char for letter, char in zip("CHIRZ", "ℭℌℑℜℨ", strict=True)}
)
#: A long formula may be broken after one of these outside all brackets but braces (a set may be long).
_RELATIONS = frozenset("=<>≤≥→⇒⟹∼≈≔,;∈∀⟺⇔⟶⩽⩾≠")
_OPENING, _CLOSING = frozenset("([⟨⌊⌈"), frozenset(")]⟩⌋⌉")
#: Characters that most fonts lack, and their common twins.
_COMMONER = str.maketrans("~⟂⧵", "∼⊥∖")
_BARS = frozenset("‖∥|")
_XMLNS = "http://www.w3.org/1998/Math/MathML"


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """Parts of a text: ("text", ...) or ("math", source without its dollars), in order.

    A dollar without a partner is text.
    """
    end = 0
    for match in _FORMULA.finditer(text):
        if match.start() > end:
            yield "text", text[end : match.start()].replace(r"\$", "$")
        yield "math", match.group(1)
        end = match.end()
    if end < len(text):
        yield "text", text[end:].replace(r"\$", "$")


def text_to_html(text: str) -> str:
    """Escaped HTML of a text, its formulas as MathML (escaped source where that is not possible)."""
    parts = []
    for sort, part in pieces(text):
        if sort == "text":
            parts.append(html.escape(part))
        else:
            parts.append(mathml(part) or f"<code>{html.escape(part)}</code>")
    return "".join(parts)


def mathml(source: str) -> str | None:
    """MathML of one formula, with places where a line may break; None if it holds something unknown."""
    tree = _parsed(source)
    if tree is None:
        return None
    chunks = _broken(list(tree))
    return "<wbr>".join(
        f'<math xmlns="{_XMLNS}">{"".join(_written(child) for child in chunk)}</math>' for chunk in chunks
    )


def convertible(source: str) -> bool:
    """Whether every command of a formula is known, so that it can be typeset."""
    return _parsed(source) is not None


def fallbacks(text: str) -> list[str]:
    """Formulas of a text that cannot be typeset."""
    return [part for sort, part in pieces(text) if sort == "math" and not convertible(part)]


def _parsed(source: str) -> Element | None:
    """The checked row of a formula's elements, or None."""
    from latex2mathml.converter import convert_to_element

    if _STRAY.search(source) or (r"\begin" not in source and re.search(r"(?<!\\)&", source)):
        return None
    for command, spelled in _REWRITTEN.items():
        source = re.sub(re.escape(command) + r"(?![a-zA-Z])", lambda _, s=spelled: s, source)
    try:
        tree = convert_to_element(source)
    except Exception:  # the parser raises many types for malformed sources, an empty one for an open brace
        return None
    row = tree[0] if len(tree) == 1 and tree[0].tag == "mrow" else tree
    if not all(_clean(element) for element in row.iter()):
        return None
    for element in list(row.iter()):
        _space_functions(element)
    return row


def _clean(element: Element) -> bool:
    """Mend one element in place; False if it is not mathematics."""
    if element.tag not in _ELEMENTS:
        return False
    if set(element.attrib) - _ATTRIBUTES - {"xmlns"}:
        return False
    if element.text:
        element.text = html.unescape(element.text)
        if element.text.startswith("\\") and len(element.text) > 1 and element.tag != "mtext":
            return False
        if element.tag in ("mi", "mn"):
            element.text = _alphabet(element.text, element.attrib.get("mathvariant", ""))
            if element.attrib.get("mathvariant") != "normal":
                element.attrib.pop("mathvariant", None)
            if all(unicodedata.category(c) in ("Sm", "Ps", "Pe") for c in element.text):
                # Relations and brackets that the converter calls identifiers would lose their spacing.
                element.tag = "mo"
                element.text = element.text.translate(_COMMONER)
        if element.tag == "mo" and element.text in _BARS and element.get("fence") != "true":
            # Without \\left and \\right a norm bar is as high as the line, and so is its index.
            element.set("stretchy", "false")
    return True


def _space_functions(row: Element) -> None:
    """Thin spaces around names of functions, as TeX sets them: browsers know no such names."""
    if row.tag not in ("mrow", "mtd", "mstyle", "math", "msqrt", "mpadded"):
        return
    children = list(row)
    for k in range(len(children) - 1, -1, -1):
        if not _is_function(children[k]):
            continue
        after = children[k + 1] if k + 1 < len(children) else None
        before = children[k - 1] if k > 0 else None
        if after is not None and after.tag not in ("mo", "mspace") and not _is_function(after):
            row.insert(k + 1, Element("mspace", width="0.17em"))
        if before is not None and before.tag not in ("mo", "mspace"):
            row.insert(k, Element("mspace", width="0.17em"))


def _is_function(element: Element) -> bool:
    if element.tag in ("msub", "msup", "msubsup", "munder") and len(element):
        return _is_function(element[0])
    return element.tag in ("mi", "mo") and len(element.text or "") > 1 and (element.text or "").isalpha()


def _alphabet(text: str, variant: str) -> str:
    """Letters of a mathematical alphabet: browsers ignore `mathvariant` (MathML Core)."""
    prefix = _VARIANTS.get(variant)
    if prefix is None:
        return text

    def styled(char: str) -> str:
        if (variant, char) in _OLDER:
            return _OLDER[variant, char]
        if char.isascii() and char.isalpha():
            size = "CAPITAL" if char.isupper() else "SMALL"
            name = f"{prefix} {size} {char.upper()}"
        elif char.isascii() and char.isdigit():
            name = f"{prefix} DIGIT {_DIGITS[int(char)]}"
        else:
            return char
        try:
            return unicodedata.lookup(name)
        except KeyError:
            return char

    return "".join(map(styled, text))


def _broken(children: list[Element]) -> list[list[Element]]:
    """The formula cut after relations outside brackets, so that a narrow page can break it."""
    chunks: list[list[Element]] = [[]]
    depth = 0
    for child in children:
        chunks[-1].append(child)
        text = _operator(child)
        depth += (text in _OPENING) - (text in _CLOSING)
        if depth == 0 and child.tag == "mo" and text in _RELATIONS and len(chunks[-1]) > 1:
            child.set("form", "infix")
            chunks.append([])
    return [chunk for chunk in chunks if chunk]


def _operator(element: Element) -> str:
    """The operator that an element is or that carries its indices, "" if it is none."""
    while element.tag in ("msub", "msup", "msubsup") and len(element):
        element = element[0]
    return (element.text or "") if element.tag == "mo" else ""


def _written(element: Element) -> str:
    copy: Any = SubElement(
        Element("root"), element.tag, {k: v for k, v in element.attrib.items() if k != "xmlns"}
    )
    copy.text = element.text
    copy.extend(list(element))
    return tostring(copy, encoding="unicode", short_empty_elements=False)
