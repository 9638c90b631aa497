"""Runs of this machine that are waited for together: one thread and one watch for any number of them.

The kernel gives a user few watches that are open at once, and threads cost memory. The thread ends with the last wait.
"""

from __future__ import annotations

import os
import threading
import time

from ..userruns.inotify import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .local import LocalView

_lock = threading.Lock()
_now: _Crowd | None = None


def join(view: LocalView, tell: Callable[[BaseException | None], None]) -> Callable[[], None]:
    """Have `tell` called once when a run is over, from another thread; returns what to call to end the wait."""
    global _now  # noqa: PLW0603  # one of them for the process
    with _lock:
        if _now is None or _now.process != os.getpid():
            _now = _Crowd()
            _now.start()
        crowd = _now
        number = crowd.add(view, tell)
    return lambda: crowd.leave(number)


class _Crowd(threading.Thread):
    def __init__(self) -> None:
        super().__init__(daemon=True, name="runs that coroutines wait for")
        self.process = os.getpid()
        self.members: dict[int, tuple[LocalView, Callable[[BaseException | None], None]]] = {}
        self.new: set[int] = set()
        self._count = 0
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._watch = Watch()

    def add(self, view: LocalView, tell: Callable[[BaseException | None], None]) -> int:
        """With the lock held."""
        self._count += 1
        self.members[self._count] = view, tell
        self.new.add(self._count)
        self._poke()
        return self._count

    def leave(self, number: int) -> None:
        with _lock:
            if self.members.pop(number, None) is not None:
                self._poke()

    def _poke(self) -> None:
        try:
            os.write(self._writer, b"!")
        except BlockingIOError:
            pass  # enough wake-up calls are waiting

    def run(self) -> None:
        global _now  # noqa: PLW0603  # as above
        look, changed = 0.0, set[str]()
        try:
            while True:
                with _lock:
                    if not self.members:
                        _now = None if _now is self else _now
                        return
                    members, new = dict(self.members), self.new
                    self.new = set()
                everyone = time.monotonic() >= look
                if everyone:
                    look = time.monotonic() + min(view.LOOK_SECONDS for view, _ in members.values())
                    self._watch.keep({view.folder.path for view, _ in members.values()})
                for number, (view, tell) in members.items():
                    if number in new:
                        self._watch.add(view.folder.path)
                    if everyone or number in new or view.folder.path in changed:
                        self._look(number, view, tell)
                changed = self._watch.wait(look - time.monotonic(), self._reader)
                self._drain()
        finally:
            self._watch.close()
            os.close(self._reader)
            os.close(self._writer)

    def _look(self, number: int, view: LocalView, tell: Callable[[BaseException | None], None]) -> None:
        try:
            if not view.is_over():
                return
            error = None
        except Exception as problem:  # the wait for this run raises it; the others go on
            error = problem
        with _lock:
            wanted = self.members.pop(number, None)
        if wanted is not None:
            tell(error)

    def _drain(self) -> None:
        try:
            os.read(self._reader, 1 << 16)
        except BlockingIOError:
            pass  # there was no wake-up call
