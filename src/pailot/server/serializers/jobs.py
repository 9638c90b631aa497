"""Jobs as OpenPAI's API tells them: the items of the list, the detail, the deprecated attempts."""

from __future__ import annotations

import json

from ...lifecycle.exit_classes import End, classify
from ...lifecycle.states import FAILED, FINAL_JOB_STATES, STOPPED, SUCCEEDED
from .openpai_terms import exit_code, exit_spec, framework_name, milliseconds, role_names, sub_state
from .tasks import statuses_json, task_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...jobserver.models import JobDetail
    from ...scheduling.requests import Reason
    from ...store.server import JobRecord


def list_item(job: JobRecord) -> dict[str, object]:
    """One job of the list."""
    return {
        "debugId": framework_name(job.user, job.name),
        "name": job.name,
        "username": job.user,
        "state": job.state,
        "subState": sub_state(job.state),
        "executionType": job.execution_type,
        "tags": list(job.tags),
        "retries": job.retries,
        "retryDetails": {"user": job.user_retries, "platform": job.platform_retries, "resource": 0},
        "retryDelayTime": None,
        "submissionTime": milliseconds(job.submitted),
        "createdTime": milliseconds(job.submitted),
        "launchedTime": milliseconds(job.started),
        "completedTime": milliseconds(job.ended),
        "appExitCode": _recorded_code(job),
        "virtualCluster": job.vc or "unknown",
        "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.tasks,
        "totalTaskRoleNumber": job.roles,
        "jobPriority": job.priority,
        **({"labels": dict(job.labels)} if job.labels else {}),
    }


def row(job: JobRecord, waits_for: Reason | None, states: Mapping[str, int] | None, cursor: int) -> dict[str, object]:
    """One job as the web page lists it; `waits_for` is what keeps it in the queue, `states` counts its tasks by state."""
    return {
        "cursor": cursor,
        "taskStates": None if states is None else dict(states),
        "name": job.name,
        "user": job.user,
        "virtualCluster": job.vc,
        "state": job.state,
        "submitted": milliseconds(job.submitted),
        "started": milliseconds(job.started),
        "ended": milliseconds(job.ended),
        "tasks": job.tasks,
        "retries": job.retries,
        "cpus": job.cpus,
        "memoryMB": job.memory_mb,
        "gpus": job.gpus,
        "priority": job.priority,
        "tags": list(job.tags),
        "reason": (waits_for.text if waits_for is not None else job.reason) or None,
        "position": waits_for.position if waits_for is not None else None,
    }


def detail(shown: JobDetail) -> dict[str, Any]:
    """A job with all tasks of one attempt."""
    return {**_head(shown), "taskRoles": _roles(shown)}


def _head(shown: JobDetail) -> dict[str, object]:
    job = shown.record
    return {
        "debugId": framework_name(job.user, job.name),
        "name": job.name,
        "tags": list(job.tags),
        "jobPriority": job.priority,
        "jobStatus": _status(shown),
    }


def _base(shown: JobDetail, role: str) -> str:
    """The address of a role in the attempt."""
    return f"/api/v2/jobs/{shown.record.user}~{shown.record.name}/attempts/{max(shown.attempt, 0)}/taskRoles/{role}"


def detail_json(shown: JobDetail) -> bytes:
    """The same as JSON, quickly for thousands of tasks, too."""
    head = json.dumps({**_head(shown), "taskRoles": None}, separators=(",", ":")).removesuffix("null}")
    names = role_names(shown.roles)
    roles = [
        f'"{names[role]}":{{"taskRoleStatus":{{"name":"{names[role]}"}},'
        f'"taskStatuses":{statuses_json(tasks, shown.record.id, max(shown.attempt, 0), _base(shown, names[role]))}}}'
        for role, tasks in shown.roles.items()
    ]
    return f"{head}{{{','.join(roles)}}}}}".encode()


