"""OpenPAI's words for our values: times, names, sub-states, exits."""

from __future__ import annotations

from hashlib import md5
from re import sub

from ...lifecycle.exit_table import row
from ...lifecycle.states import FAILED, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_SUB_STATES = {
    WAITING: "AttemptCreationPending",
    RUNNING: "AttemptRunning",
    STOPPING: "AttemptDeletionPending",
    STOPPED: "Completed",
    SUCCEEDED: "Completed",
    FAILED: "Completed",
}
STOP_CODE = -210
_BEHAVIOURS = {"ALWAYS_RETRY": "TRANSIENT", "NEVER_RETRY": "PERMANENT", "ALWAYS_BACKOFF_RETRY": "TRANSIENT_CONFLICT"}


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)


def framework_name(user: str, name: str) -> str:
    """What OpenPAI calls the job inside its cluster; clients know it as `debugId`."""
    return md5(f"{user}~{name}".encode(), usedforsecurity=False).hexdigest()


def role_name(name: str) -> str:
    """A role's name as OpenPAI shows it: small letters and digits only."""
    return sub("[^a-z0-9]", "", name.lower())


def role_names(roles: Iterable[str]) -> dict[str, str]:
    """All roles of a job as they are shown: OpenPAI's spelling, or the job's own where that would be nothing, or twice."""
    told = {role: role_name(role) for role in roles}
    spellings = list(told.values())
    return {role: name if name and spellings.count(name) == 1 else role for role, name in told.items()}


def sub_state(state: str) -> str | None:
    return _SUB_STATES.get(state)


def uid(*parts: object, index: int = 0) -> str:
    """A number in the form of a UUID for something of ours that has a name and an index; the same for the same name."""
    return f"{uid_base(*parts)}{index:012x}"


def uid_base(*parts: object) -> str:
    """All of such a number but the twelve digits of the index."""
    digest = md5("/".join(map(str, parts)).encode(), usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-"


def exit_code(state: str, code: int | None, known: Mapping[str, Any] | None) -> int | None:
    """OpenPAI's code of an end: that of its class; the program's own code is told beside it."""
    if known is not None and isinstance(known.get("code"), int):
        return int(known["code"])
    if state == STOPPED:
        return STOP_CODE
    if state == SUCCEEDED:
        return 0
    return code


def exit_spec(code: int | None) -> dict[str, object] | None:
    """What OpenPAI tells about a code."""
    if code is None:
        return None
    found = row(code)
    behaviour = "UNKNOWN" if found.type in ("UNKNOWN_FAILURE", "USER_SUCCESS") else _BEHAVIOURS.get(found.reaction, "UNKNOWN")
    return {
        "code": code,
        "phrase": found.phrase,
        "issuer": _issuer(code),
        "causer": "UNKNOWN" if found.type in ("UNKNOWN_FAILURE", "USER_SUCCESS") else _causer(found.type),
        "type": found.type,
        "stage": "RUNNING" if code > 0 else "COMPLETING" if code == 0 else "UNKNOWN",
        "behavior": behaviour,
        "reaction": found.reaction,
        "reason": found.phrase,
        "repro": [],
        "solution": [],
    }


def _issuer(code: int) -> str:
    if code >= 220:
        return "PAI_RUNTIME"
    if code >= 0:
        return "USER_CONTAINER"
    if code > -1000:
        return "PAI_FC"
    return "PAI_K8S" if code > -1100 else "PAI_DB_CONTROLLER" if code > -1200 else "PAI_DOCKER"


def _causer(kind: str) -> str:
    return {"USER_STOP": "USER_STOP", "USER_FAILURE": "USER_CONTAINER", "PLATFORM_FAILURE": "PAI_UNKNOWN"}.get(kind, "UNKNOWN")
