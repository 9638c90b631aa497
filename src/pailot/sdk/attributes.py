"""Where a problem of a job that was written in Python stands: the attribute, since there is no file with lines."""

from __future__ import annotations

import re

from ..protocol.model import Origin
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..problem import Problem
    from ..protocol.problems import Finding
    from .builders import Deployment, Prerequisite, TaskRole

NO_FILE = "-"
"""The file of a problem that was found in the text of such a job."""

# The keys of the file whose attributes are called otherwise, and not only spelt in another way.
_OF_JOB = {"defaults.virtualCluster": "virtual_cluster", "defaults.deployment": "deployment"}
_OF_ROLE = {
    "completion.minFailedInstances": "min_failed",
    "completion.minSucceededInstances": "min_succeeded",
    "dockerImage": "image",
    "extraContainerOptions.shmMB": "shm_mb",
    "extraContainerOptions.infiniband": "infiniband",
    "resourcePerInstance.cpu": "cpu",
    "resourcePerInstance.memoryMB": "memory_mb",
    "resourcePerInstance.gpu": "gpu",
    "resourcePerInstance.ports": "ports",
}
_OF_PREREQUISITE = {"auth.registryuri": "auth.registry"}
_SPELT = {
    key: re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", key)
    for key in ("jobRetryCount", "taskRetryCount", "taskRoles", "failurePolicy", "preCommands", "postCommands")
}


class Parts(Value):
    """What a job was made of, as far as its attributes are named."""

    roles: Mapping[str, TaskRole]
    prerequisites: Sequence[Prerequisite]
    deployments: Sequence[Deployment]
    options: Mapping[str, str]
    """The arguments of the job that are written below `extras.pailot`: the key there to the name of the argument."""

    def attribute(self, path: str) -> str:
        """The attribute that a path of the job file was written from.

        >>> Parts({"worker": role}, (), (), {}).attribute("taskRoles.worker.resourcePerInstance.memoryMB")
        "TaskRole 'worker'.memory_mb"
        """
        for name in sorted(self.roles, key=len, reverse=True):
            rest = _below(path, f"taskRoles.{name}")
            if rest is not None:
                return _joined(f"TaskRole '{name}'", _renamed(rest, _OF_ROLE))
        lists: dict[str, Sequence[Prerequisite | Deployment]] = {
            "prerequisites": self.prerequisites,
            "deployments": self.deployments,
        }
        for key, parts in lists.items():
            for position, part in enumerate(parts):
                rest = _below(path, f"{key}[{position}]")
                if rest is not None:
                    return _joined(f"{type(part).__name__} '{part.name}'", _renamed(_by_kind(rest), _OF_PREREQUISITE))
        of_options = {f"extras.pailot.{key}": argument for key, argument in self.options.items()}
        return _joined("Job", _renamed(path, {**_OF_JOB, **of_options}))

    def named(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Problems of the text that was made of these parts, each at its attribute; others stay where they are."""
        return tuple(
            each.replace(file=self.attribute(each.path), line=0, column=0, source="") if each.file == NO_FILE else each
            for each in problems
        )


class WrittenInPython(Origin):
    """The origin of a job that no file holds."""

    __slots__ = ("parts",)

    def __init__(self, origin: Origin, parts: Parts) -> None:
        super().__init__(origin.file, origin.document, origin.findings, origin.overridden)
        self.parts = parts

    def locate_all(self, findings: Iterable[Finding]) -> tuple[Problem, ...]:
        return self.parts.named(super().locate_all(findings))


def _below(path: str, start: str) -> str | None:
    """The rest of a path that goes through another, or None."""
    if path == start:
        return ""
    return path[len(start) :].lstrip(".") if path.startswith((f"{start}.", f"{start}[")) else None


def _by_kind(rest: str) -> str:
    """`taskRoles.worker.preCommands[0]` of a deployment as its attribute has it: `preCommands.worker[0]`."""
    found = re.fullmatch(r"taskRoles\.(.+)\.(preCommands|postCommands)(.*)", rest)
    return f"{found[2]}.{found[1]}{found[3]}" if found else rest


def _renamed(rest: str, names: Mapping[str, str]) -> str:
    for key, name in names.items():
        below = _below(rest, key)
        if below is not None:
            return _joined(name, below)
    first = re.match(r"[^.\[]*", rest)
    assert first is not None
    rest = _SPELT.get(first[0], first[0]) + rest[first.end() :]
    return re.sub(r"(?<=\]\.)failurePolicy$", "failure_policy", rest)


def _joined(start: str, rest: str) -> str:
    return f"{start}{rest}" if not rest or rest[0] == "[" else f"{start}.{rest}"
