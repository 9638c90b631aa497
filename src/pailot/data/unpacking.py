"""The one unpacker of the house, for archives that may have been made to do harm.

A place is judged where it is, not by its words: every file is made below the descriptor of its folder, which was reached
from the target step by step through folders only. Links are made at the very end, so nothing can be written through one,
and each is followed first, through all the others, to see that it ends inside. Nothing that is there is ever opened for
writing. Sizes and numbers are counted while reading, before anything is written. What fails leaves the target empty.
"""

from __future__ import annotations

import os

from ..runfolder.removing import empty_folder
from ..values import Value
from .tar import FILE, FOLDER, PIECE_BYTES, BadArchive, TarEntry, TarReader, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LONGEST_NAME_BYTES = 255
LONGEST_PATH_BYTES = 2_048
"""Leaves room for the path of the folder that it comes to lie in."""
LONGEST_LINK_BYTES = 1_024
MOST_HOPS = 40
"""Links on the way of one link: the kernel follows no more."""
LINKS_BYTES = 1 << 25
LINK_STEPS = 2_000_000
"""Bounds of what all links together may take in memory, and in steps when they are followed."""


class Limits(Value):
    """What an archive may hold at most."""

    bytes: int = 20 * 1000 * 1000 * 1000
    places: int = 200_000
    """Files, folders and links."""
    depth: int = 100


class TooLarge(BadArchive):
    """An archive that holds more than it may; another place may have more room."""


class Amount(Value):
    """What was unpacked."""

    bytes: int
    places: int


def unpack(archive: str, target: str, limits: Limits = Limits()) -> Amount:  # noqa: B008  # a value that cannot change
    """Unpack a tar archive (plain, or compressed by gzip, bzip2 or xz) into an empty folder.

    BadArchive where it holds what is not unpacked: hard links, devices, names and links that lead out, and the like.
    """
    with open(archive, "rb") as stream:
        folder = os.open(target, _FOLDER)
        try:
            return unpack_below(stream, folder, limits)
        finally:
            os.close(folder)


def unpack_below(stream: BinaryIO, folder: int, limits: Limits) -> Amount:
    """The same with an open archive and an open folder, for a process that may not reach them by name."""
    with os.scandir(folder) as found:
        if any(found):
            raise BadArchive("the archive cannot be unpacked into a folder that is not empty")
    tree = _Tree(folder, limits)
    try:
        reader = TarReader(stream)
        for entry in reader:
            tree.put(entry, reader)
        tree.make_links()
    except BaseException:
        empty_folder(folder)
        raise
    finally:
        tree.close()
    return Amount(tree.bytes, tree.places)


