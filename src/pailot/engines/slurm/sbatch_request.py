"""What is asked of Slurm for a job: the shape of the allocation, and the batch script that says so. Pure."""

from __future__ import annotations

from ...errors import suggestion
from ...runfolder import layout
from ...values import Value
from ..contract import EngineError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...planning import Plan, RolePlan

EXCESS = 1.5
"""How much more than requested a flat allocation may hold, in CPUs and memory; it never holds more GPUs."""
_SHARES_CPUS = frozenset(("-O", "--overcommit"))
"""Options with which tasks share CPUs, so that their number has no bound."""
CLASSES = ("crit", "prod", "test", "oppo")
WARNING_SECONDS = 30
"""How long before its time limit a job is told, beyond the grace of its tasks; Slurm itself may be a minute early."""
SCRIPT_END = f"""
# Pailot's driver runs the job; what it says beside its records is in {layout.DRIVER_LOG}. It needs Python 3.9 or newer.
[ -d "$PAILOT_ATTEMPT" ] || exit 98
exec >>"$PAILOT_ATTEMPT/{layout.DRIVER_LOG}" 2>&1
if [ -x "$PAILOT_PYTHON" ]; then
    exec "$PAILOT_PYTHON" -I -S -B "$PAILOT_CODE" driver "$PAILOT_ATTEMPT"
fi
for python in python3 python3.13 python3.12 python3.11 python3.10 python3.9 /usr/libexec/platform-python; do
    if "$python" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        exec "$python" -I -S -B "$PAILOT_CODE" driver "$PAILOT_ATTEMPT"
    fi
done
echo "no Python 3.9 or newer on $(uname -n)"
exit 97
"""


