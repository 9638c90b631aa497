"""Jobs of version 1, as `luigi.contrib.pai` writes them: the same attributes, the same JSON."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def slot_to_dict(o: Any) -> dict[str, object]:
    """What of an object's slots is set; for `json.dumps(job, default=slot_to_dict)`."""
    return {key: getattr(o, key) for key in o.__slots__ if not key.startswith("__") and getattr(o, key, None) is not None}


class PaiJob:
    """A job: its name, the image of all its tasks, and at least one task role."""

    __slots__ = (
        "jobName",
        "image",
        "authFile",
        "dataDir",
        "outputDir",
        "codeDir",
        "virtualCluster",
        "taskRoles",
        "gpuType",
        "retryCount",
    )

    def __init__(self, jobName: str, image: str, tasks: list[TaskRole]) -> None:  # noqa: N803  # their spelling
        self.jobName, self.image = jobName, image
        self.authFile: str | None = None
        self.dataDir: str | None = None
        self.outputDir: str | None = None
        self.codeDir: str | None = None
        self.virtualCluster: str | None = None
        self.gpuType: str | None = None
        self.retryCount: int | None = None
        given: object = tasks
        if not isinstance(given, list) or not given:
            raise TypeError("you must specify one task at least.")
        self.taskRoles = tasks


class Port:
    """Ports of a task role: a label, the first one (0 for any), how many."""

    __slots__ = ("label", "beginAt", "portNumber")

    def __init__(self, label: str, begin_at: int = 0, port_number: int = 1) -> None:
        self.label, self.beginAt, self.portNumber = label, begin_at, port_number


_NO_PORTS: list[Port] = []


class TaskRole:
    """A kind of task and how many of it there are."""

    __slots__ = (
        "name",
        "taskNumber",
        "cpuNumber",
        "memoryMB",
        "shmMB",
        "gpuNumber",
        "portList",
        "command",
        "minFailedTaskCount",
        "minSucceededTaskCount",
    )

    def __init__(
        self,
        name: str,
        command: str,
        taskNumber: int = 1,  # noqa: N803  # their spelling
        cpuNumber: int = 1,  # noqa: N803
        memoryMB: int = 2048,  # noqa: N803
        shmMB: int = 64,  # noqa: N803
        gpuNumber: int = 0,  # noqa: N803
        portList: list[Port] = _NO_PORTS,  # noqa: N803  # shown as their default; each role has a list of its own
    ) -> None:
        self.name, self.command = name, command
        self.taskNumber, self.cpuNumber, self.memoryMB, self.shmMB = taskNumber, cpuNumber, memoryMB, shmMB
        self.gpuNumber, self.portList = gpuNumber, [] if portList is _NO_PORTS else portList
        self.minFailedTaskCount: int | None = None
        self.minSucceededTaskCount: int | None = None
