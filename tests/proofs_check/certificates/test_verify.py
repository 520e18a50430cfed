"""The checker accepts what is true, refuses each false claim by name, and never raises."""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import math
import sys
from decimal import Decimal
from pathlib import Path

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import certify, certify_non_separable
from marginlab.proofs_check.certificates import verify as checker
from marginlab.proofs_check.certificates.verify import data_digest, statement, verify

TRIANGLE = np.array([[1.0, 2.0], [3.0, -1.0], [-4.0, -1.0]])


def separable_document(reference, kind):
    Z = reference.separable(np.random.default_rng(7), 5, 3, integer=True)
    if kind == "gap":
        Z = np.vstack([Z, Z[:1] + Z[1:2], Z])  # duplicates
    certificate = certify(Z, reference.nnls_solution(Z), exact=kind == "exact")
    assert certificate.kind == kind
    return copy.deepcopy(certificate.document)


def document_of(reference, kind):
    if kind == "not-separable":
        return copy.deepcopy(certify_non_separable(TRIANGLE, np.ones(3)).document)
    if kind == "norm-bound":
        nearly = np.array([[1.0, 0.0], [-1.0, 0.25]])
        return copy.deepcopy(certify_non_separable(nearly, np.ones(2)).document)
    return separable_document(reference, kind)


KINDS = ("active-set", "gap", "exact", "not-separable", "norm-bound")


def reason(source) -> str:
    """Why a document is refused; the refusal is checked here."""
    verdict = verify(source)
    assert not verdict.accepted
    assert (verdict.statement, verdict.gap) == ("", None)
    assert verdict.failed_inequality
    return verdict.failed_inequality


def resealed(document):
    """The document with digest and statement made to fit again: what a forger would do."""
    if document["kind"] in ("not-separable", "norm-bound"):
        document.pop("separator", None)
    document["data_sha256"] = data_digest(document)
    document["statement"] = statement(document)
    return document


@pytest.mark.parametrize("kind", KINDS)
def test_accepts_as_document_text_and_path(reference, kind, tmp_path):
    document = document_of(reference, kind)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(document))
    for source in (document, path, str(path)):
        verdict = verify(source)
        assert verdict.accepted, verdict.failed_inequality
        assert verdict.failed_inequality is None
        assert verdict.statement == document["statement"]
        assert document["data_sha256"] in verdict.statement
    assert (verdict.gap is None) == (kind in ("not-separable", "norm-bound"))


def nudged(text: str, factor: str) -> str:
    return f"{Decimal(text) * Decimal(factor):f}"


@pytest.mark.parametrize(
    ("claim", "factor", "words"),
    [
        ("margin_lower", "1.00000000001", "margin_lower <="),
        ("margin_upper", "0.99999999999", "sum p_i"),
        ("achieved", "1.00000000001", "achieved <="),
        ("angle", "0.9", "angle of W"),
    ],
)
@pytest.mark.parametrize("kind", ["active-set", "gap", "exact"])
def test_a_claim_that_says_too_much_is_refused_by_name(reference, kind, claim, factor, words):
    document = document_of(reference, kind)
    document["separator"]["mantissa"][0][0] += (
        document["separator"]["mantissa"][0][0] // 1000
    )  # an angle to bound
    loose = {"achieved": nudged(document["claims"]["achieved"], "0.5"), "angle": "0.5"}
    document["claims"] |= loose
    assert verify(resealed(document)).accepted
    tight = {"achieved": document["claims"]["margin_lower"], "angle": "1e-9"}
    document["claims"][claim] = nudged(tight.get(claim, document["claims"][claim]), factor)
    assert words in reason(resealed(document))


def test_weaker_claims_stay_true_and_accepted(reference):
    document = document_of(reference, "active-set")
    claims = document["claims"]
    for name, factor in (("margin_lower", "0.9"), ("margin_upper", "1.1"), ("achieved", "0.9")):
        claims[name] = nudged(claims[name], factor)
    claims["angle"] = "1e-1"
    assert verify(resealed(document)).accepted


def test_statement_must_be_that_of_the_numbers(reference):
    for kind in KINDS:
        document = document_of(reference, kind)
        document["statement"] = document["statement"].replace("constraints", "random constraints")
        assert "statement" in reason(document)


def test_the_stronger_kinds_need_their_proofs(reference):
    document = document_of(reference, "gap")
    document["kind"] = "active-set"
    assert reason(resealed(document)).startswith("margin of constraint")
    document["kind"] = "exact"
    document["claims"]["margin_squared"] = "1/2"
    assert "<V, z_i>" in reason(resealed(document))
    document = document_of(reference, "norm-bound")
    document |= {"kind": "not-separable", "claims": {}}
    assert "sum p_i z_i" in reason(resealed(document))
    document = document_of(reference, "exact")
    document["claims"]["margin_squared"] = "1/2"
    assert "margin_squared" in reason(resealed(document))


