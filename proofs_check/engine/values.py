"""What claims measure and predict: intervals whose width has a stated reason, curves and samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginlab.theory.errors import InvalidInput

Float = NDArray[np.float64]


def frozen(values: ArrayLike) -> Float:
    """A read-only copy: a value stays what it was, whatever happens later to the array it was made from.

    Raises
    ------
    InvalidInput
        Not real numbers, or numbers that float64 does not hold.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiubO":
        raise InvalidInput(f"a measured or predicted value holds real numbers, got dtype {array.dtype}.")
    try:
        copy = np.array(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"a measured or predicted value holds real numbers: {error}.") from None
    if array.dtype != np.float64:
        for given, kept in zip(array.ravel().tolist(), copy.ravel().tolist(), strict=True):
            # Python compares integers, fractions and floats exactly, whatever their size.
            if given != kept and given == given:
                raise InvalidInput(f"float64 does not hold {given}; give an interval around it.")
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Closed interval (or an array of them) with the rule that made it this wide.

    Parameters
    ----------
    lo, hi : array-like of floats of one shape, lo <= hi, NaN refused (infinite ends are allowed)
    rule : str
        Why it is this wide: "exact" if it has no width, else the sentence that a function of `tolerances`
        returns, or what states a range.

    Raises
    ------
    InvalidInput
        Shapes differ, an end is NaN, lo > hi, or a width that no rule explains.
    """

    lo: Float
    hi: Float
    rule: str = "exact"

    def __post_init__(self) -> None:
        lo, hi = frozen(self.lo), frozen(self.hi)
        if lo.shape != hi.shape:
            raise InvalidInput(f"an interval's ends must have one shape, got {lo.shape} and {hi.shape}.")
        if np.isnan(lo).any() or np.isnan(hi).any():
            raise InvalidInput("an interval's ends must not be NaN.")
        if (lo > hi).any():
            raise InvalidInput(f"an interval's lower end must not exceed its upper end, got {lo} > {hi}.")
        if (lo < hi).any() and self.rule.strip() in ("", "exact"):
            raise InvalidInput("an interval with a width says by which rule it is so wide: 'exact' is none.")
        object.__setattr__(self, "lo", lo)
        object.__setattr__(self, "hi", hi)

    @classmethod
    def exact(cls, value: ArrayLike) -> Interval:
        """A value with no uncertainty: an integer, a rational that float64 holds, a definition."""
        array = frozen(value)
        return cls(array, array)

    @classmethod
    def around(cls, value: ArrayLike, radius: ArrayLike, rule: str) -> Interval:
        """value +- radius, rounded outwards so that no end loses half an ulp; a radius of 0 stays exact."""
        centre, half = np.broadcast_arrays(
            np.asarray(value, dtype=np.float64), np.asarray(radius, dtype=np.float64)
        )
        if not (half >= 0).all():
            raise InvalidInput(f"an interval's radius must be a number >= 0, got {half.min()}.")
        # One ulp outwards pays for the rounding of the sum (half an ulp) and of the radius (second order).
        lo = np.where(half > 0, np.nextafter(centre - half, -np.inf), centre)
        hi = np.where(half > 0, np.nextafter(centre + half, np.inf), centre)
        return cls(lo, hi, rule)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the ends."""
        return self.lo.shape

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Where the interval says something on both sides: an infinite value may be an overflow."""
        return np.isfinite(self.lo) & np.isfinite(self.hi)

    @property
    def mid(self) -> Float:
        """Midpoint; the finite end where the other one is infinite."""
        mid = np.where(np.isfinite(self.lo), self.lo, self.hi)
        both = np.isfinite(self.lo) & np.isfinite(self.hi)
        return np.where(both, self.lo / 2 + self.hi / 2, mid)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A measured quantity against a parameter that grows along a trajectory.

    Parameters
    ----------
    x : (R,) strictly increasing floats
    y : Interval of shape (R,)
    x_name, y_name : str
        Axis names with units, for reports.
    log_log : bool
        Slopes are taken of log y against log x (a power law) instead of y against x.

    Raises
    ------
    InvalidInput
        Shapes differ, x does not increase, or a power law with values that are not positive.
    """

    x: Float
    y: Interval
    x_name: str
    y_name: str
    log_log: bool = False

    def __post_init__(self) -> None:
        x = frozen(self.x)
        if x.ndim != 1 or len(x) < 2 or x.shape != self.y.shape:
            raise InvalidInput(
                f"a curve needs x and y of one shape (R >= 2,), got {x.shape}, {self.y.shape}."
            )
        if not (np.isfinite(x).all() and (np.diff(x) > 0).all()):
            raise InvalidInput(f"a curve's {self.x_name} must be finite and strictly increasing.")
        if self.log_log and not (x[0] > 0 and (self.y.hi > 0).all()):
            raise InvalidInput(f"a power law of {self.y_name} needs positive values.")
        object.__setattr__(self, "x", x)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Approach:
    """A direction that is approached: certified 1 - cos against the norm, along a trajectory.

    Parameters
    ----------
    time : (R,) floats, increasing
        What the claim's window refers to (a step, or log t).
    norm : (R,) floats > 0, increasing inside the window
    one_minus_cos : Interval of shape (R,), ends in [0, 2]
        From a certified separator.
    separators : mapping of str to Interval of shape (R,), optional
        The same from other oracles: every one must overlap `one_minus_cos`.

    Raises
    ------
    InvalidInput
        Shapes differ, time does not increase, a norm is not positive, or 1 - cos lies outside [0, 2].
    """

    time: Float
    norm: Float
    one_minus_cos: Interval
    separators: Mapping[str, Interval] = field(default_factory=dict)

    def __post_init__(self) -> None:
        time, norm = frozen(self.time), frozen(self.norm)
        enclosures = {"one_minus_cos": self.one_minus_cos, **self.separators}
        shapes = {"time": time.shape, "norm": norm.shape} | {k: v.shape for k, v in enclosures.items()}
        if time.ndim != 1 or not len(time) or len(set(shapes.values())) != 1:
            raise InvalidInput(f"an approach needs vectors of one shape (R >= 1,), got {shapes}.")
        if not (np.isfinite(time).all() and (np.diff(time) > 0).all()):
            raise InvalidInput("an approach's time must be finite and strictly increasing.")
        if not (np.isfinite(norm).all() and (norm > 0).all()):
            raise InvalidInput("an approach's norms must be positive and finite.")
        for name, value in enclosures.items():
            if (value.hi < 0).any() or (value.lo > 2).any():
                raise InvalidInput(f"1 - cos lies in [0, 2], {name!r} encloses it outside.")
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "norm", norm)
        object.__setattr__(self, "separators", dict(self.separators))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Independent replications of a bounded or Gaussian-like quantity, for the engine to form an interval.

    Parameters
    ----------
    values : (n,) floats
    unit : str
        Unit of replication, for example "seed" or "sequence, given this run".
    law : {"mean", "proportion"}
        "proportion": values are 0 or 1, exact Clopper-Pearson interval; "mean": Student interval, n >= 5.

    Raises
    ------
    InvalidInput
        Not a finite vector, another law, or a proportion of anything but zeros and ones.
    """

    values: Float
    unit: str
    law: str = "mean"

    def __post_init__(self) -> None:
        values = frozen(self.values)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InvalidInput(f"a sample's values must be a finite vector, got shape {values.shape}.")
        if self.law not in ("mean", "proportion"):
            raise InvalidInput(f"a sample's law is 'mean' or 'proportion', not {self.law!r}.")
        if self.law == "proportion" and not np.isin(values, (0.0, 1.0)).all():
            raise InvalidInput("a sample of a proportion holds zeros and ones only.")
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Emergence:
    """What an emergence claim predicts: below `before` at first, above `after` in the end.

    Parameters
    ----------
    before, after : float
        Bounds on y, before < after.
    window : (float, float)
        The first crossing of `after` must fall in this range of x.

    Raises
    ------
    InvalidInput
        `before` is not below `after`, or the window is empty.
    """

    before: float
    after: float
    window: tuple[float, float]

    def __post_init__(self) -> None:
        if not self.before < self.after:
            raise InvalidInput(f"an emergence needs before < after, got {self.before} and {self.after}.")
        if not self.window[0] < self.window[1]:
            raise InvalidInput(
                f"an emergence's window needs its first end below its last, got {self.window}."
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Named quantities to be ordered, each with its interval; predicted as names from lowest to highest."""

    values: Mapping[str, Interval]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", dict(self.values))


