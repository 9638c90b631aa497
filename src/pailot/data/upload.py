"""Outputs on their way to where a job wants them. First everything is sent to a hidden place, then all of it appears.

- A folder of this machine, and a file system that can rename (HDFS): into a hidden folder beside the target, then one rename.
- A bucket that takes objects in parts (S3, OSS): all parts of all objects, then the word for each object that it is complete.
- Other stores of fsspec: into a hidden folder beside the target, then whatever the driver does to move it.

Where the target holds something already, files come into it one by one, each whole, and replace those of the same name. What
was begun is in the journal first, so that a failure, a stop or a crash leaves nothing: neither at the target nor beside it.
"""

from __future__ import annotations

import os
import stat

from ..progress import Meter
from ..runfolder.removing import remove_tree
from ..values import Value
from . import filesystems, folders, multipart
from .addresses import NotAllowed, parse
from .errors import DataError
from .rules import OWN_MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    from ..progress import Progress
    from .rules import Rules
    from .upload_journal import UploadJournal

    Item = TypeVar("Item")

    class Delivery(Protocol):
        """One output on its way."""

        def send(self, meter: Meter) -> None:
            """Send all of it to a hidden place."""

        def appear(self) -> None:
            """Make it seen."""

        def undo(self) -> None:
            """Remove all of it, as far as it was not there before."""


THREADS = 8
CHUNK = 1024 * 1024


class Leaf(Value):
    """A file of an output: its path below the output, where it is, its size."""

    below: str
    path: str
    size: int


class OutputTree(Value):
    """What an output holds."""

    root: str
    files: tuple[Leaf, ...]
    folders: tuple[str, ...]
    left_out: tuple[str, ...]
    """Links that lead out or nowhere, sockets and pipes: no store can hold them."""
    ours: bool
    """Whether all of it belongs to this user."""

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


class _Places:
    """How paths of this machine are reached: as they are, or on a server by way of folders that are held."""

    def __init__(self, rules: Rules, base: str) -> None:
        self.rules, self._base = rules, base
        self._held: dict[str, folders.Held] = {}

    def of(self, path: str, *, create: bool = False) -> str:
        """A path that leads where `path` says, and nowhere else."""
        parent, name = os.path.split(path)
        return self.folder(parent, create=create).place(name) if self.rules.server else path

    def folder(self, path: str, *, create: bool = False) -> folders.Held:
        held = self._held.get(path)
        if held is None:
            if self.rules.server and f"{path}/".startswith(f"{self._base}/"):
                held = folders.hold_below(self._base, [each for each in path[len(self._base) :].split("/") if each])
            else:
                held = folders.hold(path, self.rules, create=create)
            self._held[path] = held
        return held


def scan(root: str, places: _Places | None = None) -> OutputTree:
    """A link to a file inside counts as that file."""
    where = (places or _Places(OWN_MACHINE, "")).of(root)
    if places and places.rules.server and not stat.S_ISDIR(os.lstat(where).st_mode):
        raise NotAllowed("what the tasks left in its place is no folder")
    files: list[Leaf] = []
    folders: list[str] = []
    left_out: list[str] = []
    ours, me = True, os.geteuid()
    inside = os.path.realpath(where) + "/"

    def walk(folder: str, below: str) -> None:
        nonlocal ours
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = f"{below}{entry.name}"
            seen = entry.stat(follow_symlinks=False)
            ours = ours and seen.st_uid == me
            if stat.S_ISDIR(seen.st_mode):
                folders.append(name)
                walk(entry.path, f"{name}/")
            elif stat.S_ISREG(seen.st_mode):
                files.append(Leaf(name, entry.path, seen.st_size))
            elif stat.S_ISLNK(seen.st_mode) and os.path.isfile(entry.path) and os.path.realpath(entry.path).startswith(inside):
                files.append(Leaf(name, entry.path, os.stat(entry.path).st_size))
            else:
                left_out.append(name)

    walk(where, "")
    return OutputTree(root, tuple(files), tuple(folders), tuple(left_out), ours)


def publish(
    targets: Mapping[str, str],
    folder: str,
    cwd: str,
    journal: UploadJournal,
    tell: Callable[[Progress], None] = lambda _: None,
    rules: Rules = OWN_MACHINE,
) -> list[str]:
    """Bring outputs to their targets, all or none; return notes for the user. `folder` holds one folder for each.

    On a server, `folder` is `ml/output` in the folder of an attempt; only the latter is ours, the tasks could change the rest.
    """
    base = os.path.dirname(os.path.dirname(folder))
    undo(journal, rules, base)
    places = _Places(rules, base)
    notes: list[str] = []
    begun: list[tuple[str, str, Delivery]] = []
    name = target = ""
    try:
        for name, target in targets.items():
            tree = scan(os.path.join(folder, name), places)
            delivery = _delivery(tree, target, cwd, journal, places)
            begun.append((name, target, delivery))
            meter = Meter(f"output {name}", tree.size, tell)
            delivery.send(meter)
            meter.end()
            if tree.left_out and filesystems.is_remote(target):
                notes.append(f"output {name}: left out, since it cannot be kept there: {', '.join(tree.left_out[:5])}")
        for name, target, delivery in begun:  # noqa: B007  # the names are for the error below
            delivery.appear()
    except BaseException as error:
        _undo_all([each for _, _, each in begun], journal)
        if isinstance(error, Exception):
            raise _failure(name, target, error) from None
        raise
    journal.settled()
    return notes


