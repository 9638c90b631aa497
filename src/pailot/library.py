"""The library of prerequisites: folders and URLs with one file each, found by name.

A folder is read as it is; what comes from a URL is kept in the cache and used without the network
while it is fresh, and also when the network is down.
"""

from __future__ import annotations

import os
import time

from .errors import PailotError
from .settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (".yaml", ".yml", ".json")
TIMEOUT_SECONDS = 20
LARGEST = 1024 * 1024


class LibraryError(PailotError):
    """A library that cannot be read or written."""


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

    def find(self, name: str) -> tuple[str, str] | None:
        """The text of a prerequisite's file and where it was found."""
        if not name or name.startswith(".") or "/" in name or "\\" in name:
            return None
        for place in self.places:
            found = self._from_url(place, name) if _is_url(place) else _from_folder(place, name)
            if found is not None:
                return found
        return None

    def entries(self) -> Iterator[tuple[str, str]]:
        """(name, file) of everything in the folders; what hides behind a URL cannot be listed."""
        seen: set[str] = set()
        for place in self.places:
            folder = _folder(place)
            if _is_url(place) or not os.path.isdir(folder):
                continue
            for file in sorted(os.listdir(folder)):
                name, suffix = os.path.splitext(file)
                if suffix in SUFFIXES and name not in seen:
                    seen.add(name)
                    yield name, os.path.join(folder, file)

    def add(self, name: str, text: str, *, replace: bool = False) -> str:
        """Keep a prerequisite in the user's own folder."""
        target = os.path.join(self.home, f"{name}.yaml")
        if os.path.exists(target) and not replace:
            raise LibraryError(f"the library has '{name}' already ({target}); use --replace to change it")
        os.makedirs(self.home, exist_ok=True)
        _write_whole(target, text)
        return target

    def remove(self, name: str) -> str:
        """Take a prerequisite out of the user's own folder."""
        for suffix in SUFFIXES:
            target = os.path.join(self.home, name + suffix)
            if os.path.exists(target):
                os.unlink(target)
                return target
        raise LibraryError(f"there is no '{name}' in {self.home}")

    def _from_url(self, place: str, name: str) -> tuple[str, str] | None:
        import hashlib

        url = f"{place.rstrip('/')}/{name}.yaml"
        kept = os.path.join(self.cache, hashlib.sha256(url.encode()).hexdigest() + ".yaml")
        try:
            age = time.time() - os.stat(kept).st_mtime
        except OSError:
            age = None
        if age is not None and age < self.fresh_seconds:
            return _read(kept), url
        try:
            text = _fetch(url)
        except LibraryError:
            if age is None:
                raise
            return _read(kept), url  # better an old copy than none
        if text is None:
            return None
        os.makedirs(self.cache, exist_ok=True)
        _write_whole(kept, text)
        return text, url


def read_place(place: str) -> str:
    """The text of a file, by its path or any address that libraries may have; raises LibraryError. Nothing is kept."""
    text = _fetch(place) if _is_url(place) else _read(_folder(place))
    if text is None:
        raise LibraryError(f"{place}: there is no such file")
    return text


def _is_url(place: str) -> bool:
    return "://" in place and not place.startswith("file://")


def _folder(place: str) -> str:
    return os.path.expanduser(place.removeprefix("file://"))


def _from_folder(place: str, name: str) -> tuple[str, str] | None:
    for suffix in SUFFIXES:
        file = os.path.join(_folder(place), name + suffix)
        if os.path.isfile(file):
            return _read(file), file
    return None


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
        from .install_lines import install_line

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
