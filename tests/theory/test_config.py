"""Canonical JSON and hashes of configurations."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
import pytest

from marginlab.theory.config import Config
from marginlab.theory.match_copy import MatchCopyTask


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Config):
    a: float
    b: tuple[int, ...] = (1, 2)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Other(Config):
    a: float
    b: tuple[int, ...] = (1, 2)


def test_json_is_sorted_compact_and_reads_back():
    text = Inner(a=0.1).to_json()
    assert text == '{"a":0.1,"b":[1,2],"config":"Inner"}'
    assert json.loads(text)["a"] == 0.1


def test_the_hash_is_sha256_of_the_json():
    config = Inner(a=0.1)
    assert config.config_hash == hashlib.sha256(config.to_json().encode()).hexdigest()


def test_the_hash_tells_classes_and_fields_apart():
    hashes = {Inner(a=0.1).config_hash, Other(a=0.1).config_hash, Inner(a=0.1, b=(1,)).config_hash}
    hashes.add(Inner(a=float(np.nextafter(0.1, 1))).config_hash)
    assert len(hashes) == 4


def test_equal_tasks_have_equal_hashes_however_they_were_written():
    one = MatchCopyTask(T=4, d_in=4, c=2, noise=0)
    two = MatchCopyTask(T=int(np.int64(4)), d_in=4, d_out=4, c=np.float64(2.0), noise=0.0, coordinate_std=0.5)
    assert one == two
    assert one.config_hash == two.config_hash


def test_not_a_number_has_no_json():
    with pytest.raises(ValueError, match="not JSON compliant"):
        Inner(a=float("nan")).to_json()
