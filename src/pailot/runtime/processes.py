"""Processes of this machine: which descend from which, which are still the same, how to end them all."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Set
    from typing import Any

MARK = "PAILOT_TASK_MARK"
"""The variable by which the processes of a task are found when all of ours were killed at once."""
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_prctl: Callable[[int, int, int, int, int], int] | None = None
LEAST_FILES, ENOUGH_FILES = 32, 64
"""How many descriptors one run needs, and how many are enough for a shim and what it starts."""


def become_subreaper() -> None:
    """From now on orphaned descendants become our children, so that none can hide by daemonising."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(number: int, parent: int) -> None:
    """From now on this process gets the signal when the one that forked it ends, in whatever way."""
    prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)  # it was quicker


def prctl(option: int, value: int) -> int:
    """The system call of this name; 0 where it worked."""
    global _prctl  # noqa: PLW0603  # loaded once, before the first fork
    if _prctl is None:
        _prctl = _load_prctl()
    return _prctl(option, value, 0, 0, 0)


def _load_prctl() -> Callable[[int, int, int, int, int], int]:
    """The function of the C library. Loading `_ctypes` takes 0.4 ms, `ctypes` 1.4 ms (Python 3.11), and every run needs it."""
    try:
        import _ctypes

        class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]  # it takes none when it runs
            _type_ = "i"

        class Function(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL
            _restype_ = Int

        itself: Any = None  # the program with all that it has loaded
        return Function(_ctypes.dlsym(_ctypes.dlopen(itself, 0), "prctl"))
    except (ImportError, AttributeError, TypeError):  # another Python than CPython, or a later one
        import ctypes

        return ctypes.CDLL(None).prctl


def mark(claim: int | str) -> str:
    """The mark of a task: the file that its shim has claimed, as the kernel numbers it.

    A home that was moved is so still found, and a copy of it is not taken for the original.
    """
    about = os.stat(claim)
    return f"{about.st_dev:x}-{about.st_ino:x}"


def memory_kills() -> str:
    """How often the kernel has killed a process of this machine for want of memory; empty where it does not tell."""
    try:
        with open("/proc/vmstat") as stream:
            return next((line.split()[1] for line in stream if line.startswith("oom_kill ")), "")
    except OSError:
        return ""


_boot_id = ""


def boot_id() -> str:
    """Which start of the machine this is. No process sees two of them, so that it is read once."""
    global _boot_id  # noqa: PLW0603  # as said
    if not _boot_id:
        try:
            with open("/proc/sys/kernel/random/boot_id") as stream:
                _boot_id = stream.read().strip()
        except OSError:
            return ""
    return _boot_id


def descendants(of: int, leave_out: Set[int] = frozenset()) -> list[int]:
    """All living processes below one, parents first; `leave_out` and what is below it is skipped."""
    found: list[int] = []
    waiting = _children(of)
    while waiting:
        pid = waiting.pop()
        if pid in leave_out:
            continue
        found.append(pid)
        waiting += _children(pid)
    return found


def send(pids: Iterable[int], number: int) -> None:
    """A signal to each that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # gone, or not ours any more


def kill_all(of: int, leave_out: Set[int] = frozenset()) -> list[int]:
    """SIGKILL to everything below a process; stopped first, so that nothing forks away meanwhile. Returns the processes."""
    found = descendants(of, leave_out)
    send(found, signal.SIGSTOP)
    found = sorted({*found, *descendants(of, leave_out)})
    send(found, signal.SIGKILL)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return children
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as stream:
                children += [int(word) for word in stream.read().split()]
        except FileNotFoundError:
            continue  # the thread ended
        except OSError:
            return _children_by_scan(pid)
    return [child for child in children if not is_dead(child)]


def is_dead(pid: int) -> bool:
    """Whether a process has ended, even if it was not collected yet."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b") ")[2][:1] in (b"Z", b"X")
    except OSError:
        return True


def _children_by_scan(parent: int) -> list[int]:
    """For kernels without the list of children: look at every process."""
    children = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stream:
                    fields = stream.read().rpartition(b") ")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent and fields[0] not in (b"Z", b"X"):
                children.append(int(entry))
    return children