def test_a_wrong_support_is_refused(reference):
    """A constraint too few, a constraint too many (dependent, or with a negative weight)."""
    Z = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 0.5]])
    base = certify(Z, reference.nnls_solution(Z))
    assert base.active.tolist() == [0, 1]
    loose = {"margin_lower": "0", "margin_upper": "9", "achieved": "0", "angle": "1.6"}
    for support, words in (([0], "margin of constraint 1"), ([0, 1, 2], "nonsingular"), ([0, 2], "")):
        document = copy.deepcopy(base.document)
        document |= {"support": support, "claims": loose}
        document["dual"] = {"exponent": 0, "mantissa": [[1] * len(support)]}
        assert words in reason(resealed(document))
    singular = np.array([[1.0, 0.0], [1.0, 0.0]])
    document = copy.deepcopy(certify(singular, reference.nnls_solution(singular)).document)
    document |= {"support": [0, 1], "kind": "active-set"}
    document["dual"] = {"exponent": -1, "mantissa": [[1, 1]]}
    assert "nonsingular" in reason(resealed(document))


LOOSE = {"margin_lower": "0", "margin_upper": "9", "achieved": "0", "angle": "1.6"}


def forged(reference, Z, kind, support, weights, claims):
    """A file for rows Z whose weights and claims are somebody's own."""
    start = np.array([[1.0, 0.0], [0.0, 1.0]])
    document = copy.deepcopy(certify(start, reference.nnls_solution(start)).document)
    document |= {"kind": kind, "sample": [0] * len(Z), "support": support, "claims": claims}
    document["keys"] = {"exponent": 0, "mantissa": Z}
    document["dual"] = {"exponent": 0, "mantissa": [weights]}
    return resealed(document)


def test_negative_weights_prove_nothing(reference):
    """z - z = 0 with weights 1 and -1 would make separable data inseparable."""
    forgery = forged(reference, [[1, 0], [1, 0]], "not-separable", [0, 1], [1, -1], {})
    assert "> 0" in reason(forgery)


def test_a_support_whose_exact_weights_are_not_positive_is_refused(reference):
    """On rows (1, 0) and (2, 1) G p = 1 has p = (3, -1): the separator is supported by the first alone."""
    forgery = forged(reference, [[1, 0], [2, 1]], "active-set", [0, 1], [1, 1], LOOSE)
    assert reason(forgery) == "the solution of G p = 1 is > 0"
    assert verify(forged(reference, [[1, 0], [2, 1]], "active-set", [0], [1], LOOSE)).accepted


def test_exact_needs_every_constraint(reference):
    """p = (1/2, 1/2) is the optimum of the first two rows, and leaves the third with margin 0.5 < 1."""
    rows = [[2, 2], [2, -2], [1, 0]]
    claims = LOOSE | {"margin_squared": "1/2"}
    forgery = forged(reference, rows, "exact", [0, 1], [1, 1], claims)
    forgery["dual"]["exponent"] = -3
    forgery["claims"]["margin_squared"] = "4/1"
    forgery["separator"] = {"exponent": 0, "mantissa": [[1], [0]]}
    assert reason(resealed(forgery)) == "<V, z_i> >= 1, = 1 on the support"
    forgery = forged(reference, rows[:2], "exact", [0, 1], [1, 1], LOOSE | {"margin_squared": "4/1"})
    forgery["dual"]["exponent"] = -3
    forgery["separator"] = {"exponent": 0, "mantissa": [[1], [0]]}
    assert verify(resealed(forgery)).accepted


def test_a_separator_that_points_away_is_refused(reference):
    forgery = forged(reference, [[1, 0], [0, 1]], "gap", [0, 1], [1, 1], LOOSE)
    assert verify(forgery).accepted
    forgery["separator"]["mantissa"] = [[-v for v in row] for row in forgery["separator"]["mantissa"]]
    assert "min_i <W, z_i> > 0" in reason(forgery)


def test_an_angle_to_poor_weights_is_no_angle_to_the_separator(reference):
    """W is the combination of the weights exactly, and both are 0.17 rad off the separator (1, 1)."""
    forgery = forged(reference, [[1, 0], [0, 1]], "gap", [0, 1], [10, 7], LOOSE | {"angle": "0.1"})
    forgery["separator"] = {"exponent": 0, "mantissa": [[10], [7]]}
    assert "angle" in reason(resealed(forgery))


