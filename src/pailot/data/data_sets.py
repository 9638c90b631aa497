"""The content of data sets of the library: fetched once a machine, read by many jobs, removed when no job uses it.

    FOLDER/content/KEY/about.json       what it is; there from the moment on at which all of it is there
    FOLDER/content/KEY/content/NAME     the file or folder itself, which no task may write to
    FOLDER/content/KEY.part/            on its way; it counts for nothing
    FOLDER/content/KEY.lock             held while it is fetched, looked at or removed
    FOLDER/uses/KEY/ID                  the folder of an attempt that uses it

KEY is made from the address, the version and the SHA-256 sum, so another version is another content. Only addresses that stand
in a file of the library as they are get here, and nothing that holds a secret: what one job may read, all may.

On a server with Unix users `content` belongs to a Unix user of its own (`data_cache_user`), who fetches without any
credentials; tasks can read it and change nothing. `uses` belongs to the server alone. A change that was made all the same is
seen, since the kernel dates it (`st_ctime`), and the content is then fetched again.
"""

from __future__ import annotations

import json
import os
import stat
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from hashlib import sha256
from time import time

from .. import credentials
from ..progress import Meter
from ..runfolder import layout
from ..runfolder.atomic_json import read_record
from ..runfolder.careful_files import make_folders, open_regular
from ..runfolder.removing import remove_tree
from ..values import Value
from .addresses import parse
from .download import from_http, from_store
from .filesystems import is_remote
from .location import Location, ProvideError
from .rules import OWN_MACHINE, WEB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ..planning import Plan
    from ..progress import Progress
    from .rules import Rules

_LONGEST_NAME = 200
_READ_ONLY_FILE, _READ_ONLY_FOLDER = 0o444, 0o555
_EXECUTABLE = 0o111


class DataSet(Value):
    """Content of the library, as a plan names it."""

    uri: str
    label: str
    """NAME@VERSION of the entry."""
    sha256: str = ""

    @property
    def version(self) -> str:
        return self.label.partition("@")[2]

    @property
    def key(self) -> str:
        """Another address, version or sum is another content, whatever the entry is called."""
        return sha256(json.dumps([self.uri, self.version, self.sha256]).encode()).hexdigest()

    @property
    def file_name(self) -> str:
        """What it is called where it lies."""
        name = self.uri.partition("::")[0].rstrip("/").rpartition("/")[2].partition("?")[0].partition("#")[0]
        return "file" if name in ("", ".", "..") else name[-_LONGEST_NAME:]


class Content(Value):
    """A data set that is here."""

    key: str
    uri: str
    label: str
    path: str
    bytes: int
    files: int
    fetched: float
    used: float
    jobs: int
    """Attempts that use it now."""


def shareable(uri: str) -> bool:
    """Whether what an address names may be shared: it is elsewhere, holds no secret, and means the same for every job."""
    if "<%" in uri or "$" in uri or not is_remote(uri):
        return False
    if any("@" in link.rest.partition("/")[0] for link in parse(uri).links):
        return False
    return next(iter(credentials.of_value("", uri)), None) is None


def wanted(plan: Plan) -> tuple[DataSet, ...]:
    """What the roles of a plan use of the library, each once."""
    found = {
        DataSet(each.source, each.shared, each.sha256): None
        for role in plan.roles.values()
        for each in role.provisions
        if each.kind == "fetch" and each.shared and shareable(each.source)
    }
    return tuple(found)


