"""One thread per task: numerical libraries pinned inside a with-block, and put back after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from threadpoolctl import ThreadpoolController

#: None outside; inside, whether torch was there to be pinned when the block was entered.
_pinned: ContextVar[bool | None] = ContextVar("pinned", default=None)

# Looking through the loaded libraries takes milliseconds, more than a short run. A new library can only have
# come with a new module, so that the count of modules says when to look again.
_controller: tuple[int, ThreadpoolController] | None = None


def _pools() -> ThreadpoolController:
    global _controller
    if _controller is None or _controller[0] != len(sys.modules):
        _controller = (len(sys.modules), ThreadpoolController())
    return _controller[1]


@contextmanager
def single_threaded() -> Iterator[None]:
    """Pin BLAS and OpenMP pools, and torch if it is loaded, to one thread.

    Reductions split over threads change their last bits with the number of threads; and a run is one task
    among several, for which a pool of its own is only contention. Torch is looked for among the loaded
    modules, so that a run that does not need it does not import it. Inside another such block this one does
    nothing, unless torch was loaded in between.
    """
    torch = sys.modules.get("torch")
    if _pinned.get() is not None and (torch is None or _pinned.get()):
        yield
        return
    before = None if torch is None else torch.get_num_threads()
    token = _pinned.set(torch is not None)
    try:
        with _pools().limit(limits=1):
            if torch is not None:
                torch.set_num_threads(1)
            yield
    finally:
        _pinned.reset(token)
        if torch is not None and before is not None:
            torch.set_num_threads(before)
