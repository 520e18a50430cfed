"""Run a selection of claims with their controls, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from marginlab.proofs_check.engine.claim import Claim
from marginlab.proofs_check.engine.context import Run, RunConfig
from marginlab.proofs_check.engine.controls import evaluate_control
from marginlab.proofs_check.engine.environment import require_gradual_underflow
from marginlab.proofs_check.engine.outcomes import ClaimOutcome, ControlOutcome
from marginlab.proofs_check.engine.runner import evaluate_claim
from marginlab.theory.validation import count

Outcome = ClaimOutcome | ControlOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one worker needs to judge the claims of one group."""

    claims: tuple[Claim, ...]
    config: RunConfig
    store: str | None
    level: float


def outcomes(
    claims: Sequence[Claim],
    *,
    config: RunConfig,
    level: float,
    jobs: int = 1,
    store: str | None = None,
    begun: Callable[[str], None] | None = None,
) -> Iterator[Outcome]:
    """Outcomes of claims and their controls, each as soon as it is there.

    Parameters
    ----------
    claims : sequence of Claim
    config : RunConfig
    level : float
        Error level of one statistical judgement.
    jobs : int
        Worker processes. Claims of one group share their runs and stay in one worker; the numbers do not
        depend on how many there are.
    store : str, optional
        Folder of the result store; every run starts empty without it.
    begun : callable(str), optional
        Told the name of each claim or control before it starts (only with one job).

    Raises
    ------
    InvalidInput
        `jobs` is not a positive integer.
    SubnormalsFlushed
        See `require_gradual_underflow`.
    """
    count(jobs, "jobs")
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        groups.setdefault(claim.group, []).append(claim)
    work = [Work(claims=tuple(g), config=config, store=store, level=level) for g in groups.values()]
    if jobs == 1 or len(work) <= 1:
        for part in work:
            yield from _group_outcomes(part, begun)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, backend="loky", return_as="generator_unordered")
    results: Any = parallel(delayed(_group_in_worker)(part) for part in work)
    for found in results:
        yield from found


def _group_in_worker(work: Work) -> list[Outcome]:
    return list(_group_outcomes(work))


def _group_outcomes(work: Work, begun: Callable[[str], None] | None = None) -> Iterator[Outcome]:
    from marginlab.simulations.store import ResultStore
    from marginlab.simulations.threads import single_threaded

    require_gradual_underflow()
    run = Run(work.config, ResultStore(work.store), work.level)
    for claim in work.claims:
        for control in (None, *claim.controls):
            if begun is not None:
                begun(claim.id if control is None else f"{claim.id}: {control.name}")
            with single_threaded():
                found = (
                    evaluate_claim(claim, run) if control is None else evaluate_control(claim, control, run)
                )
            yield found
