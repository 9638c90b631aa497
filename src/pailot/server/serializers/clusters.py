"""The machine and its shares, in OpenPAI's words."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...jobserver.models import CapacityReport, ClusterUse, Shares
    from ...jobserver.skus import Sku


def cluster_json(use: ClusterUse, report: CapacityReport) -> dict[str, Any]:
    """A virtual cluster; percents are of the GPUs, or of the CPUs where there are no GPUs."""
    share = _percent(use.guaranteed, report.total)
    return {
        "capacity": share,
        "usedCapacity": _percent(use.used, report.total),
        "maxCapacity": 100,
        "dedicated": False,
        "numJobs": use.running + use.waiting,
        "numActiveJobs": use.running,
        "numPendingJobs": use.waiting,
        "resourcesUsed": resources(use.used),
        "resourcesGuaranteed": resources(use.guaranteed),
        "resourcesTotal": resources(report.total if use.name == "default" else use.guaranteed),
    }


def resources(shares: Shares) -> dict[str, Any]:
    cpu, memory, gpu = _number(shares.cpus), int(shares.memory_mb), int(shares.gpus)
    return {"cpu": cpu, "memory": memory, "gpu": gpu, "vCores": cpu, "GPUs": gpu}


def sku_json(sku: Sku) -> dict[str, int]:
    return {"cpu": sku.cpus, "memory": sku.memory_mb, "gpu": sku.gpus}


def _percent(part: Shares, whole: Shares) -> float:
    if whole.gpus:
        return round(100 * part.gpus / whole.gpus, 2)
    return round(100 * part.cpus / whole.cpus, 2) if whole.cpus else 0


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
