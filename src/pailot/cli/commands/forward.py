"""`pailot forward RUN ROLE INDEX PORT`: a port of a task, on this machine."""

from __future__ import annotations

import json
import socket
import sys
import threading

from ...engines.registry import load
from ...errors import PailotError
from ...settings import current_user
from ...userruns.queries import find
from ...userruns.task_access import host, locate, port_of
from ..main import OK
from ..server_option import add_server_option, client_of, job_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable
    from typing import Protocol

    from ...client.api import Client

    class Line(Protocol):
        """Bytes both ways."""

        def send(self, data: bytes) -> None: ...
        def receive(self) -> bytes:
            """Empty when nothing more comes."""

        def close(self) -> None: ...


PIECE_BYTES = 1 << 16
DIAL_SECONDS = 10.0


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("role", metavar="ROLE")
    parser.add_argument("index", type=int, metavar="INDEX")
    parser.add_argument("port", metavar="PORT", help="a number, or the label of a port")
    parser.add_argument("--local-port", type=int, default=0, metavar="N", help="the port here; any that is free by default")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print the address here as JSON")


def run(args: Namespace) -> int:
    client = client_of(args)
    dial = _through(client, args) if client is not None else _here(args)
    dial().close()  # what cannot be reached is said now, and not to the first who connects
    listener = _listen(args.local_port)
    port = listener.getsockname()[1]
    if args.json:
        print(
            json.dumps({"host": "127.0.0.1", "port": port, "task": f"{args.role}:{args.index}", "taskPort": args.port}),
            flush=True,
        )
    else:
        print(f"http://127.0.0.1:{port} is port {args.port} of {args.role}:{args.index}; Ctrl-C ends it", flush=True)
    try:
        while True:
            accepted, _ = listener.accept()
            threading.Thread(target=_serve, args=(accepted, dial), daemon=True).start()
    except KeyboardInterrupt:
        return OK
    finally:
        listener.close()


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise PailotError(f"port {port} of this machine cannot be used: {error.strerror}") from None


def _serve(accepted: socket.socket, dial: Callable[[], Line]) -> None:
    """One connection: until both sides have said all, or one of them is gone."""
    try:
        line = dial()
    except PailotError as error:
        sys.stderr.write(f"pailot: {error}\n")
        accepted.close()
        return

    def send() -> None:
        try:
            while data := accepted.recv(PIECE_BYTES):
                line.send(data)
            line.send(b"")
        except OSError:
            line.close()

    threading.Thread(target=send, daemon=True).start()
    try:
        while data := line.receive():
            accepted.sendall(data)
    except OSError:
        pass  # the one who asked is gone
    finally:
        line.close()
        try:
            accepted.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        accepted.close()


def _through(client: Client, args: Namespace) -> Callable[[], Line]:
    name = job_name(client, args.run)
    return lambda: _ServersLine(client, name, args.role, args.index, args.port)


class _ServersLine:
    """A connection to a port of a task, over a server."""

    def __init__(self, client: Client, name: str, role: str, index: int, port: str) -> None:
        self._line = client.open_port(name, role, index, port)

    def send(self, data: bytes) -> None:
        from ...client.sockets import Closed

        try:
            self._line.send(data or "eof")
        except Closed:
            raise ConnectionResetError from None

    def receive(self) -> bytes:
        from ...client.sockets import Closed

        try:
            message = self._line.receive()
        except Closed:
            return b""
        return message if isinstance(message, bytes) else b""

    def close(self) -> None:
        self._line.close()


def _here(args: Namespace) -> Callable[[], Line]:
    row, folder = find(args.run, current_user())
    place = locate(row.name, row.engine, folder, args.role, args.index)
    if place.ended:
        raise PailotError(f"{place} has ended; its ports may be those of others by now")

    def dial() -> Line:
        port = port_of(place, args.port)
        try:
            return _OwnLine(load(place.engine).dial(place.folder, host(place), port, DIAL_SECONDS))
        except OSError as error:
            raise PailotError(f"port {args.port} of {place} does not answer: {error.strerror or error}") from None

    return dial


class _OwnLine:
    """A connection to a port of a task of this machine."""

    def __init__(self, made: socket.socket) -> None:
        self._made = made
        made.settimeout(None)

    def send(self, data: bytes) -> None:
        if data:
            self._made.sendall(data)
        else:
            self._made.shutdown(socket.SHUT_WR)

    def receive(self) -> bytes:
        try:
            return self._made.recv(PIECE_BYTES)
        except OSError:
            return b""

    def close(self) -> None:
        self._made.close()
