"""Supports that float64, or one precision of Arb, does not decide; and the size that attention problems have."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import flint
import numpy as np
import pytest
from flint import arb, arb_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.proofs_check.certificates import certify, certify_non_separable
from marginlab.proofs_check.certificates.problem import scaled_problem
from marginlab.proofs_check.certificates.support import proved_support
from marginlab.proofs_check.certificates.verify import verify
from marginlab.proofs_check.separators import NotSeparable, max_margin
from marginlab.simulations.attention import Problem
from marginlab.theory.match_copy import MatchCopyTask, sample

SEEDS = st.integers(0, 2**32 - 1)


class Given(NamedTuple):
    """A separator and dual weights from anywhere."""

    W: np.ndarray
    dual: np.ndarray


def ball_gap(
    keys: np.ndarray, queries: np.ndarray, where: np.ndarray, W: np.ndarray, dual: np.ndarray
) -> arb:
    """1 - (min_i <W, z_i> / ||W||) (sum p / ||sum p_i z_i||) in 400 bits, by matrix products of balls."""
    with flint.ctx.workprec(400):
        K, Q = arb_mat(keys.tolist()), arb_mat(queries[where].tolist())
        turned, right = (K * arb_mat(W.tolist())).entries(), Q.entries()
        d = queries.shape[1]
        products = [a * b for a, b in zip(turned, right, strict=True)]
        margins = [sum(products[i : i + d], arb(0)) for i in range(0, len(products), d)]
        smallest = margins[0]
        for margin in margins[1:]:
            smallest = smallest.min(margin)
        size = sum((arb(v) ** 2 for v in W.ravel().tolist()), arb(0)).sqrt()
        weighted = arb_mat(
            [[arb(p) * arb(v) for v in row] for p, row in zip(dual.tolist(), keys.tolist(), strict=True)]
        )
        V = (weighted.transpose() * Q).entries()
        bound = sum((v**2 for v in V), arb(0)).sqrt() / sum(map(arb, dual.tolist()), arb(0))
        return 1 - smallest / size / bound


def test_fifty_samples_of_match_and_copy(tmp_path):
    """50 samples x 31 constraints, d = 32: the oracle's answer to 1e-12, its support proved, its file accepted."""
    data = sample(MatchCopyTask.template(T=33, d=32, coordinate_std=1.0), 50, 0)
    constraints = Problem.from_match_copy(data).constraints()
    assert (len(constraints), constraints.shape) == (50 * 31, (32, 32))
    solution = max_margin(constraints)
    gap = ball_gap(constraints.key_diffs, constraints.queries, constraints.sample, solution.W, solution.dual)
    assert gap < 1e-12
    assert gap > -(2.0**-300)  # 400 bits less the growth of 1550 terms: a gap is never negative
    certificate = certify(constraints, solution)
    assert certificate.kind == "active-set"
    verdict = verify(certificate.write(tmp_path / "certificate.json"))
    assert verdict.accepted, verdict.failed_inequality
    # planted: the gap of a separator that is off by 1e-4 of its largest entry is seen
    W = solution.W + 1e-4 * np.abs(solution.W).max()
    assert ball_gap(constraints.key_diffs, constraints.queries, constraints.sample, W, solution.dual) > 1e-12


