"""Numbers and outcomes of a report document in words: sensible digits, intervals, durations, sentences."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marginlab.proofs_check.engine.judgement import DIGITS as DIGITS  # report.json keeps every digit
from marginlab.proofs_check.engine.judgement import centred, digits_apart
from marginlab.proofs_check.engine.vocabulary import Evidence

Json = Mapping[str, Any]


def number(value: Any, digits: int = DIGITS) -> str:
    """A number of the document, the strings "inf", "-inf" and "nan" included, rounded for reading."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    value = float(value)
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "not a number")
    return f"{value:.{digits}g}"


def interval(ends: Sequence[Any] | None, beside: Sequence[Any] | None = None) -> str:
    """An interval: one number, centre ± radius if it is narrow, an inequality if it is one-sided.

    Parameters
    ----------
    ends : pair of numbers or None
    beside : pair of numbers, optional
        The interval that it is compared with: as many digits are shown as tell the two apart.
    """
    if ends is None:
        return "-"
    lo, hi = (float(e) for e in ends)
    digits = DIGITS if beside is None else digits_apart((lo, hi), (float(beside[0]), float(beside[1])))
    if lo == hi:
        # A point beside a narrow interval is compared digit by digit.
        return number(lo) if float(f"{lo:.{DIGITS}g}") == lo else number(lo, max(16, digits))
    if math.isinf(lo) and math.isinf(hi):
        return "any value"
    if math.isinf(hi):
        return f"≥ {number(lo, digits)}"
    if math.isinf(lo):
        return f"≤ {number(hi, digits)}"
    centre, radius = lo / 2 + hi / 2, hi / 2 - lo / 2
    # Narrower than the digits shown: the two ends would look alike.
    if radius < abs(centre) * 10.0 ** (1 - DIGITS) / 2:
        return centred((lo, hi), digits)
    return f"[{number(lo, digits)}, {number(hi, digits)}]"


def duration(seconds: Any) -> str:
    """Seconds as "12 ms", "3.4 s" or "5 min 20 s"."""
    value = float(seconds)
    if not math.isfinite(value):
        return "unknown time"
    if value < 1e-3:
        return "under 1 ms"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def compact(value: Any) -> str:
    """A JSON value on one line: numbers rounded, mappings as "name = value"."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k} = {_nested(v)}" for k, v in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(compact(v) for v in value) + "]"
    if value is None or isinstance(value, (bool, int, float)) or value in ("inf", "-inf", "nan"):
        return number(value)
    return str(value)


def _nested(value: Any) -> str:
    return f"({compact(value)})" if isinstance(value, Mapping) else compact(value)


def described(summary: Json | None) -> str:
    """A measured or predicted value (`engine.values.summary`) in words, without its tolerance rule."""
    if summary is None:
        return "nothing"
    if "curve" in summary:
        return (
            f"{summary['curve']} against {summary['against']} at {summary['points']} points, "
            f"at the last one {interval(_ends(summary['last']))}"
        )
    if "approach" in summary:
        return (
            f"{summary['approach']} at {summary['points']} points, "
            f"at the last one {interval(_ends(summary['last']))}"
        )
    if "sample" in summary:
        return (
            f"{summary['sample']} of {summary['n']} replications ({summary['unit']}): "
            f"{number(summary['mean'])}"
        )
    if "ranking" in summary:
        return "; ".join(f"{name}: {described(value)}" for name, value in summary["ranking"].items())
    if "order" in summary:
        return " < ".join(map(str, summary["order"]))
    if "before" in summary:
        return (
            f"below {number(summary['before'])} at first, above {number(summary['after'])} in the end, "
            f"crossing in {interval(summary['window'])}"
        )
    if "shape" in summary and "lo" not in summary:
        return "an empty array"
    if "shape" in summary:
        shape = " x ".join(map(str, summary["shape"]))
        return f"{shape} values between {number(summary['lo'])} and {number(summary['hi'])}"
    if "lo" in summary:
        return interval(_ends(summary))
    return compact(summary.get("value"))


def rules(summary: Json | None) -> list[str]:
    """Tolerance rules inside a measured or predicted value, each once, in order."""
    if summary is None:
        return []
    found = [str(summary["rule"])] if summary.get("rule") else []
    for value in summary.get("ranking", {}).values():
        found += rules(value)
    return list(dict.fromkeys(found))


def tolerances(claim: Json) -> list[str]:
    """Tolerance rules behind a claim's own numbers, each once, in order."""
    instances = claim["outcome"]["instances"] if claim["outcome"] else []
    return list(
        dict.fromkeys(r for i in instances for side in ("measured", "predicted") for r in rules(i[side]))
    )


