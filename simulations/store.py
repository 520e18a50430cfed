"""Results on disk: one NPZ file per (configuration, seed, source code), written atomically."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginlab.simulations.sources import source_hash
from marginlab.theory.errors import InvalidInput

Arrays = Mapping[str, NDArray[Any]]


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
        `folder` cannot be made or is not a folder.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._memory: dict[str, Arrays] = {}
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InvalidInput(
                    f"a result store needs a folder, got {str(folder)!r}: {error.strerror}."
                ) from None

    def key(self, compute: Callable[..., Arrays], config: Mapping[str, Any], seed: int | None) -> str:
        """Hash of the function, its source with all that it imports, the configuration and the seed."""
        text = json.dumps(
            [compute.__module__, compute.__qualname__, source_hash(compute.__module__), config, seed],
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

        A file that cannot be read (truncated, foreign) is computed again and replaced.

        Parameters
        ----------
        compute : module-level function of (config, seed) that returns named arrays
        config : JSON-able mapping that determines the result together with the seed
        seed : int or None
        """
        key = self.key(compute, config, seed)
        if key in self._memory:
            return self._memory[key]
        arrays = self._read(key)
        if arrays is None:
            arrays = dict(compute(config, seed))
            self._write(key, arrays)
        self._memory[key] = arrays
        return arrays

    def _read(self, key: str) -> Arrays | None:
        if self.folder is None:
            return None
        try:
            with np.load(self.folder / f"{key}.npz", allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def _write(self, key: str, arrays: Arrays) -> None:
        if self.folder is None:
            return
        handle, name = tempfile.mkstemp(dir=self.folder, prefix=f".{key[:16]}-", suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, allow_pickle=False, **dict(arrays))
            os.replace(name, self.folder / f"{key}.npz")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
