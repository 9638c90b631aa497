"""Several asynchronous sources as one: each is read one value ahead, so that a slow reader slows all of them down."""

from __future__ import annotations

import asyncio  # only a server loads this

from ..errors import PailotError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping
    from typing import Any, TypeVar

    Key = TypeVar("Key")
    Item = TypeVar("Item")


class Over:
    """A source has ended: by itself, or with an error that its reader should be told."""

    __slots__ = ("error",)

    def __init__(self, error: PailotError | None = None) -> None:
        self.error = error


async def merged(sources: Mapping[Key, AsyncIterator[Item]]) -> AsyncGenerator[list[tuple[Key, Item | Over]], None]:
    """Yield what is there of all sources together, each value with the key of its source; the last of each is an `Over`.

    What one source yields stays in order. Ends when all sources have ended. A defect of a source ends all.
    """
    order = {key: place for place, key in enumerate(sources)}
    waiting: dict[asyncio.Future[Item], Key] = {_next(source): key for key, source in sources.items()}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            found: list[tuple[Key, Item | Over]] = []
            for future in sorted(done, key=lambda each: order[waiting[each]]):
                key = waiting.pop(future)
                try:
                    found.append((key, future.result()))
                except StopAsyncIteration:
                    found.append((key, Over()))
                except PailotError as error:
                    found.append((key, Over(error)))
                else:
                    waiting[_next(sources[key])] = key
            yield found
    finally:
        for future in waiting:
            future.cancel()
        if waiting:
            await asyncio.wait(waiting)
        for source in sources.values():
            await close(source)


async def close(source: AsyncIterator[Any]) -> None:
    """Let a source go that is not read any further."""
    ending = getattr(source, "aclose", None)
    if ending is not None:
        await ending()


def _next(source: AsyncIterator[Item]) -> asyncio.Future[Item]:
    return asyncio.ensure_future(anext(source))
