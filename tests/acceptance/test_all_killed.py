"""The driver and all shims killed at once (`killall -9 pailot`): whoever looks next ends what is left, and his words are true."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pailot.testing.runs import PATIENCE, Home, Result, job, kill_all_with, processes_with, role, wait_for
from pailot.userruns.run_folder import JobFolder
from pailot.userruns.settle import recover

from ..support.servers import Server, submit
from .test_faults import children_of, marked_job

REPETITIONS = int(os.environ.get("PAILOT_FAULT_REPETITIONS", "6"))
NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


class NobodysHome(Home):
    """A home whose commands run without any rights."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environment |= {"HOME": str(folder), "PAILOT_LOCKS": str(folder / "locks")}
        for path in (folder, self.cwd):
            os.chown(path, NOBODY, NOBODY)

    def popen(self, command: list[str], **environment: str) -> subprocess.Popen[str]:
        return super().popen([*AS_NOBODY, *command], **environment)

    def pailot(self, *arguments: str, timeout: float = PATIENCE) -> Result:
        process = self.popen([sys.executable, "-m", "pailot", *arguments])
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, out, err)


@pytest.fixture(params=["as we are", "as nobody"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    if request.param == "as we are":
        made = Home(tmp_path)
        yield made
        made.close()
        return
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root can become another user")
    if subprocess.run([*AS_NOBODY, sys.executable, "-c", "import pailot"], capture_output=True, check=False).returncode:
        pytest.skip("this Python cannot be used by others")
    folder = Path(tempfile.mkdtemp(prefix="pailot-nobody-"))
    folder.chmod(0o755)
    made = NobodysHome(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def drivers_and_shims(driver: int) -> list[int]:
    """The driver first, then its shims."""
    return [driver, *wait_for(lambda: children_of(driver) if len(children_of(driver)) == 2 else None, what="two shims")]


def kill_in_some_order(victims: list[int], seed: int) -> None:
    """All of them are halted first, so that none hears of the death of another, whatever comes first."""
    order = list(victims)
    random.Random(seed).shuffle(order)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in order:
            os.kill(pid, number)


@pytest.mark.parametrize("repetition", range(REPETITIONS))
def test_the_next_look_ends_what_is_left_before_it_says_so(place: Home, repetition: int) -> None:
    marker = f"marker-{place.folder.name}"
    process = place.start(marked_job(marker), "--quiet")
    assert process.stdout
    for _ in range(5):
        process.stdout.readline()
    wait_for((place.jobs()[0] / "attempts" / "0" / "started").exists, what="both tasks to begin")
    kill_in_some_order(drivers_and_shims(process.pid), repetition)
    process.wait()
    assert processes_with(marker), "nothing was left, so that this shows nothing"
    look = ("ps", "show", "wait", "stop", "why", "gc")[repetition % 6]
    place.pailot(look, *([] if look in ("ps", "gc") else ["demo"]))
    assert processes_with(marker) == []
    told = place.pailot("why", "demo").out
    assert "demo is STOPPED: its launcher and the shims of main:0, main:1 were killed" in told
    assert "may still be running" not in told


def test_some_shims_that_live_stop_their_own_and_the_others_are_ended_at_once(place: Home) -> None:
    marker = f"marker-{place.folder.name}"
    process = place.start(marked_job(marker), "--quiet")
    assert process.stdout
    for _ in range(5):
        process.stdout.readline()
    driver, first, _ = drivers_and_shims(process.pid)
    kill_in_some_order([driver, first], 1)
    process.wait()
    assert place.pailot("wait", "demo").status == 3
    assert processes_with(marker) == []
    told = place.pailot("why", "demo").out
    assert told.count("main:") == 1, told


def test_what_clears_its_environment_is_named_or_ended_and_never_denied(place: Home) -> None:
    """Below a process with the mark it is found; as an orphan in the shim's session it is named; nothing false is said."""
    marker = f"marker-{place.folder.name}"
    commands = (
        f"(env -i bash -c 'exec -a {marker} sleep 1000' &)\n"  # an orphan
        f"env -i bash -c 'exec -a {marker} sleep 1000' &\n"
        "echo line; wait"
    )
    process = place.start(job(role(commands, memory=0)), "--quiet")
    assert process.stdout
    process.stdout.readline()
    wait_for(lambda: len(processes_with(marker)) == 2, what="both processes")
    (shim,) = wait_for(lambda: children_of(process.pid), what="the shim")
    kill_in_some_order([process.pid, shim], 0)
    process.wait()
    told = place.pailot("show", "--json", "demo").out
    orphans = processes_with(marker)
    reason = json.loads(told)["reason"]
    assert len(orphans) < 2
    for each in orphans:
        assert f"process {each} may still be running" in reason
    if not orphans:  # there was a control group
        assert "may still" not in reason
    kill_all_with(marker)


def test_a_copy_of_a_home_ends_nothing_of_the_original(home: Home, tmp_path: Path) -> None:
    marker = f"marker-{home.folder.name}"
    process = home.start(marked_job(marker), "--quiet")
    assert process.stdout
    process.stdout.readline()
    wait_for(lambda: len(processes_with(marker)) >= 4, what="both tasks to run")  # a script may be a pipe until bash has read it
    copied = shutil.copytree(
        tmp_path / "home", tmp_path / "copy", ignore=lambda _, names: [name for name in names if name == "control"]
    )
    before = processes_with(marker)
    (folder,) = (copied / "jobs").iterdir()
    verdict = recover(JobFolder(str(folder)))
    assert verdict is not None
    assert verdict.state == "STOPPED"
    assert set(before) <= set(processes_with(marker))
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 3


def test_keeper_and_all_shims_of_a_server_are_killed(tmp_path: Path) -> None:
    """The job is tried again, and nothing of its first attempt is there any more when its second begins."""
    marker = f"marker-{tmp_path.name}"
    server = Server(tmp_path / "server")
    try:
        me = server.client(tmp_path / "me")
        submit(me, marked_job(marker))
        wait_for(lambda: len(processes_with(marker)) >= 4, what="the tasks to run")
        keeper = int((tmp_path / "server" / "home" / "keeper.lock").read_text())
        first = processes_with(marker)
        kill_in_some_order(drivers_and_shims(keeper), 3)
        wait_for(lambda: me.show()["retries"] == 1 and me.show()["state"] == "RUNNING", what="the second attempt")
        assert not set(first) & set(processes_with(marker))
        assert me.pailot("stop", "--now", "demo").status == 0
        wait_for(lambda: not processes_with(marker), what="the end of all")
        me.close()
    finally:
        server.close()
