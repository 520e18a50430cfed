"""A claim as data plus three functions, with its assumptions and the controls that the engine runs itself.

Only the standard library is imported, so that collecting claims costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from marginlab.proofs_check.engine.vocabulary import Evidence as Evidence
from marginlab.proofs_check.engine.vocabulary import Kind as Kind
from marginlab.proofs_check.engine.vocabulary import Source as Source
from marginlab.proofs_check.engine.vocabulary import Status as Status
from marginlab.proofs_check.engine.vocabulary import Tier as Tier
from marginlab.proofs_check.engine.vocabulary import Verdict as Verdict
from marginlab.proofs_check.engine.vocabulary import word
from marginlab.theory.errors import InvalidInput, MarginlabError

if TYPE_CHECKING:
    from marginlab.proofs_check.engine.context import Run


class CannotForm(MarginlabError):
    """Raised by `predict` or `measure` when the object it speaks about does not exist (no separator, say).

    The engine counts it as FAIL with this reason; any other exception is an ERROR.
    """


@dataclass(frozen=True, slots=True)
class Answer:
    """An assumption's answer on one instance, with what shows it.

    Parameters
    ----------
    status : Status
    witness : str
        The value, index or inequality that decides, in words.
    value : float, optional
        The number that was compared.

    Raises
    ------
    InvalidInput
        `status` is no `Status` (its spelling is taken), or the witness is no text.
    """

    status: Status
    witness: str
    value: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", word(Status, self.status, "an assumption's answer"))
        if not isinstance(self.witness, str):
            raise InvalidInput(f"an assumption's witness is text, not {self.witness!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """An executable predicate of an instance.

    Parameters
    ----------
    name : str
        Short, as the paper numbers it ("A4").
    statement : str
        What it says, in LaTeX or words.
    check : callable(Instance) -> Answer
    implies : tuple of str
        Names of assumptions that follow from this one. Waiving A waives whatever implies A too, since
        otherwise nothing would have been waived.
    """

    name: str
    statement: str
    check: Callable[[Instance], Answer]
    implies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instance:
    """One object on which a claim is judged.

    Parameters
    ----------
    label : str
        Unique within the claim or control, and the same in every run.
    data : Any
        What `predict`, `measure` and the assumptions look at.
    seed : int, optional
        Seed index 0..n-1 where the instance is drawn.
    config : mapping
        JSON-able description that, with the seed, is enough to make the instance again.
    """

    label: str
    data: Any
    seed: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """Control: the claim's own instances with wrong constants. Must come out FAIL."""

    name: str
    constants: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """Control of a claim that is expected to fail: corrected constants. Must come out PASS."""

    name: str
    constants: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """Control: instances that break one assumption. Must come out VACUOUS, and FAIL with it waived.

    Parameters
    ----------
    name : str
    assumption : str
        The assumption that these instances break.
    instances : callable(Run) -> iterable of Instance
    also : tuple of str
        Further assumptions that the same instances cannot keep; they are waived with it, and reported. One that
        holds on every instance is waived without need, and the control does not count as expected.
    """

    name: str
    assumption: str
    instances: Callable[[Run], Iterable[Instance]]
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waive:
    """Question, not a test: does the claim hold without this assumption on these instances?

    The answer is reported as a finding ("not needed on the instances tried", or the instance that needs
    it) and never counts as the claim's control. The engine asks the same of every vacuous instance.
    """

    name: str
    assumption: str
    instances: Callable[[Run], Iterable[Instance]]


Control = Plant | Mend | Break | Waive


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Claim:
    """A statement with everything that is needed to check it.

    Parameters
    ----------
    id : str
        "family/name", lower case with hyphens.
    title : str
    paper : str
        Key of the bibliography.
    where : str
        Place in the paper, "Theorem D.2".
    source : Source
    kind : Kind
    evidence : Evidence
    statement : str
        LaTeX, with $...$ for mathematics.
    assumes : tuple of Assumption
    depends_on : tuple of str
        Ids of claims that this one rests on.
    min_tier : Tier
    expect : Verdict
        PASS, or FAIL for a published statement that does not hold, with `erratum` saying why.
    constants : mapping
        The numbers that the statement is about.
    instances : callable(Run) -> iterable of Instance
    predict : callable(Instance, constants) -> value of `values`
    measure : callable(Instance) -> value of `values`
    controls : tuple of Plant, Break, Mend or Waive
        At least one Plant or Break (a Mend for an expected failure).
    window : (float, float), optional
        Range of the curve's parameter on which rates, limits and directions are judged.
    min_valid : float
        Least fraction of instances on which the assumptions must hold.
    unit : str
        Unit of replication that the report prints.
    judgements : int
        How many statistical judgements it makes, for the run's error level; 0 if none.
    group : str, optional
        Claims of one group share runs, and so one worker; the family by default.
    series : callable(Instance) -> mapping of str to sequence of floats, optional
        Data of the claim's figure, kept in the report.
    certificate : callable(Instance) -> mapping, optional
        Certificate file of an instance, as a JSON object with its ``statement``: written beside the report.
    figure : str, optional
        Name of the drawing (entry point group ``marginlab.figures``).
    notes : str
        What a referee should know: source of windows, what is not shown.

    Raises
    ------
    InvalidInput
        Any rule above is broken; the message names the claim and the rule.
    """

    id: str
    title: str
    paper: str
    where: str
    source: Source
    kind: Kind
    evidence: Evidence
    statement: str
    instances: Callable[[Run], Iterable[Instance]]
    predict: Callable[[Instance, Mapping[str, Any]], Any]
    measure: Callable[[Instance], Any]
    controls: tuple[Control, ...]
    assumes: tuple[Assumption, ...] = ()
    depends_on: tuple[str, ...] = ()
    min_tier: Tier = Tier.QUICK
    expect: Verdict = Verdict.PASS
    erratum: str = ""
    constants: Mapping[str, Any] = field(default_factory=dict)
    window: tuple[float, float] | None = None
    min_valid: float = 0.5
    unit: str = "instance"
    judgements: int = 0
    group: str = ""
    series: Callable[[Instance], Mapping[str, Any]] | None = None
    certificate: Callable[[Instance], Mapping[str, Any]] | None = None
    figure: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        from marginlab.proofs_check.engine.rules import broken_rules  # rules need the classes above

        for name in ("assumes", "controls", "depends_on"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, vocabulary in _WORDS.items():
            value = word(vocabulary, getattr(self, name), f"claim {self.id!r}: its {name}")
            object.__setattr__(self, name, value)
        claim: Any = self  # a checker that meets this file by its link and by its path sees two classes
        for problem in broken_rules(claim):
            raise InvalidInput(f"claim {self.id!r}: {problem}.")
        # A copy of its own: nobody who keeps the mapping can change the claim through it.
        object.__setattr__(self, "constants", deepcopy(dict(self.constants)))
        if not self.group:
            object.__setattr__(self, "group", self.family)

    @property
    def family(self) -> str:
        """The part of the id before the slash."""
        return self.id.split("/")[0]


_WORDS: dict[str, Any] = {
    "source": Source,
    "kind": Kind,
    "evidence": Evidence,
    "min_tier": Tier,
    "expect": Verdict,
}


def waived_with(claim: Claim, names: Iterable[str]) -> frozenset[str]:
    """`names` and every assumption of the claim that implies one of them, directly or not."""
    waived = set(names)
    while True:
        more = {a.name for a in claim.assumes if waived & set(a.implies)} - waived
        if not more:
            return frozenset(waived)
        waived |= more
