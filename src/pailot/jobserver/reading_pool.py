"""Job files are read beside the loop: by few threads, and of each user one file at a time."""

from __future__ import annotations

import asyncio  # only the server loads this
from concurrent.futures import ThreadPoolExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

THREADS = 2
"""One file that takes long does not delay others; more threads would only take turns, since Python runs one at a time."""
SMALL_TEXT = 1_024
"""A job file up to that many characters is read at once: handing it over would take longer."""


class ReadingPool:
    """Whoever sends many files waits for his own: another's file is at most behind one of each user."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="reading")
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
        """For each user who waits or reads: his turn, and for how many files."""

    async def read(self, user: str, work: Callable[[], T]) -> T:
        """What the work returns; it waits for the user's other files, and for a thread."""
        turn, count = self._turns.get(user) or (asyncio.Lock(), 0)
        self._turns[user] = turn, count + 1
        try:
            async with turn:
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            turn, count = self._turns.pop(user)
            if count > 1:
                self._turns[user] = turn, count - 1

    def close(self) -> None:
        """Read no more; what is being read ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
