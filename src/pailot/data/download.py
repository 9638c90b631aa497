"""Bytes from elsewhere into files here: streamed, counted, all or nothing."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from hashlib import sha256
from netrc import NetrcParseError, netrc
from shutil import disk_usage
from threading import Event
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit, urlunsplit

from ..install_lines import install_line
from ..progress import size as words
from ..values import Value
from . import filesystems
from .addresses import NotAllowed
from .location import Location, ProvideError, Unreachable
from .rules import OWN_MACHINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, BinaryIO

    from ..progress import Meter
    from .rules import Rules

    MeterOf = Callable[[int | None], Meter]
    """Creates the counter for a download of a known size."""

TIMEOUT_SECONDS = 20
CONTINUED = 5
"""How often a download that broke off is continued where it was."""
THREADS = 8
CHUNK = 1024 * 1024
BLOCK = 8 * 1024 * 1024
"""What is asked of a bucket at once."""
_NEVER_SEEN = (0, 0, 0)
_RANGE = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)\Z", re.ASCII)


class CachedCopy(Value):
    """What is known of a copy in the cache: its sum, by what its source is asked whether it changed, and how it looked here."""

    sha256: str = ""
    """Empty for a folder."""
    etag: str | None = None
    modified: str | None = None
    mark: str | None = None
    """Of a bucket's content."""
    look: tuple[int, int, int] = _NEVER_SEEN
    """Size, time of change and number of our file: when it looks otherwise, it is not what was fetched."""
    fetched: float = 0.0

    def to_json(self) -> dict[str, object]:
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> CachedCopy:
        """What `to_json` made; KeyError or TypeError if it is something else."""
        size, changed, number = found["look"]
        return cls(
            found["sha256"],
            found.get("etag"),
            found.get("modified"),
            found.get("mark"),
            (size, changed, number),
            found["fetched"],
        )


def room_for(size: int | None, place: str, source: Location) -> None:
    """Refuse what the disk cannot hold, before the first byte of it."""
    if not size:
        return
    free = disk_usage(os.path.dirname(place)).free
    if free < size:
        raise source.error(
            f"there is no room for it: {words(size)} are needed, {words(free)} are free ({os.path.dirname(place)})"
        )


def pour(stream: BinaryIO, target: BinaryIO | None, count: Callable[[int], None] = lambda _: None) -> str:
    """Copy a stream; its SHA-256 sum."""
    digest = sha256()
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
        if target is not None:
            _write(target, chunk)
        count(len(chunk))
    return digest.hexdigest()


def _write(target: BinaryIO, chunk: bytes) -> None:
    try:
        target.write(chunk)
    except OSError as error:
        error.filename = target.name  # tells it from an error of the network
        raise


# From the web


def from_http(
    source: Location, part: str, kept: CachedCopy | None, meter_of: MeterOf, rules: Rules = OWN_MACHINE
) -> CachedCopy | None:
    """A file of a web server; None if the one that is kept is still right. A download that breaks off is continued."""
    from http.client import HTTPException

    try:
        with open(part, "wb") as stream:
            return _download(source, stream, kept, meter_of, rules)
    except NotAllowed as problem:
        raise source.failure(problem) from None
    except HTTPError as error:
        error.close()
        if error.code == 304:
            return None
        if error.code in (401, 403) and not source.secret:
            raise source.error(
                f"the server answered {error.code} {error.reason}; credentials come from {filesystems.CREDENTIALS['https']}"
            ) from None
        raise source.error(f"the server answered {error.code} {error.reason}") from None
    except (HTTPException, ValueError) as error:
        raise source.failure(error) from None
    except OSError as error:
        if error.filename is not None:
            raise  # our own file
        raise source.failure(getattr(error, "reason", None) or error, Unreachable) from None


def _download(source: Location, stream: BinaryIO, kept: CachedCopy | None, meter_of: MeterOf, rules: Rules) -> CachedCopy:
    from http.client import HTTPException

    digest, done, total, meter = sha256(), 0, None, None
    furthest = 0
    made = CachedCopy()
    left = CONTINUED
    open_address = _opener(rules)
    while True:
        with open_address(_request(source, kept, done, made.etag), timeout=TIMEOUT_SECONDS) as answer:
            if done and not _goes_on(answer, done):
                stream.seek(0)
                stream.truncate()
                digest, done = sha256(), 0
            if not done:
                length = answer.headers.get("Content-Length")
                total = None if length is None else int(length)
                made = CachedCopy(etag=answer.headers.get("ETag"), modified=answer.headers.get("Last-Modified"))
                room_for(total, stream.name, source)
                meter = meter_of(total)
            assert meter is not None
            broken = False
            try:
                while chunk := answer.read(CHUNK):
                    digest.update(chunk)
                    _write(stream, chunk)
                    done += len(chunk)
                    meter.add(len(chunk))
            except (HTTPException, OSError) as error:
                if getattr(error, "filename", None) is not None:
                    raise
                broken = True
        if not broken and (total is None or done >= total):
            if total is not None and done > total:
                raise source.error(f"the server sent {done} bytes, {total} were announced")
            meter.end()
            return made.replace(sha256=digest.hexdigest())
        left = CONTINUED if done > furthest else left - 1  # a server that begins anew each time brings us no further
        furthest = max(furthest, done)
        if not left or not done:
            of = "" if total is None else f" of {total}"
            raise source.error(f"the connection broke off after {done}{of} bytes", Unreachable)


