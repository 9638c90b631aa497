"""The pod of a task that runs, as `pailot enter` and `pailot forward` reach it: by commands in it, over the API."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading

from ...errors import PailotError
from ...runfolder import layout
from ...runfolder.engine_records import KubernetesRecord
from ...runtime.kubernetes import pod_layout
from ...runtime.kubernetes.dial import OPEN
from ...settings import Settings
from ...values import Value
from . import objects
from .cluster import Cluster
from .exec_stream import STDERR, STDOUT, ExecStream
from .reasons import pod_seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1 << 16


class TaskPod(Value):
    """A pod whose container runs."""

    cluster: Cluster
    name: str

    def listening(self) -> set[int]:
        """The TCP ports on which something in it listens."""
        said = self._ours("dial")
        try:
            return {int(each) for each in _first_line(said).split()}
        finally:
            said.close()

    def dial(self, port: int, seconds: float) -> socket.socket:
        """A connection to one of its ports, on the loopback address or its own; OSError."""
        try:
            stream = self._ours("dial", str(port), seconds=seconds)
        except PailotError as error:
            raise ConnectionError(errno.ECONNABORTED, str(error)) from None
        first = _first_line(stream)
        if first != OPEN.strip():
            stream.close()
            raise ConnectionRefusedError(errno.ECONNREFUSED, first.decode("utf-8", "replace"))
        ours, theirs = socket.socketpair()
        threading.Thread(target=_serve, args=(stream, ours), daemon=True, name=f"port {port} of {self.name}").start()
        return theirs

    def command(self, words: list[str], *, terminal: bool) -> ExecStream:
        return self.cluster.run_in(self.name, objects.MAIN, words, terminal=terminal)

    def _ours(self, *words: str, seconds: float = 30.0) -> ExecStream:
        code = f"{pod_layout.GIVEN}/{pod_layout.CODE}"
        return self.cluster.run_in(
            self.name, objects.MAIN, ["/bin/sh", "-c", objects.SHOW, pod_layout.READY, code, *words], seconds=seconds
        )


def find(task_folder: str) -> TaskPod | None:
    """The pod of the task in a folder, if it runs."""
    attempt = os.path.dirname(os.path.dirname(task_folder))
    record = KubernetesRecord.of(attempt)
    if record is None:
        return None
    role, index = layout.task_of(task_folder)
    number = next((place for place, rule in enumerate(record.rules) if rule[0] == role), None)
    cluster = Cluster.of_settings(Settings(), record.namespace, record.context)
    items, _ = cluster.listed(cluster.path("pods"), objects.Names(record.run, record.attempt).selector)
    for seen in map(pod_seen, items):
        if seen is not None and (seen.role, seen.index) == (number, int(index)) and seen.is_up:
            return TaskPod(cluster, seen.name)
    return None


def bridge(stream: ExecStream, reader: int, heard: Callable[[int, bytes], None]) -> None:
    """Between a descriptor and a command, to the end of the command; one thread does it, since TLS takes no two."""
    readers: list[int] = [stream.socket.fileno(), reader]
    while True:
        ready = [readers[0]] if stream.pending() else select.select(readers, [], [])[0]
        if reader in ready:
            data = os.read(reader, CHUNK)
            if data:
                stream.write(data)
            else:
                stream.end_input()
                readers.remove(reader)
        if readers[0] in ready:
            said = stream.read()
            if said is None:
                return
            heard(*said)


def _serve(stream: ExecStream, ours: socket.socket) -> None:
    def heard(channel: int, data: bytes) -> None:
        if channel == STDOUT:
            ours.sendall(data)

    try:
        bridge(stream, ours.fileno(), heard)
    except OSError:
        pass  # one of the two sides has hung up
    finally:
        ours.close()
        stream.close()


def _first_line(stream: ExecStream) -> bytes:
    """The first line of what a command says; what comes behind it is read next."""
    line = b""
    while True:
        said = stream.read()
        if said is None:
            return line.strip()
        channel, data = said
        if channel == STDERR:
            continue
        line += data
        first, newline, rest = line.partition(b"\n")
        if newline:
            stream.put_back(STDOUT, rest)
            return first
