"""What a machine type means: CPUs, memory, GPUs."""

from __future__ import annotations

from ..engines.local import machine
from ..settings import Settings
from ..values import Value
from .errors import InvalidProcessor

LOCAL = ("local", "local_gpu")

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


def machine_of(instance_type: str | None, instances: int) -> Machine:
    """The resources of a machine type; 'local' is this machine, shared among the instances."""
    if instance_type is None or instance_type in LOCAL:
        from glob import glob

        gpus = len(glob("/dev/nvidia[0-9]*"))  # seen by all instances, and waited for by none
        share = max(1, instances)
        return Machine(max(1, machine.cpus() // share), max(256, machine.memory_mb() // share), 0, max(1, gpus))
    table = Settings()["instance_types"]
    if instance_type in table:
        node = table[instance_type]
        try:
            cpu, memory, gpu = int(node["cpu"]), int(node["memoryMB"]), int(node.get("gpu", 0))
        except (KeyError, TypeError, ValueError):
            raise InvalidProcessor(f"instance_types in the settings: '{instance_type}' should have cpu, memoryMB, gpu") from None
        return Machine(cpu, memory, gpu, max(1, gpu))
    if instance_type not in KNOWN:
        words = f'"{instance_type}" = {{cpu = 4, memoryMB = 8192, gpu = 0}}'
        raise InvalidProcessor(
            f"the instance type '{instance_type}' is not known; use 'local', or say in pailot.toml, in instance_types: {words}"
        )
    cpu, memory, gpu = KNOWN[instance_type]
    return Machine(cpu, memory, gpu, max(1, gpu))
