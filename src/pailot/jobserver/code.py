"""Code that was sent along: archives by their SHA-256, each unpacked once.

code/DIGEST/archive.tar.gz    as it came          code/DIGEST/tree/   what is in it; tasks get copies
code/DIGEST/users/            who has sent it: to know a digest is not to have the content
code/DIGEST/amount            bytes and files that it takes; everybody who has sent it is charged with all of it
"""

from __future__ import annotations

import asyncio  # only a server loads this
import hashlib
import os
import re
from concurrent.futures import ThreadPoolExecutor

from ..data.unpacking import Amount, Limits, TooLarge
from ..runfolder.careful_files import private
from ..runfolder.removing import remove_tree
from ..values import Value
from .errors import BadRequest, NoSuchCode, QuotaExceeded
from .unpack_process import unpack_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
LARGEST = Limits()
"""Of one archive, whatever the quota says."""
UNPACKED_AT_ONCE = 2


class Quota(Value):
    """What the code of one user may take of the server; 0 for no bound."""

    bytes: int = 0
    files: int = 0

    def left(self, used: Amount) -> Limits:
        """What one more archive may hold."""
        room = max(0, self.bytes - used.bytes) if self.bytes else LARGEST.bytes
        files = max(0, self.files - used.places) if self.files else LARGEST.places
        return Limits(min(room, LARGEST.bytes), min(files, LARGEST.places))


