"""Problems and iterates that the tests of convergence share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginlab.proofs_check.claims.match_copy.broken import INTEGERS_DATA
from marginlab.proofs_check.claims.match_copy.problems import problem_of
from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA
from marginlab.proofs_check.convergence import ConvergenceProof, first_proof
from marginlab.simulations.attention import Problem
from marginlab.simulations.descent import run

STEP = 1e-3


@pytest.fixture(scope="session")
def half_space() -> tuple[Problem, Any, int, ConvergenceProof]:
    """A draw of the paper's data with A4, every step of its run, and the first explicit proof."""
    problem = problem_of(PAPER_DATA, 0, 0)
    steps = np.r_[0:400, 400:8_000:50]
    run_ = run(problem, step=STEP, steps=int(steps[-1]), record=steps)
    found = first_proof(problem, run_.W, STEP)
    assert found is not None
    return problem, run_, *found


@pytest.fixture(scope="session")
def without_a4() -> Problem:
    """A draw of the paper's data that violates A4."""
    return problem_of(PAPER_DATA, 0, 1)


@pytest.fixture(scope="session")
def integers() -> Problem:
    """The integer instance without A4, whose descent goes to another direction."""
    return problem_of(INTEGERS_DATA, 0, None)
