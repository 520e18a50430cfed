"""The report in Markdown: the page's content, shorter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from marginlab.proofs_check.reports import glossary, wording
from marginlab.proofs_check.reports.mathematics import convertible, pieces

_SPECIAL = re.compile(r"([\\`*_\[\]<#|~$&])")


def markdown_report(
    document: Mapping[str, Any],
    pictures: Mapping[str, str] | None = None,
    captions: Mapping[str, str] | None = None,
) -> str:
    """The report in Markdown with $...$ mathematics.

    Parameters
    ----------
    document : mapping
    pictures : mapping of claim id to path, optional
        Figures beside the file.
    captions : mapping of claim id to text, optional
    """
    run = document["run"]
    lines = [
        "# Claims report",
        "",
        f"marginlab {_escaped(document['marginlab'])}, tier {run['tier']}, "
        f"started {_escaped(run['started'])}, "
        f"{wording.duration(run['seconds'])} in all.",
        "",
        *(
            _inventory(document["inventory"], {c["id"] for c in document["claims"]})
            if document["inventory"]["papers"]
            else []
        ),
        "## Outcome",
        "",
        _escaped(wording.exit_sentence(document)),
        "",
        f"{document['totals']['instances']} instance judgements (an instance counts once for each claim on it), "
        f"{document['totals']['excluded']} of them excluded (an assumption does not hold, or not decided).",
        "",
        *_verdicts(document),
        "## Claims",
        "",
    ]
    for claim in document["claims"]:
        lines += _claim(claim, (pictures or {}).get(claim["id"]), (captions or {}).get(claim["id"], ""))
    return (
        "\n".join([*lines, *_run(document), *_glossary(), *_works(document["bibliography"])]).rstrip() + "\n"
    )


def _inventory(inventory: Mapping[str, Any], ran: set[str]) -> list[str]:
    lines = [
        "## What is checked, and what is not",
        "",
        f"{inventory['checked']} inventory items are checked by a claim, {inventory['not_checked']} are not.",
        "",
    ]
    for paper in inventory["papers"]:
        lines += [f"### {_escaped(paper['title'])}", ""]
        for entry in paper["entries"]:
            names = ", ".join(f"`{i}`" + ("" if i in ran else " (not in this run)") for i in entry["claims"])
            tail = "; ".join(part for part in (names, _maths(entry["reason"])) if part)
            lines.append(
                f"- **{_escaped(entry['label'])}** ({entry['kind']}): {_maths(entry['statement'])} → {tail}"
            )
        lines.append("")
    return lines


def _verdicts(document: Mapping[str, Any]) -> list[str]:
    rows = []
    for c in document["claims"]:
        judged, excluded = wording.split_instances(c)
        good = sum(k["as_expected"] for k in c["controls"])
        mark = "" if c["as_expected"] else " (unexpected)"
        rows.append(
            f"| `{c['id']}` | {wording.verdict_of(c)}{mark} | {c['expect']} "
            f"| {good} of {len(c['controls']) + len(c['controls_missing'])} | {judged} / {excluded} "
            f"| {wording.evidence_of(c)} | {c['source']} | {wording.duration(wording.seconds_of(c))} |"
        )
    lines = (
        [
            "| claim | verdict | expected | controls as expected | judged / excluded | evidence | source "
            "| time |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
        if rows
        else ["No claim ran.", ""]
    )
    lines += [
        f"- NOT SELECTED `{c['id']}`: {_escaped(c['title'])} ({_escaped(c['reason'])})"
        for c in document["not_selected"]
    ]
    return [*lines, ""] if document["not_selected"] else lines


def _claim(claim: Mapping[str, Any], picture: str | None, caption: str) -> list[str]:
    judged, excluded = wording.split_instances(claim)
    mark = "as expected" if claim["as_expected"] else "NOT as expected"
    rests = (
        f"; rests on {', '.join(claim['rests_on'])}, not as expected or not run" if claim["rests_on"] else ""
    )
    standing = f", {wording.standing(claim)}" if wording.standing(claim) else ""
    lines = [
        f"### {_escaped(claim['title'])}",
        "",
        f"`{claim['id']}`: **{wording.verdict_of(claim)}**{standing}, {mark} (expected {claim['expect']}){rests}",
        "",
        _maths(claim["statement"]),
        "",
        f"{_escaped(claim['paper'])}, {_escaped(claim['where'])} ({claim['source']}); kind {claim['kind']}, "
        f"evidence {claim['evidence']}, tier {claim['min_tier']}. "
        f"Constants: {_escaped(wording.compact(claim['constants']))}. "
        + (f"Window {_escaped(wording.compact(claim['window']))}. " if claim["window"] else "")
        + f"{judged} instances judged, {excluded} excluded, at least {claim['min_valid']:.0%} must be judged"
        f"; unit of replication: {_escaped(claim['unit'])}.",
        "",
    ]
    if claim["erratum"]:
        lines += [f"Does not hold as published: {_maths(claim['erratum'])}", ""]
    if claim["notes"]:
        lines += [_maths(claim["notes"]), ""]
    if picture:
        lines += [f"![Figure of {claim['id']}]({picture})", "", *([_maths(caption), ""] if caption else [])]
    lines += [f"- assumes **{_escaped(a['name'])}**: {_maths(a['statement'])}" for a in claim["assumes"]]
    lines += [""] if claim["assumes"] else []
    if claim["outcome"]:
        lines += [
            f"Result: {_escaped(claim['outcome']['reason'])}.",
            "",
            "| instance | verdict | measured | predicted | what decided |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {_escaped(i['label'])} | {i['verdict']} | {_escaped(wording.interval(i['observed'], i['expected']))} "
            f"| {_escaped(wording.interval(i['expected'], i['observed']))} | {_escaped(i['reason'])} |"
            for i in claim["outcome"]["instances"]
        ]
        lines.append("")
        used = wording.tolerances(claim)
        lines += [f"Tolerances: {_escaped('; '.join(used))}.", ""] if used else []
        lines += [f"- warning: {_escaped(w)}" for w in claim["outcome"]["warnings"]]
        lines += _answers(claim["outcome"]["instances"])
    lines += [
        f"- certificate [{_escaped(i['label'])}]({wording.certificate_file(claim['id'], i['label'])}): "
        f"{_escaped(i['certificate']['statement'])}"
        for i in wording.certified(claim)
    ]
    lines += [f"- finding: {_escaped(f)}" for f in wording.findings_of(claim)]
    for k in claim["controls"]:
        changed = f", changed {_escaped(wording.compact(k['constants']))}" if k["constants"] else ""
        waived = f", waived {_escaped(', '.join(k['waived']))}" if k["waived"] else ""
        mark = "as expected" if k["as_expected"] else "NOT as expected"
        lines.append(
            f"- control **{_escaped(k['name'])}** ({k['type']}{changed}{waived}): "
            f"{wording.control_verdict(k)}, {mark} "
            f"(expected {_escaped(k['expected'])}): {_escaped(k['reason'])}"
        )
    lines += [f"- control **{_escaped(name)}**: NOT RUN" for name in claim["controls_missing"]]
    return [*lines, ""]


def _answers(instances: list[Mapping[str, Any]]) -> list[str]:
    lines = []
    for instance in instances:
        for name, a in instance["assumptions"].items():
            value = "" if a["value"] is None else f", value {_escaped(wording.number(a['value']))}"
            lines.append(
                f"- {_escaped(instance['label'])}: {_escaped(name)} {a['status']}{value} "
                f"({_escaped(a['witness'])})"
            )
    return [*lines, ""] if lines else []


def _run(document: Mapping[str, Any]) -> list[str]:
    run, environment = document["run"], document["environment"]
    git = environment["git"]
    dirty = " with uncommitted changes" if git["dirty"] else ""
    seeds = "each claim's own number" if run["seeds"] is None else f"0 to {run['seeds'] - 1}"
    versions = ", ".join(f"{name} {v or 'absent'}" for name, v in environment["versions"].items())
    return [
        "## Run and environment",
        "",
        f"- seeds: {seeds}; root seed {run['root_seed']}; config hash `{run['config_hash']}`; "
        f"selection: {_escaped(', '.join(run['selection'] or ['all claims of the tier']))}",
        f"- error level {wording.number(run['error_level'])} over {run['judgements']} statistical "
        f"judgements; workers {run['jobs']}; result store: {_escaped(run['store'] or 'none')}",
        f"- marginlab's revision {_escaped(git['revision'] or 'unknown')}{dirty}",
        f"- Python {_escaped(environment['python'])} on {_escaped(environment['platform'])}; "
        f"{_escaped(str(environment['cpu'] or 'unknown processor'))}, {environment['cores']} cores, "
        f"threads {_escaped(wording.compact(environment['threads']))}; "
        f"subnormals {'FLUSHED TO ZERO' if environment['flush_to_zero'] else 'kept'}",
        f"- {_escaped(versions)}",
        f"- BLAS, OpenMP: {_escaped('; '.join(map(wording.compact, environment['blas'])) or 'none loaded')}",
        "",
    ]


def _glossary() -> list[str]:
    lines = ["## Glossary", ""]
    for title, words in glossary.GLOSSARY.items():
        lines += [
            f"**{title}**",
            "",
            *(f"- {_escaped(w)}: {_escaped(meaning)}" for w, meaning in words.items()),
            "",
        ]
    return lines


def _works(works: Mapping[str, Any]) -> list[str]:
    lines = ["## Bibliography", ""]
    for key, work in works.items():
        arxiv = f", arXiv {work['arxiv']}{work['version']}" if work["arxiv"] else ""
        authors = _escaped("; ".join(work["authors"]))
        lines.append(f"- {_escaped(key)}: {authors}, {_escaped(work['title'])}, {work['year']}{arxiv}")
    return lines


def _escaped(text: str) -> str:
    """Text that Markdown, and HTML inside it, leaves alone, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\&", "&amp;").replace("\\<", "&lt;")


def _maths(text: str) -> str:
    """Text with its formulas kept as $...$, angle brackets in them as commands (HTML is read first)."""
    parts = []
    for sort, part in pieces(text):
        if sort == "math" and convertible(part):
            part = " ".join(part.replace("<", r"\lt ").replace(">", r"\gt ").split())
            parts.append(f"${part}$")
        elif sort == "math":
            parts.append(_escaped(f"${part}$"))
        else:
            space = (part[:1].isspace(), part[-1:].isspace())
            parts.append(" " * space[0] + _escaped(part) + " " * (space[1] and bool(part.strip())))
    return "".join(parts)
