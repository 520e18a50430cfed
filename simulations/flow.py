"""Gradient flow on one-layer attention, integrated in log time: t = 1e30 and far beyond in a fraction of a second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import LSODA

from marginlab.simulations._log_time import LogTimeField
from marginlab.simulations.attention import Problem
from marginlab.simulations.gradient import log_gradient
from marginlab.simulations.threads import single_threaded
from marginlab.simulations.trajectory import TRUSTED
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.losses import LOSSES, log_loss
from marginlab.theory.validation import Float, float_array, frozen, one_of, shaped_array

#: Relative tolerances of the integrator: the run itself, and a second one whose distance estimates its error.
_FINE, _COARSE = 1e-11, 1e-9

#: The gradient's rounding beside the gradient itself at which following it further is following noise: the weights
#: have reached a finite minimum, and are kept as they are from there on.
_LOST = 1e-2

#: Evaluations of one integration. Smooth flows need a thousand, escapes from plateaus up to 20 000; a sample that
#: sits at a finite minimum beside others that go on makes steps of rounding size, which end here.
_MOST_EVALUATIONS = 25_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Flow:
    """Gradient flow at recorded times; all arrays are read-only.

    Attributes
    ----------
    log_t : (R,) array
        Natural logarithms of the times.
    W : (R, d, d) array
    margins : (R, n, K) array
        (k_match - k_t)^T W q, zero at the match.
    log_loss, log_grad_norm : (R,) arrays
        Natural logarithms of the loss and of the Frobenius norm of its gradient.
    valid_until : float or None
        First recorded log t at which the estimated relative error of W, or the bound on the relative rounding error
        of the gradient, exceeds 1e-6; None if there is none.
    """

    log_t: Float
    W: Float
    margins: Float
    log_loss: Float
    log_grad_norm: Float
    valid_until: float | None

    def __len__(self) -> int:
        return len(self.log_t)


def gradient_flow(
    problem: Problem,
    *,
    log_t: ArrayLike,
    loss: str = "mse",
    W0: ArrayLike | None = None,
    coordinates: str = "span",
) -> Flow:
    r"""Solution of dW/dt = -gradient of the loss, W(0) = W0, at the times exp(log_t).

    Parameters
    ----------
    problem : Problem
    log_t : (R,) strictly increasing array
        Any size: nothing overflows at log t = 1000.
    loss : "mse" (eq. 19) or "cross-entropy" (of the match, summed)
    W0 : (d, d) array, optional
        Zero by default.
    coordinates : "span" or "full"
        W - W0 stays in the span of the N = n (K - 1) constraint vectors: "span" integrates its coordinates there,
        min(N, d^2) numbers; "full" integrates all d^2 entries, for comparison.

    Raises
    ------
    InvalidInput
        An argument breaks its rule.

    Notes
    -----
    In s = log(1 + t/t0) the flow is smooth and does not explode; it is integrated by LSODA with the analytic
    Jacobian. `valid_until` rests on a second run with a hundredfold tolerance and on the engine's rounding bound of the
    gradient at the recorded W. Where the gradient is lost in its rounding (a finite minimum is reached), or the
    integrator no longer gets ahead, W is kept as it is, past `valid_until`.

    Examples
    --------
    >>> from marginlab.theory.match_copy import MatchCopyTask, sample
    >>> data = sample(MatchCopyTask.template(T=4, d=16), n=8, seed=0)
    >>> flow = gradient_flow(Problem.from_match_copy(data), log_t=[5.0, 69.0])
    >>> round(float(flow.log_loss[1] - flow.log_loss[0]))
    -64
    """
    times = float_array(log_t, "log_t", ndim=1)
    if not len(times) or (np.diff(times) <= 0).any():
        raise InvalidInput(f"log_t must be a non-empty, strictly increasing list of times, got {log_t!r}.")
    one_of(loss, "loss", LOSSES)
    one_of(coordinates, "coordinates", ("span", "full"))
    d = problem.shape[2]
    start = np.zeros((d, d)) if W0 is None else shaped_array(W0, "W0", (d, d))
    full = coordinates == "full"
    with single_threaded():
        field, again = (LogTimeField(problem, start, loss, full=full) for _ in range(2))
        z, end = _integrated(field, times, _FINE)
        coarse, _ = _integrated(again, times, _COARSE)
        W = field.weights(z)
        gradients = [log_gradient(problem, w, loss=loss) for w in W]
        size = np.linalg.norm(W, axis=(1, 2))
        error = np.linalg.norm(z - coarse, axis=1) / np.where(size > 0, size, 1.0)
        rounding = np.array([g.error_bound for g in gradients])
        doubtful = (error > TRUSTED) | ~(rounding <= TRUSTED) | (times > end)
        return Flow(
            log_t=frozen(times),
            W=frozen(W),
            margins=frozen(field.margins(z)),
            log_loss=frozen(log_loss(problem, W, loss)),
            log_grad_norm=frozen(np.array([g.log_norm for g in gradients])),
            valid_until=float(times[np.argmax(doubtful)]) if doubtful.any() else None,
        )


def _integrated(field: LogTimeField, times: Float, tolerance: float) -> tuple[Float, float]:
    """Coordinates (R, r) at the times, and the log t from which they are kept as they were (inf if they are not)."""
    s = field.log_time(times)
    z = np.zeros((len(s), field.X.shape[1]))
    longest = field.lengths.max()
    error = tolerance / (longest if longest > 0 else 1.0)  # in z: an error `tolerance` of a margin
    solver = LSODA(field, 0.0, z[0], s[-1], rtol=tolerance, atol=error, jac=field.jacobian)
    done = 0
    while solver.status == "running":
        if field.relative_noise(solver.y) >= _LOST or field.evaluations > _MOST_EVALUATIONS:
            break
        solver.step()
        reached = int(np.searchsorted(s, solver.t, side="right"))
        if reached > done:
            z[done:reached] = solver.dense_output()(s[done:reached]).T
            done = reached
    z[done:] = solver.y
    if done == len(s):
        return z, np.inf
    # log(e^s - 1), for any s.
    return z, float(field.log_t0 + solver.t + np.log(-np.expm1(-solver.t))) if solver.t > 0 else -np.inf
