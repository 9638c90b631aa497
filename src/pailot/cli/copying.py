"""Copies between this machine and a task: a file goes on where it was broken off, a folder travels as one archive."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import time

from ..client.errors import Failing, Unreachable
from ..data.folders import CHUNK_BYTES, hold_entry, merge
from ..data.packing import pack_below, size_below
from ..data.rules import OWN_MACHINE
from ..data.task_files import FOLDER, NOTHING
from ..data.unpacking import Limits, unpack_below
from ..errors import PailotError
from ..progress import Meter
from ..runfolder.removing import remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any, Protocol

    from ..progress import Progress

    class Files(Protocol):
        """The files of a task, here or on a server."""

        def describe(self, path: str, mark: str = "") -> dict[str, Any]: ...
        def read(self, path: str, offset: int = 0) -> tuple[IO[bytes], dict[str, Any]]: ...
        def read_folder(self, path: str) -> IO[bytes]: ...
        def write(self, path: str, stream: IO[bytes], *, mark: str, offset: int, size: int, mode: int) -> int: ...
        def unpack(self, path: str, stream: IO[bytes]) -> None: ...


TRIES = 5
PAUSES = (0.2, 1.0, 3.0, 10.0)
_ALL = Limits(bytes=1 << 50, places=10_000_000)


def download(files: Files, path: str, target: str, tell: Callable[[Progress], None]) -> tuple[str, int]:
    """Copy a file or folder of a task to this machine; returns where it is, and its size."""
    about = files.describe(path)
    if about["kind"] == NOTHING:
        raise PailotError(f"{path or '.'}: there is no such file or folder")
    name = os.path.basename(path.rstrip("/"))
    if os.path.isdir(target) and name:
        target = os.path.join(target, name)
    meter = Meter(name or "the working directory", int(about["size"]), tell)
    if about["kind"] == FOLDER:
        _again(lambda: _bring_folder(files, path, target, meter))
    else:
        _again(lambda: _bring_file(files, path, target, meter))
    meter.end()
    return target, int(about["size"])


def _bring_file(files: Files, path: str, target: str, meter: Meter) -> None:
    about = files.describe(path)
    part = _part(target, _mark(str(about["version"])))
    with open(part, "ab") as out:
        offset = min(out.tell(), int(about["size"]))
        out.truncate(offset)
        meter.done = offset
        stream, found = files.read(path, offset)
        with stream:
            if found["version"] != about["version"]:
                os.unlink(part)
                raise Unreachable(f"{path} was changed while it was copied")
            while piece := stream.read(CHUNK_BYTES):
                out.write(piece)
                meter.add(len(piece))
        if out.tell() < about["size"]:
            raise Unreachable(f"{path}: only {out.tell()} of {about['size']} bytes came; the same command goes on from there")
    os.replace(part, target)


def _bring_folder(files: Files, path: str, target: str, meter: Meter) -> None:
    fresh = _part(target, os.urandom(8).hex())
    os.mkdir(fresh)
    meter.done = 0
    try:
        with files.read_folder(path) as stream, hold_entry(fresh) as held:
            unpack_below(_Counted(stream, meter), held.descriptor, _ALL)  # type: ignore[arg-type]  # it reads, which is all that is asked
        if not os.path.exists(target):
            os.rename(fresh, target)
            return
        with hold_entry(fresh) as held, hold_entry(target, follow=True) as into:
            merge(held.descriptor, into.descriptor, OWN_MACHINE)
    finally:
        if os.path.lexists(fresh):
            remove_tree(fresh, ignore_errors=True)


def upload(files: Files, source: str, path: str, tell: Callable[[Progress], None]) -> tuple[str, int]:
    """Copy a file or folder of this machine to a task; returns where it is, and its size."""
    name = os.path.basename(os.path.abspath(source))
    if path in ("", ".") or path.endswith("/") or files.describe(path)["kind"] == FOLDER:
        path = f"{path.rstrip('/')}/{name}".lstrip("/").removeprefix("./")
    if os.path.isdir(source):
        with hold_entry(source, follow=True) as held:
            size = size_below(held.descriptor)
        meter = Meter(name, size, tell)
        _again(lambda: _send_folder(files, source, path, meter))
    else:
        try:
            found = os.stat(source)
        except OSError as error:
            raise PailotError(f"{source} cannot be read: {error.strerror}") from None
        size = found.st_size
        meter = Meter(name, size, tell)
        mark = _mark(f"{os.path.abspath(source)}\0{found.st_size}\0{found.st_mtime_ns}")
        _again(lambda: _send_file(files, source, path, mark, found, meter))
    meter.end()
    return path, size


def _send_file(files: Files, source: str, path: str, mark: str, found: os.stat_result, meter: Meter) -> None:
    offset = min(int(files.describe(path, mark)["part"]), found.st_size)
    meter.done = offset
    with open(source, "rb") as stream:
        stream.seek(offset)
        body = _Counted(stream, meter)
        done = files.write(path, body, mark=mark, offset=offset, size=found.st_size, mode=found.st_mode & 0o777)  # type: ignore[arg-type]  # see above
    if done < found.st_size:
        raise Unreachable(f"{path}: only {done} of {found.st_size} bytes arrived; the same command goes on from there")


def _send_folder(files: Files, source: str, path: str, meter: Meter) -> None:
    meter.done = 0
    with packed(lambda out: _pack(source, out)) as stream:
        files.unpack(path, _Counted(stream, meter))  # type: ignore[arg-type]  # see above


def _pack(source: str, out: IO[bytes]) -> None:
    with hold_entry(source, follow=True) as held:
        pack_below(held.descriptor, out)


def packed(pack: Callable[[IO[bytes]], None]) -> IO[bytes]:
    """What a function writes, as a stream that is read meanwhile."""
    reader, writer = os.pipe2(os.O_CLOEXEC)

    def work() -> None:
        try:
            with open(writer, "wb") as out:
                pack(out)
        except (BrokenPipeError, PailotError, OSError):
            pass  # who reads sees that the archive has no end

    threading.Thread(target=work, daemon=True).start()
    return open(reader, "rb")


class _Counted(io.RawIOBase):
    """A stream that counts what is read of it. It cannot be read twice."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self._stream, self._meter = stream, meter
        self._begun = False

    def read(self, size: int | None = -1, /) -> bytes:
        self._begun = True
        data = self._stream.read(CHUNK_BYTES if size is None or size < 0 else size)
        self._meter.add(len(data))
        return data

    def seek(self, place: int, whence: int = 0, /) -> int:
        """Seek to the place before the first byte is read; the sender makes sure of that."""
        if self._begun:
            raise OSError("it was read already")
        return place


def _again(work: Callable[[], None]) -> None:
    """Do something until it is done; what fails for want of a connection is tried again, for a while."""
    for turn in range(TRIES):
        try:
            work()
            return
        except (Unreachable, Failing, ConnectionError):
            if turn == TRIES - 1:
                raise
            time.sleep(PAUSES[min(turn, len(PAUSES) - 1)])


def _part(target: str, mark: str) -> str:
    folder, name = os.path.split(os.path.abspath(target))
    return os.path.join(folder, f".{name[:200]}.{mark}.part")


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
