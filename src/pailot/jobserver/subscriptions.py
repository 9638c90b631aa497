"""Live streams: jobs, one job, one log. Each looks, then waits for a sign, and looks again; the truth is in the folders."""

from __future__ import annotations

import asyncio  # only a server loads this

from ..lifecycle.states import FINAL_JOB_STATES
from ..runfolder.journal import Tail
from ..runfolder.logs import after_gap
from ..values import Value
from . import job_history
from .errors import BadRequest, NoSuchLog
from .models import Event, LogPiece
from .signals import CROWD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Any

    from ..store.server import JobRecord
    from .logs import Log
    from .models import Caller
    from .service import Team
    from .signals import Growth

PIECE = 65536


PACE_SECONDS = 0.25
"""A list of jobs is told what has changed at most this often: no reader is faster, and a busy server has hundreds of changes."""


class Watched(Value):
    """Which jobs a follower of the list wants to hear of; nothing: all. A job that leaves a wanted state is told as well."""

    users: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def wants(self, change: Mapping[str, Any]) -> bool:
        return (
            (not self.users or change["user"] in self.users)
            and (not self.clusters or change["virtualCluster"] in self.clusters)
            and (not self.states or change["state"] in self.states or change["before"] in self.states)
        )


def latest_of_each(events: Sequence[Event]) -> list[Event]:
    """Several changes of one job as one: its last, with the state before the first of them. In the order of their ids."""
    found: dict[tuple[str, str], Event] = {}
    for event in events:
        key = event.data["user"], event.data["name"]
        first = found.pop(key, None)
        before = event.data["before"] if first is None else first.data["before"]
        found[key] = event if first is None else event.replace(data={**event.data, "before": before})
    return list(found.values())


async def changes(
    team: Team, caller: Caller, after: int | None, wanted: Watched
) -> AsyncIterator[tuple[int, list[Event] | None]]:
    """What changed in the list of jobs, at most four times a second, with the id to go on from; None: look at all of it again."""
    row = team.floor.row
    last = row.last if after is None else after
    while True:
        seen = row.signal.count
        events = row.after(last)
        last = row.last
        if events is None:
            yield last, None
            continue
        told = [
            each
            for each in events
            if wanted.wants(each.data) and team.policy.may_see(caller, each.data["user"], each.data["virtualCluster"])
        ]
        if told:
            yield last, latest_of_each(told)
        if events:
            await asyncio.sleep(PACE_SECONDS)
        elif seen == row.signal.count:
            await row.signal.wait(seen)


async def jobs(team: Team, caller: Caller, after: int | None, wanted: Watched) -> AsyncIterator[Event]:
    """See Team.subscribe_jobs."""
    async for last, told in changes(team, caller, after, wanted):
        if told is None:
            yield Event(last, "reset", {})
        for event in told or ():
            yield event


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
    growth: Growth | None = None
    if entry is not None:
        team.floor.watch(entry)
        growth = entry.follow(role, index)
    pause, line_open = 0.0, True  # a follower that goes on from a place may have half a line
    try:
        while True:
            seen = growth.signal.count if growth is not None else 0
            record = await team.get(caller, name)
            over = team.floor.entries.get(record.id) is None and record.state in FINAL_JOB_STATES
            while True:
                found, data, end = _look(team, growth, record, role, index, at, stream)
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
                if growth is not None and growth.followers > CROWD and len(data) < PIECE and not ended:
                    break  # with this many followers more has come meanwhile: the next sign would never be waited for
            if ended:
                following = None if only else _next(team, record, role, index, at, stream)
                if following is not None:
                    at = following
                    continue
                if only or over:
                    yield LogPiece(at[0], at[1], at[2], b"", ended=True)
                    return
            if growth is None:
                pause = min(0.5, pause + 0.05)
                await asyncio.sleep(pause)
            elif growth.signal.count == seen:
                # A shim that fell behind may lose the word that its log has grown: now and then we look without one.
                try:
                    await asyncio.wait_for(growth.signal.wait(seen), 5)
                except TimeoutError:
                    growth.looks.clear()
    finally:
        if entry is not None:
            entry.unfollow(role, index)
            team.floor.unwatch(entry)


def begin_of_log(team: Team, record: JobRecord, role: str, index: int, stream: str) -> str:
    """Where a follower of a task's log begins who names no place: at the begin of the latest attempt of the task."""
    return "{}.{}.{}".format(*_latest(team, record, role, index, None, None, stream))


def _look(
    team: Team, growth: Growth | None, record: object, role: str, index: int, at: tuple[int, int, int], stream: str
) -> tuple[Log | None, bytes, int]:
    """The log and its next piece; followers at the same place at the same time share the look."""
    looks = growth.fresh_looks() if growth is not None else {}
    known: tuple[Log | None, bytes, int] | None = looks.get((at, stream))
    if known is not None:
        return known
    found = _find(team, record, role, index, at, stream)
    data, end = found.read(at[2], PIECE) if found is not None else (b"", at[2])
    looks[at, stream] = (found, data, end)
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
