"""The shim by itself, in a forked process: what it makes of a task at moments that a whole run seldom meets."""

from __future__ import annotations

import errno
import inspect
import json
import os
import re
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

from pailot.runtime import cgroups
from pailot.runtime.shim import Shim
from pailot.runtime.shim_events import Channel
from pailot.runtime.shim_process import fork_shim, run_and_exit
from pailot.runtime.task_spec import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def ran(tmp_path: Path, first: Callable[[], object] = lambda: None, status: int = 0, **details: Any) -> dict[str, Any]:
    """The record of a task that a shim has run to its end; `first` is done in the shim's process."""
    folder, work = tmp_path / "tasks" / "main-0", tmp_path / "work"
    folder.mkdir(parents=True)
    work.mkdir()
    environment = {"PATH": os.environ["PATH"], "ATTEMPT": str(tmp_path)}
    task = Task("main", 0, str(folder), str(work), environment, attempt_folder=str(tmp_path), **details)
    channel = Channel()
    liveness, alive = os.pipe()
    pid = fork_shim()
    if pid == 0:
        os.close(alive)
        first()
        run_and_exit(task, channel.writer, liveness)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert ended in (0, status), (folder / "shim-error").read_text()
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


def test_a_shim_that_is_to_stop_before_it_listens_stops_its_task(tmp_path: Path) -> None:
    def stop() -> None:
        (tmp_path / "stop.json").write_text(json.dumps({"why": "user", "grace": 30}))
        os.kill(os.getpid(), signal.SIGTERM)

    assert ran(tmp_path, stop, main="touch ran")["outcome"] == "stopped"
    assert not (tmp_path / "work" / "ran").exists()


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


@pytest.mark.parametrize("free", [0, 2, 4, 6])
def test_a_shim_without_descriptors_says_so(tmp_path: Path, free: int) -> None:
    def few() -> None:
        limit = os.dup(0) + 1 + free
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    end = ran(tmp_path, few, 1, main="true")
    assert (end["outcome"], end["giveUp"]) == ("failed", True)
    assert re.search(r"could open no more files: the limit on them \(ulimit -n\) is \d+; 64 are enough", end["reason"])


NEVER_MET = {"__init__", "broken", "_heard_signal"}
STEPS = [name for name, function in vars(Shim).items() if inspect.isfunction(function) and name not in NEVER_MET]


@pytest.mark.parametrize("step", STEPS)
def test_a_fault_in_any_step_of_the_shim_is_the_end_of_its_task_with_a_number(tmp_path: Path, step: str) -> None:
    met = tmp_path / "met"

    def fault(*_: object, **__: object) -> None:
        met.touch()
        raise ArithmeticError("unforeseen hunter22")

    end = ran(
        tmp_path, lambda: setattr(Shim, step, fault), 1, start="sleep 600 & true", main="true", exit="true", hidden=("hunter22",)
    )
    if not met.exists():
        assert end["outcome"] == "succeeded"
        return
    assert (end["outcome"], end["giveUp"]) == ("failed", True)
    number = re.search(r"a defect of Pailot, number ([0-9a-f]{8}) \(ArithmeticError: unforeseen \*{6}\)", end["reason"])
    assert number, end
    told = (tmp_path / "tasks" / "main-0" / "shim-error").read_text()
    assert f"main:0: defect {number[1]}" in told
    assert "in fault" in told
    assert "hunter22" not in told.replace('"unforeseen hunter22"', "")  # the source of this test is in the traceback
