"""What the owner of a job does with its tasks through a server: shells, files, connections to ports. All of it is bounded."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import struct
import termios

from ..engines.registry import load
from ..runtime import rights, strays
from ..userruns import task_access
from ..userruns.run_folder import JobFolder
from ..values import Value
from . import file_process, helper_process
from .errors import BadRequest, Forbidden, NoSuchJob, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Iterator, Mapping
    from typing import Any

    from ..store.server import JobRecord
    from ..userruns.task_access import TaskPlace
    from .models import Caller
    from .service import Team

PIECE_BYTES = 1 << 16
DIAL_SECONDS = 10.0
LAST_OUTPUT_SECONDS = 2.0
"""How long the rest of its output is waited for when a shell has ended: what it left behind may hold the line."""
END_SECONDS = 2.0
_CLIENT_VARIABLES = ("PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "SLURM_CONF")
"""What the programs that lead into a container or to a node need of the server's own environment."""


class Wanted(Value):
    """A shell as the client wants it."""

    command: str | None
    terminal: bool
    term: str
    rows: int
    columns: int


class Sessions:
    """Counts what every user has open."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    @contextlib.contextmanager
    def hold(self, user: str) -> Iterator[None]:
        """A place for one; Unavailable where a user has too many."""
        if self._open.get(user, 0) >= self._most:
            words = f"{user} has {self._most} shells, copies and forwarded connections open already (setting task_sessions)"
            raise Unavailable(words)
        self._open[user] = self._open.get(user, 0) + 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]


class TaskSessions:
    """The tasks of a server's jobs, for their owners."""

    def __init__(self, team: Team, settings: Mapping[str, Any] | Any) -> None:
        self._team = team
        self.sessions = Sessions(int(settings["task_sessions"]))
        self.idle_seconds = float(settings["task_session_idle_minutes"]) * 60
        self.copy_bytes = int(settings["copy_limit_mb"] * 1_000_000)

    async def place(self, caller: Caller, job: str, role: str, index: int) -> tuple[JobRecord, TaskPlace]:
        """A task of a job that is the caller's own: a shell has the rights of its owner, so only the owner gets one."""
        record = await self._team.get(caller, job)
        if record.user != caller.name:
            raise Forbidden(f"only {record.user} may get at the tasks of job {record.user}~{record.name}")
        try:
            found = await asyncio.to_thread(
                task_access.locate, record.name, record.engine, JobFolder(record.folder), role or None, index
            )
        except task_access.NoSuchTask as error:
            raise NoSuchJob(str(error)) from None
        return record, found

    async def shell(self, record: JobRecord, place: TaskPlace, wanted: Wanted) -> ShellProcess:
        """A shell beside a task, as the task's user."""
        run_as = self._team.unix.owner(record.user) or ""
        own = {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}
        around = self._team.unix.environment(run_as, self._team.environment)
        found = await asyncio.to_thread(
            lambda: task_access.shell(
                place,
                wanted.command,
                terminal=wanted.terminal,
                inherited={**around, **{name: own[name] for name in ("SLURM_CONF",) if name in own}},
                as_we_are=own,
                term=wanted.term,
            )
        )
        return await _start_shell(found, "" if found.outside else run_as, wanted)

    def files_order(self, record: JobRecord, place: TaskPlace, path: str, do: str, **more: Any) -> dict[str, object]:
        """What a process of `file_process` is told."""
        folder = load(place.engine).files_folder(place.folder)
        base, name = os.path.split(folder)
        defaults = {"mark": "", "offset": 0, "size": 0, "mode": 0o644}
        user = self._team.unix.owner(record.user) or ""
        return {**defaults, "user": user, "base": base, "steps": [name], "path": path, "do": do, "limit": self.copy_bytes, **more}

    async def dial(self, place: TaskPlace, wanted: str) -> socket.socket:
        """A connection to a port of a task."""
        if place.ended:
            raise BadRequest(f"{place} has ended; its ports may be those of others by now")

        def connect() -> socket.socket:
            port = task_access.port_of(place, wanted)
            return load(place.engine).dial(place.folder, task_access.host(place), port, DIAL_SECONDS)

        try:
            return await asyncio.to_thread(connect)
        except OSError as error:
            raise Unavailable(f"port {wanted} of {place} does not answer: {error.strerror or error}") from None


