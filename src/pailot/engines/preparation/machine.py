"""This machine as all runs on it share it: its size, and the folder where they keep out of each other's way."""

from __future__ import annotations

import os

from ...runtime import locks
from ...settings import BadSetting, Settings
from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class MachineError(EngineError):
    """This machine cannot be used as it is."""


def locks_folder() -> str:
    """The folder with the locks of all homes and users of this machine."""
    try:
        return locks.locks_folder()
    except locks.LocksError as error:
        raise MachineError(str(error)) from None


def open_shared(name: str, flags: int, *, fifo: bool = False) -> int:
    """Open a file (or FIFO) in the folder for locks, which every user may write; it is made if it is not there."""
    try:
        return locks.open_shared(name, flags, fifo=fifo)
    except locks.LocksError as error:
        raise MachineError(str(error)) from None


class MachineLocks(locks.Locks):
    """Numbers that can be locked against all other runs on this machine."""

    def __init__(self, name: str) -> None:
        try:
            super().__init__(name)
        except locks.LocksError as error:
            raise MachineError(str(error)) from None


def cpus() -> int:
    """How many CPUs jobs may use: the setting `cpus`, else what this process may use."""
    declared = _declared("cpus")
    if declared is not None:
        return declared
    number = len(os.sched_getaffinity(0))
    for folder in _cgroups("cpu"):
        words = _words(folder, "cpu.max") or _words(folder, "cpu.cfs_quota_us") + _words(folder, "cpu.cfs_period_us")
        if len(words) == 2 and all(word.isdecimal() for word in words):  # else there is no limit
            quota, period = map(int, words)
            number = min(number, max(1, -(-quota // period)))
    return number


def memory_mb() -> int:
    """How much memory jobs may use, in MB: the setting `memory_mb`, else what this process may use."""
    declared = _declared("memory_mb")
    if declared is not None:
        return declared
    with open("/proc/meminfo", encoding="utf-8") as stream:
        size = next(int(line.split()[1]) * 1024 for line in stream if line.startswith("MemTotal:"))
    for folder in _cgroups("memory"):
        for limit in _words(folder, "memory.max") or _words(folder, "memory.limit_in_bytes"):
            if limit.isdecimal():
                size = min(size, int(limit))
    return size // (1024 * 1024)


def which(program: str) -> str | None:
    """The path of a program, as a shell would find it."""
    for folder in os.get_exec_path():
        path = os.path.join(folder, program)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _declared(name: str) -> int | None:
    text = str(Settings()[name])
    if text == "auto":
        return None
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise BadSetting(f"{name}: should be 'auto' or a whole number above 0, is {text!r}")
    return int(text)


def _cgroups(controller: str) -> Iterator[str]:
    """The folders of the control groups that limit this process, innermost first."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = f"/sys/fs/cgroup/{controller}" if controllers else "/sys/fs/cgroup"
        while True:
            yield root + path
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]


def _words(folder: str, file: str) -> tuple[str, ...]:
    try:
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            return tuple(stream.read().split())
    except OSError:
        return ()
