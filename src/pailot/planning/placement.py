"""The variables of a task that are known once it has a place: addresses and ports of all."""

from __future__ import annotations

import re

from ..values import Value
from .environment import MAX_NAMED_PEERS, spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .plan import Plan, RolePlan


class Placement(Value):
    """Where each task is: its address and its ports by label."""

    addresses: Mapping[tuple[str, int], str]
    ports: Mapping[tuple[str, int], Mapping[str, tuple[int, ...]]]


def shared_variables(plan: Plan, placement: Placement) -> dict[str, str]:
    """What all tasks of a job are told about each other."""
    variables: dict[str, str] = {}
    by_name = plan.task_count <= MAX_NAMED_PEERS or any(role.peers_by_name for role in plan.roles.values())
    for role in plan.roles.values():
        hosts = ",".join(
            f"{placement.addresses[role.name, index]}:{placement.ports[role.name, index]['http'][0]}" for index in range(role.instances)
        )
        for spelling in spellings(role.name):
            variables[f"PAI_TASK_ROLE_{spelling}_HOST_LIST"] = hosts
        if by_name:
            for index in range(role.instances):
                variables.update(_peer(placement, role.name, index))
    if not by_name:
        variables.update(_mentioned(plan, placement))
    return variables


def task_variables(plan: Plan, placement: Placement, role: str, index: int) -> dict[str, str]:
    """What one task is told about itself and its role."""
    address, ports = placement.addresses[role, index], placement.ports[role, index]
    first_http = str(ports["http"][0])
    variables = {
        "PAI_CURRENT_CONTAINER_IP": address,
        "PAI_CURRENT_CONTAINER_PORT": first_http,
        "PAI_CONTAINER_HOST_IP": address,
        "PAI_CONTAINER_HOST_PORT": first_http,
        "PAI_CONTAINER_SSH_PORT": str(ports["ssh"][0]),
        "PAI_CONTAINER_HOST_PORT_LIST": "".join(f"{label}:{_list(each)};" for label, each in ports.items()),
        **{f"PAI_CONTAINER_HOST_{label}_PORT_LIST": _list(each) for label, each in ports.items()},
    }
    if plan.task_count > MAX_NAMED_PEERS:
        variables.update(_peer(placement, role, index))
    master = placement.ports[role, 0]
    distributed = {
        "MASTER_ADDR": placement.addresses[role, 0],
        "MASTER_PORT": str(master.get("master", master["http"])[0]),
    }
    if plan.task_count <= MAX_NAMED_PEERS:
        distributed["TF_CONFIG"] = _tf_config(plan, placement, role, index)
    own = plan.options.environment
    return {**variables, **{name: value for name, value in distributed.items() if name not in own}}


def peers(plan: Plan, placement: Placement) -> list[dict[str, Any]]:
    """Every task with its address and ports, for programs to read."""
    return [
        {
            "role": role.name,
            "index": index,
            "address": placement.addresses[role.name, index],
            "ports": {label: list(each) for label, each in placement.ports[role.name, index].items()},
        }
        for role in plan.roles.values()
        for index in range(role.instances)
    ]


def _peer(placement: Placement, role: str, index: int) -> dict[str, str]:
    variables: dict[str, str] = {}
    for spelling in spellings(role):
        variables[f"PAI_HOST_IP_{spelling}_{index}"] = placement.addresses[role, index]
        for label, ports in placement.ports[role, index].items():
            variables[f"PAI_PORT_LIST_{spelling}_{index}_{label}"] = _list(ports)
            variables[f"PAI_{spelling}_{index}_{label}_PORT"] = _list(ports)
    return variables


def _mentioned(plan: Plan, placement: Placement) -> dict[str, str]:
    """In a job too large for a variable per peer, those that the commands name."""
    names = {name for role in plan.roles.values() for name in _names(role)}
    if not names:
        return {}
    found: dict[str, str] = {}
    for role in plan.roles.values():
        for index in range(role.instances):
            found.update({name: value for name, value in _peer(placement, role.name, index).items() if name in names})
    return found


def _names(role: RolePlan) -> set[str]:
    text = role.scripts.start + role.scripts.main + role.scripts.exit
    return set(re.findall(r"PAI_\w+", text))


def _tf_config(plan: Plan, placement: Placement, role: str, index: int) -> str:
    import json

    cluster = {
        each.name: [f"{placement.addresses[each.name, i]}:{placement.ports[each.name, i]['http'][0]}" for i in range(each.instances)]
        for each in plan.roles.values()
    }
    return json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})


def _list(ports: tuple[int, ...]) -> str:
    return ",".join(map(str, ports))