MALFORMED = {
    "no schema": lambda d: d.pop("schema"),
    "another schema": lambda d: d.update(schema="marginlab-certificate/2"),
    "another kind": lambda d: d.update(kind="certain"),
    "kind of another type": lambda d: d.update(kind=["gap"]),
    "no keys": lambda d: d.pop("keys"),
    "keys a list": lambda d: d.update(keys=[1]),
    "no mantissa": lambda d: d["keys"].pop("mantissa"),
    "empty keys": lambda d: d["keys"].update(mantissa=[]),
    "empty rows": lambda d: d["keys"].update(mantissa=[[] for _ in d["sample"]]),
    "ragged": lambda d: d["keys"]["mantissa"][0].append(1),
    "a float": lambda d: d["keys"]["mantissa"][0].__setitem__(0, 1.0),
    "a boolean": lambda d: d["keys"]["mantissa"][0].__setitem__(0, True),
    "a string": lambda d: d["keys"]["mantissa"][0].__setitem__(0, "1"),
    "NaN": lambda d: d["keys"]["mantissa"][0].__setitem__(0, math.nan),
    "null": lambda d: d["keys"]["mantissa"][0].__setitem__(0, None),
    "a huge integer": lambda d: d["keys"]["mantissa"][0].__setitem__(0, 1 << 20_000),
    "a huge exponent": lambda d: d["keys"].update(exponent=10**9),
    "an infinite exponent": lambda d: d["keys"].update(exponent=math.inf),
    "sample too short": lambda d: d["sample"].pop(),
    "sample out of range": lambda d: d["sample"].__setitem__(0, 1),
    "sample negative": lambda d: d["sample"].__setitem__(0, -1),
    "support decreasing": lambda d: d["support"].reverse(),
    "support repeated": lambda d: d["support"].__setitem__(0, d["support"][1]),
    "support out of range": lambda d: d["support"].__setitem__(-1, 10**6),
    "negative weight": lambda d: d["dual"]["mantissa"][0].__setitem__(0, -1),
    "zero weight": lambda d: d["dual"]["mantissa"][0].__setitem__(0, 0),
    "a weight too many": lambda d: d["dual"]["mantissa"][0].append(1),
    "two rows of weights": lambda d: d["dual"]["mantissa"].append(d["dual"]["mantissa"][0]),
    "denominator zero": lambda d: d.update(denominator=0),
    "denominator negative": lambda d: d.update(denominator=-1),
    "no claims": lambda d: d.update(claims={}),
    "claims a list": lambda d: d.update(claims=[]),
    "a negative claim": lambda d: d["claims"].update(margin_lower="-1"),
    "a claim that is a number": lambda d: d["claims"].update(margin_lower=0.5),
    "a claim that is not a number": lambda d: d["claims"].update(angle="nan"),
    "a claim with a huge exponent": lambda d: d["claims"].update(margin_upper="1e999999999"),
    "a claim in other digits": lambda d: d["claims"].update(margin_lower="\u0661"),
    "a claim that is a fraction": lambda d: d["claims"].update(margin_lower="1/9"),
    "a claim under a reserved name": lambda d: d["claims"].update(sample="0"),
    "separator of another shape": lambda d: d["separator"]["mantissa"].pop(),
    "separator zero": lambda d: d["separator"].update(mantissa=[[0], [0], [0]]),
    "another digest": lambda d: d.update(data_sha256="0" * 64),
    "digest of another type": lambda d: d.update(data_sha256=0),
    "statement missing": lambda d: d.pop("statement"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_documents_are_refused_with_a_reason(reference, name):
    document = document_of(reference, "active-set")
    MALFORMED[name](document)
    if name not in ("another digest", "digest of another type"):
        with contextlib.suppress(KeyError, TypeError, ValueError):
            document["data_sha256"] = data_digest(document)
    assert reason(document)
    if name.startswith("support re"):
        assert "support" in reason(document)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1", '"x"', "NaN", "[" * 100_000, '{"schema": ' + "9" * 5000 + "}", "\x00", "{}"],
    ids=range(11),
)
def test_what_is_not_a_certificate_is_refused(text, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    assert reason(path).startswith("malformed")


def test_files_that_cannot_be_read_are_refused(tmp_path, reference, monkeypatch):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    for source in (tmp_path / "absent", tmp_path, tmp_path / "binary", 0, None, b"\xff", ["a"], 1.5):
        assert reason(source).startswith("malformed")
    path = tmp_path / "large.json"
    path.write_text(json.dumps(document_of(reference, "gap")))
    monkeypatch.setattr(checker, "MAX_BYTES", 100)  # a real file of 512 MiB would test the disk
    assert "more than 100 bytes" in reason(path)


@settings(deadline=None, max_examples=60)
@given(share=st.floats(0, 1), kind=st.sampled_from(KINDS))
def test_truncated_files_are_refused(reference, tmp_path_factory, share, kind):
    text = json.dumps(document_of(reference, kind))
    path = tmp_path_factory.mktemp("cut") / "certificate.json"
    path.write_text(text[: int(share * (len(text) - 1))])
    assert reason(path)


def test_leaves_the_callers_precision_alone(reference):
    before = flint.ctx.prec
    assert verify(document_of(reference, "active-set")).accepted
    verify({})
    assert flint.ctx.prec == before


def test_shares_no_code_and_is_short():
    source = Path(checker.__file__).read_text()
    assert len(source.splitlines()) <= 200
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names.add((node.module or "").split(".")[0])
    assert names <= sys.stdlib_module_names | {"flint"}
