"""Kinds of cells ("SKU types"): the units in which OpenPAI's users ask for resources."""

from __future__ import annotations

from ..settings import BadSetting
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..scheduling.capacity import Capacity

CPU_CELL = "cpu"


class Sku(Value):
    """One cell of a kind; `clusters` are the virtual clusters that offer it, None for all."""

    cpus: int
    memory_mb: int
    gpus: int
    clusters: tuple[str, ...] | None = None

    def offered_by(self, cluster: str) -> bool:
        return self.clusters is None or cluster in self.clusters


def from_setting(table: Mapping[str, Any]) -> dict[str, Sku]:
    """`{"V100": {"cpu": 6, "memoryMB": 60000, "gpu": 1, "virtualClusters": ["vision"]}}`; BadSetting."""
    found = {}
    for name, said in table.items():
        amounts = said if isinstance(said, dict) else {}
        cpu, memory, gpu = amounts.get("cpu"), amounts.get("memoryMB"), amounts.get("gpu", 0)
        clusters = amounts.get("virtualClusters")
        whole = all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in (cpu, memory, gpu))
        listed = clusters is None or (isinstance(clusters, list) and all(isinstance(each, str) for each in clusters))
        if not whole or not listed or set(amounts) - {"cpu", "memoryMB", "gpu", "virtualClusters"}:
            raise BadSetting(f"sku_types: '{name}' should have cpu, memoryMB, gpu, and perhaps a list virtualClusters")
        assert cpu is not None
        assert memory is not None
        found[name] = Sku(cpu, memory, gpu, None if clusters is None else tuple(clusters))
    return found


def of_machine(machine: Capacity, gpus: Sequence[str]) -> dict[str, Sku]:
    """One cell for each GPU, by the name of its type, with its part of the rest; without GPUs, one for each CPU."""
    if not gpus:
        count = max(1, int(machine.cpu))
        return {CPU_CELL: Sku(1, machine.memory_mb // count, 0)}
    cell = Sku(max(1, int(machine.cpu) // len(gpus)), machine.memory_mb // len(gpus), 1)
    return {_plain(name): cell for name in dict.fromkeys(gpus)}


def _plain(name: str) -> str:
    """`NVIDIA A100-SXM4-40GB` as `A100-SXM4-40GB`: as people write it in a job file."""
    words = name.split()
    return "-".join(words[1:] if len(words) > 1 and words[0].upper() == "NVIDIA" else words) or "GPU"
