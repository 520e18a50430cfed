"""Hash of the source code that a computation imports, so that a stored result never outlives its code."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import site
import sys
import sysconfig
import time
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import resolve_name
from pathlib import Path

from marginlab.theory.errors import InvalidInput


@lru_cache(maxsize=256)
def source_hash(module: str) -> str:
    """SHA-256 over the sources of `module` and of all it imports that is not installed by somebody else.

    Imports are read from the syntax tree, those inside functions and under TYPE_CHECKING too, and
    ``import_module`` of a name that is written out: a lazy package counts with all its parts, whatever happens
    to be loaded. The standard library and third-party packages are not hashed (see `library_versions`).

    Parameters
    ----------
    module : str
        Dotted name of an importable module.

    Raises
    ------
    InvalidInput
        The module has no source file, as in an interactive session: nothing would tell its versions apart.
    """
    sources = imported_sources(module)
    if module not in sources:
        raise InvalidInput(f"results are kept for code with a source file, and module {module!r} has none.")
    _HASHED[module] = {path: _stamp(path) for path in sources.values()}
    digest = hashlib.sha256()
    for name, path in sorted(sources.items()):
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


#: Files behind each hash, with their stamps when it was computed.
_HASHED: dict[str, dict[Path, tuple[int, ...]]] = {}

_MODULE_LOADED_NS = time.time_ns()


def runs_as_hashed(module: str) -> bool:
    """Whether the code in this process is what `source_hash` read from the files.

    A file that was changed after this process began may have been loaded before: then the old code runs under
    the hash of the new one. Files that were changed after they were hashed tell the same.
    """
    source_hash(module)
    began = _process_began_ns()
    return all(_stamp(path) == stamp and stamp[0] <= began for path, stamp in _HASHED[module].items())


@cache
def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that compute, none of which is imported."""
    found = {"python": sys.version.split()[0]}
    for name in ("numpy", "scipy", "numba", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        stat = path.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


@cache
def _process_began_ns() -> int:
    """When this process began, in nanoseconds of the clock of files; where Linux does not tell, when we were loaded.

    Linux counts in ticks of about 10 ms and rounds down; the interpreter takes longer than one until it can load
    a module, so that one more tick is still before that.
    """
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - (int(fields[19]) + 1) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return _MODULE_LOADED_NS
    return min(_MODULE_LOADED_NS, time.time_ns() - int(age * 1e9))


def imported_sources(module: str) -> dict[str, Path]:
    """Name and file of `module` and of every module it imports from the user's own code or from marginlab.

    That is its own top-level package, marginlab, and whatever lies outside the folders of the standard
    library and of installed packages: a helper beside a user's script counts.
    """
    own = {module.split(".")[0], "marginlab"}
    found: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        top = name.split(".")[0]
        if name in found or not (top in own or _is_local(top)):
            continue
        path = _source_file(name)
        if path is None:
            continue
        found[name] = path
        waiting.extend(_imports(name, path))
        waiting.extend(name.rsplit(".", k)[0] for k in range(1, name.count(".") + 1))
    return found


@cache
def _installed_folders() -> tuple[Path, ...]:
    keys = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = [sysconfig.get_path(key) for key in keys] + [*site.getsitepackages(), site.getusersitepackages()]
    return tuple(Path(path).resolve() for path in paths)


@cache
def _is_local(top: str) -> bool:
    """Whether a top-level package or module is the user's own code, found without importing it."""
    if not top or top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return False
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None:
        return False
    places = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    found = [Path(place).resolve() for place in places]
    return bool(found) and not any(
        path.is_relative_to(folder) for path in found for folder in _installed_folders()
    )


def _source_file(name: str) -> Path | None:
    """Source of a module, found in its package's folder: nothing is imported that is not loaded already."""
    origin = getattr(sys.modules.get(name), "__file__", None)
    if origin is not None:
        return Path(origin) if origin.endswith(".py") else None
    top, *parts = name.split(".")
    path, folders = _top_level(top)
    for part in parts:
        for folder in folders:
            package, module = folder / part / "__init__.py", folder / f"{part}.py"
            if package.is_file():
                path, folders = package, [package.parent]
                break
            if module.is_file():
                path, folders = module, []
                break
        else:
            # A folder without __init__.py is a package too; anything else is an attribute, not a module.
            path, folders = None, [f / part for f in folders if (f / part).is_dir()]
    return path


def _top_level(top: str) -> tuple[Path | None, list[Path]]:
    """Source of a top-level module, and the folders in which its submodules lie."""
    loaded = sys.modules.get(top)
    try:
        spec = getattr(loaded, "__spec__", None) or importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None, []
    if spec is None:
        return None, []
    path = Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    return path, [Path(folder) for folder in spec.submodule_search_locations or ()]


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
        elif (
            isinstance(node, ast.Call)
            and node.args
            and _name_of(node.func) in ("import_module", "__import__")
        ):
            match node.args[0]:
                case ast.Constant(value=str(written)):
                    yield resolve_name(written, package) if written.startswith(".") and package else written


def _name_of(function: ast.expr) -> str:
    """Last part of a called name: ``import_module`` of ``importlib.import_module``."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
