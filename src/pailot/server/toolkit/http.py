"""Requests and responses: what a handler takes and what it returns."""

from __future__ import annotations

import asyncio
import os
import zlib
from contextlib import suppress
from urllib.parse import parse_qsl

from ...jobserver.json_lines import to_line
from .bodies import decode, parse_body
from .errors import HttpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
    from typing import Any, TypeAlias

    from ..auth import Caller
    from ..context import Site

    Scope: TypeAlias = MutableMapping[str, Any]
    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    Headers: TypeAlias = list[tuple[bytes, bytes]]

JSON = b"application/json; charset=utf-8"
TEXT = b"text/plain; charset=utf-8"
YAML = b"text/yaml; charset=utf-8"
BODY_LIMIT = 1024 * 1024
"""As much as a job file may hold."""
COMPRESSED_FROM = 4096
"""Bytes of an answer below which packing it is not worth the time."""
_IDLE_SECONDS = 60.0
"""A client that sends nothing of its body for this time is gone."""
_SLOWEST = 1000.0
"""Bytes a second that a body must come with, after that time: who sends a byte a minute holds a place, and sends nothing."""
_DISCARDED, _DISCARD_SECONDS = 8 << 20, 5.0
"""Of a body that is too large, at most this much is read and dropped, for at most this time."""


class Gone(Exception):
    """The client went away before its request was whole."""


