"""Folders that another user may change at any moment: opened step by step, without following links.

On a server, tasks write to the folders that jobs may name, and containers to what is published. A path that was looked at may
be a link to anywhere a moment later. So a folder is held by its descriptor, and what is below is reached through that:
`/proc/self/fd/7/name`. On a user's own machine paths are used as they are, and links lead where the user made them lead.
"""

from __future__ import annotations

import os
import pwd
import stat

from .addresses import NotAllowed, folder_of, refusal, refusal_of_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .addresses import Address
    from .rules import Rules

CHUNK_BYTES = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WAY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC  # to pass through, which takes fewer rights than to look around


def real_path(address: Address, cwd: str, rules: Rules) -> str:
    """The path of an address that is one; on a server with its links resolved, and NotAllowed if it leads out."""
    problem = refusal(address, rules)
    if problem:
        raise NotAllowed(problem)
    path = address.path
    if address.scheme != "file":
        path = os.path.join(cwd, path if rules.server else os.path.expanduser(path))
    if not rules.server:
        return os.path.abspath(path)
    real = os.path.realpath(path)
    problem = refusal_of_path(real, rules)
    if problem:
        raise NotAllowed(problem)
    return real


def may_read(path: str) -> bool:
    """Whether this process may read what is there, if anything is; nothing of it is opened."""
    try:
        found = os.stat(path)
    except PermissionError:
        return False
    except OSError:
        return True  # it is not there, which others say better
    return os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(found.st_mode) else 0))


def whoever_we_are() -> str:
    try:
        return f"Unix user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"Unix user {os.geteuid()}"


class Held:
    """A folder that is held by its descriptor for as long as this object lives."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def place(self, name: str) -> str:
        """The path of an entry that stays right whatever happens to the folder's own path."""
        return f"/proc/self/fd/{self.descriptor}/{name}"


def hold(real: str, rules: Rules, *, create: bool = False) -> Held:
    """A folder by a path that `real_path` returned; perhaps it is made first."""
    if not rules.server:
        if create:
            os.makedirs(real, exist_ok=True)
        return Held(os.open(real, _WAY))
    base = folder_of(real, rules)
    if not base:
        raise NotAllowed(refusal_of_path(real, rules))
    return hold_below(base, [part for part in real[len(base) :].split("/") if part], create=create)


def hold_below(base: str, steps: Iterable[str], *, create: bool = False) -> Held:
    """A folder below one that is ours: no step is a link."""
    held = os.open(base, _WAY)
    try:
        for step in steps:
            if create:
                try:
                    os.mkdir(step, dir_fd=held)
                except FileExistsError:
                    pass
            following = os.open(step, _WAY | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = following
    except OSError as error:
        os.close(held)
        error.filename = os.path.join(base, *steps) if not isinstance(error.filename, str) else error.filename
        raise
    return Held(held)


def hold_entry(path: str, *, follow: bool = False) -> Held:
    """A folder by its path, whose last step is a link only if it may be."""
    return Held(os.open(path, _FOLDER | (0 if follow else os.O_NOFOLLOW)))


def open_file(real: str, rules: Rules) -> int:
    """A descriptor for reading a regular file by a path that `real_path` returned."""
    if not rules.server:
        return os.open(real, os.O_RDONLY | os.O_CLOEXEC)
    with hold(os.path.dirname(real), rules) as parent:
        return open_regular_at(os.path.basename(real), parent.descriptor)


def copy_tree(source: str, parent: Held, name: str, count: Callable[[int], object]) -> None:
    """A folder of ours as a new entry of a held one; links are copied as links, sockets, pipes and devices left out."""
    os.mkdir(name, 0o755, dir_fd=parent.descriptor)
    target = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent.descriptor)
    origin = os.open(source, _FOLDER)
    try:
        _copy(origin, target, count)
    finally:
        os.close(origin)
        os.close(target)


def _copy(origin: int, target: int, count: Callable[[int], object]) -> None:
    for name in sorted(os.listdir(origin)):
        seen = os.lstat(name, dir_fd=origin)
        if stat.S_ISLNK(seen.st_mode):
            os.symlink(os.readlink(name, dir_fd=origin), name, dir_fd=target)
        elif stat.S_ISDIR(seen.st_mode):
            os.mkdir(name, dir_fd=target)
            below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=origin)
            into = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=target)
            try:
                _copy(below, into, count)
                os.fchmod(into, stat.S_IMODE(seen.st_mode) & 0o777)
            finally:
                os.close(below)
                os.close(into)
        elif stat.S_ISREG(seen.st_mode):
            _copy_file(name, origin, target, seen, count)


def _copy_file(name: str, origin: int, target: int, seen: os.stat_result, count: Callable[[int], object]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        open(open_regular_at(name, origin), "rb", buffering=0) as stream,
        open(os.open(name, flags, 0o600, dir_fd=target), "wb", buffering=0) as out,
    ):
        while chunk := stream.read(CHUNK_BYTES):
            while chunk:
                written = out.write(chunk)
                count(written)
                chunk = chunk[written:]
        os.utime(out.fileno(), ns=(seen.st_atime_ns, seen.st_mtime_ns))
        os.fchmod(out.fileno(), stat.S_IMODE(seen.st_mode) & 0o777)


def open_regular_at(name: str, folder: int) -> int:
    """Never blocks, as a pipe would, and never opens a device."""
    if not stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode):
        raise NotAllowed(f"{name}: it is no file")
    found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise NotAllowed(f"{name}: it is no file")
    return found


def merge(origin: int, target: int, rules: Rules) -> None:
    """Move the files of one folder into another, each whole; those of the same name are replaced."""
    flags = _FOLDER | (os.O_NOFOLLOW if rules.server else 0)
    for name in os.listdir(origin):
        if not stat.S_ISDIR(os.lstat(name, dir_fd=origin).st_mode):
            os.replace(name, name, src_dir_fd=origin, dst_dir_fd=target)
            continue
        try:
            os.mkdir(name, dir_fd=target)
        except FileExistsError:
            pass
        below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=origin)
        try:
            into = os.open(name, flags, dir_fd=target)
            try:
                merge(below, into, rules)
            finally:
                os.close(into)
        finally:
            os.close(below)


__all__ = ["Held", "copy_tree", "hold", "hold_below", "hold_entry", "merge", "open_file", "real_path"]
