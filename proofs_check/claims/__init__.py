"""The claims of this package, one subpackage per paper."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from marginlab.proofs_check.engine.registry import Registry

#: Modules that hold a tuple CLAIMS.
FAMILIES = ("marginlab.proofs_check.claims.match_copy", "marginlab.proofs_check.claims.ngrams")


@cache
def claims() -> Registry:
    """Every registered claim of this package, dependencies first.

    Returns
    -------
    Registry
        Iterates over `Claim` objects; ``claims()["family/name"]`` is one of them.
    """
    return Registry(claim for family in FAMILIES for claim in import_module(family).CLAIMS)
