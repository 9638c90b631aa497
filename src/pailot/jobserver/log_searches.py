"""Searches in the logs of jobs: one of each user at a time. A text is searched for by threads, an expression by a process.

A regular expression can take for ever on a short line, and Python cannot interrupt it. A process can be ended.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager

from ..runfolder.log_search import BadPattern, Hit, SearchEnd, is_quick, search
from . import helper_process, search_process
from .errors import BadRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
    from typing import TypeAlias

    from ..runfolder.log_search import Step, Wanted

    Told: TypeAlias = "list[Hit] | SearchEnd"

TEXT_SECONDS, EXPRESSION_SECONDS = 30.0, 10.0
PROCESSES = 2
MAX_HITS = 10_000
_LONGEST_LINE = 1 << 16
_BATCH = 100
_PROCESS_SECONDS = EXPRESSION_SECONDS + 2


class LogSearches:
    """The searches of a server."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[asyncio.Lock, int]] = {}
        self._processes = asyncio.Semaphore(PROCESSES)

    async def run(
        self, user: str, folder: str, roles: Mapping[str, int], wanted: Wanted, limit: int
    ) -> AsyncGenerator[Told, None]:
        """Batches of hits, the first one empty, and at last how it ended. Raises BadRequest before the first batch."""
        async with self._turn(user):
            found = _by_thread if is_quick(wanted) else self._by_process
            async for told in found(folder, roles, wanted, limit):
                yield told

    @asynccontextmanager
    async def _turn(self, user: str) -> AsyncIterator[None]:
        turn, count = self._turns.get(user) or (asyncio.Lock(), 0)
        self._turns[user] = turn, count + 1
        try:
            async with turn:
                yield
        finally:
            turn, count = self._turns.pop(user)
            if count > 1:
                self._turns[user] = turn, count - 1

    async def _by_process(self, folder: str, roles: Mapping[str, int], wanted: Wanted, limit: int) -> AsyncIterator[Told]:
        order = {
            "folder": folder,
            "roles": dict(roles),
            "wanted": wanted.to_json(),
            "limit": limit,
            "seconds": EXPRESSION_SECONDS,
        }
        process, guard = await self._start(order)
        assert process.stdout is not None
        count = 0
        try:
            while True:
                line = await process.stdout.readline()
                if not line:  # its time was up in the middle of a line, or the kernel ended it
                    yield SearchEnd(count, "time")
                    return
                told = json.loads(line)
                if "error" in told:
                    raise BadRequest(told["error"])
                if "stopped" in told:
                    yield SearchEnd(count, told["stopped"], told["bytes"])
                    return
                count += "offset" in told
                yield [Hit.from_json(told)] if "offset" in told else []
        finally:
            if process.returncode is None:
                process.kill()
            await guard

    async def _start(self, order: Mapping[str, object]) -> tuple[asyncio.subprocess.Process, asyncio.Task[None]]:
        """A process, and what ends it in time, however slowly its hits are read."""
        await self._processes.acquire()
        try:
            process = await helper_process.start(
                search_process.MODULE,
                order,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LONGEST_LINE,
            )
        except BaseException:
            self._processes.release()
            raise
        return process, asyncio.create_task(self._guard(process))

    async def _guard(self, process: asyncio.subprocess.Process) -> None:
        try:
            async with asyncio.timeout(_PROCESS_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        finally:
            self._processes.release()


async def _by_thread(folder: str, roles: Mapping[str, int], wanted: Wanted, limit: int) -> AsyncIterator[Told]:
    try:
        steps = search(folder, roles, wanted)
    except BadPattern as error:
        raise BadRequest(str(error)) from None
    yield []
    until = time.monotonic() + TEXT_SECONDS
    count = looked_at = 0
    while True:
        hits, size, over = await asyncio.to_thread(_some, steps)
        looked_at += size
        if count + len(hits) > limit:
            yield hits[: limit - count]
            yield SearchEnd(limit, "limit", looked_at)
            return
        count += len(hits)
        if hits:
            yield hits
        if over or time.monotonic() > until:
            yield SearchEnd(count, "" if over else "time", looked_at)
            return


def _some(steps: Iterator[Step]) -> tuple[list[Hit], int, bool]:
    """The next hits, at most those of a block of a log; how many bytes that was; and whether the search is over."""
    hits: list[Hit] = []
    for step in steps:
        if isinstance(step, int):
            return hits, step, False
        hits.append(step)
        if len(hits) >= _BATCH:
            return hits, 0, False
    return hits, 0, True
