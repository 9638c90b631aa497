"""Lines of tasks with the time at which each was begun, and its stream."""

from __future__ import annotations

import time

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .base import View
    from .log_pieces import Piece


class TimedLine(Value):
    """A whole line; `at` is in ms since 1970. What is not known is None."""

    role: str
    index: int
    text: bytes
    at: int | None
    stderr: bool | None

    @property
    def prefix(self) -> str:
        """`2026-11-18T10:22:33.410 stderr `, in local time; `-` for what is not known."""
        stream = "-" if self.stderr is None else "stderr" if self.stderr else "stdout"
        return f"{moment(self.at)} {stream} "


def moment(at: int | None) -> str:
    """A time in local time, to the millisecond."""
    if at is None:
        return "-"
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.localtime(at / 1000))}.{at % 1000:03}"


class TimedLines:
    """Makes lines of pieces. The unfinished line of each log is kept; it is over when another attempt of the task prints."""

    def __init__(self, view: View, stream: str) -> None:
        self._view, self._stream = view, stream
        self._open: dict[tuple[str, int], tuple[Piece, bytes]] = {}

    def feed(self, piece: Piece) -> Iterator[TimedLine]:
        """The lines that end in this piece."""
        task = piece.role, piece.index
        before, rest = self._open.pop(task, (piece, b""))
        if rest and (before.attempt, before.task_attempt) != (piece.attempt, piece.task_attempt):
            yield self._line(before, before.end - len(rest), rest)
            rest = b""
        *lines, rest = (rest + piece.data).split(b"\n")
        offset = piece.end - len(rest) - sum(len(line) + 1 for line in lines)
        for line in lines:
            yield self._line(piece, offset, line)
            offset += len(line) + 1
        if rest:
            self._open[task] = piece, rest

    def finish(self) -> Iterator[TimedLine]:
        for piece, rest in self._open.values():
            yield self._line(piece, piece.end - len(rest), rest)
        self._open.clear()

    def _line(self, piece: Piece, offset: int, text: bytes) -> TimedLine:
        times = self._view.times(piece, self._stream)
        entry = times.at(offset) if times is not None else -1
        if times is None or entry < 0:
            return TimedLine(piece.role, piece.index, text, None, None)
        return TimedLine(piece.role, piece.index, text, times.times[entry], times.errors[entry])
