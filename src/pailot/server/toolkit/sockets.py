"""WebSockets: what a handler of one takes, and where one is refused before it begins."""

from __future__ import annotations

import json
from urllib.parse import urlsplit

from .errors import HttpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .http import Receive, Request, Response, Send

POLICY, TRY_LATER, DEFECT = 1008, 1013, 1011
"""Why a server closes: something is against its rules, it has no room or ends, it is defective (RFC 6455)."""
_SCHEMES = {"http", "https"}


class Socket:
    """One connection that was asked for; nothing is accepted before the handler does so."""

    def __init__(self, request: Request, receive: Receive, send: Send) -> None:
        self.request = request
        self._receive, self._send = receive, send
        self.accepted = self.closed = False

    async def accept(self) -> None:
        await self._receive()  # that it wants to connect
        await self._send({"type": "websocket.accept"})
        self.accepted = True

    async def receive(self) -> str | bytes | None:
        """The next message; None when the other side has gone."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            self.closed = True
            return None
        text = message.get("text")
        return text if text is not None else bytes(message.get("bytes") or b"")

    async def receive_json(self) -> dict[str, object]:
        """The next message, which has to be a JSON object; an empty one when the other side has gone."""
        found = await self.receive()
        if found is None:
            return {}
        try:
            said = json.loads(found)
        except ValueError:
            said = None
        if not isinstance(said, dict):
            raise HttpError(400, "InvalidParametersError", "the message should be a JSON object")
        return said

    async def send(self, data: bytes) -> None:
        if not self.closed:
            await self._send({"type": "websocket.send", "bytes": data})

    async def tell(self, **said: Any) -> None:
        """A message of ours, as JSON."""
        if not self.closed:
            await self._send({"type": "websocket.send", "text": json.dumps(said)})

    async def close(self, code: int = 1000) -> None:
        if not self.closed:
            self.closed = True
            await self._send({"type": "websocket.close", "code": code})

    async def refuse(self, response: Response) -> None:
        """End it: by an answer of HTTP before it was accepted, by a message and a close after that."""
        if self.accepted:
            body = json.loads(response.body) if response.body else {}
            await self.tell(error=body.get("message") or "the server ends this connection")
            await self.close(DEFECT if response.status >= 500 else POLICY)
            return
        self.closed = True
        start = {"type": "websocket.http.response.start", "status": response.status, "headers": response.headers}
        await self._send(start)
        await self._send({"type": "websocket.http.response.body", "body": response.body})


def check_origin(request: Request, allowed: tuple[str, ...]) -> None:
    """Refuse a page of another site: browsers send it here with all that they know of the user, and say where it is from."""
    origin = request.header(b"origin")
    if origin is None or origin in allowed:
        return
    parts = urlsplit(origin)
    if parts.scheme in _SCHEMES and parts.netloc and parts.netloc.lower() == (request.header(b"host") or "").lower():
        return
    raise HttpError(403, "ForbiddenOriginError", f"a page of {origin[:100]} may not open this connection (setting cors)")
