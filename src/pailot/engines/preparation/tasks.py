"""The tasks of an attempt as their shims are told of them: ports and peers, working directory, environment.

An engine that runs shims on this machine can take them from `prepare_tasks` as they are.
"""

from __future__ import annotations

import os

from ...planning import placement as placing
from ...runfolder import layout
from ...runfolder.atomic_json import place_record
from ...runfolder.careful_files import make_folders
from ...runfolder.records import Placement
from ...runtime import processes
from ...runtime.task_spec import task_of_plan
from . import workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...planning import Plan, RolePlan
    from ...runtime.task_spec import Task
    from ..contract import Attempt
    from .ports import Ports


def prepare_tasks(attempt: Attempt, placement: placing.Placement, host: str) -> list[Task]:
    """Make the folders and working directories of all tasks. Returns the tasks, each with all that its shim needs.

    `host` is where they run.
    """
    plan, context = attempt.plan, attempt.context
    tasks = [(role, index) for role in plan.roles.values() for index in range(role.instances)]
    folders = [layout.task_folder(attempt.folder, role.name, index) for role, index in tasks]
    for folder in folders:
        make_folders(folder, exist_ok=False)
    wanted = [os.path.join(folder, layout.WORK) for folder in folders]
    works = workdir.prepare(context.cwd, wanted, context.work_dir, [context.home])
    record_placement(attempt, placement, host)
    shared = {**context.environment, **shared_variables(attempt, placement)}
    return [
        task_of(attempt, role, index, work, {**shared, **own_variables(attempt, role, index, placement, work)})
        for (role, index), work in zip(tasks, works, strict=True)
    ]


def place_ports(plan: Plan, ports: Ports, address: Callable[[str, int], str]) -> placing.Placement:
    """The ports of this machine for every task, and the address where the others reach it."""
    places: dict[tuple[str, int], dict[str, tuple[int, ...]]] = {}
    free = [
        (role, sum(n for label, n in role.resources.ports.items() if label not in role.port_base)) for role in plan.roles.values()
    ]
    masters = sum(1 for role in plan.roles.values() if "master" not in role.resources.ports)
    total = sum(role.instances * count for role, count in free)
    begun: dict[int, int] = {}  # roles that begin at the same port share the ports from there on
    pool = iter(ports.take(total + masters)) if total or masters else iter(())
    for role in plan.roles.values():
        for index in range(role.instances):
            mine: dict[str, tuple[int, ...]] = {}
            for label, count in role.resources.ports.items():
                first = role.port_base.get(label)
                if first:
                    mine[label] = tuple(ports.take_exactly(first + begun.get(first, 0), count))
                    begun[first] = begun.get(first, 0) + count
                else:
                    mine[label] = tuple(next(pool) for _ in range(count))
            if index == 0 and "master" not in mine:
                mine["master"] = (next(pool),)
            places[role.name, index] = mine
    return placing.Placement({place: address(*place) for place in places}, places)


def record_placement(attempt: Attempt, placement: placing.Placement, host: str) -> str:
    """Write down where the tasks are, for the tasks and for us; returns the file for the tasks."""
    peers = os.path.join(attempt.folder, layout.PEERS)
    place_record(peers, {"peers": placing.peers(attempt.plan, placement)})
    ports = {
        f"{role}:{index}": {label: list(each) for label, each in ports.items()}
        for (role, index), ports in placement.ports.items()
    }
    placed = Placement(boot=processes.boot_id(), driver=os.getpid(), ports=ports, host=host)
    place_record(os.path.join(attempt.folder, layout.PLACEMENT), placed.to_json())
    return peers


def shared_variables(attempt: Attempt, placement: placing.Placement) -> dict[str, str]:
    """Variables that are the same for all tasks of an attempt."""
    return {
        **placing.shared_variables(attempt.plan, placement),
        "PAI_PEERS_FILE": os.path.join(attempt.folder, layout.PEERS),
        "FC_FRAMEWORK_ATTEMPT_ID": str(attempt.number),
    }


def own_variables(
    attempt: Attempt,
    role: RolePlan,
    index: int,
    placement: placing.Placement,
    work: str,
    seen: Mapping[str, str] = {},
    given: Mapping[str, str] = {},
) -> dict[str, str]:
    """Variables of one task; `seen` tells of its channels, `given` of what was brought for it. The job's own words win."""
    return {
        **role.environment,
        **seen,
        **placing.task_variables(attempt.plan, placement, role.name, index),
        **role.task_environment(index),
        **given,
        **attempt.plan.options.environment,
        "PAI_WORK_DIR": work,
        "PAI_CHECKPOINT_DIR": checkpoint_folder(attempt, role.name, index),
    }


def task_of(attempt: Attempt, role: RolePlan, index: int, work: str, environment: Mapping[str, str]) -> Task:
    """One task, with limits of memory and processors as the job wants them."""
    return task_of_plan(
        role,
        attempt.plan.options,
        index=index,
        folder=layout.task_folder(attempt.folder, role.name, index),
        work_dir=work,
        checkpoint=checkpoint_folder(attempt, role.name, index),
        environment=environment,
        secrets=attempt.context.secrets,
        hidden=attempt.context.hidden,
        inherited=attempt.context.environment,
        attempt_folder=attempt.folder,
        memory_mb=role.resources.memory_mb,
        cpus=role.resources.cpu,
        rotate_bytes=attempt.context.rotate_bytes,
        outlives_power=False,
    )


def checkpoint_folder(attempt: Attempt, role: str, index: int) -> str:
    """The folder of a task that survives retries; its shim makes it."""
    return os.path.join(attempt.checkpoints, f"{role}-{index}")
