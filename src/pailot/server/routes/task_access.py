"""The tasks of one's own jobs: a shell beside a task, its files, its ports."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, suppress

from ...jobserver.task_sessions import PIECE_BYTES, FileWork, Wanted
from ...userruns import task_access
from ..schemas import OBJECT, TEXT, record
from ..toolkit.errors import HttpError
from ..toolkit.http import Response, Stream, json_response
from ..toolkit.routing import Query, Routes
from .attempts import whole
from .jobs import full_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any

    from ..toolkit.http import Request
    from ..toolkit.sockets import Socket

routes = Routes("tasks")
_TASK = "/jobs/{job}/tasks/{role}/{index}"
_NUMBER = {"type": "integer", "minimum": 0}
_SWITCH = {"type": "boolean"}
_SOCKET = {101: "A WebSocket", 426: "It is no WebSocket"}
_PATH = Query("path", "Below the working directory of the task; links are not followed.")
_ARCHIVE = Query("archive", "A folder, as a tar archive.", _SWITCH)
_MARK = Query("mark", "What tells this copy from others, 16 hexadecimal digits: it is gone on with after a break.")
CHECK_SECONDS = 30.0
"""The time between two looks at whether the caller would still be let in."""
MOST_CELLS = 10_000


def _needs_socket() -> HttpError:
    words = "this needs a WebSocket; if it was one, the server lacks the package websockets (extra 'server')"
    return HttpError(426, "UpgradeRequiredError", words, [(b"upgrade", b"websocket")])


# A shell


async def _serve_shell(socket: Socket) -> None:
    """First a message with what is wanted. Then bytes both ways, ours after 1 or 2 for the stream. At last the status."""
    request = socket.request
    tasks = request.site.task_sessions
    caller = request.caller.must()
    record_, place = await tasks.place(caller, full_name(request), request.parameters["role"], whole(request, "index"))
    with tasks.sessions.hold(caller.name):
        await socket.accept()
        async with asyncio.timeout(CHECK_SECONDS):
            said = await socket.receive_json()
        if not said:
            return
        shell = await tasks.shell(record_, place, _wanted(said))
        line = _Line(socket, tasks.idle_seconds)

        async def show() -> None:
            async for stream, piece in shell.output():
                line.moved()
                await socket.send(bytes((stream,)) + piece)

        async def take() -> None:
            while (message := await socket.receive()) is not None:
                line.moved()
                if isinstance(message, bytes):
                    await shell.write(message)
                    continue
                order = _order(message)
                if "rows" in order:
                    shell.resize(_cells(order, "rows"), _cells(order, "columns"))
                if order.get("eof"):
                    shell.end_input()

        try:
            reason = await line.until_one_ends(show(), take())
        finally:
            status = await shell.close()
        if reason:
            await socket.tell(error=reason)
        else:
            await socket.tell(exit=status)


@routes("GET", f"{_TASK}/shell", answers=_SOCKET, shape=OBJECT, socket=_serve_shell)
async def task_shell(request: Request) -> Response:
    """A shell beside a task of one's own, over a WebSocket."""
    raise _needs_socket()


def _wanted(said: dict[str, object]) -> Wanted:
    command, term = said.get("command"), said.get("term", "dumb")
    if command is not None and (not isinstance(command, str) or "\0" in command or len(command) > 100_000):
        raise HttpError(400, "InvalidParametersError", "'command' should be a text")
    if not isinstance(term, str) or not term.isascii() or not term.replace("-", "").replace(".", "").isalnum() or len(term) > 60:
        raise HttpError(400, "InvalidParametersError", "'term' should be the name of a kind of terminal")
    return Wanted(command or None, bool(said.get("terminal")), term, _cells(said, "rows", 24), _cells(said, "columns", 80))


def _cells(said: dict[str, object], name: str, default: int = 1) -> int:
    value = said.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_CELLS:
        raise HttpError(400, "InvalidParametersError", f"'{name}' should be a number of cells, at most {MOST_CELLS}")
    return value


def _order(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise HttpError(400, "InvalidParametersError", "an order should be a JSON object")
    return found


class _Line:
    """A connection that ends with either of its directions, when it is silent for too long, or not allowed any more."""

    def __init__(self, socket: Socket, idle_seconds: float) -> None:
        self._socket, self._idle = socket, idle_seconds
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()

    def moved(self) -> None:
        self._last = self._loop.time()

    async def until_one_ends(self, *ways: Awaitable[None]) -> str:
        """Until then; returns why the server ends it, if it does."""
        running = [asyncio.ensure_future(way) for way in ways]
        request = self._socket.request
        try:
            while True:
                done, _ = await asyncio.wait(running, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    for each in done:
                        each.result()
                    return ""
                if self._idle and self._loop.time() - self._last > self._idle:
                    return f"nothing was said for {self._idle / 60:g} minutes (setting task_session_idle_minutes)"
                if not await request.site.gate.still(request.caller):
                    return "the token is not good any more"
        finally:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)


# Ports


async def _serve_port(socket: Socket) -> None:
    """Bytes both ways, as over the connection itself."""
    request = socket.request
    tasks = request.site.task_sessions
    caller = request.caller.must()
    _, place = await tasks.place(caller, full_name(request), request.parameters["role"], whole(request, "index"))
    with tasks.sessions.hold(caller.name):
        made = await tasks.dial(place, request.parameters["port"])
        made.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=made)
        line = _Line(socket, tasks.idle_seconds)
        try:
            await socket.accept()

            async def show() -> None:
                while piece := await reader.read(PIECE_BYTES):
                    line.moved()
                    await socket.send(piece)

            async def take() -> None:
                while (message := await socket.receive()) is not None:
                    line.moved()
                    if isinstance(message, str):
                        writer.write_eof()  # the only thing that there is to say
                        continue
                    writer.write(message)
                    await writer.drain()

            with suppress(ConnectionError):
                await line.until_one_ends(show(), take())
        finally:
            writer.close()
            with suppress(ConnectionError, TimeoutError):
                await writer.wait_closed()


