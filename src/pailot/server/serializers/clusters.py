"""The machine and its shares, in OpenPAI's words."""

from __future__ import annotations

from ...jobserver.accounts import DEFAULT_CLUSTER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...jobserver.models import CapacityReport, ClusterRules, ClusterUse, Shares
    from ...jobserver.skus import Sku


def cluster_json(use: ClusterUse, report: CapacityReport) -> dict[str, object]:
    """A virtual cluster; percents are of the GPUs, or of the CPUs where there are no GPUs.

    What is guaranteed is all that a cluster has: OpenPAI's clients take the difference of the two for broken machines.
    """
    return {
        "capacity": _number(_capacity(use, report)),
        "usedCapacity": _percent(use.used, report.total),
        "maxCapacity": 100 if use.rules.most_percent is None else _number(use.rules.most_percent),
        "dedicated": False,
        "numJobs": use.running + use.waiting,
        "numActiveJobs": use.running,
        "numPendingJobs": use.waiting,
        "resourcesUsed": resources(use.used),
        "resourcesGuaranteed": resources(use.guaranteed),
        "resourcesTotal": resources(use.guaranteed),
        **_limits(use.rules),
    }


def _capacity(use: ClusterUse, report: CapacityReport) -> float:
    """Percent, as it was set; `default` has what the others leave."""
    if use.rules.percent is not None:
        return use.rules.percent
    if use.name == DEFAULT_CLUSTER and use.is_rest:
        others = sum(_capacity(each, report) for each in report.clusters.values() if each.name != use.name)
        return round(max(0.0, 100 - others), 2)
    return _percent(use.guaranteed, report.total)


def _limits(rules: ClusterRules) -> dict[str, object]:
    """What each user may have of it at once, where that is limited."""
    limits = rules.limits
    told = {"jobs": limits.jobs, "gpus": limits.gpus}
    given = {key: value for key, value in told.items() if value is not None}
    return {"userLimits": given} if given else {}


def resources(shares: Shares) -> dict[str, object]:
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
