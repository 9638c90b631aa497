"""The machine and its shares, in OpenPAI's words and in those of Kubernetes."""

from __future__ import annotations

from .words import framework_name, uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...service.team.values import CapacityReport, ClusterUse, Shares
    from ...store.server import JobRecord


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


def node_list(report: CapacityReport, node: str) -> dict[str, Any]:
    name = report.host or node
    amounts = {
        "cpu": f"{report.total.cpus:g}",
        "memory": f"{int(report.total.memory_mb)}Mi",
        "nvidia.com/gpu": str(int(report.total.gpus)),
    }
    return {
        "kind": "NodeList",
        "apiVersion": "v1",
        "items": [
            {
                "metadata": {"name": name, "uid": uid("node", name), "labels": {"kubernetes.io/hostname": name}},
                "spec": {},
                "status": {
                    "capacity": amounts,
                    "allocatable": amounts,
                    "conditions": [{"type": "Ready", "status": "True", "reason": "PailotReady"}],
                    "addresses": [{"type": "Hostname", "address": name}],
                },
            }
        ],
    }


def pod_list(jobs: Iterable[JobRecord], node: str) -> dict[str, Any]:
    return {
        "kind": "PodList",
        "apiVersion": "v1",
        "items": [
            {
                "metadata": {
                    "name": framework_name(job.user, job.name),
                    "uid": uid("pod", job.id),
                    "namespace": "default",
                    "labels": {"userName": job.user, "jobName": job.name, "virtualCluster": job.vc, "type": "kube-launcher-task"},
                },
                "spec": {"nodeName": node if job.state == "RUNNING" else None, "containers": []},
                "status": {"phase": "Running" if job.state in ("RUNNING", "STOPPING") else "Pending"},
            }
            for job in jobs
        ],
    }


def _percent(part: Shares, whole: Shares) -> float:
    if whole.gpus:
        return round(100 * part.gpus / whole.gpus, 2)
    return round(100 * part.cpus / whole.cpus, 2) if whole.cpus else 0


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
