"""Random streams keyed by name: data depend on a run's configuration, never on order or selection."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def config_hash(config: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a configuration."""
    return hashlib.sha256(json.dumps(config, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def stream(root: int, config: Mapping[str, Any], index: int) -> np.random.SeedSequence:
    """Seed sequence of replication `index` of the run described by `config`.

    ``SeedSequence(root, spawn_key=(words of the configuration's hash, index))``: two runs share numbers only
    if their configurations and indices are equal.
    """
    import numpy as np

    digest = bytes.fromhex(config_hash(config))[:16]
    words = tuple(int.from_bytes(digest[k : k + 4], "big") for k in range(0, 16, 4))
    return np.random.SeedSequence(root, spawn_key=(*words, index))
