"""What is known of a job's attempts and tasks, from its journal: one file, however many tasks there are."""

from __future__ import annotations

import os

from ..lifecycle.exit_table import row
from ..lifecycle.states import FAILED, FINAL_JOB_STATES, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING
from ..runfolder import journal
from ..runfolder.records import Placement, TaskRecord, VerdictRecord
from ..userruns.run_folder import JobFolder
from .errors import NoSuchJob
from .models import JobDetail, TaskView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..runfolder.journal import Event
    from ..store.server import JobRecord

_OUTCOMES = {"succeeded": SUCCEEDED, "failed": FAILED, "stopped": STOPPED, "lost": FAILED}


class _Attempt:
    """What the journal tells of one attempt."""

    def __init__(self, created: float | None) -> None:
        self.created = created
        self.started: float | None = None
        self.ended: float | None = None
        self.stopping = False
        self.tasks: dict[tuple[str, int], Event] = {}
        self.retries: dict[tuple[str, int], int] = {}
        self.held: set[tuple[str, int]] = set()
        self.end: Event | None = None
        self.delay: float | None = None


def detail(record: JobRecord, plan: Mapping[str, Any], attempt: int | None) -> JobDetail:
    """A job with one of its attempts; raises NoSuchJob for one that never began."""
    folder = JobFolder(record.folder)
    found = _attempts(record, folder)
    last = max(found, default=-1)
    number = last if attempt is None else attempt
    if attempt is not None and attempt not in found and not (attempt == 0 and not found):
        raise NoSuchJob(f"job {record.user}~{record.name} has no attempt {attempt}")
    shown = found.get(number) or _Attempt(record.submitted)
    is_last = number == last or not found
    verdict = folder.verdict() if is_last else None
    end = verdict or shown.end
    state = record.state if is_last else _state_of(end)
    placed = Placement.of(folder.attempt(number)) if number >= 0 else Placement()
    roles = {
        name: tuple(_task(shown, state, placed, name, each) for each in range(node["instances"]))
        for name, node in plan.get("taskRoles", {}).items()
    }
    role, index = (end.role, end.index) if end else (None, None)
    decided = shown.tasks.get((role, index)) if role is not None and index is not None else None
    ended = (record.ended if is_last else None) or shown.ended
    return JobDetail(
        record=record,
        attempt=number,
        attempts=len(found),
        attempt_state=state,
        attempt_created=shown.created,
        attempt_started=shown.started,
        attempt_ended=ended,
        reason=(end.reason if end else None) or (record.reason if is_last else None) or None,
        exit_code=end.exit_code if end else record.exit_code if is_last else None,
        exit_class=_class_of(state, decided),
        trigger_role=role,
        trigger_index=index,
        retries_user=record.user_retries,
        retries_platform=record.platform_retries,
        retry_delay=shown.delay if record.state == WAITING and found else None,
        roles=roles,
    )


def task_attempts(record: JobRecord, plan: Mapping[str, Any], attempt: int | None, role: str, index: int) -> list[TaskView]:
    """A task as `detail` shows it, then each attempt of it, the newest first."""
    shown = detail(record, plan, attempt)
    tasks = shown.roles.get(role, ())
    if not 0 <= index < len(tasks):
        raise NoSuchJob(f"job {record.user}~{record.name} has no task {role}:{index}")
    task = tasks[index]
    views = [task]
    folder = JobFolder(record.folder).task(max(shown.attempt, 0), role, index)
    for number in range(task.attempt, -1, -1):
        end = TaskRecord.of_attempt(folder, number)
        if end is None:
            views.append(task.replace(attempt=number) if number == task.attempt else task.replace(attempt=number, state=FAILED))
        else:
            views.append(_ended(task.replace(attempt=number), end))
    return views


def events(record: JobRecord) -> list[Event]:
    """What happened to a job; one that was never started has a short story."""
    found = JobFolder(record.folder).events()
    if not found or found[0].kind != journal.SUBMITTED:
        found.insert(0, journal.submitted(record.name, record.user).replace(at=record.submitted))
    if record.ended is not None and not any(event.kind == journal.ENDED for event in found):
        found.append(journal.ended(record.state, record.reason).replace(at=record.ended))
    return found


