"""What the travelling driver is told about an attempt: everything that is known before Slurm has placed it.

Addresses and ports are not. Where they belong stand marks, which the driver replaces once every step has said where it is.
"""

from __future__ import annotations

import os

from ...planning import placement as placing
from ...runfolder import layout
from ..preparation.tasks import checkpoint_folder, own_variables, shared_variables
from .sbatch_request import gres

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...planning import RolePlan
    from ..contract import Attempt
    from .container_wrappers import Seen
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
    seen: Mapping[tuple[str, int], Seen] | None = None,
) -> dict[str, Any]:
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
            told = seen[role.name, index].variables if seen else {}
            given = provided.get(role.name, {})
            environment = own_variables(attempt, role, index, placement, works[role.name, index], told, given)
            base = {label: first + index * ports[role.name, index][label] for label, first in role.port_base.items()}
            tasks.append(
                {
                    "role": role.name,
                    "index": index,
                    "folder": task_folder(attempt, role.name, index),
                    "work": works[role.name, index],
                    "checkpoint": checkpoint_folder(attempt, role.name, index),
                    "environment": environment,
                    "ports": ports[role.name, index],
                    "portBase": base,
                    "component": component[role.name],
                    **({"wrapper": seen[role.name, index].wrapper} if seen else {}),
                }
            )
    return {
        "token": token,
        "rules": [
            [role.name, role.instances, role.completion.min_failed, role.completion.min_succeeded] for role in plan.roles.values()
        ],
        "maxRunSeconds": plan.options.max_run_seconds,
        "graceSeconds": plan.options.grace_seconds,
        "environment": dict(attempt.context.environment),
        "shared": shared_variables(attempt, placement),
        "roles": {role.name: _role(attempt, role, wrappers.get(role.name, ())) for role in plan.roles.values()},
        "tasks": tasks,
    }


def _ports(role: RolePlan, index: int) -> dict[str, int]:
    wanted = dict(role.resources.ports)
    if index == 0:
        wanted.setdefault("master", 1)
    return wanted


def _role(attempt: Attempt, role: RolePlan, wrapper: tuple[str, ...]) -> dict[str, Any]:
    options = attempt.plan.options
    return {
        "cpus": role.resources.cpu,
        "memoryMb": role.resources.memory_mb,
        "gres": gres(attempt.plan, role),
        "task": {
            "main": role.scripts.main,
            "start": role.scripts.start,
            "exit": role.scripts.exit,
            "retries": role.task_retry_count,
            "retry_delay": options.retry_delay_seconds,
            "grace": options.grace_seconds,
            "hold_seconds": options.hold_on_failure_minutes * 60,
            "hold_command": options.hold_command or "",
            "rotate_bytes": attempt.context.rotate_bytes,
            "foreign_stop": "user",
            "wrapper": wrapper,
            "script_on_input": bool(wrapper),
        },
    }
