"""A folder that a task may change at any moment, as a tar archive: what `unpacking` takes, and nothing that it refuses."""

from __future__ import annotations

import os
import stat
import tarfile

from .folders import CHUNK_BYTES, open_regular_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO, Protocol

    class Sink(Protocol):
        """Takes bytes."""

        def write(self, data: bytes, /) -> object: ...


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEEPEST = 100


def pack_below(folder: int, out: Sink, count: Callable[[int], object] = lambda _: None) -> None:
    """Write what is in an open folder as a tar archive, in the order of names.

    Links are packed as links where they stay inside; those that lead out are left out, as are sockets, pipes and devices.
    """
    with tarfile.open(fileobj=_Writer(out), mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]  # a stream is only written to
        _pack(folder, "", archive, count)


def size_below(folder: int) -> int:
    """How many bytes the files in an open folder hold."""
    total = 0
    for _, _, files, here in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in files:
            try:
                found = os.lstat(name, dir_fd=here)
            except OSError:
                continue  # gone meanwhile
            total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


class _Writer:
    def __init__(self, out: Sink) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(data)
        return len(data)


def _pack(folder: int, below: str, archive: tarfile.TarFile, count: Callable[[int], object]) -> None:
    if below.count("/") > DEEPEST:
        return
    for name in sorted(os.listdir(folder)):
        path = f"{below}{name}"
        try:
            found = os.lstat(name, dir_fd=folder)
            info = tarfile.TarInfo(path)
            info.mtime, info.mode = int(found.st_mtime), stat.S_IMODE(found.st_mode) & 0o777
            if stat.S_ISLNK(found.st_mode):
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=folder)
                if not _leads_out(path, info.linkname):
                    archive.addfile(info)
            elif stat.S_ISDIR(found.st_mode):
                held = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    info.type = tarfile.DIRTYPE
                    archive.addfile(info)
                    _pack(held, f"{path}/", archive, count)
                finally:
                    os.close(held)
            elif stat.S_ISREG(found.st_mode):
                with open(open_regular_at(name, folder), "rb") as stream:
                    info.size = os.fstat(stream.fileno()).st_size
                    archive.addfile(info, _Whole(stream, info.size, count))
        except FileNotFoundError:
            continue  # gone meanwhile


class _Whole:
    """A file of exactly the size that the archive was told, whatever becomes of it meanwhile."""

    def __init__(self, stream: BinaryIO, size: int, count: Callable[[int], object]) -> None:
        self._stream, self._left, self._count = stream, size, count

    def read(self, size: int = CHUNK_BYTES, /) -> bytes:
        size = min(size, self._left, CHUNK_BYTES)
        data = self._stream.read(size)
        data += b"\0" * (size - len(data))
        self._left -= size
        self._count(size)
        return data


def _leads_out(path: str, target: str) -> bool:
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return os.path.isabs(target) or place == ".." or place.startswith("../")