class Nodes(Value):
    """Equal nodes of a partition: how many there are, and what each offers."""

    count: int
    cpus: int
    gpus: int

    def slots(self, cpus: int, gpus: int) -> int:
        """Return how many tasks of this size one of the nodes holds."""
        return min(self.cpus // cpus if cpus else self.cpus, self.gpus // gpus if gpus else self.cpus)


class Partition(Value):
    """A partition of the cluster: what it is called, how many nodes it has, what the largest of them offers."""

    name: str
    up: bool
    nodes: int
    cpus: int
    memory_mb: int
    gpus: int
    is_default: bool = False
    max_seconds: float | None = None
    groups: tuple[Nodes, ...] = ()
    """All of its nodes; empty if that is not known."""
    max_nodes: int | None = None
    """How many of them one job may have."""

    def slots(self, cpus: int, gpus: int) -> int:
        """Return how many tasks of this size one job can have there at most, if all nodes were free."""
        left = self.nodes if self.max_nodes is None else self.max_nodes
        total = 0
        for group in sorted(self.groups, key=lambda each: each.slots(cpus, gpus), reverse=True):
            used = min(group.count, left)
            total += used * group.slots(cpus, gpus)
            left -= used
        return total


class ClusterSite(Value):
    """How the jobs of this user map to this cluster: what the settings say."""

    partitions: Mapping[str, str] = {}
    priorities: Mapping[str, str] = {}
    options: tuple[str, ...] = ()
    shape: str = "auto"


class Component(Value):
    """A number of equal slots, for tasks of these roles."""

    roles: tuple[str, ...]
    tasks: int
    cpus: int
    memory_mb: int
    gpus: int


class SlurmRequest(Value):
    """What is asked for."""

    components: tuple[Component, ...]
    partition: str
    head: str
    """What the script asks of Slurm."""

    @property
    def script(self) -> str:
        return self.head + SCRIPT_END


def site(settings: Mapping[str, object]) -> ClusterSite:
    """The settings whose names begin with `slurm_`, understood."""
    shape = str(settings["slurm_shape"])
    if shape not in ("auto", "flat", "het"):
        raise EngineError(f"slurm_shape: should be auto, flat or het, is '{shape}'")
    priorities = _pairs("slurm_priorities", settings["slurm_priorities"])
    for name, meaning in priorities.items():
        if name not in CLASSES:
            raise EngineError(f"slurm_priorities: there is no priority class '{name}'{suggestion(name, CLASSES)}")
        kind, _, value = meaning.partition(":")
        if kind not in ("qos", "nice") or not value:
            raise EngineError(f"slurm_priorities: '{name}={meaning}' should be {name}=qos:NAME or {name}=nice:NUMBER")
    options = settings["slurm_options"]
    assert isinstance(options, (list, tuple))
    return ClusterSite(_pairs("slurm_partitions", settings["slurm_partitions"]), priorities, tuple(map(str, options)), shape)


def make(plan: Plan, where: ClusterSite, partitions: Sequence[Partition] = ()) -> SlurmRequest:
    """The request for a plan; where the partitions are known, what they can never give is refused."""
    partition = _partition(plan, where, partitions)
    known = next((each for each in partitions if each.name == partition or (not partition and each.is_default)), None)
    components = _components(plan, where, known)
    if known is not None:
        _check(plan, components, known)
        if not _SHARES_CPUS.intersection(where.options):
            _check_sum(components, known)
    return SlurmRequest(components, partition, _head(plan, where, partition, components))


def _partition(plan: Plan, where: ClusterSite, partitions: Sequence[Partition]) -> str:
    """The partition of a virtual cluster; the default one of either side is the other's."""
    cluster = plan.virtual_cluster
    mapped = where.partitions.get(cluster)
    wanted = mapped or cluster
    names = [each.name for each in partitions]
    if not mapped and cluster == "default" and cluster not in names:
        return ""
    if names and wanted not in names:
        words = f"virtual cluster '{cluster}': Slurm has no partition '{wanted}'{suggestion(wanted, names)}"
        raise EngineError(f"{words}; it has {', '.join(names)} (the setting slurm_partitions maps them)")
    return wanted


def _components(plan: Plan, where: ClusterSite, partition: Partition | None) -> tuple[Component, ...]:
    roles = list(plan.roles.values())
    flat = Component(
        tuple(plan.roles),
        plan.task_count,
        max(role.resources.cpu for role in roles),
        max(role.resources.memory_mb for role in roles),
        max(role.resources.gpu for role in roles),
    )
    het = tuple(
        Component((role.name,), role.instances, role.resources.cpu, role.resources.memory_mb, role.resources.gpu)
        for role in roles
    )
    if where.shape == "flat" or len({(each.cpus, each.memory_mb, each.gpus) for each in het}) == 1:
        return (flat,)
    if where.shape == "het":
        return het
    if partition is not None and partition.nodes < len(het):
        return (flat,)  # the components of a job never share a node
    small = (
        flat.tasks * flat.gpus <= sum(each.tasks * each.gpus for each in het)
        and flat.tasks * flat.cpus <= EXCESS * sum(each.tasks * each.cpus for each in het)
        and flat.tasks * flat.memory_mb <= EXCESS * sum(each.tasks * each.memory_mb for each in het)
    )
    return (flat,) if small else het


def _check(plan: Plan, components: Sequence[Component], partition: Partition) -> None:
    """What no node of the partition has will never start, although Slurm may take the job."""
    if not partition.up:
        raise EngineError(f"Slurm's partition '{partition.name}' is down")
    for each in components:
        for what, wanted, most in (
            ("CPUs", each.cpus, partition.cpus),
            ("MB of memory", each.memory_mb, partition.memory_mb),
            ("GPUs", each.gpus, partition.gpus),
        ):
            if wanted > most:
                roles = ", ".join(f"'{name}'" for name in each.roles)
                have = f"the nodes of Slurm's partition '{partition.name}' have {most} at most"
                raise EngineError(f"a task of {roles} asks for {wanted} {what}; {have}")
    if len(components) > partition.nodes:
        has = f"Slurm's partition '{partition.name}' has {partition.nodes}"
        raise EngineError(f"{len(components)} roles of different shapes need as many nodes; {has}")
    seconds = plan.options.max_run_seconds
    if seconds and partition.max_seconds and _minutes(plan) * 60 > partition.max_seconds:
        raise EngineError(
            f"maxRunSeconds {seconds:g} and the grace are more than the {partition.max_seconds:g} seconds "
            f"that Slurm's partition '{partition.name}' allows"
        )


def _check_sum(components: Sequence[Component], partition: Partition) -> None:
    """Refuse tasks that are too many for all nodes together: Slurm would let them wait for ever.

    Memory is not counted: where a cluster does not share it out, Slurm does not count it either.
    """
    if not partition.groups:
        return
    for each in components:
        most = partition.slots(each.cpus, each.gpus)
        if each.tasks > most:
            size = f"{each.cpus} CPU{'' if each.cpus == 1 else 's'}" + (
                f" and {each.gpus} GPU{'' if each.gpus == 1 else 's'}" if each.gpus else ""
            )
            nodes = partition.nodes if partition.max_nodes is None else min(partition.nodes, partition.max_nodes)
            where = f"{nodes} node{'' if nodes == 1 else 's'} of Slurm's partition '{partition.name}'"
            roles = ", ".join(f"'{name}'" for name in each.roles)
            raise EngineError(f"{each.tasks} tasks of {roles} with {size} each can never start together: the {where} hold {most}")


def _warning(plan: Plan) -> int:
    return min(int(plan.options.grace_seconds) + WARNING_SECONDS, 65_000)


def _minutes(plan: Plan) -> int:
    """Slurm's own limit is later than ours, far enough that its warning does not come before."""
    seconds = (plan.options.max_run_seconds or 0) + _warning(plan) + 120
    return int(-(-seconds // 60))


def _head(plan: Plan, where: ClusterSite, partition: str, components: Sequence[Component]) -> str:
    common = []
    if partition:
        common.append(f"--partition={partition}")
    if plan.options.max_run_seconds:
        common.append(f"--time={_minutes(plan)}")
    priority = where.priorities.get(plan.priority, "nice:1000" if plan.priority == "oppo" else "")
    if priority:
        common.append("--{}={}".format(*priority.split(":", 1)))
    common += where.options
    gpu_type = f"{plan.options.gpu_type}:" if plan.options.gpu_type else ""
    lines = ["#!/bin/sh", f"#SBATCH --job-name={_job_name(plan)}"]
    lines += ["#SBATCH --no-requeue", "#SBATCH --output=/dev/null", "#SBATCH --chdir=/"]
    lines.append(f"#SBATCH --signal=B:USR2@{_warning(plan)}")
    for number, each in enumerate(components):
        if number:
            lines.append("#SBATCH hetjob")
        lines += [f"#SBATCH {words}" for words in (*common, *_resources(each, gpu_type, alone=plan.task_count == 1))]
    return "\n".join(lines) + "\n"


def _resources(component: Component, gpu_type: str, *, alone: bool) -> list[str]:
    """In the same words for all components: sbatch lets none ask for memory in another way than the first."""
    words = [f"--ntasks={component.tasks}", f"--cpus-per-task={component.cpus}"]
    if alone:
        words = ["--nodes=1", *words]
        if component.memory_mb:
            words.append(f"--mem={component.memory_mb}M")
        if component.gpus:
            words.append(f"--gres=gpu:{gpu_type}{component.gpus}")
        return words
    if component.memory_mb:
        words.append(f"--mem-per-cpu={-(-component.memory_mb // component.cpus)}M")
    if component.gpus:
        words.append(f"--gpus-per-task={gpu_type}{component.gpus}")
    return words


def gres(plan: Plan, role: RolePlan) -> str:
    """The generic resources of a step of this role."""
    if not role.resources.gpu:
        return ""
    return f"gpu:{plan.options.gpu_type + ':' if plan.options.gpu_type else ''}{role.resources.gpu}"


def _job_name(plan: Plan) -> str:
    return "".join(character if character.isalnum() or character in "-_.~+" else "_" for character in plan.full_name)


def _pairs(setting: str, value: object) -> dict[str, str]:
    assert isinstance(value, (list, tuple))
    found = {}
    for each in value:
        name, equals, meaning = str(each).partition("=")
        if not equals or not name.strip() or not meaning.strip():
            raise EngineError(f"{setting}: '{each}' should be NAME=VALUE")
        found[name.strip()] = meaning.strip()
    return found
