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
"""Beyond a crowd of watchers, news that comes often waits this long for more: otherwise 500 followers of one log keep the whole
server busy, and new connections wait."""


class Signal:
    """Wakes everyone who waits; what happened is to be found out by looking."""

    def __init__(self) -> None:
        self.count = 0
        self._next: asyncio.Future[None] | None = None
        self._soon: asyncio.TimerHandle | None = None

    def ring_soon(self, watchers: int) -> None:
        """At once for a few; for many once for all that happens within a moment, the longer the more they are."""
        if watchers <= CROWD:
            self.ring()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(capped(watchers * SECONDS_A_WATCHER), self.ring)

    def ring(self) -> None:
        self.count += 1
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


class Row:
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
