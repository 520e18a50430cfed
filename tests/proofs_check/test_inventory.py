"""The inventory has no gap, its loader refuses what is wrong, and the bibliography is BibTeX."""

from __future__ import annotations

import re
from typing import Any

import pytest

import marginlab
from marginlab.proofs_check import Claim, Evidence, Instance, Interval, Kind, Plant, Source
from marginlab.proofs_check.bibliography import bibliography, bibtex
from marginlab.proofs_check.engine.registry import Registry
from marginlab.proofs_check.inventory import (
    Entry,
    PaperInventory,
    inventory,
    inventory_document,
    inventory_gaps,
)
from marginlab.proofs_check.inventory.loader import KINDS, PAPERS
from marginlab.theory.errors import InvalidInput


def fake_claim(identifier: str) -> Claim:
    return Claim(
        id=identifier, title="t", paper="gonon2026gmc", where="here", source=Source.DERIVED, kind=Kind.IDENTITY,
        evidence=Evidence.EXACT, statement="$1=1$", instances=lambda run: [Instance(label="one", data=1.0)],
        predict=lambda instance, k: Interval.exact(k["c"]), measure=lambda instance: Interval.exact(1.0),
        controls=(Plant(name="two", constants={"c": 2.0}),), constants={"c": 1.0},
    )  # fmt: skip


def papers(*entries: Entry) -> list[PaperInventory]:
    return [PaperInventory(key="p", title="Paper", entries=entries)]


def entry(label: str, claims: tuple[str, ...] = (), reason: str = "") -> Entry:
    return Entry(label=label, kind="theorem", statement="s", claims=claims, reason=reason)


def test_the_inventory_has_no_gap() -> None:
    assert inventory_gaps(marginlab.claims()) == []


@pytest.mark.parametrize(
    ("entries", "gap"),
    [
        ([entry("A", ("f/a",)), entry("B", ("f/b", "f/gone"))], "p, B: there is no claim 'f/gone'"),
        ([entry("A", ("f/a", "f/b")), entry("B")], "p, B: neither a claim nor a reason why it is not checked"),
        ([entry("A", ("f/a", "f/b")), entry("B", (), "later")],
         "p, B: a reason starts with 'not checked: ' and says something, got 'later'"),
        ([entry("A", ("f/a", "f/b")), entry("B", (), "not checked: ")],
         "p, B: a reason starts with 'not checked: ' and says something, got 'not checked: '"),
        ([entry("A", ("f/a",))], "claim 'f/b' is named by no entry"),
        ([entry("A", ("f/a",)), entry("A", ("f/b",))], "p: two entries are called 'A'"),
        ([entry("A", ("f/a", "f/a", "f/b"))], "p, A: claim 'f/a' is named twice"),
        ([entry("A", ("f/a", "f/b"), "not checked: x")], "p, A: it names claims and says that it is not checked"),
    ],
)  # fmt: skip
def test_every_sort_of_gap_is_found(entries: list[Entry], gap: str) -> None:
    registry = Registry([fake_claim("f/a"), fake_claim("f/b")])
    assert inventory_gaps(registry, papers(*entries)) == [gap]


def test_no_gap_where_there_is_none() -> None:
    registry = Registry([fake_claim("f/a")])
    assert (
        inventory_gaps(registry, papers(entry("A", ("f/a",)), entry("B", (), "not checked: a drawing"))) == []
    )


def test_the_papers_are_the_four_in_order() -> None:
    assert [p.key for p in inventory()] == [
        "gonon2026gmc", "dangelo2026ngrams", "dangelo2026mixtures", "song2025composition",
    ]  # fmt: skip
    assert len(PAPERS) == 4


