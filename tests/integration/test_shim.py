"""The shim by itself, in a forked process: what it makes of a task at moments that a whole run seldom meets."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pailot.runtime import cgroups
from pailot.runtime.shim import run_and_exit
from pailot.runtime.shim_events import Channel
from pailot.runtime.task_spec import Task


def ran(tmp_path: Path, **details: Any) -> dict[str, Any]:
    """The record of a task that a shim has run to its end."""
    folder, work = tmp_path / "tasks" / "main-0", tmp_path / "work"
    folder.mkdir(parents=True)
    work.mkdir()
    environment = {"PATH": os.environ["PATH"], "ATTEMPT": str(tmp_path)}
    task = Task("main", 0, str(folder), str(work), environment, attempt_folder=str(tmp_path), **details)
    channel = Channel()
    liveness, alive = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(alive)
        run_and_exit(task, channel.writer, liveness)
    assert os.waitpid(pid, 0)[1] == 0, (folder / "shim-error").read_text()
    channel.close()
    os.close(liveness)
    os.close(alive)
    found: dict[str, Any] = json.loads((folder / "final.json").read_text())
    return found


STOP = """printf '{"why": "user", "grace": 30}' >"$ATTEMPT/new"; exec mv "$ATTEMPT/new" "$ATTEMPT/stop.json\""""


def test_a_task_stopped_between_its_callbacks_and_its_commands_has_not_succeeded(tmp_path: Path) -> None:
    end = ran(tmp_path, start=STOP, main="touch ran", exit="echo $PAI_TASK_OUTCOME >outcome")
    assert end["outcome"] == "stopped"
    assert end["stop"] == "user"
    assert not (tmp_path / "work" / "ran").exists()
    assert (tmp_path / "work" / "outcome").read_text() == "stopped\n"


def test_a_task_that_ended_well_before_the_stop_was_seen_has_succeeded(tmp_path: Path) -> None:
    end = ran(tmp_path, main="true", exit=STOP)
    assert (end["outcome"], end["exitCode"]) == ("succeeded", 0)


def test_the_limits_are_the_tasks_alone(tmp_path: Path) -> None:
    if cgroups.available() is None:
        pytest.skip(cgroups.why_not())
    inside = "cat /proc/self/cgroup >inside; cat /proc/$PPID/cgroup >shim"
    end = ran(tmp_path, main=inside, memory_mb=64, cpus=1)
    assert end["outcome"] == "succeeded"
    assert "pailot-" in (tmp_path / "work" / "inside").read_text()
    assert (tmp_path / "work" / "shim").read_text() == Path("/proc/self/cgroup").read_text()


def test_a_task_whose_control_group_cannot_be_left_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if cgroups.available() is None:
        pytest.skip(cgroups.why_not())
    leave = cgroups.Cgroup.leave

    def refuse(group: cgroups.Cgroup) -> None:
        leave(group)  # for the sake of the machine
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(cgroups.Cgroup, "leave", refuse)
    end = ran(tmp_path, main="echo ran", memory_mb=64)
    assert end["outcome"] == "succeeded"
    assert end["lastLines"] == ["pailot: the task's limits hold for Pailot's own process, too: Permission denied", "ran"]


def test_a_program_that_cannot_be_started_is_an_end_of_its_own(tmp_path: Path) -> None:
    end = ran(tmp_path, main="true", memory_mb=64, wrapper=("/no/such/sandbox",))
    assert (end["outcome"], end["exitCode"]) == ("failed", 127)
    assert any("cannot start" in line for line in end["lastLines"])
