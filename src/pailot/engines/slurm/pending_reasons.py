"""Slurm's reasons why a job waits, put in words."""

from __future__ import annotations

_WORDS = {
    "Resources": "no nodes are free for it now; it is first in line",
    "Priority": "other jobs are in front of it in the partition's line",
    "Dependency": "it follows a job that has not ended",
    "DependencyNeverSatisfied": "it follows a job that failed, so it can never start",
    "BeginTime": "its begin time has not come",
    "JobHeldUser": "it is held by its user; 'scontrol release {job}' lets it go",
    "JobHeldAdmin": "it is held by an administrator of the cluster",
    "PartitionConfig": "it asks for more nodes, CPUs or time than its partition allows, so it can never start as it is",
    "PartitionNodeLimit": "it asks for more nodes than its partition allows",
    "PartitionTimeLimit": "it asks for more time than its partition allows",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition takes no jobs to start at the moment",
    "ReqNodeNotAvail": "a node that it needs is down, drained or reserved",
    "Reservation": "it waits for its reservation",
    "Licenses": "it waits for a licence",
    "NodeDown": "a node that it needs is down",
    "BadConstraints": "no node has what it asks for (constraints)",
    "InvalidAccount": "its account is not valid in this cluster",
    "InvalidQOS": "its quality of service (QOS) is not valid in this cluster",
    "AccountNotAllowed": "its account may not use this partition",
    "QOSNotAllowed": "its quality of service (QOS) may not use this partition or account",
    "Cleaning": "what is left of its last start is being cleaned up",
    "Prolog": "the nodes are being prepared",
    "NodeBooting": "its nodes are booting",
    "WaitingForScheduling": "Slurm has not looked at it yet",
    "FrontEndDown": "no front-end node is up",
    "BurstBufferResources": "it waits for a burst buffer",
    "AssociationJobLimit": "its account has as many jobs as it may have",
    "AssociationResourceLimit": "its account uses as much as it may use",
    "QOSJobLimit": "its quality of service (QOS) has as many jobs as it may have",
    "QOSResourceLimit": "its quality of service (QOS) uses as much as it may use",
}
_LIMIT_OWNERS = (("Assoc", "its account"), ("QOS", "its quality of service (QOS)"))
_LIMITED = (
    ("PerUser", " for each user"),
    ("PerJob", " for one job"),
    ("PerAccount", " for each account"),
)
_AMOUNTS = (
    ("GRES", "GPUs"),
    ("CPU", "CPUs"),
    ("Cpu", "CPUs"),
    ("Mem", "memory"),
    ("Node", "nodes"),
    ("Job", "jobs"),
    ("Wall", "time"),
)


def in_words(reason: str, job: str) -> str:
    """Return what a reason of `squeue` means, with Slurm's own word for those who know it."""
    first = reason.partition(",")[0].strip()
    words = _WORDS.get(first) or _limit(first)
    return f"{words.format(job=job)} ({reason})" if words else reason


def _limit(reason: str) -> str:
    """Return the words for one of Slurm's many limits, such as QOSMaxGRESPerUser or AssocGrpCPULimit."""
    owner = next((words for prefix, words in _LIMIT_OWNERS if reason.startswith(prefix)), "")
    if not owner or not ("Max" in reason or "Grp" in reason):
        return ""
    what = next((words for part, words in _AMOUNTS if part in reason), "resources")
    who = next((words for part, words in _LIMITED if part in reason), "")
    return f"{owner} limits {what}{who}, and that limit is reached"
