"""The JSON Schema of report documents."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def report_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) that every report document satisfies."""
    source = files("marginlab.proofs_check.reports") / "schema.json"
    return json.loads(source.read_text(encoding="utf-8"))
