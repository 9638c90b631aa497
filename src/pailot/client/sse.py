"""Server-sent events: read, and resumed after the last id when the line breaks or the server is started anew."""

from __future__ import annotations

import time

from ..lifecycle.waits import capped
from ..values import Value
from .errors import Refused, Unreachable
from .http import Http, NotSent, Reply, refusal, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SILENCE = 45.0
"""A server says something, if only a comment, more often than this; a line that is silent for longer is broken."""
PATIENCE = 300.0
"""How long a server that was reachable before may be away."""
_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)


class Event(Value):
    """One event: its name, its data, and the id to go on from."""

    event: str
    data: str
    id: str = ""


class EventParser:
    """Bytes to events, as the standard says; fed with whatever pieces arrive."""

    def __init__(self) -> None:
        self._rest = b""
        self._after_return = False
        self._data: list[str] = []
        self._event = ""
        self.last_id = ""
        self.retry: float | None = None

    def feed(self, data: bytes) -> Iterator[Event]:
        if self._after_return and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._after_return = data.endswith(b"\r")
        text = (self._rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = text.split(b"\n")
        for line in lines:
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> Event | None:
        if not line:
            data, event = self._data, self._event
            self._data, self._event = [], ""
            return Event(event or "message", "\n".join(data), self.last_id) if data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isdigit():
            self.retry = int(value) / 1000
        return None


def parse(chunks: Iterable[bytes]) -> Iterator[Event]:
    """All events of a stream that ends."""
    parser = EventParser()
    for chunk in chunks:
        yield from parser.feed(chunk)


def follow(
    http: Http,
    path: str,
    last_id: str = "",
    *,
    patience: float = PATIENCE,
    silence: float = SILENCE,
    until: float = float("inf"),
) -> Iterator[Event | None]:
    """Events without end, over one connection after another. None says: look at the state, something may have been missed.

    It is yielded after every reconnection and after every silence. Ends where the server has nothing more to send (204), when
    the clock (`time.monotonic`) says `until`, and when the connection is interrupted. Raises Unreachable when the server is
    away for longer than `patience`, Refused when it says no.
    """
    from http.client import HTTPException

    away: float | None = None
    turn = 0
    renewed = False
    while not http.was_interrupted() and time.monotonic() < until:
        parser = EventParser()
        parser.last_id = last_id
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        try:
            response = http.send("GET", path, None, headers, timeout=max(0.001, min(silence, until - time.monotonic())))
            if response.status == 401 and http.renew is not None and not renewed:
                response.read()
                http.token, renewed = http.renew(http.token), True
                continue
            if response.status == 204:
                response.read()
                return
            if response.status in (429, 502, 503, 504):
                raise OSError(f"status {response.status}")
            if response.status >= 400:
                raise refusal(Reply(response.status, {}, response.read()), http.server)
            if response.headers.get_content_type() != "text/event-stream":
                raise Refused(f"{http.server} has no live events at {path}", 501, "NoLiveEvents")
            away, renewed = None, False
            while True:
                http.limit(max(0.001, min(silence, until - time.monotonic())))
                chunk = response.read1(1 << 16)
                if not chunk:
                    break
                for event in parser.feed(chunk):
                    turn = 0
                    last_id = parser.last_id
                    yield event
        except (OSError, HTTPException, NotSent) as error:
            now = time.monotonic()
            away = away if away is not None else now
            if now - away > patience:
                raise Unreachable(f"{http.server} cannot be reached: {words(error)}") from None
        finally:
            http.close()
        if http.was_interrupted() or time.monotonic() >= until:
            return
        pause = parser.retry if parser.retry is not None and not turn else _PAUSES[min(turn, len(_PAUSES) - 1)]
        turn += 1
        time.sleep(capped(min(pause, until - time.monotonic())))
        yield None
