"""Frozen configurations with one canonical JSON text and a hash of it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any


class Config:
    """Mix-in for frozen dataclasses of plain values (numbers, strings, booleans, None, nested tuples).

    Two configurations have the same hash if and only if they have the same class name and equal fields;
    subclasses convert their fields to canonical types (1 to 1.0, arrays to tuples) on construction.
    """

    __slots__ = ()

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces, shortest decimals that read back to the same floats."""
        return json.dumps(self._record(), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def config_hash(self) -> str:
        """SHA-256 of `to_json`, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def _record(self) -> dict[str, Any]:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {"config": type(self).__name__} | {field.name: getattr(self, field.name) for field in fields}
