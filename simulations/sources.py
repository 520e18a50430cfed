"""Hash of the source code that a computation imports, so that a stored result never outlives its code."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=256)
def source_hash(module: str) -> str:
    """SHA-256 over the sources of `module` and all it imports from its own package and from marginlab.

    Imports are read from the syntax tree, those inside functions and under TYPE_CHECKING too: a lazy
    package counts with all its parts, whatever happens to be loaded. Third-party packages are not hashed
    (their versions stand in the report's environment).

    Parameters
    ----------
    module : str
        Dotted name of an importable module.
    """
    digest = hashlib.sha256()
    for name, path in sorted(imported_sources(module).items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def imported_sources(module: str) -> dict[str, Path]:
    """Name and file of `module` and of every module of its package or of marginlab that it imports."""
    packages = {module.split(".")[0], "marginlab"}
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name.split(".")[0] not in packages:
            continue
        path = _source_file(name)
        if path is None:
            continue
        found[name] = path
        waiting.extend(_imports(name, path))
        waiting.extend(name.rsplit(".", k)[0] for k in range(1, name.count(".") + 1))
    return found


def _source_file(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    origin = getattr(loaded, "__file__", None)
    if origin is None:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None  # an attribute of a module, not a module
        origin = spec.origin if spec else None
    if origin is None or not origin.endswith(".py"):
        return None
    return Path(origin)


def _imports(name: str, path: Path) -> Iterator[str]:
    """Dotted names that may be modules: 'a.b' and 'a.b.c' for ``from a.b import c``."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*anchor, base]) if base else ".".join(anchor)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
