"""Which sources a computation depends on."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from marginlab.simulations.sources import imported_sources, library_versions, source_hash
from marginlab.theory.errors import InvalidInput


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "sourcespkg/__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import typed\n",
        "sourcespkg/main.py": "import os, numpy\nfrom . import near\nfrom .sub import thing\n"
        "from sourcespkg.absolute import X\n",
        "sourcespkg/near.py": "def f():\n    from .lazy import Y\n    import sourcesother.inner as s\n",
        "sourcespkg/lazy.py": "Y = 1\n",
        "sourcespkg/typed.py": "",
        "sourcespkg/absolute.py": "from marginlab.theory import config\nX = 1\n",
        "sourcespkg/unused.py": "",
        "sourcespkg/sub/__init__.py": "",
        "sourcespkg/sub/thing.py": "from .. import near\nfrom ..near import f\nimport sourcespkg.main\n",
        "sourcesother/inner.py": "import does_not_exist\nfrom sourcesother import also\n",
        "sourcesother/also.py": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    return tmp_path


def test_everything_of_ones_own_and_of_marginlab(package: Path) -> None:
    found = imported_sources("sourcespkg.main")
    own = {name for name in found if not name.startswith("marginlab")}
    assert own == {
        "sourcespkg",
        "sourcespkg.main",
        "sourcespkg.near",
        "sourcespkg.lazy",
        "sourcespkg.typed",
        "sourcespkg.absolute",
        "sourcespkg.sub",
        "sourcespkg.sub.thing",
        "sourcesother.inner",  # a second package of the same user, without __init__.py
        "sourcesother.also",
    }
    assert {"marginlab", "marginlab.theory", "marginlab.theory.config"} <= set(found)
    assert "sourcespkg" not in sys.modules
    assert found["sourcespkg.near"] == package / "sourcespkg/near.py"
    assert not any(name.split(".")[0] in ("numpy", "os", "typing") for name in found)


def test_hash_follows_content_and_names(package: Path) -> None:
    def fresh() -> str:
        source_hash.cache_clear()
        return source_hash("sourcespkg.main")

    first = fresh()
    assert fresh() == first
    (package / "sourcespkg/unused.py").write_text("changed = 1\n")
    assert fresh() == first
    for name in ("main", "near", "lazy", "typed", "sub/__init__", "sub/thing"):
        path = package / f"sourcespkg/{name}.py"
        before = path.read_text()
        path.write_text(before + "# a comment\n")
        assert fresh() != first, name
        path.write_text(before)
    assert fresh() == first
    source_hash.cache_clear()


def test_own_computations_reach_their_kernels() -> None:
    """A claim's trained run depends on the engine that it calls, lazily imported as it is."""
    found = imported_sources("marginlab.proofs_check.claims.match_copy.trained")
    assert {"marginlab.simulations.descent", "marginlab.simulations.attention"} <= set(found)
    assert any(name.startswith("marginlab.simulations._") for name in found)


def test_hashing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from marginlab.simulations.sources import source_hash; "
        "source_hash('marginlab.proofs_check.claims.match_copy.trained'); "
        "print([m for m in ('torch', 'cvxpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("module", ["there_is_no_such_module", "builtins"])
def test_code_without_a_source_file_is_refused(module: str) -> None:
    with pytest.raises(InvalidInput, match=f"module '{module}' has none"):
        source_hash(module)


def test_dynamic_imports_of_written_names(package: Path) -> None:
    (package / "sourcespkg/dynamic.py").write_text(
        "import importlib\n\n\ndef f(name):\n    importlib.import_module('sourcespkg.unused')\n"
        "    importlib.import_module('.near', __package__)\n"
        "    __import__('sourcesother.also')\n    return importlib.import_module(name)\n"
    )
    found = set(imported_sources("sourcespkg.dynamic"))
    assert {"sourcespkg.unused", "sourcespkg.near", "sourcesother.also"} <= found


def test_library_versions_are_those_installed() -> None:
    import numpy
    import scipy

    found = library_versions()
    assert found["numpy"] == numpy.__version__
    assert found["scipy"] == scipy.__version__
    assert set(found) == {"python", "numpy", "scipy", "numba", "torch"}
