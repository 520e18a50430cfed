"""Geometry of the data against brute force over faces, and the fixed point of the correction."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginlab.simulations.attention import Problem
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy import (
    NoFixedPoint,
    error_radii,
    feature_radii,
    hull_distance,
    hull_distances,
    margin_correction,
    smallest_alignments,
)

seeds = st.integers(0, 2**32)


def distance_by_faces(points):
    """Least distance of 0 to the hull: the best affine projection that lies in its face, over all faces."""
    best = np.inf
    for size in range(1, min(len(points), points.shape[1] + 1) + 1):
        for face in combinations(range(len(points)), size):
            base, directions = points[face[0]], points[list(face[1:])] - points[face[0]]
            if size > 1:
                y = np.linalg.lstsq(directions.T, -base, rcond=None)[0]
                if np.any(y < 0) or y.sum() > 1:
                    continue
                base = base + y @ directions
            best = min(best, float(np.linalg.norm(base)))
    return best


@settings(deadline=None, max_examples=150)
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.sampled_from([0.0, 0.5, 3.0]))
def test_hull_distance_against_all_faces(seed, m, d, shift):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((m, d)) * 10.0 ** rng.integers(-4, 5) + shift
    found, truth = hull_distance(points), distance_by_faces(points)
    scale = np.linalg.norm(points, axis=1).max()
    # least squares over a face loses at most a condition number, which is 1e4 in one draw of a million
    assert found.lower <= truth + 1e-11 * scale
    assert truth <= found.upper + 1e-11 * scale
    assert found.upper - found.lower <= 1e-9 * scale
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-14)


def test_hull_distance_of_simple_hulls():
    assert hull_distance(np.array([[1.0, 1.0], [1.0, -1.0]])).lower == pytest.approx(1.0, abs=1e-13)
    inside = hull_distance(np.array([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]))
    assert inside.lower == 0.0
    assert inside.upper < 1e-12
    zero = hull_distance(np.zeros((2, 3)))
    assert (zero.lower, zero.upper) == (0.0, 0.0)
    with pytest.raises(InvalidInput, match="points must be finite"):
        hull_distance(np.array([[np.nan]]))


def segment_distance_squared(a, b):
    """Squared distance of the origin to the segment [a, b], in rationals."""
    a, b = ([Fraction(float(v)) for v in point] for point in (a, b))
    along = [y - x for x, y in zip(a, b, strict=True)]
    length = sum(v * v for v in along)
    t = -sum(x * v for x, v in zip(a, along, strict=True)) / length if length else Fraction(0)
    t = min(max(t, Fraction(0)), Fraction(1))
    return sum((x + t * v) ** 2 for x, v in zip(a, along, strict=True))


@settings(deadline=None, max_examples=80)
@given(seeds, st.integers(1, 2), st.integers(1, 4))
def test_both_bounds_of_a_hull_distance_hold_exactly(seed, m, d):
    """Points and segments, whose distance is known in rationals: no rounding may carry a bound across it."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((m, d)) * 10.0 ** rng.integers(-4, 5)
    found = hull_distance(points)
    exact = segment_distance_squared(points[0], points[-1])
    assert Fraction(found.lower) ** 2 <= exact <= Fraction(found.upper) ** 2
    # and both are within their own rounding of it: twice 2 (m + d + 4) ulp, in units of the largest point
    width = 8 * (m + d + 4) * np.finfo(float).eps * np.linalg.norm(points, axis=1).max()
    assert found.upper - found.lower <= width or found.lower == 0.0


@pytest.mark.parametrize(
    ("points", "distance"),
    [([[1.0, 1.0], [1.0, -1.0]], 1.0), ([[3.0, 4.0]], 5.0), ([[8.0, 6.0], [8.0, 7.0]], 10.0), ([[2.0]], 2.0)],
)
def test_bounds_enclose_a_distance_that_is_a_float(points, distance):
    """Where rounding is nil, the allowance for it is all that parts the bounds from the truth."""
    found = hull_distance(np.array(points))
    assert found.lower < distance < found.upper


