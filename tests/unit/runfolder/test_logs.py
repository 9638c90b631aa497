"""Logs are complete, masked, and found again by their offsets, whatever is rotated meanwhile."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.runfolder import layout, logs
from pailot.runfolder.logs import LogWriter, read, size, tail
from pailot.runfolder.masking import Masker


def read_all(folder: Path | str, stream: str, limit: int = 65536) -> bytes:
    pieces: list[bytes] = []
    offset = 0
    while True:
        piece, after = read(str(folder), stream, offset, limit)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        offset = after


def test_streams_are_written_apart_and_together(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), ["hunter22"])
    writer.write("stdout", b"one hunt")
    writer.write("stderr", b"two\n")
    writer.write("stdout", b"er22 three")
    assert (tmp_path / "stdout").read_bytes() == b"one ****** three"
    assert (tmp_path / "stderr").read_bytes() == b"two\n"
    assert (tmp_path / "all").read_bytes() == b"one two\n****** three"
    assert [writer.offset(stream) for stream in layout.STREAMS] == [16, 4, 20]
    writer.close()
    assert read(str(tmp_path), "all", 4, 3) == (b"two", 7)


def test_held_back_tails_are_written_when_their_stream_ends(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), ["hunter22"])
    writer.write("stdout", b"hunt")
    writer.write("stderr", b"hunte")
    assert size(str(tmp_path), "all") == 0
    writer.flush("stderr")
    assert (tmp_path / "all").read_bytes() == b"hunte"
    writer.close()
    writer.close()
    assert (tmp_path / "all").read_bytes() == b"huntehunt"
    assert writer.offset("stdout") == 4


def test_a_second_writer_goes_on(tmp_path: Path) -> None:
    first = LogWriter(str(tmp_path), [], rotate_bytes=4)
    first.write("stdout", b"0123456789")
    first.close()
    second = LogWriter(str(tmp_path), Masker([]), rotate_bytes=4)
    assert second.offset("stdout") == 10
    second.write("stdout", b"abc")
    second.close()
    assert read_all(tmp_path, "stdout") == b"0123456789abc"


def test_rotated_files_are_named_by_their_first_byte(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), [], rotate_bytes=4, keep=2)
    writer.write("stdout", b"0123456789abcdef!")
    writer.close()
    old = ["stdout.000000000000008", "stdout.000000000000012"]
    assert sorted(path.name for path in tmp_path.glob("stdout*")) == ["stdout", *old]
    assert (tmp_path / "stdout").read_bytes() == b"!"
    assert read(str(tmp_path), "stdout", 0) == (b"89abcdef!", 17)
    assert read(str(tmp_path), "stdout", 9, 4) == (b"9abc", 13)
    assert read(str(tmp_path), "stdout", 17) == (b"", 17)
    assert read(str(tmp_path), "stdout", 99) == (b"", 99)
    assert read(str(tmp_path), "stdout", -5, 1) == (b"8", 9)
    assert read(str(tmp_path), "stdout", 3, 0) == (b"", 3)
    assert tail(str(tmp_path), "stdout", 6) == b"bcdef!"
    assert tail(str(tmp_path), "stdout", 600) == b"89abcdef!"
    assert tail(str(tmp_path), "stdout", 0) == b""
    assert size(str(tmp_path), "stdout") == 17


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        assert read(str(folder), "stdout", 0) == (b"", 0)
        assert size(str(folder), "stdout") == 0
        assert tail(str(folder), "stdout", 10) == b""


def test_a_reader_between_two_files_of_the_writer(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), [])
    writer.write("stdout", b"0123")
    (tmp_path / "stdout").rename(tmp_path / "stdout.000000000000000")
    assert read(str(tmp_path), "stdout", 2) == (b"23", 4)
    assert size(str(tmp_path), "stdout") == 4
    writer.close()
    again = LogWriter(str(tmp_path), [])
    again.write("stdout", b"45")
    assert read(str(tmp_path), "stdout", 2) == (b"2345", 6)
    again.close()


def test_a_segment_that_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), [], rotate_bytes=4)
    writer.write("stdout", b"0123456789")
    writer.close()
    os.truncate(tmp_path / "stdout.000000000000000", 2)
    assert read(str(tmp_path), "stdout", 0) == (b"01", 2)
    assert read(str(tmp_path), "stdout", 2) == (b"456789", 10)


def test_what_is_read_has_no_hole_when_a_segment_goes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(str(tmp_path), [], rotate_bytes=4, keep=2)
    writer.write("stdout", b"0123456789")
    real = logs._read_at

    def rotate_after(path: str, offset: int, limit: int) -> bytes:
        data = real(path, offset, limit)
        monkeypatch.setattr(logs, "_read_at", real)
        writer.write("stdout", b"abcdefgh")
        return data

    monkeypatch.setattr(logs, "_read_at", rotate_after)
    assert read(str(tmp_path), "stdout", 0) == (b"0123", 4)
    assert read(str(tmp_path), "stdout", 4) == (b"89abcdefgh", 18)
    writer.close()


def test_other_files_are_no_segments(tmp_path: Path) -> None:
    for name in ("stdout.txt", "stdout.12a", "stdout.", "stdout2.000"):
        (tmp_path / name).write_bytes(b"other")
    writer = LogWriter(str(tmp_path), [], rotate_bytes=2, keep=1)
    writer.write("stdout", b"012345")
    writer.close()
    assert read_all(tmp_path, "stdout") == b"2345"
    assert (tmp_path / "stdout.12a").exists()


@given(
    st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=30)), max_size=12),
    st.integers(0, 20),
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from(layout.STREAMS), st.integers(0, 400), st.integers(1, 50)), max_size=8),
)
def test_any_offset_is_read_as_from_one_endless_file(
    writes: list[tuple[str, bytes]], rotate: int, keep: int, reads: list[tuple[str, int, int]]
) -> None:
    with TemporaryDirectory() as folder:
        writer = LogWriter(folder, [], rotate_bytes=rotate, keep=keep)
        whole = dict.fromkeys(layout.STREAMS, b"")
        for stream, data in writes:
            writer.write(stream, data)
            whole[stream] += data
            whole["all"] += data
        for stream in layout.STREAMS:
            assert size(folder, stream) == writer.offset(stream) == len(whole[stream])
            kept = [path for path in Path(folder).iterdir() if path.name.split(".")[0] == stream]
            assert len(kept) <= max(keep, 1) + 1
            if rotate:
                assert all(path.stat().st_size <= rotate for path in kept)
        for stream, offset, limit in reads:
            complete = whole[stream]
            parts = -(-len(complete) // rotate) if rotate else 1
            oldest = max(parts - max(keep, 1) - 1, 0) * rotate
            start = max(offset, oldest)
            wanted = complete[start : start + limit]
            assert read(folder, stream, offset, limit) == (wanted, start + len(wanted))
            assert tail(folder, stream, limit) == complete[max(len(complete) - limit, oldest) :]
        writer.close()


def test_a_reader_follows_a_writer_that_rotates_all_the_time(tmp_path: Path) -> None:
    """Each eight bytes tell their own offset, so whatever the reader gets it can check."""
    total = 3_000
    done = threading.Event()

    def write() -> None:
        writer = LogWriter(str(tmp_path), [], rotate_bytes=64, keep=2)
        for number in range(total):
            writer.write("stdout", b"%07d\n" % number)
        writer.close()
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    offset, previous = 0, -1
    while True:
        finished = done.is_set()
        data, after = read(str(tmp_path), "stdout", offset, 40)
        assert after >= offset + len(data)
        assert size(str(tmp_path), "stdout") >= after
        start = after - len(data)
        assert len(data) % 8 == 0
        for at in range(0, len(data) - 7, 8):
            number = int(data[at : at + 7])
            assert number * 8 == start + at
            assert number > previous
            previous = number
        offset = after
        if finished and not data:
            break
    thread.join()
    assert offset == total * 8
    assert previous == total - 1


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    writer = LogWriter(str(tmp_path), [], rotate_bytes=7)
    writer.write("stdout", b"0123456789abcdefghijk")
    writer.close()
    assert read_all(tmp_path, "stdout", 4) == b"0123456789abcdefghijk"


def test_a_full_disk_is_reported_and_not_counted(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), ["secret"])
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), writer._files["stdout"]._descriptor)
    writer.write("stderr", b"fine, sec")
    with pytest.raises(OSError, match="No space left") as caught:
        writer.write("stdout", b"lost")
    assert caught.value.errno == errno.ENOSPC
    assert (writer.offset("stdout"), writer.offset("stderr"), writer.offset("all")) == (0, 6, 6)
    writer.write("stdout", b"")
    writer.close()
    assert (tmp_path / "all").read_bytes() == b"fine, sec"


def test_what_went_in_before_the_disk_was_full_is_counted(tmp_path: Path) -> None:
    code = """
import os, resource, sys
from pailot.runfolder.logs import LogWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
writer = LogWriter(sys.argv[1], [])
writer.write("stderr", b"e" * 100)
try:
    writer.write("stdout", b"o" * 4096)
except OSError as error:
    print(error.strerror, writer.offset("stdout"), writer.offset("all"))
writer.close()
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large 1000 100\n"
    assert size(str(tmp_path), "stdout") == 1000
    assert size(str(tmp_path), "all") == 100


def test_a_new_segment_that_cannot_be_opened_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LogWriter(str(tmp_path), [], rotate_bytes=4)
    writer.write("stdout", b"0123")

    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        with pytest.raises(OSError, match="Too many"):
            writer.write("stdout", b"45")
    assert writer.offset("stdout") == 4
    writer.write("stdout", b"67")
    writer.close()
    assert read_all(tmp_path, "stdout") == b"012367"


def test_logs_are_their_owners(tmp_path: Path) -> None:
    LogWriter(str(tmp_path), []).close()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
