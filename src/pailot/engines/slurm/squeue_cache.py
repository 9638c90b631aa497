"""What Slurm says of our jobs: one question for all jobs of this process, asked less and less often while nothing changes."""

from __future__ import annotations

import os
import time

from ..preparation.child_registry import CHILDREN
from .slurm_cli import FORMAT, Command, JobSeen, environment, parse_jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_SECONDS = 1.0


class FollowedJobs:
    """The jobs that are followed, and what was last seen of each."""

    def __init__(self) -> None:
        self.owners: dict[str, object] = {}
        self.seen: dict[str, JobSeen] = {}
        self.asked: Command | None = None
        self.asked_at = 0.0
        self.when: dict[str, float] = {}
        """When the question was asked to which `seen` is the answer."""
        self.about: tuple[str, ...] = ()
        self.interval = FIRST_SECONDS
        self.next = 0.0
        self.longest = 15.0

    def follow(self, job: str, owner: object, longest: float) -> None:
        self.owners[job] = owner
        self.longest = longest
        self.soon()

    def forget(self, job: str) -> None:
        self.owners.pop(job, None)
        self.seen.pop(job, None)
        self.when.pop(job, None)

    def soon(self) -> None:
        """Something is going on: ask more often for a while."""
        self.interval = min(FIRST_SECONDS, self.longest)
        self.next = min(self.next, time.monotonic() + self.interval) or time.monotonic() + self.interval

    def look(self, ask: Callable[[tuple[str, ...]], Command] | None = None) -> float:
        """Take a result that is there, ask if it is time; return the seconds until the next look."""
        CHILDREN.reap()
        if self.asked is not None and self.asked.status is not None:
            self._answered(self.asked)
            self.asked = None
        now = time.monotonic()
        if self.asked is None and self.owners and now >= self.next:
            self.about = tuple(self.owners)
            self.asked, self.asked_at = (ask or _ask)(self.about), now
            self.next = now + self.interval
            self.interval = min(self.interval * 1.5, self.longest)
        return max(0.05, self.next - now)

    def _answered(self, command: Command) -> None:
        found = parse_jobs(command.out)
        if command.status != 0 and "Invalid job id" not in command.err:
            return  # Slurm is away; what was seen last stands
        before = dict(self.seen)
        for job in self.about:
            if job in self.owners:
                self.seen[job] = found.get(job) or JobSeen(job, "GONE")
                self.when[job] = self.asked_at
        changed = [job for job in self.about if before.get(job) != self.seen.get(job)]
        if changed:
            self.soon()
        for job in self.about:
            if job in self.owners:
                CHILDREN.touched[self.owners[job]] = None  # type: ignore[index]  # the owner of a run may be changed


def _ask(jobs: tuple[str, ...]) -> Command:
    return Command(["squeue", "-h", "-t", "all", "-j", ",".join(jobs), "-o", FORMAT], environment(os.environ))


QUEUE = FollowedJobs()
