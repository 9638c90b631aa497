"""The size of the machine, and the folder that all its users share."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pailot.engines.preparation.machine import MachineError, MachineLocks, cpus, locks_folder, memory_mb, open_shared, which
from pailot.settings import BadSetting


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_folder_is_open_to_all_whatever_the_umask(locks: Path) -> None:
    before = os.umask(0o077)
    try:
        assert locks_folder() == str(locks)
        os.close(open_shared("ports", os.O_RDWR))
        os.close(open_shared("gpu-0.fifo", os.O_RDONLY, fifo=True))
    finally:
        os.umask(before)
    assert mode(locks) == 0o1777
    assert mode(locks / "ports") == mode(locks / "gpu-0.fifo") == 0o1666
    assert sorted(path.name for path in locks.iterdir()) == ["gpu-0.fifo", "ports"]
    assert [path.name for path in locks.parent.iterdir()] == ["locks"]


def test_our_own_folder_with_other_rights_is_put_right(locks: Path) -> None:
    locks.mkdir(0o755)
    locks_folder()
    assert mode(locks) == 0o1777


def test_a_link_or_a_file_in_its_place_is_refused(locks: Path) -> None:
    elsewhere = locks.parent / "elsewhere"
    elsewhere.mkdir()
    for make, words in ((lambda: locks.symlink_to(elsewhere), "a symbolic link"), (lambda: locks.write_text(""), "no folder")):
        make()
        with pytest.raises(MachineError, match=f"{locks} .* but is {words}; remove it"):
            locks_folder()
        locks.unlink()
    assert list(elsewhere.iterdir()) == []


def test_a_dangling_link_is_not_followed(locks: Path) -> None:
    locks.symlink_to(locks.parent / "nowhere")
    with pytest.raises(MachineError, match="symbolic link"):
        locks_folder()


def test_a_folder_that_cannot_be_made_is_said(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAILOT_LOCKS", str(locks / "deep" / "er"))
    with pytest.raises(MachineError, match="cannot be made: No such file"):
        locks_folder()


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_a_shared_file_is_a_file_and_no_trap(locks: Path, kind: str) -> None:
    locks_folder()
    trap, precious = locks / "ports", locks.parent / "precious"
    precious.write_text("mine")
    if kind == "link":
        trap.symlink_to(precious)
    elif kind == "folder":
        trap.mkdir()
    else:
        os.mkfifo(trap)
    with pytest.raises(MachineError, match="ports, shared by all runs"):
        MachineLocks("ports")
    assert precious.read_text() == "mine"


def test_a_lock_is_seen_by_others_and_not_by_oneself() -> None:
    one, other = MachineLocks("ports"), MachineLocks("ports")
    assert one.take(5)
    assert one.take(5)
    assert not other.take(5)
    assert (one.is_taken(5), other.is_taken(5), other.is_taken(6)) == (False, True, False)
    one.give_back(5)
    assert other.take(5)
    other.close()
    other.close()
    assert one.take(5)
    one.close()


def test_the_size_of_the_machine_is_what_a_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAILOT_CPUS", "PAILOT_MEMORY_MB"):
        monkeypatch.delenv(name, raising=False)
    assert 1 <= cpus() <= len(os.sched_getaffinity(0))
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024**2
    assert 1 <= memory_mb() <= whole + 1


@pytest.mark.parametrize(("variable", "size"), [("PAILOT_CPUS", cpus), ("PAILOT_MEMORY_MB", memory_mb)])
def test_the_size_can_be_declared(variable: str, size: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(size)
    found = size()
    for text, value in (("7", 7), (" 123456 ", 123456), ("auto", found), ("", found)):
        monkeypatch.setenv(variable, text)
        assert size() == value
    for text in ("0", "-1", "many", "1.5", "²"):
        monkeypatch.setenv(variable, text)
        with pytest.raises(BadSetting, match=f"{variable.removeprefix('PAILOT_').lower()}: should be"):
            size()


def test_programs_are_found_as_a_shell_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tool").mkdir()
    late = tmp_path / "late"
    late.mkdir()
    (late / "tool").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{late}")
    assert which("tool") is None
    (late / "tool").chmod(0o755)
    assert which("tool") == str(late / "tool")
