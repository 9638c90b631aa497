"""A run on a server, as it is looked at from here: a Pailot tells everything, an OpenPAI is asked again and again."""

from __future__ import annotations

import json
import time

from ..client.errors import NotFound, Refused, Unreachable
from ..errors import PailotError
from ..lifecycle.states import FINAL_JOB_STATES
from ..userruns.queries import NoSuchRun
from .base import tasks_in, warn_of_gap
from .cancellation import Quit
from .connections import Connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..client.api import Client as Wire
    from .base import Line, Which
    from .openpai import OpenpaiView

MAX_FOLLOWED = 64


class ServerView:
    """A run on a server; who answers there is found out at the first question."""

    def __init__(self, connections: Connections, full_name: str) -> None:
        self._connections, self.id = connections, full_name
        self.name = full_name.partition("~")[2] or full_name
        self._blamed: dict[str, Any] | None = None
        self._openpai: OpenpaiView | None = None

    @property
    def _wire(self) -> Wire:
        return self._connections.mine

    def __reduce__(self) -> tuple[Any, ...]:
        return _server_view, (self._connections.server, self._connections.token, self.id)

    @property
    def _plain(self) -> OpenpaiView | None:
        """The same run, if the server is an OpenPAI."""
        if self._openpai is None and self._connections.is_plain:
            from .openpai import OpenpaiView

            self._openpai = OpenpaiView(self._connections, self.id)
        return self._openpai

    def record(self) -> dict[str, Any]:
        if self._plain is not None:
            return self._plain.record()
        try:
            found = self._wire.record(self.id)
        except NotFound as error:
            if error.code == "NoJobError":
                raise NoSuchRun(str(error)) from None
            self._connections.is_plain = True
            return self.record()
        self._connections.is_plain = False
        if found["state"] in ("FAILED", "STOPPED") and "lastLines" not in found:
            self._blamed = self._blamed or self._blame()
            found |= self._blamed
        return found

    def _blame(self) -> dict[str, Any]:
        ended = [each for each in self._wire.journal(self.id) if each.get("event") == "task-ended"]
        failed = [each for each in ended if each.get("outcome") not in ("succeeded", "stopped")]
        if not failed:
            return {"task": None, "lastLines": []}
        return {"task": f"{failed[-1]['role']}:{failed[-1]['index']}", "lastLines": failed[-1].get("lastLines") or []}

    def wait(self, timeout: float | None, quit: Quit) -> bool:
        if self.record()["state"] in FINAL_JOB_STATES:
            return True
        if self._plain is not None:
            return self._plain.wait(timeout, quit)
        until = float("inf") if timeout is None else time.monotonic() + timeout
        for event in self._wire.live(self.id, http=self._connections.aside(quit), until=until):
            if quit.is_set:
                return False
            if event is None or event.event == "end" or json.loads(event.data).get("state") in FINAL_JOB_STATES:
                try:
                    if self._wire.record(self.id)["state"] in FINAL_JOB_STATES:
                        return True
                except Unreachable:
                    continue  # the stream knows how long to be patient
        return not quit.is_set and self._wire.record(self.id)["state"] in FINAL_JOB_STATES

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        self.record()  # which finds out whom we talk to
        return self._plain.events(quit) if self._plain is not None else self._live_events(quit)

    def _live_events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        seen = 0
        live = self._wire.live(self.id, http=self._connections.aside(quit))
        while not quit.is_set:
            try:
                over = self._wire.record(self.id)["state"] in FINAL_JOB_STATES
                found = self._wire.journal(self.id)
            except Unreachable:
                next(live, None)  # it knows how long to be patient
                continue
            yield from found[seen:]
            seen = max(seen, len(found))
            if over:
                return
            next(live, None)

    def lines(self, which: Which, follow: bool, quit: Quit) -> Iterator[Line]:
        record = self.record()
        if self._plain is not None:
            return self._plain.lines(which, follow, quit)
        tasks = tasks_in(record, which, self.name)
        if which.task_attempt is not None or not follow:
            which = which.replace(attempt=record["attempt"] if which.attempt is None else which.attempt)
        return self._followed(tasks, which, quit) if follow else self._whole(tasks, which)

    def _whole(self, tasks: list[tuple[str, int]], which: Which) -> Iterator[Line]:
        for role, index in tasks:
            number = which.task_attempt or 0
            while True:
                try:
                    data = self._wire.log(self.id, role, index, stream=which.stream, attempt=which.attempt, task_attempt=number)
                except NotFound:
                    if which.task_attempt is not None:
                        raise PailotError(f"'{self.name}' has no attempt {number} of {role}:{index}") from None
                    break  # it has not begun
                for line in data.decode(errors="replace").removesuffix("\n").split("\n") if data else ():
                    yield role, index, line
                number += 1
                if which.task_attempt is not None:
                    break

    def _followed(self, tasks: list[tuple[str, int]], which: Which, quit: Quit) -> Iterator[Line]:
        if len(tasks) > MAX_FOLLOWED:
            raise PailotError(f"{len(tasks)} logs are too many to follow at once; name a role and an index")
        from queue import SimpleQueue
        from threading import Thread

        queue: SimpleQueue[Line | BaseException | None] = SimpleQueue()
        left = len(tasks)
        enough = Quit()  # also when nobody reads on
        quit.then(enough.set)
        enough.then(lambda: queue.put(None))

        def follow(role: str, index: int) -> None:
            rest, where = "", (-1, -1)
            pieces = self._wire.follow_log(
                self.id,
                role,
                index,
                stream=which.stream,
                attempt=which.attempt,
                task_attempt=which.task_attempt,
                after=f"{which.attempt or 0}.{which.task_attempt or 0}.0",
                http=self._connections.aside(enough),
            )
            try:
                for piece in pieces:
                    if enough.is_set:
                        return
                    if piece is None:
                        continue
                    if which.attempt is not None and piece.attempt != which.attempt:
                        break  # the next one is not wanted
                    if (piece.attempt, piece.task_attempt) != where and rest:
                        queue.put((role, index, rest))
                        rest = ""
                    where = (piece.attempt, piece.task_attempt)
                    if piece.missing:
                        warn_of_gap(f"{role}:{index}", piece.missing)
                    *whole, rest = (rest + piece.text).split("\n")
                    for line in whole:
                        queue.put((role, index, line))
                if rest:
                    queue.put((role, index, rest))
            except PailotError as error:
                queue.put(error)
            finally:
                queue.put(None)

        try:
            for role, index in tasks:
                Thread(target=follow, args=(role, index), daemon=True, name=f"log of {role}:{index}").start()
            while left and not enough.is_set:
                found = queue.get()
                if found is None:
                    left -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found
        finally:
            enough.set()

    def stop(self, now: bool) -> None:
        try:
            self._wire.stop(self.id, now=now)
        except Refused as error:
            if not now or error.status != 400:
                raise
            self._wire.stop(self.id)  # an OpenPAI knows no 'at once'

    def delete(self) -> None:
        try:
            self._wire.delete(self.id)
        except NotFound as error:
            if error.code == "NoApiError":
                raise PailotError(
                    f"{self._connections.server} is an OpenPAI, which keeps every job; it cannot be deleted"
                ) from None
            raise

    def source(self) -> str:
        return self._wire.config(self.id)


def _server_view(server: str, token: str, full_name: str) -> ServerView:
    return ServerView(Connections(server, token, ""), full_name)
