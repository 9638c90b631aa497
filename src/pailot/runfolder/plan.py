"""The plan of a job: per role exactly what will run, with what, in which order.

`planning` makes it; `plan_codec` writes it and reads it back. It holds no credential of a registry and no secret: references
stand for secrets, and what they refer to travels beside the plan.
"""

from __future__ import annotations

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..job_values import Auth, Completion, Options, Resources, Storage
    from ..problem import Problem

MASK = "******"


class Image(Value):
    """The container image of a role. The password in `auth` is a reference to a secret, or masked."""

    uri: str
    auth: Auth | None = None


class Scripts(Value):
    """The bash scripts of a task; a phase without work has none. Secrets are still references."""

    main: str
    start: str = ""
    exit: str = ""


class PlannedCallback(Value):
    """Commands of a prerequisite or plugin for one event, rendered."""

    prerequisite: str
    event: str
    commands: tuple[str, ...]
    ignore_failure: bool = False


class Provision(Value):
    """Something Pailot brings to a task before it starts, from the machine the job is started on.

    Kinds: `fetch` (a URI, cached, its path in `variable`), `code` (a folder copied into the working
    directory), `ssh-key` (a key pair of the job, its path in `variable`).
    """

    kind: str
    source: str = ""
    variable: str = ""
    sha256: str = ""
    shared: str = ""
    """NAME@VERSION of the data set of the library that it is: all jobs of a machine may share its content."""


class RolePlan(Value):
    """One role: what each of its tasks runs."""

    name: str
    instances: int
    image: Image
    entrypoint: str
    scripts: Scripts
    environment: Mapping[str, str]
    """Variables that all tasks of the role share."""
    resources: Resources
    task_retry_count: int
    completion: Completion
    prerequisites: tuple[str, ...] = ()
    callbacks: tuple[PlannedCallback, ...] = ()
    provisions: tuple[Provision, ...] = ()
    port_base: Mapping[str, int] = {}
    peers_by_name: bool = True
    """Whether addresses of all peers are exported one variable each."""

    def task_environment(self, index: int) -> dict[str, str]:
        """The variables that only the task with this index has."""
        names = ("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "PAI_TASK_INDEX", "FC_TASK_INDEX", "RANK")
        return {name: str(index) for name in names if name not in self.environment}  # what the job sets stays


STORAGES = "extras.storages"


class Plan(Value):
    """What a job will run, before anything is placed or started."""

    name: str
    user: str
    roles: Mapping[str, RolePlan]
    job_retry_count: int
    virtual_cluster: str
    priority: str
    gang: bool
    options: Options
    storages: tuple[Storage, ...] = ()
    default_storages: bool = False
    warnings: tuple[Problem, ...] = ()
    storages_key: str = STORAGES
    """What the job file says its storages with."""

    @property
    def full_name(self) -> str:
        """The name with the user before it: `user~name`."""
        return f"{self.user}~{self.name}"

    @property
    def task_count(self) -> int:
        """The number of tasks of all roles."""
        return sum(role.instances for role in self.roles.values())

    def to_json(self, only_role: str | None = None) -> dict[str, Any]:
        """What `plan --json` prints; secrets appear as references, credentials masked."""
        return {
            "name": self.name,
            "user": self.user,
            "virtualCluster": self.virtual_cluster,
            "priority": self.priority,
            "gangAllocation": self.gang,
            "jobRetryCount": self.job_retry_count,
            "storages": [{"name": each.name, "mountPath": each.mount_path} for each in self.storages],
            "defaultStorages": self.default_storages,
            "options": _options(self.options),
            "taskRoles": {name: _role(role) for name, role in self.roles.items() if only_role in (None, name)},
            "warnings": [problem.to_json() for problem in self.warnings],
        }


def _role(role: RolePlan) -> dict[str, Any]:
    auth = role.image.auth
    wanted = role.resources
    return {
        "instances": role.instances,
        "image": role.image.uri,
        "imageAuth": auth and {"username": auth.username, "password": MASK, "registryuri": auth.registry},
        "entrypoint": role.entrypoint,
        "script": {"start": role.scripts.start, "main": role.scripts.main, "exit": role.scripts.exit},
        "environment": dict(role.environment),
        "taskEnvironment": [role.task_environment(index) for index in range(role.instances)],
        "resources": {
            "cpu": wanted.cpu,
            "memoryMB": wanted.memory_mb,
            "gpu": wanted.gpu,
            "shmMB": wanted.shm_mb,
            "infiniband": wanted.infiniband,
            "ports": dict(wanted.ports),
            "portBase": dict(role.port_base),
        },
        "retries": role.task_retry_count,
        "completion": {
            "minFailedInstances": _bound(role.completion.min_failed),
            "minSucceededInstances": _bound(role.completion.min_succeeded),
        },
        "prerequisites": list(role.prerequisites),
        "callbacks": [
            {
                "prerequisite": each.prerequisite,
                "event": each.event,
                "commands": list(each.commands),
                "failurePolicy": "ignore" if each.ignore_failure else "fail",
            }
            for each in role.callbacks
        ],
        "provisions": [
            {"kind": each.kind, "source": each.source, "variable": each.variable, "sha256": each.sha256}
            for each in role.provisions
        ],
    }


def _bound(value: int | None) -> int:
    return -1 if value is None else value


def _options(options: Options) -> dict[str, object]:
    return {
        "maxRunSeconds": options.max_run_seconds,
        "graceSeconds": options.grace_seconds,
        "retryDelaySeconds": options.retry_delay_seconds,
        "holdOnFailureMinutes": options.hold_on_failure_minutes,
        "holdCommand": options.hold_command,
        "gpuType": options.gpu_type,
    }
