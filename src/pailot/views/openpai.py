"""A run on an OpenPAI cluster, which has no records, no live events, and its logs at addresses of a log service.

What happens is told by comparing what the server says with what it said before.
"""

from __future__ import annotations

import time

from ..client.errors import NotFound, Refused, Unreachable, WireError
from ..client.openpai_logs import LogPlaces
from ..client.sse import PATIENCE
from ..engines.openpai.job_status import read_job, role_key
from ..errors import NoSuchRun, PailotError
from ..lifecycle.states import FINAL_JOB_STATES
from ..protocol.yaml import YamlError, parse
from .base import View, Why, attempts_wanted, no_attempt, settled, tasks_in
from .log_pieces import Piece

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ..client.api import Client as Wire
    from ..client.openpai_logs import Where
    from ..engines.openpai.job_status import JobSeen
    from .base import Which
    from .cancellation import Quit
    from .connections import Connections

LAST_LINES = 10
LOG_LAG_SECONDS = 0.5
"""The log service may be a little behind the end of a job."""


def labels_in(root: Any) -> dict[str, str]:
    """The labels in a job file, of which the server knows nothing else."""
    options = (root.get("extras") or {}).get("pailot") or {}
    return dict(options.get("labels") or {})


def labels_in_file(view: View) -> dict[str, str]:
    """The labels in the job file of a run; none where the server does not tell it."""
    try:
        return labels_in(parse(view.file()).root)
    except (Refused, YamlError):
        return {}  # it is not told, or not of this version


class OpenpaiView(View):
    """What `ServerView` is for a Pailot server."""

    def __init__(self, connections: Connections, full_name: str) -> None:
        self._connections, self.id = connections, full_name
        self.name = full_name.partition("~")[2] or full_name
        self._spelled: dict[str, str] | None = None
        self._labels: dict[str, str] = {}

    @property
    def _wire(self) -> Wire:
        return self._connections.mine

    def _seen(self, detail: Mapping[str, Any]) -> JobSeen:
        """What the server says, with the roles named as in the job file: the server has its own spelling of them."""
        there = detail.get("taskRoles") or {}
        if self._spelled is None and there:
            try:
                root = parse(self._wire.config(self.id)).root
                self._spelled = {role_key(name): name for name in root["taskRoles"]}
                self._labels = labels_in(root)
            except (Refused, YamlError, KeyError, TypeError):
                self._spelled = {}  # it is not told, or not of this version
        names = {
            (self._spelled or {}).get(role_key(name), name): len(role.get("taskStatuses") or ()) for name, role in there.items()
        }
        return read_job(detail, names)

    def record(self, attempt: int | None = None) -> dict[str, Any]:
        detail = self._detail()
        status, seen = detail.get("jobStatus") or {}, self._seen(detail)
        times = {
            name: status[key] / 1000 if status.get(key) else None
            for name, key in (("submitted", "createdTime"), ("started", "appLaunchedTime"), ("ended", "completedTime"))
        }
        if status.get("submissionTime"):
            times["submitted"] = status["submissionTime"] / 1000
        return {
            "name": self.name,
            "id": self.id,
            "user": status.get("username"),
            "state": seen.state,
            "attempt": seen.attempt,
            "retries": status.get("retries") or 0,
            "exitCode": _own_code(status, seen.exit_code),
            "reason": seen.reason or None,
            **times,
            "engine": "openpai",
            "labels": self._labels,
            **self._blame(seen),
            "taskRoles": _roles(seen if attempt in (None, seen.attempt) else self._seen(self._detail(attempt))),
        }

    def _detail(self, attempt: int | None = None) -> dict[str, Any]:
        try:
            return self._wire.job(self.id, attempt)
        except NotFound as error:
            raise NoSuchRun(str(error), error.code) from None

    def _blame(self, seen: JobSeen) -> dict[str, object]:
        """The task that decided, and the last lines of its log."""
        failed = [task for task in seen.tasks if task.state == "FAILED"]
        named = [task for task in seen.tasks if (task.role, task.index) == (seen.role, seen.index)]
        if seen.state != "FAILED" or not (named or failed):
            return {"task": None, "lastLines": []}
        task = (named or failed)[0]
        places = LogPlaces(self._wire, self.id)
        try:
            tail = places.tail((task.there, task.index, seen.attempt, task.task_attempt))
        except WireError:
            tail = b""  # its log is gone, or the log service is; the rest is still worth telling
        finally:
            places.close()
        return {"task": f"{task.role}:{task.index}", "lastLines": tail.decode(errors="replace").splitlines()[-LAST_LINES:]}

    def wait(self, timeout: float | None, quit: Quit) -> bool:
        until = float("inf") if timeout is None else time.monotonic() + timeout
        while self._seen(self._patiently(quit)).state not in FINAL_JOB_STATES:
            if quit.is_set or time.monotonic() >= until:
                return False
            self._connections.pause(until - time.monotonic(), quit)
        return True

    def _patiently(self, quit: Quit) -> dict[str, object]:
        """The job, though the server may be away for a while or have enough of our questions."""
        away = time.monotonic()
        while True:
            try:
                return self._detail()
            except Unreachable:
                if quit.is_set or time.monotonic() - away > PATIENCE:
                    raise
            except Refused as error:
                if error.status not in (429, 500, 502, 503, 504) or quit.is_set or time.monotonic() - away > PATIENCE:
                    raise
            self._connections.pause(PATIENCE, quit)

    def journal(self) -> list[dict[str, object]]:
        return [{"at": time.time(), **event} for event in _between(None, self._seen(self._detail()))]

    def why(self) -> Why:
        record = self.record()
        words = f"{self.name} is {record['state']}" + (f": {record['reason']}" if record["reason"] else "")
        last = record["lastLines"]
        shown = [words, *([f"last lines of {record['task']}:"] if last else ()), *(f"    {line}" for line in last)]
        return Why(self.name, record["state"], tuple(shown))

    def events(self, quit: Quit) -> Iterator[Mapping[str, Any]]:
        before: JobSeen | None = None
        while not quit.is_set:
            seen = self._seen(self._patiently(quit))
            for event in _between(before, seen):
                yield {"at": time.time(), **event}
            before = seen
            if seen.is_final:
                return
            self._connections.pause(PATIENCE, quit)

    def pieces(self, which: Which, follow: bool, quit: Quit, record: Mapping[str, Any] | None = None) -> Iterator[Piece]:
        if which.tail is not None or which.not_before is not None:
            raise PailotError(f"{self._connections.server} is an OpenPAI: --tail and --since need a Pailot server")
        record = record or self.record()
        if which.role is not None:  # as the user spells it, or as the server does
            known = {role_key(role): role for role in record["taskRoles"]}
            which = which.replace(role=known.get(role_key(which.role), which.role))
        if not (follow and not record["taskRoles"]):  # nothing is known of its tasks before they are placed
            indexes = {role: [task["index"] for task in node["tasks"]] for role, node in record["taskRoles"].items()}
            tasks_in(indexes, record["attempt"], which, self.name)
        return self._pieces(settled(which, record["attempt"], follow), follow, quit)

    def _pieces(self, which: Which, follow: bool, quit: Quit) -> Iterator[Piece]:
        places = LogPlaces(self._wire, self.id)
        offsets: dict[tuple[Where, str], int] = {}
        attempt, last_look = which.since if which.attempt is None else which.attempt, False
        found = which.task_attempt is None
        try:
            while True:
                detail = self._patiently(quit)
                latest = self._seen(detail)
                seen = latest if latest.attempt == attempt else self._seen(self._detail(attempt))
                ended = not follow or latest.is_final or latest.attempt > attempt
                last = not follow or (ended and last_look)
                tasks = [each for each in seen.tasks if which.role in (None, each.role) and which.index in (None, each.index)]
                for task in tasks:
                    for number in attempts_wanted(which, task.task_attempt + 1):
                        found = True
                        where = (task.there, task.index, attempt, number)
                        for stream, data in _new(places, where, which.stream, offsets):
                            yield Piece(task.role, task.index, attempt, number, data, stream=stream)
                if last and not found:
                    raise no_attempt(which, [(task.role, task.index) for task in tasks], self.name)
                if last and which.attempt is None and latest.attempt > attempt:
                    attempt, last_look = attempt + 1, False
                elif last or quit.is_set:
                    return
                elif ended:
                    last_look = True
                    quit.wait(LOG_LAG_SECONDS)
                else:
                    self._connections.pause(PATIENCE, quit)
        finally:
            places.close()


