"""The team service: everything a server for several people does with jobs, for front doors that translate.

    async with running_team(settings) as team:
        record = await team.submit(Caller("ann"), text)
        async for event in team.subscribe_job(Caller("ann"), "ann~hello"):
            ...

A job is named by its full name, `user~name`. Every method checks whether the caller may do what is asked
(`policy`), raises an exception of `errors`, and may be called from the event loop that the team runs in, only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import Any

    from .logs import Log
    from .values import Caller, CapacityReport, Event, JobDetail, LogPiece, TaskView

    JobRecord = Any


class Team:
    """The jobs of a team on one machine."""

    # Doing

    async def submit(
        self,
        caller: Caller,
        text: str,
        *,
        content_kind: str = "yaml",
        code: str | None = None,
        name: str | None = None,
        secrets: Mapping[str, Any] | None = None,
        submit_from: str = "",
    ) -> JobRecord:
        """Check, plan and keep a job; it is durable when this returns, and then waits or runs.

        `text` is a job file (v2 YAML, or v1 JSON). `code` is the SHA-256 of an uploaded archive: tasks start in it. `name` and
        `secrets` win over those of the file. Raises Invalid with all problems, Conflict for a name the user has used,
        Forbidden for a virtual cluster that is not the caller's, NoSuchCode, ShuttingDown.
        """
        raise NotImplementedError

    async def stop(self, caller: Caller, job: str, *, grace: float | None = None, now: bool = False) -> JobRecord:
        """Ask a job to stop: SIGTERM, its grace, SIGKILL. A finished job stays as it is. Owner or administrator."""
        raise NotImplementedError

    async def rerun(
        self, caller: Caller, job: str, *, name: str | None = None, secrets: Mapping[str, Any] | None = None
    ) -> JobRecord:
        """The same job once more, with the kept secrets (only its owner; others give theirs), under a new name."""
        raise NotImplementedError

    async def delete(self, caller: Caller, job: str) -> None:
        """Forget a finished job and remove its folder. Conflict while it is not finished. Owner or administrator."""
        raise NotImplementedError

    async def add_tag(self, caller: Caller, job: str, tag: str) -> None:
        """Give a job a tag; once is enough. Owner or administrator. BadRequest for an empty tag or one with a comma."""
        raise NotImplementedError

    async def remove_tag(self, caller: Caller, job: str, tag: str) -> None:
        """Take a tag away; NoSuchTag if it has none such. Owner or administrator."""
        raise NotImplementedError

    # Looking

    def may_read(self, caller: Caller | None, record: JobRecord) -> bool:
        """Whether the caller may see config, logs and events of a job; None is somebody without a token."""
        raise NotImplementedError

    async def get(self, caller: Caller | None, job: str, *, details: bool = False) -> JobRecord:
        """The record of a job; NoSuchJob. With `details` only for who may read its config and logs, else Forbidden."""
        raise NotImplementedError

    async def config(self, caller: Caller | None, job: str) -> str:
        """The job file as submitted, its secrets masked."""
        raise NotImplementedError

    async def plan(self, caller: Caller | None, job: str) -> dict[str, Any]:
        """What was planned, as `pailot plan --json` prints it."""
        raise NotImplementedError

    async def detail(self, caller: Caller | None, job: str, attempt: int | None = None) -> JobDetail:
        """A job and one of its attempts (the latest); NoSuchJob for an attempt that never was."""
        raise NotImplementedError

    async def task_attempts(
        self, caller: Caller | None, job: str, attempt: int | None, role: str, index: int
    ) -> tuple[TaskView, Sequence[TaskView]]:
        """A task of an attempt of a job (None: the latest), and each attempt of that task, newest first."""
        raise NotImplementedError

    async def record(self, caller: Caller | None, job: str) -> dict[str, Any]:
        """The same as `pailot show --json`."""
        raise NotImplementedError

    async def journal(self, caller: Caller | None, job: str) -> list[dict[str, Any]]:
        """What happened to a job, oldest first, as `pailot events --json`."""
        raise NotImplementedError

    async def why(self, caller: Caller | None, job: str) -> list[str]:
        """Why a job is in the state it is in: what it waits for and who holds that, or how it failed."""
        raise NotImplementedError

    async def log(
        self,
        caller: Caller | None,
        job: str,
        role: str,
        index: int,
        *,
        attempt: int | None = None,
        task_attempt: int | None = None,
        stream: str = "all",
    ) -> Log:
        """The log of a task attempt (None: the latest): its size, its bytes from any offset, whether it has ended."""
        raise NotImplementedError

    # Following

    def subscribe_jobs(self, caller: Caller, after: int | None = None) -> AsyncIterator[Event]:
        """Changes of state of all jobs that the caller may see, from now on, or from after an event id."""
        raise NotImplementedError

    def subscribe_job(self, caller: Caller | None, job: str, after: int | None = None) -> AsyncIterator[Event]:
        """A job as it is now, then what happens to it, to its end: `job`, `task` and one `end` event."""
        raise NotImplementedError

    def subscribe_log(
        self,
        caller: Caller | None,
        job: str,
        role: str,
        index: int,
        *,
        attempt: int | None = None,
        task_attempt: int | None = None,
        stream: str = "all",
        offset: int = 0,
        after: str = "",
    ) -> AsyncIterator[LogPiece]:
        """The log of a task as it grows, from an offset, or from where the piece with id `after` ended.

        With `attempt` and `task_attempt` only that one; without, the latest, and every retry that follows, to the end of the
        job. The last piece has `ended`.
        """
        raise NotImplementedError

    # Code

    async def has_code(self, digest: str) -> bool:
        """Whether an archive with this SHA-256 was uploaded."""
        raise NotImplementedError

    async def put_code(self, caller: Caller, digest: str, content: AsyncIterator[bytes]) -> bool:
        """Keep a .tar.gz; False if it was there. BadRequest where digest or archive are wrong (paths that lead out of it)."""
        raise NotImplementedError

    # The machine

    async def capacity(self) -> CapacityReport:
        """What there is, what is used, and per virtual cluster."""
        raise NotImplementedError

    async def set_clusters(self, clusters: Mapping[str, Mapping[str, float]]) -> None:
        """Virtual clusters changed: their guaranteed shares (`cpus`, `memory_mb`, `gpus`) by name."""
        raise NotImplementedError

    def figures(self) -> dict[str, float]:
        """Counters for /metrics: jobs by state, submissions, retries, queue length, seconds of the last decision."""
        raise NotImplementedError

    async def shutdown(self, how: str = "hand-over") -> None:
        """End: `hand-over` leaves running jobs to the next server, `drain` waits for them, `stop-jobs` stops them."""
        raise NotImplementedError
