"""Every registered claim stands in a test file, so that plain pytest runs all of them."""

import runpy
from pathlib import Path

import marginlab


def test_every_registered_claim_is_collected_from_a_test_file() -> None:
    collected = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for value in runpy.run_path(str(path)).values():
            collected |= {id(entry) for entry in (value if isinstance(value, tuple) else (value,))}
    missing = [claim.id for claim in marginlab.claims() if id(claim) not in collected]
    assert not missing, f"registered, and collected from no test file: {missing}"