def exit_sentence(document: Json) -> str:
    """What the exit status says, in words."""
    totals = document["totals"]
    if not totals["claims"]:
        return "Exit status 1: nothing ran, so nothing was checked."
    claims = f"{totals['claims']} claim{_s(totals['claims'])}"
    controls = f"{totals['controls']} control{_s(totals['controls'])}"
    if document["exit_code"] == 0:
        return f"Exit status 0: all {claims} and {controls} that ran came out as expected."
    off = ", ".join(c["id"] for c in document["claims"] if not c["as_expected"])
    return (
        f"Exit status 1: {totals['unexpected']} of {claims} did not come out as expected, with their "
        f"controls ({off}); {totals['controls_as_expected']} of {controls} came out as expected."
    )


def verdict_of(claim: Json) -> str:
    """The claim's own verdict, or NOT RUN."""
    return claim["outcome"]["verdict"] if claim["outcome"] else "NOT RUN"


def standing(claim: Json) -> str:
    """What a claim's verdict amounts to, given its evidence: proved or observed; empty where nothing was decided."""
    evidence, verdict = Evidence(claim["evidence"]), verdict_of(claim)
    if verdict == "PASS":
        if evidence is Evidence.SYMBOLIC:
            return "proved"
        return "proved for these instances" if evidence.proves else "observed on these instances"
    if verdict == "FAIL":
        return "refuted by an instance" if evidence.proves else "contradicted by what was measured"
    return ""


def evidence_of(claim: Json) -> str:
    """The evidence of a claim and what its verdict amounts to, for a table."""
    return ": ".join(part for part in (claim["evidence"], standing(claim)) if part)


def split_instances(claim: Json) -> tuple[int, int]:
    """How many of a claim's instances were judged, and how many were excluded."""
    instances = claim["outcome"]["instances"] if claim["outcome"] else []
    excluded = sum(i["verdict"] in ("VACUOUS", "INCONCLUSIVE") for i in instances)
    return len(instances) - excluded, excluded


def seconds_of(claim: Json) -> float:
    """Time of a claim with its controls."""
    parts = [*([claim["outcome"]] if claim["outcome"] else []), *claim["controls"]]
    return math.fsum(float(p["seconds"]) for p in parts)


def control_verdict(control: Json) -> str:
    """What a control came out as; for a Break both verdicts, and for a FAIL on how many instances."""
    if control["type"] == "Break" and control["waived_verdict"]:
        return f"{control['verdict']}, waived {_on_how_many(control, control['waived_verdict'])}"
    return _on_how_many(control, control["verdict"])


def _on_how_many(control: Json, verdict: str) -> str:
    """A control that fails on one instance of many shows less than one that fails on all."""
    instances = control["instances"]
    if verdict != "FAIL" or not instances:
        return verdict
    return f"FAIL on {sum(i['verdict'] == 'FAIL' for i in instances)} of {len(instances)}"


def findings_of(claim: Json) -> list[str]:
    """Findings about assumptions, from the claim's own vacuous instances and from its Waive controls."""
    own = list(claim["outcome"]["findings"]) if claim["outcome"] else []
    return own + [f"{c['name']}: {c['finding']}" for c in claim["controls"] if c["finding"]]


def certified(claim: Json) -> list[Json]:
    """Instances of a claim that have a certificate file."""
    instances = claim["outcome"]["instances"] if claim["outcome"] else []
    return [i for i in instances if i["certificate"]]


def certificate_file(claim_id: str, label: str) -> str:
    """Where the certificate of an instance lies, relative to the report: safe characters, one file a label.

    Labels of plain words keep their words. Others would share names ("a-b" and "a b") or be too long for a
    file system, so a piece of their hash tells them apart.
    """
    words = re.sub(r"[^A-Za-z0-9.]+", "-", label)
    if not re.fullmatch(r"[A-Za-z0-9.]+( [A-Za-z0-9.]+)*", label) or len(label) > 80:
        words = f"{words[:80]}-{hashlib.sha256(label.encode()).hexdigest()[:12]}"
    return f"certificates/{claim_id.replace('/', '--')}--{words}.json"


def counted(entries: Iterable[Json]) -> dict[str, tuple[int, int]]:
    """Inventory entries by kind: (checked, all)."""
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        checked, total = found.get(entry["kind"], (0, 0))
        found[entry["kind"]] = (checked + bool(entry["claims"]), total + 1)
    return found


def _ends(value: Json) -> tuple[Any, Any]:
    return value["lo"], value["hi"]


def _s(n: int) -> str:
    return "" if n == 1 else "s"
