"""The folder where all runs on a machine keep out of each other's way: numbers that can be locked.

Locks belong to an open file, not to a process: forked children keep them, and the kernel frees them when the
last one ends, however it ends. Nothing is left to clean up, and no process id can be mistaken for another.
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
from errno import ENXIO

LOCKS = "/tmp/pailot-locks"  # noqa: S108  # one place for all users; made with care below
# The sticky bit keeps the cleaners of /tmp away from files, too.
_FOLDER_MODE, _FILE_MODE = 0o1777, 0o1666
_FLOCK = struct.Struct("hhqqi4x")  # C's struct flock: type, whence, start, length, pid


class LocksError(Exception):
    """The folder for locks cannot be used as it is."""


def locks_folder() -> str:
    """The folder with the locks of all homes and users of this machine."""
    folder = os.path.abspath(os.environ.get("PAILOT_LOCKS") or LOCKS)
    try:
        try:
            found = os.lstat(folder)
        except FileNotFoundError:
            _make_folder(folder)
            found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no folder"
            raise LocksError(f"{folder} should be the folder with the locks of all users, but is {kind}; remove it")
        if stat.S_IMODE(found.st_mode) != _FOLDER_MODE and found.st_uid == os.geteuid():
            os.chmod(folder, _FOLDER_MODE)
    except OSError as error:
        raise LocksError(f"{folder}, the folder for locks, cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LocksError(f"{folder}, the folder with all users' locks, cannot be written; its owner should chmod it to 1777")
    return folder


def open_shared(name: str, flags: int, *, fifo: bool = False) -> int:
    """Open a file (or FIFO) in the folder for locks, which every user may write; it is made if it is not there."""
    path = os.path.join(locks_folder(), name)
    is_right = stat.S_ISFIFO if fifo else stat.S_ISREG
    try:
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            _make_file(path, fifo)
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == ENXIO:
            raise  # this FIFO has no reader
        raise LocksError(f"{path}, shared by all runs on this machine, cannot be opened: {error.strerror}") from None
    if not is_right(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise LocksError(f"{path}, shared by all runs on this machine, is not the kind of file it should be; remove it")
    return descriptor


def open_own(name: str) -> int:
    """A file of the same use that only this user can open, for when the shared one cannot be used."""
    folder = f"{os.path.abspath(os.environ.get('PAILOT_LOCKS') or LOCKS)}-{os.geteuid()}"
    try:
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise LocksError(f"{folder} should be a folder that only you can write to; remove it")
        return os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise LocksError(f"{folder}, for locks of your own, cannot be used: {error.strerror}") from None


class Locks:
    """Numbers that can be locked against all other runs on this machine: the bytes of one shared file.

    What this object has locked it can lock again without noticing, and so can a forked child.
    """

    def __init__(self, name: str, *, own: bool = False) -> None:
        self.descriptor = open_own(name) if own else open_shared(name, os.O_RDWR)

    def take(self, number: int) -> bool:
        """Lock a number; False if another process has it."""
        try:
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, number, 1, 0))
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, at the system's choice
            return False
        return True

    def wait(self, number: int) -> None:
        """Lock a number as soon as it is free; a signal handler that raises ends the wait."""
        fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLKW, _FLOCK.pack(fcntl.F_WRLCK, 0, number, 1, 0))

    def give_back(self, number: int, count: int = 1) -> None:
        """Unlock a number, or several from it on."""
        fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_UNLCK, 0, number, count, 0))

    def is_taken(self, number: int) -> bool:
        """Whether another process has locked a number."""
        answer = fcntl.fcntl(self.descriptor, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, 0, number, 1, 0))
        return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)

    def longest_taken(self, first: int, last: int) -> int:
        """How many numbers, one after the other, the first of those has locked who has locked some of these."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, 0, first, last - first + 1, 0)
        kind, _, start, length, _ = _FLOCK.unpack(fcntl.fcntl(self.descriptor, fcntl.F_OFD_GETLK, asked))
        if kind == fcntl.F_UNLCK:
            return 0
        end = last + 1 if length == 0 else min(last + 1, start + length)
        return int(end - max(first, start))

    def close(self) -> None:
        """Let everything go, unless a forked child still has it."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _make_folder(folder: str) -> None:
    """Make it complete elsewhere and move it here: it is never seen with other rights."""
    temporary = f"{folder}.{os.getpid()}.{os.urandom(4).hex()}"
    os.mkdir(temporary, 0o700)
    os.chmod(temporary, _FOLDER_MODE)
    try:
        os.rename(temporary, folder)
    except OSError:
        os.rmdir(temporary)  # another process was faster


def _make_file(path: str, fifo: bool) -> None:
    """Likewise, and one that is there already stays."""
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    if fifo:
        os.mkfifo(temporary, 0o600)
    else:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    try:
        os.chmod(temporary, _FILE_MODE)
        os.link(temporary, path)
    except FileExistsError:
        pass  # another process was faster
    finally:
        os.unlink(temporary)
