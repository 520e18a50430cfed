"""The report as JUnit XML: one test case for each claim and each control."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from marginlab.proofs_check.reports import wording

#: XML 1.0 has no way to write these characters, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_report(document: Mapping[str, Any]) -> str:
    """JUnit XML: a suite for each family; unexpected verdicts are failures, exceptions are errors.

    Claims that were not selected are not test cases: a skipped case would look like a pass in many readers.
    """
    root = Element("testsuites", name="marginlab claims", time=_time(document["run"]["seconds"]))
    families: dict[str, Element] = {}
    for claim in document["claims"]:
        suite = families.get(claim["family"])
        if suite is None:
            suite = families[claim["family"]] = SubElement(
                root, "testsuite", name=claim["family"], timestamp=_text(document["run"]["started"])
            )
        if claim["outcome"]:
            _case(suite, claim["id"], "claim", claim["outcome"], wording.verdict_of(claim), claim["expect"])
        for control in claim["controls"]:
            name = f"{control['name']} ({control['type']})"
            _case(suite, claim["id"], name, control, wording.control_verdict(control), control["expected"])
    for suite in families.values():
        _count(suite)
    _count(root)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _case(
    suite: Element, claim: str, name: str, outcome: Mapping[str, Any], verdict: str, expected: str
) -> None:
    case = SubElement(suite, "testcase", classname=claim, name=_text(name), time=_time(outcome["seconds"]))
    if outcome["as_expected"]:
        SubElement(case, "system-out").text = _text(f"{verdict}: {outcome['reason']}")
        return
    tag = "error" if outcome["error"] else "failure"
    problem = SubElement(
        case,
        tag,
        message=_text(f"{verdict}, expected {expected}: {outcome['reason']}"),
        type=outcome["verdict"],
    )
    lines = [f"{i['label']}: {i['verdict']}: {i['reason']}" for i in outcome["instances"]]
    problem.text = _text("\n".join([*lines, outcome["error"]]).strip())


def _count(element: Element) -> None:
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    element.set("failures", str(len(list(element.iter("failure")))))
    element.set("errors", str(len(list(element.iter("error")))))
    if element.tag == "testsuite":
        element.set("time", _time(sum(float(case.get("time", "0")) for case in cases)))


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _time(seconds: Any) -> str:
    return f"{float(seconds):.3f}"
