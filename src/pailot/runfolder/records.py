"""The records of a run's folder as values.

A record is read as what a stranger may have written: a value of another type is as good as missing, and without a value that it
needs, the whole record is. Keys that are not known here are ignored, so that a later version may add some.
"""

from __future__ import annotations

from ..lifecycle.states import JOB_STATES
from ..values import Value
from . import layout
from .atomic_json import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, Self

    from ..lifecycle.completion import TaskEnd

    Check = Callable[[object], bool]


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_number(value: object) -> bool:
    return isinstance(value, int)


def is_moment(value: object) -> bool:
    """Seconds, since 1970 or of a duration; finite, and small enough for every use of it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def is_flag(value: object) -> bool:
    return isinstance(value, bool)


def is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def is_exit_class(value: object) -> bool:
    return isinstance(value, dict) and all(key in value for key in ("code", "phrase", "type", "reaction"))


def is_place_in_script(value: object) -> bool:
    """The script and the lines of a command that failed."""
    if not isinstance(value, dict):
        return False
    first, last = value.get("firstLine"), value.get("lastLine")
    return isinstance(value.get("script"), str) and type(last) is int and (first is None or type(first) is int)


def _is_state(value: object) -> bool:
    return isinstance(value, str) and value in JOB_STATES


def _is_counts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, int) for each in value.values())


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


def _is_ports(value: object) -> bool:
    """By task, then by label: lists of numbers."""
    if not isinstance(value, dict):
        return False
    return all(isinstance(each, dict) and all(isinstance(ports, list) for ports in each.values()) for each in value.values())


class Record(Value):
    """A record: its fields are the keys of the JSON object, with underscores here and camel case there."""

    _checks: ClassVar[Mapping[str, Check]] = {}
    """For each field whether a value of it can be believed. None is for every field the same as a missing value."""
    _needed: ClassVar[tuple[str, ...]] = ()
    _rare: ClassVar[tuple[str, ...]] = ()
    """Fields that are written only where they say something."""
    _keys: ClassVar[Mapping[str, str]] = {}
    """Keys that are not the name of their field in camel case."""
    _table: ClassVar[tuple[tuple[str, str, Check], ...]] = ()

    @classmethod
    def table(cls) -> tuple[tuple[str, str, Check], ...]:
        """Name, key and check of each field; made with the first record."""
        if "_table" not in cls.__dict__:
            cls._table = tuple((name, cls._keys.get(name) or _camel(name), cls._checks[name]) for name in cls._fields)
        return cls._table

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self | None:
        """The record in a JSON object, or None if too little of it can be believed.

        >>> StopRecord.from_json({"why": "user", "grace": [], "later": 1})
        StopRecord(why='user', grace=None, at=None)
        """
        if data is None:
            return None
        found = {}
        for name, key, fits in cls.table():
            value = data.get(key)
            if value is not None and fits(value):
                found[name] = value
        for name in cls._needed:
            if name not in found:
                return None
        return cls(**found)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of the record."""
        mine, rare = self.__dict__, self._rare
        return {key: mine[name] for name, key, _ in self.table() if name not in rare or mine[name] != getattr(type(self), name)}

    @classmethod
    def read(cls, path: str) -> Self | None:
        """The record in a file, or None where there is none that can be believed."""
        return cls.from_json(read_record(path))

    @classmethod
    def is_damaged(cls, data: Mapping[str, Any]) -> bool:
        """Whether a JSON object has a value that cannot be believed, or lacks one that is needed."""
        wrong = any(data.get(key) is not None and not fits(data[key]) for _, key, fits in cls.table())
        return wrong or cls.from_json(data) is None


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


