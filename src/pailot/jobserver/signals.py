"""What happens, for those who look on: one signal a job, and a row of the latest events of all."""

from __future__ import annotations

import asyncio
import time
from collections import deque

from ..lifecycle.waits import capped
from .models import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

KEPT = 4_000


CROWD = 20
SECONDS_A_WATCHER = 0.001
"""Beyond a crowd of watchers, they are woken at most once in this time: otherwise 500 followers of one log keep the whole
server busy, and new connections wait. News after a longer silence is told at once."""


class Signal:
    """Wakes everyone who waits; what happened is to be found out by looking."""

    def __init__(self) -> None:
        self.count = 0
        self._next: asyncio.Future[None] | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._rung = 0.0

    def ring_soon(self, watchers: int) -> None:
        """At once for a few; for many at most once in a while, which is the longer the more they are."""
        if watchers <= CROWD:
            self.ring()
        elif self._soon is None:
            silence = time.monotonic() - self._rung
            if silence >= watchers * SECONDS_A_WATCHER:
                self.ring()
            else:
                self._soon = asyncio.get_running_loop().call_later(capped(watchers * SECONDS_A_WATCHER - silence), self.ring)

    def ring(self) -> None:
        self.count += 1
        self._rung = time.monotonic()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        if self._next is not None:
            if not self._next.done():
                self._next.set_result(None)
            self._next = None

    async def wait(self, seen: int) -> int:
        """Wait until it has rung more often than `seen`; return how often."""
        while self.count <= seen:
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._next)
        return self.count


class Growth:
    """The log of one task, for those who follow it."""

    def __init__(self) -> None:
        self.signal = Signal()
        self.followers = 0
        self.looks: dict[Any, Any] = {}
        """What followers have found since the last sign: a thousand of them look once."""
        self._looked = 0

    def fresh_looks(self) -> dict[Any, Any]:
        """What was found since the last sign, to be added to."""
        if self._looked != self.signal.count:
            self.looks.clear()
            self._looked = self.signal.count
        return self.looks


class LatestEvents:
    """The latest events, in order; their numbers go on after a restart."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=KEPT)
        self.signal = Signal()
        self.last = self.begin = int(time.time() * 1e6)

    def add(self, kind: str, data: Mapping[str, Any]) -> Event:
        self.last = max(self.last + 1, int(time.time() * 1e6))
        if len(self.events) == KEPT:
            self.begin = self.events[0].id
        event = Event(self.last, kind, data)
        self.events.append(event)
        self.signal.ring()
        return event

    def after(self, number: int) -> list[Event] | None:
        """The events behind a number; None if some of them may not be known."""
        if not self.begin <= number <= self.last:  # the latter: the clock was set back over a restart
            return None
        found = []
        for event in reversed(self.events):
            if event.id <= number:
                break
            found.append(event)
        return found[::-1]
