"""Small files that would be large work, files with more in them than is checked, and what the writer keeps to."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path

import numpy as np
import pytest

from marginlab.proofs_check.certificates import CertificateError, certify, certify_non_separable
from marginlab.proofs_check.certificates import document as writer
from marginlab.proofs_check.certificates import verify as checker
from marginlab.proofs_check.certificates.verify import data_digest, statement, verify
from marginlab.theory.constraints import RankOneConstraints

LOOSE = {"margin_lower": "0", "margin_upper": "1e200", "achieved": "0", "angle": "2"}


def forged(keys, queries, support, weights, *, kind="norm-bound", sample=None, separator=None):
    """A file with any numbers, whose digest and statement fit them."""
    document = {
        "schema": "marginlab-certificate/1",
        "kind": kind,
        "keys": {"exponent": 0, "mantissa": keys},
        "queries": {"exponent": 0, "mantissa": queries},
        "sample": sample or [0] * len(keys),
        "support": support,
        "dual": {"exponent": 0, "mantissa": [weights]},
        "denominator": 1,
        "claims": {"margin_upper": "1e200"} if kind == "norm-bound" else LOOSE,
    }
    if separator:
        document["separator"] = {"exponent": 0, "mantissa": separator}
    document["data_sha256"] = data_digest(document)
    document["statement"] = statement(document)
    return document


def reason(source) -> str:
    verdict = verify(source)
    assert not verdict.accepted
    assert verdict.failed_inequality
    return verdict.failed_inequality


class TestWork:
    """Each of these took the machine's memory, or minutes, from a file of a few hundred kilobytes."""

    n = 30_000
    ones = [1] * n

    def refuse(self, document):
        assert len(json.dumps(document)) < 1_000_000
        assert reason(document) == "malformed: numbers too many or long to multiply"

    def test_an_outer_product(self):
        self.refuse(forged([self.ones], [self.ones], [0], [1]))

    def test_queries_that_no_constraint_uses(self):
        columns = [[1]] * self.n
        self.refuse(forged([self.ones], columns, [0], [1], kind="gap", separator=columns))

    def test_one_long_query_for_every_constraint(self):
        self.refuse(forged([[1]] * self.n, [self.ones], list(range(self.n)), self.ones))

    def test_a_gram_matrix(self):
        k = 1700  # k**3 times the two words of the lowest precision, eightfold, is above 2**36
        keys = [[i + 1] for i in range(k)]
        self.refuse(forged(keys, [[1]], list(range(k)), [1] * k, kind="active-set", separator=[[1]]))

    def test_integers_of_many_bits(self):
        long = (1 << 11_000) - 1
        row = [1] * 4000
        document = forged([row] * 10, [row], list(range(10)), [long] * 10)
        self.refuse(document)

    def test_what_is_allowed_is_still_checked(self):
        assert verify(forged([[1] * 700], [[1] * 700], [0], [1])).accepted

    def test_precision_is_raised_only_as_far_as_work_is_left(self, monkeypatch):
        """A singular system is undecided at every precision; the work of each is asked for before it is done."""
        document = forged([[1, 2], [2, 4]], [[1]], [0, 1], [1, 1], kind="active-set", separator=[[1], [1]])
        assert reason(document) == "the Gram matrix is nonsingular"
        sizes = (2, 1, 2, 1, 2, 64 + 2 * (3 + 1 + 1 + 1))
        monkeypatch.setattr(checker, "MAX_WORK", checker.burden(2, *sizes)[0])
        assert reason(document) == "the Gram matrix is nonsingular (too many constraints for more bits)"

    def test_the_estimate_grows_with_each_size(self):
        base = (1, 50, 5, 6, 7, 20, 200)
        for place in range(len(base)):
            more = tuple(v * 3 if i == place else v for i, v in enumerate(base))
            assert checker.burden(*more)[0] > checker.burden(*base)[0]


def a_certificate(reference):
    Z = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.5]])
    return certify(Z, reference.nnls_solution(Z))


class TestVisibleText:
    """Whatever stands in an accepted file has been checked."""

    @pytest.mark.parametrize(
        "first",
        [
            '"statement":"the largest margin is 99."',
            '"keys":{"exponent":0,"mantissa":[[9]]}',
            '"claims":{"margin_lower":"99"}',
        ],
    )
    def test_a_name_that_occurs_twice(self, reference, tmp_path, first):
        path = tmp_path / "certificate.json"
        text = a_certificate(reference).to_json()
        assert verify(a_certificate(reference).write(path)).accepted
        path.write_text("{" + first + "," + text[1:])
        assert "occurs twice" in reason(path)

    def test_a_name_that_occurs_twice_further_in(self, reference, tmp_path):
        path = tmp_path / "certificate.json"
        text = a_certificate(reference).to_json()
        for name in ("exponent", "margin_lower"):
            path.write_text(text.replace(f'"{name}":', f'"{name}":7,"{name}":', 1))
            assert "occurs twice" in reason(path)

    @pytest.mark.parametrize("extra", ['"proved":"Riemann"', '"x":NaN', '"x":1e5', '"x":[]'])
    def test_fields_that_nobody_checks(self, reference, tmp_path, extra):
        path = tmp_path / "certificate.json"
        text = a_certificate(reference).to_json()
        path.write_text("{" + extra + "," + text[1:])
        assert "other fields" in reason(path)
        for place in ('"claims":{', '"keys":{', '"dual":{', '"separator":{'):
            changed = json.loads(text.replace(place, place + extra + ",", 1))
            changed["data_sha256"] = data_digest(changed)
            changed["statement"] = statement(changed)
            path.write_text(json.dumps(changed))
            assert "other fields" in reason(path)

    def test_a_separator_where_none_is_spoken_of(self):
        document = forged([[1, 0], [-1, 1]], [[1]], [0, 1], [1, 1])
        assert verify(document).accepted
        document["separator"] = {"exponent": 0, "mantissa": [[1], [1]]}
        assert "other fields" in reason(document)


