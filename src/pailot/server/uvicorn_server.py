"""The server process: uvicorn around the application, with a shutdown that does not wait for followers."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import re
import resource
import socket
from collections import deque

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .. import __version__
from ..errors import PailotError
from ..jobserver import server_log
from .app import App
from .context import Site
from .tls import follow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from ..settings import Settings
    from .tls import Certificate

HEADER_BYTES = 64 * 1024
"""More in the head of one request is refused."""
HEADER_SECONDS = 30.0
"""The head of a request must be there so soon after its first byte, that of the first after the connection was made."""
SOCKET_MESSAGE_BYTES = 1 << 20
"""More in one message of a WebSocket is refused."""
GRACE_SECONDS = 10
"""Requests in progress have this time to finish when the server ends."""
CONNECTIONS = 65_536
WAITING_REQUESTS = 100
"""No honest client sends more requests on one connection without waiting for a response."""
LARGE_BYTES = 1 << 18
_ARENAS, _MAPPED_ALONE, _FREE_AT_TOP = -8, -3, -1
"""M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD in malloc.h."""
_HOST = re.compile(rb"[A-Za-z0-9._~%!$&'()*+,;=:\[\]-]*")
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class CannotListen(PailotError):
    """The address is taken, or not ours."""


class Listener(HttpToolsProtocol):
    """One connection: who sends a head too slowly, or one too long, is shut out."""

    _head = 0
    _deadline: asyncio.TimerHandle | None = None
    _earlier: deque[RequestResponseCycle] | None = None
    """Requests still in progress when the next one came; uvicorn forgets them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        if self._head >= 0:  # within the head of a request
            if self._head == 0 and self._deadline is None:
                self._deadline = self.loop.call_later(HEADER_SECONDS, self._too_slow)
            self._head += len(data)
        super().data_received(data)
        if self._head > HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_HEAD_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._head = -1
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if not _names_one_host(self.headers, self.parser.get_http_version()):
            raise ValueError("one Host")  # uvicorn returns 400 and closes
        before: RequestResponseCycle | None = self.cycle
        super().on_headers_complete()
        if before is not None and not before.response_complete:
            self._remember(before)

    def on_message_complete(self) -> None:
        self._head = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        super().connection_lost(exc)
        for cycle in self._earlier or ():  # else they would be served and followed without a reader
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _remember(self, cycle: RequestResponseCycle) -> None:
        if self._earlier is None:
            self._earlier = deque()
        while self._earlier and self._earlier[0].response_complete:
            self._earlier.popleft()
        self._earlier.append(cycle)
        if len(self.pipeline) > WAITING_REQUESTS:
            self.transport.close()

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Starts the site before it listens, and ends it after the last response."""

    def __init__(self, config: uvicorn.Config, site: Site, app: App, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.site, self.asgi, self.ready = site, app, ready
        self.certificate: Certificate | None = None
        self._following: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await self.site.start()
        _allow_many_connections()  # after the keeper has started: tasks keep the limit that people expect
        await super().startup(sockets)
        if self.certificate is not None and self.config.ssl is not None:
            self._following = asyncio.get_running_loop().create_task(follow(self.certificate, self.config.ssl))
        server_log.note(server_log.SERVER, logging.INFO, "server started", version=__version__, engine=self.site.engine)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._following is not None:
            self._following.cancel()
        self.asgi.end_streams()
        await super().shutdown(sockets)
        await self.site.stop()
        server_log.note(server_log.SERVER, logging.INFO, "server ended")
        self._captured_signals.clear()  # we did what they asked for


def _web_sockets() -> str:
    """uvicorn's own support for WebSockets; `none` where the library is not installed, and then clients are told so."""
    from importlib.util import find_spec

    return "websockets-sansio" if find_spec("websockets") else "none"


def _names_one_host(headers: list[tuple[bytes, bytes]], version: str) -> bool:
    """Whether a request names its host exactly once: with two names, a proxy could use one and this server the other."""
    named = [value for name, value in headers if name == b"host"]
    if len(named) != 1:
        return not named and version == "1.0"
    return _HOST.fullmatch(named[0]) is not None


def _share_memory() -> None:
    """Have the C library, as far as it can, give memory back: to all threads, and large pieces to the system.

    Else each thread fills a heap of its own with pages of the database and with responses, and the 20 MB that a password takes
    for a moment stay with the heap for good.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_ARENAS, 1)
        library.mallopt(_MAPPED_ALONE, LARGE_BYTES)
        library.mallopt(_FREE_AT_TOP, 16 * LARGE_BYTES)  # not a call of the system for every few pages


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS if hard == resource.RLIM_INFINITY else min(CONNECTIONS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(host: str, port: int) -> socket.socket:
    """A socket on an address; port 0 takes any that is free."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.set_inheritable(False)
    except (OSError, OverflowError) as error:
        raise CannotListen(f"cannot listen on {host}, port {port}: {getattr(error, 'strerror', None) or error}") from None
    return made


def serve(
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 9186,
    engine: str = "local",
    ending: str = "hand-over",
    tls: Certificate | None = None,
    ready: Callable[[str, str | None], None],
) -> None:
    """Serve until SIGTERM or SIGINT. `ready` is told the address, and the first user's password if it was made up."""
    _share_memory()
    bound = listen(host, port)
    address = bound.getsockname()
    shown = f"[{address[0]}]" if ":" in address[0] else address[0]
    site = Site(settings, engine=engine, host=host)
    server_log.configure(server_log.SERVER, site.log_options)
    site.ending = ending
    app = App(site)
    options: dict[str, Any] = {
        "http": Listener,
        "loop": "uvloop",
        "ws": _web_sockets(),
        "ws_max_size": SOCKET_MESSAGE_BYTES,
        "ws_per_message_deflate": False,  # what is packed would have to be unpacked to be bounded
        "lifespan": "off",
        "log_level": "error",
        "log_config": None,  # `server_log` has configured it
        "access_log": False,
        "server_header": False,
        "proxy_headers": bool(site.proxies),
        "forwarded_allow_ips": site.proxies.for_uvicorn(),
        "timeout_keep_alive": 75,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "backlog": 2048,
        "ssl_certfile": tls.certificate if tls else None,
        "ssl_keyfile": tls.key if tls else None,
    }
    scheme = "https" if tls else "http"
    told = f"{scheme}://{shown}:{address[1]}"
    server = Server(uvicorn.Config(app, **options), site, app, lambda: ready(told, site.password))
    server.certificate = tls
    try:
        server.run(sockets=[bound])
    finally:
        bound.close()
