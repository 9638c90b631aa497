"""What the pods of an attempt are told: the payload, with marks for the addresses that only the cluster will know."""

from __future__ import annotations

import json
import os

from ... import credentials
from ...planning import placement as placing
from ...runfolder import layout
from ...runtime.kubernetes import pod_layout
from ...runtime.kubernetes.payload import Payload, RolePart, mark
from ..preparation.tasks import own_variables, shared_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...planning import Plan, RolePlan
    from ..contract import Attempt
    from .choices import Choices

FIRST_PORT = 20000
"""Each pod has a network of its own: ports can be the same in all of them, and are known beforehand."""


def payload_of(attempt: Attempt, choices: Choices, token: str = "") -> Payload:
    """Everything that the pods of an attempt need to know."""
    plan, options = attempt.plan, attempt.plan.options
    token = token or f"pailot-{os.urandom(6).hex()}-"
    checkpoints = pod_layout.CHECKPOINTS if choices.checkpoints else f"{pod_layout.RUN}/checkpoints"
    there = attempt.replace(folder=pod_layout.ATTEMPT, checkpoints=checkpoints)
    placement = placement_of(plan, lambda number: mark(token, number))
    roles = []
    for role in plan.roles.values():
        works = (layout.task_folder(pod_layout.ATTEMPT, role.name, index) for index in range(role.instances))
        environments = tuple(
            own_variables(there, role, index, placement, f"{work}/{layout.WORK}") for index, work in enumerate(works)
        )
        scripts = role.scripts
        roles.append(RolePart(role.name, scripts.main, scripts.start, scripts.exit, role.task_retry_count, environments))
    made = Payload(
        token=token,
        roles=tuple(roles),
        shared=shared_variables(there, placement),
        peers=tuple(placing.peers(plan, placement)),
        secrets=dict(attempt.context.secrets),
        retry_delay=options.retry_delay_seconds,
        grace=options.grace_seconds,
        hold_seconds=options.hold_on_failure_minutes * 60,
        hold_command=options.hold_command or "",
        fetch_seconds=choices.fetch_seconds,
        max_run_seconds=options.max_run_seconds or 0,
    )
    return made.replace(hidden=_hidden(attempt, made))


def is_private(payload: Payload) -> bool:
    """Whether it holds anything that not everybody in the namespace may read."""
    return bool(payload.secrets or payload.hidden)


def _hidden(attempt: Attempt, payload: Payload) -> tuple[str, ...]:
    """What the pods' logs may not show. Credentials of this machine's environment that the job does not use stay here."""
    inherited = set(credentials.of_environment(attempt.context.environment))
    used = json.dumps([[role.main, role.start, role.exit, list(role.environments)] for role in payload.roles], ensure_ascii=False)
    used += "\n".join(payload.secrets.values()) + payload.hold_command
    return tuple(text for text in attempt.context.hidden if text not in inherited or text in used)


def placement_of(plan: Plan, address: Address) -> placing.Placement:
    """Where each task is: `address` tells it by the task's number in the job."""
    places = [(role, index) for role in plan.roles.values() for index in range(role.instances)]
    addresses = {(role.name, index): address(number) for number, (role, index) in enumerate(places)}
    return placing.Placement(addresses, {(role.name, index): ports_of(role, index) for role, index in places})


def ports_of(role: RolePlan, index: int) -> dict[str, tuple[int, ...]]:
    """The ports of a task, in the network that its pod alone has."""
    found: dict[str, tuple[int, ...]] = {}
    for label, count in role.resources.ports.items():
        if label in role.port_base:
            first = role.port_base[label] + index * count
            found[label] = tuple(range(first, first + count))
    taken = {number for numbers in found.values() for number in numbers}
    free = (number for number in range(FIRST_PORT, 65536) if number not in taken)
    for label, count in role.resources.ports.items():
        if label not in found:
            found[label] = tuple(next(free) for _ in range(count))
    if index == 0 and "master" not in found:
        found["master"] = (next(free),)
    return found


if TYPE_CHECKING:
    from collections.abc import Callable

    Address = Callable[[int], str]