@pytest.mark.parametrize(
    ("paper", "labels"),
    [
        (0, [f"Assumption A{k}" for k in (1, 2, 3, 4, 5, 6, 7, 9)]),
        (0, [f"Fig. {k}" for k in range(1, 14)] + [f"Table {k}" for k in range(1, 5)]),
        (0, [f"Erratum ({i})" for i in ("i", "ii", "iii", "iv", "v", "vi", "vii", "ix")]),
        (0, ["Definition 1.1", "Theorem 4.1", "Theorem D.1", "Assumption 4.2", "Lemma F.1", "Lemma F.3",
             "Lemma G.3", "Lemma E.3", "Definition E.1", "Assumption A8 (Assumption E.2)"]),
        (1, ["Proposition 3.1", "Corollary 4.1", "Corollary 4.2", "Lemma 4.1", "Eq. (8)", "Eq. (11)", "Fig. 3"]),
        (2, ["Theorem 1", "Theorem 2", "Proposition 3", "Eq. (7)", "Fig. 1", "Fig. 5"]),
        (3, ["Erratum, error mask", "Two phases", "One layer", "Pattern pool", "Head inventories"]),
    ],
)  # fmt: skip
def test_numbered_items_are_all_there(paper: int, labels: list[str]) -> None:
    have = {e.label for e in inventory()[paper].entries}
    assert not set(labels) - have


def test_theorem_and_noise_errata_are_listed_in_parts() -> None:
    labels = [e.label for e in inventory()[0].entries]
    assert sum(label.startswith("Theorem D.2, ") for label in labels) == 2
    assert sum(label.startswith("Proposition G.2 (") for label in labels) == 3
    assert sum(label.startswith("Erratum (viii)") for label in labels) == 2


def test_document_counts() -> None:
    document = inventory_document()
    entries = [e for p in document["papers"] for e in p["entries"]]
    assert document["checked"] == sum(bool(e["claims"]) for e in entries)
    assert document["checked"] + document["not_checked"] == len(entries) > 150
    assert all(e["kind"] in KINDS for e in entries)


def test_entries_refuse_what_they_cannot_be() -> None:
    with pytest.raises(InvalidInput, match="kind of inventory entry 'A' must be one of"):
        Entry(label="A", kind="hope", statement="s")
    with pytest.raises(InvalidInput, match="needs a label and a statement"):
        Entry(label="A", kind="theorem", statement="")


def test_assumptions_name_the_claims_that_make_them() -> None:
    claims = list(marginlab.claims())
    for paper in inventory():
        for item in paper.entries:
            match = re.match(r"Assumption (A[1-9])\b", item.label)
            if match:
                making = {
                    c.id for c in claims if c.paper == paper.key and match[1] in [a.name for a in c.assumes]
                }
                assert set(item.claims) == making, item.label


def test_every_claim_cites_a_work_we_know() -> None:
    assert {c.paper for c in marginlab.claims()} <= set(bibliography())


def test_bibtex_entries_parse() -> None:
    for key, work in bibliography().items():
        text = work["bibtex"]
        match = re.fullmatch(r"@(misc|article|inproceedings)\{([a-z0-9]+),\n(.*)\n\}", text, re.DOTALL)
        assert match is not None
        assert match[2] == key
        fields = dict(re.findall(r"^  ([a-z]+) = \{(.*)\},?$", match[3], re.MULTILINE))
        assert fields["year"] == str(work["year"])
        assert fields["author"].split(" and ") == work["authors"]
        assert fields["title"] == "{" + work["title"] + "}"
        assert fields["eprint"] == work["arxiv"] + work["version"]
        assert text.count("{") == text.count("}")
        assert text.isascii()


def test_bibtex_escapes() -> None:
    work: dict[str, Any] = {"title": "50% & {more}_$", "authors": ["A, B."], "year": 2000, "venue": "X"}
    assert r"title = {{50\% \& \{more\}\_\$}}" in bibtex("k", work)
    assert bibtex("k", work).startswith("@inproceedings{k,")


def test_what_only_excludes_instances_is_not_called_checked() -> None:
    """An assumption's predicate, a definition or a slip of notation that no verdict depends on is no check."""
    for paper in inventory():
        for found in paper.entries:
            if found.claims:
                assert not re.search("as assumption|the claims? uses?|excluded", found.reason), found.label
