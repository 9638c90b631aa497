"""The library of a server: what all its jobs may name, who may change it, and how often it was used.

Everything is in memory as well: jobs are read beside thousands of others, and a server has its store alone.

Every user reads it. A name belongs to its owner, who adds, replaces and removes its versions, as administrators do. Who may
add a new name says the setting `library_writers`. The folders and URLs of the setting `library` are the administrator's: they
come first, and no name of theirs can be taken.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time

from ..library.entries import JOB, Entry, describe, read_entry
from ..library.places import Library, LibraryError, read_place
from ..planning.plugins import exists as is_plugin
from ..protocol.references import is_reference, newest, split, version_order
from ..protocol.yaml import YamlError, parse
from ..settings import BadSetting
from ..store.server import LibraryRow
from ..values import Value
from .errors import BadRequest, Conflict, Forbidden, Missing, QuotaExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..settings import Settings
    from ..store.server import ServerStore
    from .models import Caller

MOST_ENTRIES = 5_000
MOST_CHARACTERS = 64 * 1024 * 1024
"""Of all texts together, those of entries that are gone included."""
DAY_SECONDS = 86_400
ADMINS, USERS = "admins", "users"
SERVER, FOLDER = "server", "folder"
ORIGIN = "the server's library"


class NoSuchEntry(Missing):
    """The library has no entry of that name or version."""


class EntryTaken(Conflict):
    """There is such a version already, or the name is another's."""


class LibraryFull(QuotaExceeded):
    """The library holds as much as it may."""


class KeptEntry(Value):
    """One entry, and what the server knows of it."""

    entry: Entry
    source: str
    digest: str = ""
    created: float | None = None
    updated: float | None = None
    uses: int = 0
    used: float | None = None

    @property
    def reference(self) -> str:
        return f"{self.entry.name}@{self.entry.version}"

    def to_json(self) -> dict[str, Any]:
        """What every user is told of it."""
        known = {"created": self.created, "updated": self.updated, "used": self.used}
        times = {key: None if value is None else round(value * 1000) for key, value in known.items()}
        return {**self.entry.to_json(), "source": self.source, "uses": self.uses, **times}


class Shown(Value):
    """One entry with its text and the versions that its name has, the newest first."""

    kept: KeptEntry
    text: str
    versions: tuple[str, ...]


