"""Whatever a stranger may have put in the place of a file: it is not followed, does not block and is not read without end."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pailot.runfolder import careful_files, logs
from pailot.runfolder.atomic_json import append_line, read_lines, read_record
from pailot.runfolder.careful_files import Spoilt

if TYPE_CHECKING:
    from collections.abc import Callable


def link(path: Path, canary: Path) -> None:
    path.symlink_to(canary)


def fifo(path: Path, _: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, _: Path) -> None:
    path.mkdir()
    (path / "deep").mkdir()


def bound_socket(path: Path, _: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero: it never ends
    except PermissionError:
        path.symlink_to("/dev/zero")


def sparse(path: Path, _: Path) -> None:
    path.touch()
    os.truncate(path, 10 << 30)


REPLACEMENTS = [link, fifo, folder, bound_socket, device, sparse]


@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_nothing_of_it_is_read(tmp_path: Path, replace: Callable[[Path, Path], None]) -> None:
    canary = tmp_path / "canary"
    canary.write_text('{"canary": 1}\n')
    path = tmp_path / "stdout"
    replace(path, canary)
    with pytest.raises(Spoilt):
        careful_files.read_regular(str(path))
    assert read_record(str(path)) is None
    assert read_lines(str(path)) == []
    if replace is not sparse:
        assert logs.tail(str(tmp_path), "stdout", 100) == b""
    assert b"canary" not in logs.read(str(tmp_path), "stdout", 0)[0]


@pytest.mark.parametrize("replace", REPLACEMENTS)
def test_what_we_write_makes_it_give_way(tmp_path: Path, replace: Callable[[Path, Path], None]) -> None:
    canary = tmp_path / "canary"
    canary.write_text("canary")
    for name in ("journal", "stdout", "script", "pipe"):
        replace(tmp_path / name, canary)
    if replace is not sparse:
        append_line(str(tmp_path / "journal"), {"a": 1})
        assert read_lines(str(tmp_path / "journal")) == [{"a": 1}]
        writer = logs.LogWriter(str(tmp_path), [])
        writer.write("stdout", b"text")
        writer.close()
        assert logs.read(str(tmp_path), "stdout", 0)[0] == b"text"
    here = careful_files.open_folder(str(tmp_path))
    careful_files.write_new(here, "script", b"true")
    assert (tmp_path / "script").read_bytes() == b"true"
    assert not (tmp_path / "script").is_symlink()
    os.close(careful_files.open_fifo(here, "pipe", os.O_RDONLY))
    assert (tmp_path / "pipe").is_fifo()
    os.close(here)
    assert canary.read_text() == "canary"


def test_no_folder_on_the_way_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "other/tasks").mkdir(parents=True)
    (tmp_path / "other/tasks/record").write_text("canary")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/tasks").symlink_to(tmp_path / "other/tasks")
    path = str(tmp_path / "run/tasks/record")
    with pytest.raises((Spoilt, NotADirectoryError)):
        careful_files.read_regular(path, below=str(tmp_path / "run"))
    with pytest.raises(Spoilt):
        careful_files.read_regular(str(tmp_path / "other/tasks/record"), below=str(tmp_path / "run"))
    (tmp_path / "home").symlink_to(tmp_path / "other")  # what leads to the folder itself is the administrator's
    assert careful_files.read_regular(str(tmp_path / "home/tasks/record"), below=str(tmp_path / "home")) == b"canary"


def test_of_a_file_that_is_too_long_the_last_is_read_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert careful_files.read_regular(str(path), 4, last=True) == b"6789"
    with pytest.raises(Spoilt, match="more than 4"):
        careful_files.read_regular(str(path), 4)
