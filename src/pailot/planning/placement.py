"""The variables of a task that are known once every task has its place: addresses and ports.

With `RolePlan.environment`, `shared_variables` and `task_variables` are all that a placed task is told of its job.
"""

from __future__ import annotations

import re
from json import dumps

from ..protocol.lazy_regex import pattern
from .environment import MAX_NAMED_PEERS, spellings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..runfolder.plan import Plan, RolePlan

# What a job may say itself, in `extras.pailot.environment`.
LEFT_TO_THE_JOB = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "TF_CONFIG")
_ABOUT_ONE_TASK = pattern(r"PAI_\w+_[0-9]\w*", re.ASCII)


class Placement:
    """Where the tasks of a job are: the address of each (role, index), and its ports by label.

    A task whose place is not known, as may be with `gangAllocation: false`, is in neither.
    """

    __slots__ = ("addresses", "ports", "_tables")

    def __init__(
        self,
        addresses: Mapping[tuple[str, int], str],
        ports: Mapping[tuple[str, int], Mapping[str, tuple[int, ...]]],
    ) -> None:
        self.addresses = addresses
        self.ports = ports
        self._tables: _Tables | None = None

    def __repr__(self) -> str:
        return f"Placement(addresses={self.addresses!r}, ports={self.ports!r})"


def shared_variables(plan: Plan, placement: Placement) -> dict[str, str]:
    """What all tasks of a job are told alike: where each role is, and each task if they are not too many."""
    tables = _tables(plan, placement)
    return {**tables.host_lists, **(tables.everyone() if tables.all_named else {})}


def task_variables(plan: Plan, placement: Placement, role: str, index: int) -> dict[str, str]:
    """What one task is told beside the shared variables: its own place and number, and the first of its role."""
    tables, own = _tables(plan, placement), plan.roles[role]
    address, ports = placement.addresses.get((role, index)), placement.ports.get((role, index), {})
    lists = _lists(ports)
    variables = {**tables.of_role(own), **own.task_environment(index)}
    if not tables.all_named:
        for spelling in tables.spellings[role]:
            _about(variables, spelling, index, address, lists)
    if address is not None:
        variables["PAI_CURRENT_CONTAINER_IP"] = variables["PAI_CONTAINER_HOST_IP"] = address
    if ports.get("http"):
        variables["PAI_CURRENT_CONTAINER_PORT"] = variables["PAI_CONTAINER_HOST_PORT"] = str(ports["http"][0])
    if ports.get("ssh"):
        variables["PAI_CONTAINER_SSH_PORT"] = str(ports["ssh"][0])
    whole = ""
    for label, listed in lists.items():
        variables[f"PAI_CONTAINER_HOST_{label}_PORT_LIST"] = listed
        whole += f"{label}:{listed};"
    variables["PAI_CONTAINER_HOST_PORT_LIST"] = whole
    if tables.tf_configs:
        variables["TF_CONFIG"] = f"{tables.tf_configs[role]}{index}}}}}"
    chosen = plan.options.environment
    for name in LEFT_TO_THE_JOB:
        if name in chosen:
            variables[name] = chosen[name]
    return variables


def peers(plan: Plan, placement: Placement) -> list[dict[str, object]]:
    """All tasks of a job, for the file that PAI_PEERS_FILE names; an address that is not known is null."""
    return [
        {
            "role": role.name,
            "index": index,
            "address": placement.addresses.get((role.name, index)),
            "ports": {label: list(numbers) for label, numbers in placement.ports.get((role.name, index), {}).items()},
        }
        for role in plan.roles.values()
        for index in range(role.instances)
    ]


