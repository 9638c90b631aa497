"""Folders and URLs with one file for each entry, found by name and version.

A folder is read as it is; what comes from a URL is kept in the cache and used without the network
while it is fresh, and also when the network is down. A file is named NAME.yaml, or NAME@VERSION.yaml.
"""

from __future__ import annotations

import os
import time

from ..errors import PailotError
from ..protocol.references import LATEST, is_reference, is_version, newest, split, version_of
from ..protocol.yaml import YamlError, parse
from ..settings import Settings
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .entries import Entry

SUFFIXES = (".yaml", ".yml", ".json")
TIMEOUT_SECONDS = 20
LARGEST = 1024 * 1024
INDEX = "index.yaml"
"""The file that says what a URL holds: a list of entries with `name`, `version`, `type`, `description`, `contributor`, `size`."""
MOST_LISTED = 10_000
"""Entries of an index that are read."""


class LibraryError(PailotError):
    """A library that cannot be read or written."""


class LibraryFile(Value):
    """A file of a folder."""

    name: str
    version: str
    """That in the name of the file; empty where the file itself says it."""
    file: str


class Library:
    """Places to look for prerequisites, in order; the first that has a name wins."""

    def __init__(self, places: Iterable[str], *, home: str, cache: str, fresh_seconds: float = 3600) -> None:
        self.home = os.path.join(home, "library")
        self.places = tuple(dict.fromkeys((*places, self.home)))
        self.cache = os.path.join(cache, "library")
        self.fresh_seconds = fresh_seconds

    @classmethod
    def from_settings(cls, more: Iterable[str] = ()) -> Library:
        """The library of this user; `more` places come first."""
        settings = Settings()
        return cls(
            (*more, *settings.library),
            home=settings.home,
            cache=settings.cache,
            fresh_seconds=settings.library_cache_seconds,
        )

    def find(self, reference: str) -> tuple[str, str] | None:
        """The text of the file that `NAME` or `NAME@VERSION` means, and where it was found."""
        if not is_reference(reference):
            return None
        for place in self.places:
            found = self._from_url(place, reference) if is_url(place) else _from_folder(place, reference)
            if found is not None:
                return found
        return None

    def files(self) -> Iterator[LibraryFile]:
        """Everything in the folders. Of one name and version the first place wins."""
        seen: set[tuple[str, str]] = set()
        for place in self.places:
            if is_url(place):
                continue
            for found in _files(place):
                if (found.name, found.version) not in seen:
                    seen.add((found.name, found.version))
                    yield found

    def index(self, place: str) -> list[Entry] | None:
        """What a URL says that it holds; None where it has no index. Raises LibraryError."""
        found = self._kept(f"{place.rstrip('/')}/{INDEX}")
        return None if found is None else read_index(found, place)

    def add(self, name: str, text: str, *, version: str = LATEST, replace: bool = False) -> str:
        """Keep an entry in the user's own folder."""
        return write_entry(self.home, name, text, version=version, replace=replace)

    def remove(self, reference: str, folder: str = "") -> str:
        """Take an entry out of the user's own folder, or out of another."""
        place = folder or self.home
        found = _file_of(place, reference) if is_reference(reference) else None
        if found is None:
            raise LibraryError(f"there is no '{reference}' in {place}")
        os.unlink(found)
        return found

    def _from_url(self, place: str, reference: str) -> tuple[str, str] | None:
        name, version = split(reference)
        base = place.rstrip("/")
        exact = f"{base}/{reference}.yaml"
        text = self._kept(exact)
        if text is not None:
            return text, exact
        if version:
            unversioned = f"{base}/{name}.yaml"
            text = self._kept(unversioned)
            return (text, unversioned) if text is not None and _version_in(text) == version else None
        wanted = newest(each.version for each in self.index(place) or () if each.name == name)
        if not is_version(wanted):
            return None
        dated = f"{base}/{name}@{wanted}.yaml"
        text = self._kept(dated)
        return None if text is None else (text, dated)

    def _kept(self, url: str) -> str | None:
        """The text at a URL, from the cache while it is fresh, or when the network is down."""
        import hashlib

        kept = os.path.join(self.cache, hashlib.sha256(url.encode()).hexdigest() + ".yaml")
        try:
            age = time.time() - os.stat(kept).st_mtime
        except OSError:
            age = None
        if age is not None and age < self.fresh_seconds:
            return _read(kept)
        try:
            text = _fetch(url)
        except LibraryError:
            if age is None:
                raise
            return _read(kept)  # better an old copy than none
        if text is None:
            return None
        os.makedirs(self.cache, exist_ok=True)
        _write_whole(kept, text)
        return text


def write_entry(folder: str, name: str, text: str, *, version: str = LATEST, replace: bool = False) -> str:
    """Keep an entry in a folder; returns the path of its file. LibraryError where there is one already."""
    reference = name if version == LATEST else f"{name}@{version}"
    target = os.path.join(folder, f"{reference}.yaml")
    if os.path.exists(target) and not replace:
        raise LibraryError(f"the library has '{reference}' already ({target}); use --replace to change it")
    os.makedirs(folder, exist_ok=True)
    _write_whole(target, text)
    return target


