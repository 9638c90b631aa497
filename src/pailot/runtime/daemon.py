"""Stepping out of the family: a process that outlives the one that started it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def daemonize(streams: Iterable[int] = (0, 1, 2)) -> None:
    """Go on in a grandchild with a session of its own, whose `streams` lead nowhere; the calling process ends here.

    So the process that started us collects us at once, and never the one that goes on.
    """
    if os.getsid(0) != os.getpid():
        os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for descriptor in streams:
        os.dup2(null, descriptor)


def apart(work: Callable[[int], object]) -> int:
    """Run `work(fd)` in a detached process that outlives this one. Returns the read end of a pipe whose write end is `fd`."""
    reader, writer = os.pipe2(os.O_CLOEXEC)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            daemonize()
            work(writer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    os.waitpid(pid, 0)
    return reader
