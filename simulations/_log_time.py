"""The gradient field of attention in log time, in coordinates of the span of the constraint vectors.

With rows x_j = vec((k_y - k_t) q^T), flow stays in W0 + span{x_j}: W = W0 + Q z with an orthonormal Q, margins are
m0 + X z, and the flow is z' = X^T pi(m). In s = log(1 + t/t0) it is dz/ds = t0 e^s X^T pi, which stays of the order
of z: pi is carried as a logarithm (of e^{2c} or e^c, c the log weight of the keys that are not selected), and the
time joins it before anything is exponentiated. So log t may be as large as one likes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginlab.simulations.attention import Problem
from marginlab.theory.validation import Float, Int

#: Exponents beyond this would overflow; a trial step of the integrator may ask for them, and is then rejected.
_LARGEST_EXPONENT = 600.0

_EPS = float(np.finfo(np.float64).eps)


class Coefficients(NamedTuple):
    """Weights of the x_j in minus the gradient, of sample i up to exp(log_scale[i])."""

    pi: Float
    log_scale: Float
    noise: Float  # bound on the rounding of pi, in the same scale
    pivot: Int


class LogTimeField:
    """dz/ds of gradient flow.

    Parameters
    ----------
    problem : Problem
    W0 : (d, d) array
    loss : "mse" or "cross-entropy"
    full : bool
        Coordinates are the entries of W - W0 instead of those in the span.
    """

    def __init__(self, problem: Problem, W0: Float, loss: str, *, full: bool = False) -> None:
        n, K, d, _ = problem.shape
        features = np.einsum("ita,ib->itab", problem.key_diffs, problem.queries).reshape(n * K, d * d)
        self.basis, self.X = _span(features, full=full)  # (d^2, r), (n K, r)
        self.start_margins: Float = features @ W0.ravel()
        self.lengths: Float = np.linalg.norm(features, axis=1).reshape(n, K)
        self.evaluations = 0
        self._problem, self._W0, self._mse = problem, W0, loss == "mse"
        self._rows = np.arange(n)
        errors = problem.values - problem.targets[:, None]
        self._errors = errors  # v_t - target, (n, K, d_v)
        self._error_size: Float = np.linalg.norm(errors, axis=2).max(axis=1)
        # Curvature of a sample's loss, up to a constant factor: its inverse t0 makes s independent of the units.
        largest = float((self.lengths.max(axis=1) * (self._error_size if self._mse else 1.0)).max())
        self.log_t0 = -2 * float(np.log(largest)) if largest > 0 else 0.0

    def log_time(self, log_t: Float) -> Float:
        """s at log t."""
        return np.logaddexp(0.0, log_t - self.log_t0)

    def weights(self, z: Float) -> Float:
        """W, shape (..., d, d), from coordinates (..., r)."""
        return self._W0 + (z @ self.basis.T).reshape(*z.shape[:-1], *self._W0.shape)

    def margins(self, z: Float) -> Float:
        """Margins to the match, (..., n, K), from coordinates (..., r)."""
        m = self.start_margins + z @ self.X.T
        return m.reshape(*z.shape[:-1], *self.lengths.shape)

    def coefficients(self, z: Float) -> Coefficients:
        """Coefficients of minus the gradient at z.

        Margins are taken to the pivot p, the key with the largest score (cross-entropy: the match), values are
        centred at v_p: pi_t = a_t (<delta_t, r> - sum_s a_s <delta_s, r>) for t != p and pi_p = -sum of the others.
        """
        m = self.margins(z)
        pivot = m.argmin(axis=1) if self._mse else self._problem.match
        m = m - m[self._rows, pivot][:, None]
        b, c = _frame(m, self._rows, pivot)
        if not self._mse:
            return Coefficients(b, c, 4 * _EPS * b, pivot)
        offset, delta = self._centred(pivot)
        scale = np.exp(c)
        exact = np.asarray(~offset.any(axis=1))
        rho = np.einsum("it,itj->ij", b, delta)
        r = np.where(exact[:, None], rho, offset + scale[:, None] * rho)
        inner = np.einsum("itj,ij->it", delta, r)
        pi = b * (inner - (scale * np.sum(b * inner, axis=1))[:, None])
        noise = 8 * _EPS * b * np.linalg.norm(delta, axis=2) * self._error_size[:, None]
        noise[exact] *= b[exact].sum(axis=1)[:, None]
        pi[self._rows, pivot] = -pi.sum(axis=1)
        noise[self._rows, pivot] = noise.sum(axis=1)
        return Coefficients(pi, np.where(exact, 2 * c, c), noise, pivot)

    def __call__(self, s: float, z: Float) -> Float:
        """dz/ds, shape (r,)."""
        self.evaluations += 1
        found = self.coefficients(z)
        factor = np.exp(np.minimum(s + self.log_t0 + found.log_scale, _LARGEST_EXPONENT))
        return self.X.T @ (found.pi * factor[:, None]).ravel()

    def relative_noise(self, z: Float) -> float:
        """How large the rounding of a sample's gradient may be beside that gradient, for the sample that knows best.

        Samples are looked at one by one: one that has settled at a finite minimum, where its gradient is rounding,
        must not hide another that still creeps. Infinite if no sample has a gradient.
        """
        found = self.coefficients(z)
        X = self.X.reshape(*found.pi.shape, -1)
        gradient = np.linalg.norm(np.einsum("it,itr->ir", found.pi, X), axis=1)
        noise = np.sum((found.noise + found.pi.shape[1] * _EPS * np.abs(found.pi)) * self.lengths, axis=1)
        known = gradient > 0
        return float((noise[known] / gradient[known]).min()) if known.any() else np.inf

    def jacobian(self, s: float, z: Float) -> Float:
        """d(dz/ds)/dz, shape (r, r)."""
        found = self.coefficients(z)
        m = self.margins(z)
        b, c = _frame(m - m[self._rows, found.pivot][:, None], self._rows, found.pivot)
        a = np.exp(c)[:, None] * b
        a[self._rows, found.pivot] = 1.0 - a.sum(axis=1)
        K = a.shape[1]
        da = -a[:, :, None] * (np.eye(K) - a[:, None, :])  # (n, t, u): d a_t / d m_u
        if self._mse:
            offset, delta = self._centred(found.pivot)
            mean = np.einsum("it,itj->ij", a, delta)
            inner = np.einsum("itj,ij->it", delta, mean + offset)
            level = np.sum(a * inner, axis=1)
            d_r = -a[:, :, None] * (delta - mean[:, None])  # (n, u, d_v)
            d_inner = np.einsum("itj,iuj->itu", delta, d_r)
            d_level = np.einsum("itu,it->iu", da, inner) + np.einsum("it,itu->iu", a, d_inner)
            d_pi = da * (inner - level[:, None])[:, :, None] + a[:, :, None] * (d_inner - d_level[:, None, :])
        else:
            d_pi = da
            d_pi[self._rows, found.pivot] = 0.0
        X = self.X.reshape(*a.shape, -1)
        moved = np.einsum("itu,iuq->itq", d_pi, X)
        # Formed from the weights themselves: where they underflow, so does what they could change.
        time = np.exp(np.minimum(s + self.log_t0, _LARGEST_EXPONENT))
        return time * np.einsum("itr,itq->rq", X, moved, optimize=True)

    def _centred(self, pivot: Int) -> tuple[Float, Float]:
        """v_p - target (n, d_v), and v_t - v_p (n, K, d_v)."""
        values = self._problem.values
        return self._errors[self._rows, pivot], values - values[self._rows, pivot][:, None]


def _frame(m: Float, rows: Int, pivot: Int) -> tuple[Float, Float]:
    """b (n, K) of order one, 0 at the pivot, and c (n,) with a_t = e^c b_t, from margins to the pivot."""
    rival = np.ones(m.shape, dtype=bool)
    rival[rows, pivot] = False
    least = np.where(rival, m, np.inf).min(axis=1)
    b = np.exp(np.where(rival, least[:, None] - m, -np.inf))
    c = -least - np.logaddexp(0.0, np.log(b.sum(axis=1)) - least)
    return b, c


def _span(features: Float, *, full: bool) -> tuple[Float, Float]:
    """Orthonormal basis (d^2, r) of the span of the rows, and their coordinates (N, r)."""
    if full:
        return np.eye(features.shape[1]), features
    left, sizes, right = np.linalg.svd(features, full_matrices=False)
    # Singular values below the rounding of the decomposition are zeros; a row of zeros has a span of its own.
    r = max(1, int(np.sum(sizes > sizes[0] * max(features.shape) * _EPS)))
    return right[:r].T, left[:, :r] * sizes[:r]
