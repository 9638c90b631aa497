"""`pailot.Client`: the same runs, on a server."""

from __future__ import annotations

import os

from ..protocol.problems import PailotError
from ..service.launch import Conflict
from ..service.runs import NoSuchRun
from ..wire import credentials
from ..wire.client import Client as Wire
from ..wire.errors import NotFound, Refused
from .job import adopt, load
from .run import OVER, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self

    from ..protocol import model
    from .places import Line, Quit

SLICE_SECONDS = 10.0  # how soon a wait notices that nobody wants it any more
POLL_SECONDS = 2.0  # how often a server is asked that tells nothing by itself
MAX_FOLLOWED = 64


class Client:
    """A server and who one is there. Without arguments: `PAILOT_SERVER` and `PAILOT_TOKEN`, else the last `pailot login`.

    Nobody is contacted before the first call that needs an answer.
    """

    def __init__(self, server: str | None = None, token: str | None = None) -> None:
        login = credentials.chosen(server)
        if login is None:
            raise PailotError("no server is known; name one, set PAILOT_SERVER, or use pailot login")
        self._connections = Lines(login.server, token or login.token, "" if token else login.user)

    @property
    def _wire(self) -> Wire:
        return self._connections.mine

    @property
    def server(self) -> str:
        return self._wire.server

    @property
    def user(self) -> str:
        """Whose token it is."""
        return self._wire.user

    def run(
        self,
        job: model.Job | str | os.PathLike[str],
        *,
        name: str | None = None,
        secrets: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        code: str | os.PathLike[str] | None = None,
    ) -> Run:
        """Submit a job; `code` is a folder that is sent along, and in which its tasks start. Labels become tags KEY=VALUE."""
        if isinstance(job, str | os.PathLike):
            read = load(job, name=name, secrets=secrets)
        else:
            read = adopt(job)
            read = read.changed(name=name, secrets=secrets) if name is not None or secrets else read
        archive = ""
        if code is not None:
            from ..wire.pack import pack

            with pack(os.fspath(code)) as packed:
                archive = self._wire.send_code(packed)
        try:
            full = self._wire.submit(read.to_yaml(with_secrets=True), code=archive)
        except Refused as error:
            if error.status == 409:
                raise Conflict(str(error)) from None
            raise
        if "~" not in full:
            full = f"{self._wire.user}~{full or read.name}"
        for key, value in (labels or {}).items():
            self._wire.add_tag(full, f"{key}={value}")
        return Run(There(self._connections, full))

    def get(self, name: str) -> Run:
        """A job by `user~name`, or by the name alone if it is yours; raises NoSuchRun."""
        found = There(self._connections, name if "~" in name else f"{self._wire.user}~{name}")
        found.record()
        return Run(found)

    def runs(
        self,
        *,
        states: Sequence[str] = (),
        keyword: str = "",
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
        users: Sequence[str] = (),
    ) -> Iterator[Run]:
        """Jobs, newest first: in one of these states, with this text in the name, with these labels."""
        wanted = [f"{key}={value}" for key, value in (labels or {}).items()]
        query = {"state": list(states), "keyword": keyword, "tagsContain": wanted[:1], "username": list(users)}
        found = offset = 0
        while limit is None or found < limit:
            page = self._wire.jobs(**query, offset=offset, limit=100)
            for each in page:
                full = f"{each['username']}~{each['name'].rpartition('~')[2]}"
                if len(wanted) > 1 and not set(wanted) <= set(
                    self._wire.job(full)["jobStatus"].get("tags") or each.get("tags") or ()
                ):
                    continue
                yield Run(There(self._connections, full))
                found += 1
                if found == limit:
                    return
            offset += len(page)
            if len(page) < 100:
                return

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.server!r})"


class _Closing(Wire):
    """A client that closes its connection when nobody has it any more."""

    def __del__(self) -> None:
        self.close()


class Lines:
    """Connections to one server as one user: each thread has its own, and so has a forked process."""

    def __init__(self, server: str, token: str, user: str) -> None:
        from threading import local

        self._login = (server, token, user)
        self._of_thread = local()
        self.mine  # noqa: B018  # an address that is none is refused now

    @property
    def mine(self) -> Wire:
        found: tuple[int, Wire] | None = getattr(self._of_thread, "found", None)
        if found is None or found[0] != os.getpid():
            found = self._of_thread.found = os.getpid(), _Closing(*self._login)
        return found[1]


