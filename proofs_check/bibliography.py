"""The works that claims cite, as plain data and as BibTeX."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

#: Characters that BibTeX and LaTeX read as commands, and how they are printed.
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def bibliography() -> dict[str, dict[str, Any]]:
    """Every work by its key.

    Returns
    -------
    dict of str to dict
        ``title``, ``authors`` (list of "Family, G."), ``year``, ``arxiv`` (identifier, "" if none),
        ``version`` (arXiv version that was read, "" if it is not known) and ``bibtex``.
    """
    return {
        key: {
            "title": work["title"],
            "authors": list(work["authors"]),
            "year": work["year"],
            "arxiv": work.get("arxiv", ""),
            "version": work.get("version", ""),
            "bibtex": bibtex(key, work),
        }
        for key, work in _works().items()
    }


def bibtex(key: str, work: Mapping[str, Any]) -> str:
    """One BibTeX entry: @article with a journal, @inproceedings with a venue, @misc for a preprint.

    Parameters
    ----------
    key : str
    work : mapping
        ``title``, ``authors``, ``year`` and any of ``journal``, ``venue``, ``arxiv``, ``version``.
    """
    kind = "article" if "journal" in work else "inproceedings" if "venue" in work else "misc"
    fields = {
        "author": " and ".join(map(_escaped, work["authors"])),
        # The inner braces keep the capitals of names and acronyms.
        "title": "{" + _escaped(work["title"]) + "}",
        "year": str(work["year"]),
    }
    if "journal" in work:
        fields["journal"] = _escaped(work["journal"])
    if "venue" in work:
        fields["booktitle"] = _escaped(work["venue"])
    if work.get("arxiv"):
        fields |= {"eprint": work["arxiv"] + work.get("version", ""), "archiveprefix": "arXiv"}
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}\n}}"


@cache
def _works() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("marginlab.proofs_check") / "bibliography.toml").read_text(encoding="utf-8"))


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)
