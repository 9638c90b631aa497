"""WebSockets to a server, over the same ways as its requests: proxies, certificates, tokens."""

from __future__ import annotations

from ..errors import PailotError
from ..install_lines import install_line
from .errors import Unreachable
from .http import Http, Reply, refusal, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MESSAGE_BYTES = 1 << 20
OPEN_SECONDS = 30.0


class Closed(Exception):
    """The other side has closed."""


class WebSocket:
    """One connection. Sending and receiving may be done by two threads."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def send(self, data: bytes | str) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            self._connection.send(data)
        except ConnectionClosed:
            raise Closed from None

    def receive(self) -> bytes | str:
        """The next message; Closed when none will come."""
        from websockets.exceptions import ConnectionClosed

        try:
            found: bytes | str = self._connection.recv()
        except ConnectionClosed:
            raise Closed from None
        return found

    def close(self) -> None:
        self._connection.close()


def connect(http: Http, path: str) -> WebSocket:
    """Open one at a path of a server; raises a WireError for everything but success."""
    try:
        from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus
        from websockets.sync.client import connect as open_socket
    except ImportError:
        raise PailotError(f"this needs the package websockets: {install_line('enter')}") from None
    try:
        sock = http.open_way()
    except OSError as error:
        raise Unreachable(f"{http.server} cannot be reached: {words(error)}") from None
    host = f"[{http.host}]" if ":" in http.host else http.host
    port = f":{http.port}" if http.port else ""
    headers = {"Authorization": f"Bearer {http.token}"} if http.token else {}
    try:
        opened = open_socket(
            f"ws://{host}{port}{http.prefix}{path}",  # what is below is encrypted already where it has to be
            sock=sock,
            additional_headers=headers,
            user_agent_header=None,
            compression=None,
            open_timeout=OPEN_SECONDS,
            max_size=MESSAGE_BYTES,
            proxy=None,
        )
        made = opened.__enter__()  # newer versions connect only then; the caller closes it
    except InvalidStatus as error:
        found = error.response
        sock.close()
        raise refusal(Reply(found.status_code, dict(found.headers.raw_items()), bytes(found.body or b"")), http.server) from None
    except (InvalidHandshake, InvalidMessage, OSError, TimeoutError) as error:
        sock.close()
        raise Unreachable(f"{http.server} opens no WebSocket: {error}") from None
    return WebSocket(made)
