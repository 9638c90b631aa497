"""What is known of a job's attempts and tasks, from its journal: one file, however many tasks there are."""

from __future__ import annotations

import json
import os

from ..lifecycle.states import FAILED, FINAL_JOB_STATES, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING
from ..runfolder import careful_files, layout
from ..runfolder.atomic_json import read_record
from ..runfolder.record_shapes import sound
from ..userruns.run_folder import JobFolder
from .errors import NoSuchJob
from .models import JobDetail, TaskView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..store.server import JobRecord

_OUTCOMES = {"succeeded": SUCCEEDED, "failed": FAILED, "stopped": STOPPED, "lost": FAILED}


class _Attempt:
    """What the journal tells of one attempt."""

    def __init__(self, created: float | None) -> None:
        self.created = created
        self.started: float | None = None
        self.ended: float | None = None
        self.stopping = False
        self.tasks: dict[tuple[str, int], Mapping[str, Any]] = {}
        self.retries: dict[tuple[str, int], int] = {}
        self.held: set[tuple[str, int]] = set()
        self.end: Mapping[str, Any] = {}
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
    verdict = (folder.verdict() or {}) if is_last else {}
    end = verdict or shown.end
    state = record.state if is_last else _state_of(end)
    placed = (
        sound(layout.PLACEMENT, read_record(os.path.join(folder.attempt(number), layout.PLACEMENT))) or {} if number >= 0 else {}
    )
    roles = {
        name: tuple(_task(shown, state, placed, name, index) for index in range(role["instances"]))
        for name, role in plan.get("taskRoles", {}).items()
    }
    trigger = (end.get("role"), end.get("index"))
    decided = shown.tasks.get((str(trigger[0]), trigger[1])) if trigger[0] is not None and trigger[1] is not None else None
    ended = (record.ended if is_last else None) or shown.ended
    return JobDetail(
        record=record,
        attempt=number,
        attempts=len(found),
        attempt_state=state,
        attempt_created=shown.created,
        attempt_started=shown.started,
        attempt_ended=ended,
        reason=end.get("reason") or (record.reason if is_last else None) or None,
        exit_code=end.get("exitCode") if end else record.exit_code if is_last else None,
        exit_class=_class_of(state, decided),
        trigger_role=trigger[0],
        trigger_index=trigger[1],
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
        end = sound(layout.EXIT, read_record(os.path.join(layout.task_attempt_folder(folder, number), layout.EXIT)))
        if end is None:
            views.append(task.replace(attempt=number) if number == task.attempt else task.replace(attempt=number, state=FAILED))
        else:
            views.append(_ended(task.replace(attempt=number), end))
    return views


def journal(record: JobRecord) -> list[dict[str, Any]]:
    """What happened to a job; one that was never started has a short story."""
    events = JobFolder(record.folder).events()
    if not events or events[0]["event"] != "submitted":
        events.insert(0, {"at": record.submitted, "event": "submitted", "name": record.name, "user": record.user})
    if record.ended is not None and not any(event["event"] == "ended" for event in events):
        events.append({"at": record.ended, "event": "ended", "state": record.state, "reason": record.reason})
    return events


def new_lines(folder: str, offset: int) -> list[tuple[dict[str, Any], int]]:
    """The journal's entries from an offset on, each with the offset after it: who has heard it goes on from there."""
    try:
        descriptor = careful_files.open_regular(os.path.join(folder, layout.JOURNAL))
        try:
            data = os.pread(descriptor, careful_files.LARGEST_RECORD_BYTES, offset)
        finally:
            os.close(descriptor)
    except OSError:
        return []
    entries = []
    for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
        offset += len(line)
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None  # torn by a crash
        if isinstance(entry, dict):
            entries.append((entry, offset))
    return entries


def known_offset(folder: str, offset: int) -> int:
    """The offset, if the journal reaches so far; else its beginning: it was another job's, and all of this one is new."""
    try:
        return offset if offset <= os.stat(os.path.join(folder, layout.JOURNAL)).st_size else 0
    except OSError:
        return 0


def _attempts(record: JobRecord, folder: JobFolder) -> dict[int, _Attempt]:
    found: dict[int, _Attempt] = {}
    current: _Attempt | None = None
    created: float | None = record.submitted
    for event in folder.events():
        kind = event["event"]
        if kind == "started":
            current = found[event["attempt"]] = _Attempt(created)
            current.started = event["at"]
        elif kind == "job-retry":
            created = event["at"]
            if current is not None:
                current.ended, current.end = event["at"], event
                current.delay = event.get("seconds")
        elif current is None:
            continue
        elif kind == "task-ended":
            current.tasks[event["role"], event["index"]] = event
        elif kind == "task-retry":
            current.retries[event["role"], event["index"]] = event["attempt"]
        elif kind == "task-held":
            current.held.add((event["role"], event["index"]))
        elif kind == "stopping":
            current.stopping = True
        elif kind == "ended":
            current.ended = event["at"]
    if not found and folder.attempts():
        found[0] = _Attempt(record.submitted)  # begun, and not started: what it needed could not be had
    return found


def _task(shown: _Attempt, state: str, placed: Mapping[str, Any], role: str, index: int) -> TaskView:
    key = (role, index)
    ports = {label: tuple(numbers) for label, numbers in placed.get("ports", {}).get(f"{role}:{index}", {}).items()}
    host = _host(placed, role, index)
    end = shown.tasks.get(key)
    if end is not None:  # made at once: of a job's thousands of tasks most have ended
        return TaskView(
            role,
            index,
            _OUTCOMES.get(end.get("outcome", ""), FAILED),
            end.get("taskAttempt", shown.retries.get(key, 0)),
            shown.created,
            end.get("started") or shown.started,
            end.get("ended") or end.get("at"),
            end.get("exitCode"),
            end.get("signal"),
            end.get("reason"),
            end.get("class"),
            host,
            ports,
            tuple(end.get("lastLines") or ()),
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


def _host(placed: Mapping[str, Any], role: str, index: int) -> str | None:
    """The address of a task: each its own where the engine uses several machines."""
    own = placed.get("hosts")
    found: str | None = (own.get(f"{role}:{index}") if own else None) or placed.get("host")
    return found


def _node(host: str | None) -> str | None:
    return os.uname().nodename if host == "127.0.0.1" else host


def _ended(view: TaskView, end: Mapping[str, Any]) -> TaskView:
    number = end.get("taskAttempt", end.get("attempt") if "phase" in end else None)  # a record of a task, or of the journal
    return view.replace(
        state=_OUTCOMES.get(end.get("outcome", ""), FAILED),
        attempt=view.attempt if number is None else number,
        started=end.get("started") or view.started,
        ended=end.get("ended") or end.get("at"),
        exit_code=end.get("exitCode"),
        signal=end.get("signal"),
        reason=end.get("reason"),
        exit_class=end.get("class"),
        last_lines=tuple(end.get("lastLines") or ()),
        held=False,
    )


def _state_of(end: Mapping[str, Any]) -> str:
    """An attempt that was followed by another one has failed, or made room."""
    return STOPPED if "made room" in str(end.get("reason", "")) else FAILED


def _class_of(state: str, decided: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if state == STOPPED:
        from ..lifecycle.exit_table import row

        known = row(-210)
        return {"code": known.code, "phrase": known.phrase, "type": known.type, "reaction": known.reaction}
    if decided is not None and decided.get("class"):
        found: Mapping[str, Any] = decided["class"]
        return found
    if state == SUCCEEDED:
        return {"code": 0, "phrase": "Succeeded", "type": "USER_SUCCESS", "reaction": "NEVER_RETRY"}
    return None


def brief(record: JobRecord) -> dict[str, Any]:
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


def names(records: Iterable[JobRecord]) -> list[str]:
    return [f"{record.user}~{record.name}" for record in records]
