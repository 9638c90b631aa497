"""What OpenPAI would say of our records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.jobserver.models import JobDetail, TaskView
from pailot.lifecycle.states import FAILED, FINAL_JOB_STATES, RUNNING, STOPPED, SUCCEEDED, WAITING
from pailot.runfolder.journal import Event
from pailot.server.serializers.events import events
from pailot.server.serializers.jobs import detail, detail_json, list_item, old_attempt
from pailot.server.serializers.tasks import task_history
from pailot.server.serializers.v1 import v1_detail, v1_item
from pailot.store.server import JobRecord

RECORD = JobRecord(
    "id1", "dana", "resnet-a1", 1700000000.0, state=RUNNING, started=1700000009.0, tasks=2, roles=1, gpus=4, tags=("nightly",)
)
UNKNOWN = {"code": 255, "phrase": "PAIRuntimeUnknownFailed", "type": "UNKNOWN_FAILURE", "reaction": "RETRY_TO_MAX"}


def shown(state: str = RUNNING, **changes: Any) -> JobDetail:
    told: dict[str, Any] = {
        "record": RECORD.replace(state=state, ended=1700000020.0 if state in FINAL_JOB_STATES else None),
        "attempt": 2,
        "attempts": 3,
        "attempt_state": state,
        "attempt_created": 1700000005.0,
        "attempt_started": 1700000009.0,
        "attempt_ended": None,
        "reason": None,
        "exit_code": None,
        "exit_class": None,
        "trigger_role": None,
        "trigger_index": None,
        "retries_user": 1,
        "retries_platform": 1,
        "retry_delay": None,
        "roles": {"ps_Server": (TaskView("ps_Server", 0, state, started=1700000009.0, host="10.0.0.7", ports={"ssh": (1, 2)}),)},
    }
    return JobDetail(**{**told, **changes})


def test_a_running_job() -> None:
    told = detail(shown())
    status = told["jobStatus"]
    assert (told["name"], told["tags"]) == ("resnet-a1", ["nightly"])
    assert {key: status[key] for key in ("state", "subState", "attemptId", "retryDetails", "submissionTime", "appExitCode")} == {
        "state": "RUNNING",
        "subState": "AttemptRunning",
        "attemptId": 2,
        "retryDetails": {"user": 1, "platform": 1, "resource": 0},
        "submissionTime": 1700000000000,
        "appExitCode": None,
    }
    assert [status[key] for key in ("appExitSpec", "appExitMessages", "appExitType", "completedTime")] == [None] * 4
    task = told["taskRoles"]["psserver"]["taskStatuses"][0]
    assert task["containerPorts"] == {"ssh": "1,2"}
    assert task["containerLog"] == "/api/v2/jobs/dana~resnet-a1/attempts/2/taskRoles/psserver/taskIndex/0/attempts/0/logs"


@pytest.mark.parametrize(
    ("state", "code", "kind", "expected", "said"),
    [
        (SUCCEEDED, 0, None, 0, "Succeeded"),
        (STOPPED, None, None, -210, "Failed"),
        (FAILED, 3, UNKNOWN, 255, "Failed"),
        (FAILED, None, None, None, "Failed"),
    ],
)
def test_ends(state: str, code: int | None, kind: Any, expected: int | None, said: str) -> None:
    status = detail(shown(state, exit_code=code, exit_class=kind, reason="why"))["jobStatus"]
    assert (status["state"], status["subState"], status["appExitCode"], status["appExitType"]) == (
        state,
        "Completed",
        expected,
        said,
    )
    assert status["appExitDiagnostics"] == "why"
    if kind:
        logs = {"user": "", "platform": ""}
        assert status["appExitMessages"]["runtime"] == {
            "exitCode": 255,
            "originUserExitCode": 3,
            "errorLogs": logs,
            "name": "error",
        }
        assert status["appExitSpec"]["phrase"] == "PAIRuntimeUnknownFailed"


def test_a_job_that_has_not_begun() -> None:
    told = detail(shown(WAITING, attempt=-1, attempts=0))
    assert [each["taskState"] for each in told["taskRoles"]["psserver"]["taskStatuses"]] == ["WAITING"]
    assert "attemptId" not in told["jobStatus"]
    assert "appId" not in told["jobStatus"]


TIMES = st.none() | st.floats(0, 2e9)
TASKS = st.builds(
    TaskView,
    role=st.just("Main_role"),
    index=st.integers(0, 10**6),
    state=st.sampled_from([WAITING, RUNNING, SUCCEEDED, FAILED, STOPPED]),
    attempt=st.integers(0, 50),
    created=TIMES,
    started=TIMES,
    ended=TIMES,
    exit_code=st.none() | st.integers(-10, 300),
    reason=st.none() | st.text(),
    exit_class=st.none() | st.just(UNKNOWN),
    host=st.none() | st.text(),
    ports=st.dictionaries(st.text(), st.lists(st.integers(1, 65535)).map(tuple), max_size=3),
)


@given(st.lists(TASKS, max_size=5))
def test_the_quick_way_says_the_same(tasks: list[TaskView]) -> None:
    given_ = shown(roles={"Main_role": tuple(tasks), "other": ()})
    assert json.loads(detail_json(given_)) == detail(given_)


def test_items_of_lists() -> None:
    item = list_item(RECORD.replace(state=SUCCEEDED, exit_code=0))
    assert (item["appExitCode"], item["totalGpuNumber"], item["virtualCluster"], item["jobPriority"]) == (0, 4, "default", None)
    assert v1_item(RECORD.replace(state=SUCCEEDED), "SUCCEED")["state"] == "SUCCEED"
    assert v1_item(RECORD, "SUCCEED")["state"] == "RUNNING"
    assert v1_detail(shown(SUCCEEDED, exit_code=0), "SUCCEED")["jobStatus"]["state"] == "SUCCEED"


def test_the_history_of_a_task() -> None:
    task = TaskView("w", 1, FAILED, attempt=1, exit_code=3, exit_class=UNKNOWN)
    told = task_history("dana", "j", "id1", 0, "w", task, [task, task.replace(attempt=0)])
    assert [each["attemptId"] for each in told["attempts"]] == [1, 0]
    assert told["attempts"][0]["containerExitCode"] == 255
    assert len({each["containerLog"] for each in told["attempts"]}) == 2


def test_the_deprecated_form_of_an_attempt() -> None:
    told = old_attempt(shown(FAILED, exit_code=3, exit_class=UNKNOWN, attempt=1))
    assert (told["attemptIndex"], told["isLatest"], told["exitPhrase"]) == (1, False, "PAIRuntimeUnknownFailed")


def test_a_journal_as_events() -> None:
    journal = [
        Event(1.0, "submitted", {"name": "j", "user": "dana"}),
        Event(2.5, "task-retry", {"role": "ps_s", "index": 1, "attempt": 1, "reason": "exited with 3"}),
        Event(3.0, "ended", {"state": "SUCCEEDED", "reason": "all well"}),
    ]
    told = events("dana", "j", journal, "host")
    assert told["totalCount"] == 3
    assert [each["reason"] for each in told["data"]] == ["Ended", "TaskRetry", "Submitted"]
    assert (told["data"][1]["type"], told["data"][1]["message"]) == ("Warning", "ps_s:1 exited with 3")
    assert told["data"][1]["lastTimestamp"] == "1970-01-01T00:00:02.500Z"
    assert events("dana", "j", journal, "host", "Warning")["totalCount"] == 1