class FileWork:
    """One process that reads or writes files of a task."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, order: Mapping[str, Any]) -> FileWork:
        pipe = asyncio.subprocess.PIPE
        writes = order["do"] in ("write", "unpack")
        stdin = pipe if writes else asyncio.subprocess.DEVNULL
        return cls(await helper_process.start(file_process.MODULE, order, stdin=stdin, stdout=pipe, stderr=pipe, limit=1 << 20))

    async def said(self) -> dict[str, Any]:
        """Its first line: what it found, or how it went."""
        assert self._process.stdout
        line = await self._process.stdout.readline()
        try:
            found: dict[str, object] = json.loads(line)
        except ValueError:
            assert self._process.stderr
            words = (await self._process.stderr.read(1 << 16)).decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise Unavailable(f"the files cannot be reached: {words or 'the process that reads them has ended'}") from None
        if "error" in found:
            raise (NoSuchJob if found["missing"] else BadRequest)(found["error"])
        return found

    async def read(self) -> bytes:
        assert self._process.stdout
        return await self._process.stdout.read(PIECE_BYTES)

    async def feed(self, pieces: AsyncIterator[bytes]) -> None:
        """Hand on what is to be written; it may have ended before it took all, and then says why."""
        assert self._process.stdin
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            async for piece in pieces:
                self._process.stdin.write(piece)
                await self._process.stdin.drain()
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            self._process.stdin.close()

    async def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class ShellProcess:
    """A shell, and the two ends of its lines that are ours."""

    def __init__(self, process: asyncio.subprocess.Process, inputs: int, outputs: Mapping[int, int], *, terminal: bool) -> None:
        self.process, self._input, self._outputs, self._terminal = process, inputs, dict(outputs), terminal
        self._loop = asyncio.get_running_loop()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """What it prints, as (1 or 2, bytes), until it has ended and nothing more comes."""
        ended = asyncio.ensure_future(self.process.wait())
        waiting = {stream: asyncio.ensure_future(self._read(end)) for stream, end in self._outputs.items()}
        try:
            while waiting:
                over = ended.done()
                wanted: list[asyncio.Future[Any]] = [*waiting.values(), *([] if over else [ended])]
                await asyncio.wait(wanted, timeout=LAST_OUTPUT_SECONDS if over else None, return_when=asyncio.FIRST_COMPLETED)
                came = {stream: each.result() for stream, each in waiting.items() if each.done()}
                if over and not came:
                    return  # what it left behind holds the line
                for stream, piece in came.items():
                    del waiting[stream]
                    if piece:
                        yield stream, piece
                        waiting[stream] = asyncio.ensure_future(self._read(self._outputs[stream]))
        finally:
            left: list[asyncio.Future[Any]] = [*waiting.values(), ended]
            for each in left:
                each.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _read(self, end: int) -> bytes:
        while True:
            try:
                return os.read(end, PIECE_BYTES)
            except BlockingIOError:
                await self._ready(end, writing=False)
            except OSError:
                return b""  # a terminal whose other end is closed

    async def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._input >= 0:
            try:
                rest = rest[os.write(self._input, rest) :]
            except BlockingIOError:
                await self._ready(self._input, writing=True)
            except OSError:
                return  # the reader is gone

    async def _ready(self, end: int, *, writing: bool) -> None:
        ready = self._loop.create_future()
        add, remove = (
            (self._loop.add_writer, self._loop.remove_writer) if writing else (self._loop.add_reader, self._loop.remove_reader)
        )

        def tell() -> None:
            if not ready.done():
                ready.set_result(None)

        add(end, tell)
        try:
            await ready
        finally:
            remove(end)

    def end_input(self) -> None:
        """Nothing more is typed."""
        if not self._terminal and self._input >= 0:
            os.close(self._input)
            self._input = -1

    def resize(self, rows: int, columns: int) -> None:
        if self._terminal:
            fcntl.ioctl(self._input, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def close(self) -> int:
        """End what is left of it, and return how it ended: a status, or 128 and the signal."""
        if self.process.returncode is None:
            self._signal(signal.SIGHUP)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self.process.wait()
        self._signal(signal.SIGKILL)
        status = await self.process.wait()
        for end in {self._input, *self._outputs.values()} - {-1}:
            os.close(end)
        self._outputs, self._input = {}, -1
        return 128 - status if status < 0 else status

    def _signal(self, number: int) -> None:
        """To all processes of its session."""
        for pid in strays.in_sessions({self.process.pid}):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


async def _start_shell(found: task_access.Shell, run_as: str, wanted: Wanted) -> ShellProcess:
    order = {
        "terminal": wanted.terminal,
        "user": run_as,
        "cwd": found.cwd,
        "words": list(found.words),
        "environment": dict(found.environment),
    }
    if wanted.terminal:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", wanted.rows, wanted.columns, 0, 0))
        if run_as:
            rights.give_open(slave, rights.unix_user(run_as))
        theirs, ours, outputs = (slave, slave, slave), master, {1: master}
    else:
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(3)]
        theirs = pipes[0][0], pipes[1][1], pipes[2][1]
        ours, outputs = pipes[0][1], {1: pipes[1][0], 2: pipes[2][0]}
    try:
        process = await helper_process.start("pailot.runtime.entered", order, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2])
    finally:
        for end in set(theirs):
            os.close(end)
    for end in {ours, *outputs.values()}:
        os.set_blocking(end, False)
    return ShellProcess(process, ours, outputs, terminal=wanted.terminal)
