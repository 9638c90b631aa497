"""The streams of a command in a pod, or of a port of it: a WebSocket with one number in front of each message.

A message may come in several frames, of which only the first has the number (RFC 6455 and Kubernetes' `v5.channel.k8s.io`).
"""

from __future__ import annotations

import json
import os
import socket
import struct
from base64 import b64encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from http.client import HTTPConnection, HTTPResponse

    from ..contract import EngineError

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_CONTINUED, _TEXT, _BINARY, _END, _PING, _PONG = 0, 1, 2, 8, 9, 10
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
LARGEST = 64 << 20
"""No message of kubelet is nearly as large."""


class ExecStream:
    """One such connection. Reading waits for at most the timeout of its socket; one thread at a time may use it."""

    def __init__(self, connection: HTTPConnection, way: socket.socket, came: bytes) -> None:
        self.connection, self.socket, self._came = connection, way, came
        self.exit_code: int | None = None
        """How the command has ended, once that is known."""
        self.problem = ""
        self._kind = STATUS
        self._back: tuple[int, bytes] | None = None

    @classmethod
    def opened(cls, connection: HTTPConnection, path: str, problem: Callable[[int, bytes], EngineError]) -> ExecStream:
        """Ask for the streams at a path of the API."""
        way = connection.sock
        connection.request(
            "GET",
            path,
            headers={
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": b64encode(os.urandom(16)).decode(),
                "Sec-WebSocket-Protocol": PROTOCOL,
            },
        )
        response = connection.getresponse()
        if response.status != 101:
            raise problem(response.status, response.read())
        way.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            way.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        return cls(connection, way, _behind_the_head(response, way))

    def read(self) -> tuple[int, bytes] | None:
        """The next piece of what the other side says, and on which channel; None at the end."""
        if self._back is not None:
            said, self._back = self._back, None
            return said
        while True:
            head = self._exactly(2)
            if head is None:
                return None
            code, size = head[0] & 15, head[1] & 127
            if size > 125:
                more = self._exactly(2 if size == 126 else 8)
                if more is None:
                    return None
                size = struct.unpack(">H" if size == 126 else ">Q", more)[0]
            if size > LARGEST:
                return None
            data = self._exactly(size) if size else b""
            if data is None or code == _END:
                return None
            if code == _PING:
                self._frame(_PONG, data)
                continue
            if code in (_TEXT, _BINARY) and data:
                self._kind, data = data[0], data[1:]
            elif code != _CONTINUED:
                continue
            if self._kind == STATUS:
                self._take_status(data)
            else:
                return self._kind, data

    def put_back(self, channel: int, data: bytes) -> None:
        """Have something read once more."""
        if data:
            self._back = channel, data

    def write(self, data: bytes, channel: int = STDIN) -> None:
        """Say something; OSError if the other side is gone."""
        self._frame(_BINARY, bytes([channel]) + data)

    def end_input(self) -> None:
        """Nothing more will be said; what the other side says can still be read."""
        self._frame(_BINARY, bytes([CLOSE, STDIN]))

    def resize(self, width: int, height: int) -> None:
        self.write(json.dumps({"Width": width, "Height": height}).encode(), RESIZE)

    def hang_up(self) -> None:
        """End it from another thread: the reader sees the end."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is gone already

    def close(self) -> None:
        try:
            self._frame(_END, b"")
        except OSError:
            pass  # it is gone already
        self.connection.close()
        self.socket.close()

    def _exactly(self, count: int) -> bytes | None:
        while len(self._came) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                return None
            self._came += more
        data, self._came = self._came[:count], self._came[count:]
        return data

    def pending(self) -> bool:
        """Whether there is something to read that the socket does not show as readable."""
        return self._back is not None or bool(self._came) or bool(getattr(self.socket, "pending", int)())

    def _take_status(self, data: bytes) -> None:
        try:
            said = json.loads(data)
            if said.get("status") == "Success":
                self.exit_code = 0
                return
            self.problem = str(said.get("message") or "")
            causes = (said.get("details") or {}).get("causes") or ()
            self.exit_code = next((int(each["message"]) for each in causes if each.get("reason") == "ExitCode"), None)
        except (ValueError, TypeError, KeyError, AttributeError):
            self.problem = "the cluster did not say how the command has ended"

    def _frame(self, code: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 128 | code, 128 | size)
        elif size < 65536:
            head = struct.pack(">BBH", 128 | code, 128 | 126, size)
        else:
            head = struct.pack(">BBQ", 128 | code, 128 | 127, size)
        self.socket.sendall(head + b"\0\0\0\0" + data)  # TLS is around it: the mask of zeros hides nothing less


def _behind_the_head(response: HTTPResponse, way: socket.socket) -> bytes:
    """What was read together with the head of the response; from then on the socket itself is read, without a time limit."""
    way.settimeout(0)
    try:
        return bytes(response.fp.peek(1))
    except OSError:
        return b""  # nothing more was there
    finally:
        way.settimeout(None)  # what a command says may take days; the kernel notices if the other side is gone
