"""In a task's pod, started by `pailot forward`: a connection to one of its ports over our own streams, or a list of them."""

from __future__ import annotations

import os
import select
import socket

from ..tcp_listeners import ports_in_network_of
from . import pod_layout

OPEN = b"open\n"
"""What is said first where the port takes the connection; else why it does not."""
CHUNK = 1 << 16


def main(words: list[str]) -> int:
    """Connect to PORT, or print the ports that something listens on."""
    if not words:
        os.write(1, " ".join(map(str, sorted(ports_in_network_of(os.getpid())))).encode() + b"\n")
        return 0
    try:
        made = _connected(int(words[0]))
    except OSError as error:
        os.write(1, f"{error.strerror or error}\n".encode())
        return 1
    os.write(1, OPEN)
    _pump(made)
    return 0


def _connected(port: int) -> socket.socket:
    """Most programs listen on the loopback address, too; some on the pod's own alone."""
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=10)
    except ConnectionRefusedError:
        return socket.create_connection((os.environ.get(pod_layout.ADDRESS_VARIABLE, "127.0.0.1"), port), timeout=10)


def _pump(made: socket.socket) -> None:
    made.settimeout(None)
    readers: list[int | socket.socket] = [0, made]
    while made in readers:
        ready, _, _ = select.select(readers, [], [])
        if 0 in ready:
            data = os.read(0, CHUNK)
            if data:
                made.sendall(data)
            else:
                made.shutdown(socket.SHUT_WR)
                readers.remove(0)
        if made in ready:
            data = made.recv(CHUNK)
            if not data:
                return
            while data:
                data = data[os.write(1, data) :]
