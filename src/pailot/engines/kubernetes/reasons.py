"""What the status of a pod says, in plain words. Pure."""

from __future__ import annotations

import json

from ...lifecycle.states import PREEMPTED
from ...printable import cut, printable
from ...runfolder.records import TaskRecord
from ...runtime.kubernetes import pod_layout
from ...values import Value
from .objects import MAIN, ROLE_LABEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
HOPELESS = frozenset(("ErrImageNeverPull", "InvalidImageName"))
"""Why a container waits that never starts."""
NO_IMAGE = HOPELESS | {"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "SignatureValidationFailed"}
NOT_STARTED = NO_IMAGE | {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
LONGEST = 300
_ENDS = {
    "Evicted": "its node evicted it",
    "Preempting": "it made room for a pod of higher priority",
    "NodeLost": "its node was lost",
    "Shutdown": "its node was shut down",
    "Terminated": "its node was shut down",
    "DeadlineExceeded": "the cluster's time limit for it was over",
    "UnexpectedAdmissionError": "its node could not take it",
}
_DISRUPTIONS = {
    "PreemptionByScheduler": "it made room for a pod of higher priority",
    "DeletionByTaintManager": "its node was lost, or is being emptied",
    "EvictionByEvictionAPI": "its node is being drained",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "its node ended it, for want of memory or disk, or to be shut down",
}


class PodSeen(Value):
    """What matters of a pod."""

    name: str
    role: int
    index: int
    phase: str
    address: str = ""
    node: str = ""
    is_up: bool = False
    """Whether its container runs."""
    is_deleted: bool = False
    waits: str = ""
    """What it waits for, in words."""
    waiting_reason: str = ""
    lost: str = ""
    """In words, that something ends it that no one of us has ordered."""
    is_cut_off: bool = False
    """Whether its node does not respond, so that nothing more will be heard of it."""
    final: TaskRecord | None = None
    printed: tuple[int, ...] = ()
    """The size of the log of each attempt of the task."""

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


def pod_seen(item: Mapping[str, Any]) -> PodSeen | None:
    """A pod as the API tells it; None for one that is not of ours."""
    metadata, status = item["metadata"], item.get("status") or {}
    labels = metadata.get("labels") or {}
    if not (labels.get(ROLE_LABEL, "").isdigit() and labels.get(INDEX_LABEL, "").isdigit()):
        return None
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    containers = {each["name"]: each for each in status.get("containerStatuses") or ()}
    state = (containers.get(MAIN) or {}).get("state") or {}
    deleted = "deletionTimestamp" in metadata
    disruption = conditions.get("DisruptionTarget", {})
    is_lost_node = disruption.get("status") == "True" and disruption.get("reason") in (
        "DeletionByTaintManager",
        "DeletionByPodGC",
    )
    final, printed = _last_message(state.get("terminated") or {})
    waiting = (state.get("waiting") or {}).get("reason") or ""
    seen = PodSeen(
        name=metadata["name"],
        role=int(labels[ROLE_LABEL]),
        index=int(labels[INDEX_LABEL]),
        phase=status.get("phase") or "Pending",
        address=status.get("podIP") or "",
        node=(item.get("spec") or {}).get("nodeName") or "",
        is_up="running" in state,
        is_deleted=deleted,
        waits=_waits(conditions, state, (item.get("spec") or {}).get("nodeName") or ""),
        waiting_reason=waiting,
        lost=_lost(disruption, deleted=deleted),
        is_cut_off=is_lost_node and deleted,
        final=final,
        printed=printed,
    )
    return (
        seen.replace(final=_without_record(status, state.get("terminated") or {}, seen)) if seen.is_over and not final else seen
    )


def why_no_pods(events: Sequence[Mapping[str, Any]]) -> str:
    """What the events of a Job say about pods that it cannot make."""
    failed = [each for each in events if each.get("reason") == "FailedCreate"]
    if not failed:
        return ""
    words = _text(max(failed, key=lambda each: str(each.get("lastTimestamp") or "")).get("message"))
    if "exceeded quota" in words:
        return f"the quota of the namespace is used up: {words}"
    return f"the cluster refuses its pods: {words}"


def ended_indexes(job: Mapping[str, Any]) -> set[int]:
    """The tasks of a Job whose pods have ended, be they still there or not.

    >>> sorted(ended_indexes({"status": {"failedIndexes": "1,3-5", "completedIndexes": "0"}}))
    [0, 1, 3, 4, 5]
    """
    found: set[int] = set()
    for name in ("failedIndexes", "completedIndexes"):
        for part in str((job.get("status") or {}).get(name) or "").split(","):
            first, _, last = part.partition("-")
            if first.isdigit():
                found |= set(range(int(first), int(last or first) + 1))
    return found


def _waits(conditions: Mapping[str, Any], state: Mapping[str, Any], node: str) -> str:
    scheduled = conditions.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        return f"no node for it: {_text(scheduled.get('message') or scheduled.get('reason'))}"
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason") or ""
    if reason in NO_IMAGE:
        return f"its image cannot be pulled to {node or 'its node'}: {_text(waiting.get('message') or reason)}"
    if reason in NOT_STARTED:
        return f"its container cannot be started on {node or 'its node'}: {_text(waiting.get('message') or reason)}"
    if reason in ("ContainerCreating", "PodInitializing"):
        return f"its node {node} prepares it"
    return ""


def _lost(disruption: Mapping[str, Any], *, deleted: bool) -> str:
    if disruption.get("status") == "True":
        return _DISRUPTIONS.get(disruption.get("reason") or "", _text(disruption.get("message")) or "the cluster ends it")
    return "its pod was deleted" if deleted else ""


def _last_message(terminated: Mapping[str, Any]) -> tuple[TaskRecord | None, tuple[int, ...]]:
    """What the first process of the container has said last."""
    try:
        said = json.loads(terminated.get("message") or "")
        printed = tuple(int(each) for each in said.get("printed") or ())
        return TaskRecord.from_json(said["final"]), printed
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, ()


def _without_record(status: Mapping[str, Any], terminated: Mapping[str, Any], seen: PodSeen) -> TaskRecord:
    """The end of a task that its own processes could not tell; no record never means success."""
    reason, code = terminated.get("reason") or "", terminated.get("exitCode")
    if status.get("reason"):
        words = _ENDS.get(status["reason"], status["reason"])
        return TaskRecord("lost", reason=f"{words}: {_text(status.get('message'))}".removesuffix(": "), stop=PREEMPTED)
    if reason == "OOMKilled":
        words = "was killed because it used more memory than it asked for"
        return TaskRecord("failed", signal=9, phase="main", reason=words, out_of_memory=True, attempt=0)
    if code == pod_layout.NO_PYTHON and "noPython" in (terminated.get("message") or ""):
        words = "its image has no Python 3.9 or newer, which the kubernetes engine needs"
        return TaskRecord("failed", phase="start", reason=words, give_up=True, attempt=0)
    if reason in ("StartError", "ContainerCannotRun"):
        words = f"its container cannot be started: {_text(terminated.get('message')) or reason} (the image needs /bin/sh)"
        return TaskRecord("failed", phase="start", reason=words, give_up=True, attempt=0)
    if seen.lost:
        return TaskRecord("lost", reason=seen.lost)
    words = f"its container ended with {code} ({reason or 'no reason'}) and left no record"
    return TaskRecord("lost", reason=words)


def _text(said: object) -> str:
    return printable(cut(str(said or "").strip(), LONGEST))