def write_index(folder: str) -> tuple[str, int]:
    """Write the index of a folder that a web server shows; returns its path, and how many entries it has."""
    import json

    from .entries import describe

    entries = []
    for found in _files(folder):
        try:
            root = parse(_read(found.file)).root
        except YamlError as error:
            raise LibraryError(f"{found.file}: {error.message}") from None
        entry = describe(root, found.name)
        told = {"name": entry.name, "version": found.version or entry.version, "type": entry.type}
        more = {"description": entry.description, "contributor": entry.owner, "size": entry.size}
        entries.append({**told, **{key: value for key, value in more.items() if value not in ("", None)}})
    target = os.path.join(_folder(folder), INDEX)
    _write_whole(target, "".join(f"- {json.dumps(each, ensure_ascii=False)}\n" for each in entries) or "[]\n")
    return target, len(entries)


def read_index(text: str, place: str) -> list[Entry]:
    """The entries in the text of an index; what cannot be an entry is left out. LibraryError where it is no list."""
    from .entries import describe

    try:
        root = parse(text[:LARGEST]).root
    except YamlError as error:
        raise LibraryError(f"{place}: {INDEX}: {error.message}") from None
    if not isinstance(root, list):
        raise LibraryError(f"{place}: {INDEX} should be a list of entries")
    found = [describe(each) for each in root[:MOST_LISTED] if isinstance(each, dict)]
    return [each for each in found if is_reference(f"{each.name}@{each.version}")]


def read_place(place: str) -> str:
    """The text of a file, by its path or any address that libraries may have; raises LibraryError. Nothing is kept."""
    text = _fetch(place) if is_url(place) else _read(_folder(place))
    if text is None:
        raise LibraryError(f"{place}: there is no such file")
    return text


def is_url(place: str) -> bool:
    """Whether a place of a library is an address rather than a folder."""
    return "://" in place and not place.startswith("file://")


def _folder(place: str) -> str:
    return os.path.expanduser(place.removeprefix("file://"))


def _files(place: str) -> Iterator[LibraryFile]:
    folder = _folder(place)
    if not os.path.isdir(folder):
        return
    for file in sorted(os.listdir(folder)):
        reference, suffix = os.path.splitext(file)
        if suffix in SUFFIXES and file != INDEX and is_reference(reference):
            yield LibraryFile(*split(reference), os.path.join(folder, file))


def _from_folder(place: str, reference: str) -> tuple[str, str] | None:
    file = _file_of(place, reference)
    return None if file is None else (_read(file), file)


def _file_of(place: str, reference: str) -> str | None:
    """The file of a folder that a reference means: the one of that name, else that in which the version is, or the newest."""
    exact = _existing(place, reference)
    if exact is not None:
        return exact
    name, version = split(reference)
    if version:
        unversioned = _existing(place, name)
        return unversioned if unversioned is not None and _version_in(_read(unversioned)) == version else None
    wanted = newest(found.version for found in _files(place) if found.name == name)
    return _existing(place, f"{name}@{wanted}") if wanted else None


def _existing(place: str, reference: str) -> str | None:
    files = (os.path.join(_folder(place), reference + suffix) for suffix in SUFFIXES)
    return next((file for file in files if os.path.isfile(file)), None)


def _version_in(text: str) -> str:
    try:
        root = parse(text).root
    except YamlError:
        return ""
    return version_of(root) if isinstance(root, dict) else ""


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read(LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise LibraryError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _write_whole(file: str, text: str) -> None:
    """All of it or nothing: a reader never sees half a file."""
    temporary = f"{file}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, file)
    except OSError as error:
        try:
            os.unlink(temporary)
        except OSError:
            pass  # it was never made
        raise LibraryError(f"{file}: cannot be written: {error.strerror}") from None


def _fetch(url: str) -> str | None:
    """The text at a URL, or None where there is nothing; http(s) needs no package, others fsspec."""
    if url.startswith(("http://", "https://")):
        return _fetch_http(url)
    try:
        import fsspec
    except ImportError:
        scheme = url.partition(":")[0]
        from ..install_lines import install_line

        raise LibraryError(f"{url}: to read {scheme}:// install fsspec: {install_line('storage')}") from None
    try:
        with fsspec.open(url, "rb") as stream:
            data: bytes = stream.read(LARGEST + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, ImportError) as error:
        raise LibraryError(f"{url}: {error}") from None
    return data.decode("utf-8", "replace")


def _fetch_http(url: str) -> str | None:
    from urllib.error import HTTPError, URLError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310  # http and https only, see _fetch
            data: bytes = answer.read(LARGEST + 1)
    except HTTPError as error:
        if error.code in (404, 410):
            return None
        raise LibraryError(f"{url}: the server answered {error.code} {error.reason}") from None
    except (URLError, OSError) as error:
        raise LibraryError(f"{url}: {getattr(error, 'reason', error)}") from None
    return data.decode("utf-8", "replace")
