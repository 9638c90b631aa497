"""What the travelling driver is told about an attempt: everything that is known before Slurm has placed it.

Addresses and ports are not. Where they belong stand marks, which the driver replaces once every step has said where it is.
"""

from __future__ import annotations

import os

from ...job_values import Options
from ...planning import placement as placing
from ...runfolder import layout
from ...runfolder.plan import Image
from ...runtime.slurm.payload import Payload, RoleNeeds, TaskNeeds
from ..preparation.tasks import checkpoint_folder, own_variables, shared_variables
from .sbatch_request import gres

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...planning import Plan, RolePlan
    from ..contract import Attempt
    from .container_wrappers import SeenChannels
    from .sbatch_request import Component


def task_folder(attempt: Attempt, role: str, index: int) -> str:
    return layout.task_folder(attempt.folder, role, index)


def new_token() -> str:
    """What all marks of a payload begin with; no text of a job holds it."""
    return f"pailot-{os.urandom(6).hex()}-"


def on_nodes(attempt: Attempt, token: str) -> Attempt:
    """The attempt in folders that each node has for itself: a mark stands for where they are."""
    root = f"{token}{{root}}"
    # One file a log: so it can be brought to the login node by what it gained.
    context = attempt.context.replace(rotate_bytes=0)
    return attempt.replace(folder=f"{root}/attempt", checkpoints=f"{root}/checkpoints", context=context)


def build(
    attempt: Attempt,
    components: Sequence[Component],
    works: Mapping[tuple[str, int], str],
    provided: Mapping[str, Mapping[str, str]],
    wrappers: Mapping[str, tuple[str, ...]],
    token: str = "",
    seen: Mapping[tuple[str, int], SeenChannels] | None = None,
) -> Payload:
    """The payload; references stand in it for secrets, and `private_part` takes out what else is private.

    `wrappers` are the words before bash for each role; `seen` is what each task sees of channels, with words of its own.
    """
    seen = seen or {}
    plan = attempt.plan
    token = token or new_token()
    ports = {(role.name, index): _ports(role, index) for role in plan.roles.values() for index in range(role.instances)}
    numbers = {place: number for number, place in enumerate(ports)}
    marks: Any = {  # texts where numbers are to be: only ever put into texts
        place: {
            label: tuple(f"{token}{{p{numbers[place]}.{label}.{position}}}" for position in range(count))
            for label, count in labels.items()
        }
        for place, labels in ports.items()
    }
    placement = placing.Placement({place: f"{token}{{h{number}}}" for place, number in numbers.items()}, marks)
    component = {name: number for number, each in enumerate(components) for name in each.roles}
    tasks = []
    for role in plan.roles.values():
        for index in range(role.instances):
            task = role.name, index
            told = seen[task].variables if seen else {}
            base = {label: first + index * ports[task][label] for label, first in role.port_base.items()}
            tasks.append(
                TaskNeeds(
                    role.name,
                    index,
                    task_folder(attempt, role.name, index),
                    works[task],
                    checkpoint_folder(attempt, role.name, index),
                    own_variables(attempt, role, index, placement, works[task], told, provided.get(role.name, {})),
                    ports[task],
                    base,
                    component[role.name],
                    tuple(seen[task].wrapper) if seen else None,
                )
            )
    return Payload(
        token,
        _travelling(plan),
        dict(attempt.context.environment),
        shared_variables(attempt, placement),
        {role.name: RoleNeeds(gres(plan, role), tuple(wrappers.get(role.name, ()))) for role in plan.roles.values()},
        tuple(tasks),
        attempt.context.rotate_bytes,
    )


def _travelling(plan: Plan) -> Plan:
    """The plan without what only the login node needs; the variables of a role stand with its tasks."""
    options = plan.options
    return plan.replace(
        roles={
            name: role.replace(image=Image(role.image.uri), entrypoint="", environment={}, callbacks=(), provisions=())
            for name, role in plan.roles.items()
        },
        options=Options(
            options.max_run_seconds,
            options.grace_seconds,
            options.retry_delay_seconds,
            options.hold_on_failure_minutes,
            options.hold_command,
        ),
        warnings=(),
    )


def _ports(role: RolePlan, index: int) -> dict[str, int]:
    wanted = dict(role.resources.ports)
    if index == 0:
        wanted.setdefault("master", 1)
    return wanted