@pytest.mark.parametrize("exponent", [-13, -15])
def test_precision_is_raised_until_the_support_is_decided(exponent):
    """Separable by a column of 1e-13 alone: 128 bits solve the system, and leave margins undecided."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(30, 5))
        Z[:, 0] = 10.0**exponent * (1 + rng.random(30))
        solution = max_margin(Z, tolerance=0.9)
        certificate = certify(Z, solution)
        assert certificate.kind == "active-set", certificate.unproved
        assert verify(certificate.document).accepted
        exact = certify(Z, solution, exact=True)
        assert exact.margin_squared is not None
        assert exact.active.tolist() == certificate.active.tolist()
        assert Fraction(certificate.margin_lower) ** 2 <= exact.margin_squared
        assert exact.margin_squared <= Fraction(certificate.margin_upper) ** 2


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, D=st.integers(2, 3))
def test_nearly_equal_rows_are_told_apart(reference, seed, D):
    """Rows and copies of them a few units of the last place away, started from the wrong ones of each pair."""
    rng = np.random.default_rng(seed)
    base = reference.separable(rng, 3, D, integer=False)
    Z = np.vstack([base, base * (1 + 2.0**-52 * rng.integers(-3, 4, size=base.shape))])
    truth = reference.brute_force(reference.fractions_of(Z))
    assert truth is not None
    strict = any(all(m > 1 for i, m in enumerate(truth.margins) if i not in S) for S in truth.supports)
    for support in truth.supports:
        dual = np.zeros(6)
        dual[[(i + 3) % 6 for i in support]] = 1.0
        certificate = certify(Z, Given(W=np.array([float(v) for v in truth.W]), dual=dual))
        assert verify(certificate.document).accepted
        if strict:
            assert certificate.kind == "active-set", certificate.unproved
            assert tuple(certificate.active.tolist()) in truth.supports
        else:
            assert certificate.kind == "gap"


def test_a_refuted_inequality_is_called_false(reference):
    """(1, 1) and (1, -1) leave (1/2, 1/4) at margin 1/2; (4, 1) is no support of theirs either."""
    Z = np.array([[1.0, 1.0], [1.0, -1.0], [0.5, 0.25]])
    support = proved_support(scaled_problem(Z), np.array([0, 1]), np.array([0.5, 0.5]))
    assert support is not None
    assert support.unproved == "margin of constraint 2 > 1 (it is false: margin - 1 is at most -4.99999e-1)"
    assert support.refuted == (2,)
    support = proved_support(scaled_problem(np.array([[1.0, 0.0], [4.0, 1.0]])), np.arange(2), np.ones(2))
    assert support is not None
    assert "(in units of its row it is at most -" in str(support.unproved)


def test_certificates_of_growing_ties_name_the_tie(reference):
    Z = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    certificate = certify(Z, reference.as_solution(Z, np.ones(2), np.array([0.5, 0.5, 1.0])))
    assert certificate.unproved == "margin of constraint 1 > 1 (it is 1: the row equals one of the support)"


THREE = np.array(
    [
        [0.11700730120919657, -0.45738901133712734],
        [-117.00730120919656, 457.3890113371273],
        [0.2579921378691261, 0.0463481862332258],
    ]
)


def test_non_separability_beyond_the_rows_with_a_weight(reference):
    """The rows the oracle chose are nearly opposite and separable by themselves; with the third, nothing is."""
    assert reference.brute_force(reference.fractions_of(THREE)) is None
    with pytest.raises(NotSeparable) as raised:
        max_margin(THREE)
    for weights in (raised.value.certificate.weights, np.array([1000.0, 1.0, 0.0])):
        certificate = certify_non_separable(THREE, weights)
        assert certificate.kind == "not-separable", certificate.unproved
        assert verify(certificate.document).accepted


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, D=st.integers(1, 3), extra=st.integers(0, 80))
def test_non_separability_from_any_start(reference, seed, D, extra):
    """One weight on one row: the exact method finds the others, or says that all can be separated."""
    rng = np.random.default_rng(seed)
    Z = rng.integers(-4, 5, size=(D + 2 + extra, D)).astype(float)
    start = np.zeros(len(Z))
    start[rng.integers(len(Z))] = 1.0
    certificate = certify_non_separable(Z, start)
    assert verify(certificate.document).accepted
    if extra < 4:
        separable = reference.brute_force(reference.fractions_of(Z)) is not None
        assert (certificate.kind == "norm-bound") == separable
    elif D == 1:
        assert (certificate.kind == "norm-bound") == (bool((Z > 0).all()) or bool((Z < 0).all()))
    elif D == 2 and certificate.kind == "norm-bound":  # all within an open half turn
        angles = np.sort(np.arctan2(*Z.T))
        gaps = [b - a for a, b in pairwise([*angles, angles[0] + 2 * np.pi])]
        assert max(gaps) > np.pi * (1 - 1e-12)
