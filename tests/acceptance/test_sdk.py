"""Runs from Python, for real: from threads, with an event loop, in a program that keeps its own signal handlers."""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import pailot
from pailot import Job, TaskRole
from pailot.processor import Processor, Session
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


def test_logs_are_searched_and_use_is_told() -> None:
    run = pailot.run(job("echo one; echo Two; echo three"))
    run.result(SECONDS)
    assert [(hit.role, hit.index, hit.line, hit.text) for hit in run.search("two")] == [("main", 0, 2, "Two")]
    assert [hit.text for hit in run.search("^t", regex=True, case=True)] == ["three"]
    with pytest.raises(pailot.PailotError, match="regular expression"):
        run.search("(", regex=True)
    assert list(run.logs(tail=1)) == ["three"]
    (task,) = run.usage()
    assert (task["role"], task["index"], task["now"]) == ("main", 0, None)
    assert task["peak"]["peakMemoryMB"] > 0


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


def test_two_hundred_waits_cost_one_thread_and_leave_nothing_behind() -> None:
    """A dozen runs that start at once; some waits are cancelled, some time out, all others see the end."""
    os.mkfifo("gate")

    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    async def work() -> None:
        runs = await asyncio.gather(
            *[pailot.run_async(job("read line <gate || true", name=f"many-{n}"), cwd=os.getcwd()) for n in range(12)]
        )
        waits = [asyncio.ensure_future(runs[n % 12].wait_async(None if n % 10 else 0.01)) for n in range(200)]
        await asyncio.wait(waits[::10])
        assert all(isinstance(each.exception(), pailot.WaitTimeout) for each in waits[::10])
        assert sum(thread.name == "runs that coroutines wait for" for thread in threading.enumerate()) == 1
        for each in waits[1::10]:
            each.cancel()
        writer = await asyncio.to_thread(os.open, "gate", os.O_WRONLY)
        os.close(writer)
        for run in runs:
            while not run.done:  # who opens the gate later than others finds it closed again
                descriptor = os.open("gate", os.O_RDWR | os.O_NONBLOCK)
                os.write(descriptor, b"go\n" * 12)
                await run.wait_async(SECONDS)
                os.close(descriptor)
        ended = await asyncio.gather(*waits, return_exceptions=True)
        assert [each for n, each in enumerate(ended) if n % 10 > 1] == ["SUCCEEDED"] * 160

    gc.collect()  # what other tests left behind
    before, threads = open_files(), threading.active_count()
    asyncio.run(work())
    for thread in threading.enumerate():
        if thread.name in ("runs that coroutines wait for", "a wait of a coroutine"):
            thread.join(SECONDS)
    assert open_files() <= before
    assert threading.active_count() <= threads


def test_a_driver_that_is_killed_is_noticed() -> None:
    run = pailot.run(job("echo up; sleep 1000"))
    assert next(iter(run.logs(follow=True))) == "up"
    attempt = Path(run.describe()["folder"], "attempts", "0", "attempt.json").read_text()
    os.kill(int(attempt.partition('"driver": ')[2].partition(",")[0]), signal.SIGKILL)
    with pytest.raises(pailot.JobStopped, match="launcher was killed"):
        run.result(SECONDS)


class Broken:
    """What a user may get wrong, what is said to it, and that nothing was done before."""

    TABLE: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
        "no tasks": (lambda: Job("empty", {}), pailot.InvalidJob, "is empty; at least one entry is needed"),
        "no commands": (lambda: Job("empty", {"main": TaskRole(commands=[], image="x")}), pailot.InvalidJob, "is an empty list"),
        "unknown engine": (lambda: pailot.run(job("true"), engine="nowhere"), pailot.EngineError, "no engine 'nowhere'"),
        "missing file": (
            lambda: pailot.run("missing.yaml"),
            pailot.InvalidJob,
            r"missing\.yaml:1:1: error.*cannot be read: No such file",
        ),
        "missing name": (lambda: pailot.get("nobody"), pailot.NoSuchRun, "there is no run 'nobody'"),
        "missing code folder": (
            lambda: pailot.Client("http://127.0.0.1:9", "x").run(job("true"), code="missing"),
            pailot.PailotError,
            "there is no folder 'missing' to send along",
        ),
        "unreachable server": (
            lambda: pailot.run(job("true"), server="http://127.0.0.1:9", token="x"),
            pailot.Unreachable,
            r"http://127\.0\.0\.1:9 cannot be reached: Connection refused",
        ),
        "no address": (lambda: pailot.Client("ftp://host", "x"), pailot.PailotError, "address"),
        "no server": (pailot.Client, pailot.PailotError, "no server is known"),
        "a server's options here": (lambda: pailot.run(job("true"), token="x"), TypeError, "are for a server; which one"),
        "our options there": (
            lambda: pailot.run(job("true"), server="http://127.0.0.1:9", cwd="."),
            TypeError,
            "the server's to choose",
        ),
        "bad override": (lambda: pailot.run(job("true"), overrides={"": 1}), pailot.PailotError, r"\w"),
        "unknown parameter": (
            lambda: pailot.run(job("echo <% $parameters.x %>")),
            pailot.InvalidJob,
            "parameters",
        ),
        "no driver for a bucket": (
            lambda: Processor("debian", "true", session=Session(engine="local")).run(inputs={"a": "s4://bucket/x"}),
            pailot.PailotError,
            "there is no driver for s4://",
        ),
        "no such channel": (
            lambda: Processor("debian", "true", session=Session(engine="local")).run(inputs={"bad name": "."}),
            pailot.PailotError,
            "channel",
        ),
    }


@pytest.mark.parametrize("case", Broken.TABLE)
def test_bad_input_is_one_clear_exception_before_any_side_effect(
    case: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAILOT_SERVER", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    work, kind, words = Broken.TABLE[case]
    with pytest.raises(kind, match=words) as caught:
        work()
    assert type(caught.value).__module__ != "builtins" or kind is TypeError
    assert not (home / "jobs").exists()
    assert os.listdir() == []


def test_a_bar_is_drawn_on_a_terminal_while_a_program_waits(capsys: pytest.CaptureFixture[str]) -> None:
    run = pailot.run(job("exit 3", name="shown"))
    run.wait(SECONDS, progress=True)
    drawn = capsys.readouterr().err
    assert "1 of 1 tasks ended · FAILED" in drawn
    assert drawn.endswith("\r\033[K")  # and taken away
