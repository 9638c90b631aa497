"""The log of one task attempt, by offset: masked bytes counted from the first one, whatever was rotated since."""

from __future__ import annotations

import os

from ..runfolder import log_index
from ..runfolder import logs as files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Log:
    """A log as it is now; reading is quick and never waits."""

    def __init__(self, job: str, folder: str, stream: str, attempt: int, task_attempt: int, *, ended: bool) -> None:
        self.job, self.folder, self.stream = job, folder, stream
        self.attempt, self.task_attempt = attempt, task_attempt
        self.ended = ended
        """Whether this attempt of the task is over, so that nothing more will be written."""

    @property
    def mark(self) -> str:
        """What tells this log from all others, also of an earlier job of the same name."""
        parts = os.path.basename(os.path.dirname(os.path.dirname(self.folder)))
        return f"{self.job}-{parts}-{self.attempt}-{self.task_attempt}-{self.stream}"

    @property
    def path(self) -> str:
        """The open segment; the whole log as long as nothing was rotated."""
        return os.path.join(self.folder, self.stream)

    def begin(self) -> int:
        """The offset of the first byte that is still kept."""
        return files.begin(self.folder, self.stream)

    def size(self) -> int:
        """The offset at which the log ends."""
        return files.size(self.folder, self.stream)

    def read(self, offset: int = 0, limit: int = 65536) -> tuple[bytes, int]:
        """Up to `limit` bytes from an offset on, and the offset after them; where these are gone, from the oldest there is."""
        return files.read(self.folder, self.stream, offset, limit)

    def tail(self, size: int) -> bytes:
        """The last bytes."""
        return files.tail(self.folder, self.stream, size)

    def times(self) -> log_index.LogIndex | None:
        """When each part of it was written; None where that is not known."""
        return log_index.read(self.folder, self.stream)

    def pieces(self, offset: int = 0, end: int | None = None, limit: int = 1 << 18) -> Iterator[bytes]:
        """All that is there between two offsets, piece by piece; ends early where the rest was dropped meanwhile."""
        while end is None or offset < end:
            data, after = self.read(offset, limit if end is None else min(limit, end - offset))
            if not data or after - len(data) != offset:
                return
            offset = after
            yield data
