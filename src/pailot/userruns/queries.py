"""Looking at runs, from any process, after any crash: find, describe, wait, recover."""

from __future__ import annotations

import os
import signal
import sys
import time

from ..errors import NoSuchRun, suggestion
from ..lifecycle.completion import waits_to_end
from ..lifecycle.states import RUNNING
from ..lifecycle.waits import capped
from ..runfolder import journal, layout
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.failed_command import failed_command
from ..runfolder.records import Placement, TaskRecord
from ..settings import Settings
from ..store.index import Index
from ..store.network_filesystems import index_path
from . import reattach, task_usage
from .run_folder import JobFolder
from .settle import completion_rules, final_ends, recover, tasks_of_last_attempt, wait_for_shims

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..runfolder.records import VerdictRecord
    from ..store.index import JobRow
    from ..store.server import JobRecord


def open_index() -> Index:
    """The index of this user's runs."""
    settings = Settings()
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    return Index(index_path(settings.home))


def find(name: str, user: str, index: Index | None = None) -> tuple[JobRow, JobFolder]:
    """A run by id, `user~name` or name (then the latest); its row is brought up to date."""
    index = index or open_index()
    row = index.resolve(name, user)
    if row is None:
        known = [each.name for each in index.page(limit=100)]

        raise NoSuchRun(f"there is no run '{name}'{suggestion(name, known)} (pailot ps lists them)")
    folder = JobFolder(row.folder)
    for words in folder.damage():
        _complain(row, words)
    return refresh(row, index), folder


def refresh(row: JobRow, index: Index) -> JobRow:
    """A row as its folder tells; a run whose driver died is brought to its end.

    A run of which that cannot be told (its disk is full, its files are damaged) is returned as far as it is known, and a line on
    standard error says why: it must not hide the others.
    """
    if row.ended is not None:
        return row
    folder = JobFolder(row.folder)
    try:
        verdict = folder.verdict()
        if verdict is None and not folder.is_driven():
            verdict = recover(folder)
    except OSError as error:
        verdict = None
        _complain(row, DISK_FULL if is_full(error) else f"{error.strerror} ({error.filename or folder.path})")
    if verdict is None:
        state = folder.state()
        return row.replace(state=state.state or row.state, started=state.started or row.started)
    if verdict.unwritten:
        _complain(row, verdict.unwritten)
    index.record_end(row.id, verdict)
    updated = index.get(row.id) or row
    if updated.ended is None:  # nor could that be written
        updated = updated.replace(state=verdict.state, ended=verdict.ended, reason=verdict.reason)
    return updated


def _complain(row: JobRow, words: str) -> None:
    sys.stderr.write(f"pailot: {row.name} ({row.id}): {words}\n")


def wait(folder: JobFolder, seconds: float | None = None) -> bool:
    """Until the run is over; False when the time is up first. Waits on the driver's lock, not on a clock."""
    if seconds is None:
        while folder.verdict() is None:
            descriptor = folder.lock(wait=True, shared=True)
            if descriptor is not None:
                os.close(descriptor)
            if folder.verdict() is None:
                if recover(folder) is not None:
                    return True  # perhaps known to this process alone
                if reattach.goes_on(folder):
                    reattach.drive_on(folder)
                else:
                    wait_for_shims(folder)
        return True

    class TimeUp(Exception):
        pass

    until = time.monotonic() + seconds

    def ring(*_: object) -> None:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeUp
        signal.setitimer(signal.ITIMER_REAL, capped(left))

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(capped(seconds), 0.001))
    try:
        return wait(folder)
    except TimeUp:
        return folder.verdict() is not None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def listed(row: JobRow | JobRecord, held: int = 0) -> dict[str, object]:
    """What `ps --json` prints of a run, on a server or without one."""
    return {
        "name": row.name,
        "id": row.id,
        "user": row.user,
        "state": row.state,
        "submitted": row.submitted,
        "started": row.started,
        "ended": row.ended,
        "tasks": row.tasks,
        "retries": row.retries,
        "engine": row.engine,
        "held": held,
    }


def describe(
    row: JobRow | JobRecord, folder: JobFolder, plan: Mapping[str, Any] | None = None, attempt: int | None = None
) -> dict[str, Any]:
    """What `show --json` and `run --json` print; `plan` where the folder may not be there yet, tasks of the last attempt."""
    verdict = folder.verdict()
    last = max(0, folder.attempts() - 1)
    shown = last if attempt is None else attempt
    over = verdict.state if verdict else ""
    placed = Placement.of(folder.attempt(shown))
    roles = {}
    planned = plan or folder.plan()
    for name, role in planned.get("taskRoles", {}).items():
        tasks = [_task(folder, planned, shown, name, index, over, placed) for index in range(role["instances"])]
        roles[name] = {"asked": task_usage.asked(planned, name), "tasks": tasks}
    return {
        "name": row.name,
        "id": row.id,
        "user": row.user,
        "state": row.state,
        "attempt": last,
        "retries": verdict.retried if verdict else last,
        "exitCode": verdict.exit_code if verdict else None,
        "reason": (verdict.reason if verdict else "") or row.reason or None,
        "submitted": row.submitted,
        "started": row.started,
        "ended": row.ended,
        "engine": row.engine,
        "tags": list(row.tags or ()),
        "labels": dict(row.labels or {}),
        **_decisive(folder, verdict, last),
        "folder": folder.path,
        "taskRoles": roles,
    }


