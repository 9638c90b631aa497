"""The journal of a run: what happened, one JSON object per line, and the one reader that goes on from where it was.

Any number of processes may append at once. A line that a crash has torn is no entry.
"""

from __future__ import annotations

import os
from time import time

from ..values import Value
from . import careful_files, layout
from .atomic_json import read_lines
from .records import is_exit_class, is_flag, is_lines, is_moment, is_number, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..lifecycle.completion import Verdict
    from .records import Check, TaskRecord

SUBMITTED = "submitted"
WAITING = "waiting"
STARTED = "started"
RESUMED = "resumed"
STATE = "state"
TASK_STARTED = "task-started"
"""Told of a retry, and of a task that began later than its attempt of the job; all others began with that."""
TASK_RETRY = "task-retry"
TASK_HELD = "task-held"
TASK_ENDED = "task-ended"
STOPPING = "stopping"
JOB_RETRY = "job-retry"
PROGRESS = "progress"
INTERRUPT = "interrupt"
"""Told to watchers only: a key or a signal asks to stop."""
ENDED = "ended"
CODE = "code"

_CHECKS: Mapping[str, Check] = {
    "reason": is_text, "class": is_exit_class, "lastLines": is_lines, "role": is_text, "index": is_number, "until": is_moment,
    "seconds": is_moment, "started": is_moment, "ended": is_moment, "attempt": is_number, "exitCode": is_number,
    "taskAttempt": is_number,
}  # fmt: skip
_CHECKS_OF = {PROGRESS: {**_CHECKS, "ended": is_flag}}
"""What moved has ended or not; of tasks this key tells when."""
_NEEDED = {
    TASK_STARTED: ("role", "index", "attempt"),
    TASK_RETRY: ("role", "index", "attempt", "of", "reason"),
    TASK_HELD: ("role", "index", "reason", "until"),
    TASK_ENDED: ("role", "index"),
    JOB_RETRY: ("reason", "why"),
    WAITING: ("reason",),
}


class Event(Value):
    """Something that happened to a run. What it says beside its moment and kind is kept as it was written."""

    at: float
    kind: str
    details: Mapping[str, Any] = {}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Event | None:
        """The event in a line of the journal; None if it lacks something that events of its kind need.

        >>> Event.from_json({"at": 1.5, "event": "waiting", "reason": "GPUs are taken", "later": 1})
        Event(at=1.5, kind='waiting', details={'reason': 'GPUs are taken', 'later': 1})
        """
        details = dict(entry)
        at, kind = details.pop("at", None), details.pop("event", None)
        if not is_moment(at) or not isinstance(kind, str):
            return None
        for key, fits in _CHECKS_OF.get(kind, _CHECKS).items():
            value = details.get(key)
            if value is not None and not fits(value):
                del details[key]
        for key in _NEEDED.get(kind, ()):
            if key not in details:
                return None
        return cls(at, kind, details)

    def to_json(self) -> dict[str, object]:
        return {"at": self.at, "event": self.kind, **self.details}

    def masked(self, mask: Callable[[str], str]) -> Event:
        """Return it with its only free text masked; logs are masked where they are written."""
        reason = self.details.get("reason")
        return self.replace(details={**self.details, "reason": mask(reason)}) if isinstance(reason, str) else self

    @property
    def task(self) -> tuple[str, int] | None:
        """Role and index of the task that it happened to, if it was one."""
        role, index = self.details.get("role"), self.details.get("index")
        return None if role is None or index is None else (role, index)

    @property
    def role(self) -> str | None:
        return self.details.get("role")

    @property
    def index(self) -> int | None:
        return self.details.get("index")

    @property
    def named(self) -> str:
        """The task that it happened to, as ROLE:INDEX."""
        return f"{self.details.get('role')}:{self.details.get('index')}"

    @property
    def attempt(self) -> int:
        """The attempt of the job; in a retry of a task that of the task."""
        return int(self.details.get("attempt") or 0)

    @property
    def reason(self) -> str:
        return str(self.details.get("reason") or "")

    @property
    def reason_if_any(self) -> str | None:
        return self.details.get("reason")

    @property
    def notes(self) -> Sequence[str]:
        """What the user was to be told when the tasks were started."""
        return self.details.get("notes") or ()

    @property
    def times(self) -> int:
        """How often a stop was asked for."""
        return int(self.details.get("times") or 0)

    @property
    def state(self) -> str:
        return str(self.details.get("state") or "")

    @property
    def why(self) -> str:
        return str(self.details.get("why") or "")

    @property
    def seconds(self) -> float:
        """The pause before a retry."""
        return float(self.details.get("seconds") or 0)

    @property
    def retries_allowed(self) -> int:
        return int(self.details["of"])

    @property
    def until(self) -> float:
        """Until when a failed task is kept."""
        return float(self.details["until"])

    @property
    def outcome(self) -> str:
        return str(self.details.get("outcome") or "")

    @property
    def exit_code(self) -> int | None:
        return self.details.get("exitCode")

    @property
    def signal(self) -> int | None:
        return self.details.get("signal")

    @property
    def exit_class(self) -> Mapping[str, Any] | None:
        return self.details.get("class")

    @property
    def last_lines(self) -> list[str]:
        return self.details.get("lastLines") or []

    @property
    def task_attempt(self) -> int | None:
        """The attempt of the task that has ended; runs of earlier versions do not say it."""
        return self.details.get("taskAttempt")

    @property
    def started(self) -> float | None:
        """When the attempt of the task began that has ended."""
        return self.details.get("started")

    @property
    def ended(self) -> float | None:
        return self.details.get("ended")


