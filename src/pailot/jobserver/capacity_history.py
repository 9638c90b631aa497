"""What of the machine was in use over the last 24 hours: one small record a minute, in a file of fixed size.

A record has its place by its minute of the day, so that it takes that of the day before. A restart loses the minutes in between,
and nothing else.
"""

from __future__ import annotations

import asyncio  # only a server comes here
import os
import time
from struct import Struct

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FILE = "capacity-history"
MINUTES = 24 * 60
SAMPLE_SECONDS = 10.0
_RECORD = Struct("<Iffffff")
"""The minute since 1970, then processors, memory in MB, GPUs, jobs that run and jobs that wait; the last place is free."""


class Use(Value):
    """What is in use at one time, or on average over a minute."""

    cpus: float
    memory_mb: float
    gpus: float
    running: float
    waiting: float


class Minute(Value):
    at: int
    """When it began, in seconds since 1970."""
    use: Use


class CapacityHistory:
    """Writes a record a minute between `begin` and `end`. Reading and writing are a few microseconds each."""

    def __init__(self, home: str, look: Callable[[], Use], clock: Callable[[], float] = time.time) -> None:
        self._path, self._look, self._clock = os.path.join(home, FILE), look, clock
        self._task: asyncio.Task[None] | None = None
        self._minute = -1
        self._seen: list[Use] = []

    def begin(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._write()

    async def _run(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(SAMPLE_SECONDS)

    def sample(self) -> None:
        """Look once; what was seen in the minute before is written when another one begins."""
        minute = int(self._clock() // 60)
        if minute != self._minute:
            self._write()
            self._minute, self._seen = minute, []
        self._seen.append(self._look())

    def _write(self) -> None:
        if not self._seen:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return  # a minute without a record; the server serves on
        try:
            mean = _mean(self._seen)
            data = _RECORD.pack(self._minute, mean.cpus, mean.memory_mb, mean.gpus, mean.running, mean.waiting, 0.0)
            os.pwrite(descriptor, data, self._minute % MINUTES * _RECORD.size)
        except OSError:
            pass  # the disk is full
        finally:
            os.close(descriptor)

    def read(self, seconds: float) -> list[Minute]:
        """The minutes of this much time up to now, oldest first; the one that has not ended is the last."""
        now = self._clock()
        try:
            with open(self._path, "rb") as file:
                data = file.read(MINUTES * _RECORD.size)
        except OSError:
            data = b""
        whole = len(data) - len(data) % _RECORD.size
        first, last = (now - min(seconds, MINUTES * 60.0)) // 60, self._minute if self._seen else now // 60 + 1
        found = [
            Minute(minute * 60, Use(*numbers))
            for minute, *numbers, _ in _RECORD.iter_unpack(memoryview(data)[:whole])
            if first < minute < last
        ]
        if self._seen:
            found.append(Minute(self._minute * 60, _mean(self._seen)))
        return sorted(found, key=lambda each: each.at)


def _mean(seen: list[Use]) -> Use:
    count = len(seen)
    return Use(
        sum(each.cpus for each in seen) / count,
        sum(each.memory_mb for each in seen) / count,
        sum(each.gpus for each in seen) / count,
        sum(each.running for each in seen) / count,
        sum(each.waiting for each in seen) / count,
    )
