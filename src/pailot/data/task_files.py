"""The files of a task: read and written below its folder only, with the rights that this process has.

A task may change its folder while we look, and links in it may lead anywhere: every step is opened by itself, and none is a
link. What is written comes to lie under a name of its own first, and gets its right name when it is whole.
"""

from __future__ import annotations

import errno
import os
import re
import stat

from ..errors import PailotError
from ..runfolder.removing import remove_tree
from .folders import CHUNK_BYTES, hold_below, merge, open_regular_at
from .packing import pack_below, size_below
from .rules import Rules
from .unpacking import Limits, unpack_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO, BinaryIO

    from .folders import Held
    from .packing import Sink

MARK = re.compile(r"[0-9a-f]{16}")
FILE, FOLDER, NOTHING = "file", "folder", "nothing"
_SERVER = Rules(server=True)
"""Links are not followed when folders are merged."""


class NotThere(PailotError):
    """There is no such file or folder."""


class Files:
    """Files below a folder: `base` is a path of ours, `steps` lead from there to the folder of the task."""

    def __init__(self, base: str, steps: Sequence[str] = (), limit_bytes: int = 0) -> None:
        self._base, self._steps = base, tuple(steps)
        self._limit = limit_bytes or Limits().bytes

    def describe(self, path: str, mark: str = "") -> dict[str, object]:
        """What is at a path: its kind, its size, what tells this version of it from others; and how much of a copy is there."""
        parent, name = self._parent(path)
        with parent:
            part = _size_of(_part(name, mark), parent.descriptor) if mark else 0
            try:
                found = os.lstat(name or ".", dir_fd=parent.descriptor)
            except FileNotFoundError:
                return {"kind": NOTHING, "size": 0, "version": "", "part": part}
            if stat.S_ISDIR(found.st_mode):
                held = os.open(name or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent.descriptor)
                try:
                    return {"kind": FOLDER, "size": size_below(held), "version": "", "part": part}
                finally:
                    os.close(held)
            if not stat.S_ISREG(found.st_mode):
                raise PailotError(f"{path}: {'a link is not followed' if stat.S_ISLNK(found.st_mode) else 'it is no file'}")
            return {"kind": FILE, "size": found.st_size, "version": _version(found), "part": part}

    def read(self, path: str, offset: int = 0) -> tuple[BinaryIO, dict[str, object]]:
        """A file from an offset on, and what it is."""
        parent, name = self._parent(path)
        with parent:
            stream = open(_open(name, parent, path), "rb", buffering=0)  # noqa: SIM115  # the caller closes it
        found = os.fstat(stream.fileno())
        stream.seek(offset)
        return stream, {"kind": FILE, "size": found.st_size, "version": _version(found)}

    def pack(self, path: str, out: Sink) -> None:
        """A folder as a tar archive."""
        with self._folder(path) as held:
            here = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=held.descriptor)
            try:
                pack_below(here, out)
            finally:
                os.close(here)

    def write(self, path: str, stream: IO[bytes], *, mark: str, offset: int, size: int, mode: int = 0o644) -> int:
        """Add to the copy of a file; it gets its name when it has its size. Returns how much of it is there."""
        if not MARK.fullmatch(mark):
            raise PailotError("the mark of a copy should be 16 hexadecimal digits")
        if size > self._limit:
            raise PailotError(f"{path}: {size / 1e6:,.0f} MB are more than the {self._limit / 1e6:,.0f} MB that are taken")
        parent, name = self._parent(path)
        if not name:
            raise PailotError("the name of the file is missing")
        with parent:
            part = _part(name, mark)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(part, flags, 0o600, dir_fd=parent.descriptor), "wb", buffering=0) as out:
                seen = os.fstat(out.fileno())
                if not stat.S_ISREG(seen.st_mode) or seen.st_nlink != 1:
                    raise PailotError(f"{path}: what stands at the place of the copy is no file of ours")
                if offset > seen.st_size:
                    raise PailotError(f"{path}: only {seen.st_size} bytes of it are there")
                out.truncate(offset)
                out.seek(offset)
                done = offset
                while done < size and (piece := stream.read(min(CHUNK_BYTES, size - done))):
                    for_now = memoryview(piece)
                    while for_now:
                        for_now = for_now[out.write(for_now) :]
                    done += len(piece)
                if done < size:
                    return done
                os.fchmod(out.fileno(), mode & 0o777)
            if _is_folder(name, parent.descriptor):
                raise PailotError(f"{path}: there is a folder of this name")
            os.replace(part, name, src_dir_fd=parent.descriptor, dst_dir_fd=parent.descriptor)
        return done

    def unpack(self, path: str, stream: IO[bytes]) -> None:
        """A folder from a tar archive; files of the same names are replaced, others stay."""
        temporary = f".pailot-{os.urandom(6).hex()}.part"
        target = _steps(path)
        with hold_below(self._base, self._steps) as root:
            os.mkdir(temporary, 0o700, dir_fd=root.descriptor)
            fresh = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.descriptor)
            try:
                unpack_below(stream, fresh, Limits(bytes=self._limit))  # type: ignore[arg-type]  # it reads, which is all that is asked
                with hold_below(self._base, (*self._steps, *target), create=True) as held:
                    into = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=held.descriptor)
                    try:
                        merge(fresh, into, _SERVER)
                    finally:
                        os.close(into)
            finally:
                os.close(fresh)
                remove_tree(root.place(temporary), ignore_errors=True)

    def _folder(self, path: str) -> Held:
        try:
            return hold_below(self._base, (*self._steps, *_steps(path)))
        except OSError as error:
            raise _problem(error, path) from None

    def _parent(self, path: str) -> tuple[Held, str]:
        steps = _steps(path)
        try:
            return hold_below(self._base, (*self._steps, *steps[:-1])), steps[-1] if steps else ""
        except OSError as error:
            raise _problem(error, path) from None


def _steps(path: str) -> list[str]:
    steps = [step for step in path.split("/") if step not in ("", ".")]
    if ".." in steps or "\0" in path or len(path) > 4096:
        raise PailotError(f"{path[:200]!r} is no path below the folder of a task: it may not hold '..'")
    return steps


def _open(name: str, parent: Held, path: str) -> int:
    try:
        return open_regular_at(name, parent.descriptor)
    except OSError as error:
        raise _problem(error, path) from None


def _problem(error: OSError, path: str) -> PailotError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotThere(f"{path}: there is no such file or folder")
    if error.errno == errno.ELOOP:
        return PailotError(f"{path}: a link is not followed")
    return PailotError(f"{path}: {error.strerror}")


def _part(name: str, mark: str) -> str:
    if not MARK.fullmatch(mark):
        raise PailotError("the mark of a copy should be 16 hexadecimal digits")
    return f".{name[:200]}.{mark}.part"


def _size_of(name: str, folder: int) -> int:
    try:
        found = os.lstat(name, dir_fd=folder)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode)
    except FileNotFoundError:
        return False


def _version(found: os.stat_result) -> str:
    return f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"
