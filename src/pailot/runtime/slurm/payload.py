"""What the driver of an attempt is told: payload.json, which all may read, and the private part beside it.

The plan stands in it as `runfolder.plan_codec` writes it, without what only the login node needs. Marks stand where a text
is private, and where an address or a port becomes known only on the nodes; all marks begin with `token`.
"""

from __future__ import annotations

import json

from ...runfolder import plan_codec
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...runfolder.plan import Plan, RolePlan


class RoleNeeds(Value):
    """What the tasks of a role need beside its plan: Slurm's words for GPUs, and the words before bash."""

    gres: str
    wrapper: tuple[str, ...] = ()


class TaskNeeds(Value):
    """One task: its folders, variables and ports. `component` is the part of a heterogeneous job that it belongs to."""

    role: str
    index: int
    folder: str
    work: str
    checkpoint: str
    environment: Mapping[str, str]
    ports: Mapping[str, int]
    port_base: Mapping[str, int]
    component: int
    wrapper: tuple[str, ...] | None = None
    """Words before bash of its own, in place of the role's."""


class Payload(Value):
    """Everything that is known of an attempt before Slurm has placed it."""

    token: str
    plan: Plan
    environment: Mapping[str, str]
    """What tasks inherit from the process that started the job."""
    shared: Mapping[str, str]
    """Variables of all tasks."""
    roles: Mapping[str, RoleNeeds]
    tasks: tuple[TaskNeeds, ...]
    rotate_bytes: int = 0
    script: str = ""
    """The batch script, for those who want to see it."""
    away: bool = False
    """Whether the nodes see nothing of the home, so that everything came along."""
    fetch_seconds: float = 0
    """Then: how long the driver waits at its end until its folder was fetched."""
    node_folder: str = ""
    """Then: where each node keeps what came along; empty for its own choice."""

    def changed(self, change: Callable[[str], str]) -> Payload:
        """The payload with every text changed that may hold something private: scripts, and the variables of tasks."""
        options = self.plan.options
        command = options.hold_command and change(options.hold_command)
        roles = {name: _with_scripts(role, change) for name, role in self.plan.roles.items()}
        return self.replace(
            plan=self.plan.replace(roles=roles, options=options.replace(hold_command=command)),
            tasks=tuple(
                task.replace(environment={name: change(value) for name, value in task.environment.items()}) for task in self.tasks
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The content of payload.json."""
        more = {"away": True, "fetchSeconds": self.fetch_seconds, "nodeFolder": self.node_folder} if self.away else {}
        return {
            "token": self.token,
            "plan": plan_codec.document(self.plan),
            "environment": self.environment,
            "shared": self.shared,
            "roles": {name: list(needs.__dict__.values()) for name, needs in self.roles.items()},
            "tasks": [list(task.__dict__.values()) for task in self.tasks],
            "rotateBytes": self.rotate_bytes,
            "script": self.script,
            **more,
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Payload:
        """What `to_json` wrote; PlanFormatError if it holds no plan, KeyError if something else is missing."""
        return cls(
            found["token"],
            plan_codec.plan_of(found["plan"]),
            found["environment"],
            found["shared"],
            {name: RoleNeeds(gres, tuple(wrapper)) for name, (gres, wrapper) in found["roles"].items()},
            tuple([TaskNeeds(*rest).replace(wrapper=own and tuple(own)) for *rest, own in found["tasks"]]),
            found["rotateBytes"],
            found["script"],
            found.get("away", False),
            found.get("fetchSeconds", 0.0),
            found.get("nodeFolder", ""),
        )


def _with_scripts(role: RolePlan, change: Callable[[str], str]) -> RolePlan:
    scripts = role.scripts
    return role.replace(
        scripts=scripts.replace(main=change(scripts.main), start=change(scripts.start), exit=change(scripts.exit))
    )


class PrivatePart(Value):
    """What no readable file may hold. It goes to the driver in a file that the driver removes as soon as it has read it."""

    secrets: Mapping[str, str] = {}
    """What stands in the scripts for a secret, and the secret."""
    hidden: tuple[str, ...] = ()
    """Texts that no log may show."""
    texts: Mapping[str, str] = {}
    """Marks of the payload, and the texts that belong there."""
    environment: Mapping[str, str] = {}
    """What tasks inherit besides what the payload says."""

    def __repr__(self) -> str:
        return "PrivatePart()"

    def to_bytes(self) -> bytes:
        """The content of its file, before it is sealed."""
        return json.dumps(self.__dict__).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> PrivatePart:
        """What `to_bytes` wrote."""
        found = json.loads(data)
        return cls(found["secrets"], tuple(found["hidden"]), found["texts"], found["environment"])
