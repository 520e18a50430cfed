"""The report as a LaTeX table that compiles with the packages of every distribution."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from marginlab.proofs_check.reports import wording
from marginlab.proofs_check.reports.mathematics import convertible, pieces

_TEXT = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "|": r"\textbar{}",
}
#: Unicode that our own texts and usual statements hold; anything else is written as its code point.
_SYMBOLS = {
    "±": r"\pm",
    "≥": r"\ge",
    "≤": r"\le",
    "∞": r"\infty",
    "→": r"\to",
    "×": r"\times",
    "≠": r"\ne",
    "≈": r"\approx",
    "∼": r"\sim",
    "∈": r"\in",
    "∉": r"\notin",
    "∀": r"\forall",
    "∃": r"\exists",
    "∑": r"\sum",
    "∇": r"\nabla",
    "⟨": r"\langle",
    "⟩": r"\rangle",
    "‖": r"\|",
    "·": r"\cdot",
    "√": r"\surd",
    "⇒": r"\Rightarrow",
    "−": "-",
    "½": r"\tfrac12",
    "²": "^2",
    "α": r"\alpha",
    "β": r"\beta",
    "γ": r"\gamma",
    "δ": r"\delta",
    "ε": r"\varepsilon",
    "ζ": r"\zeta",
    "η": r"\eta",
    "θ": r"\theta",
    "κ": r"\kappa",
    "λ": r"\lambda",
    "μ": r"\mu",
    "ν": r"\nu",
    "ξ": r"\xi",
    "π": r"\pi",
    "ρ": r"\rho",
    "σ": r"\sigma",
    "τ": r"\tau",
    "φ": r"\varphi",
    "χ": r"\chi",
    "ψ": r"\psi",
    "ω": r"\omega",
    "Γ": r"\Gamma",
    "Δ": r"\Delta",
    "Θ": r"\Theta",
    "Λ": r"\Lambda",
    "Π": r"\Pi",
    "Σ": r"\Sigma",
    "Φ": r"\Phi",
    "Ψ": r"\Psi",
    "Ω": r"\Omega",
}
#: Commands that read files, write them or change TeX itself have no place in a formula.
_REFUSED = re.compile(
    r"\\(?:input|include\w*|write|openin|openout|read|def|edef|gdef|xdef|let|catcode|csname|expandafter|special"
    r"|usepackage|newcommand|renewcommand|providecommand|href|url|style|class|cssId|immediate|loop|jobname|the)"
    r"(?![A-Za-z])|\\(?:begin|end)\s*\{\s*document|\^\^"
)

_PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp}
\usepackage{amsmath,amssymb}
\usepackage{longtable}
\usepackage[margin=2cm]{geometry}
\setlength{\parindent}{0pt}
\setlength{\emergencystretch}{3em}
\begin{document}
"""


def latex_report(document: Mapping[str, Any]) -> str:
    """A document with the table of verdicts, ready for ``pdflatex``.

    The table stands between the lines ``% table begins`` and ``% table ends``, to be copied into a paper.
    """
    run, inventory = document["run"], document["inventory"]
    revision = document["environment"]["git"]["revision"] or "unknown"
    items = ""
    if inventory["papers"]:
        items = f"{inventory['checked']} inventory items are checked by a claim, {inventory['not_checked']} are not. "
    lines = [
        _PREAMBLE,
        f"\\section*{{Claims checked by marginlab {latex_text(document['marginlab'])}}}",
        latex_text(
            f"{items}{wording.exit_sentence(document)} Tier {run['tier']}, started {run['started']}, "
            f"config hash {run['config_hash'][:16]}, marginlab's revision {revision}."
        ),
        "",
        *latex_table(document),
    ]
    if document["not_selected"]:
        names = "; ".join(f"{c['id']} ({c['reason']})" for c in document["not_selected"])
        lines += ["", latex_text(f"{len(document['not_selected'])} claims were NOT SELECTED: {names}.")]
    return "\n".join([*lines, "", r"\end{document}", ""])


def latex_table(document: Mapping[str, Any]) -> list[str]:
    """The table's lines: statement with its place, then verdict, evidence, instances and controls."""
    lines = [
        "% table begins",
        r"\begin{longtable}{p{0.42\textwidth}p{0.14\textwidth}p{0.12\textwidth}p{0.09\textwidth}p{0.09\textwidth}}",
        r"\hline",
        _row(["Statement", "Verdict", "Evidence, source", "Judged / excluded", "Controls as expected"]),
        r"\hline",
        r"\endhead",
    ]
    for claim in document["claims"]:
        judged, excluded = wording.split_instances(claim)
        good = sum(k["as_expected"] for k in claim["controls"])
        mark = "" if claim["as_expected"] else " (unexpected)"
        cells = [
            rf"\textbf{{{latex_text(claim['title'])}}} ({latex_text(claim['where'])}). "
            + latex_maths(claim["statement"]),
            latex_text(f"{wording.verdict_of(claim)}{mark}"),
            latex_text(f"{claim['evidence']}, {claim['source']}"),
            f"{judged} / {excluded}",
            f"{good} of {len(claim['controls']) + len(claim['controls_missing'])}",
        ]
        lines += [_row(cells), r"\hline"]
    return [*lines, r"\end{longtable}", "% table ends"]


def _row(cells: Sequence[str]) -> str:
    """A row of narrow cells, ragged so that no word is torn; \\\\ has another meaning in ragged text."""
    return " & ".join(rf"\raggedright {cell}" for cell in cells) + r" \tabularnewline"


def latex_text(text: str) -> str:
    """Text with everything escaped that TeX reads as a command."""
    return "".join(map(_character, " ".join(text.split())))


def latex_maths(text: str) -> str:
    """Text with its formulas; a formula that is not plainly mathematics is shown as its source."""
    parts = []
    for sort, part in pieces(text):
        if sort == "math" and _harmless(part):
            parts.append(f"${''.join(_symbol(c) for c in ' '.join(part.split()))}$")
        elif sort == "math":
            parts.append(rf"\texttt{{{latex_text(part)}}}")
        else:
            left = " " if part[:1].isspace() else ""
            right = " " if part[-1:].isspace() and part.strip() else ""
            parts.append(left + latex_text(part) + right)
    return "".join(parts)


def _harmless(source: str) -> bool:
    if _REFUSED.search(source):
        return False
    known = all(c.isascii() or c in _SYMBOLS for c in source)
    return known and convertible(source)


def _symbol(char: str) -> str:
    return char if char.isascii() else _SYMBOLS[char] + " "


def _character(char: str) -> str:
    if char in _TEXT:
        return _TEXT[char]
    if char in _SYMBOLS:
        return f"\\ensuremath{{{_SYMBOLS[char]}}}"
    if char.isascii() and char.isprintable():
        return char
    # Latin letters that the T1 encoding has; the rest would stop pdflatex.
    if "À" <= char <= "ÿ":
        return char
    return f"[U+{ord(char):04X}]"
