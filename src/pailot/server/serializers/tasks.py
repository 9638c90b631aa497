"""Tasks as OpenPAI's API tells them, and the history of one of them."""

from __future__ import annotations

import json

from ...lifecycle.states import FINAL_JOB_STATES
from .openpai_terms import exit_code, exit_spec, milliseconds, uid, uid_base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ...jobserver.models import TaskView


def task_status(task: TaskView, job: str, attempt: int, base: str) -> dict[str, object]:
    """A task with its latest attempt."""
    return {
        "taskIndex": task.index,
        "taskUid": uid(job, attempt, task.role, index=task.index),
        "taskState": task.state,
        "retries": task.attempt,
        "accountableRetries": task.attempt,
        "createdTime": milliseconds(task.created),
        "launchedTime": milliseconds(task.started),
        "completedTime": milliseconds(task.ended),
        **task_attempt(task, job, attempt, base),
    }


def statuses_json(tasks: Sequence[TaskView], job: str, attempt: int, base: str) -> str:
    """All of them as JSON: the same as `task_status` of each, written in a quarter of the time.

    Of a job with thousands of tasks most are alike but for their numbers, so what is alike is written once.
    """
    if not tasks:
        return "[]"
    role = tasks[0].role
    task_uid, pod_uid = uid_base(job, attempt, role), uid_base("pod", job, attempt, role)
    log = f"{base}/taskIndex/"
    texts = _Texts()
    ends: dict[tuple[Any, ...], str] = {}
    told = []
    for task in tasks:
        end = (task.state, task.exit_code, task.reason, task.exit_class and task.exit_class.get("code"))
        how = ends.get(end)
        if how is None:
            how = ends[end] = _end_json(task)
        created, started, ended = _time(task.created), _time(task.started), _time(task.ended)
        index, number, state, host = task.index, task.attempt, texts[task.state], texts[task.host]
        node = texts[task.node]
        container = f'"{pod_uid}{number:04x}{index:08x}"' if task.started else "null"
        ports = ",".join([f'{texts[label]}:"{",".join(map(str, each))}"' for label, each in task.ports.items()])
        told.append(
            f'{{"taskIndex":{index},"taskUid":"{task_uid}{index:012x}","taskState":{state},"retries":{number},'
            f'"accountableRetries":{number},"createdTime":{created},"launchedTime":{started},"completedTime":{ended},'
            f'"attemptId":{number},"attemptState":{state},"currentAttemptCreatedTime":{created},'
            f'"currentAttemptLaunchedTime":{started},"currentAttemptCompletedTime":{ended},"containerId":{container},'
            f'"containerIp":{host},"containerNodeName":{node},"containerPorts":{{{ports}}},"containerGpus":null,'
            f'"containerLog":"{log}{index}/attempts/{number}/logs",{how}}}'
        )
    return f"[{','.join(told)}]"


class _Texts(dict["str | None", str]):
    """Values as JSON, each written once."""

    def __missing__(self, value: str | None) -> str:
        self[value] = text = json.dumps(value)
        return text


def _time(seconds: float | None) -> str:
    return "null" if seconds is None else str(int(seconds * 1000))


def _end_json(task: TaskView) -> str:
    return json.dumps(_end(task), separators=(",", ":"))[1:-1]


def task_attempt(task: TaskView, job: str, attempt: int, base: str) -> dict[str, object]:
    """One attempt of a task; `base` is the address of its role in the job's attempt."""
    pod = uid("pod", job, attempt, task.role, index=task.attempt << 32 | task.index)
    return {
        "attemptId": task.attempt,
        "attemptState": task.state,
        "currentAttemptCreatedTime": milliseconds(task.created),
        "currentAttemptLaunchedTime": milliseconds(task.started),
        "currentAttemptCompletedTime": milliseconds(task.ended),
        "containerId": pod if task.started else None,
        "containerIp": task.host,
        "containerNodeName": task.node,
        "containerPorts": {label: ",".join(map(str, ports)) for label, ports in task.ports.items()},
        "containerGpus": None,
        "containerLog": f"{base}/taskIndex/{task.index}/attempts/{task.attempt}/logs",
        **_end(task),
    }


def _end(task: TaskView) -> dict[str, object]:
    final = task.state in FINAL_JOB_STATES
    code = exit_code(task.state, task.exit_code, task.exit_class) if final else None
    return {
        "containerExitCode": code,
        "containerExitSpec": exit_spec(code) if code else None,
        "containerExitDiagnostics": task.reason if final else None,
    }


def task_history(
    user: str, name: str, job: str, attempt: int, role: str, task: TaskView, attempts: Sequence[TaskView]
) -> dict[str, Any]:
    """A task with all its attempts, newest first; `role` as it is shown."""
    base = f"/api/v2/jobs/{user}~{name}/attempts/{attempt}/taskRoles/{role}"
    return {
        "username": user,
        "jobName": name,
        "jobAttemptId": attempt,
        "taskRoleName": role,
        "taskIndex": task.index,
        "taskUid": uid(job, attempt, task.role, index=task.index),
        "taskState": task.state,
        "retries": task.attempt,
        "accountableRetries": task.attempt,
        "createdTime": milliseconds(task.created),
        "launchedTime": milliseconds(task.started),
        "completedTime": milliseconds(task.ended),
        "attempts": [task_attempt(each, job, attempt, base) for each in attempts],
    }
