"""The verifier of proofs of convergence: it accepts what was proved and refuses whatever was changed."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check.certificates import verify_convergence as checker
from marginlab.proofs_check.convergence import ConvergenceProof, first_proof, prove_convergence
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run

STEP = 1e-3

#: Claims that become stronger when they become larger; the others when they become smaller.
GROWING = {"loss_lower", "rate", "norm_lower", "share", "margin"}


@pytest.fixture(scope="module")
def proofs(
    half_space: tuple[Problem, Any, int, ConvergenceProof], without_a4: Problem, integers: Problem
) -> dict[str, ConvergenceProof]:
    """One proof of each kind, and one of a flow."""
    problem, run_, _, explicit = half_space
    early = first_proof(problem, run_.W, STEP, "loss_to_zero")
    late = first_proof(
        without_a4, run(without_a4, step=STEP, steps=3_000, record=100).W, STEP, "loss_to_zero"
    )
    flow = first_proof(problem, run_.W, None)
    # Theta between 2/3 and 1 with a dependent set of constraints, so that A3 alone proves nothing.
    doubled = Problem(
        [[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]], [[1.0, 0.0]], [[[0.0, 0.0], [1.0, 0.1], [1.0, -0.1]]], [0]
    )
    alone = prove_convergence(doubled, np.array([[-0.7, 0.0], [0.0, 0.0]]), 0.1)
    assert early is not None
    assert late is not None
    assert flow is not None
    found = {
        "half-space": explicit,
        "identifiable-half-space": early[1],
        "identifiable": late[1],
        "half-space-loss": alone,
    }
    assert {name: proof.kind for name, proof in found.items()} == {name: name for name in found}
    return found | {"flow": flow[1], "integers": prove_convergence(integers, np.zeros((3, 3)), None)}


KINDS = ("half-space", "identifiable-half-space", "identifiable", "half-space-loss", "flow", "integers")


@pytest.mark.parametrize("name", KINDS)
def test_what_was_proved_is_accepted(proofs: dict[str, ConvergenceProof], name: str, tmp_path: Path) -> None:
    proof = proofs[name]
    verdict = checker.verify(proof.write(tmp_path / "proof.json"))
    assert verdict.accepted, verdict.failed_inequality
    assert verdict.statement == proof.statement


def _signed(document: dict[str, Any]) -> dict[str, Any]:
    """With the digest and the statement that a forger would write."""
    document["data_sha256"] = checker.data_digest(document)
    document["statement"] = checker.statement(document)
    return document


@pytest.mark.parametrize("name", KINDS)
def test_a_stronger_claim_is_refused(proofs: dict[str, ConvergenceProof], name: str) -> None:
    original = proofs[name].document
    assert original is not None
    for claim, text in original["claims"].items():
        document = copy.deepcopy(dict(original))
        value = Fraction(text)
        stronger = value + abs(value) / 10**6 * (1 if claim in GROWING else -1)
        document["claims"][claim] = f"{float(stronger):.17f}" if abs(stronger) < 1e9 else f"{int(stronger)}"
        verdict = checker.verify(_signed(document))
        assert not verdict.accepted, claim
        assert verdict.failed_inequality is not None
        assert verdict.failed_inequality.startswith(claim), verdict.failed_inequality


@pytest.mark.parametrize("name", KINDS)
def test_another_kind_is_refused(proofs: dict[str, ConvergenceProof], name: str) -> None:
    original = proofs[name].document
    assert original is not None
    everything: dict[str, Any] = {}
    for proof in proofs.values():
        assert proof.document is not None
        everything |= proof.document["claims"]
    for kind, claims in checker.CLAIMS.items():
        if original["kind"] in (
            kind,
            kind.removesuffix("-loss"),
        ):  # itself, or a weaker statement that is true
            continue
        document = copy.deepcopy(dict(original)) | {"kind": kind}
        document["claims"] = {c: original["claims"].get(c, everything[c]) for c in claims}
        verdict = checker.verify(_signed(document))
        assert not verdict.accepted, kind


def test_a_changed_matrix_is_refused(proofs: dict[str, ConvergenceProof]) -> None:
    """One number of the data or of the iterate, digest and statement forged: the claims no longer fit."""
    original = proofs["half-space"].document
    assert original is not None
    for name in ("keys", "values", "queries", "W", "step"):
        document = copy.deepcopy(dict(original))
        row = document[name]["mantissa"][0]
        row[0] += (1 + abs(row[0])) // 1000 + 1
        assert not checker.verify(_signed(document)).accepted, name
        document["data_sha256"] = original["data_sha256"]
        refused = checker.verify(document).failed_inequality
        assert refused == "malformed: data_sha256 is not the data's"


@pytest.mark.parametrize("name", ["half-space", "identifiable"])
def test_malformed_files_are_refused_without_raising(proofs: dict[str, ConvergenceProof], name: str) -> None:
    original = proofs[name].document
    assert original is not None
    for field in original:
        for value in (None, [], {}, "x", 7, float("nan"), {"exponent": 10**9, "mantissa": [[1]]}):
            document = copy.deepcopy(dict(original)) | {field: value}
            if field == "step" and value is None:
                continue  # that is a flow: another statement, refused by the digest below
            verdict = checker.verify(document)
            assert not verdict.accepted, (field, value)
        document = copy.deepcopy(dict(original))
        del document[field]
        assert not checker.verify(document).accepted, field
    assert not checker.verify(dict(original) | {"step": None}).accepted
    assert not checker.verify(dict(original) | {"more": 1}).accepted
    for text in ("", "{", "[]", '{"schema": 1, "schema": 2}'):
        assert not checker.verify(json.loads(text) if text == "[]" else Path("/nonexistent") / text).accepted


def test_witnesses_are_not_trusted(proofs: dict[str, ConvergenceProof]) -> None:
    for name, field in (("half-space", "separator"), ("half-space", "dual"), ("identifiable", "normals")):
        original = proofs[name].document
        assert original is not None
        document = copy.deepcopy(dict(original))
        document[field]["mantissa"] = [[-v for v in row] for row in document[field]["mantissa"]]
        assert not checker.verify(document).accepted, field


def test_the_checker_shares_no_code_with_the_prover() -> None:
    code = (
        "import sys; import marginlab.proofs_check.certificates.verify_convergence; "
        "print(sorted(m for m in sys.modules if m == 'numpy' or 'marginlab' in m and ('separators' in m or "
        "'convergence.' in m or 'theory.match_copy' in m or 'simulations' in m)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    source = Path(checker.__file__).read_text()
    assert len(source.splitlines()) <= 200


def test_the_command_line_verifies_both_sorts(
    proofs: dict[str, ConvergenceProof], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from marginlab.cli.verifying import verify_files

    good = proofs["half-space"].write(tmp_path / "good.json")
    bad = tmp_path / "bad.json"
    document = copy.deepcopy(dict(json.loads(good.read_text())))
    document["claims"]["loss"] = "0"
    bad.write_text(json.dumps(document))
    assert verify_files([good]) == 0
    assert verify_files([good, bad]) == 1
    out = capsys.readouterr().out
    assert "tends to the max-margin direction" in out
    assert "REJECTED" in out
