"""The machine and the tasks on it in the words of Kubernetes: lists of nodes and pods."""

from __future__ import annotations

import os
import re

from ...lifecycle.states import FAILED, FINAL_JOB_STATES, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING
from .alerts import iso
from .openpai_terms import framework_name, role_names, uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ...jobserver.models import CapacityReport, Standing, TaskView

NAMESPACE = "default"
_PHASES = {
    WAITING: "Pending",
    RUNNING: "Running",
    STOPPING: "Running",
    SUCCEEDED: "Succeeded",
    FAILED: "Failed",
    STOPPED: "Failed",
}


def node_list(report: CapacityReport, node: str, alerts: Iterable[str], started: float) -> dict[str, Any]:
    """This machine; alerts by name become conditions."""
    name, system = report.host or node, os.uname()
    full = any(each.startswith("NodeDiskFull") for each in alerts)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system.sysname.lower(),
        "kubernetes.io/arch": _architecture(system.machine),
        "pai-worker": "true",
    }
    amounts = _amounts(report.total.cpus, int(report.total.memory_mb), int(report.total.gpus))
    conditions = [
        _condition("DiskPressure", "True" if full else "False", "KubeletHasDiskPressure" if full else "KubeletHasNoDiskPressure"),
        _condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        _condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        _condition("Ready", "True", "KubeletReady"),
    ]
    item = {
        "metadata": {
            "name": name,
            "uid": uid("node", name),
            "labels": labels,
            "annotations": {},
            "creationTimestamp": iso(started),
        },
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "operatingSystem": system.sysname.lower(),
                "architecture": _architecture(system.machine),
                "kernelVersion": system.release,
                "osImage": f"{system.sysname} {system.release}",
                "containerRuntimeVersion": "pailot",
                "kubeletVersion": "pailot",
            },
            "images": [],
        },
    }
    return _list("NodeList", [item])


def pod_list(jobs: Iterable[Standing], selector: Selector, namespace: str = "") -> dict[str, object]:
    """A pod for each task of each job that is not over; before a job starts its pods are pending, on no node."""
    if namespace not in ("", NAMESPACE):
        return _list("PodList", [])
    pods = (pod for job in jobs for pod in _pods(job))
    return _list("PodList", [pod for pod in pods if selector.takes(pod["metadata"]["labels"])])


def _pods(job: Standing) -> Iterator[dict[str, Any]]:
    record, framework = job.record, framework_name(job.record.user, job.record.name)
    names = role_names(job.plan.get("taskRoles", {}))
    for role, tasks in job.roles.items():
        planned = job.plan["taskRoles"][role]
        wanted = planned["resources"]
        amounts = _amounts(wanted["cpu"], wanted["memoryMB"], wanted["gpu"])
        labels = {
            "type": "kube-launcher-task",
            "userName": record.user,
            "jobName": record.name,
            "virtualCluster": record.vc,
            "FC_FRAMEWORK_NAME": framework,
            "FC_TASKROLE_NAME": names[role],
        }
        container = {
            "name": "app",
            "image": planned.get("image") or "",
            "resources": {"limits": amounts, "requests": amounts},
        }
        for task in tasks:
            own = {**labels, "FC_TASK_INDEX": str(task.index)}
            yield _pod(job, task, f"{framework}-{names[role]}-{task.index}", own, container)


def _pod(job: Standing, task: TaskView, name: str, labels: dict[str, str], container: Mapping[str, Any]) -> dict[str, Any]:
    placed = job.attempt >= 0 and task.state != WAITING
    ports = [{"name": label, "containerPort": number} for label, numbers in task.ports.items() for number in numbers]
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid("pod", job.record.id, max(job.attempt, 0), task.role, index=task.attempt << 32 | task.index),
            "labels": labels,
            "annotations": {"FC_FRAMEWORK_ATTEMPT_ID": str(max(job.attempt, 0)), "FC_TASK_ATTEMPT_ID": str(task.attempt)},
            "creationTimestamp": iso(task.created or job.record.submitted),
        },
        "spec": {
            **({"nodeName": task.node} if placed and task.node else {}),
            "hostNetwork": True,
            "restartPolicy": "Never",
            "containers": [{**container, "ports": ports} if ports else container],
        },
        "status": {
            "phase": _PHASES.get(task.state, "Unknown"),
            "conditions": _pod_conditions(task, placed=placed, since=task.started or task.created or job.record.submitted),
            **({"hostIP": task.host, "podIP": task.host} if placed and task.host else {}),
            **({"startTime": iso(task.started)} if placed and task.started else {}),
            "containerStatuses": [_container_status(task, container["image"])] if placed else [],
        },
    }


