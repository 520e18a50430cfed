"""What a run of descent is asked for and what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginlab.theory.config import Config
from marginlab.theory.errors import InvalidInput
from marginlab.theory.match_copy.losses import LOSSES
from marginlab.theory.validation import Float, Int, count, one_of, positive

RULES = ("gd", "normalised", "normalised-sqrt", "loss-scaled")
ENGINES = ("numba", "torch", "naive")

#: A gradient whose relative error bound exceeds this is past the trusted range. Directions of trajectories
#: are judged to 1e-6 in 1 - cos at best, which a gradient wrong by 1e-6 (1e-12 in 1 - cos) cannot touch.
TRUSTED = 1e-6


def recorded_steps(steps: int, record: Any) -> Int:
    """Steps at which a run is recorded, increasing, shape (R,).

    Parameters
    ----------
    steps : int >= 0
    record : int or sequence of int
        An integer asks for step 0 and at most that many steps spaced evenly in log s on 1..steps, the last
        one included (fewer where neighbours round to the same step). A sequence is taken as it is: strictly
        increasing, within 0..steps, with 0 only if it is listed.

    Raises
    ------
    InvalidInput
        A count below 1, or a sequence that is empty, not of integers, not increasing or out of range.
    """
    if isinstance(record, (int, np.integer)) and not isinstance(record, bool):
        number = count(record, "record")
        spaced = np.rint(np.geomspace(1, steps, number)) if number > 1 and steps > 0 else [steps]
        return np.unique(np.concatenate([[0], spaced])).astype(np.intp)
    chosen = np.asarray(record)
    if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
        raise InvalidInput(f"record must be a count or a non-empty list of steps, got {record!r}.")
    if chosen[0] < 0 or chosen[-1] > steps or (np.diff(chosen.astype(np.int64)) <= 0).any():
        raise InvalidInput(f"record must increase strictly within 0..{steps}, got {record!r}.")
    return chosen.astype(np.intp)


class EngineOutput(NamedTuple):
    """What an engine returns: the arrays of `Trajectory`, and its last gradient up to a positive scale."""

    W: Float
    log_grad_norm: Float
    error_bound: Float
    valid_until: int | None
    gradient: Float


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent(Config):
    """How to descend: the configuration of one run, without its data.

    Parameters
    ----------
    loss : "mse" or "cross-entropy"
    rule : str
        With G the gradient at W_s: "gd", W_{s+1} = W_s - step G; "normalised", W_s - step G / ||G||_F;
        "normalised-sqrt", W_s - step / sqrt(s + 1) G / ||G||_F; "loss-scaled", W_s - step G / L(W_s).
    step : float > 0
    steps : int >= 0
    record : int or increasing sequence of int
        See `recorded_steps`; kept as the tuple of the steps.
    engine : "numba", "torch" or "naive"

    Raises
    ------
    InvalidInput
        A field breaks its rule.
    """

    loss: str = "mse"
    rule: str = "gd"
    step: float
    steps: int
    record: tuple[int, ...]
    engine: str = "numba"

    def __post_init__(self) -> None:
        steps = count(self.steps, "steps", least=0)
        canonical = {
            "loss": one_of(self.loss, "loss", LOSSES),
            "rule": one_of(self.rule, "rule", RULES),
            "step": positive(self.step, "step"),
            "steps": steps,
            "record": tuple(recorded_steps(steps, self.record).tolist()),
            "engine": one_of(self.engine, "engine", ENGINES),
        }
        for name, value in canonical.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """Recorded steps of one run; all arrays are read-only.

    Attributes
    ----------
    config : Descent
    steps : (R,) array of int
        W[r] is the matrix after steps[r] updates; step 0 is W0.
    W : (R, d, d) array
    log_loss : (R,) array
        Natural logarithm of the loss at W, by the closed form in the log domain, whatever the engine.
    log_grad_norm : (R,) array
        Natural logarithm of the Frobenius norm of the gradient **as the engine computed it**; -inf if that
        is exactly zero.
    min_margin : (R,) array
        Smallest (k_match - k_t)^T W q.
    error_bound : (R,) array
        The engine's bound on the relative error of its gradient at W (Frobenius norm); inf where the
        gradient could be zero.
    valid_until : int or None
        First step, recorded or not, at which that bound exceeds 1e-6; None if there is none. Up to and
        including W at this step every update used a trusted gradient.
    """

    config: Descent
    steps: Int
    W: Float
    log_loss: Float
    log_grad_norm: Float
    min_margin: Float
    error_bound: Float
    valid_until: int | None

    def __len__(self) -> int:
        return len(self.steps)
