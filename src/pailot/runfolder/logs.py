"""The logs of one task attempt: `stdout`, `stderr` and `all`, the two in order of arrival.

Offsets count masked bytes from the first one, for ever: a reader goes on where it was, whatever has been rotated meanwhile.
A full segment is renamed to `<stream>.<offset of its first byte>`; where the last of these ends the open file begins.
"""

from __future__ import annotations

import os

from . import careful_files
from .layout import ALL, STDERR, STDOUT, STREAMS
from .log_index import IndexWriter
from .masking import Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_DIGITS = 15  # a petabyte; only for the eye, names are read as numbers


class LogWriter:
    """Writes what a task prints, its secrets masked. What `write` has returned from is in the files, but for a held-back tail.

    `secrets` may be a `Masker` made before, which saves preparing one for each task. A `fresh` folder has no logs yet.
    """

    def __init__(
        self, folder: str, secrets: Iterable[str] | Masker, rotate_bytes: int = 0, keep: int = 4, *, fresh: bool = False
    ) -> None:
        masker = secrets if isinstance(secrets, Masker) else Masker(secrets)
        self._maskers = {stream: masker.twin() for stream in STREAMS if stream != ALL}
        # The youngest old segment says where the open one begins: one is always kept.
        self._files = {stream: _File(folder, stream, rotate_bytes, max(keep, 1), fresh) for stream in STREAMS}
        self._index = IndexWriter(folder, self._files[STDOUT].offset, fresh=fresh)

    def write(self, stream: str, data: bytes) -> None:
        """Add what came out of a stream. An OSError (the disk is full) leaves the offsets telling what was written."""
        self._put(stream, self._maskers[stream].feed(data))

    def flush(self, stream: str = ALL) -> None:
        """Write what was held back because it looked like the beginning of a secret: at the end of a stream, or of both."""
        for name, masker in self._maskers.items():
            if stream in (name, ALL):
                self._put(name, masker.flush())

    def close(self) -> None:
        """Flush, and give up the files; they are given up even if they cannot be written."""
        try:
            self.flush()
        finally:
            self._index.close()
            for file in self._files.values():
                file.close()

    def offset(self, stream: str) -> int:
        """How many masked bytes were written so far."""
        return self._files[stream].offset

    def _put(self, stream: str, masked: bytes) -> None:
        if masked:
            everything = self._files[ALL]
            self._index.note(stream == STDERR, everything.offset)  # first: what a reader sees of the log has its time
            self._files[stream].write(masked)
            everything.write(masked)


class _File:
    """One log file, written without a buffer."""

    def __init__(self, folder: str, stream: str, rotate_bytes: int, keep: int, fresh: bool) -> None:
        self._folder = folder
        self._stream = stream
        self._path = os.path.join(folder, stream)
        self._rotate_bytes = rotate_bytes
        self._keep = keep
        self._start = 0 if fresh else _end(folder, _segments(folder, stream))
        self._descriptor = self._open()
        self.offset = 0 if fresh else self._start + os.fstat(self._descriptor).st_size

    def _open(self) -> int:
        return careful_files.open_own(self._path, os.O_WRONLY | os.O_APPEND)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            piece = view
            if self._rotate_bytes > 0:
                if self.offset - self._start >= self._rotate_bytes:
                    self._rotate()
                piece = view[: self._rotate_bytes - (self.offset - self._start)]
            if self._descriptor < 0:
                self._descriptor = self._open()
            written = os.write(self._descriptor, piece)
            self.offset += written
            view = view[written:]

    def _rotate(self) -> None:
        """Put the full segment aside. If the new one cannot be opened, the next write tries again."""
        os.rename(self._path, os.path.join(self._folder, f"{self._stream}.{self._start:0{_DIGITS}}"))
        self._start = self.offset
        self.close()
        self._descriptor = self._open()
        for _, name in _segments(self._folder, self._stream)[: -self._keep]:
            try:
                os.unlink(os.path.join(self._folder, name))
            except OSError:
                pass  # it is tried again at the next rotation

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


def read(folder: str, stream: str, offset: int, limit: int = 65536) -> tuple[bytes, int]:
    """Up to `limit` bytes from an offset on, and the offset after them; where these are gone, from the oldest there is.

    Nothing at the end of the log, where the offset stays as it is: ask again. The writer may be at work meanwhile.
    """
    if limit <= 0:
        return b"", offset
    offset = max(offset, 0)
    pieces: list[bytes] = []
    while True:
        segments, current = _look(folder, stream)
        try:
            begin = _end(folder, segments)
            ends = [start for start, _ in segments[1:]] + [begin]
            for (start, name), end in zip(segments, ends):  # noqa: B905  # Python 3.9 has no `strict`
                if offset < start:
                    if pieces:  # full, or the next one has gone meanwhile: what is returned has no hole
                        return b"".join(pieces), offset
                    offset = start
                while offset < end and limit > 0:
                    piece = _read_at(os.path.join(folder, name), offset - start, min(limit, end - offset))
                    if not piece:  # another process cut it short; a reader that waits for the rest would wait for ever
                        if pieces:
                            return b"".join(pieces), offset
                        offset = end
                    pieces.append(piece)
                    offset += len(piece)
                    limit -= len(piece)
            while current >= 0 and limit > 0 and offset >= begin:
                piece = os.pread(current, limit, offset - begin)
                if not piece:
                    break
                pieces.append(piece)
                offset += len(piece)
                limit -= len(piece)
            return b"".join(pieces), offset
        except FileNotFoundError:
            continue  # the oldest segment went between two looks; what we have of it is ours
        finally:
            if current >= 0:
                os.close(current)