class RunRecord(Record):
    """job.json: what was asked for. It is written last, and says that the folder is complete."""

    id: str
    name: str
    user: str
    submitted: float
    engine: str = "local"
    format: int = 1
    cwd: str = ""
    work_dir: str = ""
    sandbox: bool = False
    detached: bool = False
    server: bool = False
    """Whether a server keeps the run."""
    boot: str = ""
    """Which start of the machine it was."""
    file: str = "-"
    virtual_cluster: str = "default"
    labels: Mapping[str, str] = {}

    _needed = ("id", "name", "user", "submitted")
    _rare = ("server", "labels")
    _checks = {
        "id": is_text, "name": is_text, "user": is_text, "submitted": is_moment, "engine": is_text, "format": is_number,
        "cwd": is_text, "work_dir": is_text, "sandbox": is_flag, "detached": is_flag, "server": is_flag, "boot": is_text,
        "file": is_text, "virtual_cluster": is_text, "labels": _is_texts,
    }  # fmt: skip


class RunState(Record):
    """state.json: what a run is doing, until it has a verdict."""

    at: float | None = None
    state: str | None = None
    attempt: int = 0
    started: float | None = None
    """When the first attempt began."""
    reason: str | None = None
    retries: Mapping[str, int] = {}

    _rare = ("reason", "retries")
    _checks = {
        "at": is_moment, "state": _is_state, "attempt": is_number, "started": is_moment, "reason": is_text, "retries": _is_counts,
    }  # fmt: skip

    @classmethod
    def of(cls, run: str) -> RunState:
        """The state of the run in a folder; an empty one if nothing is known."""
        return cls.read(f"{run}/{layout.STATE}") or cls()


class StopRecord(Record):
    """stop.json: why a run, or an attempt, stops. The first one that is written stands."""

    why: str | None = None
    grace: float | None = None
    at: float | None = None

    _checks = {"why": is_text, "grace": is_moment, "at": is_moment}


class Placement(Record):
    """attempt.json: where the tasks of an attempt are."""

    boot: str = ""
    driver: int = 0
    """The process id of the driver."""
    ports: Mapping[str, Mapping[str, list[int]]] = {}
    host: str | None = None
    hosts: Mapping[str, str] = {}
    """The machine of each `ROLE:INDEX`, where the engine uses several."""
    slurm_job: str | None = None
    components: Mapping[str, int] | None = None
    """The component of a heterogeneous Slurm job that each `ROLE:INDEX` is in."""

    _rare = ("boot", "driver", "hosts", "slurm_job", "components")
    _checks = {
        "boot": is_text, "driver": is_number, "ports": _is_ports, "host": is_text, "hosts": _is_texts, "slurm_job": is_text,
        "components": _is_counts,
    }  # fmt: skip

    @classmethod
    def of(cls, attempt: str) -> Placement:
        """The placement in the folder of an attempt; an empty one if nothing is known."""
        return cls.read(f"{attempt}/{layout.PLACEMENT}") or cls()

    def host_of(self, role: str, index: int) -> str | None:
        return self.hosts.get(f"{role}:{index}") or self.host

    def ports_of(self, role: str, index: int) -> Mapping[str, list[int]]:
        return self.ports.get(f"{role}:{index}", {})


