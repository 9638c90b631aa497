"""The logs of a run as one file."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from pailot.runfolder.log_archive import archive, safe, whole

from .test_log_search import run_folder


def test_every_attempt_is_in_it(tmp_path: Path) -> None:
    run = run_folder(tmp_path, b"first\n", b"second\n", b"")
    data = b"".join(archive(run, {"w": 1}, "ann~x", whole()))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        found = {name: file.read(name) for name in file.namelist()}
    assert found == {
        "ann~x/attempt-0/w-0/try-0.log": b"first\n",
        "ann~x/attempt-0/w-0/try-1.log": b"second\n",
        "ann~x/attempt-0/w-0/try-2.log": b"",
    }


def test_a_run_without_logs_is_an_empty_file(tmp_path: Path) -> None:
    data = b"".join(archive(str(tmp_path), {"w": 3}, "x", whole()))
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == []


def test_it_needs_little_memory(tmp_path: Path) -> None:
    run = run_folder(tmp_path, bytes(range(256)) * 80_000)
    tracemalloc.start()
    try:
        size = sum(map(len, archive(run, {"w": 1}, "x", whole())))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert size > 20_000


@pytest.mark.parametrize(("name", "made"), [("a/../b", "a_.._b"), ('x"\r\n', "x___"), ("", "_"), ("训练", "__")])
def test_names_are_harmless(name: str, made: str) -> None:
    assert safe(name) == made
