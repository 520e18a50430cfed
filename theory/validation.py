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
        Wrong dtype, wrong number of dimensions, NaN or infinities (the first bad index is named).
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidInput(f"{name} must be a rectangular array of real numbers: {error}.") from None
    if array.dtype.kind not in "fiu":
        raise InvalidInput(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if ndim is not None and array.ndim != ndim:
        raise InvalidInput(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    result = np.ascontiguousarray(array, dtype=np.float64)
    if finite and not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        raise InvalidInput(f"{name} must be finite, got {result[where]} at index {where}.")
    return result


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
