"""Ports of this machine, each given to one run at a time.

Byte N of a shared file is locked for port N. The locks belong to the open file, so that forked shims keep them, and
the kernel frees them when the last of these processes ends, however it ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from ..base import EngineError
from .machine import open_shared

FIRST = 15_000


class PortTaken(EngineError):
    """A port that a job needs is in use."""


class Ports:
    """The ports of one run."""

    def __init__(self) -> None:
        self.descriptor = open_shared("ports")

    def take(self, count: int) -> list[int]:
        """So many free ports, outside the range the kernel gives to outgoing connections."""
        candidates = _candidates()
        start = int.from_bytes(os.urandom(4), "big") % len(candidates)
        taken: list[int] = []
        for position in range(len(candidates)):
            if len(taken) == count:
                return taken
            port = candidates[(start + position) % len(candidates)]
            if lock_byte(self.descriptor, port):
                if _can_bind(port):
                    taken.append(port)
                else:
                    unlock_byte(self.descriptor, port)
        if len(taken) == count:
            return taken
        raise EngineError(f"there are not {count} free ports on this machine")

    def take_exactly(self, first: int, count: int) -> list[int]:
        """These ports and no others."""
        for port in range(first, first + count):
            if not lock_byte(self.descriptor, port):
                raise PortTaken(f"port {port} is taken by another run on this machine")
            if not _can_bind(port):
                raise PortTaken(f"port {port} is in use on this machine")
        return list(range(first, first + count))

    def close(self) -> None:
        os.close(self.descriptor)


def lock_byte(descriptor: int, position: int, *, wait: bool = False) -> bool:
    """Lock one byte for this open file; False if another open file has it."""
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    try:
        fcntl.fcntl(descriptor, command, _flock(fcntl.F_WRLCK, position))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def unlock_byte(descriptor: int, position: int) -> None:
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, position))


def _flock(kind: int, position: int) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, position, 1, 0)


def _candidates() -> range:
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as stream:
            low, high = (int(word) for word in stream.read().split())
    except (OSError, ValueError):
        low, high = 32_768, 60_999
    return range(FIRST, low) if low - FIRST > 4_000 else range(high + 1, 65_536) if high < 61_000 else range(FIRST, 32_768)


def _can_bind(port: int) -> bool:
    import _socket

    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        sock.bind(("0.0.0.0", port))  # noqa: S104  # only to see whether it is free
    except OSError:
        return False
    finally:
        sock.close()
    return True
