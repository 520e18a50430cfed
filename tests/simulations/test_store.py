"""The result store: nothing stale, nothing damaged, nothing half written."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginlab.simulations.sources import library_versions
from marginlab.simulations.store import ResultStore
from marginlab.theory.errors import InvalidInput, MarginlabError

calls: list[tuple[Any, int | None]] = []


def compute(config: Any, seed: int | None) -> dict[str, Any]:
    """Counts its calls; the array's memory layout and a bare number come back as they are."""
    calls.append((dict(config), seed))
    return {
        "a": np.arange(config["n"]) * 0.1 + (seed or 0),
        "layout": np.asfortranarray(np.eye(3)),
        "number": 2.5,
    }


@pytest.fixture(autouse=True)
def _no_calls() -> Iterator[None]:
    calls.clear()
    yield
    calls.clear()


CONFIG = {"n": 3, "nested": {"b": [1, 2]}}


def _file(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def test_computed_once_and_read_back_bit_for_bit(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    first = store.recall(compute, CONFIG, 1)
    assert store.recall(compute, CONFIG, 1) is first
    again = ResultStore(tmp_path).recall(compute, CONFIG, 1)
    assert len(calls) == 1
    assert set(again) == {"a", "layout", "number"}
    for name, array in first.items():
        assert isinstance(array, np.ndarray)
        np.testing.assert_array_equal(again[name], array)
        assert (again[name].dtype, again[name].shape) == (array.dtype, array.shape)


def test_plain_numpy_reads_the_file(tmp_path: Path) -> None:
    found = ResultStore(tmp_path).recall(compute, CONFIG, 1)
    with np.load(_file(tmp_path)) as stored:
        np.testing.assert_array_equal(stored["a"], found["a"])


@pytest.mark.parametrize(
    ("config", "seed"),
    [({**CONFIG, "n": 4}, 1), ({**CONFIG, "nested": {"b": [2, 1]}}, 1), (CONFIG, 2), (CONFIG, None)],
)
def test_another_configuration_or_seed_is_another_result(
    config: dict[str, Any], seed: int | None, tmp_path: Path
) -> None:
    ResultStore(tmp_path).recall(compute, CONFIG, 1)
    ResultStore(tmp_path).recall(compute, config, seed)
    assert len(calls) == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_order_of_keys_is_no_difference(tmp_path: Path) -> None:
    ResultStore(tmp_path).recall(compute, CONFIG, 1)
    ResultStore(tmp_path).recall(compute, dict(reversed(CONFIG.items())), 1)
    assert len(calls) == 1


def test_in_memory_a_store_starts_from_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        store = ResultStore()
        store.recall(compute, CONFIG, 0)
        store.recall(compute, CONFIG, 0)
    assert len(calls) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("on_disk", [False, True])
def test_results_are_read_only(on_disk: bool, tmp_path: Path) -> None:
    """Otherwise what one claim does to an array would change another claim's numbers."""
    for _ in range(2):
        found = ResultStore(tmp_path if on_disk else None).recall(compute, CONFIG, 0)
        with pytest.raises(ValueError, match="read-only"):
            found["a"][0] = 7.0


def test_truncations_and_flipped_bits_are_not_read(tmp_path: Path) -> None:
    """A ZIP file checks its members and not its directory: single bits there hide or rename arrays."""

    small = {"a": np.arange(2.0), "b": np.array([[1]])}
    store = ResultStore(tmp_path)
    store._write("key", small)
    path = _file(tmp_path)
    whole = path.read_bytes()
    assert store._read("key") is not None
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert store._read("key") is None
    for k in range(len(whole)):  # one bit of every byte
        damaged = bytearray(whole)
        damaged[k] ^= 1 << k % 8
        path.write_bytes(damaged)
        assert store._read("key") is None
    path.write_bytes(whole + b"\0")
    assert store._read("key") is None


@pytest.mark.parametrize("content", [b"", b"foreign", b"\x93NUMPY"])
def test_damaged_file_is_replaced(content: bytes, tmp_path: Path) -> None:
    ResultStore(tmp_path).recall(compute, CONFIG, 0)
    path = _file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(content)
    ResultStore(tmp_path).recall(compute, CONFIG, 0)
    assert len(calls) == 2
    assert _file(tmp_path).read_bytes() == whole


def fail_half_way(config: Any, seed: int | None) -> dict[str, Any]:
    raise RuntimeError("half way")


def hold_objects(config: Any, seed: int | None) -> dict[str, Any]:
    return {"a": np.array([object()])}


@pytest.mark.parametrize("broken", [fail_half_way, hold_objects])
def test_nothing_is_left_of_what_failed(broken: Any, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises((RuntimeError, ValueError)):
            ResultStore(tmp_path).recall(broken, CONFIG, 0)
        assert not list(tmp_path.iterdir())


def test_no_temporary_file_is_left_of_what_cannot_be_put_in_place(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    (tmp_path / f"{store.key(compute, CONFIG, 0)}.npz").mkdir()  # a file cannot replace a folder
    with pytest.raises(MarginlabError, match="cannot keep a result in"):
        store.recall(compute, CONFIG, 0)
    assert len(list(tmp_path.iterdir())) == 1


class TestUnwritable:
    def test_folder_that_is_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_text("mine")
        for folder in (file, file / "below"):
            with pytest.raises(InvalidInput, match="a result store needs a folder to write to"):
                ResultStore(folder)
        assert file.read_text() == "mine"

    @pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write to")
    def test_folder_that_exists_and_cannot_be_written(self) -> None:
        with pytest.raises(InvalidInput, match=r"needs a folder to write to, got '/proc/self': .+\.$"):
            ResultStore("/proc/self")

    def test_folder_that_vanishes(self, tmp_path: Path) -> None:
        store = ResultStore(tmp_path / "store")
        (tmp_path / "store").rmdir()
        with pytest.raises(MarginlabError, match="cannot keep a result in"):
            store.recall(compute, CONFIG, 0)


def test_only_module_level_functions_are_kept() -> None:
    """Two closures of one name would share a key and not a result."""

    def local(config: Any, seed: int | None) -> dict[str, Any]:
        return {}

    class Callable:
        def __call__(self, config: Any, seed: int | None) -> dict[str, Any]:
            return {}

        def method(self, config: Any, seed: int | None) -> dict[str, Any]:
            return {}

    refused: list[Any] = [local, lambda c, s: {}, Callable(), Callable().method, print]
    for bad in refused:
        with pytest.raises(InvalidInput, match="is a module-level function"):
            ResultStore().recall(bad, {}, 0)


MODULES = {
    "work.py": "import numpy as np\nimport helper\n\n\ndef compute(config, seed):\n"
    "    import lazily\n\n    print('computed')\n"
    "    return {'a': np.array([1.0, helper.VALUE, lazily.VALUE])}\n",
    "helper.py": "import deeper\n\nVALUE = deeper.VALUE\n",
    "deeper.py": "VALUE = 2.0\n",
    "lazily.py": "VALUE = 3.0\n",
    "unrelated.py": "VALUE = 4.0\n",
}
SCRIPT = """
import sys
from marginlab.simulations.store import ResultStore
import work
print(ResultStore(sys.argv[1]).recall(work.compute, {"n": 1}, 0)["a"].tolist())
"""


def _run(project: Path, store: Path) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(store)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[:-1]


def test_source_decides_in_new_processes(tmp_path: Path) -> None:
    """Flat modules of somebody's own project: the function's, one it imports, one below, one imported lazily."""
    project, store = tmp_path / "project", tmp_path / "store"
    project.mkdir()
    for name, text in MODULES.items():
        (project / name).write_text(text)
    assert _run(project, store) == ["computed", "[1.0, 2.0, 3.0]"]
    assert _run(project, store) == ["[1.0, 2.0, 3.0]"]
    (project / "unrelated.py").write_text("VALUE = 5.0\n")
    assert _run(project, store) == ["[1.0, 2.0, 3.0]"]
    (project / "lazily.py").write_text("VALUE = 30.0\n")
    assert _run(project, store) == ["computed", "[1.0, 2.0, 30.0]"]
    (project / "deeper.py").write_text("VALUE = 20.0\n")
    assert _run(project, store) == ["computed", "[1.0, 20.0, 30.0]"]
    (project / "work.py").write_text(MODULES["work.py"].replace("[1.0", "[10.0"))
    assert _run(project, store) == ["computed", "[10.0, 20.0, 30.0]"]
    (project / "work.py").write_text(MODULES["work.py"])
    assert _run(project, store) == ["[1.0, 20.0, 30.0]"]
    (project / "deeper.py").write_text(MODULES["deeper.py"])
    (project / "lazily.py").write_text(MODULES["lazily.py"])
    assert _run(project, store) == ["[1.0, 2.0, 3.0]"]  # the code of the first run again
    assert {p.suffix for p in store.iterdir()} == {".npz"}


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    project, store = tmp_path / "project", tmp_path / "store"
    project.mkdir()
    for name, text in MODULES.items():
        (project / name).write_text(text)
    slow = MODULES["work.py"].replace("print('computed')", "import time; time.sleep(0.5); print('computed')")
    (project / "work.py").write_text(slow.replace("return {", "return {'big': np.ones(200_000), "))
    environment = {**os.environ, "PYTHONPATH": str(project)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(store)], env=environment, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [p.communicate()[0].split("\n")[-2] for p in processes] == ["[1.0, 2.0, 3.0]"] * 2
    assert [p.returncode for p in processes] == [0, 0]
    assert len(list(store.iterdir())) == 1
    assert _run(project, store) == ["[1.0, 2.0, 3.0]"]


#: Loads its module, changes the file, and only then asks the store.
EDITS = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import edited
from marginlab.simulations.store import ResultStore
path = pathlib.Path(edited.__file__)
if len(sys.argv) > 3:
    path.write_text(path.read_text().replace("1.0", "2.0"))
print(ResultStore(sys.argv[2]).recall(edited.compute, {}, 0)["x"].tolist())
"""


def test_code_that_was_edited_after_it_was_loaded_is_not_kept(tmp_path: Path) -> None:
    project, store = tmp_path / "project", tmp_path / "store"
    project.mkdir()
    source = "import numpy as np\n\n\ndef compute(config, seed):\n    return {'x': np.array([1.0])}\n"
    (project / "edited.py").write_text(source)

    def found(*more: str) -> str:
        command = [sys.executable, "-c", EDITS, str(project), str(store), *more]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert found("edit") == "[1.0]"
    assert list(store.iterdir()) == []
    assert found() == "[2.0]"
    assert len(list(store.iterdir())) == 1
    (project / "edited.py").write_text(source)
    assert found("edit") == "[1.0]"  # not the 2.0 that was kept for what the file says now


@pytest.mark.parametrize("library", ["python", "numpy", "scipy", "numba", "torch"])
def test_another_version_is_another_result(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ResultStore().key(compute, CONFIG, 0)
    changed = {**library_versions(), library: "0.0.1"}
    monkeypatch.setattr("marginlab.simulations.store.library_versions", lambda: changed)
    assert ResultStore().key(compute, CONFIG, 0) != key


def test_an_empty_name_is_no_folder() -> None:
    with pytest.raises(InvalidInput, match="needs the name of a folder, got an empty one"):
        ResultStore("")


def _wrapped(factor: float) -> Any:
    def wrap(function: Any) -> Any:
        @functools.wraps(function)
        def inner(config: Any, seed: Any) -> Any:
            return {"x": factor * function(config, seed)["x"]}

        return inner

    return wrap


def plain(config: Any, seed: Any) -> Any:
    return {"x": np.array(1.0)}


def test_a_function_that_only_bears_the_name_of_another_is_refused() -> None:
    """Two wrappers of one function share its name, its source and its configuration, and not its results."""
    store = ResultStore()
    for impostor in (_wrapped(2.0)(plain), _wrapped(3.0)(plain)):
        with pytest.raises(InvalidInput, match="wrapped or was redefined"):
            store.recall(impostor, {}, 0)
