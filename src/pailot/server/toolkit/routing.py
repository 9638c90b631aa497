"""The route table: one list, from which requests find their handler and clients their documentation."""

from __future__ import annotations

from urllib.parse import unquote, unquote_to_bytes

from ...values import Value
from .errors import HttpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from ...protocol.schema_types import Shape
    from .http import Request, Response
    from .sockets import Socket

    Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
    SocketHandler: TypeAlias = Callable[[Socket], Awaitable[None]]

OPEN, TOKEN, BROWSER, ADMIN, TOKEN_ADMIN, READER, KEY = "open", "token", "browser", "admin", "token-admin", "reader", "key"
"""Who may call: anyone; who has a token; one from a login; an administrator with such; an administrator with any token;
a caller with a token, or any caller where version 1 allows it; who has a token or the key of a job's logs."""

_PREFIX = "/rest-server"


class Query(Value):
    """One parameter of the query."""

    name: str
    doc: str
    schema: Mapping[str, Any] = {"type": "string"}


class Route(Value):
    """What one method of one path does."""

    method: str
    path: str
    handler: Handler
    auth: str = TOKEN
    summary: str = ""
    tag: str = ""
    query: tuple[Query, ...] = ()
    body: Shape | None = None
    body_kinds: tuple[str, ...] = ("application/json", "application/x-www-form-urlencoded")
    answers: Mapping[int, str] = {200: "Done"}
    kind: str = "application/json"
    shape: Mapping[str, Any] = {}
    """The schema of a good answer."""
    limit: str = ""
    """The name of a rate limit besides the one for everything."""
    socket: SocketHandler | None = None
    """What serves a WebSocket at this path; the handler then says that one is needed."""
    hidden: bool = False
    """Another spelling of a route; works, and is not shown in the document."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part[:1] == "{")


class Routes:
    """Collects the routes of one subject."""

    def __init__(self, tag: str, base: str = "/api/v2") -> None:
        self.tag, self.base = tag, base
        self.list: list[Route] = []

    def __call__(self, method: str, *paths: str, **options: Any) -> Callable[[Handler], Handler]:
        """Registers a handler for a method of a path below the base; other paths (from the root) are other spellings of it."""

        def register(handler: Handler) -> Handler:
            summary = (handler.__doc__ or "").strip().split("\n")[0]
            for position, path in enumerate(paths):
                full = path if path.startswith("/api/") or self.base == "" else self.base + path
                route = Route(method, full, handler, tag=self.tag, **{"summary": summary, "hidden": position > 0, **options})
                self.list.append(route)
            return handler

        return register


class _Node:
    __slots__ = ("methods", "names", "parameter", "static")

    def __init__(self) -> None:
        self.static: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.methods: dict[str, tuple[Route, tuple[str, ...]]] = {}


class Router:
    """Finds the route of a path; letters may be large or small, and a slash at the end is ignored."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        self._plain: dict[tuple[str, str], Route] = {}
        """The routes without a value in their path, which most requests name just so."""
        for route in routes:
            node = self._root
            for part in route.path.strip("/").split("/"):
                if part[:1] == "{":
                    node.parameter = node = node.parameter or _Node()
                elif part:
                    node = node.static.setdefault(part.lower(), _Node())
            if route.method in node.methods:
                raise ValueError(f"{route.method} {route.path} stands twice in the route table")
            node.methods[route.method] = (route, route.names)
            if not route.names and route.path.lower() == route.path:
                self._plain[route.method, route.path] = route

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """The route and the values in its path; raises 404 `NoApiError` or 405 with all that is allowed."""
        plain = self._plain.get((method, path))
        if plain is not None:
            return plain, {}
        if path[:12].lower() == _PREFIX and path[12:13] in ("/", ""):
            path = path[12:]
        parts = [part for part in path.split("/") if part]
        allowed: set[str] = set()
        for node, values in _matches(self._root, parts, 0, ()):
            found = node.methods.get(method) or (node.methods.get("GET") if method == "HEAD" else None)
            if found:
                route, names = found
                return route, dict(zip(names, map(_decoded, values), strict=True)) if names else {}
            allowed.update(node.methods)
        if not allowed:
            raise HttpError(404, "NoApiError", f"API {path[:200]} is not found.")
        if "GET" in allowed:
            allowed.add("HEAD")
        allow = ", ".join(sorted(allowed | {"OPTIONS"}))
        status, code = (204, "") if method == "OPTIONS" else (405, "MethodNotAllowedError")
        raise HttpError(status, code, f"{method} is not possible here; {allow} are.", [(b"allow", allow.encode())])


def _matches(node: _Node, parts: Sequence[str], at: int, values: tuple[str, ...]) -> Iterator[tuple[_Node, tuple[str, ...]]]:
    if at == len(parts):
        if node.methods:
            yield node, values
        return
    part = parts[at]
    below = node.static.get(part) or node.static.get((unquote(part) if "%" in part else part).lower())
    if below is not None:
        yield from _matches(below, parts, at + 1, values)
    if node.parameter is not None:
        yield from _matches(node.parameter, parts, at + 1, (*values, part))


def _decoded(part: str) -> str:
    if "%" not in part:
        return part
    try:
        text = unquote_to_bytes(part).decode("utf-8")
    except UnicodeDecodeError:
        text = "\x00"
    if "/" in text or any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise HttpError(400, "InvalidParametersError", f"'{part[:100]}' in the path is no name")
    return text
