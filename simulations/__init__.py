"""Gradient descent on attention: the problem, the engines and what they record.

Names are loaded when they are asked for, so that importing this package loads neither torch nor numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginlab.theory.lazy import lazy_names

if TYPE_CHECKING:
    from marginlab.simulations.attention import Problem as Problem
    from marginlab.simulations.descent import run as run
    from marginlab.simulations.descent import run_batch as run_batch
    from marginlab.simulations.descent import warm_up as warm_up
    from marginlab.simulations.factorised import FactorisedTrajectory as FactorisedTrajectory
    from marginlab.simulations.factorised import run_factorised as run_factorised
    from marginlab.simulations.factorised import small_factors as small_factors
    from marginlab.simulations.flow import Flow as Flow
    from marginlab.simulations.flow import gradient_flow as gradient_flow
    from marginlab.simulations.gradient import LogGradient as LogGradient
    from marginlab.simulations.gradient import log_gradient as log_gradient
    from marginlab.simulations.threads import single_threaded as single_threaded
    from marginlab.simulations.trajectory import Descent as Descent
    from marginlab.simulations.trajectory import Trajectory as Trajectory

_NAMES = {
    "attention": ("Problem",),
    "descent": ("run", "run_batch", "warm_up"),
    "factorised": ("FactorisedTrajectory", "run_factorised", "small_factors"),
    "flow": ("Flow", "gradient_flow"),
    "gradient": ("LogGradient", "log_gradient"),
    "threads": ("single_threaded",),
    "trajectory": ("Descent", "Trajectory"),
}

__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}
)
