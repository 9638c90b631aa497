"""Records are whole or not there; a journal loses at most the line that was being written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.runfolder.atomic_json import append_line, claim, read_lines, read_record, write_record

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), json_values, max_size=4)


@given(objects, st.booleans())
def test_what_is_written_is_read(data: dict[str, Any], durable: bool) -> None:
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "record.json")
        write_record(path, {"old": 1})
        write_record(path, data, durable=durable)
        assert read_record(path) == data
        assert os.listdir(folder) == ["record.json"]


def test_a_record_without_a_folder_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_record("record", {"a": 1})
    assert claim("claimed")
    assert read_record("record") == {"a": 1}


@pytest.mark.parametrize("content", ["", "{", '{"a": 1', "[1]", "3", "\0\0\0", '{"a": 1}{', "[" * 100_000])
def test_garbage_is_no_record(tmp_path: Path, content: str) -> None:
    path = tmp_path / "record"
    path.write_text(content)
    assert read_record(str(path)) is None


def test_bytes_that_are_no_text_are_no_record(tmp_path: Path) -> None:
    (tmp_path / "record").write_bytes(b'{"a": "\xff"}')
    assert read_record(str(tmp_path / "record")) is None


def test_what_is_not_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_record(str(tmp_path / "none")) is None
    assert read_record(str(tmp_path / "file" / "none")) is None
    assert read_lines(str(tmp_path / "none")) == []


def test_a_record_that_cannot_be_written_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "record")
    write_record(path, {"old": 1})
    with pytest.raises(TypeError):
        write_record(path, {"a": object()})

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("write", "fsync", "rename"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="No space"):
                write_record(path, {"new": 1})
    assert read_record(path) == {"old": 1}
    assert os.listdir(tmp_path) == ["record"]


def test_a_durable_record_is_synced_before_its_name_and_its_folder_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    sync, rename = os.fsync, os.rename

    def spy_sync(descriptor: int) -> None:
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        sync(descriptor)

    def spy_rename(old: str, new: str) -> None:
        calls.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", spy_sync)
    monkeypatch.setattr(os, "rename", spy_rename)
    write_record(str(tmp_path / "a"), {})
    assert calls == ["file", "rename", "folder"]
    calls.clear()
    write_record(str(tmp_path / "b"), {}, durable=False)
    assert calls == ["rename"]
    calls.clear()
    assert claim(str(tmp_path / "c"))
    assert calls == ["file", "folder"]


def test_a_folder_that_cannot_be_synced_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def refuse(number: int) -> Any:
        def fail(descriptor: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                raise OSError(number, "refused")
            sync(descriptor)

        return fail

    monkeypatch.setattr(os, "fsync", refuse(22))
    write_record(str(tmp_path / "a"), {"a": 1})
    assert read_record(str(tmp_path / "a")) == {"a": 1}
    monkeypatch.setattr(os, "fsync", refuse(5))
    with pytest.raises(OSError, match="refused"):
        write_record(str(tmp_path / "a"), {"a": 2})


@given(st.lists(objects, max_size=6), st.data())
def test_a_journal_loses_only_its_torn_line(entries: list[dict[str, Any]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "journal")
        for entry in entries:
            append_line(path, entry)
        assert read_lines(path) == entries
        if not entries:
            return
        whole = Path(path).read_bytes()
        start = whole[:-1].rfind(b"\n") + 1
        end = data.draw(st.integers(start, len(whole)))
        os.truncate(path, end)
        # Only a line's own line break can be missing without loss.
        left = entries if end >= len(whole) - 1 else entries[:-1]
        assert read_lines(path) == left
        append_line(path, {"after": "the crash"})
        assert read_lines(path) == [*left, {"after": "the crash"}]


def test_a_journal_by_its_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b'{"torn')
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    append_line(descriptor, {"a": 1}, durable=True)
    append_line(descriptor, {"b": 2})
    os.close(descriptor)
    assert read_lines(str(path)) == [{"a": 1}, {"b": 2}]
    assert path.read_bytes() == b'{"torn\n{"a": 1}\n{"b": 2}\n'


def test_a_descriptor_that_cannot_be_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    append_line(writer, {"a": 1})
    assert json.loads(os.read(reader, 100)) == {"a": 1}
    os.close(reader)
    os.close(writer)
    descriptor = os.open(tmp_path / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    append_line(descriptor, {"a": 1})
    append_line(descriptor, {"b": 2})
    os.close(descriptor)
    assert read_lines(str(tmp_path / "journal")) == [{"a": 1}, {"b": 2}]


def test_a_line_that_did_not_fit_is_an_error_and_the_next_one_is_whole(tmp_path: Path) -> None:
    code = """
import resource, sys
from pailot.runfolder.atomic_json import append_line
append_line(sys.argv[1], {"a": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
try:
    append_line(sys.argv[1], {"b": "x" * 100})
except OSError as error:
    print(error.strerror)
try:
    append_line(sys.argv[1], {"c": 1})
except OSError as error:
    print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
append_line(sys.argv[1], {"d": 1})
"""
    path = str(tmp_path / "journal")
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == "only 11 of 110 bytes could be written\nFile too large\n"
    assert read_lines(path) == [{"a": 1}, {"d": 1}]


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full, pytest.raises(OSError, match="No space left"):
        append_line(full.fileno(), {"a": 1})


def _append_many(path: str, writer: int) -> None:
    for number in range(100):
        append_line(path, {"writer": writer, "number": number, "padding": "x" * (number * 40)})


def _claim_many(folder: str, results: Any) -> None:
    results.put([claim(os.path.join(folder, str(number))) for number in range(30)])


def test_several_processes_append_whole_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    context = get_context("spawn")
    workers = [context.Process(target=_append_many, args=(path, number)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    entries = read_lines(path)
    for number in range(3):
        assert [entry["number"] for entry in entries if entry["writer"] == number] == list(range(100))
    assert len(entries) == 300


def test_of_several_processes_one_has_the_claim(tmp_path: Path) -> None:
    context = get_context("spawn")
    results = context.SimpleQueue()
    workers = [context.Process(target=_claim_many, args=(str(tmp_path), results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    won = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    assert [sum(each) for each in zip(*won, strict=True)] == [1] * 30


def test_a_claim_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        claim(str(tmp_path / "none" / "claim"))
