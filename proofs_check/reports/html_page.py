"""The report as one HTML page: no network, no script, readable on a phone, on paper and in the dark."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from marginlab.proofs_check.reports import glossary, wording
from marginlab.proofs_check.reports.graph import claims_graph_svg
from marginlab.proofs_check.reports.mathematics import text_to_html

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

#: Draws a claim's figure from the claim's part of the document; returns SVG. A text in its attribute ``caption``
#: (optional) stands below the picture.
Drawer = Callable[[Mapping[str, Any]], str]


def html_report(
    document: Mapping[str, Any],
    drawings: Mapping[str, str | Exception] | None = None,
    captions: Mapping[str, str] | None = None,
) -> str:
    """The whole report as HTML.

    Parameters
    ----------
    document : mapping
        The report document.
    drawings : mapping of claim id to SVG text or to what went wrong, optional
        As `draw_figures` returns them.
    captions : mapping of claim id to text, optional
        As `figure_captions` returns them.
    """
    from markupsafe import Markup

    drawings = drawings or {}
    # The keys of the document are the names in the template; SVG of the graph is our own and escapes labels.
    return _template().render(
        **document,
        document=document,
        ran={claim["id"] for claim in document["claims"]},
        style=Markup(_style()),
        graph=Markup(claims_graph_svg(document)) if document["claims"] else "",
        figures={
            c["id"]: _figure(c, drawings.get(c["id"]), (captions or {}).get(c["id"], ""))
            for c in document["claims"]
            if c["figure"]
        },
        glossary=glossary.GLOSSARY,
        sources=glossary.SOURCES,
        kinds=glossary.KINDS,
        evidence=glossary.EVIDENCE,
        tiers=glossary.TIERS,
        controls=glossary.CONTROLS,
    )


def draw_figures(
    document: Mapping[str, Any], drawers: Mapping[str, Drawer] | None = None
) -> dict[str, str | Exception]:
    """SVG of every claim's figure, or the exception that drawing it raised (a report is never lost to it).

    Parameters
    ----------
    document : mapping
    drawers : mapping of figure name to Drawer, optional

    Returns
    -------
    dict of claim id to str or Exception
        Claims without a figure, or whose drawer is not there, are left out.
    """
    drawn: dict[str, str | Exception] = {}
    for claim in document["claims"]:
        drawer = (drawers or {}).get(claim["figure"])
        if claim["figure"] and drawer is not None:
            try:
                drawn[claim["id"]] = drawer(claim)
            except Exception as raised:
                drawn[claim["id"]] = raised
    return drawn


def figure_captions(
    document: Mapping[str, Any], drawers: Mapping[str, Drawer] | None = None
) -> dict[str, str]:
    """What a drawer says about its pictures, in its attribute ``caption``, for every claim whose drawer has one."""
    found = {c["id"]: getattr((drawers or {}).get(c["figure"]), "caption", "") for c in document["claims"]}
    return {name: caption for name, caption in found.items() if caption}


def anchor(claim_id: str) -> str:
    """Fragment identifier of a claim: letters, digits and hyphens only."""
    return "claim-" + claim_id.replace("/", "--")


def answers(claim: Mapping[str, Any], assumption: str) -> str:
    """How often an assumption held, failed or stayed open on the claim's own instances."""
    instances = claim["outcome"]["instances"] if claim["outcome"] else []
    found = Counter(
        i["assumptions"][assumption]["status"] for i in instances if assumption in i["assumptions"]
    )
    return (
        ", ".join(f"{status} on {n}" for status in glossary.STATUSES if (n := found[status]))
        or "not looked at"
    )


def _figure(claim: Mapping[str, Any], drawing: str | Exception | None, caption: str) -> Markup:
    """The figure as an image of its own: its ids, styles and scripts cannot touch the page."""
    from markupsafe import Markup

    if isinstance(drawing, str):
        data = base64.b64encode(drawing.encode()).decode()
        text = f"Figure of {claim['id']}: {claim['title']}"
        return Markup(
            f'<p class="figure"><img alt="{escape(text)}" src="data:image/svg+xml;base64,{data}"></p>'
            + (f'<p class="caption small soft">{text_to_html(caption)}</p>' if caption else "")
        )
    why = f"it could not be drawn: {drawing}" if drawing is not None else "nothing installed here draws it"
    return Markup(f'<p class="soft">Figure {escape(claim["figure"])}: {escape(why)}.</p>')


@cache
def _style() -> str:
    return (files("marginlab.proofs_check.reports") / "templates" / "style.css").read_text(encoding="utf-8")


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("marginlab.proofs_check.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "maths": lambda text: Markup(text_to_html(text)),
        "anchor": anchor,
        "answers": answers,
        "number": wording.number,
        "interval": wording.interval,
        "described": wording.described,
        "rules": wording.rules,
        "tolerances": wording.tolerances,
        "compact": wording.compact,
        "duration": wording.duration,
        "exit_sentence": wording.exit_sentence,
        "verdict_of": wording.verdict_of,
        "certified": wording.certified,
        "certificate_file": wording.certificate_file,
        "standing": wording.standing,
        "evidence_of": wording.evidence_of,
        "split_instances": wording.split_instances,
        "seconds_of": wording.seconds_of,
        "control_verdict": wording.control_verdict,
        "findings_of": wording.findings_of,
        "counted": wording.counted,
    }
    return environment.get_template("report.html.j2")
