"""Checks of arguments, shared by every public function: clear sentences instead of odd numbers later."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginlab.theory.errors import InvalidInput

Float = NDArray[np.float64]
Int = NDArray[np.intp]


def float_array(value: Any, name: str, *, ndim: int | None = None, finite: bool = True) -> Float:
    """`value` as a C-contiguous float64 array.

    Parameters
    ----------
    value : array-like of real numbers (booleans, complex numbers and objects are refused)
    name : str
        How messages call it.
    ndim : int, optional
        Required number of dimensions.
    finite : bool
        Refuse NaN and infinities.

    Raises
    ------
    InvalidInput
        Wrong dtype, wrong number of dimensions, NaN or infinities (the first bad index is named), or a number
        that float64 does not hold: integers beyond 2^53, extended precision.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} must be a rectangular array of real numbers: {error}.") from None
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if ndim is not None and array.ndim != ndim:
        raise InvalidInput(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    with np.errstate(over="ignore"):  # said below
        result = np.asarray(array, dtype=np.float64, order="C")  # a single number keeps its shape ()
    changed = _changed(array, result)
    if changed is not None:
        raise InvalidInput(
            f"{name} must be exact in float64, got {array[changed]} at index {changed}, which rounds to "
            f"{result[changed]!s}: round or scale it yourself."
        )
    if finite and not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise InvalidInput(f"{name} must be finite, got {result[where]} at index {where}.")
    return result


def _changed(array: NDArray[Any], result: Float) -> tuple[int, ...] | None:
    """Index of the first number that the conversion to float64 has rounded, None if there is none."""
    if array.dtype.itemsize < 8 or array.dtype == np.float64:
        return None
    if array.dtype.kind == "f":
        wrong = (result.astype(array.dtype) != array) & ~np.isnan(array)
    else:  # up to 2^53 every integer is a float64; beyond, Python's integers compare exactly
        wrong = np.asarray(np.abs(result) >= 2.0**53)  # of a single number NumPy makes a scalar
        wrong[wrong] = [
            int(x) != int(y) for x, y in zip(array[wrong].tolist(), result[wrong].tolist(), strict=True)
        ]
    return tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None


def index_array(value: Any, name: str, *, length: int, below: int) -> Int:
    """`value` as an intp array of shape (length,) with 0 <= value < below.

    Raises
    ------
    InvalidInput
        Wrong shape, not integers, or an index out of range (the first one is named).
    """
    array = np.asarray(value)
    if array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must hold integers, got dtype {array.dtype}.")
    if array.shape != (length,):
        raise InvalidInput(f"{name} must have shape ({length},), got {array.shape}.")
    bad = (array < 0) | (array >= below)
    if bad.any():
        where = int(np.argmax(bad))
        raise InvalidInput(f"{name} must lie in 0..{below - 1}, got {array[where]} at index {where}.")
    return np.ascontiguousarray(array, dtype=np.intp)


def shaped_array(value: Any, name: str, shape: tuple[int | None, ...], *, finite: bool = True) -> Float:
    """`value` as a C-contiguous float64 array of the given shape; None in `shape` allows any length >= 1.

    Raises
    ------
    InvalidInput
        As `float_array`, or another shape, or an empty axis.
    """
    array = float_array(value, name, ndim=len(shape), finite=finite)
    pairs = zip(array.shape, shape, strict=True)
    fits = all(have >= 1 if want is None else have == want for have, want in pairs)
    if not fits:
        wanted = ", ".join("*" if want is None else str(want) for want in shape)
        raise InvalidInput(f"{name} must have shape ({wanted}) with no empty axis, got {array.shape}.")
    return array


def frozen(array: Float | Int) -> Any:
    """`array` as a read-only array that nobody else can write through: what a frozen object may hold."""
    if array.flags.writeable or not array.flags.owndata:
        array = array.copy()
        array.flags.writeable = False
    return array


def seed_sequence(value: Any, name: str = "seed") -> np.random.SeedSequence:
    """`value` as a SeedSequence: an integer >= 0 or a SeedSequence, never None (nothing is seeded by time).

    Raises
    ------
    InvalidInput
        Anything else.
    """
    if isinstance(value, np.random.SeedSequence):
        return value
    return np.random.SeedSequence(count(value, name, least=0))


def named_stream(seed: np.random.SeedSequence, key: int) -> np.random.Generator:
    """Generator of child stream `key` of `seed`.

    ``SeedSequence.spawn`` counts its calls, so that the same object would give other data the second time;
    the child is therefore addressed by its key.
    """
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, key), pool_size=seed.pool_size)
    return np.random.default_rng(child)


def positive(value: Any, name: str) -> float:
    """`value` as a finite float > 0; booleans are refused.

    Raises
    ------
    InvalidInput
        Not a real number, not finite, or not above zero.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidInput(f"{name} must be a positive number, got {value!r}.")
    if not (np.isfinite(value) and value > 0):
        raise InvalidInput(f"{name} must be positive and finite, got {value}.")
    return float(value)


def non_negative(value: Any, name: str) -> float:
    """`value` as a finite float >= 0; booleans are refused.

    Raises
    ------
    InvalidInput
        Not a real number, not finite, or below zero.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidInput(f"{name} must be a number >= 0, got {value!r}.")
    if not (np.isfinite(value) and value >= 0):
        raise InvalidInput(f"{name} must be finite and >= 0, got {value}.")
    return float(value)


def flag(value: Any, name: str) -> bool:
    """`value` if it is True or False.

    Raises
    ------
    InvalidInput
        Anything else, 0 and 1 included.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def count(value: Any, name: str, *, least: int = 1) -> int:
    """`value` as an int >= least; booleans and floats are refused.

    Raises
    ------
    InvalidInput
        Not an integer, or below `least`.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(f"{name} must be an integer, got {value!r}.")
    if value < least:
        raise InvalidInput(f"{name} must be at least {least}, got {value}.")
    return int(value)


def one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """`value` if it is one of `choices`.

    Raises
    ------
    InvalidInput
        Anything else; the message lists the choices.
    """
    if value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    return value