class CodeStore:
    """The folder `code` in a home."""

    def __init__(self, home: str, quota: Quota = Quota()) -> None:  # noqa: B008  # a value that cannot change

        self.folder = os.path.join(home, "code")
        self.quota = quota
        self._threads = ThreadPoolExecutor(UNPACKED_AT_ONCE, "pailot-code")
        """For disks that are slow; what others wait for has threads of its own."""
        self._unpacking = asyncio.Semaphore(UNPACKED_AT_ONCE)
        self._arriving: dict[str, tuple[str, int]] = {}
        """What is just being received, by its folder: whose it is, and its bytes up to now."""
        self._turns: dict[str, asyncio.Lock] = {}
        """One archive of a user at a time is unpacked, so that their quota holds and others have their turn."""

    def close(self) -> None:
        self._threads.shutdown(wait=False)

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

    def usage(self, user: str) -> Amount:
        """What the code takes that this user has sent."""
        mine = [digest for digest in self._digests() if os.path.exists(self._grant(digest, user))]
        amounts = [self._amount(digest) for digest in mine]
        return Amount(sum(each.bytes for each in amounts), sum(each.places for each in amounts))

    async def is_tight(self, user: str) -> bool:
        """Whether more than half of a user's quota is used."""
        used, quota = await self._beside(self.usage, user), self.quota
        return bool((quota.bytes and used.bytes * 2 > quota.bytes) or (quota.files and used.places * 2 > quota.files))

    async def put(self, digest: str, user: str, content: AsyncIterator[bytes], *, run_as: str = "") -> int:
        """Keep an archive for a user, or see that they have what is kept already; returns the size of what is new.

        It is unpacked as the Unix user `run_as`, if there is one, into a folder that only we can reach.
        Whatever is wrong with it, nothing of it stays: BadRequest, QuotaExceeded.
        """
        if not self.has(digest):
            return await self._receive(digest, user, content, run_as)
        await self._compare(digest, content)
        async with self._turn(user):
            left, amount = self.quota.left(await self._beside(self.usage, user)), await self._beside(self._amount, digest)
            if amount.bytes > left.bytes or amount.places > left.places:
                raise self._too_much()
            await self._beside(self._let_use, digest, user)
        return 0

    def remove(self, digest: str) -> None:
        remove_tree(os.path.join(self.folder, self._checked(digest)), ignore_errors=True)

    # Receiving

    async def _compare(self, digest: str, content: AsyncIterator[bytes]) -> None:
        """Whether a user has content that is here already: only a user who has it can send it."""
        seen = hashlib.sha256()
        async for piece in content:
            seen.update(piece)
        _check_digest(seen.hexdigest(), digest)

    async def _receive(self, digest: str, user: str, content: AsyncIterator[bytes], run_as: str) -> int:
        part = await self._beside(self._new_part, digest)
        try:
            size = await self._write(part, digest, user, content)
            async with self._turn(user):
                await self._unpack(part, user, size, run_as)
                await self._beside(self._place, part, digest, user)
            return size
        finally:
            self._arriving.pop(part, None)
            await asyncio.shield(self._beside(remove_tree, part, ignore_errors=True))

    async def _write(self, part: str, digest: str, user: str, content: AsyncIterator[bytes]) -> int:
        """The archive as it came. What is too much is read to its end, since most clients listen only then, but not kept."""
        room = self.quota.left(await self._beside(self.usage, user)).bytes
        seen, size, fits = hashlib.sha256(), 0, True
        with open(os.path.join(part, "archive.tar.gz"), "wb", opener=private) as stream:
            async for piece in content:
                seen.update(piece)
                size += len(piece)
                self._arriving[part] = user, size
                fits = fits and sum(bytes for whose, bytes in self._arriving.values() if whose == user) <= room
                if fits:
                    stream.write(piece)
            stream.flush()
            await self._beside(os.fsync, stream.fileno())
        if not fits:
            raise self._too_much()
        _check_digest(seen.hexdigest(), digest)
        return size

    async def _unpack(self, part: str, user: str, size: int, run_as: str) -> None:
        left = self.quota.left(await self._beside(self.usage, user))
        if size > left.bytes:
            raise self._too_much()
        tree = os.path.join(part, "tree")
        os.mkdir(tree, 0o700)
        try:
            async with self._unpacking:
                limits = left.replace(bytes=left.bytes - size)
                amount = await unpack_apart(os.path.join(part, "archive.tar.gz"), tree, limits, run_as)
        except TooLarge as error:
            raise (BadRequest(str(error)) if left == LARGEST else self._too_much()) from None
        with open(os.path.join(part, "amount"), "w", encoding="ascii", opener=private) as stream:
            stream.write(f"{amount.bytes + size} {amount.places}")

    def _place(self, part: str, digest: str, user: str) -> None:
        try:
            os.rename(part, os.path.join(self.folder, digest))
        except OSError:
            if not self.has(digest):  # else another upload of the same was quicker
                raise
        self._let_use(digest, user)

    def _too_much(self) -> QuotaExceeded:
        bounds = [f"{self.quota.bytes / 1e6:,.0f} MB"] if self.quota.bytes else []
        bounds += [f"{self.quota.files:,} files"] if self.quota.files else []
        words = f"all your code on the server may take {' and '.join(bounds)}, and this would be more"
        return QuotaExceeded(f"{words}: leave data out with a .pailotignore file, or delete old jobs that were sent with code")

    # Parts

    def _turn(self, user: str) -> asyncio.Lock:
        return self._turns.setdefault(user, asyncio.Lock())

    async def _beside(self, work: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: work(*args, **keywords))

    def _new_part(self, digest: str) -> str:
        part = os.path.join(self.folder, f".{self._checked(digest)}.{os.urandom(6).hex()}")
        os.makedirs(self.folder, 0o700, exist_ok=True)
        os.mkdir(part, 0o700)
        return part

    def _digests(self) -> list[str]:
        return [name for name in os.listdir(self.folder) if _DIGEST.fullmatch(name)] if os.path.isdir(self.folder) else []

    def _amount(self, digest: str) -> Amount:
        folder = os.path.join(self.folder, digest)
        try:
            with open(os.path.join(folder, "amount"), encoding="ascii") as stream:
                size, places = stream.read().split()
            return Amount(int(size), int(places))
        except FileNotFoundError:
            pass  # it came before there were quotas
        try:
            return Amount(os.stat(os.path.join(folder, "archive.tar.gz")).st_size, 0)
        except FileNotFoundError:
            return Amount(0, 0)  # it has just been removed

    def _let_use(self, digest: str, user: str) -> None:
        """This user has sent it."""
        path = self._grant(digest, user)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "ab", opener=private):
            pass

    def _grant(self, digest: str, user: str) -> str:
        name = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:32]  # a user's name may be longer than a file's
        return os.path.join(self.folder, self._checked(digest), "users", name)

    def _checked(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise BadRequest("code is named by its SHA-256: 64 hexadecimal digits, in lower case")
        return digest


def _check_digest(seen: str, digest: str) -> None:
    if seen != digest:
        raise BadRequest(f"the content has the SHA-256 {seen}, not {digest}")
