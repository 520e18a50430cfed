"""marginlab: theory about attention, checked by machine.

Closed forms of published theorems stand beside gradient-descent simulations of the same objects; every
statement is a claim that holds on what was computed, with a certificate where one exists, or does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marginlab.theory.lazy import lazy_names

if TYPE_CHECKING:
    from marginlab.proofs_check.claims import claims as claims
    from marginlab.theory.errors import InvalidInput as InvalidInput
    from marginlab.theory.errors import MarginlabError as MarginlabError

    __version__: str

__all__ = ["InvalidInput", "MarginlabError", "__version__", "claims"]

_lazy, __dir__ = lazy_names(
    __name__,
    {
        "InvalidInput": "marginlab.theory.errors",
        "MarginlabError": "marginlab.theory.errors",
        "claims": "marginlab.proofs_check.claims",
    },
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("marginlab")
    return _lazy(name)