class _Tables:
    """What the tasks of a job are told in common, worked out once for all of them."""

    __slots__ = ("plan", "placement", "spellings", "all_named", "host_lists", "tf_configs", "_everyone", "_of_roles")

    def __init__(self, plan: Plan, placement: Placement) -> None:
        self.plan, self.placement = plan, placement
        self.spellings = _spellings(plan)
        self.all_named = all(role.peers_by_name for role in plan.roles.values())
        hosts = {name: list(self._hosts(role)) for name, role in plan.roles.items()}
        self.host_lists = {
            f"PAI_TASK_ROLE_{spelling}_HOST_LIST": ",".join(hosts[role])
            for role, spelled in self.spellings.items()
            for spelling in spelled
        }
        self.tf_configs: dict[str, str] = {}  # without the index and the end
        if plan.task_count <= MAX_NAMED_PEERS:
            cluster = dumps(hosts)
            self.tf_configs = {role: f'{{"cluster": {cluster}, "task": {{"type": {dumps(role)}, "index": ' for role in hosts}
        self._everyone: dict[str, str] = {}
        self._of_roles: dict[str, dict[str, str]] = {}

    def everyone(self) -> dict[str, str]:
        """The variables about every task of the job."""
        if not self._everyone:
            for role in self.plan.roles.values():
                for place in [(role.name, index) for index in range(role.instances)]:
                    lists = _lists(self.placement.ports.get(place, {}))
                    for spelling in self.spellings[role.name]:
                        _about(self._everyone, spelling, place[1], self.placement.addresses.get(place), lists)
        return self._everyone

    def of_role(self, role: RolePlan) -> dict[str, str]:
        """What the tasks of one role are told: where its first task is, and the peers that its scripts name."""
        known = self._of_roles.get(role.name)
        if known is None:
            known = self._of_roles[role.name] = {**self._peers(role), **self._first(role)}
        return known

    def _peers(self, role: RolePlan) -> dict[str, str]:
        if self.all_named:
            return {}  # they are shared
        if role.peers_by_name:
            return self.everyone()
        scripts = role.scripts
        names = {name for script in (scripts.start, scripts.main, scripts.exit) for name in _ABOUT_ONE_TASK.findall(script)}
        return {name: self.everyone()[name] for name in sorted(names) if name in self.everyone()}

    def _first(self, role: RolePlan) -> dict[str, str]:
        ports = self.placement.ports.get((role.name, 0), {})
        numbers = ports.get("master") or ports.get("http")
        address = self.placement.addresses.get((role.name, 0))
        return {"MASTER_ADDR": address, "MASTER_PORT": str(numbers[0])} if address is not None and numbers else {}

    def _hosts(self, role: RolePlan) -> Iterator[str]:
        for index in range(role.instances):
            address = self.placement.addresses.get((role.name, index))
            http = self.placement.ports.get((role.name, index), {}).get("http")
            if address is not None and http:
                yield f"{address}:{http[0]}"


def _tables(plan: Plan, placement: Placement) -> _Tables:
    tables = placement._tables
    if tables is None or tables.plan is not plan:
        tables = placement._tables = _Tables(plan, placement)
    return tables


def _spellings(plan: Plan) -> dict[str, list[str]]:
    """The spellings of each role; of `a_b` and `ab`, only the latter is `ab`."""
    owners = {spellings(name)[0]: name for name in plan.roles}
    for name in plan.roles:
        owners.setdefault(spellings(name)[-1], name)
    found: dict[str, list[str]] = {name: [] for name in plan.roles}
    for spelling, name in owners.items():
        found[name].append(spelling)
    return found


def _lists(ports: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    return {label: ",".join(map(str, numbers)) for label, numbers in ports.items()}


def _about(into: dict[str, str], role: str, index: int, address: str | None, lists: Mapping[str, str]) -> None:
    """Add the variables that name one task."""
    if address is not None:
        into[f"PAI_HOST_IP_{role}_{index}"] = address
    for label, listed in lists.items():
        into[f"PAI_PORT_LIST_{role}_{index}_{label}"] = listed
        into[f"PAI_{role}_{index}_{label}_PORT"] = listed