def _new(places: LogPlaces, where: Where, stream: str, offsets: dict[tuple[Where, str], int]) -> Iterator[tuple[str, bytes]]:
    """What is new in the streams that are wanted; an OpenPAI has them one by one, or both together."""
    names = places.names(where)
    for name in ("stdout", "stderr") if stream == "all" and "all" not in names else (stream,):
        for data in places.new(where, name, offsets.get((where, name), 0)):
            offsets[where, name] = offsets.get((where, name), 0) + len(data)
            yield name, data


def _own_code(status: Mapping[str, Any], told: int | None) -> int | None:
    """The exit code of the user's own command; the cluster's runtime has codes of its own."""
    own = ((status.get("appExitMessages") or {}).get("runtime") or {}).get("originUserExitCode")
    return own if isinstance(own, int) and told != 0 else told


def _roles(seen: JobSeen) -> dict[str, object]:
    return {
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
        for role in dict.fromkeys(task.role for task in seen.tasks)
    }


def _between(before: JobSeen | None, seen: JobSeen) -> Iterator[dict[str, object]]:
    """What must have happened between two looks, in the words of our own journal."""
    was = {(task.role, task.index): task for task in before.tasks} if before and before.attempt == seen.attempt else {}
    if before is not None and seen.attempt > before.attempt:
        yield {"event": "job-retry", "attempt": seen.attempt, "reason": before.reason or "the attempt failed"}
    if seen.state == "WAITING" and (before is None or before.state != "WAITING"):
        yield {"event": "waiting", "reason": "the cluster has not started it yet"}
    if seen.state != "WAITING" and (before is None or before.state == "WAITING"):
        yield {"event": "started", "attempt": seen.attempt}
    if seen.state == "STOPPING" and (before is None or before.state != "STOPPING"):
        yield {"event": "stopping"}
    for task in seen.tasks:
        old = was.get((task.role, task.index))
        named = {"role": task.role, "index": task.index}
        if old is not None and task.task_attempt > old.task_attempt:
            yield {"event": "task-retry", **named, "attempt": task.task_attempt, "reason": old.reason or "failed"}
        if task.is_final and (old is None or not old.is_final):
            ended = {"outcome": task.state.lower(), "exitCode": task.exit_code, "reason": task.reason}
            yield {"event": "task-ended", **named, **ended, "attempt": task.task_attempt}
    if seen.is_final:
        yield {"event": "ended", "state": seen.state, "reason": seen.reason}
