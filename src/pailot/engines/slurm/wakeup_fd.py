"""One descriptor for two reasons to look again: the kernel saw a file change, or the time has come."""

from __future__ import annotations

import os
import select
import struct

_IN_MODIFY, _IN_CREATE, _IN_MOVED_TO, _IN_CLOSE_WRITE = 0x2, 0x100, 0x80, 0x8
_EVENT = struct.Struct("iIII")
_libc = None


class FileNotice:
    """Files are watched by inotify, which hears nothing of what other machines write: hence the timer."""

    def __init__(self) -> None:
        self._inotify = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._timer = _call("timerfd_create", 1, os.O_NONBLOCK | os.O_CLOEXEC)  # CLOCK_MONOTONIC
        self._both = select.epoll()
        for descriptor in (self._inotify, self._timer):
            if descriptor >= 0:
                self._both.register(descriptor, select.EPOLLIN)
        self._paths: dict[int, str] = {}

    def fileno(self) -> int:
        return self._both.fileno()

    def watch(self, path: str) -> None:
        """From now on a change of the file, or of one in the folder, is told."""
        number = _call("inotify_add_watch", self._inotify, os.fsencode(path), _IN_MODIFY | _IN_CREATE | _IN_MOVED_TO)
        if number >= 0:
            self._paths[number] = path

    def arm(self, seconds: float) -> None:
        """Tell once this time is over."""
        whole = int(seconds)
        when = struct.pack("llll", 0, 0, whole, max(1, int((seconds - whole) * 1e9)))
        _call("timerfd_settime", self._timer, 0, when, None)

    def take(self) -> set[str]:
        """The watched paths that changed since the last call."""
        found = set()
        while self._inotify >= 0:
            try:
                data = os.read(self._inotify, 1 << 16)
            except BlockingIOError:
                break
            position = 0
            while position < len(data):
                number, _, _, size = _EVENT.unpack_from(data, position)
                position += _EVENT.size + size
                if number in self._paths:
                    found.add(self._paths[number])
        try:
            os.read(self._timer, 8)
        except OSError:
            pass  # not yet
        return found

    def close(self) -> None:
        self._both.close()
        for descriptor in (self._inotify, self._timer):
            if descriptor >= 0:
                os.close(descriptor)


def _call(name: str, *arguments: object) -> int:
    global _libc  # noqa: PLW0603  # loaded once
    if _libc is None:
        import ctypes

        _libc = ctypes.CDLL(None, use_errno=True)
    return int(getattr(_libc, name)(*arguments))
