"""The records that engines and the shims of containers keep in a run's folder, as values."""

from __future__ import annotations

import os

from . import layout
from .records import Record, is_flag, is_lines, is_moment, is_number, is_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(each) is int for each in value)


def _is_rules(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, list)
        and len(each) == 4
        and isinstance(each[0], str)
        and type(each[1]) is int
        and all(bound is None or type(bound) is int for bound in each[2:])
        for each in value
    )


class ContainerRecord(Record):
    """container.json: the container of a task, and how its engine is called."""

    command: list[str]
    """The words that call the container engine."""
    name: str
    memory: str | None = None
    """The folder in memory, inside the container, that holds the task's variables."""
    mark: str = ""
    """By which a copy of the folder is told from the original."""

    _needed = ("command", "name")
    _checks = {"command": is_lines, "name": is_text, "memory": is_text, "mark": is_text}

    @classmethod
    def of(cls, task: str) -> Self | None:
        """The record in the folder of a task, if it has a container."""
        return cls.read(os.path.join(task, layout.CONTAINER))


class SlurmJobRecord(Record):
    """slurm.json: the Slurm job of an attempt."""

    job: str
    comment: str = ""
    """By which the job is found where sbatch did not return."""
    at: float | None = None
    code: str | None = None
    """The archive of our code that went along, where the nodes do not share the home."""

    _needed = ("job",)
    _rare = ("code",)
    _checks = {"job": is_text, "comment": is_text, "at": is_moment, "code": is_text}

    @classmethod
    def of(cls, attempt: str) -> Self | None:
        """The record in the folder of an attempt, if Slurm has taken it."""
        return cls.read(os.path.join(attempt, layout.SLURM_JOB))


class FollowedRecord(Record):
    """followed.json: how far the events of Slurm's driver were taken into the journal."""

    offset: int = 0

    _checks = {"offset": is_number}


class RemoteJobRecord(Record):
    """remote.json of an attempt: the job on the OpenPAI server."""

    job: str
    server: str
    submitted: bool = False

    _needed = ("job", "server")
    _checks = {"job": is_text, "server": is_text, "submitted": is_flag}


class FetchedLogsRecord(Record):
    """remote.json beside the logs of a task: of each log how many bytes were taken, and how long our file was then."""

    stdout: list[int] = [0, 0]
    stderr: list[int] = [0, 0]
    all: list[int] = [0, 0]

    _checks = {"stdout": _is_pair, "stderr": _is_pair, "all": _is_pair}


class KubernetesRecord(Record):
    """kubernetes.json: where the pods of an attempt are, and what its tasks' ends decide."""

    run: str
    """By this label, and the number of the attempt, its objects are found."""
    attempt: int
    namespace: str
    context: str = ""
    rules: list[list[object]] = []
    """Of each role: its name, its instances, and its two bounds."""
    created: bool = False
    """Whether everything was made in the cluster; before that, what is missing is made again."""

    _needed = ("run", "attempt", "namespace")
    _checks = {
        "run": is_text, "attempt": is_number, "namespace": is_text, "context": is_text, "rules": _is_rules,
        "created": is_flag,
    }  # fmt: skip

    @classmethod
    def of(cls, attempt: str) -> Self | None:
        """The record in the folder of an attempt, if the cluster was asked for it."""
        return cls.read(os.path.join(attempt, layout.KUBERNETES))