class _Tree:
    """What has come of an archive up to now."""

    def __init__(self, root: int, limits: Limits) -> None:
        self._root, self._limits = root, limits
        self.bytes = self.places = 0
        self._links: dict[bytes, bytes] = {}
        self._links_bytes = 0
        self._parent: tuple[list[bytes], int] | None = None
        """The folder that was used last, and its descriptor: most often the next one is the same."""

    def close(self) -> None:
        if self._parent:
            os.close(self._parent[1])
            self._parent = None

    def put(self, entry: TarEntry, content: TarReader) -> None:
        steps = _steps(entry.name, self._limits.depth)
        if not steps:
            if entry.kind != FOLDER:
                raise BadArchive(f"the archive holds {shown(entry.name)}, which is no name of a file or link")
            return  # the target itself
        self.bytes += entry.size
        if self.bytes > self._limits.bytes:
            raise TooLarge(f"the archive holds more than {self._limits.bytes / 1e6:,.0f} MB: leave data out of it")
        path = b"/".join(steps)
        if path in self._links:
            raise BadArchive(f"the archive holds {shown(entry.name)} twice")
        if entry.kind == FOLDER:
            self._enter(steps, entry.name)
            return
        parent = self._enter(steps[:-1], entry.name)
        self._count()
        try:
            if entry.kind == FILE:
                self._write(steps[-1], parent, entry, content)
            else:
                self._note_link(path, steps[-1], parent, entry)
        except FileExistsError:
            raise BadArchive(f"the archive holds {shown(entry.name)} twice") from None

    def _count(self) -> None:
        self.places += 1
        if self.places > self._limits.places:
            raise TooLarge(f"the archive holds more than {self._limits.places:,} files and folders: leave data out of it")

    def _enter(self, steps: list[bytes], name: bytes) -> int:
        """The descriptor of a folder, made if there is none; open until another one is entered."""
        if not steps:
            return self._root
        if self._parent and self._parent[0] == steps:
            return self._parent[1]
        if self._links and any(b"/".join(steps[:end]) in self._links for end in range(1, len(steps) + 1)):
            raise BadArchive(f"the archive holds {shown(name)}, which lies behind a link")
        here = os.dup(self._root)
        try:
            for step in steps:
                below = self._step(step, here, name)
                os.close(here)
                here = below
        except BaseException:
            os.close(here)
            raise
        self.close()
        self._parent = steps, here
        return here

    def _step(self, step: bytes, here: int, name: bytes) -> int:
        try:
            try:
                return os.open(step, _FOLDER, dir_fd=here)
            except FileNotFoundError:
                self._count()
                os.mkdir(step, 0o755, dir_fd=here)
                return os.open(step, _FOLDER, dir_fd=here)
        except NotADirectoryError:  # a link is none either
            raise BadArchive(f"the archive holds {shown(name)}, which lies in a file or is there twice") from None

    def _write(self, name: bytes, parent: int, entry: TarEntry, content: TarReader) -> None:
        descriptor = os.open(name, _NEW_FILE, 0o755 if entry.executable else 0o644, dir_fd=parent)
        try:
            while data := content.read(PIECE_BYTES):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            os.utime(descriptor, (entry.modified, entry.modified))
        finally:
            os.close(descriptor)

    def _note_link(self, path: bytes, name: bytes, parent: int, entry: TarEntry) -> None:
        target = entry.target
        if not target or b"\0" in target or len(target) > LONGEST_LINK_BYTES:
            raise BadArchive(f"the link {shown(entry.name)} in the archive leads nowhere")
        if target.startswith(b"/"):
            raise BadArchive(f"the link {shown(entry.name)} in the archive leads out of it")
        try:
            os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            raise FileExistsError
        self._links[path] = target
        self._links_bytes += len(path) + len(target)
        if self._links_bytes > LINKS_BYTES:
            raise BadArchive("the archive holds too many links")

    def make_links(self) -> None:
        """When all else is there; none before it is clear that all of them end inside."""
        steps = LINK_STEPS
        for path in self._links:
            steps = _follow(path, self._links, steps)
        for path, target in self._links.items():
            *folders, name = path.split(b"/")
            os.symlink(target, name, dir_fd=self._enter(folders, path))


def _steps(name: bytes, depth: int) -> list[bytes]:
    """The folders and the name of an entry."""
    if len(name) > LONGEST_PATH_BYTES:
        raise BadArchive(f"the archive holds {shown(name)}, a path of more than {LONGEST_PATH_BYTES:,} bytes")
    steps = [step for step in name.split(b"/") if step not in (b"", b".")]
    if b".." in steps or b"\0" in name or name.startswith(b"/"):
        raise BadArchive(f"the path {shown(name)} in the archive leads out of it")
    if len(steps) > depth:
        raise BadArchive(f"the archive holds {shown(name)}, which lies more than {depth} folders deep")
    if any(len(step) > LONGEST_NAME_BYTES for step in steps):
        raise BadArchive(f"the archive holds {shown(name)}, with a name of more than {LONGEST_NAME_BYTES} bytes")
    return steps


def _follow(path: bytes, links: Mapping[bytes, bytes], steps: int) -> int:
    """Follow a link as the kernel would; returns how many steps are left for the others."""
    place = path.split(b"/")[:-1]
    ahead = links[path].split(b"/")[::-1]
    hops = 0
    while ahead:
        steps -= 1
        if steps < 0:
            raise BadArchive("the archive holds too many links that lead through others")
        step = ahead.pop()
        if step in (b"", b"."):
            continue
        if step == b"..":
            if not place:
                raise BadArchive(f"the link {shown(path)} in the archive leads out of it")
            place.pop()
            continue
        place.append(step)
        further = links.get(b"/".join(place))
        if further is not None:
            hops += 1
            if hops > MOST_HOPS:
                raise BadArchive(f"the link {shown(path)} in the archive leads through more than {MOST_HOPS} others")
            place.pop()
            ahead.extend(further.split(b"/")[::-1])
    return steps
