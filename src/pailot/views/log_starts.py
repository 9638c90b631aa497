"""Where in a log to begin to read: at its last lines, or at what was printed since a time."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..runfolder.log_index import LogIndex

STEP_BYTES = 1 << 16


class LogText:
    """One log: what is kept of it, read from anywhere."""

    def __init__(self, begin: int, end: int, read: Callable[[int, int], bytes], times: Callable[[], LogIndex | None]) -> None:
        self.begin, self.end, self.read, self.times = begin, end, read, times

    def start(self, tail: int | None, not_before: float | None) -> int:
        """The offset of the first line wanted: of the last `tail` lines, of those begun at a time or later."""
        start = self.begin if tail is None else self._last_lines(tail)
        return start if not_before is None else max(start, self._since(not_before))

    def _last_lines(self, count: int) -> int:
        if count <= 0:
            return self.end
        at, left = self.end, count + 1  # the line end of the last line is not one between two lines
        if at > self.begin and self.read(at - 1, 1) != b"\n":
            left -= 1
        while at > self.begin:
            size = min(STEP_BYTES, at - self.begin)
            data = self.read(at - size, size)
            if not data:
                return at
            ends = data.count(b"\n")
            if ends >= left:
                position = len(data)
                for _ in range(left):
                    position = data.rfind(b"\n", 0, position)
                return at - size + position + 1
            left -= ends
            at -= size
        return self.begin

    def _since(self, moment: float) -> int:
        times = self.times()
        if times is None or not times.offsets:
            return self.begin
        start = times.since(int(moment * 1000))
        if start is None:
            return self.end
        if start <= self.begin or self.read(start - 1, 1) == b"\n":
            return max(start, self.begin)
        while start < self.end:  # in the middle of a line that was begun earlier
            data = self.read(start, STEP_BYTES)
            found = data.find(b"\n")
            if found >= 0 or not data:
                return start + found + 1
            start += len(data)
        return self.end
