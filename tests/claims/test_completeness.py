"""Every registered claim stands in a test file, so that plain pytest runs all of them."""

from pathlib import Path

import marginlab


def test_every_registered_claim_is_imported_by_a_test_file() -> None:
    here = Path(__file__).parent
    text = "\n".join(p.read_text() for p in here.glob("test_*.py"))
    for claim in marginlab.claims():
        name = claim.id.split("/")[1].replace("-", "_")
        assert f"import {name} as {name}" in text, f"{claim.id} is registered and no test file imports it"
