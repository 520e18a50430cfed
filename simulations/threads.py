"""One thread per task: numerical libraries pinned inside a with-block, and put back after it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def single_threaded() -> Iterator[None]:
    """Pin BLAS and OpenMP pools, and torch if it is loaded, to one thread.

    Reductions split over threads change their last bits with the number of threads; and a run is one task
    among several, for which a pool of its own is only contention. Torch is looked for among the loaded
    modules, so that a run that does not need it does not import it.
    """
    torch = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    with threadpool_limits(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None and before is not None:
                torch.set_num_threads(before)
