"""What goes in and out of the team service."""

from __future__ import annotations

from ..scheduling.capacity import Share
from ..scheduling.user_limits import UserLimits
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..scheduling.requests import Reason
    from .skus import Sku
    from .submission import Prepared


class Caller(Value):
    """Whoever asks: a name, whether an administrator, and the virtual clusters that person may use."""

    name: str
    admin: bool = False
    clusters: frozenset[str] = frozenset(("default",))


class Holder(Value):
    """A job that has what another one waits for."""

    job: str
    user: str
    virtual_cluster: str
    cpus: float
    memory_mb: int
    gpus: int
    since: float | None


class Checked(Value):
    """What would become of a job file: it lives in memory only, since secrets are in it."""

    prepared: Prepared
    reason: Reason
    name_taken: bool = False


class Event(Value):
    """Something that happened to a job, for live streams.

    `id` grows from event to event: a stream is resumed by giving the last one seen as `after`.
    `kind` is `job` (data: name, user, state, reason, attempt, retries, submitted, started, ended), `task` (data: an entry of
    the job's journal: event, at, role, index, …), `end` (the job is over; the stream ends) or `reset` (events were missed:
    look at everything again).
    """

    id: int
    kind: str
    data: Mapping[str, Any]


class LogPiece(Value):
    """The next bytes of a log; `offset` is the place after them, counted in the log of that attempt of the task."""

    attempt: int
    task_attempt: int
    offset: int
    data: bytes = b""
    ended: bool = False
    """Nothing will follow: the last piece of a stream, without data."""
    missing: int = 0
    """Bytes before these that were rotated away before they could be read."""

    @property
    def id(self) -> str:
        """Where to go on: `subscribe_log(…, after=id)`."""
        return f"{self.attempt}.{self.task_attempt}.{self.offset}"


class Shares(Value):
    """Amounts of what a machine has."""

    cpus: float = 0
    memory_mb: float = 0
    gpus: float = 0


class TeamFigures(Value):
    """What a server has counted since it started, and what it has now."""

    states: Mapping[str, int]
    """Of jobs that are not over, by state."""
    queued: int
    submitted: int
    started: int
    ended: Mapping[str, int]
    """By state."""
    preempted: int
    platform_retries: int
    keepers_replaced: int
    total: Shares
    used: Shares
    clusters: Mapping[str, Shares]


class ClusterRules(Value):
    """What was set for a virtual cluster: what is kept for it, and what each of its users may have of it at once."""

    cpus: float = 0
    memory_mb: float = 0
    gpus: float = 0
    percent: float | None = None
    """Of the machine, where it was set so; the amounts follow from it."""
    most_percent: float | None = None
    limits: UserLimits = UserLimits()
    description: str = ""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ClusterRules:
        """From the settings or the database, where old rows have less."""
        limits = UserLimits(*(None if data.get(key) is None else int(data[key]) for key in ("user_jobs", "user_gpus")))
        return cls(
            float(data.get("cpus", 0)),
            float(data.get("memory_mb", 0)),
            float(data.get("gpus", 0)),
            data.get("percent"),
            data.get("most_percent"),
            limits,
            str(data.get("description", "")),
        )

    def kept(self) -> dict[str, object]:
        """For the database; `read` makes it whole again."""
        told = {
            **{key: getattr(self, key) for key in ("cpus", "memory_mb", "gpus", "percent", "most_percent", "description")},
            "user_jobs": self.limits.jobs,
            "user_gpus": self.limits.gpus,
        }
        return {key: value for key, value in told.items() if value is not None}

    @property
    def share(self) -> Share:
        """What the queue keeps for it: GPUs are whole."""
        return Share(self.cpus, int(self.memory_mb), int(self.gpus))


class ClusterUse(Value):
    """A virtual cluster: what is kept for it, what its jobs hold, and how many of them there are."""

    name: str
    guaranteed: Shares
    used: Shares
    running: int = 0
    waiting: int = 0
    rules: ClusterRules = ClusterRules()
    is_rest: bool = False
    """It has what the others leave."""


class CapacityReport(Value):
    """What the machine has, what is in use, and the same for each virtual cluster; `skus` are the kinds of cells."""

    total: Shares
    used: Shares
    clusters: Mapping[str, ClusterUse]
    host: str = ""
    skus: Mapping[str, Sku] = {}


class Standing(Value):
    """A job that is not over, with what was planned and how its tasks are."""

    record: Any
    """The `JobRecord` of the store."""
    plan: Mapping[str, Any]
    roles: Mapping[str, tuple[TaskView, ...]]
    attempt: int


class TaskView(Value):
    """One task of one attempt of a job. Times are seconds since 1970, or None."""

    role: str
    index: int
    state: str
    """WAITING, RUNNING, STOPPING, SUCCEEDED, FAILED or STOPPED."""
    attempt: int = 0
    """The latest attempt of the task, counted from 0; as many retries there were."""
    created: float | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    exit_class: Mapping[str, Any] | None = None
    """OpenPAI's class of the end: code, phrase, type, reaction."""
    host: str | None = None
    ports: Mapping[str, tuple[int, ...]] = {}
    last_lines: tuple[str, ...] = ()
    held: bool = False
    """It failed and is kept for inspection."""
    node: str | None = None
    """The name of the machine that it is on; `host` is its address."""


class JobDetail(Value):
    """A job with one of its attempts, the latest by default. Everything OpenPAI's job detail tells can be read from it."""

    record: Any
    """The `JobRecord` of the store."""
    attempt: int
    """The attempt shown, counted from 0; -1: none has begun."""
    attempts: int
    """How many attempts were begun."""
    attempt_state: str
    attempt_created: float | None
    attempt_started: float | None
    attempt_ended: float | None
    reason: str | None
    """Why the attempt ended as it did."""
    exit_code: int | None
    exit_class: Mapping[str, Any] | None
    trigger_role: str | None
    """The task that decided the attempt."""
    trigger_index: int | None
    retries_user: int
    retries_platform: int
    retry_delay: float | None
    """Seconds until the next attempt, while one is waited for."""
    roles: Mapping[str, tuple[TaskView, ...]]
    readable: bool = True
    """Whether the caller may read its logs, of which `last_lines` are a part."""
