"""When each part of a log was written, and on which stream: one small file beside the logs of a task attempt.

An entry holds an offset of the log `all`, a time and a stream. It is about all bytes up to the next entry. What is printed on one
stream within 10 ms has one entry. A full file is written anew: the newest entries stay, and of the older ones neighbours of one
stream become one. So times that are long past become coarser. Where streams alternate too fast for that, the oldest entries go.
"""

from __future__ import annotations

import os
import struct
import time

from . import careful_files
from .layout import ALL, LOG_INDEX, STDERR, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Record = tuple[int, int]
    """Twice the offset, plus one for stderr; the time in ticks."""

MAX_BYTES = 600_000
TICK_MILLISECONDS = 10
_HEADER = struct.Struct("<4sQQ")
"""A mark, the time at which ticks begin (ms since 1970), and the offset of stdout at the first entry."""
_MARK = b"LIX1"
_RECORD = struct.Struct("<QI")
MAX_ENTRIES = (MAX_BYTES - _HEADER.size) // _RECORD.size
_LAST_TICK = 0xFFFFFFFF
_WIDEST_TICKS = 360_000
"""An hour: entries of one stream that are further apart are never joined."""


class IndexWriter:
    """Notes what `LogWriter` writes. It opens its file at the first entry. If it cannot write, the log goes on without it."""

    def __init__(self, folder: str, stdout_offset: int, *, fresh: bool, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._stdout_offset, self._fresh, self._clock = folder, stdout_offset, fresh, clock
        self._descriptor = -1
        self._broken = False
        self._begin_ms = self._tick = self._count = 0
        self._stderr = -1
        self._width = 2

    def note(self, stderr: int, offset: int) -> None:
        """What is written next begins at this offset of `all`; `stderr` is 0 or 1."""
        tick = (int(self._clock() * 1000) - self._begin_ms) // TICK_MILLISECONDS
        if self._broken or (tick <= self._tick and stderr == self._stderr):
            return
        try:
            self._add(stderr, offset, tick)
        except OSError:
            self.close()
            self._broken = True

    def _add(self, stderr: int, offset: int, tick: int) -> None:
        head = b""
        if self._descriptor < 0:
            head = self._open(tick * TICK_MILLISECONDS)
            tick = 0 if head else tick - self._begin_ms // TICK_MILLISECONDS
        elif self._count >= MAX_ENTRIES:
            self._make_room()
        self._tick = min(max(tick, self._tick), _LAST_TICK)
        self._stderr = stderr
        data = head + _RECORD.pack(offset << 1 | stderr, self._tick)
        if os.write(self._descriptor, data) < len(data):
            raise OSError("the disk is full")
        self._count += 1

    def _open(self, now_ms: int) -> bytes:
        """Open the file. Returns the header of a new one."""
        self._descriptor = careful_files.open_own(os.path.join(self._folder, LOG_INDEX), os.O_RDWR | os.O_APPEND)
        size = 0 if self._fresh else os.fstat(self._descriptor).st_size
        head = os.pread(self._descriptor, _HEADER.size, 0) if _HEADER.size <= size <= MAX_BYTES else b""
        if head[:4] == _MARK:
            self._count, half = divmod(size - _HEADER.size, _RECORD.size)
            if half:
                os.ftruncate(self._descriptor, size - half)
            self._begin_ms = _HEADER.unpack(head)[1]
            if self._count:
                self._tick = _RECORD.unpack(os.pread(self._descriptor, _RECORD.size, size - half - _RECORD.size))[1]
            return b""
        if not self._fresh:
            os.ftruncate(self._descriptor, 0)
        self._begin_ms = now_ms
        return _HEADER.pack(_MARK, now_ms, self._stdout_offset)

    def _make_room(self) -> None:
        data = os.pread(self._descriptor, MAX_BYTES, 0)
        _, _, stdout_offset = _HEADER.unpack_from(data)
        records = list(_RECORD.iter_unpack(data[_HEADER.size : _HEADER.size + self._count * _RECORD.size]))
        kept, self._width = coarser(records, MAX_ENTRIES, self._width)
        first = kept[0][0]
        gone = [each for each in records if each[0] < first]
        ends = [each[0] >> 1 for each in [*gone[1:], kept[0]]]
        lost = sum(end - (word >> 1) for (word, _), end in zip(gone, ends) if not word & 1)  # noqa: B905  # Python 3.9
        written = _HEADER.pack(_MARK, self._begin_ms, stdout_offset + lost) + b"".join(_RECORD.pack(*each) for each in kept)
        folder = careful_files.open_folder(self._folder)
        try:
            temporary = f".{LOG_INDEX}.{os.getpid()}"
            careful_files.write_new(folder, temporary, written)
            os.rename(temporary, LOG_INDEX, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(folder)
        os.close(self._descriptor)
        self._descriptor = -1
        self._descriptor = careful_files.open_own(os.path.join(self._folder, LOG_INDEX), os.O_RDWR | os.O_APPEND)
        self._count = len(kept)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def coarser(records: Sequence[Record], limit: int, width: int) -> tuple[list[Record], int]:
    """At most about seven eighths of `limit` records: the newest quarter as it is, older ones of one stream joined.

    Returns them and the number of ticks that was needed to join, for the next time.
    """
    newest = limit // 4
    old, new = list(records[:-newest]), list(records[-newest:])
    most = limit * 5 // 8
    while len(old) > most and width <= _WIDEST_TICKS:
        joined: list[Record] = []
        stream, until = -1, -1
        for record in old:
            if record[0] & 1 != stream or record[1] >= until:
                joined.append(record)
                stream, until = record[0] & 1, record[1] + width
        old = joined
        width = width * 2 if len(old) > most else width
    return old[-most:] + new, min(width, _WIDEST_TICKS)


class LogIndex:
    """The entries of one stream of a log, by offset of that stream."""

    def __init__(self, offsets: list[int], times: list[int], errors: list[bool]) -> None:
        self.offsets, self.times, self.errors = offsets, times, errors
        """Where each entry begins, when it was written (ms since 1970), and whether on stderr."""

    def at(self, offset: int) -> int:
        """The number of the entry that an offset belongs to; -1 before the first."""
        from bisect import bisect_right  # every run loads this module to write; only readers need it

        return bisect_right(self.offsets, offset) - 1

    def time(self, offset: int) -> int | None:
        """When the byte at an offset was written, in ms since 1970; None if that is not known."""
        found = self.at(offset)
        return self.times[found] if found >= 0 else None

    def since(self, milliseconds: int) -> int | None:
        """The offset of the first byte written at that time or later; None where there is none such."""
        from bisect import bisect_left

        found = bisect_left(self.times, milliseconds)
        return self.offsets[found] if found < len(self.offsets) else None


def read(folder: str, stream: str = ALL) -> LogIndex | None:
    """The index of a log in the folder of a task attempt; None if there is none that can be believed."""
    try:
        data = careful_files.read_regular(os.path.join(folder, LOG_INDEX), MAX_BYTES)
        mark, begin, stdout = _HEADER.unpack_from(data)
    except (OSError, struct.error):
        return None
    if mark != _MARK:
        return None
    whole = len(data) - (len(data) - _HEADER.size) % _RECORD.size
    offsets: list[int] = []
    times: list[int] = []
    errors: list[bool] = []
    before, earlier, was_error = -1, -1, False
    for word, tick in _RECORD.iter_unpack(memoryview(data)[_HEADER.size : whole]):
        offset, is_error = word >> 1, bool(word & 1)
        if offset < before or tick < earlier:
            break  # no writer of ours
        if before >= 0 and not was_error:
            stdout += offset - before
        before, earlier, was_error = offset, tick, is_error
        if stream == ALL:
            offsets.append(offset)
        elif (stream == STDERR) != is_error:
            continue
        else:
            offsets.append(stdout if stream == STDOUT else offset - stdout)
        times.append(begin + tick * TICK_MILLISECONDS)
        errors.append(is_error)
    return LogIndex(offsets, times, errors)
