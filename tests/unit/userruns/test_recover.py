"""A user's run whose launcher is gone, in every state that its folder can be in, on the fake engine."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from pailot.engines import registry
from pailot.engines.registry import Entry
from pailot.engines.traits import Traits
from pailot.lifecycle.completion import Outcome, Verdict
from pailot.lifecycle.settling import BUSY, GOES_ON
from pailot.runfolder import layout
from pailot.runfolder.atomic_json import write_record
from pailot.userruns import reattach
from pailot.userruns.queries import wait
from pailot.userruns.settle import recover, settle

from .stage import Stage

ELSEWHERE = Traits(survives_launcher=True, decides_outcome=True, on_this_machine=False)


def begun(folder: Path) -> Stage:
    """A run whose tasks were started, and not all of them seen to run."""
    stage = Stage(folder)
    stage.go()
    return stage


def started(folder: Path) -> Stage:
    """A run whose tasks run."""
    stage = begun(folder)
    for index in (0, 1):
        stage.engine.tell("claimed", role="worker", index=index)
    stage.go()
    return stage


def verdict(stage: Stage) -> tuple[str, str]:
    """How the run is settled; a second look finds the same."""
    found = recover(stage.folder)
    assert found is not None
    assert recover(stage.folder) == found
    return found.state, found.reason


def test_a_run_that_was_killed_with_its_tasks(tmp_path: Path) -> None:
    state, reason = verdict(started(tmp_path))
    assert state == "STOPPED"
    assert reason.startswith("its launcher and the shims of worker:0, worker:1 were killed, and what was found of them was ended")


def test_a_run_whose_tasks_were_stopped_by_the_death_of_their_launcher(tmp_path: Path) -> None:
    stage = started(tmp_path)
    for index in (0, 1):
        stage.engine.end("worker", index, outcome="stopped", exit_code=143)
    assert verdict(stage) == ("STOPPED", "its launcher was killed, so its tasks were stopped")


def test_a_run_that_was_killed_while_it_started(tmp_path: Path) -> None:
    expected = "its launcher was killed before all tasks had started (a platform failure)"
    assert verdict(begun(tmp_path)) == ("FAILED", expected)
    assert verdict(Stage(tmp_path / "never")) == ("FAILED", expected)


def test_a_run_whose_shims_are_still_ending_is_waited_for(tmp_path: Path) -> None:
    stage = started(tmp_path)
    claim = os.open(os.path.join(stage.folder.task(0, "worker", 1), layout.CLAIM), os.O_RDWR)
    fcntl.flock(claim, fcntl.LOCK_EX)
    assert settle(stage.folder).kind == BUSY
    assert recover(stage.folder) is None
    os.close(claim)
    assert wait(stage.folder)
    assert verdict(stage)[0] == "STOPPED"


def test_a_run_that_is_driven_is_left_alone(tmp_path: Path) -> None:
    stage = started(tmp_path)
    lock = stage.folder.lock()
    assert lock is not None
    assert recover(stage.folder) is None
    os.close(lock)


def test_a_restart_of_the_machine_ended_it(tmp_path: Path) -> None:
    stage = started(tmp_path)
    job = stage.folder.job()
    assert job is not None
    write_record(stage.folder.file(layout.JOB), job.replace(boot="an earlier start").to_json())
    assert verdict(stage) == ("FAILED", "the machine was restarted while it ran (a platform failure)")


def test_a_full_disk_is_why_there_is_no_verdict(tmp_path: Path) -> None:
    stage = started(tmp_path)
    Path(stage.folder.file(layout.DISK_FULL_MARK)).touch()
    assert verdict(stage)[1].startswith("its launcher could not write down how it ended")


def test_a_run_whose_record_is_damaged_has_an_end(tmp_path: Path) -> None:
    stage = started(tmp_path)
    Path(stage.folder.file(layout.JOB)).write_text("{")
    assert verdict(stage)[1].startswith("its job.json is damaged or missing")


def test_the_retries_before_are_kept(tmp_path: Path) -> None:
    stage = started(tmp_path)
    stage.folder.set_state(stage.folder.state().replace(retries={"user": 2}))
    found = recover(stage.folder)
    assert found is not None
    assert found.retries == {"user": 2, "platform": 0}


# Elsewhere


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "fake", Entry("pailot.engines.fake:FakeEngine", ELSEWHERE))


@pytest.mark.usefixtures("elsewhere")
def test_a_run_that_was_never_submitted(tmp_path: Path) -> None:
    assert verdict(Stage(tmp_path, traits=ELSEWHERE)) == ("FAILED", "its launcher was killed before it was submitted")


@pytest.mark.usefixtures("elsewhere")
def test_a_run_goes_on_and_its_state_is_shown(tmp_path: Path) -> None:
    stage = Stage(tmp_path, traits=ELSEWHERE)
    stage.go()
    stage.folder.set_state(stage.folder.state().replace(state="UNKNOWN"))
    found = settle(stage.folder)
    assert (found.kind, found.again.attempt) == (GOES_ON, 0)
    assert stage.folder.state().state != "UNKNOWN"


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("stopped", "state"), [(True, "STOPPED"), (False, None)])
def test_a_failed_attempt_waits_for_the_one_who_drives_on(tmp_path: Path, stopped: bool, state: str | None) -> None:
    stage = Stage(tmp_path, traits=ELSEWHERE, job_retries=1)
    stage.go()
    stage.engine.decide(Outcome("user", Verdict("FAILED", "it broke", "worker", 0, 3)))
    if stopped:
        reattach.ask_to_stop(stage.folder, grace=1, now=False)
    found = recover(stage.folder)
    assert (found.state if found else None) == state
    if not stopped:
        shown = stage.folder.state()
        assert (shown.state, shown.reason) == (
            "WAITING",
            "it broke; it is tried again by the next command that waits for it (pailot wait demo)",
        )


@pytest.mark.usefixtures("elsewhere")
def test_an_end_elsewhere_is_the_end(tmp_path: Path) -> None:
    stage = Stage(tmp_path, traits=ELSEWHERE)
    stage.go()
    stage.engine.decide(Outcome("user", Verdict("SUCCEEDED", "done", "worker", 1, 0)))
    assert verdict(stage) == ("SUCCEEDED", "done")
