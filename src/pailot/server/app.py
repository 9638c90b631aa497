"""The ASGI application: finds the route, identifies the caller, sends the response, and never lets an exception out."""

from __future__ import annotations

import asyncio
import time

from ..errors import PailotError
from ..jobserver.server_log import current_request
from ..protocol.problems import InvalidJob
from .auditing import action_of, entry_of
from .auth import NOBODY
from .errors import response_of
from .page import Page
from .route_table import ROUTES
from .toolkit.addresses import counted
from .toolkit.errors import HttpError
from .toolkit.http import COMPRESSED_FROM, JSON, Gone, Request, Response, Stream, compressed, json_response
from .toolkit.rate_limits import TooMany
from .toolkit.routing import OPEN, Router
from .toolkit.sockets import TRY_LATER, Socket, check_origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .context import Site
    from .toolkit.http import Receive, Scope, Send
    from .toolkit.routing import Route

_IS_JSON = [(b"content-type", JSON)]


class App:
    """What uvicorn calls."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.router = Router(ROUTES)
        self.page = Page()
        site.routes = self.router.routes
        self._streams: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            await self._serve(scope, receive, send)
        elif kind == "websocket":
            await self._serve_socket(scope, receive, send)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A WebSocket: the same routes, the same callers, the same limits as for requests."""
        site = self.site
        began = time.perf_counter()
        route: Route | None = None
        request = Request(site, scope, receive, {})
        current_request.set(request.id)  # a request has a task, and so a context, of its own
        request.caller = NOBODY
        socket = Socket(request, receive, send)
        status = 101
        this = asyncio.current_task()
        assert this is not None
        self._streams.add(this)
        site.metrics.streams += 1
        try:
            route, request.parameters = self.router.find("GET", scope["raw_path"].decode("latin-1"))
            if route.socket is None:
                raise HttpError(400, "InvalidParametersError", "there is no WebSocket at this path")
            check_origin(request, site.cors)
            if site.limiter:
                site.limiter.take("all", counted(request.client))
            request.caller = await site.gate.admit(request, route.auth)
            self._audit(route, request, status)
            await route.socket(socket)
            await socket.close()
        except TooMany as error:
            status = await self._refuse(socket, error.response())
        except (HttpError, InvalidJob, PailotError) as error:
            status = await self._refuse(socket, response_of(error))
            self._audit(route, request, status)
        except asyncio.CancelledError:  # the server is closing
            await socket.close(TRY_LATER)
        except Exception as error:  # noqa: BLE001, RUF100  # a defect of ours is an answer, too, and must not end the server
            status = await self._refuse(socket, self._defect(error, "WEBSOCKET", route, request))
        finally:
            self._streams.discard(this)
            site.metrics.streams -= 1
        site.metrics.count(route, "GET", status, time.perf_counter() - began)
        if site.access_log:
            site.access_log.write(scope, route, request, status, time.perf_counter() - began)

    async def _refuse(self, socket: Socket, response: Response) -> int:
        await socket.refuse(response)
        return response.status

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        site = self.site
        found = self.page.find(scope)
        if found is not None:
            body = b"" if scope["method"] == "HEAD" else found.body
            await send({"type": "http.response.start", "status": found.status, "headers": found.headers})
            await send({"type": "http.response.body", "body": body})
            return
        began = time.perf_counter()
        route: Route | None = None
        request: Request | None = None
        method: str = scope["method"]
        headers = None
        try:
            raw = scope["raw_path"].decode("latin-1")
            route, parameters = self.router.find(method, raw)
            request = Request(site, scope, receive, parameters)
            current_request.set(request.id)  # a request has a task, and so a context, of its own
            request.caller = NOBODY
            if site.limiter:
                headers = site.limiter.take("all", counted(request.client))
            if route.auth is not OPEN:
                request.caller = await site.gate.admit(request, route.auth)
            if route.limit and site.limiter:
                headers = site.limiter.take(route.limit, request.caller.username or counted(request.client))
            response = await route.handler(request)
        except TooMany as error:
            response = error.response()
        except (HttpError, InvalidJob, PailotError) as error:
            response = response_of(error)
        except Gone:
            return
        except Exception as error:  # noqa: BLE001, RUF100  # a defect of ours is an answer, too, and must not end the server
            response = self._defect(error, method, route, request)
        if headers:
            response.headers += headers
        if response.headers[:1] == _IS_JSON and not any(name == b"cache-control" for name, _ in response.headers):
            response.headers.append((b"cache-control", b"no-store"))  # what a caller may see is for that caller, and for now
        if request is not None:
            response.headers.append((b"x-request-id", request.id.encode()))
            self._audit(route, request, response.status)
        if len(response.body) > COMPRESSED_FROM and request is not None:
            await compressed(response, request.header(b"accept-encoding") or "", site.call)
        if site.cors:
            response.headers += site.cors_headers(scope, method, response)
        if isinstance(response, Stream):
            await self._send_stream(response, receive, send, head=method == "HEAD")
        else:
            await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
            await send({"type": "http.response.body", "body": response.body})
        site.metrics.count(route, method, response.status, time.perf_counter() - began)
        if site.access_log:
            site.access_log.write(scope, route, request, response.status, time.perf_counter() - began)

    async def _send_stream(self, response: Stream, receive: Receive, send: Send, *, head: bool) -> None:
        """Send what comes, until it ends or the client goes; then what was opened for it is closed."""
        await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
        if head:
            await send({"type": "http.response.body", "body": b""})
            return

        async def pump() -> None:
            async for piece in response.pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        sending, watching = asyncio.ensure_future(pump()), asyncio.ensure_future(gone())
        self._streams.add(sending)
        self.site.metrics.streams += 1
        try:
            await asyncio.wait((sending, watching), return_when=asyncio.FIRST_COMPLETED)
            told_gone = watching.done()
        finally:
            self.site.metrics.streams -= 1
            self._streams.discard(sending)
            for task in (sending, watching):
                task.cancel()
            await asyncio.gather(sending, watching, return_exceptions=True)
            close = getattr(response.pieces, "aclose", None)
            if close is not None:
                await close()
        if sending.cancelled() and not told_gone:
            await send({"type": "http.response.body", "body": b""})
        elif not sending.cancelled():
            error = sending.exception()
            if error is not None and not isinstance(error, PailotError):  # that is said on purpose: the job was deleted, say
                self.site.log_defect(error)

    def end_streams(self) -> None:
        """The server is closing: who follows something is told so by the end of the line, and comes back later."""
        for task in tuple(self._streams):
            task.cancel()

    def _audit(self, route: Route | None, request: Request, status: int) -> None:
        """Write down who did what, if this is something to write down."""
        action = action_of(route, request) if route is not None else None
        if action is not None:
            self.site.audit.note(entry_of(action, request, status, time.time()))

    def _defect(self, error: Exception, method: str, route: Route | None, request: Request | None) -> Response:
        number = self.site.log_defect(error, f"{method} {route.path if route else ''} request {request.id if request else '-'}")
        message = f"something went wrong in the server; its log tells more under {number}"
        return json_response({"code": "UnknownError", "message": message}, 500)
