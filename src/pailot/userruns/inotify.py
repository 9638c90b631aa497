"""Waiting for files to change, by the kernel's own notification (inotify); a slow look where there is none."""

from __future__ import annotations

import os
import select
import struct

from ..lifecycle.waits import milliseconds

_MODIFY_OR_NEW = 0x00000002 | 0x00000100 | 0x00000080  # modified, created, moved here


class Watch:
    """Folders to be told about."""

    def __init__(self) -> None:
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched: dict[str, int] = {}

    def add(self, folder: str) -> None:
        if self._descriptor < 0 or folder in self._watched or not os.path.isdir(folder):
            return
        number = self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MODIFY_OR_NEW)
        if number >= 0:
            self._watched[folder] = number

    def keep(self, folders: set[str]) -> None:
        """Be told nothing about other folders any more."""
        for folder in set(self._watched) - folders:
            self._libc.inotify_rm_watch(self._descriptor, self._watched.pop(folder))

    def wait(self, seconds: float, also: int = -1) -> set[str]:
        """Until something changed, or the time is up (a network file system tells nothing), or `also` is readable.

        Answers the folders in which something is known to have changed.
        """
        poller = select.poll()  # unlike select, for descriptors beyond 1024 too
        if also >= 0:
            poller.register(also, select.POLLIN)
        if self._descriptor < 0:
            poller.poll(milliseconds(min(seconds, 0.25)))
            return set(self._watched)
        poller.register(self._descriptor, select.POLLIN)
        if not any(found == self._descriptor for found, _ in poller.poll(milliseconds(seconds))):
            return set()

        data, at, numbers = os.read(self._descriptor, 1 << 16), 0, set()
        while at < len(data):
            number, _, _, length = struct.unpack_from("iIII", data, at)
            numbers.add(number)
            at += 16 + length
        return {folder for folder, number in self._watched.items() if number in numbers}

    def close(self) -> None:
        """Be told nothing any more."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
