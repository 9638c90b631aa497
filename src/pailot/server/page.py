"""The web page: the files of `pailot/page` as they are committed, and the addresses that lead to it."""

from __future__ import annotations

import hashlib
import zlib
from importlib.resources import files
from urllib.parse import parse_qs, quote

from ..values import Value
from .toolkit.http import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.resources.abc import Traversable

    from .toolkit.http import Headers, Scope

KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
}
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"
)
_HEADERS: Headers = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
]
_VIEWS = ("", "jobs", "submit", "cluster", "library", "account", "admin", "alerts", "login", "compare")
"""The first word of every address of the page. All of them are the same file; the page shows what the address names."""
_FILES = "/page/"


class File(Value):
    """A file of the page, ready to be sent."""

    body: bytes
    packed: bytes
    kind: bytes
    etag: bytes


class Page:
    """Finds what a browser asks for. It is asked before the routes of the API, and needs no login: it holds no secret."""

    def __init__(self) -> None:
        self._files = {name: _file(name, source.read_bytes()) for name, source in _all_files(files("pailot") / "page")}

    def find(self, scope: Scope) -> Response | None:
        """The response for an address of the page; None for any other."""
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            return None
        if path.startswith(_FILES):
            found = self._files.get(path[len(_FILES) :])
            return None if found is None else _sent(found, scope)
        old = _OLD_ADDRESSES.get(path.removeprefix("/"))
        if old is not None:
            return Response(b"", 302, headers=[(b"location", old(scope["query_string"]).encode())])
        if path.split("/")[1].lower() in _VIEWS:
            return _sent(self._files["index.html"], scope)
        return None


def _all_files(folder: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _all_files(each, f"{before}{each.name}/")
        elif each.name.endswith(tuple(KINDS)):
            yield before + each.name, each


def _file(name: str, body: bytes) -> File:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(body) + packer.flush()
    return File(body, packed, KINDS["." + name.rpartition(".")[2]], b'"%s"' % hashlib.sha256(body).hexdigest()[:20].encode())


def _sent(file: File, scope: Scope) -> Response:
    asked = dict(scope["headers"])
    # A browser asks each time whether its copy is still right: after an upgrade all files are of one version.
    headers: Headers = [*_HEADERS, (b"etag", file.etag), (b"cache-control", b"no-cache"), (b"vary", b"Accept-Encoding")]
    if asked.get(b"if-none-match") == file.etag:
        return Response(b"", 304, file.kind, headers)
    if b"gzip" in asked.get(b"accept-encoding", b""):
        return Response(file.packed, 200, file.kind, [*headers, (b"content-encoding", b"gzip")])
    return Response(file.body, 200, file.kind, headers)


def _job(query: bytes) -> str:
    """`username=U&jobName=J`, as OpenPAI's page and its clients write it."""
    said = {key: values[0] for key, values in parse_qs(query.decode("latin-1")).items()}
    user, name = said.get("username", ""), said.get("jobName", said.get("jobname", ""))
    return f"/jobs/{quote(user, safe='')}~{quote(name, safe='')}" if user and name else "/jobs"


_OLD_ADDRESSES: Mapping[str, Callable[[bytes], str]] = {
    "job-detail.html": _job,
    "job-list.html": lambda _: "/jobs",
    "submit.html": lambda _: "/submit",
    "view.html": _job,
    "index.html": lambda _: "/",
    "home.html": lambda _: "/",
    "login.html": lambda _: "/login",
    "virtual-clusters.html": lambda _: "/cluster",
    "user-profile.html": lambda _: "/account",
}
