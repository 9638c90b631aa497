"""Code that was sent along: archives by their SHA-256, each unpacked once.

code/DIGEST/archive.tar.gz    as it came          code/DIGEST/tree/   what is in it; tasks get copies
code/DIGEST/users/            who has sent it: to know a digest is not to have the content
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil

from .errors import BadRequest, NoSuchCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
    from collections.abc import AsyncIterator

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
MOST_ENTRIES = 200_000
LARGEST_TREE = 20 * 1000 * 1000 * 1000


class CodeStore:
    """The folder `code` in a home."""

    def __init__(self, home: str) -> None:
        self.folder = os.path.join(home, "code")

    def tree(self, digest: str) -> str:
        """The unpacked code; NoSuchCode if it never came."""
        path = os.path.join(self.folder, self._checked(digest), "tree")
        if not os.path.isdir(path):
            raise NoSuchCode(f"no code with the SHA-256 {digest} was uploaded")
        return path

    def has(self, digest: str) -> bool:
        return os.path.isdir(os.path.join(self.folder, self._checked(digest), "tree"))

    def may_use(self, digest: str, user: str) -> bool:
        """Whether this user has sent it."""
        return self.has(digest) and os.path.exists(self._grant(digest, user))

    def grant(self, digest: str, user: str) -> None:
        """This user has sent it."""
        path = self._grant(digest, user)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "ab"):
            pass

    def _grant(self, digest: str, user: str) -> str:
        name = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:32]  # a user's name may be longer than a file's
        return os.path.join(self.folder, self._checked(digest), "users", name)

    async def compare(self, digest: str, content: AsyncIterator[bytes]) -> None:
        """Whether somebody has what is here already: only who has the content can send it."""
        seen = hashlib.sha256()
        async for piece in content:
            seen.update(piece)
        if seen.hexdigest() != digest:
            raise BadRequest(f"the content has the SHA-256 {seen.hexdigest()}, not {digest}")

    async def receive(self, digest: str, content: AsyncIterator[bytes]) -> int:
        """Keep an archive; answers its size. Whatever is wrong with it, nothing of it stays."""
        import asyncio

        self._checked(digest)
        os.makedirs(self.folder, 0o700, exist_ok=True)
        part = os.path.join(self.folder, f".{digest}.{os.urandom(6).hex()}")
        os.mkdir(part, 0o700)
        try:
            seen, size = hashlib.sha256(), 0
            with open(os.path.join(part, "archive.tar.gz"), "wb") as stream:
                async for piece in content:
                    seen.update(piece)
                    size += len(piece)
                    stream.write(piece)
                stream.flush()
                os.fsync(stream.fileno())
            if seen.hexdigest() != digest:
                raise BadRequest(f"the content has the SHA-256 {seen.hexdigest()}, not {digest}")
            await asyncio.to_thread(_unpack, part)
            try:
                os.rename(part, os.path.join(self.folder, digest))
            except OSError:
                if not self.has(digest):  # else somebody sent the same, and was quicker
                    raise
            return size
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def remove(self, digest: str) -> None:
        shutil.rmtree(os.path.join(self.folder, self._checked(digest)), ignore_errors=True)

    def _checked(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise BadRequest("code is named by its SHA-256: 64 hexadecimal digits, in lower case")
        return digest


def _unpack(folder: str) -> None:
    """Into `tree`: files, folders and links that stay inside, nothing else."""
    import tarfile
    import zlib

    tree = os.path.join(folder, "tree")
    os.mkdir(tree, 0o700)
    try:
        with tarfile.open(os.path.join(folder, "archive.tar.gz"), "r:gz") as archive:
            entries, total = 0, 0
            for member in archive:
                entries, total = entries + 1, total + max(0, member.size)
                if entries > MOST_ENTRIES or total > LARGEST_TREE:
                    raise BadRequest("the archive holds more than the server unpacks: leave data out with a .pailotignore file")
                _put(archive, member, tree)
    except (tarfile.TarError, EOFError, zlib.error, UnicodeError, ValueError, OSError) as error:
        raise BadRequest(f"the archive cannot be unpacked: {error}") from None


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, tree: str) -> None:
    name = member.name.removeprefix("./")
    if name in ("", "."):
        return
    if not (member.isreg() or member.isdir() or member.issym()):
        raise BadRequest(f"the archive holds {name!r}, which is neither a file, a folder nor a symbolic link")
    target = _inside(tree, name, name)
    if member.isdir():
        os.makedirs(target, 0o755, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
    if os.path.lexists(target):
        raise BadRequest(f"the archive holds {name!r} twice")
    if member.issym():
        if os.path.isabs(member.linkname):
            raise BadRequest(f"the link {name!r} in the archive leads out of it")
        _inside(tree, os.path.join(os.path.dirname(name), member.linkname), name)
        os.symlink(member.linkname, target)
        return
    stream = archive.extractfile(member)
    assert stream is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(target, "xb", opener=lambda path, _: os.open(path, flags, 0o755 if member.mode & 0o100 else 0o644)) as out:
        shutil.copyfileobj(stream, out)


def _inside(tree: str, name: str, shown: str) -> str:
    """The place of an entry, if it is below the tree by its words and through no link that leads elsewhere."""
    if "\0" in name or os.path.isabs(name):
        raise BadRequest(f"the path {shown!r} in the archive leads out of it")
    path = os.path.normpath(os.path.join(tree, name))
    if path != tree:
        real, root = os.path.realpath(os.path.dirname(path)), os.path.realpath(tree)
        below = real == root or real.startswith(root + os.sep)
        if not below or not path.startswith(tree + os.sep):
            raise BadRequest(f"the path {shown!r} in the archive leads out of it")
    return path
