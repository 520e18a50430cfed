"""Instances that break one assumption of Theorem D.2, for the controls of its claims."""

from __future__ import annotations

from collections.abc import Iterable

from marginlab.proofs_check.claims.match_copy.trained import PAPER_DATA, PAPER_DESCENT, trained
from marginlab.proofs_check.engine.claim import Instance
from marginlab.proofs_check.engine.context import Run

#: Targets inside the hull of the distractors' values, so that (A3) fails, and (A4), which implies it.
MIXTURE_DATA = {**PAPER_DATA, "kind": "mixture", "T": 5}

#: One sample in three dimensions with keys (1, 0, 0), (-3, -1, 0), (0, 0, 0), the first one matched, values the
#: next tokens: (A1)-(A3) hold and <d_2, d_3> = -10. Only the third key supports the margin, while descent
#: keeps the second at the margin too and goes to another direction, at an angle of cosine 1/sqrt(10).
INTEGERS_DATA = {
    "kind": "integers",
    "keys": [[[1, 0, 0], [-3, -1, 0], [0, 0, 0]]],
    "queries": [[1, 0, 0]],
    "values": [[[-3, -1, 0], [0, 0, 0], [-6, -2, 2]]],
    "match": [0],
}

#: A larger step than the paper's brings this small instance to its asymptotic regime in the same number of steps.
INTEGERS_DESCENT = {**PAPER_DESCENT, "step": 1e-1}


#: A target inside the hull keeps the weights away from saturation and lets the residual cancel instead. There the
#: textbook engine, which forms margins from W itself, has the tighter error bound: below 4e-7 at the end, and
#: 1e-6 is trusted.
MIXTURE_DESCENT = {**PAPER_DESCENT, "engine": "naive"}


def mixture_targets(run: Run) -> Iterable[Instance]:
    """Every target is 0.7 v_a + 0.3 v_b with two distractors' values: attention settles on the mixture."""
    return [trained(run, MIXTURE_DATA, MIXTURE_DESCENT, seed, f"mixture, seed {seed}") for seed in range(3)]


def integer_instance(run: Run) -> Iterable[Instance]:
    """The integer instance on which (A4) fails and the direction is another one."""
    return [trained(run, INTEGERS_DATA, INTEGERS_DESCENT, None, "integer instance")]
