"""This machine: how much it has, and the folder where its users agree on what is taken."""

from __future__ import annotations

import os

from ..base import EngineError


def locks_folder() -> str:
    """A folder shared by all homes and users of this machine."""
    folder = os.environ.get("PAILOT_LOCKS") or "/tmp/pailot-locks"  # noqa: S108  # shared by all users on purpose; checked below
    try:
        os.mkdir(folder, 0o1777)
        os.chmod(folder, 0o1777)  # mkdir is subject to the umask
    except FileExistsError:
        pass  # the usual case
    if os.path.islink(folder) or not os.path.isdir(folder):
        raise EngineError(f"{folder} should be a folder shared by all users; remove it")
    return folder


def open_shared(name: str) -> int:
    """A file in the shared folder that everybody may lock."""
    path = os.path.join(locks_folder(), name)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        os.fchmod(descriptor, 0o666)
    except PermissionError:
        pass  # another user made it, so it is open to us already
    return descriptor


def cpus() -> int:
    """CPUs that jobs may use."""
    given = os.environ.get("PAILOT_CPUS", "auto")
    return int(given) if given.isdecimal() else len(os.sched_getaffinity(0))


def memory_mb() -> int:
    """Memory that jobs may use."""
    given = os.environ.get("PAILOT_MEMORY_MB", "auto")
    return int(given) if given.isdecimal() else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