def _failure(name: str, target: str, error: Exception) -> DataError:
    if isinstance(error, DataError):
        words = str(error)
    elif filesystems.is_remote(target):
        words = str(filesystems.failure(target, error))
    else:
        words = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
    where = filesystems.shown(target)
    return DataError(f"the output '{name}' could not be brought to {where}: {words.removeprefix(f'{where}: ')}")


def _undo_all(deliveries: Sequence[Delivery], journal: UploadJournal) -> None:
    clean = True
    for each in reversed(deliveries):
        try:
            each.undo()
        except Exception:  # what cannot be removed now stands in the journal; the next upload removes it
            clean = False
    if clean and deliveries:
        journal.settled()


def undo(journal: UploadJournal, rules: Rules = OWN_MACHINE, base: str = "") -> None:
    """Remove what an earlier process began and did not end."""
    places = _Places(rules, base)
    connected: dict[str, Any] = {}
    entries = journal.open()
    for each in entries:
        kind, uri = each["kind"], each.get("uri", "")
        try:
            if kind in ("moved", "folder"):
                path = places.of(each["path"])
                _move_back(path, places.of(each["root"])) if kind == "moved" else _remove_local(path)
                continue
            if uri not in connected:
                connected[uri] = filesystems.connect(uri, rules)
            files, path = connected[uri]
            if kind == "shown":
                if files.exists(each["path"]) and not files.exists(each["near"]):
                    files.rm(each["path"], recursive=True)
            elif kind == "remote":
                files.rm(each["path"], recursive=True)
            else:
                found = multipart.bucket_of(files, path)
                assert found is not None
                if kind == "upload":
                    found[0].abort(each["key"], each["upload"])
                elif kind == "object":
                    found[0].remove(each["key"])
        except Exception as error:
            if not isinstance(filesystems.failure(uri, error), filesystems.StoreMissing) and "NoSuchUpload" not in repr(error):
                raise filesystems.failure(uri, error) from None
    if entries:
        journal.settled()


def _delivery(tree: OutputTree, target: str, cwd: str, journal: UploadJournal, places: _Places) -> Delivery:
    address = parse(target)
    if address.is_path:
        return _Folder(tree, folders.real_path(address, cwd, places.rules).rstrip("/") or "/", journal, places)
    files, path = filesystems.connect(target, places.rules)
    path = path.rstrip("/")
    found = multipart.bucket_of(files, path)
    if found is None:
        return _Renamed(tree, target, files, path, journal)
    return _Objects(tree, target, files, path, *found, journal)


