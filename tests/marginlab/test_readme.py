"""Every command and every program of the README runs as written (`make` targets run in CI)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = Path(sys.executable).parent

PROGRAMS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
    if line
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's programs have been run or written, in order."""
    place = tmp_path_factory.mktemp("readme")
    (place / "README.md").write_text(README, encoding="utf-8")  # commands are given from the project's root
    for program in PROGRAMS:
        name = re.match(r"# (\S+\.py)\n", program)
        if name:
            (place / name.group(1)).write_text(program, encoding="utf-8")
        else:
            _run([sys.executable, "-c", program], place)
    return place


def _run(command: list[str], place: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("command", [c for c in COMMANDS if not c.startswith("make ")])
def test_command(command: str, folder: Path) -> None:
    words = command.split()
    assert words[0].startswith(".venv/bin/"), (
        f"a README command comes from make or from the environment: {command}"
    )
    _run([str(SCRIPTS / words[0].removeprefix(".venv/bin/")), *words[1:]], folder)


def test_make_targets_exist_and_ci_runs_them() -> None:
    makefile, ci = (ROOT / "Makefile").read_text(), (ROOT / ".ci" / "run").read_text()
    for command in [c for c in COMMANDS if c.startswith("make ")]:
        target = command.split()[1]
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
        assert command in ci
