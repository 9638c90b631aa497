"""Processes of a task whose shim and driver were killed together: found by the mark in their environment, and ended.

A process that has cleared its environment is found below one that has not. Else it is not found; if it is in the session of the
shim it is named, for it may be one of the task.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import time

from ..values import Value
from . import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

END_SECONDS = 5.0
"""How long a process that was killed may take to go: one that hangs in the kernel does not."""
MOST_ROUNDS = 100
"""The bound for what forks faster than it is found."""


class FoundStrays(Value):
    """What became of the processes of some tasks."""

    ended: int = 0
    left: tuple[int, ...] = ()
    """Those that could not be ended: another user's, or in the hands of the kernel."""
    unsure: tuple[int, ...] = ()
    """Those of a shim's session without the mark. They are let be, for the number of a session may be used again."""


def end(claims: Iterable[str]) -> FoundStrays:
    """End the processes of the tasks that these files were claimed for; their shims are gone."""
    marks: set[bytes] = set()
    sessions: set[int] = set()
    for path in claims:
        try:
            marks.add(f"{processes.MARK}={processes.mark(path)}".encode())
            with open(path, "rb") as stream:
                sessions.add(int(stream.read(32) or b"0"))
        except (OSError, ValueError):
            continue  # it was never claimed, or is damaged
    hold: dict[int, int] = {}
    for _ in range(MOST_ROUNDS):
        fresh = _hold_all(marks, hold)
        for pid in fresh:
            _send(pid, hold[pid], signal.SIGSTOP)  # so that none forks away while we look
        if not fresh:
            break
    for pid, descriptor in hold.items():
        _send(pid, descriptor, signal.SIGKILL)
    left = _wait(hold)
    unsure = tuple(sorted(pid for pid in in_sessions(sessions - {0}) if pid not in hold))
    for descriptor in hold.values():
        os.close(descriptor)
    return FoundStrays(len(hold) - len(left), left, unsure)


def marked(claims: Iterable[str]) -> list[int]:
    """The processes of the tasks that these files were claimed for, as far as they keep the mark or are below one that does."""
    marks = {f"{processes.MARK}={processes.mark(path)}".encode() for path in claims}
    found = [pid for pid in _numbers() if _has(pid, marks)]
    return list(dict.fromkeys([*found, *(below for pid in found for below in processes.descendants(pid))]))


def _hold_all(marks: set[bytes], hold: dict[int, int]) -> list[int]:
    """Take hold of the processes with a mark, and of those below them, that are not held yet; return these."""
    fresh = []
    for pid in _numbers():
        if pid not in hold and _has(pid, marks):
            descriptor = _open(pid)
            if descriptor is not None and _has(pid, marks):  # it is still the same
                hold[pid] = descriptor
                fresh.append(pid)
            elif descriptor is not None:
                os.close(descriptor)
    for pid in list(hold):
        for below in processes.descendants(pid):
            if below in hold or below == os.getpid():
                continue
            descriptor = _open(below)
            if descriptor is None:
                continue
            if below in processes.descendants(pid):
                hold[below] = descriptor
                fresh.append(below)
            else:
                os.close(descriptor)
    return fresh


def _numbers() -> list[int]:
    me = os.getpid()
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != me]
    except OSError:
        return []  # not Linux


def _has(pid: int, marks: set[bytes]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return not marks.isdisjoint(stream.read().split(b"\0"))
    except OSError:
        return False  # gone, or another user's


def _open(pid: int) -> int | None:
    """What means this process and never another that has its number later; None if it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    except (OSError, AttributeError):  # a kernel without; then its folder in /proc, which is as good for all but the signal
        try:
            return os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None


def _send(pid: int, descriptor: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone, or not ours to end
    except (OSError, AttributeError):
        if _is_there(descriptor):
            processes.send((pid,), number)


def _is_there(folder: int) -> bool:
    try:
        return bool(os.stat("stat", dir_fd=folder))
    except OSError:
        return False


def _wait(hold: dict[int, int]) -> tuple[int, ...]:
    """Until those that were killed are gone; returns the rest."""
    deadline = time.monotonic() + END_SECONDS
    left = dict(hold)
    while left and time.monotonic() < deadline:
        left = {pid: descriptor for pid, descriptor in left.items() if not _is_gone(pid, descriptor)}
        if left:
            time.sleep(0.005)
    return tuple(sorted(left))


def _is_gone(pid: int, descriptor: int) -> bool:
    """A process that has ended may be a zombie for long, if its parent does not care."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0)) if not _is_folder(descriptor) else not _is_there(descriptor) or processes.is_dead(pid)


def _is_folder(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def in_sessions(sessions: Collection[int]) -> list[int]:
    found = []
    for pid in _numbers() if sessions else ():
        try:
            if os.getsid(pid) in sessions and not processes.is_dead(pid):
                found.append(pid)
        except OSError:
            continue  # gone
    return found