class There:
    """A run on a server."""

    def __init__(self, lines: Lines, full_name: str) -> None:
        self._connections, self.id = lines, full_name
        self.name = full_name.partition("~")[2] or full_name
        self.is_plain = False
        """Whether the server is an OpenPAI, which has no records and tells nothing by itself."""

    @property
    def _wire(self) -> Wire:
        return self._connections.mine

    def __reduce__(self) -> tuple[Any, ...]:
        return _there, (self._wire.server, self._wire.token, self.id)

    def record(self) -> dict[str, Any]:
        if self.is_plain:
            return self._plain_record()
        try:
            found = self._wire.record(self.id)
        except NotFound as error:
            if error.code == "NoJobError":
                raise NoSuchRun(str(error)) from None
            found = self._plain_record()
            self.is_plain = True
            return found
        if found["state"] in ("FAILED", "STOPPED") and "lastLines" not in found:
            found |= self._blamed()
        return found

    def _plain_record(self) -> dict[str, Any]:
        from ..engines.openpai.answers import read_job

        try:
            detail = self._wire.job(self.id)
        except NotFound as error:
            raise NoSuchRun(str(error)) from None
        roles = {name: len(role.get("taskStatuses") or ()) for name, role in (detail.get("taskRoles") or {}).items()}
        seen, status = read_job(detail, roles), detail.get("jobStatus") or {}
        times = {
            name: status[key] / 1000 if status.get(key) else None
            for name, key in (("submitted", "createdTime"), ("started", "appLaunchedTime"), ("ended", "completedTime"))
        }
        return {
            "name": self.name,
            "id": self.id,
            "user": status.get("username"),
            "state": seen.state,
            "attempt": seen.attempt,
            "retries": status.get("retries") or 0,
            "exitCode": seen.exit_code,
            "reason": seen.reason,
            **times,
            "engine": "openpai",
            "task": None if seen.role is None else f"{seen.role}:{seen.index}",
            "lastLines": [],
            "taskRoles": {
                role: {
                    "tasks": [
                        {
                            "index": each.index,
                            "state": each.state,
                            "exitCode": each.exit_code,
                            "reason": each.reason,
                            "attempts": each.task_attempt + 1,
                            "host": each.host,
                            "ports": {label: list(ports) for label, ports in each.ports.items()},
                        }
                        for each in seen.tasks
                        if each.role == role
                    ]
                }
                for role in roles
            },
        }

    def _blamed(self) -> dict[str, Any]:
        ended = [each for each in self._wire.journal(self.id) if each.get("event") == "task-ended"]
        failed = [each for each in ended if each.get("outcome") not in ("succeeded", "stopped")]
        if not failed:
            return {"task": None, "lastLines": []}
        return {"task": f"{failed[-1]['role']}:{failed[-1]['index']}", "lastLines": failed[-1].get("lastLines") or []}

    def wait(self, timeout: float | None, quit: Quit) -> bool:
        import select
        import time

        end = None if timeout is None else time.monotonic() + timeout
        state = self.record()["state"]  # which also finds out whom we talk to
        if state in OVER:
            return True
        while self.is_plain and self.record()["state"] not in OVER:
            left = POLL_SECONDS if end is None else min(POLL_SECONDS, end - time.monotonic())
            if left <= 0 or quit.is_set:
                return False
            select.select([quit.reader], [], [], left)
        while not quit.is_set and not self.is_plain:
            left = SLICE_SECONDS if end is None else min(SLICE_SECONDS, end - time.monotonic())
            if self._wire.wait(self.id, timeout=max(0.0, left)) is not None:
                return True
            if end is not None and time.monotonic() >= end:
                return False
        return self.is_plain

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        self.record()  # which finds out whom we talk to
        return self._polled_events(quit) if self.is_plain else self._live_events(quit)

    def _polled_events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        import time

        before: Any = None
        while not quit.is_set:
            record = self.record()
            states = (record["state"], [task["state"] for role in record["taskRoles"].values() for task in role["tasks"]])
            if states != before:
                over = record["state"] in OVER
                yield {
                    "event": "ended" if over else "changed",
                    "at": time.time(),
                    "state": record["state"],
                    "reason": record["reason"],
                }
                before = states
            if record["state"] in OVER:
                return
            self.wait(POLL_SECONDS, quit)

    def _live_events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        seen = 0
        live = iter(self._wire.live(self.id, silence=SLICE_SECONDS))
        while not quit.is_set:
            over = self._wire.record(self.id)["state"] in OVER
            found = self._wire.journal(self.id)
            yield from found[seen:]
            seen = max(seen, len(found))
            if over:
                return
            next(live, None)

    def lines(self, role: str | None, index: int | None, stream: str, follow: bool, quit: Quit) -> Iterator[Line]:
        tasks = [
            (name, task["index"])
            for name, node in self.record()["taskRoles"].items()
            for task in node["tasks"]
            if role in (None, name) and index in (None, task["index"])
        ]
        if self.is_plain:
            raise PailotError(f"{self._wire.server} is an OpenPAI; its logs are brought by the engine: pailot run -e openpai")
        if not tasks:
            raise PailotError(f"'{self.name}' has no task {role or 'any'}:{'any' if index is None else index}")
        if not follow:
            return self._lines(tasks, stream)
        return self._followed(tasks, stream, quit)

    def _lines(self, tasks: list[tuple[str, int]], stream: str) -> Iterator[Line]:
        for role, index in tasks:
            try:
                text = self._wire.log(self.id, role, index, stream=stream).decode(errors="replace")
            except NotFound:
                continue  # it has not begun
            for line in text.splitlines():
                yield role, index, line

    def _followed(self, tasks: list[tuple[str, int]], stream: str, quit: Quit) -> Iterator[Line]:
        if len(tasks) > MAX_FOLLOWED:
            raise PailotError(f"{len(tasks)} logs are too many to follow at once; name a role and an index")
        from queue import SimpleQueue
        from threading import Thread

        queue: SimpleQueue[Line | BaseException | None] = SimpleQueue()

        def follow(role: str, index: int) -> None:
            rest = ""
            try:
                for piece in self._wire.follow_log(self.id, role, index, stream=stream, after="0.0.0", silence=SLICE_SECONDS):
                    if quit.is_set:
                        return
                    *whole, rest = (rest + (piece.text if piece else "")).split("\n")
                    for line in whole:
                        queue.put((role, index, line))
                if rest:
                    queue.put((role, index, rest))
            except PailotError as error:
                queue.put(error)
            finally:
                queue.put(None)

        for role, index in tasks:
            Thread(target=follow, args=(role, index), daemon=True, name=f"log of {role}:{index}").start()
        left = len(tasks)
        while left:
            found = queue.get()
            if found is None:
                left -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found

    def stop(self, now: bool) -> None:
        self._wire.stop(self.id, now=now)

    def delete(self) -> None:
        self._wire.delete(self.id)

    def source(self) -> str:
        return self._wire.config(self.id)


def _there(server: str, token: str, full_name: str) -> There:
    return There(Lines(server, token, ""), full_name)
