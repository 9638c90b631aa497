"""What a person should look at, from what the server knows anyway: no monitoring system has to be set up for it."""

from __future__ import annotations

import asyncio
import os
import time

from ..userruns.doctor import LITTLE_SPACE
from ..values import Value
from .dispatcher import QUEUED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ..store.server import Notice
    from .models import Caller
    from .service import Team

KEEPER_DOWN, HOME_UNREACHABLE = "PailotKeeperDown", "PailotHomeUnreachable"
DISK_FULL, DISK_ALMOST_FULL, INODES_FULL = "NodeDiskFull", "NodeDiskAlmostFull", "NodeInodesFull"
NEVER_FITS, NOTICE_UNDELIVERABLE = "JobNeverFits", "NoticeUndeliverable"
NAMES = (KEEPER_DOWN, HOME_UNREACHABLE, DISK_FULL, DISK_ALMOST_FULL, INODES_FULL, NEVER_FITS, NOTICE_UNDELIVERABLE)
CRITICAL, WARNING = "critical", "warning"
LITTLE_PART = 0.05
"""Less than that part of the disk left is little, if it is little in bytes, too."""
SOON_LITTLE = 20 * LITTLE_SPACE


class Alert(Value):
    """Something that is wrong now. One about a job has its name and its owner, and is that owner's business, too."""

    name: str
    severity: str
    summary: str
    since: float
    job: str = ""
    user: str = ""
    cluster: str = ""
    detail: str = ""
    """More, for administrators: it may tell how the server is set up."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.name, self.user, self.job


class Alerts:
    """Looks when asked; remembers since when something is wrong."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str, str], float] = {}

    async def look(self, team: Team) -> list[Alert]:
        """All that is wrong, the gravest first, then the oldest."""
        now = time.time()
        failing = await asyncio.to_thread(team.store.outbox.failing)
        found = [*_of_machine(team, now), *_of_queue(team), *_of_notices(failing)]
        self._since = {each.key: min(each.since, self._since.get(each.key, now)) for each in found}
        told = [each.replace(since=self._since[each.key]) for each in found]
        return sorted(told, key=lambda each: (each.severity != CRITICAL, each.since))


def seen_by(caller: Caller, alerts: Iterable[Alert]) -> list[Alert]:
    """Administrators see all, others what concerns their own jobs."""
    if caller.admin:
        return list(alerts)
    return [each.replace(detail="") for each in alerts if each.job and each.user == caller.name]


def counted(alerts: Iterable[Alert]) -> Mapping[str, int]:
    """How many of each name; names of which there is none have 0."""
    counts = dict.fromkeys(NAMES, 0)
    for each in alerts:
        counts[each.name] += 1
    return counts


def _of_machine(team: Team, now: float) -> Iterator[Alert]:
    if team.floor.link is None or not team.floor.link.open:
        words = "the process that keeps the jobs has gone, and a new one is not there yet: nothing starts"
        yield Alert(KEEPER_DOWN, CRITICAL, words, now)
    try:
        space = os.statvfs(team.home)
    except OSError as error:
        yield Alert(HOME_UNREACHABLE, CRITICAL, f"{team.home} cannot be looked at: {error.strerror}", now)
        return
    free, whole = space.f_bavail * space.f_frsize, max(1, space.f_blocks * space.f_frsize)
    if free < LITTLE_SPACE:
        yield Alert(DISK_FULL, CRITICAL, f"{team.home} has {free / 1e6:.0f} MB left; pailot gc removes old runs", now)
    elif free < SOON_LITTLE and free / whole < LITTLE_PART:
        words = f"{team.home} has {free / 1e9:.1f} GB left, {100 * free / whole:.0f} % of its disk; pailot gc removes old runs"
        yield Alert(DISK_ALMOST_FULL, WARNING, words, now)
    if space.f_files and space.f_favail < space.f_files * LITTLE_PART / 5:
        yield Alert(INODES_FULL, CRITICAL, f"the disk of {team.home} has room for {space.f_favail} more files only", now)


def _of_queue(team: Team) -> Iterator[Alert]:
    for number in team.floor.queue.never_fits():
        entry = team.floor.entries.get(number)
        if entry is not None and entry.phase == QUEUED:
            record = entry.record
            words = f"{record.user}~{record.name} will never start: {team.floor.queue.why(number).text}"
            yield Alert(NEVER_FITS, WARNING, words, record.submitted, record.name, record.user, record.vc)


def _of_notices(failing: Iterable[Notice]) -> Iterator[Alert]:
    seen: set[tuple[str, str, str]] = set()
    for notice in failing:
        job, user = str(notice.payload.get("name", "")), str(notice.payload.get("user", ""))
        how = "by mail" if notice.kind == "mail" else "to the webhook"
        words = f"a notice about {user}~{job} could not be sent {how} so far, {notice.attempts} times"
        alert = Alert(NOTICE_UNDELIVERABLE, WARNING, words, notice.created, job, user, detail=notice.error)
        if alert.key not in seen:
            seen.add(alert.key)
            yield alert
