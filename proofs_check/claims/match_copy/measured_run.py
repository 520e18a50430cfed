"""What the claims on the paper's run share: its last decade, sums over its steps, and their assumptions."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginlab.proofs_check.claims.match_copy.assumptions import A1, A2, A4_ALONE, A5, TRUSTED
from marginlab.proofs_check.claims.match_copy.asymptotics import PAPER
from marginlab.proofs_check.claims.match_copy.broken import integer_instance
from marginlab.proofs_check.claims.match_copy.trained import LAST_DECADE, TrainedRun, settled_runs
from marginlab.proofs_check.engine.claim import Break, Claim, Evidence
from marginlab.proofs_check.engine.values import Interval
from marginlab.proofs_check.tolerances import gamma
from marginlab.theory.validation import Float, Int

#: What the theorem that replaces the measured assumptions needs, and A2 for limits in closed form.
ASSUMED = (A1, A2, A4_ALONE, A5, TRUSTED)

WINDOW = (
    "Read off the last decade of the run. Draws are conditioned before training; rejected ones are counted in the "
    "labels. The limit is in closed form (docs/asymptotics.md), not an average over the end of the run."
)

INTEGERS = Break(name="integer instance without A4", assumption="A4", instances=integer_instance)


def last_decade(run: TrainedRun) -> slice:
    """The recorded steps of the last decade."""
    return slice(int(np.searchsorted(run.steps, run.steps[-1] * LAST_DECADE[0] / LAST_DECADE[1])), None)


def partial_sums(steps: Int, lo: Float, hi: Float) -> Interval:
    """Partial sums of y / step over the steps from the first record on to before each later one.

    Enclosed for y that is monotone between neighbouring records: sum_{a <= s < b} 1/s lies between log(b / a) and
    1/a + log((b - 1) / a).
    """
    a, b = steps[:-1], steps[1:]
    least = np.minimum(lo[1:], lo[:-1]) * np.log(b / a)
    most = np.maximum(hi[1:], hi[:-1]) * (1 / a + np.log((b - 1) / a))
    rounding = gamma(len(lo) + 8)
    return Interval(
        np.cumsum(least) * (1 - rounding),
        np.cumsum(most) * (1 + rounding),
        "quadrature: monotone between recorded steps, which are 5 % apart",
    )


def beyond_half(sums: Interval) -> Interval:
    """Sums over at least half of the decade: in shorter ones the enclosure is as wide as what is compared."""
    half = sums.lo.size // 2
    return Interval(sums.lo[half:], sums.hi[half:], sums.rule)


def claim_on_run(**fields: Any) -> Claim:
    """A claim on the paper's run; `fields` says what is its own."""
    shared: dict[str, Any] = {
        "paper": PAPER,
        "evidence": Evidence.NUMERICAL,
        "depends_on": ("match-copy/separator", "match-copy/frame-scaled-gradient"),
        "assumes": ASSUMED,
        "instances": settled_runs,
        "group": "match-copy/paper-run",
    }
    return Claim(**(shared | fields))