class Response:
    """A whole answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, body: bytes = b"", status: int = 200, kind: bytes = TEXT, headers: Headers | None = None) -> None:
        self.status = status
        self.body = body
        length = (b"content-length", str(len(body)).encode())
        self.headers: Headers = [(b"content-type", kind), length, *headers] if headers else [(b"content-type", kind), length]


class Stream(Response):
    """An answer that is made while it is sent."""

    __slots__ = ("pieces",)

    def __init__(
        self, pieces: AsyncIterator[bytes], status: int = 200, kind: bytes = TEXT, headers: Headers | None = None
    ) -> None:
        super().__init__(b"", status, kind)
        self.headers = [(b"content-type", kind), *(headers or [])]
        self.pieces = pieces


async def compressed(response: Response, accepted: str, beside: Callable[..., Awaitable[Any]]) -> None:
    """A large answer made small, for who can unpack it: lists of jobs shrink to a tenth.

    Logs are left as they are, since parts of them are asked for by their bytes, and so is what is small.
    """
    size = len(response.body)
    if not _takes_gzip(accepted) or any(name == b"accept-ranges" for name, _ in response.headers):
        return
    # A megabyte takes some ten milliseconds, during which no other request would be served.
    small: bytes = await beside(_gzip, response.body) if size > COMPRESSED_FROM * 8 else _gzip(response.body)
    response.body = small
    kept = [(name, value) for name, value in response.headers if name != b"content-length"]
    length = (b"content-length", str(len(small)).encode())
    response.headers = [*kept, length, (b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _takes_gzip(accepted: str) -> bool:
    """Whether `Accept-Encoding` names gzip, and not with a weight of nothing."""
    for part in accepted.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def json_response(value: Any, status: int = 200, headers: Headers | None = None) -> Response:
    return Response(to_json(value), status, JSON, headers)


def text_response(text: str, status: int = 200) -> Response:
    return Response(text.encode("utf-8", "replace"), status)


def to_json(value: Any) -> bytes:
    return to_line(value).encode()


class Request:
    """One request; what it holds is read when it is asked for."""

    __slots__ = ("_headers", "_query", "caller", "id", "named", "parameters", "receive", "scope", "site")

    caller: Caller
    id: str
    """The number of the request: in the response, the access log, the audit log and the number of a defect."""
    named: str
    """A user or job that only the body names; the audit log needs it."""

    def __init__(self, site: Site, scope: Scope, receive: Receive, parameters: Mapping[str, str]) -> None:
        self.site = site
        self.scope = scope
        self.receive = receive
        self.parameters = parameters
        self.id = os.urandom(8).hex()
        self.named = ""
        self._headers: dict[bytes, bytes] | None = None
        self._query: dict[str, str] | None = None

    def header(self, name: bytes) -> str | None:
        """A header by its name in small letters."""
        if self._headers is None:
            self._headers = dict(self.scope["headers"])
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def query(self) -> dict[str, str]:
        """What follows the `?`; of a repeated name the last value."""
        if self._query is None:
            text = self.scope["query_string"].decode("latin-1")
            try:
                pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=200, errors="strict") if text else ()
            except (ValueError, UnicodeDecodeError):
                raise HttpError(400, "InvalidParametersError", "the query cannot be read") from None
            self._query = dict(pairs)
        return self._query

    def all_of(self, name: str) -> list[str]:
        """All values of a name that the query may repeat."""
        self.query  # noqa: B018  # refuses a query that cannot be read
        pairs = parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return [value for key, value in pairs if key == name]

    @property
    def client(self) -> str:
        peer = self.scope.get("client")
        return peer[0] if peer else "-"

    def flag(self, *names: str) -> bool:
        """Whether a switch of the query is on: `?x=true`, `?x=1` or `?x`."""
        return any(self.query.get(name, "false").lower() in ("true", "1", "", "yes") for name in names)

    def number(self, name: str, default: int, least: int = 0, most: int | None = None) -> int:
        """A whole number of the query."""
        text = self.query.get(name, "")
        if not text:
            return default
        if not (text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() and len(text) < 19):
            raise HttpError(400, "InvalidParametersError", f"'{name}' should be a whole number, is {text[:40]!r}")
        value = int(text)
        if value < least or (most is not None and value > most):
            bound = f"between {least} and {most}" if most is not None else f"at least {least}"
            raise HttpError(400, "InvalidParametersError", f"'{name}' should be {bound}, is {value}")
        return value

    async def pieces(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it comes; no more than `limit` bytes of it are taken."""
        length = self.header(b"content-length")
        if length is not None and length.isdecimal() and int(length) > limit:
            if self.header(b"expect") is None:
                await self._discard()
            raise too_large(limit)
        taken, began = 0, asyncio.get_running_loop().time()
        while True:
            try:
                latest = began + _IDLE_SECONDS + taken / _SLOWEST
                async with asyncio.timeout_at(min(latest, asyncio.get_running_loop().time() + _IDLE_SECONDS)):
                    message = await self.receive()
            except TimeoutError:
                raise HttpError(408, "RequestTimeoutError", "the rest of the body did not come", [_CLOSE]) from None
            if message["type"] != "http.request":
                raise Gone
            piece = message.get("body", b"")
            taken += len(piece)
            if taken > limit:
                if message.get("more_body"):
                    await self._discard()
                raise too_large(limit)
            if piece:
                yield piece
            if not message.get("more_body"):
                return

    async def _discard(self) -> None:
        """Most clients send all before they read: where we closed at once, they would see a broken line and no answer."""
        left = _DISCARDED
        with suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0:
                    message = await self.receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return

    async def body(self, limit: int = BODY_LIMIT) -> bytes:
        return b"".join([piece async for piece in self.pieces(limit)])

    async def text(self, limit: int = BODY_LIMIT) -> str:
        """The body as text, in the encoding that its type names."""
        return decode(await self.body(limit), self.header(b"content-type") or "")

    async def data(self, limit: int = BODY_LIMIT) -> Any:
        """The body as a value: JSON (also under `text/*`, as browsers send it), or a form; None where there is none."""
        return parse_body(await self.body(limit), self.header(b"content-type") or "")


_CLOSE = (b"connection", b"close")


def too_large(limit: int) -> HttpError:
    return HttpError(413, "RequestTooLargeError", f"request entity too large: at most {limit} bytes are taken", [_CLOSE])


async def once(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Pieces that are there already, as a stream."""
    for piece in pieces:
        yield piece
