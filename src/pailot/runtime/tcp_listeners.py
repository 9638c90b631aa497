"""On which TCP ports processes of this machine listen, as Linux tells it in /proc."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_LISTEN = "0A"


def ports_of(pids: Iterable[int]) -> set[int]:
    """The ports on which these processes listen; those of processes that cannot be looked at are not among them."""
    ports: set[int] = set()
    for pid in pids:
        sockets = _sockets(pid)
        if not sockets:
            continue
        for kind in ("tcp", "tcp6"):
            ports.update(port for port, inode in _listeners(pid, kind) if inode in sockets)
    return ports


def ports_in_network_of(pid: int) -> set[int]:
    """All ports on which anything listens in the network that a process sees; for a network that only its container has."""
    return {port for kind in ("tcp", "tcp6") for port, _ in _listeners(pid, kind)}


def _sockets(pid: int) -> set[str]:
    """The inodes of the sockets that a process has open."""
    found = set()
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            try:
                target = os.readlink(f"{folder}/{name}")
            except OSError:
                continue  # closed meanwhile
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass  # gone, or another user's
    return found


def _listeners(pid: int, kind: str) -> list[tuple[int, str]]:
    """Port and inode of what listens in the network that a process sees."""
    try:
        with open(f"/proc/{pid}/net/{kind}", encoding="ascii") as stream:
            rows = [line.split() for line in stream][1:]
    except OSError:
        return []
    return [(int(row[1].rpartition(":")[2], 16), row[9]) for row in rows if len(row) > 9 and row[3] == _LISTEN]
