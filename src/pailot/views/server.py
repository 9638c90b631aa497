"""Runs on a server: a Pailot tells everything, an OpenPAI is asked again and again."""

from __future__ import annotations

import json
import time
from itertools import chain
from queue import SimpleQueue

from ..client.api import MOST_FOLLOWED, V2
from ..client.errors import NotFound, Refused, Unreachable, WireError
from ..errors import NoSuchRun, PailotError
from ..lifecycle.states import FINAL_JOB_STATES, WAITING
from .base import View, Why, attempts_wanted, no_attempt, settled, tasks_in
from .cancellation import Quit
from .connections import Connections
from .log_pieces import Piece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from ..client.api import Client as Wire
    from ..runfolder.log_index import LogIndex
    from ..runfolder.log_search import Hit, SearchEnd, Wanted
    from .base import Which
    from .openpai import OpenpaiView

    Answer = TypeVar("Answer")

AHEAD = 256
"""The number of pieces of logs that are received before they are asked for."""
PAGE = 1_000
INDEX_SECONDS = 0.25
"""How often a server is asked for the times of lines that are followed."""
WORTH_A_LINE_SECONDS = 1.0
"""Most jobs start sooner, and need no word on what they wait for."""


class ServerView(View):
    """A run on a server; what kind of server it is, the first question finds out."""

    tells_why = True

    def __init__(self, connections: Connections, full_name: str) -> None:
        self._connections, self.id = connections, full_name
        self.name = full_name.partition("~")[2] or full_name
        self._openpai: OpenpaiView | None = None
        self._times: dict[tuple[str, int, int, int, str], tuple[int, LogIndex | None]] = {}
        self._next_index = 0.0

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

    def _asked(self, pailot: Callable[[], Answer], openpai: Callable[[OpenpaiView], Answer]) -> Answer:
        """A question that only a Pailot knows. A server that does not know it is an OpenPAI, and is asked in its own way."""
        if not self._connections.is_plain:
            try:
                answer = _known(pailot)
            except NotFound:
                if self._connections.is_plain is False:
                    raise
                self._connections.is_plain = True
            else:
                self._connections.is_plain = False
                return answer
        assert self._plain is not None
        return openpai(self._plain)

    def record(self, attempt: int | None = None) -> dict[str, Any]:
        return self._asked(lambda: self._wire.record(self.id, attempt), lambda plain: plain.record(attempt))

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

    def journal(self) -> list[dict[str, object]]:
        return self._asked(lambda: self._wire.journal(self.id), lambda plain: plain.journal())

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        record = self.record()  # which finds out what kind of server it is
        return self._plain.events(quit) if self._plain is not None else self._live_events(record, quit)

    def _live_events(self, record: Mapping[str, Any], quit: Quit) -> Iterator[Mapping[str, Any]]:
        """The server sends its journal, and goes on from where the line broke; a job that never started has a short one."""
        told: set[str] = set()
        for event in self._wire.live(self.id, http=self._connections.aside(quit)):
            if quit.is_set:
                return
            if event is None:
                continue
            entry = json.loads(event.data)
            kind = entry.get("event") if event.event in ("task", "journal") else None
            if not told and kind != "submitted":
                told.add("submitted")
                yield {"at": record["submitted"], "event": "submitted", "name": record["name"], "user": record["user"]}
            if isinstance(kind, str):
                told.add(kind)
                yield entry
            elif event.event == "end":
                if "ended" not in told:
                    yield {"at": entry["ended"], "event": "ended", "state": entry["state"], "reason": entry["reason"]}
                return

    def pieces(self, which: Which, follow: bool, quit: Quit, record: Mapping[str, Any] | None = None) -> Iterator[Piece]:
        record = record or self.record()
        if self._plain is not None:
            return self._plain.pieces(which, follow, quit, record)
        latest = record["attempt"]
        tasks = tasks_in(_indexes(record), latest, which, self.name)
        which = settled(which, latest, follow)
        if follow:
            if len(tasks) > MOST_FOLLOWED:
                raise PailotError(f"{len(tasks)} tasks are too many to follow at once; name a role and an index")
            return self._followed(tasks, which, quit) if len(tasks) > 1 else self._follow(*tasks[0], which, quit)
        if which.attempt != latest:
            record = self.record(which.attempt)
        return self._whole(tasks, which, record)

    def _whole(self, tasks: list[tuple[str, int]], which: Which, record: Mapping[str, Any]) -> Iterator[Piece]:
        counts = {(role, task["index"]): task["attempts"] for role, node in record["taskRoles"].items() for task in node["tasks"]}
        attempt = which.attempt or 0
        wanted = {task: attempts_wanted(which, counts.get(task, 0)) for task in tasks}
        if which.task_attempt is not None and not any(wanted.values()):
            raise no_attempt(which, tasks, self.name)
        for (role, index), numbers in wanted.items():
            for number in numbers:
                try:
                    start = self._start(role, index, attempt, number, which)
                    begin, data = self._wire.log_piece(
                        self.id, role, index, stream=which.stream, attempt=attempt, task_attempt=number, offset=start
                    )
                except NotFound:
                    continue  # it has printed nothing
                yield Piece(role, index, attempt, number, data, end=begin + len(data))

    def _start(self, role: str, index: int, attempt: int, number: int, which: Which) -> int:
        """Where to begin to read a log."""
        if which.tail is None and which.not_before is None:
            return 0
        from .log_starts import LogText

        named: dict[str, Any] = {"stream": which.stream, "attempt": attempt}
        about = self._wire.log_index(self.id, role, index, taskAttempt=number, limit=1, **named)

        def read(offset: int, size: int) -> bytes:
            return self._wire.log_piece(self.id, role, index, task_attempt=number, offset=offset, limit=size, **named)[1]

        text = LogText(about["begin"], about["size"], read, lambda: self._index(role, index, attempt, number, which.stream)[1])
        return text.start(which.tail, which.not_before)

    def _index(
        self, role: str, index: int, attempt: int, number: int, stream: str, begin: int = 0
    ) -> tuple[int, LogIndex | None]:
        """How far the server knows the times of a log, and these from an offset on."""
        from ..runfolder.log_index import LogIndex

        made = LogIndex([], [], [])
        while True:
            named = {"stream": stream, "attempt": attempt, "taskAttempt": number, "from": begin}
            told = self._wire.log_index(self.id, role, index, **named)
            if not told["indexed"]:
                return told["size"], None
            entries = told["entries"]
            skipped = 1 if made.offsets and entries["offset"][:1] == made.offsets[-1:] else 0
            made.offsets += entries["offset"][skipped:]
            made.times += entries["at"][skipped:]
            made.errors += entries["stderr"][skipped:]
            if not told["more"]:
                return told["size"], made
            begin = made.offsets[-1]

    def times(self, piece: Piece, stream: str) -> LogIndex | None:
        if self._plain is not None or piece.stream:
            return None
        where = (piece.role, piece.index, piece.attempt, piece.task_attempt, stream)
        known = self._times.get(where)
        if known is None or known[0] < piece.end:
            # One request covers all that was printed by then: pieces that come faster need none.
            time.sleep(min(INDEX_SECONDS, max(0.0, self._next_index - time.monotonic())))
            self._next_index = time.monotonic() + INDEX_SECONDS
            begin = known[1].offsets[-1] if known and known[1] and known[1].offsets else 0
            known = self._times[where] = self._index(*where, begin)
        return known[1]

    def usage(self) -> list[dict[str, Any]]:
        return self._asked(lambda: self._wire.usage(self.id), lambda plain: plain.usage())

    def search(self, wanted: Wanted, limit: int) -> Iterator[Hit | SearchEnd]:
        from ..runfolder.log_search import Hit, SearchEnd

        query = {key: value for key, value in wanted.to_json().items() if value is not None and key != "pattern"}
        told = self._pailot_only(
            lambda: iter(self._wire.search(self.id, wanted.pattern, limit=limit, **_switches(query))),
            f"cannot be searched; use: pailot logs {self.name} | grep",
        )
        for found in told:
            if "end" in found:
                yield SearchEnd(found["hits"], found["stopped"])
                return
            yield Hit.from_json(found)
        raise Unreachable(f"{self._connections.server} ended the search early")

    def save_logs(self, write: Callable[[bytes], object], which: Which) -> None:
        query = {"stream": which.stream, "role": which.role}
        with self._pailot_only(lambda: self._wire.logs_archive(self.id, **query), "has no archive of logs") as response:
            while data := response.read(1 << 18):
                write(data)

    def _follow(self, role: str, index: int, which: Which, quit: Quit) -> Iterator[Piece]:
        """One task, to the end of the job."""
        begin, number, offset = which.since if which.attempt is None else which.attempt, which.task_attempt or 0, 0
        if which.tail is not None or which.not_before is not None:
            number = max(0, self._attempts(role, index, begin) - 1) if which.task_attempt is None else number
            try:
                offset = self._start(role, index, begin, number, which)
            except NotFound:
                pass  # it has printed nothing yet
        received = self._wire.follow_log(
            self.id,
            role,
            index,
            stream=which.stream,
            attempt=which.attempt,
            task_attempt=which.task_attempt,
            after=f"{begin}.{number}.{offset}",
            http=self._connections.aside(quit),
        )
        for piece in received:
            if quit.is_set:
                return
            if piece is None:
                continue
            if which.attempt is not None and piece.attempt != which.attempt:
                return  # the next one is not wanted
            data = piece.text.encode(errors="replace")
            yield Piece(role, index, piece.attempt, piece.task_attempt, data, piece.missing, end=piece.offset)

    def _attempts(self, role: str, index: int, attempt: int) -> int:
        tasks = self.record(attempt)["taskRoles"][role]["tasks"]
        return int(next(task["attempts"] for task in tasks if task["index"] == index))

    def _followed(self, tasks: list[tuple[str, int]], which: Which, quit: Quit) -> Iterator[Piece]:
        """Several tasks at once: each has a connection and a thread, which waits while its pieces are not read."""
        from threading import Semaphore, Thread

        received: SimpleQueue[Piece | BaseException | None] = SimpleQueue()
        room = Semaphore(AHEAD)
        enough = Quit()  # also when the caller reads no further
        quit.then(enough.set)
        enough.then(lambda: room.release(len(tasks)))
        enough.then(lambda: received.put(None))

        def follow(role: str, index: int) -> None:
            try:
                for piece in self._follow(role, index, which, enough):
                    room.acquire()
                    if enough.is_set:
                        return
                    received.put(piece)
            except PailotError as error:
                received.put(error)
            finally:
                received.put(None)

        left = len(tasks)
        try:
            for role, index in tasks:
                Thread(target=follow, args=(role, index), daemon=True, name=f"log of {role}:{index}").start()
            while left and not enough.is_set:
                found = received.get()
                if found is None:
                    left -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    room.release()
                    yield found
        finally:
            enough.set()

    def log_address(self, which: Which) -> str | None:
        if self._plain is not None:
            return self._plain.log_address(which)
        path = self._wire.log_path(self.id, which.role or "", which.index or 0, which.stream, which.attempt, which.task_attempt)
        return f"{self._connections.server}{V2}{path}"

    def why(self) -> Why:
        return self._asked(self._why, lambda plain: plain.why())

    def _why(self) -> Why:
        found = self._wire.why(self.id)
        return Why(found.get("name", self.name), found["state"], tuple(found["lines"]))

    def reasons_to_wait(self, quit: Quit) -> Iterator[Sequence[str]]:
        told: Sequence[str] = ()
        try:
            quit.wait(WORTH_A_LINE_SECONDS)
            if self._connections.is_plain:
                return
            for event in chain((None,), self._wire.live(self.id, http=self._connections.aside(quit))):
                if quit.is_set or (event is not None and event.event == "end"):
                    return
                if event is None or (event.event == "job" and json.loads(event.data).get("state") == WAITING):
                    found = self._why()
                    if found.state == WAITING and found.lines != told:
                        told = found.lines
                        yield told
        except WireError:
            return  # the caller, which waits for the job, hears of it, too

    def stop(self, now: bool) -> None:
        def ask() -> None:
            try:
                self._wire.stop(self.id, now=now)
            except Refused as error:
                if not now or error.status != 400:
                    raise
                self._wire.stop(self.id)  # an OpenPAI knows no 'at once'

        _known(ask)

    def delete(self) -> None:
        self._pailot_only(lambda: self._wire.delete(self.id), "keeps every job; it cannot be deleted")

    def rerun(self, name: str | None = None, secrets: Mapping[str, str] | None = None) -> ServerView:
        made = self._pailot_only(
            lambda: self._wire.rerun(self.id, name=name, secrets=secrets), "runs no job again; submit its file once more"
        )
        return ServerView(self._connections, made if "~" in made else f"{self._connections.user}~{made}")

    def _pailot_only(self, ask: Callable[[], Answer], otherwise: str) -> Answer:
        try:
            return _known(ask)
        except NotFound as error:
            if error.code != "NoApiError":
                raise
            raise PailotError(f"{self._connections.server} is an OpenPAI, which {otherwise}") from None

    def file(self) -> str:
        return self._wire.config(self.id)


