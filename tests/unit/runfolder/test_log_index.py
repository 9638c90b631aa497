"""When a log was written: entries, their bound, and what a stranger's file is worth."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pailot.runfolder import careful_files, log_index, logs
from pailot.runfolder.log_index import IndexWriter


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()

    class Noting(IndexWriter):
        def __init__(self, folder: str, stdout_offset: int, *, fresh: bool) -> None:
            super().__init__(folder, stdout_offset, fresh=fresh, clock=made)

    monkeypatch.setattr(logs, "IndexWriter", Noting)
    return made


def test_each_write_has_its_time_and_its_stream(tmp_path: Path, clock: Clock) -> None:
    writer = logs.LogWriter(str(tmp_path), (), fresh=True)
    for stream, text in (("stdout", b"one\n"), ("stderr", b"oh\n"), ("stdout", b"two\n"), ("stdout", b"three\n")):
        writer.write(stream, text)
        clock.now += 1
    writer.close()
    found = log_index.read(str(tmp_path))
    assert found is not None
    assert found.offsets == [0, 4, 7, 11]
    assert found.errors == [False, True, False, False]
    assert found.times == [1_700_000_000_000 + 1000 * each for each in range(4)]
    assert [found.time(each) for each in (0, 3, 4, 7, 5000)] == [found.times[n] for n in (0, 0, 1, 2, 3)]
    assert found.since(1_700_000_000_500) == 4
    assert found.since(1_700_000_009_000) is None
    out, err = log_index.read(str(tmp_path), "stdout"), log_index.read(str(tmp_path), "stderr")
    assert out is not None
    assert err is not None
    assert (out.offsets, err.offsets) == ([0, 4, 8], [0])


def test_what_comes_at_once_is_one_entry(tmp_path: Path, clock: Clock) -> None:
    writer = logs.LogWriter(str(tmp_path), (), fresh=True)
    for _ in range(1000):
        writer.write("stdout", b"x" * 10)
    clock.now += 0.01
    writer.write("stdout", b"y")
    writer.close()
    assert (tmp_path / "log-index").stat().st_size == 20 + 2 * 12
    found = log_index.read(str(tmp_path))
    assert found is not None
    assert found.offsets == [0, 10_000]


def test_a_task_that_prints_nothing_has_no_index(tmp_path: Path) -> None:
    logs.LogWriter(str(tmp_path), (), fresh=True).close()
    assert not (tmp_path / "log-index").exists()
    assert log_index.read(str(tmp_path)) is None


def test_a_second_writer_goes_on_and_half_an_entry_is_cut(tmp_path: Path, clock: Clock) -> None:
    first = logs.LogWriter(str(tmp_path), (), fresh=True)
    first.write("stdout", b"one\n")
    first.close()
    with (tmp_path / "log-index").open("ab") as file:
        file.write(b"\1\2\3")
    clock.now += 5
    second = logs.LogWriter(str(tmp_path), ())
    second.write("stderr", b"two\n")
    clock.now -= 60  # a clock that was set back
    second.write("stdout", b"three\n")
    second.close()
    found = log_index.read(str(tmp_path))
    assert found is not None
    assert found.offsets == [0, 4, 8]
    assert [each - found.times[0] for each in found.times] == [0, 5000, 5000]


def test_an_index_that_begins_late_knows_the_offsets_of_both_streams(tmp_path: Path, clock: Clock) -> None:
    first = logs.LogWriter(str(tmp_path), (), fresh=True)
    first.write("stdout", b"12345\n")
    first.write("stderr", b"123\n")
    first.close()
    (tmp_path / "log-index").unlink()
    second = logs.LogWriter(str(tmp_path), ())
    second.write("stderr", b"late\n")
    second.write("stdout", b"late\n")
    second.close()
    whole, out, err = (log_index.read(str(tmp_path), each) for each in ("all", "stdout", "stderr"))
    assert whole is not None and out is not None and err is not None  # noqa: PT018
    assert (whole.offsets, out.offsets, err.offsets) == ([10, 15], [6], [4])
    assert whole.time(3) is None


@pytest.mark.parametrize("alternating", [False, True])
def test_the_file_is_bounded_and_its_offsets_stay_true(tmp_path: Path, clock: Clock, alternating: bool) -> None:
    writer = IndexWriter(str(tmp_path), 0, fresh=True, clock=clock)
    begin, sizes = clock.now, {0: 0, 1: 0}
    said: list[tuple[int, int, int, int]] = []
    for number in range(120_000):
        stream = number % 2 if alternating else int(number % 10 == 9)
        writer.note(stream, sizes[0] + sizes[1])
        said.append((sizes[0] + sizes[1], sizes[stream], stream, int(clock.now * 1000)))
        sizes[stream] += 7
        clock.now = begin + number * 0.05
    writer.close()
    assert (tmp_path / "log-index").stat().st_size <= log_index.MAX_BYTES
    assert os.listdir(tmp_path) == ["log-index"]
    found, out, err = (log_index.read(str(tmp_path), each) for each in ("all", "stdout", "stderr"))
    assert found is not None and out is not None and err is not None  # noqa: PT018
    assert len(found.offsets) > log_index.MAX_ENTRIES // 2
    assert found.offsets[-12_000:] == [each[0] for each in said[-12_000:]], "the newest are as they were"
    assert set(out.offsets) <= {each[1] for each in said if not each[2]}
    assert set(err.offsets) <= {each[1] for each in said if each[2]}
    known = {each[0]: each for each in said}
    for offset, at, error in zip(found.offsets, found.times, found.errors, strict=True):
        assert known[offset][2] == error
        assert abs(known[offset][3] - at) <= 20
    if not alternating:
        assert found.offsets[0] == 0, "what is old is coarser, not gone"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_can_be_read(tmp_path: Path, data: bytes, ours: bool) -> None:
    (tmp_path / "log-index").write_bytes((b"LIX1" if ours else b"") + data)
    found = log_index.read(str(tmp_path), "stderr")
    if found is not None:
        assert found.times == sorted(found.times)
    logs.LogWriter(str(tmp_path), ()).close()


def test_a_file_that_is_none_of_ours_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "log-index").symlink_to("/etc/passwd")
    assert log_index.read(str(tmp_path)) is None
    (tmp_path / "log-index").unlink()
    (tmp_path / "log-index").write_bytes(b"LIX1" + bytes(log_index.MAX_BYTES))
    assert log_index.read(str(tmp_path)) is None


def test_a_disk_that_takes_no_entry_keeps_no_line_from_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(careful_files, "open_own", full)
    writer = IndexWriter(str(tmp_path), 0, fresh=True)
    writer.note(0, 0)
    writer.note(1, 5)
    writer.close()
    assert os.listdir(tmp_path) == []
