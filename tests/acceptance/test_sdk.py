"""Runs from Python, for real: from threads, with an event loop, in a program that keeps its own signal handlers."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pailot
from pailot import Job, TaskRole
from pailot.sdk.errors import RunError

SECONDS = 120


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


def job(commands: str, name: str = "demo", **role: object) -> Job:
    return Job(name, {"main": TaskRole(commands=commands, image="debian", **role)}, extras={"pailot": {"retryDelaySeconds": 0}})  # type: ignore[arg-type]  # of many types


def test_a_run_to_its_result() -> None:
    run = pailot.run(job("echo to-stdout; echo to-stderr >&2; touch made"), labels={"team": "vision"})
    result = run.result(SECONDS)
    assert (result.state, result.exit_code, run.state, run.done) == ("SUCCEEDED", 0, "SUCCEEDED", True)
    assert str(run.logs("main", 0, stream="stdout")) == "to-stdout\n"
    assert sorted(run.logs()) == ["to-stderr", "to-stdout"]
    assert Path("made").exists()
    assert pailot.get("demo") == run
    assert list(pailot.runs(labels={"team": "vision"})) == [run]
    assert list(pailot.runs(labels={"team": "speech"})) == []
    assert [each.kind for each in run][-1] == "ended"
    assert run.job.name == "demo"
    run.delete()
    with pytest.raises(pailot.NoSuchRun):
        pailot.get("demo")


def test_a_failure_carries_what_is_known() -> None:
    run = pailot.run(job("echo the-cause >&2; exit 9", instances=1))
    with pytest.raises(pailot.JobFailed) as caught:
        run.result(SECONDS)
    error = caught.value
    assert (error.job, error.task, error.exit_code) == ("demo", "main:0", 9)
    assert error.last_lines == ("the-cause",)
    assert "exited with 9" in error.reason
    assert "the-cause" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.last_lines) == (pailot.JobFailed, str(error), error.last_lines)
    assert isinstance(error, RunError)


def test_waiting_ends_in_time_and_the_run_goes_on() -> None:
    run = pailot.run(job("echo ready; sleep 1000"))
    assert next(iter(run.logs(follow=True))) == "ready"
    with pytest.raises(TimeoutError, match="still RUNNING"):
        run.wait(0.05)
    with pytest.raises(pailot.Conflict, match="running already"):
        pailot.run(job("true"))
    run.stop()
    with pytest.raises(pailot.JobStopped):
        run.result(SECONDS)


def test_leaving_the_block_by_an_exception_stops_the_run() -> None:
    with pytest.raises(ZeroDivisionError), pailot.run(job("sleep 1000")) as run:
        1 / 0  # noqa: B018  # that is the test
    assert run.state == "STOPPED"
    with pailot.run(job("true")) as run:
        pass
    assert run.state == "SUCCEEDED"


def test_events_and_lines_come_live_across_retries() -> None:
    role = TaskRole(commands='echo "try $FC_TASK_ATTEMPT_ID"; [ "$FC_TASK_ATTEMPT_ID" = 2 ]', image="debian", task_retry_count=2)
    run = pailot.run(Job("retried", {"main": role}, extras={"pailot": {"retryDelaySeconds": 0}}))
    kinds = [event.kind for event in run]
    assert kinds.count("task-retry") == 2
    assert kinds[-1] == "ended"
    assert list(run.logs(follow=True)) == ["try 0", "try 1", "try 2"]


def children() -> set[str]:
    """The processes that this one has started and not yet buried."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def test_many_threads_start_runs_and_no_signal_handler_is_touched() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP)}
    others = children()
    states: list[str] = []

    def work(number: int) -> None:
        states.append(pailot.run(job(f"echo {number}", name=f"thread-{number}")).wait(SECONDS, progress=False))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == ["SUCCEEDED"] * 4
    assert {number: signal.getsignal(number) for number in before} == before
    assert signal.set_wakeup_fd(-1) == -1
    assert children() == others  # no child of ours is left


def test_the_run_outlives_the_program() -> None:
    code = (
        "import pailot; run = pailot.run(pailot.Job('orphan', {'main': pailot.TaskRole("
        "commands='read line <gate; echo $line', image='debian')})); print(run.id)"
    )
    os.mkfifo("gate")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    run = pailot.get(done.stdout.strip())
    assert run.state == "RUNNING"
    Path("gate").write_text("go on\n")
    run.result(SECONDS)
    assert list(run.logs()) == ["go on"]


def test_async() -> None:
    async def work() -> None:
        run = await pailot.run_async(job("echo one; read line <gate; echo two"))
        seen = []
        async for line in run.logs(follow=True):
            seen.append(line)
            if line == "one":
                with pytest.raises(pailot.WaitTimeout):
                    await run.wait_async(0.05)
                waiting = asyncio.ensure_future(run.wait_async())
                await asyncio.sleep(0)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                await asyncio.to_thread(Path("gate").write_text, "\n")
        assert seen == ["one", "two"]
        assert (await run).state == "SUCCEEDED"
        assert [event.kind async for event in run][-1] == "ended"
        async with await pailot.run_async(job("true", name="second")) as second:
            pass
        assert second.state == "SUCCEEDED"

    os.mkfifo("gate")
    asyncio.run(work())


def test_a_driver_that_is_killed_is_noticed() -> None:
    run = pailot.run(job("echo up; sleep 1000"))
    assert next(iter(run.logs(follow=True))) == "up"
    attempt = Path(run.describe()["folder"], "attempts", "0", "attempt.json").read_text()
    os.kill(int(attempt.partition('"driver": ')[2].partition(",")[0]), signal.SIGKILL)
    with pytest.raises(pailot.JobStopped, match="launcher was killed"):
        run.result(SECONDS)


def test_unusable_input_leaves_nothing_behind(home: Path) -> None:
    with pytest.raises(pailot.EngineError, match="no engine 'nowhere'"):
        pailot.run(job("true"), engine="nowhere")
    with pytest.raises(pailot.InvalidJob, match="cannot be read"):
        pailot.run("missing.yaml")
    assert not home.exists()


def test_a_bar_is_drawn_on_a_terminal_while_a_program_waits(capsys: pytest.CaptureFixture[str]) -> None:
    run = pailot.run(job("exit 3", name="shown"))
    run.wait(SECONDS, progress=True)
    drawn = capsys.readouterr().err
    assert "1 of 1 tasks ended · FAILED" in drawn
    assert drawn.endswith("\r\033[K")  # and taken away