class ServerRuns:
    """The runs on a server that its user may see."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections

    def find(self, name: str) -> ServerView:
        """A job by `user~name`, or by the name alone if it is the caller's; nothing is asked yet."""
        return ServerView(self.connections, name if "~" in name else f"{self.connections.user}~{name}")

    def names(self) -> list[str]:
        """The names of the user's latest jobs, newest first."""
        return [row["name"] for row in self.rows((), every=False, everyone=False)]

    def instances(self, name: str) -> dict[str, int]:
        """The roles of a job and how many tasks each has."""
        return {role: len(node["tasks"]) for role, node in self.find(name).record()["taskRoles"].items()}

    def rows(self, states: Sequence[str], *, every: bool, everyone: bool) -> list[dict[str, Any]]:
        """What `ps --json` prints, newest first: the latest ones, or every one; of this user, or of everyone."""
        whose = {} if everyone else {"username": self.connections.user}
        every = every or bool(states)
        limit = PAGE if every else 50
        rows: list[dict[str, object]] = []
        while True:
            page = self.connections.mine.jobs(state=list(states), **whose, limit=limit, offset=len(rows), format="ps")
            rows += [_row(item) for item in page]
            if len(page) < limit or not every:
                return rows

    def search(
        self,
        states: Sequence[str] = (),
        keyword: str = "",
        labels: Mapping[str, str] | None = None,
        limit: int | None = None,
        users: Sequence[str] = (),
    ) -> Iterator[ServerView]:
        """Jobs, newest first: in one of these states, with this text in the name, with these labels, of these users."""
        wanted = dict(labels or {})
        text = json.dumps(wanted) if wanted else ""
        query = {"state": list(states), "keyword": keyword, "labels": text, "username": list(users)}
        found = offset = 0
        while limit is None or found < limit:
            page = self.connections.mine.jobs(**query, offset=offset, limit=100)
            for each in page:
                view = self.find(f"{each['username']}~{each['name'].rpartition('~')[2]}")
                if wanted and not wanted.items() <= _labels(view, each).items():
                    continue
                yield view
                found += 1
                if found == limit:
                    return
            offset += len(page)
            if len(page) < 100:
                return


