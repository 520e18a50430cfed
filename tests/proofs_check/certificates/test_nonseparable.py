"""Non-separability: exact combinations to zero, and what can be said without them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import certify_non_separable
from marginlab.proofs_check.certificates.verify import verify
from marginlab.theory.errors import InvalidInput

SEEDS = st.integers(0, 2**32 - 1)


def weights_of(document):
    """The exact weights in a file."""
    scale = Fraction(2) ** document["dual"]["exponent"] / document["denominator"]
    return {i: w * scale for i, w in zip(document["support"], document["dual"]["mantissa"][0], strict=True)}


def combination(reference, Z, document):
    rows, weights = reference.fractions_of(Z), weights_of(document)
    return [sum((w * rows[i][c] for i, w in weights.items()), Fraction(0)) for c in range(len(rows[0]))]


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, D=st.integers(1, 5), integer=st.booleans(), extra=st.integers(0, 3))
def test_weights_combine_to_exactly_zero(reference, seed, D, integer, extra):
    """D + 1 generic rows around the origin, in float64: the exact weights differ from the given ones."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(-9, 10, size=(D + 1, D)).astype(float) if integer else rng.normal(size=(D + 1, D))
    kernel = np.linalg.svd(Z.T)[2][-1]
    Z = (
        Z
        * np.where(kernel < 0, -1.0, 1.0)[:, None]
        * 10.0 ** rng.uniform(-8, 8, size=(D + 1, 1)) ** (not integer)
    )
    Z = np.vstack([Z, rng.normal(size=(extra, D))])
    size = np.linalg.norm(Z, axis=1)
    start = np.zeros(len(Z))
    start[: D + 1] = np.abs(np.linalg.svd((Z[: D + 1] / np.where(size > 0, size, 1)[: D + 1, None]).T)[2][-1])
    start[: D + 1] /= np.where(size > 0, size, 1)[: D + 1]
    start[start < 1e-12 * start.max()] = 0
    certificate = certify_non_separable(Z, start)
    verdict = verify(certificate.document)
    assert verdict.accepted, verdict.failed_inequality
    rows = reference.fractions_of(Z)
    if certificate.kind == "not-separable":
        assert not any(combination(reference, Z, certificate.document))
        assert min(weights_of(certificate.document).values()) > 0
        assert reference.brute_force(rows) is None
        assert certificate.margin_upper == 0
    else:  # a start that dropped a row it needed
        truth = reference.brute_force([rows[i] for i in np.flatnonzero(start)])
        assert truth is not None
        assert certificate.unproved


@settings(deadline=None, max_examples=30)
@given(seed=SEEDS)
def test_norm_bound_holds_on_separable_data(reference, seed):
    """Weights on separable data only bound the margin: never called inseparable."""
    rng = np.random.default_rng(seed)
    Z = reference.separable(rng, 5, 3, integer=False)
    truth = reference.brute_force(reference.fractions_of(Z))
    certificate = certify_non_separable(Z, rng.random(5))
    assert certificate.kind == "norm-bound"
    assert truth.margin_squared <= Fraction(certificate.margin_upper) ** 2
    assert "the constraints are separable" in str(certificate.unproved)
    assert verify(certificate.document).accepted
    V = combination(reference, Z, certificate.document)
    total = sum(weights_of(certificate.document).values())
    assert reference.dot(V, V) <= (Fraction(certificate.claims["margin_upper"]) * total) ** 2
    assert certificate.weights.sum() == pytest.approx(1.0, abs=1e-15 * 5)


@pytest.mark.parametrize("delta", [1e-6, -1e-6, 1e-12])
def test_both_sides_of_the_boundary(reference, delta):
    """Three rows whose hull misses the origin by a hair, or contains it."""
    Z = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.0 + 2 * (delta > 0)]])
    Z[:2, 1] = delta
    Z[2, 1] = abs(delta)
    certificate = certify_non_separable(Z, np.array([1.0, 1.0, 1.0]))
    assert (certificate.kind == "not-separable") == (reference.brute_force(reference.fractions_of(Z)) is None)
    assert verify(certificate.document).accepted


def test_a_zero_row_is_enough():
    certificate = certify_non_separable(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([0.5, 0.5]))
    assert certificate.kind == "not-separable"
    assert certificate.weights.tolist() == [0.0, 1.0]


def test_duplicates_and_opposites(reference):
    Z = np.array([[1.0, 2.0], [1.0, 2.0], [-3.0, -6.0], [5.0, 5.0]])
    certificate = certify_non_separable(Z, np.array([0.3, 0.3, 0.2, 0.0]))
    assert certificate.kind == "not-separable"
    assert not any(combination(reference, Z, certificate.document))


def test_large_problems_get_the_norm_bound():
    rng = np.random.default_rng(0)
    Z = np.vstack([half := rng.normal(size=(100, 150)), -half])
    certificate = certify_non_separable(Z, np.ones(200))
    assert certificate.kind == "not-separable"  # equal weights are exact already
    certificate = certify_non_separable(Z, 1 + 1e-9 * rng.random(200))
    assert certificate.kind == "norm-bound"
    assert certificate.margin_upper < 1e-8
    assert "200 rows" in str(certificate.unproved)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1.0, -1.0], "must be >= 0"),
        ([0.0, 0.0], "must be positive"),
        ([1.0], "shape"),
        ([np.nan, 1.0], "finite"),
    ],
)
def test_refusals(weights, words):
    with pytest.raises(InvalidInput, match=words):
        certify_non_separable(np.array([[1.0], [-1.0]]), np.array(weights))