def _attempts(record: JobRecord, folder: JobFolder) -> dict[int, _Attempt]:
    found: dict[int, _Attempt] = {}
    current: _Attempt | None = None
    created: float | None = record.submitted
    for event in folder.events():
        kind, task = event.kind, event.task
        if kind == journal.STARTED:
            current = found[event.attempt] = _Attempt(created)
            current.started = event.at
        elif kind == journal.JOB_RETRY:
            created = event.at
            if current is not None:
                current.ended, current.end = event.at, event
                current.delay = event.seconds
        elif current is None:
            continue
        elif kind == journal.TASK_ENDED and task is not None:
            current.tasks[task] = event
        elif kind == journal.TASK_RETRY and task is not None:
            current.retries[task] = event.attempt
        elif kind == journal.TASK_HELD and task is not None:
            current.held.add(task)
        elif kind == journal.STOPPING:
            current.stopping = True
        elif kind == journal.ENDED:
            current.ended = event.at
    if not found and folder.attempts():
        found[0] = _Attempt(record.submitted)  # begun, and not started: what it needed could not be had
    return found


def _task(shown: _Attempt, state: str, placed: Placement, role: str, index: int) -> TaskView:
    key = (role, index)
    ports = {label: tuple(numbers) for label, numbers in placed.ports_of(role, index).items()}
    host = placed.host_of(role, index)
    end = shown.tasks.get(key)
    if end is not None:  # made at once: of a job's thousands of tasks most have ended
        return TaskView(
            role,
            index,
            _OUTCOMES.get(end.outcome, FAILED),
            shown.retries.get(key, 0) if end.task_attempt is None else end.task_attempt,
            shown.created,
            end.started or shown.started,
            end.ended or end.at,
            end.exit_code,
            end.signal,
            end.reason_if_any,
            end.exit_class,
            host,
            ports,
            tuple(end.last_lines),
            node=_node(host),
        )
    view = TaskView(
        role,
        index,
        WAITING,
        attempt=shown.retries.get(key, 0),
        created=shown.created,
        started=shown.started,
        host=host,
        ports=ports,
        held=key in shown.held,
        node=_node(host),
    )
    if shown.ended is not None or state in FINAL_JOB_STATES:
        return view.replace(state=STOPPED, ended=shown.ended)
    if shown.started is None:
        return view
    return view.replace(state=STOPPING if shown.stopping else RUNNING)


def _node(host: str | None) -> str | None:
    return os.uname().nodename if host == "127.0.0.1" else host


def _ended(view: TaskView, end: TaskRecord) -> TaskView:
    return view.replace(
        state=_OUTCOMES.get(end.outcome, FAILED),
        attempt=view.attempt if end.attempt is None else end.attempt,
        started=end.started or view.started,
        ended=end.ended,
        exit_code=end.exit_code,
        signal=end.signal,
        reason=end.reason,
        exit_class=end.exit_class,
        last_lines=tuple(end.last_lines),
        held=False,
    )


def _state_of(end: Event | VerdictRecord | None) -> str:
    """An attempt that was followed by another one has failed, or made room."""
    return STOPPED if end is not None and "made room" in end.reason else FAILED


def _class_of(state: str, decided: Event | None) -> Mapping[str, Any] | None:
    if state == STOPPED:
        known = row(-210)
        return {"code": known.code, "phrase": known.phrase, "type": known.type, "reaction": known.reaction}
    if decided is not None and decided.exit_class:
        return decided.exit_class
    if state == SUCCEEDED:
        return {"code": 0, "phrase": "Succeeded", "type": "USER_SUCCESS", "reaction": "NEVER_RETRY"}
    return None


def brief(record: JobRecord) -> dict[str, object]:
    """A job in live events."""
    return {
        "name": record.name,
        "user": record.user,
        "state": record.state,
        "reason": record.reason or None,
        "exitCode": record.exit_code,
        "attempt": max(0, record.attempts - 1),
        "retries": record.retries,
        "virtualCluster": record.vc,
        "submitted": record.submitted,
        "started": record.started,
        "ended": record.ended,
    }


def change(record: JobRecord, before: str | None) -> dict[str, object]:
    """A job whose state has changed, with the state before; None for a new one."""
    return {**brief(record), "before": before}


def names(records: Iterable[JobRecord]) -> list[str]:
    return [f"{record.user}~{record.name}" for record in records]
