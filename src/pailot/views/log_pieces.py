"""What tasks printed, in pieces as it is read, and made into whole lines: the same wherever the logs are."""

from __future__ import annotations

import warnings

from ..runfolder.logs import gap_words
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    Line: TypeAlias = tuple[str, int, str]
    """Role, index, text without its end."""
    RawLine: TypeAlias = tuple[str, int, bytes]


class Piece(Value):
    """The next bytes that an attempt of a task printed."""

    role: str
    index: int
    attempt: int
    task_attempt: int
    data: bytes
    missing: int = 0
    """Bytes before these that were rotated away before they could be read."""
    stream: str = ""
    """Named only where the streams of one task are read one by one."""
    end: int = 0
    """The offset in its log after these bytes; 0 where that is not known."""

    @property
    def task(self) -> str:
        return f"{self.role}:{self.index}"

    @property
    def gap(self) -> str:
        """What is to be said of the bytes that are missing; nothing where none are."""
        return gap_words(self.task, self.missing) if self.missing else ""


class LineAssembler:
    """Makes whole lines of pieces: each log has its own unfinished line, which is over when another attempt prints."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], dict[tuple[int, int, str], bytes]] = {}

    def feed(self, piece: Piece) -> Iterator[RawLine]:
        """The lines that end in this piece."""
        logs = self._open.setdefault((piece.role, piece.index), {})
        for earlier in [log for log in logs if log[:2] != (piece.attempt, piece.task_attempt)]:
            yield from _unfinished(piece.role, piece.index, logs.pop(earlier))
        log = (piece.attempt, piece.task_attempt, piece.stream)
        *lines, logs[log] = (logs.get(log, b"") + piece.data).split(b"\n")
        for line in lines:
            yield piece.role, piece.index, line

    def unfinished(self, piece: Piece) -> bytes:
        """What the log of a piece has printed since its last line ended."""
        logs = self._open.get((piece.role, piece.index), {})
        return logs.get((piece.attempt, piece.task_attempt, piece.stream), b"")

    def finish(self) -> Iterator[RawLine]:
        """The lines without an end."""
        for (role, index), logs in self._open.items():
            for rest in logs.values():
                yield from _unfinished(role, index, rest)
        self._open.clear()


def _unfinished(role: str, index: int, rest: bytes) -> Iterator[RawLine]:
    if rest:
        yield role, index, rest


def as_lines(pieces: Iterable[Piece]) -> Iterator[Line]:
    """Whole lines of text; a gap is a warning."""
    assembler = LineAssembler()
    for piece in pieces:
        if piece.missing:
            _warn(piece.gap)
        for role, index, line in assembler.feed(piece):
            yield role, index, line.decode(errors="replace")
    for role, index, line in assembler.finish():
        yield role, index, line.decode(errors="replace")


def _warn(words: str) -> None:
    warnings.warn(words, RuntimeWarning, stacklevel=3)
