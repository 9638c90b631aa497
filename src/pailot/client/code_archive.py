"""A code folder as one archive whose name is its content: the same files make the same bytes, anywhere and at any time."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from tarfile import DIRTYPE, REGTYPE, SYMTYPE, TarInfo
from tempfile import TemporaryFile

from ..errors import PailotError
from ..progress import Meter
from ..values import Value
from .ignore import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Self

    from ..progress import Progress

LARGE = 200 * 1000 * 1000
MOMENT = 315532800
"""1980-01-01, the time of every file in it: the earliest that all archive formats know."""


class Packed(Value):
    """An archive (.tar.gz) in a temporary file that goes away when it is closed."""

    sha256: str
    size: int
    files: int
    content_size: int
    """The sum of the files, before compression."""
    notes: tuple[str, ...]
    """What was left out, and what is worth a second thought."""
    stream: IO[bytes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


class Counted:
    """A file that counts what is read of it."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self._stream, self._meter = stream, meter

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._meter.add(len(data))
        return data

    def seek(self, place: int) -> int:
        """Anew, from the beginning."""
        self._meter.done = place
        return self._stream.seek(place)


def pack(folder: str, tell: Callable[[Progress], None] = lambda _: None, *, below: str = "") -> Packed:
    """Pack what belongs to a code folder; `.gitignore` and `.pailotignore` say what does not.

    `below` is the name of a folder for it all; what is in it is then also found beside it, by links.
    """
    if not os.path.isdir(folder):
        raise PailotError(f"there is no folder '{folder}' to send along")
    root = os.path.realpath(folder)
    entries = list(walk(root))
    meter = Meter("packing code", sum(_size(entry) for _, entry in entries), tell)
    files = total = 0
    notes: list[str] = []
    stream: IO[bytes] = TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        with (
            gzip.GzipFile("", "wb", 6, stream, mtime=0) as squeezed,
            tarfile.open(fileobj=squeezed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path, entry in entries:
                info = _info(path, entry, notes)
                if info is None:
                    continue
                if below and "/" not in path and path != below:
                    archive.addfile(_link(path, f"{below}/{path}"))
                info.name = os.path.join(below, info.name)
                if not info.isreg():
                    archive.addfile(info)
                    continue
                with open(entry.path, "rb") as content:
                    info.size = os.fstat(content.fileno()).st_size
                    archive.addfile(info, Counted(content, meter))
                files += 1
                total += info.size
        meter.end()
    except OSError as error:
        stream.close()
        name = error.filename or folder
        raise PailotError(f"{name} cannot be sent along: {error.strerror or error}") from None
    if total > LARGE:
        notes.append(f"'{folder}' holds {total / 1e6:.0f} MB; leave data out with a .pailotignore file")
    size = stream.tell()
    stream.seek(0)
    digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]  # a real file
    stream.seek(0)
    return Packed(digest, size, files, total, tuple(notes), stream)


def _size(entry: os.DirEntry[str]) -> int:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return 0  # it has just gone, which is noticed when it is packed
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _info(path: str, entry: os.DirEntry[str], notes: list[str]) -> TarInfo | None:
    info = TarInfo(path)
    info.mtime = MOMENT
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        target = os.readlink(entry.path)
        if os.path.isabs(target) or _leads_out(path, target):
            notes.append(f"{path} is left out: it is a link to {target}, outside of the folder")
            return None
        info.type, info.linkname, info.mode = SYMTYPE, target, 0o777
    elif stat.S_ISDIR(mode):
        info.type, info.mode = DIRTYPE, 0o755
    elif stat.S_ISREG(mode):
        info.type, info.mode = REGTYPE, 0o755 if mode & 0o100 else 0o644
    else:
        notes.append(f"{path} is left out: it is neither a file nor a folder nor a link")
        return None
    return info


def _link(path: str, target: str) -> TarInfo:
    info = TarInfo(path)
    info.type, info.linkname, info.mode, info.mtime = SYMTYPE, target, 0o777, MOMENT
    return info


def _leads_out(path: str, target: str) -> bool:
    place = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return place == ".." or place.startswith("../")