Measured = Interval | Curve | Approach | Sample | Ranking
Predicted = Interval | Emergence | tuple[str, ...]


def summary(value: Any) -> dict[str, Any]:
    """A small JSON-able description of a measured or predicted value, for reports."""
    if isinstance(value, Interval):
        if value.lo.size == 0:
            return {"shape": list(value.shape), "rule": value.rule}
        if value.lo.size == 1:
            return {"lo": float(value.lo.ravel()[0]), "hi": float(value.hi.ravel()[0]), "rule": value.rule}
        return {
            "shape": list(value.shape),
            "lo": float(value.lo.min()),
            "hi": float(value.hi.max()),
            "rule": value.rule,
        }
    if isinstance(value, Curve):
        last = {"lo": float(value.y.lo[-1]), "hi": float(value.y.hi[-1])}
        return {
            "curve": value.y_name,
            "against": value.x_name,
            "points": len(value.x),
            "last": last,
            "rule": value.y.rule,
        }
    if isinstance(value, Approach):
        one_minus = value.one_minus_cos
        return {
            "approach": "1 - cos",
            "points": len(value.norm),
            "rule": one_minus.rule,
            "last": {"lo": float(one_minus.lo[-1]), "hi": float(one_minus.hi[-1])},
        }
    if isinstance(value, Sample):
        return {
            "sample": value.law,
            "n": len(value.values),
            "unit": value.unit,
            "mean": float(np.mean(value.values)) if len(value.values) else None,
        }
    if isinstance(value, Ranking):
        return {"ranking": {name: summary(v) for name, v in value.values.items()}}
    if isinstance(value, Emergence):
        return {"before": value.before, "after": value.after, "window": list(value.window)}
    if isinstance(value, tuple):
        return {"order": list(value)}
    return {"value": repr(value)}
