"""Live streams: jobs, one job, one log. Each looks, then waits for a sign, and looks again; the truth is in the folders."""

from __future__ import annotations

import asyncio  # only a server loads this

from ..lifecycle.states import FINAL_JOB_STATES
from ..runfolder.journal import Tail
from ..runfolder.logs import after_gap
from . import job_history
from .errors import BadRequest, NoSuchLog
from .models import Event, LogPiece
from .signals import CROWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .dispatcher import Entry
    from .logs import Log
    from .models import Caller
    from .service import Team

PIECE = 65536


async def jobs(team: Team, caller: Caller, after: int | None) -> AsyncIterator[Event]:
    """See Team.subscribe_jobs."""
    row = team.floor.row
    last = row.last if after is None else after
    while True:
        seen = row.signal.count
        events = row.after(last)
        if events is None:
            last = row.last
            yield Event(last, "reset", {})
            continue
        for event in events:
            last = event.id
            if team.policy.may_see(caller, event.data["user"], event.data["virtualCluster"]):
                yield event
        if seen == row.signal.count:
            await row.signal.wait(seen)


async def job(team: Team, caller: Caller | None, name: str, after: int | None) -> AsyncIterator[Event]:
    """See Team.subscribe_job. An event's id is the offset in the job's journal that it was read up to."""
    record = await team.get(caller, name, details=True)
    entry = team.floor.entries.get(record.id)
    tail, told = Tail.of_run(record.folder, after or 0), None
    if entry is not None:
        team.floor.watch(entry)
    try:
        while True:
            seen = entry.signal.count if entry is not None else 0
            record = await team.get(caller, name)
            over = team.floor.entries.get(record.id) is None
            for line, offset in tail.entries():
                yield Event(offset, "task" if "role" in line else "journal", line)
            shown = (record.state, record.attempts, record.retries)
            if shown != told:
                told = shown
                yield Event(tail.offset, "job", job_history.brief(record))
            if over and record.state in FINAL_JOB_STATES:
                yield Event(tail.offset, "end", job_history.brief(record))
                return
            if entry is not None and entry.signal.count == seen:
                await entry.signal.wait(seen)
            elif entry is None:
                await asyncio.sleep(0.05)  # between two looks it was neither here nor there
    finally:
        if entry is not None:
            team.floor.unwatch(entry)


async def log(
    team: Team,
    caller: Caller | None,
    name: str,
    role: str,
    index: int,
    attempt: int | None,
    task_attempt: int | None,
    stream: str,
    offset: int,
    after: str,
) -> AsyncIterator[LogPiece]:
    """See Team.subscribe_log."""
    record = await team.get(caller, name, details=True)
    entry = team.floor.entries.get(record.id)
    only = attempt is not None and task_attempt is not None
    at = _place(after) if after else (attempt or 0, task_attempt or 0, offset)
    if not after and not only and not offset:
        at = _latest(team, record, role, index, attempt, task_attempt, stream)
    if entry is not None:
        team.floor.watch(entry)
    pause, line_open = 0.0, True  # a follower that goes on from a place may have half a line
    try:
        while True:
            seen = entry.signal.count if entry is not None else 0
            record = await team.get(caller, name)
            over = team.floor.entries.get(record.id) is None and record.state in FINAL_JOB_STATES
            while True:
                found, data, end = _look(team, entry, record, role, index, at, stream)
                ended = found.ended if found is not None else over
                if not data:
                    break
                missing = end - len(data) - at[2]
                if missing:
                    data, left_out = after_gap(data, line_open=line_open and at[2] > 0)
                    missing += left_out
                line_open = not data.endswith(b"\n")
                at = (at[0], at[1], end)
                yield LogPiece(at[0], at[1], end, data, missing=missing)
                if entry is not None and entry.watchers > CROWD and len(data) < PIECE and not ended:
                    break  # with this many followers more has come meanwhile: the next sign would never be waited for
            if ended:
                following = None if only else _next(team, record, role, index, at, stream)
                if following is not None:
                    at = following
                    continue
                if only or over:
                    yield LogPiece(at[0], at[1], at[2], b"", ended=True)
                    return
            if entry is None:
                pause = min(0.5, pause + 0.05)
                await asyncio.sleep(pause)
            elif entry.signal.count == seen:
                # A shim that fell behind may lose the word that its log has grown: now and then we look without one.
                try:
                    await asyncio.wait_for(entry.signal.wait(seen), 5)
                except TimeoutError:
                    entry.looks.clear()
    finally:
        if entry is not None:
            team.floor.unwatch(entry)


def _look(
    team: Team, entry: Entry | None, record: object, role: str, index: int, at: tuple[int, int, int], stream: str
) -> tuple[Log | None, bytes, int]:
    """The log and its next piece; followers at the same place at the same time share the look."""
    key = (role, index, at, stream)
    if entry is not None:
        if entry.looked != entry.signal.count:
            entry.looks.clear()
            entry.looked = entry.signal.count
        known: tuple[Log | None, bytes, int] | None = entry.looks.get(key)
        if known is not None:
            return known
    found = _find(team, record, role, index, at, stream)
    data, end = found.read(at[2], PIECE) if found is not None else (b"", at[2])
    if entry is not None:
        entry.looks[key] = (found, data, end)
    return found, data, end


def _place(after: str) -> tuple[int, int, int]:
    words = after.split(".")
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() for word in words):
        raise BadRequest(f"{after!r} is not the id of a piece of a log")
    return int(words[0]), int(words[1]), int(words[2])


def _find(team: Team, record: object, role: str, index: int, at: tuple[int, int, int], stream: str) -> Log | None:
    try:
        return team.find_log(record, role, index, at[0], at[1], stream)  # type: ignore[arg-type]  # a JobRecord
    except NoSuchLog:
        return None


def _latest(
    team: Team, record: object, role: str, index: int, attempt: int | None, task_attempt: int | None, stream: str
) -> tuple[int, int, int]:
    try:
        found = team.find_log(record, role, index, attempt, task_attempt, stream)  # type: ignore[arg-type]  # a JobRecord
    except NoSuchLog:
        return attempt or 0, task_attempt or 0, 0
    return found.attempt, found.task_attempt, 0


def _next(
    team: Team, record: object, role: str, index: int, at: tuple[int, int, int], stream: str
) -> tuple[int, int, int] | None:
    """The attempt that follows, if it has begun: of the task, then of the job."""
    for attempt, task_attempt in ((at[0], at[1] + 1), (at[0] + 1, 0)):
        if _find(team, record, role, index, (attempt, task_attempt, 0), stream) is not None:
            return attempt, task_attempt, 0
    return None
