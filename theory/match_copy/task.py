"""The Gaussian match-and-copy task as a frozen configuration (Definition 1.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginlab.theory.config import Config
from marginlab.theory.errors import InvalidInput
from marginlab.theory.validation import (
    Float,
    count,
    flag,
    named_stream,
    non_negative,
    one_of,
    positive,
    shaped_array,
)

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCopyTask(Config):
    """Gaussian match-and-copy: find the context token that the query correlates with, output its successor.

    One sample has tokens e_1..e_T with independent N(0, coordinate_std^2) coordinates, a hidden position
    t_0 uniform on 1..T-1, a query e = C e_{t_0} + S xi with S S^T = I - C C^T (so that e has the law of a
    token), and the target v = W_V e_{t_0 + 1} + noise * N(0, I).

    Parameters
    ----------
    T : int >= 2
        Context length.
    d_in, d_out : int
        Dimensions of tokens and targets; ``d_out`` is ``d_in`` if not given.
    exact : bool
        Exact match: the query is the matched token itself (C = I, no query noise).
    c : float >= 1, optional
        Match strength, C = c^-2 I. Give one of `c` and `C` unless the match is exact.
    C : (d_in, d_in) array-like with C C^T <= I, optional
        General match matrix (kept as nested tuples).
    noise : float >= 0
        Standard deviation of one target coordinate, the paper's sigma_noise.
    coordinate_std : float > 0, optional
        Standard deviation of **one token coordinate**. The paper writes tokens N(0, sigma_token^2/d_in I):
        its sigma_token is ``coordinate_std * sqrt(d_in)``, see `token_std`. The default is the paper's
        sigma_token = 1, that is 1/sqrt(d_in); unit-variance tokens are ``coordinate_std=1``.
    copy : "gaussian" or "identity"
        W_V with independent N(0, 1) entries, or the identity (needs d_out = d_in).
    copy_seed : int >= 0
        Seed of W_V, part of the task: a training and a test set of one task share W_V whatever their
        seeds and sizes.

    Raises
    ------
    InvalidInput
        A field breaks one of these rules.

    References
    ----------
    Gonon, Cordonnier, Boumal, arXiv 2602.07562v1, Definition 1.1 and Table 1.
    """

    T: int
    d_in: int
    d_out: int = None  # type: ignore[assignment]
    exact: bool = False
    c: float | None = None
    C: Matrix | None = None
    noise: float = 0.1
    coordinate_std: float = None  # type: ignore[assignment]
    copy: str = "gaussian"
    copy_seed: int = 0

    def __post_init__(self) -> None:
        d = count(self.d_in, "d_in")
        d_out = d if self.d_out is None else count(self.d_out, "d_out")
        std = d**-0.5 if self.coordinate_std is None else positive(self.coordinate_std, "coordinate_std")
        canonical = {
            "T": count(self.T, "T", least=2),
            "d_in": d,
            "d_out": d_out,
            "exact": flag(self.exact, "exact"),
            "c": None if self.c is None else positive(self.c, "c"),
            "C": None if self.C is None else _contraction(self.C, d),
            "noise": non_negative(self.noise, "noise"),
            "coordinate_std": std,
            "copy": one_of(self.copy, "copy", ("gaussian", "identity")),
            "copy_seed": count(self.copy_seed, "copy_seed", least=0),
        }
        for name, value in canonical.items():
            object.__setattr__(self, name, value)
        if (self.c is not None) + (self.C is not None) + self.exact != 1:
            raise InvalidInput(
                "exactly one of exact=True, c and C must say how the query matches, got "
                f"exact={self.exact}, c={self.c}, C={'None' if self.C is None else 'a matrix'}."
            )
        if self.c is not None and self.c < 1:
            raise InvalidInput(f"c must be at least 1 for C = c^-2 I to satisfy C C^T <= I, got {self.c}.")
        if self.copy == "identity" and d_out != d:
            raise InvalidInput(f"an identity copy needs d_out = d_in, got d_out={d_out}, d_in={d}.")

    @classmethod
    def template(cls, *, T: int, d: int, coordinate_std: float | None = None) -> MatchCopyTask:
        """The noiseless template of eq. (6): exact match, exact copy, v = e_{t_0 + 1}."""
        return cls(T=T, d_in=d, exact=True, noise=0.0, copy="identity", coordinate_std=coordinate_std)  # type: ignore[arg-type]

    @property
    def token_std(self) -> float:
        """The paper's sigma_token, coordinate_std * sqrt(d_in)."""
        return self.coordinate_std * self.d_in**0.5

    @property
    def match_matrix(self) -> Float:
        """C, shape (d_in, d_in)."""
        if self.C is not None:
            return np.array(self.C)
        return np.eye(self.d_in) * (1.0 if self.c is None else self.c**-2)

    @property
    def copy_matrix(self) -> Float:
        """W_V, shape (d_out, d_in): a function of the task alone."""
        if self.copy == "identity":
            return np.eye(self.d_in)
        rng = named_stream(np.random.SeedSequence(self.copy_seed), COPY_STREAM)
        return rng.standard_normal((self.d_out, self.d_in))


#: Key of the stream of W_V; the sampler's own streams hang from the seed of the sample, not of the task.
COPY_STREAM = 0


def query_noise_factor(C: Float) -> Float:
    """Symmetric S >= 0 with S S^T = I - C C^T, shape (d, d).

    Raises
    ------
    InvalidInput
        C C^T has an eigenvalue above 1 by more than rounding.
    """
    d = len(C)
    eigenvalues, vectors = np.linalg.eigh(np.eye(d) - C @ C.T)
    largest = 1.0 - eigenvalues[0]
    # Backward error of C C^T (d products a entry, Frobenius norm <= d ||C C^T||) and of eigh (a modest
    # multiple of d eps): an eigenvalue above 1 by less than this cannot be told from 1.
    if eigenvalues[0] < -4 * d * np.finfo(float).eps * max(1.0, largest) * d:
        raise InvalidInput(f"C C^T must be at most the identity, its largest eigenvalue is {largest:.6g}.")
    return (vectors * np.sqrt(np.clip(eigenvalues, 0.0, None))) @ vectors.T


def _contraction(C: Any, d: int) -> Matrix:
    matrix = shaped_array(C, "C", (d, d))
    query_noise_factor(matrix)
    return tuple(tuple(float(x) for x in row) for row in matrix)
