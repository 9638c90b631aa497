"""What a machine type means: CPUs, memory, GPUs."""

from __future__ import annotations

from ..engines.preparation import machine
from ..engines.preparation.gpus import discover
from ..settings import Settings
from ..values import Value
from .errors import InvalidProcessor

LOCAL, LOCAL_GPU = "local", "local_gpu"
ELSEWHERE = (1, 2048)
"""CPUs and memory of an instance of no particular type that does not run on this machine."""

# vCPUs, memory in MB, GPUs of some of Alibaba's machine types; `instance_types` in the settings adds others.
KNOWN = {
    "ecs.c6.large": (2, 4096, 0),
    "ecs.c6.xlarge": (4, 8192, 0),
    "ecs.c6.2xlarge": (8, 16384, 0),
    "ecs.g6.large": (2, 8192, 0),
    "ecs.g6.xlarge": (4, 16384, 0),
    "ecs.g6.2xlarge": (8, 32768, 0),
    "ecs.r6.large": (2, 16384, 0),
    "ecs.gn5-c4g1.xlarge": (4, 30720, 1),
    "ecs.gn6e-c12g1.3xlarge": (12, 94208, 1),
    "ecs.gn6i-c4g1.xlarge": (4, 15360, 1),
    "ecs.gn6i-c8g1.2xlarge": (8, 31744, 1),
    "ecs.gn6v-c8g1.2xlarge": (8, 32768, 1),
    "ecs.gn7i-c8g1.2xlarge": (8, 30720, 1),
}


class Machine(Value):
    """What one instance is given."""

    cpu: int
    memory_mb: int
    gpu: int
    processes: int
    """NPROC_PER_NODE: one for each GPU, at least one."""


def machine_of(instance_type: str | None, instances: int, *, here: bool) -> Machine:
    """The resources of a machine type.

    'local' is this machine, shared among the instances, and 'local_gpu' that with its GPUs; on machines that are not `here`
    a modest one, unless the settings say what it is.
    """
    table = Settings()["instance_types"]
    name = instance_type or LOCAL
    if name in table:
        node = table[name]
        try:
            cpu, memory, gpu = int(node["cpu"]), int(node["memoryMB"]), int(node.get("gpu", 0))
        except (KeyError, TypeError, ValueError):
            raise InvalidProcessor(f"instance_types in the settings: '{name}' should have cpu, memoryMB, gpu") from None
    elif name in KNOWN:
        cpu, memory, gpu = KNOWN[name]
    elif name in (LOCAL, LOCAL_GPU):
        cpu, memory, gpu = _share(instances, gpus=name == LOCAL_GPU) if here else (*ELSEWHERE, int(name == LOCAL_GPU))
    else:
        words = f'"{name}" = {{cpu = 4, memoryMB = 8192, gpu = 0}}'
        raise InvalidProcessor(
            f"the instance type '{name}' is not known; use 'local', or say in pailot.toml, in instance_types: {words}"
        )
    return Machine(cpu, memory, gpu, max(1, gpu))


def _share(instances: int, *, gpus: bool) -> tuple[int, int, int]:
    """What each of the instances has of this machine."""
    share = max(1, instances)
    found = 0
    if gpus:
        found = max(1, len(discover()) // share)  # the engine says it if there is none
    return max(1, machine.cpus() // share), max(256, machine.memory_mb() // share), found