@pytest.mark.parametrize(
    "path", ["\ud800", "/\udcff", "a" * 5000, "\0", ".", "", "/dev/null", b"\xff", object()]
)
def test_paths_that_cannot_be_opened_are_refused(path):
    said = reason(path)
    assert said.startswith("malformed")
    assert said.encode()  # it can be printed


class TestWriter:
    def test_words_of_its_own(self):
        """Writer and checker share numbers only: a slip in the wording of one shows in the other."""
        tree = ast.parse(Path(writer.__file__).read_text())
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and "verify" in str(n.module)]
        names = {alias.name for node in imports for alias in node.names}
        assert names == {"burden"} | {name for name in names if name.startswith("MAX_")}

    @pytest.mark.parametrize("seed", range(6))
    def test_both_word_every_kind_alike(self, reference, seed):
        rng = np.random.default_rng(seed)
        Z = reference.separable(rng, 6, 3, integer=True)
        pair = reference.attention(rng, 2, 2, 3)
        doubled = np.vstack([Z, Z])
        made = [
            certify(Z, reference.nnls_solution(Z), exact=True),
            certify(Z, reference.nnls_solution(Z)),
            certify(doubled, reference.nnls_solution(doubled)),
            certify(pair, reference.nnls_solution(pair)),
            certify_non_separable(np.vstack([Z, -Z]), np.ones(12)),
            certify_non_separable(Z, np.ones(6)),
        ]
        for certificate in made:
            document = copy.deepcopy(certificate.document)
            assert document["statement"] == statement(document)
            assert document["data_sha256"] == data_digest(document)
            assert verify(document).accepted
        assert {c.kind for c in made} >= {"exact", "gap", "not-separable", "norm-bound"}

    def test_a_support_too_large_to_check_is_written_as_a_bound(self, reference):
        k = 900
        certificate = certify(np.eye(k), reference.as_solution(np.eye(k), np.ones(k), np.ones(k)))
        assert certificate.kind == "gap"
        assert certificate.unproved is not None
        assert "the support is proved, but" in certificate.unproved
        assert verify(certificate.document).accepted

    def test_more_than_a_file_may_hold_is_said(self, reference, monkeypatch):
        Z = np.eye(12)
        solution = reference.nnls_solution(Z)
        for name, value in (
            ("MAX_ENTRIES", 100),
            ("MAX_BYTES", 1000),
            ("MAX_STORE", 1000),
            ("MAX_WORK", 1000),
        ):
            with monkeypatch.context() as patch:
                for module in (writer, checker):  # real sizes would test the memory
                    patch.setattr(module, name, value)
                with pytest.raises(CertificateError, match=rf"\b{value} "):
                    certify(Z, solution)
                with pytest.raises(CertificateError, match=rf"\b{value} "):
                    certify_non_separable(Z, np.ones(12))

    def test_the_estimate_of_bytes_is_no_less_than_the_file(self, reference, monkeypatch):
        """One byte less than the file's length is refused by the writer's estimate, whatever the exponents."""
        for spread in (0, 30, 200):
            Z = reference.separable(np.random.default_rng(spread), 200, 20, integer=False)
            start = reference.nnls_solution(Z)  # it separates whatever the lengths of the rows
            Z = Z * 2.0 ** np.linspace(-spread, spread, 200)[:, None].round()
            certificate = certify(Z, start)
            length = len(certificate.to_json().encode())
            with monkeypatch.context() as patch:
                patch.setattr(writer, "MAX_BYTES", length - 1)
                with pytest.raises(CertificateError, match="bytes"):
                    certify(Z, start)


def test_ties_in_great_number(reference):
    """Identical rows are one row; different ones are never factored beyond the dimension."""
    Z = np.tile([[1.0, 2.0]], (30_000, 1))
    weights = np.full(len(Z), 0.2 / len(Z))
    certificate = certify(Z, reference.as_solution(Z, np.array([0.2, 0.4]), weights))
    assert certificate.kind == "gap"
    assert "the row equals one of the support" in str(certificate.unproved)
    assert certificate.gap < 1e-15
    Z = np.column_stack([np.ones(3000), np.random.default_rng(0).normal(size=3000)])
    certificate = certify(Z, reference.as_solution(Z, np.array([1.0, 0.0]), np.full(3000, 1 / 3000)))
    assert certificate.kind == "gap"
    assert len(certificate.active) <= 3
    assert certificate.margin_lower == pytest.approx(1.0, rel=1e-15)
    assert verify(certificate.document).accepted
    pair = RankOneConstraints(
        np.tile([[1.0, 2.0], [2.0, 1.0]], (1500, 1)), np.array([[1.0, 1.0]]), np.zeros(3000, int)
    )
    merged = certify(pair, reference.as_solution(pair, np.full((2, 2), 1 / 6), np.full(3000, 1 / 27_000)))
    assert verify(merged.document).accepted
    assert merged.margin_lower**2 == pytest.approx(9.0, rel=1e-12)
