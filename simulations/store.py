"""Results on disk: one NPZ file per (configuration, seed, source code), written atomically.

Behind the NPZ data, which `numpy.load` reads as it stands, lie the 32 bytes of its SHA-256: the ZIP format
checks each member's data but not its directory, where one changed bit may hide an array.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginlab.simulations.sources import library_versions, runs_as_hashed, source_hash
from marginlab.theory.errors import InvalidInput, MarginlabError

Arrays = Mapping[str, NDArray[Any]]

_SEAL_BYTES = hashlib.sha256().digest_size


class ResultStore:
    """Arrays that were computed before, keyed by configuration, seed and the code that computed them.

    Parameters
    ----------
    folder : path, optional
        Where files lie (made if missing). Without it results live in memory only, so that a run starts from
        nothing and leaves nothing behind.

    Raises
    ------
    InvalidInput
        `folder` has an empty name, cannot be made, is not a folder, or cannot be written to.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._memory: dict[str, Arrays] = {}
        if folder is not None and not os.fspath(folder):
            raise InvalidInput("a result store needs the name of a folder, got an empty one.")
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=self.folder).close()  # before the work, so that none is lost
            except OSError as error:
                raise InvalidInput(
                    f"a result store needs a folder to write to, got {str(folder)!r}: {error.strerror}."
                ) from None

    def key(self, compute: Callable[..., Arrays], config: Mapping[str, Any], seed: int | None) -> str:
        """Hash of the function, its source with all that it imports, versions, the configuration and the seed.

        Raises
        ------
        InvalidInput
            `compute` is not a function of a module's top level: a local function may depend on variables
            that no key can see.
        """
        name = getattr(compute, "__qualname__", "")
        if not isinstance(compute, FunctionType) or not name.isidentifier():
            raise InvalidInput(f"a stored computation is a module-level function, got {compute!r}.")
        if getattr(sys.modules.get(compute.__module__), name, None) is not compute:
            raise InvalidInput(
                f"a stored computation is what its module calls {name!r}: {compute!r} is wrapped or was redefined."
            )
        text = json.dumps(
            [
                compute.__module__,
                compute.__qualname__,
                source_hash(compute.__module__),
                library_versions(),
                config,
                seed,
            ],
            sort_keys=True,
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def recall(
        self,
        compute: Callable[[Mapping[str, Any], int | None], Arrays],
        config: Mapping[str, Any],
        seed: int | None,
    ) -> Arrays:
        """``compute(config, seed)``, from memory or disk where it was computed by the same code before.

        A file that cannot be read (truncated, damaged, foreign) is computed again and replaced. Code whose
        sources were changed since this process began is neither kept on disk nor answered from there: what
        runs may be what they said before.

        Parameters
        ----------
        compute : module-level function of (config, seed) that returns named arrays, which become read-only
        config : JSON-able mapping that determines the result together with the seed
        seed : int or None
        """
        key = self.key(compute, config, seed)
        if key in self._memory:
            return self._memory[key]
        arrays = self._read(key) if runs_as_hashed(compute.__module__) else None
        if arrays is None:
            arrays = {name: np.asarray(value) for name, value in compute(config, seed).items()}
            if runs_as_hashed(compute.__module__):
                self._write(key, arrays)
        self._memory[key] = {name: _read_only(array) for name, array in arrays.items()}
        return self._memory[key]

    def _path(self, key: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{key}.npz"

    def _read(self, key: str) -> Arrays | None:
        path = self._path(key)
        try:
            sealed = path.read_bytes() if path else b""
        except OSError:
            return None
        content, seal = sealed[:-_SEAL_BYTES], sealed[-_SEAL_BYTES:]
        if hashlib.sha256(content).digest() != seal:
            return None
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    def _write(self, key: str, arrays: Arrays) -> None:
        path = self._path(key)
        if path is None:
            return
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **dict(arrays))
        content = buffer.getvalue()
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{key[:16]}-", suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content + hashlib.sha256(content).digest())
                os.replace(name, path)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise MarginlabError(f"cannot keep a result in '{path.parent}': {error.strerror}.") from None


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through: whoever recalls a result next must see the same numbers."""
    view = array.view()
    view.flags.writeable = False
    return view
