"""Tasks as OpenPAI's API tells them, and the history of one of them."""

from __future__ import annotations

from ...lifecycle.states import FINAL_JOB_STATES
from .words import exit_code, exit_spec, milliseconds, role_name, uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...service.team.values import TaskView


def task_status(task: TaskView, job: str, attempt: int, base: str) -> dict[str, Any]:
    """A task with its latest attempt."""
    return {
        "taskIndex": task.index,
        "taskUid": uid(job, attempt, task.role, task.index),
        "taskState": task.state,
        "retries": task.attempt,
        "accountableRetries": task.attempt,
        "createdTime": milliseconds(task.created),
        "launchedTime": milliseconds(task.started),
        "completedTime": milliseconds(task.ended),
        **task_attempt(task, job, attempt, base),
    }


def task_attempt(task: TaskView, job: str, attempt: int, base: str) -> dict[str, Any]:
    """One attempt of a task; `base` is the address of the job's attempt."""
    final = task.state in FINAL_JOB_STATES
    code = exit_code(task.state, task.exit_code, task.exit_class) if final else None
    role = role_name(task.role)
    return {
        "attemptId": task.attempt,
        "attemptState": task.state,
        "currentAttemptCreatedTime": milliseconds(task.created),
        "currentAttemptLaunchedTime": milliseconds(task.started),
        "currentAttemptCompletedTime": milliseconds(task.ended),
        "containerId": uid(job, attempt, task.role, task.index, task.attempt) if task.started else None,
        "containerIp": task.host,
        "containerNodeName": task.host,
        "containerPorts": {label: ",".join(map(str, ports)) for label, ports in task.ports.items()},
        "containerGpus": None,
        "containerLog": f"{base}/taskRoles/{role}/taskIndex/{task.index}/attempts/{task.attempt}/logs",
        "containerExitCode": code,
        "containerExitSpec": exit_spec(code) if code else None,
        "containerExitDiagnostics": task.reason if final else None,
    }


def task_history(user: str, name: str, job: str, attempt: int, task: TaskView, attempts: Sequence[TaskView]) -> dict[str, Any]:
    """A task with all its attempts, newest first."""
    base = f"/api/v2/jobs/{user}~{name}/attempts/{attempt}"
    return {
        "username": user,
        "jobName": name,
        "jobAttemptId": attempt,
        "taskRoleName": role_name(task.role),
        "taskIndex": task.index,
        "taskUid": uid(job, attempt, task.role, task.index),
        "taskState": task.state,
        "retries": task.attempt,
        "accountableRetries": task.attempt,
        "createdTime": milliseconds(task.created),
        "launchedTime": milliseconds(task.started),
        "completedTime": milliseconds(task.ended),
        "attempts": [task_attempt(each, job, attempt, base) for each in attempts],
    }
