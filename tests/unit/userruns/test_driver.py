"""Every way of a run through its driver, on the fake engine."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from pailot.engines.contract import Attempt, EngineError, Unreachable
from pailot.engines.observation import Observed
from pailot.engines.traits import Traits
from pailot.job_values import Channels
from pailot.lifecycle.completion import Outcome, Verdict
from pailot.progress import Progress
from pailot.runfolder import layout
from pailot.runfolder.atomic_json import DISK_FULL
from pailot.runfolder.records import VerdictRecord
from pailot.runfolder.stop_reason import claim_stop
from pailot.testing.runs import role
from pailot.userruns.driver import Watcher, full_disk

from .stage import Stage

ELSEWHERE = Traits(survives_launcher=True, decides_outcome=True, on_this_machine=False)


def test_a_run_succeeds_when_its_tasks_have(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.engine.notes = ("a note",)
    stage.go()
    assert stage.folder.state().state == "RUNNING"
    stage.engine.end("worker", 0)
    assert stage.go() is None
    stage.engine.end("worker", 1)
    record = stage.to_the_end()
    assert (record["state"], record["exitCode"], record["retries"]) == ("SUCCEEDED", 0, {"user": 0, "platform": 0})
    assert stage.folder.verdict() == VerdictRecord.from_json(record)
    assert (stage.watcher.notes, stage.watcher.verdicts) == (["a note"], [record])
    assert [entry["index"] for entry in stage.happened("task-ended")] == [0, 1]


def test_the_first_failure_decides_and_the_others_are_stopped(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    stage.engine.end("worker", 1, exit_code=7)
    record = stage.to_the_end()
    assert (record["state"], record["role"], record["index"], record["exitCode"]) == ("FAILED", "worker", 1, 7)
    assert [(stop.why, stop.now) for stop in stage.engine.stops] == [("completed", False)]
    assert stage.happened("stopping") == []  # nobody asked for it


def test_a_task_that_ends_after_the_verdict_changes_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, obeys=False)
    stage.go()
    stage.engine.end("worker", 1, exit_code=7)
    stage.go()
    stage.engine.end("worker", 0, exit_code=9)
    assert stage.to_the_end()["exitCode"] == 7


@pytest.mark.parametrize("allowed", [0, 2])
def test_a_failed_job_is_tried_again_as_often_as_it_may(tmp_path: Path, allowed: int) -> None:
    stage = Stage(tmp_path, job_retries=allowed, options="retryDelaySeconds: 0")
    for number in range(allowed + 1):
        stage.until_attempt(number)
        stage.engine.end("worker", 0, exit_code=1)
        stage.go()
    record = stage.to_the_end()
    assert (record["state"], record["retries"]) == ("FAILED", {"user": allowed, "platform": 0})
    assert [attempt.number for attempt in stage.engine.started] == list(range(allowed + 1))
    assert (stage.engine.released, len(stage.happened("job-retry"))) == (allowed, allowed)


def test_a_lost_task_is_a_failure_of_the_platform_and_costs_no_retry(tmp_path: Path) -> None:
    stage = Stage(tmp_path, options="retryDelaySeconds: 0")
    stage.go()
    stage.engine.lose("worker", 0, "its node is gone")
    stage.until_attempt(1)
    for index in (0, 1):
        stage.engine.end("worker", index)
    record = stage.to_the_end()
    assert (record["state"], record["retries"]) == ("SUCCEEDED", {"user": 0, "platform": 1})
    assert "worker:0 was lost: its node is gone" in stage.happened("job-retry")[0]["reason"]


@pytest.mark.parametrize("key", ["disk_full", "give_up"])
def test_what_would_fail_again_is_not_tried_again(tmp_path: Path, key: str) -> None:
    stage = Stage(tmp_path, job_retries=3)
    stage.go()
    stage.engine.end("worker", 0, exit_code=None, outcome="failed", reason="no room", **{key: True})
    record = stage.to_the_end()
    assert (record["state"], record["reason"], len(stage.engine.started)) == ("FAILED", "worker:0: no room", 1)


def test_a_user_stops_a_run_with_the_grace_that_he_gives(tmp_path: Path) -> None:
    stage = Stage(tmp_path, job_retries=3)
    stage.go()
    claim_stop(stage.folder.path, "user", 3.5)
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("STOPPED", "stopped by the user")
    assert [(stop.why, stop.grace, stop.now) for stop in stage.engine.stops] == [("user", 3.5, False)]
    assert stage.happened("stopping")[0]["why"] == "user"


def test_a_second_interrupt_kills(tmp_path: Path) -> None:
    stage = Stage(tmp_path, obeys=False, options="graceSeconds: 600")
    stage.go()
    stage.driver.interrupted()
    stage.go()
    stage.go()
    stage.driver.interrupted()
    assert stage.to_the_end()["state"] == "STOPPED"
    assert [(stop.why, stop.grace, stop.now) for stop in stage.engine.stops] == [("user", 600, False), ("user", 600, True)]


def test_a_kill_after_the_verdict_does_not_change_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, obeys=False)
    stage.go()
    stage.engine.end("worker", 0, exit_code=4)
    stage.go()
    stage.driver.interrupted(2)
    record = stage.to_the_end()
    assert (record["state"], record["exitCode"]) == ("FAILED", 4)
    assert [(stop.why, stop.now) for stop in stage.engine.stops] == [("completed", False), ("completed", True)]


def test_a_limit_of_time_fails_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, options="maxRunSeconds: 0.01")
    stage.go()
    assert stage.moment is not None
    time.sleep(max(0.0, stage.moment - time.monotonic()))
    record = stage.to_the_end()
    assert (record["state"], "maxRunSeconds" in record["reason"]) == ("FAILED", True)
    assert [stop.why for stop in stage.engine.stops] == ["timeout"]


def test_a_preempted_run_is_handed_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    stage.driver.preempted = True
    record = stage.to_the_end()
    assert (record["again"], record["attempt"]) == ("preempted", 1)
    assert stage.folder.verdict() is None
    assert [stop.why for stop in stage.engine.stops] == ["preempted"]


def test_a_stop_wins_over_making_room(tmp_path: Path) -> None:
    stage = Stage(tmp_path, obeys=False)
    stage.go()
    stage.driver.preempted = True
    stage.go()
    claim_stop(stage.folder.path, "user", 1)
    for index in (0, 1):
        stage.engine.end("worker", index, outcome="stopped", exit_code=None)
    assert stage.to_the_end()["state"] == "STOPPED"


def test_an_engine_that_refuses_ends_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path, job_retries=3)
    stage.engine.problem = EngineError("no room for it")
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("FAILED", "it could not be started: no room for it")
    assert (record.get("exitStatus"), len(stage.engine.started)) == (None, 1)


def test_an_engine_that_is_not_there_has_a_status_of_its_own(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.engine.problem = Unreachable("it does not answer")
    assert stage.to_the_end()["exitStatus"] == 4


def test_an_error_of_the_system_is_told_with_its_place(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.engine.problem = OSError(errno.EACCES, "Permission denied", "/some/where")
    assert stage.to_the_end()["reason"] == "it could not be started: Permission denied (/some/where)"


def test_a_full_disk_is_told_as_such(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.engine.problem = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "disk" in stage.to_the_end()["reason"]


@pytest.mark.parametrize("waits", [False, True])
def test_a_run_can_be_stopped_before_it_has_started(tmp_path: Path, waits: bool) -> None:
    stage = Stage(tmp_path)
    stage.engine.waits = waits
    if waits:
        stage.go()
    stage.driver.interrupted()
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("STOPPED", "stopped before it started")
    assert len(stage.engine.started) == int(waits)


@pytest.mark.parametrize("wish", ["stop", "preempt"])
def test_a_wait_for_the_next_attempt_can_be_ended(tmp_path: Path, wish: str) -> None:
    stage = Stage(tmp_path, job_retries=2, options="retryDelaySeconds: 600")
    for number in (0, 1):  # the first retry comes at once
        stage.until_attempt(number)
        stage.engine.end("worker", 0, exit_code=1)
        while len(stage.happened("job-retry")) <= number:
            assert stage.go() is None
    if wish == "stop":
        stage.driver.interrupted()
    else:
        stage.driver.preempted = True
    record = stage.to_the_end()
    assert record.get("state", record.get("again")) == ("STOPPED" if wish == "stop" else "preempted")
    assert len(stage.engine.started) == 2


def test_an_engine_that_decides_is_believed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, traits=ELSEWHERE)
    stage.go()
    stage.engine.end("worker", 0, exit_code=1)  # with another policy than ours, this may be no end
    assert stage.go() is None
    assert stage.engine.stops == []
    verdict = Verdict("SUCCEEDED", "it said so", "worker", 1, 0)
    stage.engine.decide(Outcome("user", verdict, {"user": 2, "platform": 1}))
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("SUCCEEDED", "it said so")
    assert record["retries"] == {"user": 2, "platform": 1}


def test_an_engine_that_should_decide_and_says_nothing_has_failed_us(tmp_path: Path) -> None:
    stage = Stage(tmp_path, traits=ELSEWHERE, options="retryDelaySeconds: 0")
    stage.go()
    stage.engine.running.clear()
    stage.until_attempt(1)
    assert stage.happened("job-retry")[0]["reason"] == "it ended without a result"


def test_a_run_elsewhere_is_taken_up_where_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, traits=ELSEWHERE, resumes=True)
    os.makedirs(stage.folder.attempt(0))
    stage.driver.interrupted()  # it is begun, so this stops it, and is not its end
    stage.go()
    assert stage.happened("resumed", "started")[0]["event"] == "resumed"


def test_an_attempt_is_never_begun_twice(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    os.makedirs(stage.folder.attempt(0))
    with pytest.raises(FileExistsError):
        stage.go()


def test_what_the_engine_tells_reaches_watcher_and_journal(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    begun: list[bool] = []
    stage.driver.on_started = lambda: begun.append(True)
    stage.go()
    stage.engine.tell("claimed", role="worker", index=0)
    stage.engine.tell("grown", role="worker", index=1, attempt=2)
    stage.engine.tell("retry", role="worker", index=1, attempt=0, reason="it failed")
    stage.engine.tell("held", role="worker", index=0)
    stage.engine.tell("state", state="WAITING", reason="a queue")
    stage.engine.tell("job-retry", attempt=1, reason="it failed there")
    stage.engine.tell("something of a later version")
    stage.go()
    assert (begun, stage.watcher.logs) == ([], [(0, "worker", 1, 2)])
    told = [entry["event"] for entry in stage.happened("task-retry", "task-held", "state", "waiting", "job-retry")]
    assert told == ["task-retry", "task-held", "state", "waiting", "job-retry"]
    assert stage.folder.state().state == "WAITING"
    stage.engine.tell("claimed", role="worker", index=1)
    stage.go()
    assert begun == [True]
    assert os.path.exists(os.path.join(stage.folder.attempt(0), "started"))


def test_the_journal_tells_of_a_task_that_began_again_and_not_of_the_first_that_begin_with_the_run(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    stage.engine.tell("running", role="worker", index=0, attempt=0)
    stage.engine.tell("running", role="worker", index=1, attempt=1)
    stage.go()
    assert [(each["index"], each["attempt"]) for each in stage.happened("task-started")] == [(1, 1)]


def test_a_task_that_has_ended_was_begun_whatever_was_heard_of_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, role("true"))
    begun: list[bool] = []
    stage.driver.on_started = lambda: begun.append(True)
    stage.go()
    stage.engine.end("main", 0)
    stage.to_the_end()
    assert begun == [True]


def test_an_engine_without_a_sign_is_looked_at_every_second(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    assert [stage.moment] == [None]
    stage.engine.sign = None
    stage.go()
    assert stage.moment is not None
    assert 0 < stage.moment - time.monotonic() <= 1


def test_tasks_that_are_all_gone_without_a_word_are_no_success(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    stage.engine.running.clear()
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("FAILED", "it ended without a result")


def test_a_start_that_fails_halfway_leaves_no_task_behind(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.engine.problem, stage.engine.halfway = EngineError("the second node is gone"), True
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("FAILED", "it could not be started: the second node is gone")
    assert (stage.engine.running, [(stop.why, stop.now) for stop in stage.engine.stops]) == ({}, [("completed", True)])


def test_the_state_of_a_queue_is_not_told_of_a_run_that_stops(tmp_path: Path) -> None:
    stage = Stage(tmp_path, obeys=False)
    stage.go()
    stage.driver.interrupted()
    stage.go()
    stage.engine.tell("state", state="RUNNING", reason="")
    stage.go()
    assert (stage.happened("state"), stage.folder.state().state) == ([], "STOPPING")


def test_progress_is_worth_a_line_now_and_then(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    for done, seconds in ((1, 0.1), (50, 20.0), (51, 20.1)):
        stage.engine.progressed(Progress("data", done, 100, seconds))
    stage.engine.progressed(Progress("data", 100, 100, 21.0, ended=True))
    assert [entry["done"] for entry in stage.happened("progress")] == [50, 100]
    assert [progress.done for progress in stage.watcher.moves] == [1, 51]


def test_the_disk_that_is_full_is_named_where_it_is_another(tmp_path: Path) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/proc/self/status")
    assert full_disk(error, str(tmp_path)) == "the disk that holds /proc/self/status is full"
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "gone" / "file"))
    assert full_disk(error, str(tmp_path)) == DISK_FULL


def test_a_run_that_may_never_start_has_its_verdict_at_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path)

    def never(_stopped: Callable[[], bool]) -> Generator[float | None, None, Verdict | None]:
        yield None
        return Verdict("STOPPED", "the run before it failed")

    stage.driver.before_first = never
    record = stage.to_the_end()
    assert (record["state"], record["reason"]) == ("STOPPED", "the run before it failed")
    assert stage.engine.started == []


def test_a_disk_that_is_full_while_tasks_run_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, job_retries=3)
    stage.go()

    def full(_attempt: Attempt) -> list[Observed]:
        monkeypatch.undo()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(stage.engine, "newly_ended", full)
    record = stage.to_the_end()
    assert (record["state"], record["reason"], len(stage.engine.started)) == ("FAILED", DISK_FULL, 1)


def test_events_that_are_not_known_change_nothing_and_are_not_written_down(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.go()
    stage.engine.tell("from-the-future", role="worker", index=0)
    stage.engine.tell("state", state="RUNNING", reason=None)
    stage.go()
    for index in (0, 1):
        stage.engine.end("worker", index)
    assert stage.to_the_end()["state"] == "SUCCEEDED"
    assert stage.happened("from-the-future", "waiting") == []


def test_a_driver_without_a_watcher_hears_of_logs_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.driver.watcher = Watcher()
    stage.driver.watcher.tick()
    assert (stage.driver.watcher.descriptors(), stage.driver.watcher.timeout()) == ({}, None)
    stage.go()
    stage.engine.tell("grown", role="worker", index=0, attempt=0)
    for index in (0, 1):
        stage.engine.end("worker", index)
    assert stage.to_the_end()["state"] == "SUCCEEDED"


def test_the_outputs_of_a_run_are_published_before_its_verdict(tmp_path: Path) -> None:
    target = tmp_path / "target"
    stage = Stage(tmp_path)
    channels = Channels((), ("model",), {}, {"model": target.as_uri()})
    options = stage.plan.options.replace(channels=channels)
    stage = Stage.of_plan(tmp_path / "published", stage.plan.replace(options=options))
    stage.go()
    output = Path(stage.folder.attempt(0)) / layout.ML / "output" / "model"
    output.mkdir(parents=True)
    (output / "weights").write_text("1 2 3", encoding="utf-8")
    (output.parent / "stray").write_text("lost", encoding="utf-8")
    for index in (0, 1):
        stage.engine.end("worker", index)
    until = time.monotonic() + 60
    while stage.go() is None and time.monotonic() < until:
        select.select([], [], [], 0.01)  # a child publishes; the caller of a driver waits for that, as its loop does
    record = stage.record
    assert record is not None
    assert record["state"] == "SUCCEEDED"
    assert "/ml/output/stray" in stage.happened("waiting")[0]["reason"]
    assert (target / "weights").read_text(encoding="utf-8") == "1 2 3"
