"""Files in folders that a task's processes can change, opened as what a stranger may have put there.

A link is not followed, whatever is no regular file is not opened (a FIFO would block, a device act), and nothing is read
beyond a bound. What is not as it should be counts as not there: `Spoilt` is an OSError.
"""

from __future__ import annotations

import errno
import os
import stat

LARGEST_RECORD_BYTES = 64 << 20
LARGEST_JOURNAL_BYTES = 64 << 20
_FIRST_BYTES = 1 << 16
_PATH = getattr(os, "O_PATH", 0)  # Linux has it
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Spoilt(OSError):
    """A file is a link, a folder, a FIFO, a device, or too large."""

    def __init__(self, path: str, words: str) -> None:
        super().__init__(errno.EINVAL, words, path)


def open_folder(path: str, below: str = "") -> int:
    """A folder, which is no link; of one `below` another, no folder in between is a link either."""
    if not below:
        return _opened(path, _FOLDER, None)
    current = os.open(below, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in _steps(path, below):
        try:
            deeper = _opened(name, _FOLDER, current)
        finally:
            os.close(current)
        current = deeper
    return current


def open_regular(path: str, flags: int = os.O_RDONLY, *, folder: int | None = None, below: str = "") -> int:
    """A regular file: in an open `folder`, or `below` one, where no folder on the way is a link."""
    if below:
        parent = open_folder(os.path.dirname(path), below)
        try:
            return open_regular(os.path.basename(path), flags, folder=parent)
        finally:
            os.close(parent)
    if not _PATH:
        if not stat.S_ISREG(os.stat(path, dir_fd=folder, follow_symlinks=False).st_mode):
            raise Spoilt(path, "is no regular file")
        return _opened(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, folder)
    place = _opened(path, _PATH | os.O_NOFOLLOW | os.O_CLOEXEC, folder)  # which opens nothing yet
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise Spoilt(path, "is no regular file")
        return os.open(f"/proc/self/fd/{place}", flags | os.O_CLOEXEC)
    finally:
        os.close(place)


def read_regular(
    path: str, limit: int = LARGEST_RECORD_BYTES, *, folder: int | None = None, below: str = "", last: bool = False
) -> bytes:
    """All of a regular file; one above the limit is refused, or only the `last` of it is read."""
    descriptor = open_regular(path, folder=folder, below=below)
    try:
        size = os.fstat(descriptor).st_size
        if size > limit:
            if not last:
                raise Spoilt(path, f"has {size} bytes, more than {limit}")
            os.lseek(descriptor, size - limit, os.SEEK_SET)
        whole = os.read(descriptor, min(size + 1, _FIRST_BYTES, limit))
        if len(whole) == size:
            return whole  # most files are small, and one look is enough: it was asked for one byte more
        pieces = [whole]
        limit -= len(whole)
        while limit > 0:
            piece = os.read(descriptor, min(1 << 20, limit))
            if not piece:
                break
            pieces.append(piece)
            limit -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def open_own(path: str, flags: int, mode: int = 0o600) -> int:
    """A regular file of ours in a folder, made if it is not there; what is none, a link for instance, makes room for one."""
    wanted = flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = _opened(path, wanted, None)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    except Spoilt:
        pass
    remove(None, path)
    return os.open(path, wanted | os.O_EXCL, mode)


def make_folders(path: str, *, exist_ok: bool = True) -> None:
    """A folder, and all that lead to it, each for us alone whatever the umask is; those that are there stay as they are."""
    try:
        os.mkdir(path, 0o700)
    except FileNotFoundError:
        make_folders(os.path.dirname(path))
        make_folders(path, exist_ok=exist_ok)
    except FileExistsError:
        if not exist_ok or not os.path.isdir(path):
            raise


def private(path: str, flags: int) -> int:
    """For `open(…, opener=private)`: whatever the umask is, the file is ours alone."""
    return os.open(path, flags, 0o600)


def write_new(folder: int, name: str, data: bytes, mode: int = 0o600) -> None:
    """Put a file into a folder in place of whatever has its name."""
    remove(folder, name)
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def open_fifo(folder: int, name: str, flags: int) -> int:
    """A FIFO in a folder, made if none is there; whatever else has its name makes room. It does not block."""
    try:
        if not stat.S_ISFIFO(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            remove(folder, name)
            os.mkfifo(name, 0o600, dir_fd=folder)
    except FileNotFoundError:
        os.mkfifo(name, 0o600, dir_fd=folder)
    descriptor = _opened(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, folder)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Spoilt(name, "is no FIFO")
    return descriptor


def _opened(path: str, flags: int, folder: int | None) -> int:
    try:
        return os.open(path, flags, 0o600, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise Spoilt(path, "is no regular file") from None
        raise


def _steps(path: str, below: str) -> list[str]:
    relative = os.path.relpath(path, below)
    steps = [] if relative == "." else relative.split(os.sep)
    if os.pardir in steps:
        raise Spoilt(path, f"is not below {below}")
    return steps


def remove(folder: int | None, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):  # the second on systems where that is not said better
        from .removing import remove_tree

        remove_tree(name if folder is None else f"/proc/self/fd/{folder}/{name}", ignore_errors=True)