# The events that we write. Each says what it has to be made of; no other module spells a key of the journal.


def submitted(name: str, user: str) -> Event:
    return Event(time(), SUBMITTED, {"name": name, "user": user})


def waiting(reason: str) -> Event:
    """A run waits for something, or its user should know something."""
    return Event(time(), WAITING, {"reason": reason})


def started(attempt: int, tasks: int, notes: Sequence[str] = (), *, resumed: bool = False) -> Event:
    """The tasks of an attempt were started, or are followed again; `notes` are for the user."""
    details: dict[str, object] = {"attempt": attempt, "tasks": tasks}
    return Event(time(), RESUMED if resumed else STARTED, {**details, "notes": list(notes)} if notes else details)


def state(name: str, reason: str | None) -> Event:
    """What the server of a run says of its state."""
    return Event(time(), STATE, {"state": name, "reason": reason})


def stopping(why: str, *, now: bool) -> Event:
    return Event(time(), STOPPING, {"why": why, "now": now})


def task_started(role: str, index: int, attempt: int) -> Event:
    """An attempt of a task has begun."""
    return Event(time(), TASK_STARTED, {"role": role, "index": index, "attempt": attempt})


def task_retry(told: Mapping[str, Any]) -> Event:
    """A task is tried again, as its shim told it."""
    return Event(time(), TASK_RETRY, {key: value for key, value in told.items() if key != "event"})


def task_held(told: Mapping[str, Any]) -> Event:
    """A failed task is kept for inspection, as its shim told it."""
    return Event(time(), TASK_HELD, {key: value for key, value in told.items() if key != "event"})


def task_ended(role: str, index: int, attempt: int, end: TaskRecord | None) -> Event:
    """A task has ended in an attempt of the job; how, if that is known."""
    return Event(time(), TASK_ENDED, {"role": role, "index": index, "attempt": attempt, **_details_of_end(end)})


def job_retry(attempt: int, reason: str, why: str, seconds: float = 0, decided: Verdict | None = None) -> Event:
    """A job is tried again with an attempt, after a pause; `decided` names the task that ended the attempt before."""
    details: dict[str, object] = {"attempt": attempt, "seconds": seconds, "reason": reason, "why": why}
    if decided is not None:
        details |= {"role": decided.role, "index": decided.index, "exitCode": decided.exit_code}
    return Event(time(), JOB_RETRY, details)