class Reader:
    """Reads a log from its beginning on, and tells what was rotated away before it was read.

    Two halves of lines are never glued: after a gap the line that was open is ended, and the rest of one whose beginning is
    gone is left out, and counts as missing, too.
    """

    def __init__(self, folder: str, stream: str) -> None:
        self.folder, self.stream = folder, stream
        self.offset = 0
        self._line_open = False

    def read(self, limit: int = 65536) -> tuple[bytes, int]:
        """The next bytes to show, nothing at the end; and how many before them are missing."""
        missing = 0
        while True:
            before = self.offset
            data, self.offset = read(self.folder, self.stream, before, limit)
            gap = self.offset - len(data) - before
            more = bool(data)
            if gap:
                data, left_out = after_gap(data, line_open=self._line_open)
                missing += gap + left_out
                self._line_open = False
            if data:
                self._line_open = not data.endswith(b"\n")
            if data or not more:
                return data, missing


def after_gap(data: bytes, *, line_open: bool) -> tuple[bytes, int]:
    """What is shown of the first bytes after a gap, and how many of them are not; `line_open`: the last line shown had no end.

    >>> after_gap(b"rest of a line\\nnext\\n", line_open=True)
    (b'\\nnext\\n', 15)
    """
    end = data.find(b"\n") + 1  # where there is none, half a line is better than nothing
    return (b"\n" if line_open else b"") + data[end:], end


def gap_words(task: str, missing: int) -> str:
    """What a follower says of a gap."""
    return f"{task}: {missing} bytes of its log were rotated away before they could be read"


def tail(folder: str, stream: str, size: int) -> bytes:
    """The last `size` bytes of a log, or all that is kept of it."""
    return read(folder, stream, _size(folder, stream) - size, size)[0] if size > 0 else b""


def size(folder: str, stream: str) -> int:
    """The offset at which the log ends: how much was ever written, whatever is still kept."""
    return _size(folder, stream)


def begin(folder: str, stream: str) -> int:
    """The offset of the first byte that is still kept."""
    segments = _segments(folder, stream)
    return segments[0][0] if segments else 0


def _size(folder: str, stream: str) -> int:
    while True:
        segments, current = _look(folder, stream)
        try:
            return _end(folder, segments) + (os.fstat(current).st_size if current >= 0 else 0)
        except FileNotFoundError:
            continue  # as above
        finally:
            if current >= 0:
                os.close(current)


def _look(folder: str, stream: str) -> tuple[list[tuple[int, str]], int]:
    """The old segments, and the open file that follows them (-1: not there yet), as they were at one moment."""
    path = os.path.join(folder, stream)
    while True:
        try:
            current = careful_files.open_regular(path)
        except (FileNotFoundError, careful_files.Spoilt):
            segments = _segments(folder, stream)
            # The writer is between two files. Had it gone on while we looked, the first look might have missed a name.
            if _segments(folder, stream) == segments:
                return segments, -1
            continue
        segments = _segments(folder, stream)
        try:
            # Still the same file: nothing was renamed while we looked. (Its number cannot be used anew, we hold it open.)
            if os.path.samestat(os.lstat(path), os.fstat(current)):
                return segments, current
        except FileNotFoundError:
            pass  # being rotated just now
        os.close(current)


def _segments(folder: str, stream: str) -> list[tuple[int, str]]:
    """Start offset and name of the old segments, oldest first."""
    prefix = stream + "."
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    found = (name for name in names if name.startswith(prefix) and name[len(prefix) :].isdecimal())
    return sorted((int(name[len(prefix) :]), name) for name in found)


def _end(folder: str, segments: list[tuple[int, str]]) -> int:
    """Where the last old segment ends."""
    if not segments:
        return 0
    start, name = segments[-1]
    return start + os.lstat(os.path.join(folder, name)).st_size


def _read_at(path: str, offset: int, limit: int) -> bytes:
    try:
        descriptor = careful_files.open_regular(path)
    except careful_files.Spoilt:
        return b""
    try:
        return os.pread(descriptor, limit, offset)
    finally:
        os.close(descriptor)
