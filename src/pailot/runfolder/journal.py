"""The journal of a run: what happened, one JSON object per line, and the one reader that goes on from where it was.

Any number of processes may append at once. A line that a crash has torn is no entry.
"""

from __future__ import annotations

import os

from ..values import Value
from . import careful_files, layout
from .atomic_json import read_lines
from .records import is_exit_class, is_lines, is_moment, is_number, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .records import Check, TaskRecord

SUBMITTED = "submitted"
WAITING = "waiting"
STARTED = "started"
RESUMED = "resumed"
STATE = "state"
TASK_RETRY = "task-retry"
TASK_HELD = "task-held"
TASK_ENDED = "task-ended"
STOPPING = "stopping"
JOB_RETRY = "job-retry"
PROGRESS = "progress"
INTERRUPT = "interrupt"
"""Told to watchers only: a key or a signal asks to stop."""
ENDED = "ended"

_CHECKS: Mapping[str, Check] = {
    "reason": is_text, "class": is_exit_class, "lastLines": is_lines, "role": is_text, "index": is_number, "until": is_moment,
    "seconds": is_moment,
}  # fmt: skip
_NEEDED = {
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
        for key, fits in _CHECKS.items():
            value = details.get(key)
            if value is not None and not fits(value):
                del details[key]
        for key in _NEEDED.get(kind, ()):
            if key not in details:
                return None
        return cls(at, kind, details)

    def to_json(self) -> dict[str, Any]:
        return {"at": self.at, "event": self.kind, **self.details}

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


def details_of_end(end: TaskRecord | None) -> dict[str, Any]:
    """What the journal says of the end of a task, beside the task itself."""
    if end is None:
        return {}
    told = {
        "outcome": end.outcome, "exitCode": end.exit_code, "signal": end.signal, "reason": end.reason,
        "class": end.exit_class, "outOfMemory": end.out_of_memory, "lastLines": list(end.last_lines), "started": end.started,
        "ended": end.ended,
    }  # fmt: skip
    return told if end.attempt is None else {**told, "taskAttempt": end.attempt}


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

    def entries(self) -> list[tuple[dict[str, Any], int]]:
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