def _each(work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Several at a time; the first error ends it."""
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    pool = ThreadPoolExecutor(THREADS, "sending")
    try:
        waiting = set()
        for item in items:
            waiting.add(pool.submit(work, item))
            if len(waiting) >= 4 * THREADS:
                done, waiting = wait(waiting, return_when=FIRST_EXCEPTION, timeout=0.05)
                for each in done:
                    each.result()
        for each in waiting:
            each.result()
    finally:
        pool.shutdown(cancel_futures=True)


# To a folder of this machine


class _Folder:
    def __init__(self, tree: OutputTree, target: str, journal: UploadJournal, places: _Places) -> None:
        self._tree, self._target, self._journal, self._places = tree, target, journal, places
        self._parent, name = os.path.split(target)
        self._near = os.path.join(self._parent, f".pailot-{name}-{os.urandom(4).hex()}")
        self._fresh = False

    def send(self, meter: Meter) -> None:
        parent = self._places.folder(self._parent, create=True)
        root = self._places.of(self._tree.root)
        if self._tree.ours and os.stat(root).st_dev == os.fstat(parent.descriptor).st_dev:
            self._journal.note("moved", path=self._near, root=self._tree.root)
            os.rename(root, self._places.of(self._near))
            meter.add(self._tree.size)
        else:
            self._journal.note("folder", path=self._near)
            folders.copy_tree(root, parent, os.path.basename(self._near), meter.add)

    def appear(self) -> None:
        near, target = self._places.of(self._near), self._places.of(self._target)
        if not os.path.isdir(target) or not os.listdir(target):
            self._journal.note("moved", path=self._target, root=self._near)
            os.rename(near, target)  # over an empty folder, too
            self._fresh = True
            return
        with folders.hold_entry(near) as origin, folders.hold_entry(target, follow=not self._places.rules.server) as into:
            folders.merge(origin.descriptor, into.descriptor, self._places.rules)
        _remove_local(near)

    def undo(self) -> None:
        near = self._places.of(self._near)
        if self._fresh:
            _move_back(self._places.of(self._target), near)
        _move_back(near, self._places.of(self._tree.root))  # the task's work is not lost
        _remove_local(near)


def _move_back(path: str, root: str) -> None:
    if os.path.lexists(path) and not os.path.lexists(root):
        os.rename(path, root)


def _remove_local(path: str) -> None:
    if os.path.lexists(path):
        remove_tree(path)


# To a file system that can rename


class _Renamed:
    def __init__(self, tree: OutputTree, uri: str, files: Any, path: str, journal: UploadJournal) -> None:
        self._tree, self._uri, self._files, self._path, self._journal = tree, uri, files, path, journal
        parent, _, name = path.rpartition("/")
        self._near = f"{parent}/.pailot-{name}-{os.urandom(4).hex()}"
        self._fresh = False

    def send(self, meter: Meter) -> None:
        self._journal.note("remote", uri=self._uri, path=self._near)
        self._files.makedirs(self._near, exist_ok=True)
        for folder in self._tree.folders:
            self._files.makedirs(f"{self._near}/{folder}", exist_ok=True)

        def send(leaf: Leaf) -> None:
            with open(leaf.path, "rb") as stream, self._files.open(f"{self._near}/{leaf.below}", "wb") as out:
                while chunk := stream.read(CHUNK):
                    out.write(chunk)
                    meter.add(len(chunk))

        _each(send, self._tree.files)

    def appear(self) -> None:
        there = self._files.exists(self._path)
        if not there or not self._files.find(self._path):
            if there:
                self._files.rm(self._path, recursive=True)  # an empty folder; a rename would go into it
            self._journal.note("shown", uri=self._uri, path=self._path, near=self._near)
            self._move(self._near, self._path)
            self._fresh = True
            return
        for folder in self._tree.folders:
            self._files.makedirs(f"{self._path}/{folder}", exist_ok=True)
        for leaf in self._tree.files:
            place = f"{self._path}/{leaf.below}"
            if self._files.exists(place):
                self._files.rm(place)
            self._move(f"{self._near}/{leaf.below}", place)
        self._files.rm(self._near, recursive=True)

    def _move(self, source: str, target: str) -> None:
        self._files.mv(source, target, recursive=True)
        if not self._files.exists(target):
            raise DataError(f"{filesystems.shown(self._uri)}: the file system did not rename what was sent")

    def undo(self) -> None:
        for path in (self._path,) if self._fresh else (self._near,):
            if self._files.exists(path):
                self._files.rm(path, recursive=True)


# To a bucket


class _Objects:
    def __init__(
        self, tree: OutputTree, uri: str, files: Any, path: str, bucket: multipart.Bucket, key: str, journal: UploadJournal
    ) -> None:
        self._tree, self._uri, self._files, self._path = tree, uri, files, path
        self._bucket, self._key, self._journal = bucket, key, journal
        self._begun: dict[str, tuple[str, list[Any]]] = {}
        """By key: the upload, and its parts."""
        self._before: set[str] = set()
        self._shown: list[str] = []

    def send(self, meter: Meter) -> None:
        bucket = self._path.strip("/").partition("/")[0]
        self._before = {each.strip("/").removeprefix(f"{bucket}/") for each in filesystems.names(self._files, self._path)}

        def send(leaf: Leaf) -> None:
            key = self._key_of(leaf.below)
            if not leaf.size:
                return  # there are no empty parts; it is put at the end
            upload = self._bucket.begin(key)
            self._journal.note("upload", uri=self._uri, key=key, upload=upload)
            parts: list[Any] = []
            self._begun[key] = upload, parts
            size = multipart.part_size(leaf.size)
            with open(leaf.path, "rb") as stream:
                while data := stream.read(size):
                    parts.append(self._bucket.send(key, upload, len(parts) + 1, data))
                    meter.add(len(data))

        _each(send, self._tree.files)

    def _key_of(self, below: str) -> str:
        try:
            below.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{filesystems.shown(self._uri)}: {below!r} is not Unicode, and so cannot be the name of an object"
            ) from None
        return f"{self._key}/{below}" if self._key else below

    def appear(self) -> None:
        keys = [self._key_of(leaf.below) for leaf in self._tree.files]
        for key in keys:
            if key not in self._before:
                self._journal.note("object", uri=self._uri, key=key)

        def show(key: str) -> None:
            if key in self._begun:
                upload, parts = self._begun[key]
                self._bucket.complete(key, upload, parts)
                del self._begun[key]
            else:
                self._bucket.put(key, b"")
            self._shown.append(key)

        _each(show, keys)

    def undo(self) -> None:
        for key, (upload, _) in list(self._begun.items()):
            self._bucket.abort(key, upload)
        for key in self._shown:
            if key not in self._before:
                self._bucket.remove(key)
