"""What the server remembers, as plain immutable records; times are seconds since 1970."""

from __future__ import annotations

import json

from ...values import Value
from .. import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PRIORITIES = ("crit", "prod", "test", "oppo")
EXECUTION_TYPES = ("START", "STOP")
ORDERS = (
    "jobName",
    "submissionTime",
    "username",
    "vc",
    "retries",
    "totalTaskNumber",
    "totalGpuNumber",
    "state",
    "completionTime",
    "jobPriority",
)

BROWSER = "browser"
SESSION = "session"
APPLICATION = "application"


class NameTaken(StoreError):
    """Something under this name is there already."""


class NoSuchRecord(StoreError):
    """What should be changed is not there."""


class BadValue(StoreError):
    """A value that one of the databases could not give back as it was."""


class JobRecord(Value):
    """A job as lists and the queue see it. `priority` is None where the job names none."""

    id: str
    user: str
    name: str
    submitted: float
    vc: str = "default"
    state: str = "WAITING"
    execution_type: str = "START"
    priority: str | None = None
    started: float | None = None
    ended: float | None = None
    attempts: int = 0
    retries: int = 0
    user_retries: int = 0
    platform_retries: int = 0
    exit_code: int | None = None
    reason: str = ""
    tasks: int = 0
    roles: int = 0
    gpus: int = 0
    cpus: float = 0
    memory_mb: int = 0
    folder: str = ""
    engine: str = ""
    submit_from: str = ""
    code: str | None = None
    """SHA-256 of the folder of code that the tasks start in."""
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    more: Mapping[str, Any] = {}
    """Whatever else belongs to the job and is never searched for."""


class JobQuery(Value):
    """Which jobs, in which order. Within one list any value will do; several lists must all hold.

    `priorities` may hold None: jobs that name none. Rows with equal keys follow in the order of their submission,
    or against it where `descending`; jobs that have not ended come behind all others in ascending order.
    """

    users: tuple[str, ...] = ()
    vcs: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    priorities: tuple[str | None, ...] = ()
    types: tuple[str, ...] = ()
    """Execution types: START, STOP."""
    tags_contain: tuple[str, ...] = ()
    tags_not_contain: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    """All of these."""
    keyword: str = ""
    """A part of the job's name, its user's name or its virtual cluster; upper and lower case differ, as in OpenPAI."""
    newer_than: float | None = None
    """Submitted after this moment."""
    seen_by: tuple[str, tuple[str, ...]] | None = None
    """A user and virtual clusters: only jobs of that user or in one of these."""
    order: str = "submissionTime"
    descending: bool = True
    offset: int = 0
    limit: int = 50
    want_total: bool = False
    before: int | None = None
    """The cursor of a job: only those that follow it in the order of submission. Pages so do not shift while jobs come in."""


def tag_mark(tag: str) -> str:
    """A tag as one of the marks by which jobs are found."""
    return f"t:{tag}"


def label_mark(key: str, value: str) -> str:
    """A label as such a mark."""
    return f"l:{json.dumps([key, value])}"


def marks_of(query: JobQuery) -> set[str]:
    """The marks that a query asks for."""
    labels = (label_mark(key, value) for key, value in query.labels.items())
    return {*map(tag_mark, query.tags_contain), *map(tag_mark, query.tags_not_contain), *labels}


class JobPage(Value):
    """One page of a list; `total` counts all jobs that the query finds, where that was asked for."""

    rows: tuple[JobRecord, ...]
    total: int | None
    cursors: tuple[int, ...] = ()
    """For each row, what `JobQuery.before` takes to go on after it."""


class User(Value):
    """An account. The password is kept as an argon2 hash only; what a user may do follows from the groups."""

    username: str
    email: str = ""
    password_hash: str = ""
    grouplist: tuple[str, ...] = ()
    extension: Mapping[str, Any] = {}
    unix_user: str | None = None
    created: float = 0.0


class Group(Value):
    """A group as OpenPAI has it; `extension["acls"]` says what its members may use."""

    groupname: str
    description: str = ""
    external_name: str = ""
    extension: Mapping[str, Any] = {}


class Token(Value):
    """That a token was given out. `digest` is the SHA-256 of it; nothing here can be used as one."""

    digest: str
    username: str
    kind: str
    issued: float
    expires: float | None = None
    claims: Mapping[str, Any] = {}


class Failures(Value):
    """Log-ins that failed in a row under one name or from one address."""

    count: int = 0
    last: float = 0.0


class Notice(Value):
    """A message that still has to be delivered."""

    number: int
    job: str
    kind: str
    payload: Mapping[str, Any]
    created: float
    due: float
    attempts: int
    error: str


class CodeBlob(Value):
    """A folder of code sent along with jobs: its SHA-256, its size, when it came and was last used."""

    digest: str
    size: int
    created: float
    used: float


class LibraryRow(Value):
    """An entry of the server's library: one version of a name, whose text has this SHA-256."""

    name: str
    version: str
    type: str
    owner: str
    about: Mapping[str, Any]
    digest: str
    created: float
    updated: float
    uses: int = 0
    used: float | None = None
