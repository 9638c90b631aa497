"""Waits for an event loop. Each has a thread of its own, or shares one: no wait stands in the way of another."""

from __future__ import annotations

import asyncio  # noqa: TID253  # only programs with an event loop come here
import threading

from ..lifecycle.waits import capped
from ..views import shared_watcher
from ..views.cancellation import Quit
from ..views.local import LocalView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import Any, TypeVar

    from ..views.base import View

    Answer = TypeVar("Answer")

AHEAD = 256
"""This many lines or events are read ahead."""


async def over(view: View, timeout: float | None) -> bool:
    """Until a run is over; False when the time is up first."""
    if not isinstance(view, LocalView):
        return await in_thread(lambda quit: view.wait(timeout, quit))
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    leave = shared_watcher.join(view, lambda error: _tell(loop, _settle, ended, None, error))
    until = None if timeout is None else loop.time() + timeout
    try:
        while not ended.done():
            left = None if until is None else until - loop.time()
            if left is not None and left <= 0:
                return False
            await asyncio.wait((ended,), timeout=None if left is None else capped(left))
        ended.result()  # raises what happened to the run
    finally:
        leave()
    return True


async def in_thread(work: Callable[[Quit], Answer]) -> Answer:
    """Return what a waiting function returns; it is told to give up when we are cancelled."""
    loop, quit = asyncio.get_running_loop(), Quit()
    answered: asyncio.Future[Answer] = loop.create_future()

    def body() -> None:
        try:
            answer = work(quit)
        except BaseException as error:  # raised where it is awaited
            _tell(loop, _settle, answered, None, error)
        else:
            _tell(loop, _settle, answered, answer, None)
        finally:
            quit.close()

    threading.Thread(target=body, daemon=True, name="a wait of a coroutine").start()
    try:
        return await answered
    finally:
        quit.set()


async def each_in_thread(work: Callable[[Quit], Iterator[Answer]]) -> AsyncIterator[Answer]:
    """What an iterator yields that waits, one by one."""
    loop, quit = asyncio.get_running_loop(), Quit()
    found: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
    room = threading.Semaphore(AHEAD)
    quit.then(room.release)

    def body() -> None:
        try:
            for each in work(quit):
                room.acquire()
                if quit.is_set:
                    return
                _tell(loop, found.put_nowait, ("one", each))
        except BaseException as error:  # raised where it is iterated
            _tell(loop, found.put_nowait, ("error", error))
        else:
            _tell(loop, found.put_nowait, ("end", None))
        finally:
            quit.close()

    threading.Thread(target=body, daemon=True, name="an iteration of a coroutine").start()
    try:
        while True:
            kind, value = await found.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            room.release()
            yield value
    finally:
        quit.set()


def _settle(future: asyncio.Future[Any], answer: Any, error: BaseException | None) -> None:
    if future.done():
        return  # the waiter is gone
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)


def _tell(loop: asyncio.AbstractEventLoop, work: Callable[..., object], *arguments: Any) -> None:
    """Have something done in the loop's thread, if the loop is still there."""
    try:
        loop.call_soon_threadsafe(work, *arguments)
    except RuntimeError:
        pass  # the program has left its loop
