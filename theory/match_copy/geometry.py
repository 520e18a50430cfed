"""Geometry of the data that the theorems assume: conditions (A3), (A4) and the constants made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from marginlab.theory.match_copy.attention import AttentionProblem, key_differences, rivals
from marginlab.theory.match_copy.losses import error_directions
from marginlab.theory.validation import Float, float_array


def smallest_alignments(problem: AttentionProblem) -> Float:
    """g_i = min over s, t != y_i of <d_{i,s}, d_{i,t}>, shape (n,). (A4) is g_i > 0; s = t is included."""
    d = error_directions(problem)
    both = rivals(problem)[:, :, None] & rivals(problem)[:, None, :]
    return np.where(both, np.einsum("isj,itj->ist", d, d), np.inf).min(axis=(1, 2))


def error_radii(problem: AttentionProblem) -> Float:
    """R_i = max_t ||d_{i,t}||, shape (n,)."""
    return np.linalg.norm(error_directions(problem), axis=2).max(axis=1)


def feature_radii(problem: AttentionProblem) -> Float:
    """X_i = max_t ||x~_{i,t}|| = max_t ||k_y - k_t|| ||q_i||, shape (n,)."""
    reach = np.linalg.norm(key_differences(problem), axis=2).max(axis=1)
    return reach * np.linalg.norm(problem.queries, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HullDistance:
    """Distance of the origin to the convex hull of some points, from both sides.

    Attributes
    ----------
    upper : float
        Length of ``weights @ points``: attained.
    lower : float
        min_t <points_t, normal> for a unit vector `normal`, less the rounding of that evaluation, and at
        least 0: the hull lies beyond that hyperplane.
    weights : (m,) array in the simplex
    normal : (d,) array of norm 1, or zero if the hull contains the origin as far as can be told
    """

    upper: float
    lower: float
    weights: Float
    normal: Float


def hull_distance(points: Float) -> HullDistance:
    """Distance of the origin to conv{points_1, ..., points_m}, points of shape (m, d).

    Notes
    -----
    Wolfe's problem as non-negative least squares: with points scaled to length at most 1, minimise
    ||P^T c||^2 + (sum c - 1)^2 over c >= 0; c / sum c minimises ||P^T c|| over the simplex, since along
    each ray the best sum is 1/(1 + ||P^T p||^2) and the value increases with ||P^T p||. Neither bound rests
    on the solver: the upper one is attained, the lower one is a separating hyperplane, evaluated.

    Raises
    ------
    InvalidInput
        Not a two-dimensional array of finite numbers.
    """
    points = float_array(points, "points", ndim=2)
    scale = float(np.linalg.norm(points, axis=1).max())
    m, d = points.shape
    if scale == 0.0:
        return HullDistance(upper=0.0, lower=0.0, weights=np.full(m, 1.0 / m), normal=np.zeros(d))
    system = np.vstack([points.T / scale, np.ones(m)])
    coefficients, _ = nnls(system, np.concatenate([np.zeros(d), [1.0]]))
    weights = coefficients / coefficients.sum()
    nearest = weights @ points
    upper = float(np.linalg.norm(nearest))
    # (m + d) roundings of size at most scale in `nearest` and again in the products with it.
    rounding = 2 * (m + d + 4) * np.finfo(float).eps * scale
    if upper <= rounding:
        return HullDistance(upper=upper + rounding, lower=0.0, weights=weights, normal=np.zeros(d))
    normal = nearest / upper
    lower = float((points @ normal).min())
    return HullDistance(
        upper=upper + rounding, lower=max(0.0, lower - rounding), weights=weights, normal=normal
    )


def hull_distances(problem: AttentionProblem) -> tuple[HullDistance, ...]:
    """gamma_i of Lemma G.3 for each sample: distance of v_y to the hull of the rivals' values.

    (A3) holds for sample i if ``lower > 0``. The hull has K - 1 = T - 2 vertices, one fewer than the paper
    counts, so that (A3) holds almost surely for Gaussian data as soon as d >= T - 2.
    """
    d, mask = error_directions(problem), rivals(problem)
    return tuple(hull_distance(d[i, mask[i]]) for i in range(len(d)))