def progress(moved: Mapping[str, Any]) -> Event:
    """How far an input or an output is; `moved` is what `Progress` writes of itself."""
    return Event(time(), PROGRESS, moved)


def interrupted(times: int) -> Event:
    return Event(time(), INTERRUPT, {"times": times})


def code_packed(sha256: str, size: int, *, is_new: bool) -> Event:
    """The code of a run was packed into an archive, or was found packed."""
    return Event(time(), CODE, {"sha256": sha256, "size": size, "packed": is_new})


def ended(state: str, reason: str) -> Event:
    return Event(time(), ENDED, {"state": state, "reason": reason})


def _details_of_end(end: TaskRecord | None) -> dict[str, object]:
    """What the journal says of the end of a task, beside the task itself."""
    if end is None:
        return {}
    told: dict[str, object] = {
        "outcome": end.outcome, "exitCode": end.exit_code, "signal": end.signal, "reason": end.reason,
        "class": end.exit_class, "outOfMemory": end.out_of_memory, "lastLines": list(end.last_lines), "started": end.started,
        "ended": end.ended,
    }  # fmt: skip
    return told if end.attempt is None else {**told, "taskAttempt": end.attempt}


def ended_try(end: TaskRecord) -> dict[str, object]:
    """What the journal says, in the retry that follows, of the attempt of a task that has failed."""
    return {"exitCode": end.exit_code, "signal": end.signal, "started": end.started, "ended": end.ended}


def read(run: str) -> list[Event]:
    """All events of the run in a folder; of a very long journal the last."""
    return [event for entry in read_lines(f"{run}/{layout.JOURNAL}") if (event := Event.from_json(entry)) is not None]


def end_of(events: list[Event], role: object, index: object) -> Event | None:
    """The last end of a task, if it has ended."""
    ends = (event for event in reversed(events) if event.kind == TASK_ENDED and event.task == (role, index))
    return next(ends, None)


class Tail:
    """A journal, read on from an offset: that of a run, or any other file of JSON lines.

    The file is opened anew for each look, so that a network file system shows what another machine has appended.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        """How far it was read: where the line after the last whole one begins."""

    @classmethod
    def of_run(cls, run: str, offset: int = 0) -> Tail:
        """The journal of a run. An offset beyond its end was another run's: then it is read from its beginning."""
        found = cls(f"{run}/{layout.JOURNAL}", offset)
        try:
            if offset > os.stat(found.path).st_size:
                found.offset = 0
        except OSError:
            found.offset = 0
        return found

    def entries(self) -> list[tuple[dict[str, object], int]]:
        """The new lines that are whole, each with the offset after it."""
        data = self._new_bytes()
        whole = data.rfind(b"\n") + 1
        if not whole and len(data) == careful_files.LARGEST_RECORD_BYTES:
            self.offset += len(data)  # no line of ours is so long
        import json

        found = []
        for line in data[:whole].splitlines(keepends=True):
            self.offset += len(line)
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue  # torn by a crash
            if isinstance(entry, dict):
                found.append((entry, self.offset))
        return found

    def events(self) -> list[Event]:
        """The new events."""
        return [event for entry, _ in self.entries() if (event := Event.from_json(entry)) is not None]

    def _new_bytes(self) -> bytes:
        try:
            descriptor = careful_files.open_regular(self.path)
        except OSError:
            return b""
        try:
            pieces: list[bytes] = []
            have = 0
            while have < careful_files.LARGEST_RECORD_BYTES:
                piece = os.pread(descriptor, min(1 << 20, careful_files.LARGEST_RECORD_BYTES - have), self.offset + have)
                if not piece:
                    break
                pieces.append(piece)
                have += len(piece)
            return b"".join(pieces)
        finally:
            os.close(descriptor)
