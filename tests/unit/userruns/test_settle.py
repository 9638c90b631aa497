"""A job of a server whose keeper is gone, in every state that its folder can be in, on the fake engine."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pailot.engines import registry
from pailot.engines.registry import Entry
from pailot.engines.traits import Traits
from pailot.lifecycle.completion import Outcome, Verdict
from pailot.lifecycle.settling import BUSY, GOES_ON, QUEUE
from pailot.runfolder import layout
from pailot.runfolder.atomic_json import DISK_FULL, write_record
from pailot.runfolder.records import HandedOn, Placement
from pailot.userruns import reattach
from pailot.userruns.settle import AGAIN, ENDED, Queued, Settled, settle, wait_for_shims

from .stage import Stage

ELSEWHERE = Traits(survives_launcher=True, decides_outcome=True, on_this_machine=False)


def begun(folder: Path, **options: Any) -> Stage:
    """A job whose tasks run, and whose keeper is killed now."""
    stage = Stage(folder, **options)
    stage.folder.durable = False
    stage.go()
    return stage


def settled(stage: Stage, *, stop: bool = False, retries: dict[str, int] | None = None, **more: Any) -> Settled:
    if retries:
        stage.folder.set_state(stage.folder.state().replace(retries=retries))
    queued = Queued(stage.plan.to_json(), retries or {"user": 0, "platform": 0}, 1.0, stop, **more)
    return settle(stage.folder, queued)


def test_a_folder_that_is_not_complete_was_never_begun(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    os.unlink(stage.folder.file(layout.JOB))
    assert settled(stage) == Settled(QUEUE)


def test_a_verdict_is_taken_over(tmp_path: Path) -> None:
    stage = begun(tmp_path)
    for index in (0, 1):
        stage.engine.end("worker", index)
    stage.to_the_end()
    assert settled(stage).verdict == stage.folder.verdict()


def test_a_job_that_somebody_drives_is_left_alone(tmp_path: Path) -> None:
    stage = begun(tmp_path)
    lock = stage.folder.lock()
    assert lock is not None
    assert settled(stage).kind == BUSY
    os.close(lock)


@pytest.mark.parametrize("told", ["by the keeper", "by the server"])
def test_a_defect_is_the_end_of_its_job(tmp_path: Path, told: str) -> None:
    stage = begun(tmp_path, job_retries=3)
    if told == "by the keeper":
        write_record(stage.folder.file(layout.KEEPER_ERROR), {"reason": "a mistake of ours", "defect": True, "at": 1.0})
    found = settled(stage, defect="a mistake of ours" if told == "by the server" else "")
    assert (found.kind, found.verdict.state, found.verdict.reason) == (ENDED, "FAILED", "a mistake of ours")


def test_what_was_to_stop_is_stopped(tmp_path: Path) -> None:
    found = settled(begun(tmp_path, job_retries=3), stop=True)
    assert (found.kind, found.verdict.state) == (ENDED, "STOPPED")


def test_a_job_that_was_not_begun_waits_on(tmp_path: Path) -> None:
    found = settled(Stage(tmp_path))
    assert (found.kind, found.again.attempt) == (QUEUE, 0)


def test_a_job_that_made_room_waits_for_its_next_attempt(tmp_path: Path) -> None:
    stage = begun(tmp_path)
    stage.driver.preempted = True
    stage.to_the_end()
    found = settled(stage)
    assert (found.kind, found.again.attempt) == (QUEUE, 1)


def test_tasks_that_decided_their_job_are_believed(tmp_path: Path) -> None:
    stage = begun(tmp_path)
    for index in (0, 1):
        stage.engine.end("worker", index)
    found = settled(stage)
    assert (found.kind, found.verdict.state) == (ENDED, "SUCCEEDED")


@pytest.mark.parametrize(("used", "kind"), [(0, AGAIN), (1, ENDED)])
def test_a_failure_is_tried_again_as_often_as_the_job_says(tmp_path: Path, used: int, kind: str) -> None:
    stage = begun(tmp_path, job_retries=1)
    stage.engine.end("worker", 1, exit_code=3)
    found = settled(stage, retries={"user": used, "platform": 0})
    assert found.kind == kind
    if kind == AGAIN:
        assert (found.again.counted_as, found.again.attempt, found.again.retries["user"]) == ("user", 1, 1)
        assert settled(stage).kind == QUEUE  # the folder says that it was handed on
    else:
        assert (found.verdict.state, found.verdict.exit_code) == ("FAILED", 3)


@pytest.mark.parametrize(("used", "kind"), [(0, AGAIN), (5, ENDED)])
def test_tasks_that_were_killed_with_their_keeper_are_a_failure_of_the_platform(tmp_path: Path, used: int, kind: str) -> None:
    stage = begun(tmp_path)
    stage.engine.end("worker", 0, outcome="stopped", exit_code=None)
    found = settled(stage, retries={"user": 0, "platform": used}, reason="the keeper was killed")
    assert found.kind == kind
    assert (found.record.reason or "").startswith("the keeper was killed")


def test_a_restart_of_the_machine_is_told_from_a_killed_keeper(tmp_path: Path) -> None:
    stage = begun(tmp_path)
    assert settled(stage).again.reason == "the process that kept it was killed"
    other = begun(tmp_path / "other")
    placed = Placement(boot="an earlier start", driver=1, ports={}, host="127.0.0.1")
    write_record(os.path.join(other.folder.attempt(0), layout.PLACEMENT), placed.to_json())
    assert settled(other).again.reason == "the machine was restarted while it ran"


def test_a_full_disk_is_not_tried_again(tmp_path: Path) -> None:
    stage = begun(tmp_path, job_retries=3)
    stage.engine.end("worker", 0, outcome="failed", exit_code=None, disk_full=True, reason="no room")
    found = settled(stage)
    assert (found.kind, found.verdict.state, found.verdict.reason) == (ENDED, "FAILED", "worker:0: no room")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    """A job that goes on without its keeper."""
    monkeypatch.setitem(registry.BUILT_IN, "fake", Entry("pailot.engines.fake:FakeEngine", ELSEWHERE))
    return begun(tmp_path, traits=ELSEWHERE)


def test_a_job_that_goes_on_elsewhere_is_followed_again(elsewhere: Stage) -> None:
    found = settled(elsewhere)
    assert (found.kind, found.again.attempt) == (QUEUE, 0)


def test_a_job_that_goes_on_elsewhere_is_told_to_stop(elsewhere: Stage) -> None:
    assert settled(elsewhere, stop=True).kind == BUSY
    assert os.path.exists(os.path.join(elsewhere.folder.attempt(0), layout.STOP))


def test_a_job_that_ended_elsewhere_has_its_verdict(elsewhere: Stage) -> None:
    elsewhere.engine.decide(Outcome("stopped", Verdict("FAILED", "it said so", "worker", 1, 9)))
    found = settled(elsewhere)
    assert (found.kind, found.verdict.state, found.verdict.reason) == (ENDED, "FAILED", "it said so")


def test_a_defect_ends_a_job_elsewhere_too(elsewhere: Stage) -> None:
    found = settled(elsewhere, defect="a mistake of ours")
    assert (found.kind, found.verdict.state) == (ENDED, "FAILED")
    assert os.path.exists(os.path.join(elsewhere.folder.attempt(0), layout.STOP))


def test_a_verdict_that_comes_while_the_lock_is_waited_for_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun(tmp_path)
    taken = stage.folder.lock

    def lock() -> int | None:
        stage.folder.conclude(Verdict("FAILED", "by another"), retries={}, started=None)
        return taken()

    monkeypatch.setattr(stage.folder, "lock", lock)
    assert settled(stage).verdict.reason == "by another"


def test_a_run_that_only_its_follower_can_know_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Traits(survives_launcher=True, decides_outcome=True, needs_follower=True, on_this_machine=False)
    stage = begun(tmp_path, traits=followed)
    monkeypatch.setitem(registry.BUILT_IN, "fake", Entry("pailot.engines.fake:FakeEngine", followed))
    seen: list[str] = []
    monkeypatch.setattr(reattach, "follow", lambda folder: seen.append(folder.path))
    assert settle(stage.folder).kind == GOES_ON
    assert seen == [stage.folder.path]


def test_shims_that_are_gone_are_not_waited_for(tmp_path: Path) -> None:
    wait_for_shims(begun(tmp_path).folder)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_retry_that_cannot_be_written_down(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = begun(tmp_path, job_retries=3)

    def refused(_record: HandedOn) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(stage.folder, "hand_on", refused)
    if number == errno.EIO:
        with pytest.raises(OSError, match="error"):
            settled(stage)
    else:
        found = settled(stage)
        assert (found.kind, found.verdict.state, DISK_FULL in found.verdict.reason) == (ENDED, "FAILED", True)
