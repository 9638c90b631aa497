"""Every attempt of a job and of each of its tasks, with its times and its end, read out of the job's journal."""

from __future__ import annotations

from ..lifecycle.states import FAILED, FINAL_JOB_STATES, RUNNING, STOPPED, SUCCEEDED, WAITING
from ..runfolder import journal
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..runfolder.journal import Event
    from ..store.server import JobRecord

_OUTCOMES = {"succeeded": SUCCEEDED, "failed": FAILED, "stopped": STOPPED, "lost": FAILED}


class Span(Value):
    """An attempt of a job, or of a task of it. Times are seconds since 1970, or None."""

    job_attempt: int
    state: str
    created: float | None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    reason: str | None = None
    role: str | None = None
    index: int | None = None
    attempt: int = 0
    """Of the task."""


class Timeline(Value):
    """All spans of a job; those of tasks in the order in which they began."""

    attempts: tuple[Span, ...]
    tasks: tuple[Span, ...]


def timeline(record: JobRecord, instances: Mapping[str, int], events: Sequence[Event]) -> Timeline:
    """The timeline of a job; `instances` is the number of tasks of each role.

    A retry of a task that has not begun has no start. An attempt of a task that a crash has left without an end ends with the
    attempt of the job.
    """
    return _Reader(record, instances).read(events)


class _Reader:
    """Goes through the journal once; `tasks` holds the open span of each task of the attempt."""

    def __init__(self, record: JobRecord, instances: Mapping[str, int]) -> None:
        self.record, self.instances = record, instances
        self.jobs: list[Span] = []
        self.done: list[Span] = []
        self.tasks: dict[tuple[str, int], Span] = {}
        self.created: float | None = record.submitted

    def read(self, events: Sequence[Event]) -> Timeline:
        for event in events:
            task = event.task
            if event.kind == journal.STARTED:
                self._begin(event)
            elif event.kind == journal.JOB_RETRY:
                self._end_attempt(event.at, FAILED, event.reason, event.exit_code)
                self.created = event.at
            elif task in self.tasks:
                self._of_task(event, task)
        record = self.record
        if record.state in FINAL_JOB_STATES:
            self._end_attempt(record.ended, record.state, record.reason or None, record.exit_code)
        elif not self.jobs or self.jobs[-1].ended is not None:
            self.jobs.append(Span(len(self.jobs), WAITING, self.created))
        return Timeline(tuple(self.jobs), (*self.done, *self.tasks.values()))

    def _begin(self, event: Event) -> None:
        self.jobs.append(Span(event.attempt, RUNNING, self.created, event.at))
        self.tasks = {
            (role, index): Span(event.attempt, RUNNING, self.created, event.at, role=role, index=index)
            for role, count in self.instances.items()
            for index in range(count)
        }

    def _of_task(self, event: Event, task: tuple[str, int]) -> None:
        span = self.tasks[task]
        if event.kind == journal.TASK_STARTED:
            self.tasks[task] = span.replace(started=event.at, state=RUNNING)
        elif event.kind == journal.TASK_RETRY:
            ended = event.ended or event.at
            self.done.append(self._ended(span, event, FAILED, ended))
            self.tasks[task] = span.replace(attempt=event.attempt, state=WAITING, created=ended, started=None)
        elif event.kind == journal.TASK_ENDED:
            self.tasks[task] = self._ended(span, event, _OUTCOMES.get(event.outcome, FAILED), event.ended or event.at)

    def _ended(self, span: Span, event: Event, state: str, ended: float) -> Span:
        reason = event.reason or None
        return span.replace(
            state=state, started=event.started or span.started, ended=ended, exit_code=event.exit_code, reason=reason
        )

    def _end_attempt(self, ended: float | None, state: str, reason: str | None, exit_code: int | None) -> None:
        """The attempt of the job is over, and with it all of its tasks."""
        for span in self.tasks.values():
            self.done.append(span if span.ended is not None else span.replace(state=STOPPED, ended=ended))
        self.tasks = {}
        if self.jobs and self.jobs[-1].ended is None:
            self.jobs[-1] = self.jobs[-1].replace(state=state, ended=ended, reason=reason, exit_code=exit_code)
        elif not self.jobs:
            self.jobs.append(Span(0, state, self.created, None, ended, exit_code, reason))
