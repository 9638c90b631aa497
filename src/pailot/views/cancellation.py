"""Ending a wait from another thread."""

from __future__ import annotations

import os
import select

from ..lifecycle.waits import milliseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import RLock


class Quit:
    """Ends a wait from another thread. It takes a lock and descriptors only where something is waited for with them."""

    def __init__(self) -> None:
        self.is_set = False
        self._then: list[Callable[[], object]] = []
        self._pipe: tuple[int, int] | None = None
        self._made: dict[str, RLock] = {}

    @property
    def _lock(self) -> RLock:
        """Made by the first that waits, before it looks whether `set` was called: what `set` does not see looks after it."""
        if "lock" not in self._made:
            from threading import RLock

            self._made.setdefault("lock", RLock())  # a signal handler may call `set` while it is held
        return self._made["lock"]

    @property
    def reader(self) -> int:
        """Readable when it is set."""
        with self._lock:
            if self._pipe is None:
                self._pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                if self.is_set:
                    os.write(self._pipe[1], b"!")
            return self._pipe[0]

    def set(self) -> None:
        if self.is_set:
            return
        self.is_set = True
        if not self._made:
            return  # no wait has begun
        with self._lock:
            if self._pipe is not None:
                os.write(self._pipe[1], b"!")
            told, self._then = self._then, []
        for work in told:
            work()

    def then(self, work: Callable[[], object]) -> None:
        """Have something done when it is set; at once if it is."""
        with self._lock:
            if not self.is_set:
                self._then.append(work)
                return
        work()

    def wait(self, seconds: float) -> None:
        """Until it is set, or the time is up."""
        poller = select.poll()
        poller.register(self.reader, select.POLLIN)
        poller.poll(milliseconds(seconds))

    def close(self) -> None:
        """No wait is left."""
        if not self._made:
            return
        with self._lock:
            pipe, self._pipe = self._pipe, None
        for descriptor in pipe or ():
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()
