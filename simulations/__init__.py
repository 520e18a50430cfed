"""Gradient descent on attention: the problem, the engines and what they record.

Names are loaded when they are asked for, so that importing this package loads neither torch nor numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginlab.simulations.attention import Problem as Problem
    from marginlab.simulations.descent import run as run
    from marginlab.simulations.descent import run_batch as run_batch
    from marginlab.simulations.descent import warm_up as warm_up
    from marginlab.simulations.gradient import LogGradient as LogGradient
    from marginlab.simulations.gradient import log_gradient as log_gradient
    from marginlab.simulations.threads import single_threaded as single_threaded
    from marginlab.simulations.trajectory import Descent as Descent
    from marginlab.simulations.trajectory import Trajectory as Trajectory

_HOME = {
    "Problem": "attention",
    "run": "descent",
    "LogGradient": "gradient",
    "log_gradient": "gradient",
    "run_batch": "descent",
    "warm_up": "descent",
    "single_threaded": "threads",
    "Descent": "trajectory",
    "Trajectory": "trajectory",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