def _decisive(folder: JobFolder, verdict: VerdictRecord | None, attempt: int) -> dict[str, object]:
    """The task that decided how a run ended, as its verdict says, and the last lines that it printed."""
    if verdict is None or verdict.role is None or verdict.index is None:
        return {"task": None, "lastLines": []}
    final = TaskRecord.final(folder.task(attempt, verdict.role, verdict.index))
    return {"task": f"{verdict.role}:{verdict.index}", "lastLines": list(final.last_lines) if final else []}


def explain(row: JobRow | JobRecord, folder: JobFolder) -> list[str]:
    """Why a run is in the state it is in: sentences, then the last lines of what failed."""
    verdict = folder.verdict()
    events = folder.events()
    lines = []
    for event in events:
        if event.kind == journal.TASK_RETRY:
            lines.append(f"{event.named} was tried again ({event.attempt} of {event.retries_allowed}): it {event.reason}")
        elif event.kind == journal.JOB_RETRY:
            lines.append(f"the job was tried again: {event.reason}; {event.why}")
        elif event.kind == journal.WAITING:
            lines.append(event.reason)
        elif event.kind == journal.TASK_HELD and verdict is None:
            lines.append(f"{event.named} {event.reason}, and is kept for inspection; its resources stay taken")
    if verdict is None:
        if row.ended is not None:  # there was no room for more than a row in the index
            return [*lines, f"{row.name} is {row.state}: {row.reason}"]
        state = folder.state().state or row.state
        missing = _waits_to_end(folder) if state == RUNNING else ""
        return [*lines, f"{row.name} is {state}: {missing}" if missing else f"{row.name} is {state}"]
    lines.append(f"{row.name} is {verdict.state}: {verdict.reason}")
    command = command_that_failed(folder, verdict)
    if command:
        lines.append(command)
    ended = journal.end_of(events, verdict.role, verdict.index)
    if ended is None:
        return lines
    known = ended.exit_class
    if known and known["code"]:
        lines.append(f"OpenPAI would call it {known['phrase']} ({known['code']}, {known['type']}, {known['reaction']})")
    if ended.last_lines and verdict.state != "SUCCEEDED":
        lines.append(f"last lines of {ended.named}:")
        lines += [f"    {line}" for line in ended.last_lines]
    return lines


def _waits_to_end(folder: JobFolder) -> str:
    """What a run waits for before it ends; empty before its tasks start, and while it waits for the end of an inspection."""
    rules = completion_rules(folder.plan())
    if not rules or not folder.attempts() or held_tasks(folder):
        return ""
    return waits_to_end(rules, final_ends(folder.attempt(folder.attempts() - 1), folder.plan()))


def command_that_failed(folder: JobFolder, verdict: VerdictRecord) -> str:
    """The command that failed the task that decided how a run ended, in the words of the job file; empty if that is not known."""
    role, index = verdict.role, verdict.index
    if verdict.state != "FAILED" or role is None or index is None:
        return ""
    end = TaskRecord.final(folder.task(max(0, folder.attempts() - 1), role, index))
    return failed_command(folder.plan(), role, end) if end is not None else ""


def held_tasks(folder: JobFolder) -> int:
    """How many failed tasks are kept for inspection; their resources stay taken."""
    tasks = tasks_of_last_attempt(folder)
    return sum(
        os.path.exists(os.path.join(each, layout.HELD)) and not os.path.exists(os.path.join(each, layout.FINAL)) for each in tasks
    )


def task_attempts(folder: JobFolder, attempt: int, role: str, index: int) -> int:
    """How many attempts of a task have a folder."""
    return layout.begun_attempts(folder.task(attempt, role, index))


def _task(
    folder: JobFolder, plan: Mapping[str, Any], attempt: int, role: str, index: int, over: str, placed: Placement
) -> dict[str, object]:
    """One task; `over` is the state in which the run has ended, or empty, `placed` where the tasks of the attempt are."""
    path = folder.task(attempt, role, index)
    final = TaskRecord.final(path)
    count = task_attempts(folder, attempt, role, index)
    last = layout.task_attempt_folder(path, max(0, count - 1))
    held = TaskRecord.held(path) if final is None else None
    state = final.outcome.upper() if final else "HELD" if held else "RUNNING" if count else "WAITING"
    end = final or held
    reason = end.reason if end else None
    if over and not final and count:
        state, reason = "STOPPED" if over == "STOPPED" else "FAILED", "how it ended was not recorded"
    return {
        "index": index,
        "state": state,
        "exitCode": end.exit_code if end else None,
        "signal": end.signal if end else None,
        "reason": reason,
        "class": end.exit_class if end else None,
        "failedCommand": (failed_command(plan, role, end) or None) if end else None,
        "attempts": count,
        "host": placed.host_of(role, index),
        "ports": placed.ports_of(role, index),
        "logs": {stream: os.path.join(last, stream) for stream in layout.STREAMS},
        "usage": task_usage.peaks(path, end) if count else None,
    }
