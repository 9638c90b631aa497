"""The journal of a job in the form of Kubernetes events, which is how OpenPAI tells what happened."""

from __future__ import annotations

from datetime import UTC, datetime

from ...runfolder import journal
from .openpai_terms import framework_name, role_name, uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...runfolder.journal import Event

_WARNINGS = frozenset((journal.TASK_RETRY, journal.JOB_RETRY, journal.TASK_HELD))


def events(user: str, name: str, happened: Sequence[Event], host: str, kind: str = "") -> dict[str, Any]:
    """All events, the newest first; `kind` is `Normal` or `Warning`."""
    told = [_event(user, name, number, entry, host) for number, entry in enumerate(happened)]
    if kind:
        told = [each for each in told if each["type"] == kind]
    told.reverse()
    return {"totalCount": len(told), "data": told}


def _event(user: str, name: str, number: int, event: Event, host: str) -> dict[str, Any]:
    role, index = event.task or (None, None)
    failed = event.kind == journal.TASK_ENDED and event.outcome != "succeeded"
    failed = failed or (event.kind == journal.ENDED and event.state == "FAILED")
    at = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return {
        "uid": uid(user, name, index=number),
        "frameworkName": framework_name(user, name),
        # OpenPAI's events are all of tasks; what concerns the whole job has no name there, and the number of none.
        "podUid": "" if role is None else uid("pod", user, name, event.attempt, role, index=int(index or 0)),
        "taskroleName": "" if role is None else role_name(role),
        "taskName": "" if role is None else f"{framework_name(user, name)}-{role_name(role)}-{index}",
        "taskIndex": -1 if index is None else index,
        "type": "Warning" if failed or event.kind in _WARNINGS else "Normal",
        "reason": "".join(part.capitalize() for part in event.kind.split("-")),
        "message": _message(event),
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "sourceComponent": "pailot",
        "sourceHost": host or None,
    }


def _message(event: Event) -> str:
    who = f"{event.named} " if event.task is not None else ""
    return who + (event.reason or event.why or event.state or event.kind.replace("-", " "))