class TeamLibrary:
    """The library of one server. Writing waits for the disk; all other methods look only into memory and the folders."""

    def __init__(self, store: ServerStore, folders: Library, settings: Settings) -> None:
        self._store, self.folders = store, folders
        self._writers = str(settings["library_writers"])
        self._keep_days = float(settings["keep_days"])
        if self._writers not in (ADMINS, USERS):
            raise BadSetting(f"library_writers: should be {ADMINS} or {USERS}, is '{self._writers}'")
        self._lock = threading.RLock()
        """Held while something is checked and then changed."""
        self._described: dict[str, tuple[tuple[int, int, int], Entry]] = {}
        """What files of the folders say of themselves, and how these looked then."""
        self._texts = store.library.texts()
        self._rows: dict[str, dict[str, LibraryRow]] = {}
        self._uses: dict[tuple[str, str], tuple[int, float | None]] = {}
        """How often and when each was used; apart from the rows, since jobs count here while rows change."""
        for row in store.library.all():
            self._rows.setdefault(row.name, {})[row.version] = row
            self._uses[row.name, row.version] = row.uses, row.used

    # Jobs

    def find(self, reference: str) -> tuple[str, str] | None:
        """The text of a prerequisite, and where it was found, for the reader of job files."""
        found = self.folders.find(reference)
        if found is not None:
            return found
        row = self._row(reference)
        return None if row is None or row.type == JOB else (self._texts[row.digest], f"{ORIGIN}: {row.name}@{row.version}")

    def finder(self, kept: Mapping[str, str]) -> Finder:
        """A `find` that remembers what it found here. A job that is read again gets the texts with which it was submitted."""
        return Finder(self, kept)

    def text_of(self, digest: str) -> str | None:
        """A text by its digest, also of an entry that was replaced or removed."""
        return self._texts.get(digest) or self._store.library.text(digest)

    def note_uses(self, references: Iterable[str], now: float) -> None:
        """A job that uses these is kept; called while the store is written, so it waits for no one who wants to write."""
        used = [(row.name, row.version) for row in map(self._row, references) if row is not None]
        self._store.library.note_uses(used, now)
        for each in used:
            self._uses[each] = self._uses.get(each, (0, None))[0] + 1, now

    # Looking

    def entries(self, words: str = "", kind: str = "") -> list[tuple[KeptEntry, tuple[str, ...]]]:
        """The newest version of every name that fits, and all versions of it; by name."""
        found: dict[str, dict[str, KeptEntry]] = {}
        for name, versions in dict(self._rows).items():
            found[name] = {version: self._told(row) for version, row in versions.items()}
        in_folders: dict[str, dict[str, KeptEntry]] = {}
        for each in self._of_folders():
            in_folders.setdefault(each.entry.name, {})[each.entry.version] = each
        found.update(in_folders)
        shown = []
        for _, kept in sorted(found.items()):
            ordered = _newest_first(kept)
            if kept[ordered[0]].entry.matches(words, kind):
                shown.append((kept[ordered[0]], ordered))
        return shown

    def get(self, name: str, version: str = "") -> Shown:
        """An entry with its text; the newest version where none is named. NoSuchEntry, LibraryError."""
        reference = f"{name}@{version}" if version else name
        found = self.folders.find(reference) if is_reference(reference) else None
        if found is not None:
            entry = describe(_root(found[0]), name)
            here = [each.entry.version for each in self._of_folders() if each.entry.name == name]
            return Shown(KeptEntry(entry, FOLDER), found[0], tuple(sorted(set(here), key=version_order, reverse=True)))
        row = self._row(reference)
        if row is None:
            raise NoSuchEntry(f"the library has no '{reference[:330]}'")
        return Shown(self._told(row), self._texts[row.digest], _newest_first(self._rows[name]))

    def may_change(self, caller: Caller, name: str) -> bool:
        """Whether the caller may add, replace or remove versions of a name."""
        versions = self._rows.get(name)
        if versions is None:
            return caller.admin or self._writers == USERS
        return caller.admin or next(iter(versions.values())).owner == caller.name

    # Changing

    def check(self, text: str) -> Entry:
        """What a file would be in this library; InvalidJob with everything that is wrong with it."""
        return read_entry(text, "-", library=self.find, is_plugin=is_plugin, shared=True)

    def put(
        self, caller: Caller, name: str, version: str, text: str, *, replace: bool = False, owner: str = ""
    ) -> tuple[KeptEntry, bool]:
        """Keep a file under its name and version; whether it is a new one.

        `name` and `version` (if not empty) are those of the request and have to be the file's. An `owner` other than the
        caller is named by administrators only. Raises InvalidJob, BadRequest, Forbidden, EntryTaken, LibraryFull.
        """
        entry = self.check(text)
        if entry.name != name or (version and version != entry.version):
            wanted = f"{name}@{version}" if version else name
            raise BadRequest(f"the file is '{entry.name}@{entry.version}', and the request is for '{wanted[:330]}'")
        with self._lock:
            return self._put(caller, entry, text, replace=replace, owner=owner)

    def _put(self, caller: Caller, entry: Entry, text: str, *, replace: bool, owner: str) -> tuple[KeptEntry, bool]:
        name = entry.name
        self._check_rights(caller, name, owner)
        versions = self._rows.get(name, {})
        old = versions.get(entry.version)
        if old is not None and not replace:
            raise EntryTaken(f"the library has '{name}@{entry.version}' already; replace=true changes it")
        if any(row.type != entry.type for row in versions.values() if row is not old):
            kind = next(row.type for row in versions.values() if row is not old)
            raise EntryTaken(f"'{name}' is a {kind} in its other versions; use another name")
        if self._in_a_folder(name):
            raise EntryTaken(f"the server's own folders have '{name}'; use another name")
        self._check_room(old is None)
        now = time.time()
        owner = owner or (next(iter(versions.values())).owner if versions else caller.name)
        digest = hashlib.sha256(text.encode()).hexdigest()
        entry = entry.replace(owner=owner)
        created = old.created if old is not None else now
        row = LibraryRow(name, entry.version, entry.type, owner, entry.to_json(), digest, created, now)
        with self._store.batch():
            self._store.library.put(row, text)
            self._store.library.drop_texts(now, now - self._keep_days * DAY_SECONDS if self._keep_days else 0.0)
        self._texts[digest] = text
        others = {each: kept.replace(owner=owner) for each, kept in versions.items()}
        self._rows[name] = {**others, entry.version: row}
        return self._told(row), old is None

    def remove(self, caller: Caller, name: str, version: str = "") -> int:
        """Take out one version, or a name with all its versions; how many. Forbidden, NoSuchEntry."""
        with self._lock:
            return self._remove(caller, name, version)

    def _remove(self, caller: Caller, name: str, version: str) -> int:
        versions = self._rows.get(name)
        if versions is None or (version and version not in versions):
            raise NoSuchEntry(f"the library has no '{f'{name}@{version}' if version else name}'"[:400])
        self._check_rights(caller, name, "")
        with self._store.batch():
            count = self._store.library.remove(name, version or None)
            self._store.library.drop_texts(time.time(), 0.0)
        left = {each: row for each, row in versions.items() if version and each != version}
        for each in versions.keys() - left.keys():
            self._uses.pop((name, each), None)
        if left:
            self._rows[name] = left
        else:
            del self._rows[name]
        return count

    def _told(self, row: LibraryRow) -> KeptEntry:
        uses, used = self._uses.get((row.name, row.version), (0, None))
        return _kept(row.replace(uses=uses, used=used))

    def _check_rights(self, caller: Caller, name: str, owner: str) -> None:
        if not self.may_change(caller, name):
            words = "its owner and administrators" if name in self._rows else "administrators (setting library_writers)"
            raise Forbidden(f"'{name}' of the library can be changed by {words} only")
        if owner and owner != caller.name and not caller.admin:
            raise Forbidden("only an administrator names another owner")
        if owner and self._store.accounts.user(owner) is None:
            raise BadRequest(f"there is no user '{owner[:100]}'")

    def _check_room(self, new: bool) -> None:
        if new and sum(map(len, self._rows.values())) >= MOST_ENTRIES:
            raise LibraryFull(f"the library holds {MOST_ENTRIES} entries, which is all it may; remove some")
        if self._store.library.totals()[1] >= MOST_CHARACTERS:
            raise LibraryFull(f"the texts of the library have {MOST_CHARACTERS} characters, which is all they may; remove some")

    def _row(self, reference: str) -> LibraryRow | None:
        name, version = split(reference)
        versions = self._rows.get(name)
        return None if versions is None else versions.get(version or newest(versions))

    def _in_a_folder(self, name: str) -> bool:
        try:
            return self.folders.find(name) is not None
        except LibraryError:
            return False  # a URL that cannot be asked

    def _of_folders(self) -> Iterable[KeptEntry]:
        """What the folders of the settings hold. What hides behind a URL is found by name, and not listed here."""
        for file in self.folders.files():
            try:
                seen = os.stat(file.file)
                look = seen.st_mtime_ns, seen.st_size, seen.st_ino
                known = self._described.get(file.file)
                if known is None or known[0] != look:
                    entry = describe(_root(read_place(file.file)), file.name)
                    known = self._described[file.file] = look, entry.replace(version=file.version or entry.version)
            except (OSError, LibraryError):
                continue  # it went away, or is not for us
            yield KeptEntry(known[1], FOLDER)