class DataSets:
    """The data sets in one folder of this machine."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._content, self._uses = os.path.join(folder, "content"), os.path.join(folder, "uses")

    def prepare(self, give: Callable[[str], None] | None = None) -> None:
        """Make the folders; `give` hands the one for content to the user who fetches, and opens the way there for all."""
        made = [self._content]
        while give is not None and not os.path.isdir(os.path.dirname(made[-1])):
            made.append(os.path.dirname(made[-1]))
        make_folders(self._content)
        make_folders(self._uses)
        if give is not None:
            for each in made:
                os.chmod(each, 0o755)  # noqa: S103  # every user reads it
            give(self._content)

    def path(self, data: DataSet) -> str:
        """Where the content is, or will be."""
        return os.path.join(self._content, data.key, "content", data.file_name)

    def note_use(self, data: DataSet, attempt: str) -> None:
        """An attempt uses it from now on, until its run is over. Said before it is looked for, so that it stays."""
        folder = os.path.join(self._uses, data.key)
        os.makedirs(folder, exist_ok=True)
        target = os.path.join(folder, sha256(attempt.encode()).hexdigest()[:32])
        with open(f"{target}.part", "w", encoding="utf-8") as stream:
            stream.write(attempt)
        os.replace(f"{target}.part", target)
        os.utime(folder)

    def bring(self, data: DataSet, rules: Rules = OWN_MACHINE, tell: Callable[[Progress], None] = lambda _: None) -> bool:
        """Have it here, whole; others that want it wait meanwhile. Whether it had to be fetched. Raises ProvideError."""
        source = Location(data.uri, data.uri)
        source.check(rules)
        try:
            lock = self._lock(data.key)
            try:
                if self._is_right(data.key):
                    return False
                self._fetch(data, source, rules, tell)
                return True
            finally:
                os.close(lock)
        except OSError as error:
            where = error.filename2 or error.filename or self.folder
            raise source.error(f"{where} cannot be written: {error.strerror}") from None

    def contents(self) -> list[Content]:
        """Everything that is here, the longest unused first."""
        found = [each for key in self._keys() if (each := self._about(key)) is not None]
        return sorted(found, key=lambda each: each.used)

    def find(self, data: DataSet) -> Content | None:
        """One of them."""
        return self._about(data.key)

    def evict(self, limit_bytes: int) -> list[Content]:
        """Remove what no job uses, the longest unused first, until the rest fits; and what was left half-way. What went."""
        self._sweep()
        kept = self.contents()
        total = sum(each.bytes for each in kept)
        gone = []
        for each in kept:
            if total <= limit_bytes:
                break
            if not self._users(each.key) and self._remove(each.key):
                total -= each.bytes
                gone.append(each)
        return gone

    # One of them

    def _fetch(self, data: DataSet, source: Location, rules: Rules, tell: Callable[[Progress], None]) -> None:
        place, part = os.path.join(self._content, data.key), os.path.join(self._content, f"{data.key}.part")
        _remove_tree(part)
        inside = os.path.join(part, "content")
        os.makedirs(inside, 0o755)
        target = os.path.join(inside, data.file_name)
        try:
            bring = from_http if parse(data.uri).scheme in WEB else from_store
            news = bring(source, target, None, lambda total: Meter(data.label, total, tell), rules)
            found = news.sha256 if news is not None else ""
            if data.sha256 and found != data.sha256:
                words = f"its SHA-256 sum is {found}" if found else "it is a folder, which has no SHA-256 sum"
                raise source.error(f"is not what it should be: {words}, the library says {data.sha256}")
            size, files = _close(inside)
            about = {
                "uri": data.uri,
                "label": data.label,
                "sha256": data.sha256,
                "name": data.file_name,
                "bytes": size,
                "files": files,
                "fetched": time(),
                "look": _look(inside),
            }
            _write(os.path.join(part, "about.json"), about)
            os.chmod(part, 0o755)  # noqa: S103  # every task of this machine reads it
            self._put_aside(place)
            os.rename(part, place)
        finally:
            _remove_tree(part)

    def _put_aside(self, place: str) -> None:
        """What is not right any more makes room; a task that reads it by its path reads the new content from then on."""
        if os.path.lexists(place):
            aside = f"{place}.{os.urandom(4).hex()}.old"
            os.rename(place, aside)
            _remove_tree(aside)

    def _is_right(self, key: str) -> bool:
        """Whether all of it is here, as it was fetched."""
        about = read_record(os.path.join(self._content, key, "about.json"))
        return about is not None and about.get("look") == _look(os.path.join(self._content, key, "content"))

    def _about(self, key: str) -> Content | None:
        about = read_record(os.path.join(self._content, key, "about.json"))
        try:
            assert about is not None
            path = os.path.join(self._content, key, "content", str(about["name"]))
            size, files, fetched = int(about["bytes"]), int(about["files"]), float(about["fetched"])
            uri, label = str(about["uri"]), str(about["label"])
        except (AssertionError, KeyError, TypeError, ValueError):
            return None
        try:
            used = os.stat(os.path.join(self._uses, key)).st_mtime
        except OSError:
            used = fetched
        return Content(key, uri, label, path, size, files, fetched, max(used, fetched), len(self._users(key)))

    def _users(self, key: str) -> list[str]:
        """The attempts that use it; what is said of others is forgotten."""
        folder = os.path.join(self._uses, key)
        found = []
        for name in _names(folder):
            try:
                with open(os.path.join(folder, name), encoding="utf-8") as stream:
                    attempt = stream.read(4096)
            except OSError:
                continue
            if not name.endswith(".part") and is_at_work(attempt):
                found.append(attempt)
        return found

    def _remove(self, key: str) -> bool:
        """Remove it, unless it is being fetched or has come into use meanwhile."""
        lock = self._try_lock(key)
        if lock is None:
            return False
        try:
            if self._users(key):
                return False
            self._put_aside(os.path.join(self._content, key))
            _remove_tree(os.path.join(self._uses, key))
            os.unlink(os.path.join(self._content, f"{key}.lock"))
            return True
        except OSError:
            return False  # another user's, or the disk's trouble; the next time may go better
        finally:
            os.close(lock)

    def _sweep(self) -> None:
        """Remove what a crash left half-way, and uses that are over."""
        for name in _names(self._content):
            key, dot, rest = name.partition(".")
            if dot and rest.endswith(("part", "old")):
                lock = self._try_lock(key)
                if lock is not None:
                    _remove_tree(os.path.join(self._content, name))
                    os.close(lock)
        for key in _names(self._uses):
            folder = os.path.join(self._uses, key)
            for name in _names(folder):
                use = os.path.join(folder, name)
                try:
                    with open(use, encoding="utf-8") as stream:
                        attempt = stream.read(4096)
                    if not is_at_work(attempt):
                        seen = os.stat(folder)
                        os.unlink(use)
                        os.utime(folder, ns=(seen.st_atime_ns, seen.st_mtime_ns))
                except OSError:
                    continue

    def _keys(self) -> list[str]:
        return [name for name in _names(self._content) if "." not in name]

    def _lock(self, key: str) -> int:
        """Wait for our turn. The file may have been removed meanwhile: then another one counts."""
        path = os.path.join(self._content, f"{key}.lock")
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            flock(descriptor, LOCK_EX)
            if _is_the_same(descriptor, path):
                return descriptor
            os.close(descriptor)

    def _try_lock(self, key: str) -> int | None:
        path = os.path.join(self._content, f"{key}.lock")
        try:
            descriptor = open_regular(path, os.O_RDWR)
        except OSError:
            return None
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        if _is_the_same(descriptor, path):
            return descriptor
        os.close(descriptor)
        return None


def is_at_work(attempt: str) -> bool:
    """Whether an attempt may still read what was brought for it: its run has a driver, or is Slurm's, and is not over."""
    run = os.path.dirname(os.path.dirname(attempt))
    if not attempt.startswith("/") or not os.path.isdir(attempt) or os.path.exists(os.path.join(run, layout.VERDICT)):
        return False
    if os.path.exists(os.path.join(attempt, layout.SLURM_JOB)):
        return True
    try:
        descriptor = open_regular(os.path.join(run, layout.LOCK))
    except OSError:
        return False
    try:
        flock(descriptor, LOCK_SH | LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def fetch_all(folder: str, data_sets: Iterable[DataSet], rules: Rules, *, without_home: bool = False) -> list[str]:
    """Bring data sets; returns the labels of those that had to be fetched. Runs in a child on a server.

    `without_home` is for the user who fetches for all: not even files of that user's home may speak for the others.
    """
    if without_home:
        from .job_user import NOWHERE

        os.environ["HOME"] = NOWHERE
        os.environ.pop("NETRC", None)
        os.umask(0o022)
    here = DataSets(folder)
    return [each.label for each in data_sets if here.bring(each, rules)]


def _close(folder: str) -> tuple[int, int]:
    """Take away all rights to write below a folder; returns the bytes and files in it. What is neither file nor folder goes."""
    size = files = 0
    for here, folders, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(here, name)
            found = os.lstat(path)
            if not stat.S_ISREG(found.st_mode):
                os.unlink(path)
                continue
            os.chmod(path, _READ_ONLY_FILE | (found.st_mode & _EXECUTABLE and _EXECUTABLE))
            size, files = size + found.st_size, files + 1
        for name in folders:
            if os.path.islink(os.path.join(here, name)):
                os.unlink(os.path.join(here, name))
        os.chmod(here, _READ_ONLY_FOLDER)
    return size, files


def _look(folder: str) -> str:
    """What changes whenever anything below a folder does: the kernel dates each change, and no user can set that date."""
    seen = sha256()
    for here, folders, names in os.walk(folder):
        folders.sort()
        for path in (here, *(os.path.join(here, name) for name in sorted(names))):
            try:
                found = os.lstat(path)
            except OSError:
                return ""
            told = (path[len(folder) :], found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
            seen.update(repr(told).encode(errors="surrogateescape"))
    return seen.hexdigest()


def _write(path: str, record: Mapping[str, object]) -> None:
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(record, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(path, _READ_ONLY_FILE)


def _remove_tree(path: str) -> None:
    """Remove a tree whose folders are read-only."""
    if not os.path.lexists(path):
        return
    for here, _, _ in os.walk(path):
        try:
            os.chmod(here, 0o700)
        except OSError:
            continue
    remove_tree(path, ignore_errors=True)


def _is_the_same(descriptor: int, path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    held = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)


def _names(folder: str) -> Iterator[str]:
    try:
        yield from sorted(os.listdir(folder))
    except OSError:
        return


__all__ = ["Content", "DataSet", "DataSets", "ProvideError", "fetch_all", "is_at_work", "shareable", "wanted"]