class TaskRecord(Record):
    """exit.json, final.json and held.json: how an attempt of a task has ended."""

    outcome: str
    exit_code: int | None = None
    signal: int | None = None
    phase: str | None = None
    reason: str | None = None
    stop: str | None = None
    """Why the attempt was being stopped when the task ended."""
    give_up: bool = False
    """Whether Pailot itself failed, so that to try again would be no use."""
    disk_full: bool = False
    out_of_memory: bool = False
    attempt: int | None = None
    started: float | None = None
    ended: float | None = None
    max_rss_kb: int = 0
    """The most memory that one process of the task had."""
    peak_memory_kb: int = 0
    """The most memory that the task had at one time, as far as that was seen; in all its attempts."""
    cpu_seconds: float | None = None
    exit_class: Mapping[str, Any] | None = None
    """OpenPAI's class of this end: code, phrase, type, reaction."""
    last_lines: list[str] = []
    failed_at: Mapping[str, Any] | None = None
    """Where the command stands that ended the task: the script, and its first (perhaps) and last line in the plan."""
    until: float | None = None
    """Until when a failed task is kept for inspection; only in held.json."""

    _needed = ("outcome",)
    _rare = ("give_up", "until", "failed_at", "peak_memory_kb", "cpu_seconds")
    _keys = {"exit_class": "class"}
    _checks = {
        "outcome": is_text, "exit_code": is_number, "signal": is_number, "phase": is_text, "reason": is_text, "stop": is_text,
        "give_up": is_flag, "disk_full": is_flag, "out_of_memory": is_flag, "attempt": is_number, "started": is_moment,
        "ended": is_moment, "max_rss_kb": is_number, "peak_memory_kb": is_number, "cpu_seconds": is_moment,
        "exit_class": is_exit_class, "last_lines": is_lines, "until": is_moment, "failed_at": is_place_in_script,
    }  # fmt: skip

    def task_end(self, role: str, index: int) -> TaskEnd:
        """The end as the completion policy counts it."""
        from ..lifecycle.completion import TaskEnd

        succeeded, stopped = self.outcome == "succeeded", self.outcome == "stopped"
        hopeless = self.disk_full or self.give_up
        return TaskEnd(role, index, succeeded, self.exit_code, self.signal, self.reason or "", stopped, hopeless)

    @classmethod
    def final(cls, task: str) -> TaskRecord | None:
        """How the task in a folder has ended, if it has."""
        return cls.read(f"{task}/{layout.FINAL}")

    @classmethod
    def held(cls, task: str) -> TaskRecord | None:
        """How the task has failed that is kept for inspection."""
        return cls.read(f"{task}/{layout.HELD}")

    @classmethod
    def of_attempt(cls, task: str, number: int) -> TaskRecord | None:
        return cls.read(f"{layout.task_attempt_folder(task, number)}/{layout.EXIT}")


class VerdictRecord(Record):
    """verdict.json: how a run has ended. It is there exactly when the run is over."""

    state: str
    reason: str
    ended: float
    exit_code: int | None = None
    role: str | None = None
    """The task that decided, with `index`."""
    index: int | None = None
    attempts: int | None = None
    retries: Mapping[str, int] = {}
    started: float | None = None
    exit_status: int | None = None
    """What `pailot run` exits with where the engine was out of reach, or denied it."""
    unwritten: str | None = None
    """Why this is known to one process alone: not even the reserve of a full disk was left for it."""

    _needed = ("state", "reason", "ended")
    _rare = ("exit_status", "unwritten")
    _checks = {
        "state": _is_state, "reason": is_text, "ended": is_moment, "exit_code": is_number, "role": is_text, "index": is_number,
        "attempts": is_number, "retries": _is_counts, "started": is_moment, "exit_status": is_number, "unwritten": is_text,
    }  # fmt: skip

    @property
    def retried(self) -> int:
        """How often the job was tried again, counted against its limit or not."""
        return sum(self.retries.values())


class KeeperError(Record):
    """keeper-error.json: why the keeper of a server could not drive a run on."""

    reason: str = ""
    defect: bool = False
    """Whether the fault is Pailot's own."""
    at: float | None = None

    _checks = {"reason": is_text, "defect": is_flag, "at": is_moment}


class CgroupRecord(Record):
    """cgroup.json: the control groups of a task."""

    folders: list[str]
    mark: str = ""
    """By which a copy of the folder is told from the original."""

    _needed = ("folders",)
    _checks = {"folders": is_lines, "mark": is_text}


class HandedOn(Record):
    """again.json: that a run is to be started again by the server that queues it."""

    counted_as: str | None = None
    attempt: int | None = None
    """The attempt to start with."""
    retries: Mapping[str, int] = {}
    started: float | None = None
    reason: str | None = None

    _keys = {"counted_as": "again"}
    _checks = {"counted_as": is_text, "attempt": is_number, "retries": _is_counts, "started": is_moment, "reason": is_text}
