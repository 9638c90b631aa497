"""Ports that no other run on this machine has and that no process listens on."""

from __future__ import annotations

import errno
import os
from itertools import chain

from .locks import Locks, LocksError, locks_folder
from .quick_socket import sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOWEST, HIGHEST = 15000, 65535
FEW = 2000
TOO_MANY = 25_000
"""No run takes this many ports one after the other."""
EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"


class PortTaken(Exception):
    """A port that a job needs exactly is not to be had; `words` say why."""

    def __init__(self, port: int, words: str) -> None:
        super().__init__(f"port {port} {words}")
        self.port, self.words = port, words

    def __reduce__(self) -> tuple[type[PortTaken], tuple[int, str]]:
        return type(self), (self.port, self.words)


class NoPorts(Exception):
    """Not enough ports are free."""


class Ports:
    """The ports of one job, reserved until this object and its copies in forked children are gone.

    Only a lock is kept, no socket: a task can bind its ports at once. Take ports before forking, since
    a child shares the locks of its parent and could be given the same ports again.
    """

    def __init__(self, ranges: Sequence[range] | None = None) -> None:
        self._ranges = ranges
        self.problem = ""
        """Why only this user's own runs are kept out of each other's way; empty if those of all users are."""
        try:
            self._locks = Locks("ports")
            if self._locks.longest_taken(LOWEST, HIGHEST) >= TOO_MANY:
                self._locks.close()
                raise LocksError(
                    f"somebody has locked most of {os.path.join(locks_folder(), 'ports')}, which no run of Pailot does"
                )
        except LocksError as error:
            self.problem = f"{error}; ports are only kept apart from your own other runs, and tried out"
            self._locks = Locks("ports", own=True)
        self._held: set[int] = set()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a forked child must keep open for the ports to stay reserved."""
        return (self._locks.descriptor,)

    def take(self, count: int) -> list[int]:
        """As many free ports, from a random one upwards."""
        taken: list[int] = []
        in_use = _probe()
        for ports in port_ranges() if self._ranges is None else self._ranges:
            start = int.from_bytes(os.urandom(4), "big") % max(1, len(ports))
            for port in chain(ports[start:], ports[:start]):  # few of them are needed
                if len(taken) == count:
                    return taken
                if not self._take_one(port, in_use):
                    taken.append(port)
        if len(taken) == count:
            return taken
        self._give_back(taken)
        raise NoPorts(f"the job needs {count} ports, but only {len(taken)} are free on this machine")

    def take_exactly(self, first: int, count: int = 1) -> list[int]:
        """Just these ports, one after the other; raises PortTaken."""
        taken: list[int] = []
        in_use = _probe()
        for port in range(first, first + count):
            words = self._take_one(port, in_use)
            if words:
                self._give_back(taken)
                raise PortTaken(port, words)
            taken.append(port)
        return taken

    def close(self) -> None:
        """Let the ports go, unless a forked child still has them."""
        self._locks.close()
        self._held.clear()

    def _take_one(self, port: int, in_use: Callable[[int], str]) -> str:
        if not 1 <= port <= HIGHEST:
            return f"does not exist; ports are 1 to {HIGHEST}"
        if port in self._held:
            return "is needed twice by this job"
        if not self._locks.take(port):
            return "is reserved by another run of Pailot on this machine"
        words = in_use(port)
        if words:
            self._locks.give_back(port)
        else:
            self._held.add(port)
        return words

    def _give_back(self, ports: Sequence[int]) -> None:
        for port in ports:
            self._held.discard(port)
            self._locks.give_back(port)


def port_ranges() -> list[range]:
    """Where to look for ports, in order: outside the ephemeral range; within it too where that leaves next to none."""
    low, high = 32768, 60999  # what most systems have
    try:
        with open(EPHEMERAL, encoding="utf-8") as stream:
            low, high = map(int, stream.read().split())
    except (OSError, ValueError):
        pass
    return _ranges(low, high)


def _ranges(low: int, high: int) -> list[range]:
    outside = [range(LOWEST, low), range(max(high + 1, LOWEST), HIGHEST + 1)]
    return outside if sum(map(len, outside)) >= FEW else [*outside, range(max(low, LOWEST), min(high, HIGHEST) + 1)]


def _probe() -> Callable[[int], str]:
    """A function that says in words why a port cannot be bound, or nothing.

    A socket for both IPv6 and IPv4 collides with every listener of either, on any address.
    """
    words = {errno.EADDRINUSE: "is in use by another program", errno.EACCES: "may only be used by root"}

    def why(port: int, family: int, address: str) -> str | None:
        try:
            probe = sockets.socket(family, sockets.SOCK_STREAM)
        except OSError:
            return None
        try:
            if family == sockets.AF_INET6:
                probe.setsockopt(sockets.IPPROTO_IPV6, sockets.IPV6_V6ONLY, 0)
            probe.bind((address, port))
        except OSError as error:
            return words.get(error.errno or 0)
        finally:
            probe.close()
        return ""

    def both(port: int) -> str:
        answer = why(port, sockets.AF_INET6, "::")
        if answer is None:  # no IPv6 here
            answer = why(port, sockets.AF_INET, "0.0.0.0")  # noqa: S104  # never listened on
        return answer if answer is not None else "cannot be bound"

    return both