@routes("GET", f"{_TASK}/ports/{{port}}/connection", answers=_SOCKET, shape=OBJECT, socket=_serve_port)
async def task_port(request: Request) -> Response:
    """A connection to a port of a task of one's own (its number or label), over a WebSocket."""
    raise _needs_socket()


@routes("GET", f"{_TASK}/ports", shape=OBJECT)
async def task_ports(request: Request) -> Response:
    """The ports of a task of one's own: those that it was given, by their labels, and those that it listens on."""
    tasks = request.site.task_sessions
    _, place = await tasks.place(request.caller.must(), full_name(request), request.parameters["role"], whole(request, "index"))
    return json_response(
        {"given": task_access.ports(place), "listening": sorted(await request.site.call(task_access.listening, place))}
    )


# Files


@routes(
    "GET",
    f"{_TASK}/files",
    query=(
        _PATH,
        Query("describe", "Only what is there, as JSON.", _SWITCH),
        Query("offset", "Of a file, what comes after this number of bytes.", _NUMBER),
        _ARCHIVE,
        _MARK,
    ),
    kind="application/octet-stream",
    answers={200: "The file, or the folder as a tar archive"},
)
async def read_files(request: Request) -> Response:
    """A file or folder of a task of one's own."""
    do = "describe" if request.flag("describe") else "pack" if request.flag("archive") else "read"
    offset, mark = request.number("offset", 0), request.query.get("mark", "")
    tasks, order = await _order_of(request, do, offset=offset, mark=mark)
    if do == "describe" or request.scope["method"] == "HEAD":
        return json_response(await _told({**order, "do": "describe"}))
    async with AsyncExitStack() as opened:
        opened.enter_context(tasks.sessions.hold(request.caller.username))
        work = await FileWork.start(order)
        opened.push_async_callback(work.end)
        about = await work.said()
        pieces = _Pieces(work, opened.pop_all())
    headers = [(b"x-file-size", str(about["size"]).encode()), (b"x-file-version", about["version"].encode())]
    if do == "read":
        headers.append((b"content-length", str(max(0, about["size"] - offset)).encode()))
    return Stream(pieces, kind=b"application/octet-stream", headers=headers)


@routes(
    "PUT",
    f"{_TASK}/files",
    query=(
        _PATH,
        _ARCHIVE,
        _MARK,
        Query("offset", "Where the body begins in the file.", _NUMBER),
        Query("size", "Of the whole file: with its last byte it gets its name.", _NUMBER),
        Query("mode", "The rights of the file, as a decimal number.", _NUMBER),
    ),
    answers={200: "How much of it is there"},
    shape=record(done=TEXT),
)
async def write_files(request: Request) -> Response:
    """Write a file, or a folder from a tar archive, to a task of one's own."""
    archive = request.flag("archive")
    tasks, order = await _order_of(
        request,
        "unpack" if archive else "write",
        mark=request.query.get("mark", ""),
        offset=request.number("offset", 0),
        size=request.number("size", 0),
        mode=request.number("mode", 0o644, most=0o777),
    )
    with tasks.sessions.hold(request.caller.username):
        work = await FileWork.start(order)
        try:
            await work.feed(request.pieces(tasks.copy_bytes))
            return json_response(await work.said())
        finally:
            await work.end()


class _Pieces:
    """What a process reads; closing it ends the process, also before the first piece was taken."""

    def __init__(self, work: FileWork, opened: AsyncExitStack) -> None:
        self._work, self._opened = work, opened

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        piece = await self._work.read()
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        await self._opened.aclose()


async def _told(order: dict[str, object]) -> dict[str, object]:
    work = await FileWork.start(order)
    try:
        return await work.said()
    finally:
        await work.end()


async def _order_of(request: Request, do: str, **more: Any) -> tuple[Any, dict[str, object]]:
    tasks = request.site.task_sessions
    found, place = await tasks.place(
        request.caller.must(), full_name(request), request.parameters["role"], whole(request, "index")
    )
    return tasks, tasks.files_order(found, place, request.query.get("path", ""), do, **more)
