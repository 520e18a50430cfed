"""``marginlab ngrams`` on a text that Python ships, and on awkward files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "marginlab", "ngrams", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_a_text_gives_table_json_and_picture(tmp_path: Path) -> None:
    import argparse

    done = run(argparse.__file__, "--order", "2", "--out", "found", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("kneser-ney", "soft matching", "tuned on the first", "taken as known", "mean weights"):
        assert word in done.stdout
    document = json.loads((tmp_path / "found" / "ngrams.json").read_text(encoding="utf-8"))
    assert document["order"] == 2
    assert len(document["estimators"]) == 13
    assert document["tuned_symbols"] + document["judged_symbols"] == len(
        Path(argparse.__file__).read_text("utf-8")
    )
    picture = (tmp_path / "found" / "ngrams.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


AWKWARD = {
    "empty": (b"", [], "the text must not be empty"),
    "one byte": (b"a", [], "an order of 3 needs at least 80 symbols, got 1"),
    "all bytes equal": (b"a" * 3000, [], None),
    "shorter than k": (b"ab", ["--order", "5"], "an order of 5 needs at least 120 symbols, got 2"),
    "random bytes": (bytes((i * i * 7919 + i // 7) % 251 for i in range(4000)), ["--unit", "byte"], None),
    "random bytes as text": (bytes(range(256)) * 4, [], "need UTF-8, got byte 0x80 at offset 128"),
    "byte order mark": (b"\xef\xbb\xbf" + b"to be or not to be, " * 40, [], None),
    "lone surrogate": (b"text " * 40 + b"\xed\xa0\x80", [], "need UTF-8, got byte 0xed at offset 200"),
    "one line of 1 MB": (b"the quick brown fox jumps over the lazy dog " * 24_000, ["--order", "2"], None),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_files(name: str, tmp_path: Path) -> None:
    data, options, sentence = AWKWARD[name]
    path = tmp_path / "text"
    path.write_bytes(data)
    done = run(str(path), *options, cwd=tmp_path)
    assert "Traceback" not in done.stdout + done.stderr
    if sentence is None:
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "ngrams-report" / "ngrams.png").stat().st_size > 10_000
        if name == "byte order mark":
            assert "a byte order mark at the start was left out" in done.stdout
    else:
        assert done.returncode == 2
        assert sentence in done.stderr
        assert not (tmp_path / "ngrams-report").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.txt"], "a text is a file, and 'nothing.txt' is none"),
        (["."], "a text is a file, and '.' is a folder"),
        (["text", "--unit", "line"], "unit must be one of byte, char, word"),
        (["text", "--order", "0"], "order must be at least 1, got 0"),
        (["text", "--order", "13"], "order must be at most 12"),
        (["text", "--tune", "1.5"], "tuned_share must lie between 0 and 1, got 1.5"),
        (["text", "--out", ""], "--out needs the name of a folder"),
        (["text", "--out", "text"], "--out needs a folder to write to, got 'text'"),
    ],
)
def test_bad_usage(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a text of some length " * 20)
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
