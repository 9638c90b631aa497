"""The parts of a job, written in Python. Each says what it would be in the job file with `to_dict()`."""

from __future__ import annotations

from ..errors import suggestion
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class _Part(Value):
    """A part of a job that users write: a wrong name of an argument is told with the one that was probably meant."""

    _general_instances = 0  # each instance is checked

    @classmethod
    def _make_init(cls) -> None:
        super()._make_init()
        made = cls.__init__

        def checked(self: Any, *arguments: Any, **named: Any) -> None:
            for name in named:
                if name not in cls._fields:
                    raise TypeError(f"{cls.__name__}() has no argument '{name}'{suggestion(name, cls._fields)}")
            made(self, *arguments, **named)

        cls.__init__ = checked  # type: ignore[method-assign]  # as the one that it stands before


class Callback(_Part):
    """Commands for one event of a task's life: containerStart, containerExit, taskSucceeds, taskFails."""

    event: str
    commands: str | Sequence[str]
    failure_policy: str | None = None

    def to_dict(self) -> dict[str, object]:
        """The callback as in the job file."""
        return _filled(event=self.event, commands=listed(self.commands), failurePolicy=self.failure_policy)


class Auth(_Part):
    """Credentials of a registry; write the password as a reference: `<% $secrets.NAME %>`."""

    username: str
    password: str
    registry: str | None = None

    def to_dict(self) -> dict[str, object]:
        """The credentials as in the job file: the password as it was given."""
        return _filled(username=self.username, password=self.password, registryuri=self.registry)

    def __repr__(self) -> str:
        return f"Auth(username={self.username!r}, password='******', registry={self.registry!r})"


class Prerequisite(_Part):
    """What all prerequisites have in common; `more` holds keys for `<% this.parameters.KEY %>`."""

    name: str
    uri: str | Sequence[str] | None = None
    plugin: str | None = None
    require: Sequence[str] = ()
    callbacks: Sequence[Callback] = ()
    failure_policy: str | None = None
    version: str | None = None
    contributor: str | None = None
    description: str | None = None
    more: Mapping[str, Any] = {}
    _type = "data"

    def to_dict(self) -> dict[str, object]:
        """The prerequisite as in the job file."""
        uri = self.uri if self.uri is None or isinstance(self.uri, str) else list(self.uri)
        return {
            "name": self.name,
            "type": self._type,
            **_filled(
                version=self.version,
                contributor=self.contributor,
                description=self.description,
                uri=[uri] if self._type == "data" and isinstance(uri, str) else uri,
                plugin=self.plugin,
                require=list(self.require) or None,
                callbacks=[each.to_dict() for each in self.callbacks] or None,
                failurePolicy=self.failure_policy,
            ),
            **self.more,
        }


class Data(Prerequisite):
    """Data that a role reads: `$data` in its templates."""


class Script(Prerequisite):
    """Code that a role runs: `$script` in its templates."""

    _type = "script"


class Output(Prerequisite):
    """Where a role writes: `$output` in its templates."""

    _type = "output"


class DockerImage(Prerequisite):
    """The image of a role."""

    auth: Auth | None = None
    _type = "dockerimage"

    def to_dict(self) -> dict[str, object]:
        """The image as in the job file, with its credentials."""
        return {**super().to_dict(), **_filled(auth=self.auth.to_dict() if self.auth else None)}


class TaskRole(_Part):
    """A kind of task and how many of it there are. Prerequisites are given as objects, or by name.

    `image` is a DockerImage, the name of one, or simply the image: `python:3.12`.

    >>> role = pailot.TaskRole(commands="python train.py", image="python:3.12", instances=4, gpu=1)
    >>> role.to_dict()["resourcePerInstance"]
    {'cpu': 1, 'memoryMB': 1024, 'gpu': 1}
    """

    commands: str | Sequence[str]
    image: DockerImage | str
    instances: int = 1
    cpu: int = 1
    memory_mb: int = 1024
    gpu: int = 0
    ports: Mapping[str, int] = {}
    shm_mb: int | None = None
    infiniband: bool | None = None
    task_retry_count: int = 0
    min_failed: int | None = None
    min_succeeded: int | None = None
    data: Data | str | None = None
    script: Script | str | None = None
    output: Output | str | None = None
    prerequisites: Sequence[Prerequisite | str] = ()

    def to_dict(self) -> dict[str, object]:
        """The role as in the file; the image's name is filled in by the job."""
        options = _filled(shmMB=self.shm_mb, infiniband=self.infiniband)
        completion = _filled(minFailedInstances=self.min_failed, minSucceededInstances=self.min_succeeded)
        return _filled(
            instances=self.instances,
            completion=completion or None,
            taskRetryCount=self.task_retry_count or None,
            prerequisites=[_name(each) for each in self.prerequisites] or None,
            dockerImage=_name(self.image),
            data=_name(self.data),
            script=_name(self.script),
            output=_name(self.output),
            extraContainerOptions=options or None,
            resourcePerInstance=_filled(
                cpu=self.cpu, memoryMB=self.memory_mb, gpu=self.gpu, ports=dict(self.ports) if self.ports else None
            ),
            commands=listed(self.commands),
        )


class Deployment(_Part):
    """Commands that adapt the job's roles to a place: role names to lists of commands."""

    name: str
    pre_commands: Mapping[str, Sequence[str]] = {}
    post_commands: Mapping[str, Sequence[str]] = {}

    def to_dict(self) -> dict[str, object]:
        """The deployment as in the job file."""
        roles = dict.fromkeys([*self.pre_commands, *self.post_commands])
        return {
            "name": self.name,
            "taskRoles": {
                role: _filled(
                    preCommands=listed(self.pre_commands[role]) if role in self.pre_commands else None,
                    postCommands=listed(self.post_commands[role]) if role in self.post_commands else None,
                )
                for role in roles
            },
        }


def collect(roles: Mapping[str, TaskRole], prerequisites: Sequence[Prerequisite]) -> tuple[list[Prerequisite], dict[str, object]]:
    """All prerequisites of a job, those that its roles bring along added, and the roles as in the file."""
    found: dict[tuple[str, str], Prerequisite] = {}
    extra: list[Prerequisite] = []

    def add(each: Prerequisite) -> None:
        key = (each._type, each.name)
        if key not in found:
            found[key] = each
        elif found[key] != each:
            extra.append(each)  # the reader tells that there are two

    for each in prerequisites:
        add(each)
    for role in roles.values():
        for part in (role.image, role.data, role.script, role.output, *role.prerequisites):
            if isinstance(part, Prerequisite):
                add(part)
    images = {each.uri: each.name for (kind, _), each in found.items() if kind == "dockerimage"}
    written: dict[str, object] = {}
    for name, role in roles.items():
        node = role.to_dict()
        wanted = str(node["dockerImage"])
        if ("dockerimage", wanted) not in found:
            if wanted not in images:
                images[wanted] = f"image{len(images) + 1}" if images else "image"
                add(DockerImage(images[wanted], wanted))
            node["dockerImage"] = images[wanted]
        written[name] = node
    return [*found.values(), *extra], written


def listed(commands: str | Sequence[str]) -> list[str]:
    return [commands] if isinstance(commands, str) else list(commands)


def _name(part: Prerequisite | str | None) -> str | None:
    return part.name if isinstance(part, Prerequisite) else part


def _filled(**keys: Any) -> dict[str, object]:
    return {key: value for key, value in keys.items() if value is not None}
