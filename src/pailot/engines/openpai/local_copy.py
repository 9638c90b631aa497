"""The local copy of a job that runs elsewhere: its logs, byte for byte and each byte once, and the records of its tasks."""

from __future__ import annotations

import os

from ...runfolder import layout
from ...runfolder.atomic_json import write_record
from ...runfolder.engine_records import FetchedLogsRecord
from ...runfolder.layout import STREAMS
from ...runfolder.logs import after_gap
from ...runfolder.masking import Masker
from ...runfolder.records import Placement, TaskRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .job_status import JobSeen, TaskSeen

LAST_LINES = 10
_TAIL = 16_384


class LocalCopy:
    """The attempts of a run, each in a folder of its own as those of a local run; `first` is the folder of attempt 0."""

    def __init__(self, first: str, hidden: Iterable[str] = ()) -> None:
        self.first = first
        self.masker = Masker(hidden)
        self._logs: dict[tuple[int, str, int, int], TaskLogs] = {}

    def attempt(self, number: int) -> str:
        return os.path.join(os.path.dirname(self.first), str(number))

    def task(self, attempt: int, role: str, index: int) -> str:
        return layout.task_folder(self.attempt(attempt), role, index)

    def logs(self, attempt: int, role: str, index: int, task_attempt: int) -> TaskLogs:
        key = (attempt, role, index, task_attempt)
        if key not in self._logs:
            folder = layout.task_attempt_folder(self.task(attempt, role, index), task_attempt)
            os.makedirs(folder, exist_ok=True)
            self._logs[key] = TaskLogs(folder, self.masker)
        return self._logs[key]

    def place(self, seen: JobSeen) -> None:
        """Where the tasks are: hosts and ports."""
        hosts = [task.host for task in seen.tasks if task.host]
        ports = {f"{task.role}:{task.index}": {label: list(each) for label, each in task.ports.items()} for task in seen.tasks}
        placement = Placement(host=hosts[0] if hosts else None, ports=ports)
        folder = self.attempt(seen.attempt)
        os.makedirs(os.path.join(folder, layout.TASKS), exist_ok=True)
        path = os.path.join(folder, layout.PLACEMENT)
        if Placement.read(path) != placement:
            write_record(path, placement.to_json(), durable=False)

    def finish(self, task: TaskSeen, exact: Mapping[str, Any]) -> TaskRecord:
        """The final record of a task, as a shim would have written it; `exact` is what a Pailot knows better than OpenPAI."""
        record = TaskRecord(
            outcome=task.state.lower(),
            exit_code=exact.get("exitCode", task.exit_code),
            signal=exact.get("signal"),
            reason=exact.get("reason") or task.reason or f"is {task.state} on the server",
            attempt=task.task_attempt,
            started=task.started,
            ended=task.ended,
            exit_class=exact.get("class", task.exit_class),
            last_lines=self.logs(task.job_attempt, task.role, task.index, task.task_attempt).last_lines(),
        )
        path = os.path.join(self.task(task.job_attempt, task.role, task.index), layout.FINAL)
        write_record(path, record.to_json(), durable=False)
        return record


class TaskLogs:
    """The logs of one attempt of a task.

    `remote.json` beside them says how many bytes of each were taken from the server, and how long our file was then. It is
    written after the file; what a crash left beyond it is cut off and fetched again. So nothing is lost and nothing doubled,
    though masking changes lengths.
    """

    def __init__(self, folder: str, masker: Masker) -> None:
        self.folder = folder
        self._path = os.path.join(folder, layout.REMOTE)
        kept = FetchedLogsRecord.read(self._path) or FetchedLogsRecord()
        self._maskers = {stream: masker.twin() for stream in STREAMS}
        self._taken = {stream: (taken[0], taken[1]) for stream, taken in kept.to_json().items()}
        self._read: dict[str, int] = {stream: self._taken[stream][0] for stream in STREAMS}
        self._opened = False
        self.complete = False
        """There will be no more."""
        if os.path.isdir(folder):
            self._open()

    def offset(self, stream: str) -> int:
        """Where to go on reading the server's log."""
        return self._read[stream]

    def add(self, stream: str, data: bytes, *, also_all: bool = False, missing: int = 0) -> bool:
        """Keep the next bytes; `also_all`: the server has no log of both streams together, so ours is made of them.

        `missing` bytes before them were rotated away on the server: a line says so in their place.
        """
        if not data:
            return False
        self._open()
        self._read[stream] += missing + len(data)
        if missing:
            data, left_out = after_gap(data, line_open=True)
            words = f"\npailot: {missing + left_out} bytes were rotated away on the server before they could be fetched"
            data = words.encode() + data
        masked = self._maskers[stream].feed(data)
        self._append(stream, masked, also_all)
        return bool(masked)

    def flush(self, *, also_all: bool = False) -> bool:
        """There will be no more: what looked like the beginning of a secret was none."""
        told = False
        for stream in STREAMS:
            rest = self._maskers[stream].flush()
            if rest:
                self._open()
                self._append(stream, rest, also_all)
                told = True
        return told

    def last_lines(self) -> list[str]:
        try:
            with open(os.path.join(self.folder, layout.ALL), "rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - _TAIL))
                return stream.read().decode(errors="replace").splitlines()[-LAST_LINES:]
        except OSError:
            return []

    def _append(self, stream: str, masked: bytes, also_all: bool) -> None:
        for name in {stream, layout.ALL} if also_all else {stream}:
            with open(os.path.join(self.folder, name), "ab", opener=_private) as file:
                file.write(masked)
        self._keep({stream, layout.ALL} if also_all else {stream}, stream)

    def _keep(self, written: set[str], read: str) -> None:
        held = self._maskers[read].held
        if held is None:
            return  # half of a secret has gone out as its mask: the next piece will be a better place
        for name in written:
            size = os.path.getsize(os.path.join(self.folder, name))
            self._taken[name] = (self._read[name] - held if name == read else self._taken[name][0], size)
        kept = FetchedLogsRecord(**{name: list(each) for name, each in self._taken.items()})
        write_record(self._path, kept.to_json(), durable=False)

    def _open(self) -> None:
        """Once: the files as the record says they are."""
        if self._opened:
            return
        self._opened = True
        os.makedirs(self.folder, exist_ok=True)
        for stream in STREAMS:
            with open(os.path.join(self.folder, stream), "ab", opener=_private) as file:
                file.truncate(self._taken[stream][1])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
