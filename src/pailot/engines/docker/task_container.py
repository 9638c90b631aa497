"""The container of a task that runs, as `pailot forward` reaches it: the ports of that container and of no other."""

from __future__ import annotations

import errno
import json
import socket
import subprocess

from ...runfolder.engine_records import ContainerRecord
from ...runtime.processes import descendants
from ...runtime.tcp_listeners import ports_in_network_of, ports_of
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

INSPECT_SECONDS = 20.0
LOOPBACK = "127.0.0.1"
_WANTED = '{"pid": {{.State.Pid}}, "networks": {{json .NetworkSettings.Networks}}, "ports": {{json .NetworkSettings.Ports}}}'
"""Docker, Podman and nerdctl all know these."""


class TaskContainer(Value):
    """A container that runs."""

    pid: int
    """Of its first process, on this machine."""
    addresses: tuple[str, ...]
    """In networks of its own; none where it has the machine's."""
    published: Mapping[int, int]
    """Its ports that the container engine shows on this machine, and where."""

    def listening(self) -> set[int]:
        """The TCP ports on which something in it listens."""
        if self.addresses or self.published:
            return ports_in_network_of(self.pid)
        return ports_of([self.pid, *descendants(self.pid)])

    def dial(self, port: int, seconds: float) -> socket.socket:
        """A connection to one of its ports; OSError. A port of the machine is asked only if it stands for this container's."""
        places = [(address, port) for address in self.addresses]
        if port in self.published:
            places.append((LOOPBACK, self.published[port]))
        if not places:
            return socket.create_connection((LOOPBACK, port), timeout=seconds)
        problem: OSError = ConnectionRefusedError()
        for place in places:
            try:
                return socket.create_connection(place, timeout=seconds)
            except OSError as error:
                problem = error
        if isinstance(problem, ConnectionRefusedError):
            words = "nothing listens on it, or only on 127.0.0.1 inside its container: let it listen on 0.0.0.0"
            raise ConnectionRefusedError(errno.ECONNREFUSED, words)
        raise problem


def running(task_folder: str) -> TaskContainer | None:
    """The container of a task, asked of its engine; None if it does not run."""
    record = ContainerRecord.of(task_folder)
    if record is None:
        return None
    words = [*record.command, "inspect", "--format", _WANTED, record.name]
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=INSPECT_SECONDS
        )
        found = json.loads(done.stdout) if done.returncode == 0 else {}
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if not found.get("pid"):
        return None
    networks = (found["networks"] or {}).values()
    addresses = tuple(each["IPAddress"] for each in networks if each.get("IPAddress"))
    return TaskContainer(int(found["pid"]), addresses, _published(found["ports"] or {}))


def _published(ports: Mapping[str, list[Mapping[str, str]] | None]) -> dict[int, int]:
    tcp = ((name.removesuffix("/tcp"), shown) for name, shown in ports.items() if name.endswith("/tcp"))
    return {int(name): int(shown[0]["HostPort"]) for name, shown in tcp if shown}