def _opener(rules: Rules) -> Callable[..., Any]:
    if rules.server:
        from .network import opener

        return opener(rules).open  # type: ignore[no-any-return]  # as urlopen
    from urllib.request import urlopen

    return urlopen


def _goes_on(answer: Any, done: int) -> bool:
    """Whether a server sends just what is missing."""
    found = _RANGE.match(answer.headers.get("Content-Range") or "")
    return answer.status == 206 and found is not None and int(found[1]) == done


def _request(source: Location, kept: CachedCopy | None, done: int, etag: str | None) -> Any:
    """With `https://user:password@host`, or a line of the user's .netrc, as a header; asking only for what is not here."""
    from urllib.request import Request

    parts = urlsplit(source.uri)
    login, _, host = parts.netloc.rpartition("@")
    request = Request(urlunsplit(parts._replace(netloc=host)), headers={"User-Agent": "pailot"})  # noqa: S310  # http(s)
    login = unquote(login) or _from_netrc(parts.hostname or "")
    if login:
        request.add_unredirected_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    if done:
        request.add_header("Range", f"bytes={done}-")
        if etag and not etag.startswith("W/"):
            request.add_header("If-Range", etag)
        return request
    if kept is not None and kept.etag:
        request.add_header("If-None-Match", kept.etag)
    if kept is not None and kept.modified:
        request.add_header("If-Modified-Since", kept.modified)
    return request


def _from_netrc(host: str) -> str:
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    if not os.path.isfile(path):
        return ""

    try:
        found = netrc(path).authenticators(host)
    except (NetrcParseError, OSError):
        return ""  # not for us to complain about
    return f"{found[0]}:{found[2]}" if found else ""


# From buckets and file systems


def from_store(
    source: Location, part: str, kept: CachedCopy | None, meter_of: MeterOf, rules: Rules = OWN_MACHINE
) -> CachedCopy | None:
    """A file or a folder behind a driver of fsspec; None if what is kept is still right."""
    try:
        import fsspec  # noqa: F401  # is it there?
    except ImportError:
        scheme = filesystems.scheme_of(source.uri)
        raise source.error(f"to fetch from {scheme}:// install fsspec: {install_line('storage')}") from None
    try:
        files, path = filesystems.connect(source.uri, rules)
        found, mark = filesystems.look(files, path, source.uri)
        if kept is not None and kept.mark == mark:
            return None
        if isinstance(found, int):
            room_for(found, part, source)
            meter = meter_of(found)
            with open(part, "wb") as target:
                digest = _file(files, path, found, target, meter)
            meter.end()
            return CachedCopy(digest, mark=mark)
        room_for(found.size, part, source)
        _folder(files, found, part, meter_of(found.size))
        return CachedCopy(mark=mark)
    except OSError as error:
        if error.filename is not None and str(error.filename).startswith(part):
            raise  # our own file
        raise source.store_failure(error) from None
    except Exception as error:
        raise source.store_failure(error) from None  # each driver has errors of its own


def _file(files: Any, path: str, size: int, target: BinaryIO, meter: Meter, quit: Event | None = None) -> str:
    def count(size: int) -> None:
        meter.add(size)
        if quit is not None and quit.is_set():
            raise ProvideError("another file could not be brought")

    # hdfs-native reads ahead by itself, and cannot be read through a buffer; ossfs would list a folder to learn the size.
    options = {} if "hdfs" in str(files.protocol) else {"block_size": BLOCK}
    if filesystems.is_oss(files):
        options["size"] = size
    with files.open(path, "rb", **options) as stream:
        return pour(stream, target, count)


def _folder(files: Any, listing: filesystems.StoredFolder, part: str, meter: Meter) -> None:
    """Several at a time: a bucket is slow for one request, and serves many at once."""
    from concurrent.futures import ThreadPoolExecutor

    for folder in {"", *listing.folders, *(os.path.dirname(each.below) for each in listing.files)}:
        os.makedirs(os.path.join(part, folder), exist_ok=True)
    quit = Event()

    def bring(entry: filesystems.StoredFile) -> None:
        if quit.is_set():
            return
        try:
            with open(os.path.join(part, entry.below), "xb", buffering=0) as target:
                _file(files, entry.path, entry.size, target, meter, quit)
            os.chmod(os.path.join(part, entry.below), 0o444)  # many tasks read it
        except BaseException:
            quit.set()
            raise

    pool = ThreadPoolExecutor(min(THREADS, max(1, len(listing.files))), "fetching")
    try:
        for _ in pool.map(bring, listing.files):
            pass
    finally:
        quit.set()
        pool.shutdown(cancel_futures=True)
    meter.end()