@settings(deadline=None, max_examples=40)
@given(seeds)
def test_constants_of_the_data_by_loops(seed):
    rng = np.random.default_rng(seed)
    n, K, d, d_v = rng.integers([1, 2, 1, 1], [5, 6, 5, 5])
    problem = Problem(
        rng.standard_normal((n, K, d)),
        rng.standard_normal((n, d)),
        rng.standard_normal((n, K, d_v)),
        rng.integers(0, K, n),
    )
    for i, y in enumerate(problem.match):
        rest = [t for t in range(K) if t != y]
        errors = [problem.values[i, t] - problem.values[i, y] for t in rest]
        features = [np.outer(problem.keys[i, y] - problem.keys[i, t], problem.queries[i]) for t in rest]
        assert smallest_alignments(problem)[i] == pytest.approx(
            min(a @ b for a in errors for b in errors), rel=1e-12, abs=1e-12
        )
        assert error_radii(problem)[i] == pytest.approx(max(map(np.linalg.norm, errors)), rel=1e-14)
        assert feature_radii(problem)[i] == pytest.approx(max(map(np.linalg.norm, features)), rel=1e-13)
        gamma = hull_distances(problem)[i]
        truth = distance_by_faces(np.array(errors))
        assert gamma.lower - 1e-11 <= truth <= gamma.upper + 1e-11


def test_a_mixture_target_breaks_identifiability():
    """The selected value inside the hull of the others: (A3) fails, and the certificate says so."""
    values = np.array([[[0.0, 0.0], [1.0, 1.0], [-1.0, -1.0]]])
    problem = Problem(np.eye(3)[None], np.ones((1, 3)), values, np.array([0]))
    assert hull_distances(problem)[0].lower == 0.0


@settings(deadline=None, max_examples=150)
@given(seeds, st.integers(1, 8), st.floats(0.0, 6.0))
def test_the_correction_solves_its_equation_in_exact_arithmetic(seed, k, decades):
    """Residual of p o (D p) = c in rationals, so that the check shares no rounding with the solver."""
    from fractions import Fraction

    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((k, k + int(rng.integers(0, 4))))
    D = directions @ directions.T
    D = (D + D.T) / 2
    c = 10.0 ** rng.uniform(-decades / 2, decades / 2, k)
    p = margin_correction(D, c)
    assert np.all(p > 0)
    exact_p = [Fraction(x) for x in p]
    for t in range(k):
        terms = [exact_p[t] * Fraction(D[t, s]) * exact_p[s] for s in range(k)]
        allowed = 8 * (k + 4) * 2**-52 * float(sum(map(abs, terms)) + Fraction(c[t]))
        assert abs(float(sum(terms) - Fraction(c[t]))) <= allowed


def test_the_correction_is_unique_and_scales():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((4, 6))
    D, c = X @ X.T, rng.uniform(0.5, 2, 4)
    D = (D + D.T) / 2
    assert np.allclose(margin_correction(D, 4 * c), 2 * margin_correction(D, c), rtol=1e-12)
    order = rng.permutation(4)
    assert np.allclose(
        margin_correction(D[np.ix_(order, order)], c[order]), margin_correction(D, c)[order], rtol=1e-11
    )
    assert margin_correction(np.array([[4.0]]), np.array([1.0]))[0] == 0.5


def test_no_correction_without_strict_copositivity():
    with pytest.raises(NoFixedPoint, match="strictly copositive"):
        margin_correction(np.array([[1.0, -1.0], [-1.0, 1.0]]), np.ones(2))


@pytest.mark.parametrize(
    ("D", "c", "message"),
    [
        (np.eye(2), np.ones(3), r"D must have shape \(3, 3\)"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), np.ones(2), "D must be symmetric"),
        (np.diag([1.0, 0.0]), np.ones(2), "the diagonal of D must be positive, got 0.0 at index 1"),
        (np.eye(2), np.array([1.0, -1.0]), "c must be positive, got -1.0 at index 1"),
    ],
)
def test_bad_corrections_are_refused(D, c, message):
    with pytest.raises(InvalidInput, match=message):
        margin_correction(D, c)
