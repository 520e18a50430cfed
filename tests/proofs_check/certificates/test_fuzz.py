"""One digit changed anywhere in a certificate file: refused, or what it says is still true.

Truth is decided by fractions alone: all supports are tried, and the angle is compared with mpmath at 100 digits.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from marginlab.proofs_check.certificates import certify, certify_non_separable
from marginlab.proofs_check.certificates.verify import data_digest, statement, verify


def matrix(block):
    return [[v * Fraction(2) ** block["exponent"] for v in row] for row in block["mantissa"]]


def part(pattern: str, text: str) -> str:
    """What the one group of a pattern matches."""
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


def is_true(reference, document) -> bool:
    """Whether the statement in the file holds, by brute force from the file's own numbers."""
    keys, queries = matrix(document["keys"]), matrix(document["queries"])
    rows = [[a * b for a in key for b in queries[s]] for key, s in zip(keys, document["sample"], strict=True)]
    truth, text = reference.brute_force(rows), document["statement"]
    head = f"{len(rows)} constraints <W, z_i> >= 1 on {len(keys[0])} x {len(queries[0])} matrices "
    if not text.startswith(head) or data_digest(document) not in text:
        return False
    if "no W has" in text:
        return truth is None
    if "has margin min_i <U, z_i> above" in text:
        return truth is None or truth.margin_squared <= Fraction(part(r"above (\S+)\.$", text)) ** 2
    if truth is None:
        return False
    patterns = (r"in \[(\S+),", r"in \[\S+, (\S+)\]", r"margin at least (\S+) and", r"at most (\S+) rad")
    low, high, achieved, angle = (Fraction(part(pattern, text)) for pattern in patterns)
    W = [v for row in matrix(document["separator"]) for v in row]
    margin, square = min(reference.dot(W, z) for z in rows), reference.dot(W, W)
    good = low**2 <= truth.margin_squared <= high**2 and margin > 0 and achieved**2 * square <= margin**2
    inner = reference.dot(W, truth.W)
    sine = 1 - inner**2 / (square * reference.dot(truth.W, truth.W))
    with mpmath.workdps(100):
        exact = mpmath.asin(mpmath.sqrt(mpmath.mpf(sine.numerator) / sine.denominator))
        good &= inner > 0 and bool(exact <= mpmath.mpf(angle.numerator) / angle.denominator)
    if "exactly the" in text:
        size, support = int(part(r"exactly the (\d+) linearly", text)), tuple(document["support"])
        good &= len(support) == size and support in truth.supports
        good &= all(m > 1 for i, m in enumerate(truth.margins) if i not in support)
    if "squared is exactly" in text:
        good &= Fraction(part(r"squared is exactly (\S+),", text)) == truth.margin_squared
    return good


def small_documents(reference):
    rng = np.random.default_rng(11)
    floats = reference.separable(rng, 4, 2, integer=False)
    ties = np.array([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]])
    return {
        "active-set": certify(floats, reference.nnls_solution(floats)),
        "rank one": certify(pair := reference.attention(rng, 2, 2, 2), reference.nnls_solution(pair)),
        "gap": certify(ties, reference.nnls_solution(ties)),
        "exact": certify(ties, reference.nnls_solution(ties), exact=True),
        "not-separable": certify_non_separable(np.array([[1.0, 2.0], [3.0, -1.0], [-4.0, -1.0]]), np.ones(3)),
        "norm-bound": certify_non_separable(np.array([[1.0, 0.0], [-1.0, 0.25]]), np.ones(2)),
    }


@pytest.mark.parametrize("name", ["active-set", "rank one", "gap", "exact", "not-separable", "norm-bound"])
@pytest.mark.parametrize("forger", [False, True], ids=["as it is", "with digest and statement made to fit"])
def test_one_digit(reference, tmp_path, name, forger):
    """Every digit of the file, each replaced by two others; the forger repairs digest and statement as well."""
    certificate = small_documents(reference)[name]
    text = certificate.to_json()
    assert is_true(reference, json.loads(text))
    path, accepted, tried = tmp_path / "certificate.json", 0, 0
    for place, digit in enumerate(text):
        if not (digit.isascii() and digit.isdigit()):
            continue
        for step in (1, 7):
            changed = text[:place] + str((int(digit) + step) % 10) + text[place + 1 :]
            try:
                document = json.loads(changed)
            except json.JSONDecodeError:  # a leading zero: no JSON, hence nothing to reseal
                document = None
            if forger and document is not None:
                document["data_sha256"] = data_digest(document)
                try:
                    document["statement"] = statement(document)
                except (KeyError, ValueError):
                    continue
                changed = json.dumps(document)
            path.write_text(changed)
            verdict = verify(path)
            tried += 1
            if verdict.accepted:
                accepted += 1
                assert document is not None
                assert verdict.statement == document["statement"]
                assert is_true(reference, document), changed
            else:
                assert verdict.failed_inequality
    assert tried > 100
    if forger:  # weaker bounds and last digits of the weights are true, and seen to be
        assert 0 < accepted < tried


def test_truth_of_the_fuzz_test_can_fail(reference):
    """The judge itself: each claim pushed beyond the truth is found false."""
    document = small_documents(reference)["active-set"].document
    for name, value in (
        ("margin_lower", "9"),
        ("margin_upper", "1e-9"),
        ("achieved", "9"),
        ("angle", "1e-30"),
    ):
        wrong = json.loads(json.dumps(document))
        wrong["claims"][name] = value
        wrong["statement"] = statement(wrong)
        assert not is_true(reference, wrong), name
        assert not verify(wrong).accepted, name
    wrong = json.loads(json.dumps(document))
    wrong["support"] = wrong["support"][:1]
    wrong["statement"] = statement(wrong)
    assert not is_true(reference, wrong)
