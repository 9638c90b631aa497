"""Small files that are whole or not there, whatever is killed while they are written."""

from __future__ import annotations

import errno
import os

from . import careful_files, layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_PRIVATE = 0o600  # records name files, hosts and commands of their owner
RESERVE_BYTES = 128 * 1024
PIECE_BYTES = 8 * 1024
"""What is given back at a time of a reserve that several runs share."""
DISK_FULL = "the disk that holds PAILOT_HOME is full"
DISK_FULL_STATUS = 28
"""The exit status of a shim that could not write down even that; ENOSPC, as it happens."""
_GONE = (FileNotFoundError, NotADirectoryError)


def is_full(error: BaseException) -> bool:
    """Whether something failed because a disk, or what a user may have of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def write_record(path: str, data: Mapping[str, Any], *, durable: bool = True) -> None:
    """Put the data there as JSON, in one step: readers see the old record or the new one.

    A durable record outlives a power failure as well; any other outlives every process.
    """
    import json

    text = json.dumps(data).encode("ascii")
    folder, name = os.path.split(path)
    # Neither threads nor a process that inherited our random state may choose the same name.
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    try:
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError:
            pass  # what went wrong first is what the caller must hear
        raise
    if durable:
        _sync_folder(folder)


def place_record(path: str, data: dict[str, object]) -> None:
    """Put a record where there is none and no process looks yet: half the work of `write_record`."""
    import json

    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
    try:
        view = memoryview(json.dumps(data).encode("ascii"))
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def read_record(path: str) -> dict[str, Any] | None:
    """The record, or None where there is none, only what a crash of the machine left of one, or no regular file."""
    try:
        return _parse(careful_files.read_regular(path))
    except (*_GONE, careful_files.Spoilt):
        return None


def append_line(target: int | str, data: dict[str, object], *, durable: bool = False) -> None:
    """Add a line of JSON to a journal, given by its path or a descriptor opened for appending; several may append at once."""
    append_lines(target, (data,), durable=durable)


def append_lines(target: int | str, entries: Iterable[dict[str, object]], *, durable: bool = False) -> None:
    """Add several lines with one call of the system."""
    import json

    lines = "".join([json.dumps(each) + "\n" for each in entries]).encode("ascii")
    if isinstance(target, int):
        _append(target, lines, durable)
        return
    descriptor = careful_files.open_own(target, os.O_RDWR | os.O_APPEND, _PRIVATE)
    try:
        _append(descriptor, lines, durable)
    finally:
        os.close(descriptor)


def read_lines(path: str) -> list[dict[str, Any]]:
    """The journal's entries; without those that were torn by a crash, the last one mostly."""
    try:
        content = careful_files.read_regular(path, careful_files.LARGEST_JOURNAL_BYTES, last=True)
    except (*_GONE, careful_files.Spoilt):
        return []
    lines = [line for line in content.split(b"\n") if line[:1] == b"{"]
    import json

    try:
        together = json.loads(b"[" + b",".join(lines) + b"]")  # all at once takes half the time
    except (ValueError, RecursionError):
        together = [_parse(line) for line in lines]
    # A line could hold two entries only if a crash had torn it so that both halves read well; then it is no entry.
    if len(together) != len(lines):
        together = [_parse(line) for line in lines]
    return [entry for entry in together if isinstance(entry, dict)]


def keep_reserve(folder: str, size: int = RESERVE_BYTES) -> None:
    """Set space aside in a folder, so that how something ended can be written even when the disk is full."""
    descriptor = os.open(os.path.join(folder, layout.RESERVE), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, size)
    finally:
        os.close(descriptor)


def write_last_record(path: str, data: dict[str, object], reserve: str, *, durable: bool = True) -> None:
    """`write_record`, on a full disk too: the space that a folder keeps in reserve is used for it.

    The reserve of the record's own folder becomes the record itself: its space is never free, so no other process can take it.
    A reserve that several runs share is given back piece by piece: the process that fills the disk may take some pieces first.
    """
    try:
        write_record(path, data, durable=durable)
        return
    except OSError as error:
        if not is_full(error):
            raise
        if reserve == os.path.dirname(path):
            _become_record(os.path.join(reserve, layout.RESERVE), path, data, error, durable=durable)
            return
    while _give_back(os.path.join(reserve, layout.RESERVE)):
        try:
            write_record(path, data, durable=durable)
            return
        except OSError as error:
            if not is_full(error):
                raise
    write_record(path, data, durable=durable)


def _become_record(reserve: str, path: str, data: dict[str, object], full: OSError, *, durable: bool) -> None:
    import json

    try:
        descriptor = os.open(reserve, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise full from None  # it is used up
    try:
        text = json.dumps(data).encode("ascii")
        view = memoryview(text)
        while view:
            view = view[os.write(descriptor, view) :]
        os.ftruncate(descriptor, len(text))
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(reserve, path)


def _give_back(reserve: str) -> bool:
    """Whether a piece of a shared reserve could be given back."""
    try:
        size = os.stat(reserve).st_size
        if size:
            os.truncate(reserve, max(0, size - PIECE_BYTES))
    except OSError:
        return False
    return size > 0


def free_reserve(folder: str) -> None:
    """Give the space back; the next small record fits."""
    try:
        os.unlink(os.path.join(folder, layout.RESERVE))
    except OSError:
        pass  # another process did already


def claim(path: str, *, durable: bool = True) -> bool:
    """Whether we are the one who made this file; of any number of processes exactly one is.

    A durable claim holds after a power failure, too.
    """
    descriptor = claim_open(path, durable=durable)
    if descriptor is None:
        return False
    os.close(descriptor)
    return True


def claim_open(path: str, *, durable: bool = True) -> int | None:
    """`claim` that returns the new file, open for reading and writing; None if another process has made it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
    except FileExistsError:
        return None
    try:
        if durable:
            os.fsync(descriptor)
            _sync_folder(os.path.dirname(path))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems cannot sync a folder. They have no safer way to offer.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _append(descriptor: int, line: bytes, durable: bool) -> None:
    if _ends_torn(descriptor):  # or our line would be lost together with the torn one
        line = b"\n" + line
    # One call, for the kernel never mixes the bytes of two of them. A rest is not sent after: another's line may be there.
    written = os.write(descriptor, line)
    if written < len(line):
        raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written")
    if durable:
        os.fsync(descriptor)


def _ends_torn(descriptor: int) -> bool:
    try:
        size = os.fstat(descriptor).st_size
        return size > 0 and os.pread(descriptor, 1, size - 1) not in (b"\n", b"")
    except OSError:
        return False  # not opened for reading, or a pipe


def _parse(text: bytes) -> dict[str, object] | None:
    import json

    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