class Finder:
    """Finds prerequisites for one job, and remembers the texts of the server's own library that it found."""

    def __init__(self, library: TeamLibrary, kept: Mapping[str, str]) -> None:
        self._library, self._kept = library, kept
        self.used: dict[str, str] = {}
        """The digests of the texts that were used, by the reference with which each was found."""

    def __call__(self, reference: str) -> tuple[str, str] | None:
        digest = self._kept.get(reference)
        text = None if digest is None else self._library.text_of(digest)
        if digest is not None and text is not None:
            self.used[reference] = digest
            return text, f"{ORIGIN}: {reference}"
        found = self._library.find(reference)
        if found is not None and found[1].startswith(f"{ORIGIN}: "):
            self.used[reference] = hashlib.sha256(found[0].encode()).hexdigest()
        return found


def _kept(row: LibraryRow) -> KeptEntry:
    about = row.about
    entry = Entry(
        row.name,
        row.type,
        row.version,
        str(about.get("description", "")),
        row.owner,
        about.get("size"),
        str(about.get("plugin", "")),
        tuple(about.get("uri", ())),
        tuple(about.get("require", ())),
        tuple(about.get("sha256", ())),
    )
    return KeptEntry(entry, SERVER, row.digest, row.created, row.updated, row.uses, row.used)


def _newest_first(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=version_order, reverse=True))


def _root(text: str) -> Any:
    try:
        return parse(text).root
    except YamlError:
        return None
