"""What a task prints: from its pipes into its logs."""

from __future__ import annotations

import fcntl
import os
import select

from ..runfolder import layout
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.logs import LogWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .task_spec import Task

FIRST_CHUNK_BYTES, CHUNK_BYTES = 1 << 15, 1 << 18
"""Most tasks print little. A large piece of memory is only asked for where a small one was filled."""
_F_SETPIPE_SZ = 1031


class Output:
    """The pipes of one task attempt after another, served by the poller that is given."""

    def __init__(self, task: Task, poller: select.poll, grown: Callable[[], None]) -> None:
        self.task, self.poller, self.grown = task, poller, grown
        self.pipes: dict[int, str] = {}
        """The ends that we read, and the streams that they are."""
        self.writers: dict[str, int] = {}
        self.size = 0
        """How much was written into the logs that are open, or were the last to be."""
        self.broken = ""
        """Why the logs cannot be written any more."""
        self._logs: LogWriter | None = None
        self._chunk_bytes = FIRST_CHUNK_BYTES

    def open(self, folder: str, new_stream: Callable[[str], tuple[int, int]], *, fresh: bool = False) -> None:
        """Begin to write the logs in a folder; in a fresh one there are none yet."""
        self._logs = LogWriter(folder, self.task.hidden, self.task.rotate_bytes, fresh=fresh)
        self.size = self._logs.offset(layout.ALL)
        for stream in (layout.STDOUT, layout.STDERR):
            reader, writer = new_stream(stream)
            os.set_blocking(reader, False)
            _widen(reader)
            self.pipes[reader] = stream
            self.writers[stream] = writer
            self.poller.register(reader, select.POLLIN)

    def close(self) -> None:
        """Everything that is still in the pipes, then the end of the logs."""
        for writer in self.writers.values():
            os.close(writer)
        self.writers.clear()
        for reader in list(self.pipes):
            while self.pump(reader):
                pass
            self._drop(reader)
        if self._logs is None:
            return
        try:
            self._logs.close()
        except OSError as error:
            self._trouble(error)
        self._tell_if_grown(self._logs)
        self._logs = None

    def pump(self, reader: int) -> bool:
        """Move what is there; return whether there may be more."""
        try:
            data = os.read(reader, self._chunk_bytes)
        except BlockingIOError:
            return False
        if len(data) == self._chunk_bytes:
            self._chunk_bytes = CHUNK_BYTES
        if not data:
            self._drop(reader)
            return False
        self._write(self.pipes[reader], data)
        return True

    def line(self, text: str) -> None:
        """A line of our own among what the task prints."""
        self._write(layout.STDERR, text.encode() + b"\n")

    def _write(self, stream: str, data: bytes) -> None:
        if self._logs is None or self.broken:
            return
        try:
            self._logs.write(stream, data)
        except OSError as error:
            self._trouble(error)
        self._tell_if_grown(self._logs)

    def _tell_if_grown(self, logs: LogWriter) -> None:
        before, self.size = self.size, logs.offset(layout.ALL)
        if self.size > before:
            self.grown()

    def _drop(self, reader: int) -> None:
        if reader in self.pipes:
            self.poller.unregister(reader)
            os.close(reader)
            del self.pipes[reader]

    def _trouble(self, error: OSError) -> None:
        if not self.broken:
            # The space kept in reserve is for the record of the end: whatever else is still printed would eat it up.
            words = "its log could not be written"
            self.broken = f"{DISK_FULL}: {words}" if is_full(error) else f"{words}: {error.strerror}"


def _widen(pipe: int) -> None:
    """Room for more output at once: fewer switches between the task and us."""
    try:
        fcntl.fcntl(pipe, _F_SETPIPE_SZ, 1 << 18)
    except OSError:
        pass  # the user has reached a limit; it works as it is
