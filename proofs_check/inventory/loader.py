"""The inventory read from its data files, and the gaps between it and a registry of claims."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from marginlab.proofs_check.bibliography import bibliography
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import one_of

if TYPE_CHECKING:
    from marginlab.proofs_check.engine.registry import Registry

#: One data file for each paper, in the order of the report.
PAPERS = ("match_copy", "ngrams", "mixtures", "composition")

#: What an entry can be. "result" is a statement derived for this project, not the paper's.
KINDS = (
    "definition",
    "assumption",
    "theorem",
    "proposition",
    "lemma",
    "corollary",
    "equation",
    "algorithm",
    "figure",
    "table",
    "experiment",
    "remark",
    "question",
    "erratum",
    "result",
)

_REASON = "not checked: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of a paper.

    Parameters
    ----------
    label : str
        As the paper calls it ("Theorem D.2", "Fig. 10"); unique within the paper.
    kind : str
        One of `KINDS`.
    statement : str
        What it says, in our words, mathematics between dollars.
    claims : tuple of str
        Ids of the claims that check it; empty if none does.
    reason : str
        "not checked: ..." where no claim does; else empty, or what the claims leave open.

    Raises
    ------
    InvalidInput
        An unknown kind, or an empty label or statement.
    """

    label: str
    kind: str
    statement: str
    claims: tuple[str, ...] = ()
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.label or not self.statement:
            raise InvalidInput(f"an inventory entry needs a label and a statement, got {self!r}.")
        one_of(self.kind, f"kind of inventory entry {self.label!r}", KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperInventory:
    """All items of one paper.

    Parameters
    ----------
    key : str
        Key of the bibliography.
    title : str
    entries : tuple of Entry
        In the order of the paper.
    """

    key: str
    title: str
    entries: tuple[Entry, ...]


@cache
def inventory() -> tuple[PaperInventory, ...]:
    """The inventory of the four papers.

    Raises
    ------
    InvalidInput
        A data file names an unknown field, kind or work.
    """
    return tuple(_paper(name) for name in PAPERS)


def inventory_document(papers: Sequence[PaperInventory] | None = None) -> dict[str, Any]:
    """The inventory as the part of a report that opens it.

    Parameters
    ----------
    papers : sequence of PaperInventory, optional
        The package's own by default.

    Returns
    -------
    dict
        ``papers`` (key, title, entries), and how many entries are ``checked`` by a claim or ``not_checked``.
    """
    papers = inventory() if papers is None else papers
    entries = [entry for paper in papers for entry in paper.entries]
    checked = sum(bool(entry.claims) for entry in entries)
    return {
        "papers": [
            {
                "key": paper.key,
                "title": paper.title,
                "entries": [
                    {
                        "label": e.label,
                        "kind": e.kind,
                        "statement": e.statement,
                        "claims": list(e.claims),
                        "reason": e.reason,
                    }
                    for e in paper.entries
                ],
            }
            for paper in papers
        ],
        "checked": checked,
        "not_checked": len(entries) - checked,
    }


def inventory_gaps(registry: Registry, papers: Sequence[PaperInventory] | None = None) -> list[str]:
    """What does not fit between the inventory and the claims, one sentence each; empty if all fits.

    Parameters
    ----------
    registry : Registry
        The claims that exist.
    papers : sequence of PaperInventory, optional
        The package's own by default.
    """
    papers = inventory() if papers is None else papers
    gaps: list[str] = []
    named: set[str] = set()
    for paper in papers:
        labels = [entry.label for entry in paper.entries]
        gaps += [f"{paper.key}: two entries are called {label!r}" for label in _repeated(labels)]
        for entry in paper.entries:
            where = f"{paper.key}, {entry.label}"
            named.update(entry.claims)
            gaps += [f"{where}: there is no claim {i!r}" for i in entry.claims if i not in registry]
            gaps += [f"{where}: claim {i!r} is named twice" for i in _repeated(entry.claims)]
            if not entry.claims and not entry.reason:
                gaps.append(f"{where}: neither a claim nor a reason why it is not checked")
            elif not entry.claims and not _has_reason(entry.reason):
                gaps.append(
                    f"{where}: a reason starts with {_REASON!r} and says something, got {entry.reason!r}"
                )
            elif entry.claims and entry.reason.startswith(_REASON):
                gaps.append(f"{where}: it names claims and says that it is not checked")
    gaps += [f"claim {claim.id!r} is named by no entry" for claim in registry if claim.id not in named]
    return gaps


def _has_reason(reason: str) -> bool:
    return reason.startswith(_REASON) and bool(reason.removeprefix(_REASON).strip())


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return list(dict.fromkeys(name for name in names if name in seen or seen.add(name)))


def _paper(name: str) -> PaperInventory:
    source = files("marginlab.proofs_check.inventory") / f"{name}.toml"
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    key = data["paper"]
    works = bibliography()
    if key not in works:
        raise InvalidInput(f"inventory {name!r} is about {key!r}, which is not in the bibliography.")
    return PaperInventory(
        key=key, title=works[key]["title"], entries=tuple(_entry(name, record) for record in data["entry"])
    )


def _entry(name: str, record: dict[str, Any]) -> Entry:
    if unknown := set(record) - {"label", "kind", "statement", "claims", "reason"}:
        raise InvalidInput(
            f"inventory {name!r}, entry {record.get('label')!r}: unknown fields {sorted(unknown)}."
        )
    if missing := {"label", "kind", "statement"} - set(record):
        raise InvalidInput(
            f"inventory {name!r}, entry {record.get('label')!r}: no {', '.join(sorted(missing))}."
        )
    return Entry(
        label=record["label"],
        kind=record["kind"],
        statement=record["statement"],
        claims=tuple(record.get("claims", ())),
        reason=record.get("reason", ""),
    )