def old_attempt(shown: JobDetail) -> dict[str, object]:
    """The deprecated form of one attempt."""
    job, status = shown.record, _status(shown)
    return {
        "jobName": job.name,
        "frameworkName": framework_name(job.user, job.name),
        "uid": status.get("appId"),
        "userName": job.user,
        "state": shown.attempt_state,
        "originState": sub_state(shown.attempt_state),
        "attemptIndex": max(shown.attempt, 0),
        "jobStartedTime": status["createdTime"],
        "attemptStartedTime": status["appLaunchedTime"],
        "attemptCompletedTime": status["appCompletedTime"],
        "exitCode": status["appExitCode"],
        "exitPhrase": (status["appExitSpec"] or {}).get("phrase"),
        "exitType": (status["appExitSpec"] or {}).get("type"),
        "exitDiagnostics": None
        if status["appExitMessages"] is None
        else {
            "diagnosticsSummary": status["appExitDiagnostics"],
            "runtime": status["appExitMessages"]["runtime"],
            "launcher": status["appExitMessages"]["launcher"],
        },
        "appExitTriggerMessage": status["appExitTriggerMessage"],
        "appExitTriggerTaskRoleName": status["appExitTriggerTaskRoleName"],
        "appExitTriggerTaskIndex": status["appExitTriggerTaskIndex"],
        "appExitSpec": status["appExitSpec"],
        "appExitDiagnostics": status["appExitDiagnostics"],
        "appExitMessages": status["appExitMessages"],
        "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.tasks,
        "totalTaskRoleNumber": job.roles,
        "taskRoles": _roles(shown),
        "isLatest": shown.attempt >= shown.attempts - 1,
    }


def _status(shown: JobDetail) -> dict[str, Any]:
    job = shown.record
    final = shown.attempt_state in FINAL_JOB_STATES
    code = exit_code(shown.attempt_state, shown.exit_code, shown.exit_class) if final else None
    begun = {"attemptId": shown.attempt, "appId": f"{shown.attempt}_{job.id}"} if shown.attempt >= 0 else {}
    return {
        "username": job.user,
        "state": job.state,
        "subState": sub_state(job.state),
        "executionType": job.execution_type,
        "retries": job.retries,
        "retryDetails": {"user": shown.retries_user, "platform": shown.retries_platform, "resource": 0},
        "retryDelayTime": None if shown.retry_delay is None else int(shown.retry_delay),
        "submissionTime": milliseconds(job.submitted),
        "createdTime": milliseconds(job.submitted),
        "launchedTime": milliseconds(job.started),
        "completedTime": milliseconds(job.ended),
        **begun,
        "attemptState": shown.attempt_state,
        "appProgress": int(final),
        "appTrackingUrl": "",
        "appCreatedTime": milliseconds(shown.attempt_created),
        "appLaunchedTime": milliseconds(shown.attempt_started),
        "appCompletedTime": milliseconds(shown.attempt_ended),
        "appExitCode": code,
        "appExitSpec": exit_spec(code),
        "appExitDiagnostics": shown.reason if final else None,
        "appExitMessages": _messages(shown, code) if final else None,
        "appExitTriggerMessage": shown.reason if final and shown.trigger_role else None,
        "appExitTriggerTaskRoleName": role_names(shown.roles).get(shown.trigger_role) if shown.trigger_role else None,
        "appExitTriggerTaskIndex": shown.trigger_index,
        "appExitType": None if not final else "Succeeded" if shown.attempt_state == SUCCEEDED else "Failed",
        "virtualCluster": job.vc or "default",
    }


def _messages(shown: JobDetail, code: int | None) -> dict[str, object]:
    """What the program itself said of its end: its own exit code, which OpenPAI's class does not show."""
    if shown.exit_code is None or shown.attempt_state in (SUCCEEDED, STOPPED):
        return {"container": None, "runtime": None, "launcher": shown.reason}
    errors = {"user": "\n".join(_last_lines(shown)), "platform": ""}
    runtime = {"exitCode": code, "originUserExitCode": shown.exit_code, "errorLogs": errors, "name": "error"}
    return {"container": None, "runtime": runtime, "launcher": None}


def _last_lines(shown: JobDetail) -> tuple[str, ...]:
    """The last lines of the deciding task. They are part of its log, with the same readers."""
    tasks = shown.roles.get(shown.trigger_role or "", ())
    if not shown.readable or shown.trigger_index is None or shown.trigger_index >= len(tasks):
        return ()
    return tasks[shown.trigger_index].last_lines


def _roles(shown: JobDetail) -> dict[str, object]:
    """All tasks: of a job that waits, those of the attempt that will be its first."""
    number = max(shown.attempt, 0)
    names = role_names(shown.roles)
    return {
        names[role]: {
            "taskRoleStatus": {"name": names[role]},
            "taskStatuses": [task_status(task, shown.record.id, number, _base(shown, names[role])) for task in tasks],
        }
        for role, tasks in shown.roles.items()
    }


def _recorded_code(job: JobRecord) -> int | None:
    """What the record tells of the end; the detail may know more, from the log."""
    if job.state == FAILED and job.exit_code is not None:
        return classify(End(job.exit_code), "").code
    return exit_code(job.state, job.exit_code, None) if job.state in FINAL_JOB_STATES else None
