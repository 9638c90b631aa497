"""Waits of other threads for an event loop; a cancelled wait ends its thread."""

from __future__ import annotations

import asyncio  # noqa: TID253  # only programs with an event loop come here

from .places import Quit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import TypeVar

    Answer = TypeVar("Answer")


async def in_thread(work: Callable[[Quit], Answer]) -> Answer:
    """What a function answers that waits; it is told to give up when we are cancelled."""
    quit = Quit()
    try:
        return await asyncio.to_thread(work, quit)
    finally:
        quit.set()


async def each_in_thread(work: Callable[[Quit], Iterator[Answer]]) -> AsyncIterator[Answer]:
    """What an iterator yields that waits, one by one."""
    quit = Quit()
    nothing = object()
    iterator = work(quit)
    try:
        while True:
            found = await asyncio.to_thread(next, iterator, nothing)
            if found is nothing:
                return
            yield found  # type: ignore[misc]  # it is not nothing
    finally:
        quit.set()
