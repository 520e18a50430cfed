"""Every document satisfies the schema, and the schema is strict enough to notice what does not belong."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from marginlab.proofs_check.reports import json_report, report_schema

VALIDATOR = jsonschema.Draft202012Validator(report_schema())

#: Mappings whose keys belong to the user, a paper or a package: anything may be added there.
OPEN = {
    "config", "constants", "series", "versions", "blas", "bibliography", "assumptions", "verdicts", "ranking",
    "certificate",
}  # fmt: skip


def test_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(report_schema())


@pytest.mark.parametrize("name", ["document", "good_document", "empty_document"])
def test_documents_satisfy_the_schema(name: str, request: pytest.FixtureRequest) -> None:
    document = request.getfixturevalue(name)
    VALIDATOR.validate(document)
    # As written and read back: no tuple, enum or numpy scalar hides in it.
    VALIDATOR.validate(json.loads(json_report(document)))


def test_json_keeps_every_digit_and_refuses_what_json_lacks(document: dict[str, Any]) -> None:
    assert json.loads(json_report(document)) == document
    with pytest.raises(ValueError, match="JSON"):
        json_report({**document, "schema_version": float("nan")})


def owned_objects(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of the objects whose keys are ours."""
    if isinstance(value, dict):
        if not path or path[-1] not in OPEN:
            yield path
        for key, child in value.items():
            if key not in ("config", "constants", "series", "certificate", "blas", "threads"):
                yield from owned_objects(child, (*path, key))
    elif isinstance(value, list) and value:
        # Elsewhere the first and the last entry stand for the list: its schema is the same for all.
        for k in range(len(value)) if path == ("claims",) else {0, len(value) - 1}:
            yield from owned_objects(value[k], (*path, k))


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def test_an_unknown_key_is_refused_wherever_keys_are_ours(document: dict[str, Any]) -> None:
    paths = list(owned_objects(document))
    assert len(paths) > 50
    for path in paths:
        changed = copy.deepcopy(document)
        at(changed, path)["surprise"] = 1
        assert not VALIDATOR.is_valid(changed), path


def test_a_missing_key_is_refused(document: dict[str, Any]) -> None:
    for path in [(), ("run",), ("environment",), ("totals",), ("claims", 0), ("claims", 0, "outcome"),
                 ("claims", 0, "controls", 0), ("claims", 0, "outcome", "instances", 0), ("inventory",)]:  # fmt: skip
        for key in at(document, path):
            changed = copy.deepcopy(document)
            del at(changed, path)[key]
            assert not VALIDATOR.is_valid(changed), (path, key)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("exit_code",), 2),
        (("run", "config_hash"), "abc"),
        (("run", "tier"), "huge"),
        (("claims", 0, "outcome", "verdict"), "GOOD"),
        (("claims", 0, "outcome", "instances", 0, "observed"), [1.0]),
        (("claims", 0, "outcome", "instances", 0, "observed"), [1.0, "infinite"]),
        (("claims", 0, "controls", 0, "type"), "Hope"),
        (("claims", 0, "min_valid"), 0),
        (("claims", 0, "id"), "No Id"),
        (("totals", "excluded"), -1),
    ],
)
def test_wrong_values_are_refused(document: dict[str, Any], path: tuple[str | int, ...], value: Any) -> None:
    changed = copy.deepcopy(document)
    at(changed, path[:-1])[path[-1]] = value
    assert not VALIDATOR.is_valid(changed)


def test_infinities_are_strings(document: dict[str, Any]) -> None:
    statistics = next(c for c in document["claims"] if c["id"] == "fake/statistics")
    assert statistics["outcome"]["instances"][0]["expected"] == ["-inf", 1.0]