def _pod_conditions(task: TaskView, *, placed: bool, since: float) -> list[dict[str, str]]:
    """How far a pod has come, in the order in which Kubernetes tells it."""
    ready = task.state in (RUNNING, STOPPING)
    over = task.state in FINAL_JOB_STATES
    not_ready = "" if ready else "PodCompleted" if over else "ContainersNotReady"
    if not placed:
        waiting = {"message": "the job waits in the queue; GET /api/v2/jobs/{job}/why tells what for"}
        return [{**_condition("PodScheduled", "False", "Unschedulable"), "lastTransitionTime": iso(since), **waiting}]
    told = [
        _condition("Initialized", "True", "PodCompleted" if over else ""),
        _condition("Ready", "True" if ready else "False", not_ready),
        _condition("ContainersReady", "True" if ready else "False", not_ready),
        _condition("PodScheduled", "True", ""),
    ]
    return [{key: value for key, value in {**each, "lastTransitionTime": iso(since)}.items() if value} for each in told]


def _container_status(task: TaskView, image: str) -> dict[str, object]:
    begun = {"startedAt": iso(task.started)} if task.started else {}
    state: dict[str, object] = {"running": begun}
    if task.state in FINAL_JOB_STATES:
        ended = {"finishedAt": iso(task.ended)} if task.ended else {}
        code = task.exit_code if task.exit_code is not None else 0 if task.state == SUCCEEDED else 1
        reason = "Completed" if task.state == SUCCEEDED else "Error"
        state = {"terminated": {"exitCode": code, "reason": reason, **begun, **ended}}
    return {"name": "app", "image": image, "ready": task.state == RUNNING, "restartCount": task.attempt, "state": state}


class Selector:
    """A `labelSelector`: `a=b,c!=d,e,!f,g in (h,i),j notin (k)`. Raises ValueError for what is none."""

    def __init__(self, text: str) -> None:
        self._wishes: list[tuple[str, str, tuple[str, ...]]] = []
        at = 0
        text = text.strip()
        while at < len(text):
            found = _WISH.match(text, at)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ValueError(f"'{text[:200]}' is no label selector")
            self._wishes.append(_wish(found))
            at = found.end() + 1

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(_fits(labels, *wish) for wish in self._wishes)


_WISH = re.compile(
    r"\s*(?:!\s*(?P<without>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<how>==|=|!=)\s*(?P<value>[\w.~-]*)|(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*"
)


def _wish(found: re.Match[str]) -> tuple[str, str, tuple[str, ...]]:
    if found["without"]:
        return found["without"], "absent", ()
    if found["set"]:
        return found["key"], found["set"], tuple(each.strip() for each in found["values"].split(","))
    if found["how"]:
        return found["key"], "notin" if found["how"] == "!=" else "in", (found["value"],)
    return found["key"], "present", ()


def _fits(labels: Mapping[str, str], key: str, how: str, values: tuple[str, ...]) -> bool:
    if how in ("present", "absent"):
        return (key in labels) == (how == "present")
    return (labels.get(key) in values) == (how == "in")


def _list(kind: str, items: list[dict[str, object]]) -> dict[str, object]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items}


def _amounts(cpu: float, memory_mb: int, gpu: int) -> dict[str, str]:
    return {"cpu": f"{cpu:g}", "memory": f"{memory_mb}Mi", "nvidia.com/gpu": str(gpu)}


def _condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


def _architecture(machine: str) -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