def _switches(query: Mapping[str, Any]) -> dict[str, object]:
    return {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}


def _known(ask: Callable[[], Answer]) -> Answer:
    """Return the answer to a question about a job; raises NoSuchRun where there is no such job."""
    try:
        return ask()
    except NotFound as error:
        if error.code != "NoJobError":
            raise
        raise NoSuchRun(str(error), error.code) from None


def _indexes(record: Mapping[str, Any]) -> dict[str, list[int]]:
    return {role: [task["index"] for task in node["tasks"]] for role, node in record["taskRoles"].items()}


def _labels(view: View, item: Mapping[str, Any]) -> Mapping[str, str]:
    """Of a job of the list; an OpenPAI knows nothing of them, but keeps the job file."""
    if "labels" in item:
        return dict(item["labels"])
    from .openpai import labels_in_file

    return labels_in_file(view)


def _row(item: dict[str, Any]) -> dict[str, Any]:
    """An entry of the server's list, as `ps` shows it; OpenPAI's own servers tell it in their way only."""
    if "submitted" in item:
        return item
    times = {"submitted": "submissionTime", "started": "launchedTime", "ended": "completedTime"}
    return {
        "name": item["name"],
        "id": f"{item['username']}~{item['name']}",
        "user": item["username"],
        "state": item["state"],
        **{ours: item[theirs] / 1000 if item.get(theirs) is not None else None for ours, theirs in times.items()},
        "tasks": item.get("totalTaskNumber"),
        "retries": item.get("retries"),
        "engine": item.get("engine"),
        "held": item.get("held") or 0,
    }


def _server_view(server: str, token: str, full_name: str) -> ServerView:
    return ServerView(Connections(server, token, ""), full_name)
