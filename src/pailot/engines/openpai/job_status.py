"""What a server says about a job, in our own words. Nothing is asked here."""

from __future__ import annotations

from ...lifecycle.states import FINAL_JOB_STATES, JOB_STATES, SUCCEEDED, UNKNOWN, WAITING
from ...values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class TaskSeen(Value):
    """A task in the latest attempt of its job, as the server tells."""

    role: str
    """The role's name as our plan has it."""
    there: str
    """The same as the server spells it."""
    index: int
    state: str
    job_attempt: int
    task_attempt: int
    exit_code: int | None = None
    reason: str = ""
    host: str | None = None
    ports: Mapping[str, tuple[int, ...]] = {}
    exit_class: Mapping[str, Any] | None = None
    started: float | None = None
    ended: float | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_JOB_STATES


class JobSeen(Value):
    """A job, as the server tells."""

    state: str
    attempt: int
    tasks: tuple[TaskSeen, ...]
    reason: str = ""
    exit_code: int | None = None
    role: str | None = None
    index: int | None = None
    retries: Mapping[str, int] = {}

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_JOB_STATES


def read_job(detail: Mapping[str, Any], roles: Mapping[str, int]) -> JobSeen:
    """The answer to `GET /jobs/NAME`; `roles` are those of our plan, with how many tasks each has."""
    status = detail.get("jobStatus") or {}
    attempt = _whole(status.get("attemptId")) or 0
    names = {role_key(name): name for name in roles}
    tasks = []
    for there, role in (detail.get("taskRoles") or {}).items():
        name = names.get(role_key(there))
        if name is None:
            continue  # a role that is not ours: nothing to keep of it
        tasks += [_task(name, there, each, attempt) for each in role.get("taskStatuses") or ()]
    state = status.get("state")
    retries = status.get("retryDetails") or {}
    trigger = status.get("appExitTriggerTaskRoleName")
    return JobSeen(
        state=state if state in JOB_STATES else UNKNOWN,
        attempt=attempt,
        tasks=tuple(tasks),
        reason=_reason(status),
        exit_code=0 if state == SUCCEEDED else _whole(status.get("appExitCode")),
        role=names.get(role_key(trigger)) if isinstance(trigger, str) else None,
        index=_whole(status.get("appExitTriggerTaskIndex")),
        retries={"user": _whole(retries.get("user")) or 0, "platform": _whole(retries.get("platform")) or 0},
    )


def _task(name: str, there: str, said: Mapping[str, Any], attempt: int) -> TaskSeen:
    state = said.get("taskState")
    exit_code = _whole(said.get("containerExitCode"))
    spec = said.get("containerExitSpec") or {}
    return TaskSeen(
        role=name,
        there=there,
        index=_whole(said.get("taskIndex")) or 0,
        state=state if state in JOB_STATES else WAITING,
        job_attempt=attempt,
        task_attempt=_whole(said.get("attemptId")) or 0,
        exit_code=exit_code,
        reason=_first_line(said.get("containerExitDiagnostics"))
        or str(spec.get("phrase") or "")
        or (f"exited with {exit_code}" if exit_code is not None else ""),
        host=said.get("containerIp"),
        ports={label: _ports(text) for label, text in (said.get("containerPorts") or {}).items()},
        exit_class={key: spec.get(key) for key in ("code", "phrase", "type", "reaction")} if spec else None,
        started=_seconds(said.get("launchedTime")),
        ended=_seconds(said.get("completedTime")),
    )


def _reason(status: Mapping[str, Any]) -> str:
    messages = status.get("appExitMessages") or {}
    for text in (status.get("appExitTriggerMessage"), messages.get("launcher"), status.get("appExitDiagnostics")):
        if _first_line(text):
            return _first_line(text)
    spec = status.get("appExitSpec") or {}
    return str(spec.get("phrase") or "")


def _first_line(text: object) -> str:
    lines = text.strip().splitlines() if isinstance(text, str) else []
    return lines[0][:500] if lines else ""


def role_key(role: str) -> str:
    """Role names as OpenPAI compares them: it drops what Kubernetes does not allow in a name."""
    return "".join(char for char in role if char.isalnum()).lower()


def _ports(text: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(text).split(",") if part.strip().isdecimal())


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _seconds(milliseconds: object) -> float | None:
    return milliseconds / 1000 if isinstance(milliseconds, (int, float)) else None
