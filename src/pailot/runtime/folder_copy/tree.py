"""Bringing what is written in a folder to a copy of it on another machine, piece after piece, where none sees the other's.

Logs and journals only grow, so of these what is new is brought; records (`*.json`) are small and are brought whole. The
journal `events` is read first and brought last: what the journal in the copy mentions is found there.
"""

from __future__ import annotations

import os
import stat

from ...runfolder import layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PIECE = 48 << 10
WHOLE = -1
"""As an offset: this is all of the file."""
REPLACED = frozenset((layout.USAGE, layout.LOG_INDEX))
"""Files that grow, and are written anew when they are full: such a new one is brought whole."""
EVENTS = layout.DRIVER_EVENTS
LEFT_OUT = frozenset(
    (
        layout.DRIVER_ORDERS,
        layout.DRIVER_LOCK,
        layout.SECRETS_ONCE,
        layout.PAYLOAD,
        layout.SLURM_JOB,
        layout.FOLLOWED,
        layout.MIRROR_LOCK,
        layout.MIRROR_LOG,
    )
)
"""What belongs to one side alone."""


class Tree:
    """The files of a folder, and how far each was brought."""

    def __init__(self, folder: str, have: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        self.sizes = dict(have or {})
        self._marks: dict[str, tuple[int, int, int]] = {}

    def files(self) -> list[str]:
        """All paths; not those in the working directories, which are the user's."""
        found: list[str] = []
        for parent, folders, names in os.walk(self.folder):
            folders[:] = [each for each in folders if each != layout.WORK]
            wanted = [name for name in names if not name.startswith(".") and name not in LEFT_OUT]
            found += [os.path.relpath(os.path.join(parent, name), self.folder) for name in wanted]
        return found

    def news(self) -> Iterator[tuple[str, int, bytes]]:
        """Path, offset and bytes of all that is new."""
        known = _state(os.path.join(self.folder, EVENTS))
        for path in self.files():
            if path != EVENTS:
                yield from self._of(path)
        if known is not None:
            yield from self._of(EVENTS, known.st_size)

    def _of(self, path: str, end: int | None = None) -> Iterator[tuple[str, int, bytes]]:
        full = os.path.join(self.folder, path)
        state = _state(full)
        if state is None:
            return
        if path.endswith(".json"):
            mark = state.st_ino, state.st_size, state.st_mtime_ns
            if self._marks.get(path) != mark:
                self._marks[path] = mark
                data = _read(full, 0, state.st_size)
                if data:
                    yield path, WHOLE, data
            return
        size = state.st_size if end is None else end
        if os.path.basename(path) in REPLACED and self._marks.get(path, (0,))[0] != state.st_ino:
            self._marks[path] = state.st_ino, 0, 0
            data = _read(full, 0, size)
            self.sizes[path] = len(data)
            yield path, WHOLE, data
            return
        offset = self.sizes.get(path, -1)
        if offset < 0:
            self.sizes[path] = offset = 0
            yield path, 0, b""  # it is there, although nothing is in it yet
        while offset < size:
            data = _read(full, offset, min(PIECE, size - offset))
            if not data:
                return
            yield path, offset, data
            offset += len(data)
            self.sizes[path] = offset


def put(folder: str, path: str, offset: int, data: bytes) -> None:
    """Write a piece where it belongs in the copy."""
    if os.path.isabs(path) or ".." in path.split("/"):
        raise ValueError(f"{path} is not below the folder")
    full = os.path.join(folder, path)
    os.makedirs(os.path.dirname(full), mode=0o700, exist_ok=True)
    if offset == WHOLE:
        temporary = os.path.join(os.path.dirname(full), f".{os.path.basename(full)}.{os.getpid()}")
        _write(temporary, os.O_TRUNC, 0, data)
        os.rename(temporary, full)
    else:
        _write(full, 0, offset, data)


def _state(path: str) -> os.stat_result | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _read(path: str, offset: int, size: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)


def _write(path: str, flags: int, offset: int, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
    try:
        while data:
            written = os.pwrite(descriptor, data, offset)
            offset, data = offset + written, data[written:]
    finally:
        os.close(descriptor)
