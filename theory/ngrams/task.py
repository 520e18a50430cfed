"""In-context n-gram tasks as frozen configurations: chains of order k whose rows are drawn afresh for each sequence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from marginlab.theory.config import Config
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import count, one_of, positive

#: Smallest concentration: its gamma variables have logarithms within the range of float64.
LEAST_CONCENTRATION = 1e-100


@dataclass(frozen=True, slots=True, kw_only=True)
class NGramTask(Config):
    r"""One chain of order k per sequence, its rows from one of two priors.

    Independent: the V^k rows are independent, :math:`P_u \sim \mathrm{Dir}(\alpha 1)`. Hierarchical with base order
    r_0 < k: the rows of the contexts w of length r_0 are independent, :math:`P_w \sim \mathrm{Dir}(\alpha 1)`, and
    for r = r_0 + 1..k a context (w, b), w continued by one older token b, has
    :math:`P_{(w, b)} \sim \mathrm{Dir}(c_r P_w)`; the rows of order k drive the chain.

    Parameters
    ----------
    vocab_size : int >= 2
        V.
    order : int >= 1
        k.
    prior : "independent" or "hierarchical"
    alpha : float >= 1e-100
        Concentration per symbol of the rows that have no parent.
    base_order : int in 0..k-1
        r_0, for the hierarchical prior only. r_0 = 0: every row descends from one law of all tokens; r_0 = k - 1: rows
        of order k around independent rows of order k - 1.
    concentrations : k - r_0 floats >= 1e-100
        c_{r_0 + 1}..c_k, for the hierarchical prior only (kept as a tuple).
    start : "uniform" or "stationary"
        Law of the first k tokens: independent and uniform, or a context from the sampled chain's stationary law, in
        which case they tell something about its rows.

    Raises
    ------
    InvalidInput
        A field breaks one of these rules.

    References
    ----------
    D'Angelo, Yuksel, Narashiman, Flammarion, arXiv 2607.02800 (the two priors); the recursion and the start: derived.
    """

    vocab_size: int
    order: int
    prior: str = "independent"
    alpha: float = 1.0
    base_order: int | None = None
    concentrations: tuple[float, ...] = ()
    start: str = "uniform"

    def __post_init__(self) -> None:
        hierarchical = one_of(self.prior, "prior", ("independent", "hierarchical")) == "hierarchical"
        canonical = {
            "vocab_size": count(self.vocab_size, "vocab_size", least=2),
            "order": count(self.order, "order"),
            "prior": str(self.prior),
            "alpha": _concentration(self.alpha, "alpha"),
            "concentrations": _concentrations(self.concentrations),
            "start": str(one_of(self.start, "start", ("uniform", "stationary"))),
        }
        if hierarchical and self.base_order is not None:
            canonical["base_order"] = count(self.base_order, "base_order", least=0)
        for name, value in canonical.items():
            object.__setattr__(self, name, value)
        if not hierarchical and (self.base_order is not None or self.concentrations):
            raise InvalidInput(
                "base_order and concentrations belong to the hierarchical prior, got "
                f"base_order={self.base_order}, concentrations={self.concentrations} for independent rows."
            )
        if hierarchical:
            self._check_hierarchy()

    def _check_hierarchy(self) -> None:
        if self.base_order is None or self.base_order >= self.order:
            raise InvalidInput(
                f"base_order must lie in 0..{self.order - 1}, below the order {self.order}, got {self.base_order}."
            )
        wanted = self.order - self.base_order
        if len(self.concentrations) != wanted:
            raise InvalidInput(
                f"concentrations must be {wanted} number(s), one for each order {self.base_order + 1}..{self.order}, "
                f"got {self.concentrations}."
            )

    @property
    def contexts(self) -> int:
        """V^k."""
        return self.vocab_size**self.order

    @property
    def first_order(self) -> int:
        """Length of the contexts whose rows have no parent: r_0, or k for independent rows."""
        return self.order if self.base_order is None else self.base_order


def _concentration(value: Any, name: str) -> float:
    number = positive(value, name)
    if number < LEAST_CONCENTRATION:
        raise InvalidInput(f"{name} must be at least {LEAST_CONCENTRATION}, got {number}.")
    return number


def _concentrations(values: Any) -> tuple[float, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(f"concentrations must be a sequence of positive numbers, got {values!r}.")
    return tuple(_concentration(c, f"concentrations[{i}]") for i, c in enumerate(values))
