"""Server-sent events: named, with ids from which a client that lost the line goes on."""

from __future__ import annotations

import asyncio
import json

from ...lifecycle.waits import capped
from .http import Response, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from typing import Any

    from .http import Request

BEAT_SECONDS = 15.0
"""Silence is broken so often, so that proxies keep the line and lost clients are noticed."""
_HEADERS = [(b"cache-control", b"no-store"), (b"x-accel-buffering", b"no")]


def event(name: str, data: Any, id: str | int | None = None) -> bytes:  # the format's own word
    """One event; JSON holds no line ends, so that it is one line."""
    head = f"event: {name}\n" if name else ""
    mark = f"id: {id}\n" if id is not None else ""
    return f"{mark}{head}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def stream(request: Request, events: AsyncIterator[bytes]) -> Response:
    """An answer of events, for as long as the caller may hear them: a token that is revoked ends what it opened."""

    async def still() -> bool:
        return await request.site.gate.still(request.caller)

    return Stream(with_beats(events, still=still), kind=b"text/event-stream; charset=utf-8", headers=list(_HEADERS))


def last_id(request: Request) -> str:
    """Where the client says it stopped reading: its `Last-Event-ID`, or `?after=`."""
    return request.header(b"last-event-id") or request.query.get("after", "")


async def with_beats(
    events: AsyncIterator[bytes], seconds: float = BEAT_SECONDS, still: Callable[[], Awaitable[bool]] | None = None
) -> AsyncIterator[bytes]:
    """The events, and a comment whenever there were none for a while; ends before anything that may not be told any more."""
    yield b": begin\n\n"
    waiting: asyncio.Future[bytes] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait((waiting,), timeout=capped(seconds))
            if still is not None and not await still():
                return
            if not done:
                yield b": still here\n\n"
                continue
            finished, waiting = waiting, None
            try:
                piece = finished.result()
            except StopAsyncIteration:
                return
            yield piece
    finally:
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait((waiting,))
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
