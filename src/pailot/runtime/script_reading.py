"""How far bash has read a script: bash reads a pipe byte by byte, so that what is left in it tells which command ended it.

The pipe stands under the name of the script until bash has opened it; then the file takes the name. So nothing of the
script changes, neither `$0` nor a trap, an option or a line number, and the script cannot take our means away.
"""

from __future__ import annotations

import array
import fcntl
import os
import termios

from ..lifecycle.script_items import LONGEST_SCRIPT

_END = b"\0"
"""Bash skips it, but reads it only after the last command: who ended there was not ended by a command."""
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.9 does not name
_PAGE_BYTES, _USUAL_BYTES = 4096, 65_536


class Reading:
    """A script on its way to bash. `descriptor` is writable when there is something to do."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.data = path, text.encode() + _END
        self.file = f"{path}.whole"
        self.left = memoryview(self.data)
        self.begun = False
        os.rename(path, self.file)
        try:
            os.mkfifo(path, 0o600)
            self.reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self.descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            os.rename(self.file, path)
            raise
        # With room for one piece, it is writable again only when bash has opened it and read the first byte.
        fcntl.fcntl(self.descriptor, _SET_PIPE_SIZE, _PAGE_BYTES)
        os.write(self.descriptor, self.left[:1])
        self.left = self.left[1:]

    def pump(self) -> bool:
        """Bash reads: hand on more of the script; returns whether that was all."""
        if not self.begun:
            self._take_the_name()
            try:
                fcntl.fcntl(self.descriptor, _SET_PIPE_SIZE, _USUAL_BYTES)
            except OSError:
                pass  # its user has too many large pipes: in small pieces, then
        try:
            self.left = self.left[os.write(self.descriptor, self.left) :]
        except BlockingIOError:
            pass  # bash has not read what it has
        return not self.left

    def _take_the_name(self) -> None:
        self.begun = True
        os.rename(self.file, self.path)

    def close_writer(self) -> None:
        os.close(self.descriptor)
        self.descriptor = -1

    def finish(self) -> int | None:
        """The last line that bash has read, counted from 1, once it has ended; None where that does not tell of a command."""
        unread = array.array("i", [0])
        fcntl.ioctl(self.reader, termios.FIONREAD, unread)
        os.close(self.reader)
        if self.descriptor >= 0:
            self.close_writer()
        if not self.begun:
            self._take_the_name()
        read = self.data[: len(self.data) - len(self.left) - unread[0]]
        return read.count(b"\n") if read.endswith(b"\n") else None


def reading(path: str, text: str) -> Reading | None:
    """The file at `path`, on its way to bash through a pipe; None where it is read as it is."""
    if len(text) > LONGEST_SCRIPT or "\0" in text:
        return None
    try:
        return Reading(path, text)
    except OSError:
        return None  # a file system without pipes, or a system without their sizes
