"""The journal of a job in the form of Kubernetes events, which is how OpenPAI tells what happened."""

from __future__ import annotations

from datetime import UTC, datetime

from .openpai_terms import framework_name, role_name, uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_WARNINGS = frozenset(("task-retry", "job-retry", "task-held", "task-lost"))


def events(user: str, name: str, journal: Sequence[Mapping[str, Any]], host: str, kind: str = "") -> dict[str, Any]:
    """All events, the newest first; `kind` is `Normal` or `Warning`."""
    told = [_event(user, name, number, entry, host) for number, entry in enumerate(journal)]
    if kind:
        told = [each for each in told if each["type"] == kind]
    told.reverse()
    return {"totalCount": len(told), "data": told}


def _event(user: str, name: str, number: int, entry: Mapping[str, Any], host: str) -> dict[str, Any]:
    what = str(entry.get("event", ""))
    role, index = entry.get("role"), entry.get("index")
    failed = what == "task-ended" and entry.get("outcome") != "succeeded"
    failed = failed or (what == "ended" and entry.get("state") == "FAILED")
    at = datetime.fromtimestamp(float(entry.get("at", 0)), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return {
        "uid": uid(user, name, index=number),
        "frameworkName": framework_name(user, name),
        # OpenPAI's events are all of tasks; what concerns the whole job has no name there, and the number of none.
        "podUid": "" if role is None else uid("pod", user, name, entry.get("attempt", 0), role, index=int(index or 0)),
        "taskroleName": "" if role is None else role_name(str(role)),
        "taskName": "" if role is None else f"{framework_name(user, name)}-{role_name(str(role))}-{index}",
        "taskIndex": -1 if index is None else index,
        "type": "Warning" if failed or what in _WARNINGS else "Normal",
        "reason": "".join(part.capitalize() for part in what.split("-")),
        "message": _message(what, entry),
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "sourceComponent": "pailot",
        "sourceHost": host or None,
    }


def _message(what: str, entry: Mapping[str, Any]) -> str:
    who = f"{entry['role']}:{entry['index']} " if entry.get("role") is not None else ""
    reason = entry.get("reason") or entry.get("why") or entry.get("state") or what.replace("-", " ")
    return f"{who}{reason}"
