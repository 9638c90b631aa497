"""One object for a run, wherever it runs: on this machine, on a Pailot server, on what answers as a genuine OpenPAI does."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pailot
from pailot import Client, Job, Run, TaskRole
from pailot.client.api import find
from pailot.views import connections

from ..support.servers import PASSWORD, Server
from .genuine import Genuine

SECONDS = 240
RETRIES = {"pailot": {"retryDelaySeconds": 0}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server(tmp_path_factory.mktemp("server"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def cluster(server: Server) -> Iterator[Genuine]:
    with Genuine(server) as started:
        yield started


class Where:
    """A place to run jobs."""

    def __init__(self, kind: str, client: Client | None) -> None:
        self.kind, self.client = kind, client

    def run(self, job: Job, **options: Any) -> Run:
        named = job.replace(name=f"{job.name}-{self.kind}")
        return pailot.run(named, **options) if self.client is None else self.client.run(named, **options)

    def get(self, name: str) -> Run:
        return pailot.get(name) if self.client is None else self.client.get(name)

    def runs(self, **query: Any) -> list[Run]:
        return list(pailot.runs(**query) if self.client is None else self.client.runs(**query))


@pytest.fixture(params=["here", "pailot", "openpai"])
def where(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Where:
    for name in ("PAILOT_SERVER", "PAILOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(connections, "POLL_SECONDS", 0.05)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    if request.param == "here":
        return Where("here", None)
    url = request.getfixturevalue("server" if request.param == "pailot" else "cluster").url
    with find(url) as wire:
        wire.login("admin", PASSWORD)
        return Where(request.param, Client(wire.server, wire.token))


def job(name: str, commands: str | list[str], **role: Any) -> Job:
    return Job(name, {"worker_A": TaskRole(commands=commands, image="debian", memory_mb=64, **role)}, extras=RETRIES)


def test_a_run_to_its_result(where: Where) -> None:
    run = where.run(job("fine", "echo one; echo two >&2"), labels={"team": "vision", "stage": "first"})
    assert run.result(SECONDS).state == "SUCCEEDED"
    assert (run.state, run.done, run.exit_code) == ("SUCCEEDED", True, 0)
    assert sorted(run.logs("worker_A", 0)) == ["one", "two"]
    assert list(run.logs(stream="stderr")) == ["two"]
    assert str(run.logs(stream="stdout")) == "one\n"
    assert [event.kind for event in run][-1] == "ended"
    assert [event.task for event in run.events() if event.kind == "task-ended"] == ["worker_A:0"]
    assert run.job.task_roles["worker_A"].instances == 1
    assert where.get(run.name) == run
    assert run.describe()["labels"] == {"team": "vision", "stage": "first"}
    assert where.runs(keyword=where.kind, labels={"team": "vision", "stage": "first"}) == [run]
    assert where.runs(labels={"team": "vision", "stage": "second"}) == []
    assert "worker_A:0" in run._repr_html_()
    with pytest.raises(pailot.NoSuchRun):
        where.get("no-such-run")
    with pytest.raises(pailot.PailotError, match="has no role 'worker_B'; did you mean 'worker_A'"):
        list(run.logs("worker_B"))
    with pytest.raises(pailot.PailotError, match="has no task worker_A:7"):
        list(run.logs("worker_A", 7))


def test_a_failure_carries_what_is_known(where: Where) -> None:
    run = where.run(job("failing", ["echo before", "echo the-cause >&2", "exit 9"]))
    with pytest.raises(pailot.JobFailed) as caught:
        run.result(SECONDS)
    error = caught.value
    assert (error.job, error.task, error.exit_code) == (run.name, "worker_A:0", 9)
    assert error.last_lines[-1] == "the-cause"
    assert "exited with 9" in error.reason


def test_running_it_again(where: Where) -> None:
    named = job("again", "echo hello").replace(name=f"again-{os.urandom(3).hex()}")
    run = where.run(named, labels={"team": "vision"})
    run.result(SECONDS)
    if where.kind == "openpai":
        with pytest.raises(pailot.PailotError, match="is an OpenPAI, which runs no job again; submit its file once more"):
            run.view.rerun()
        return
    again = Run(run.view.rerun())
    assert again.result(SECONDS).state == "SUCCEEDED"
    assert again != run
    assert list(again.logs()) == ["hello"]
    assert again.describe()["labels"] == {"team": "vision"}


def test_any_attempt_can_be_read(where: Where) -> None:
    """Two attempts of the job, each with two of the task; only the very last one succeeds."""
    commands = 'echo "$FC_FRAMEWORK_ATTEMPT_ID.$FC_TASK_ATTEMPT_ID"; [ "$FC_FRAMEWORK_ATTEMPT_ID.$FC_TASK_ATTEMPT_ID" = 1.1 ]'
    role = TaskRole(commands=commands, image="debian", memory_mb=64, task_retry_count=1)
    run = where.run(Job("retried", {"worker_A": role}, job_retry_count=1, extras=RETRIES))
    assert list(run.logs(follow=True)) == ["0.0", "0.1", "1.0", "1.1"]
    run.result(SECONDS)
    assert list(run.logs()) == ["1.0", "1.1"]
    assert list(run.logs(attempt=0)) == ["0.0", "0.1"]
    assert list(run.logs(attempt=0, follow=True)) == ["0.0", "0.1"]
    assert list(run.logs("worker_A", 0, attempt=0, task_attempt=1)) == ["0.1"]
    assert list(run.logs(task_attempt=0)) == list(run.logs(task_attempt=0, follow=True)) == ["1.0"]
    for attempt, task_attempt, wrong in ((2, None, 2), (-1, None, -1), (None, 2, 2)):
        with pytest.raises(pailot.PailotError, match=f"has no attempt {wrong}"):
            list(run.logs(attempt=attempt, task_attempt=task_attempt))


def test_waiting_following_and_stopping(where: Where) -> None:
    os.mkfifo("gate")
    gate = Path("gate").absolute()
    run = where.run(job("slow", f"echo up; read line <{gate} || true; echo more; sleep 1000", instances=2))
    lines = iter(run.logs(follow=True))
    assert {next(lines), next(lines)} == {"[worker_A:0] up", "[worker_A:1] up"}
    with pytest.raises(pailot.WaitTimeout, match=r"still RUNNING after 0\.05 s") as caught:
        run.wait(0.05)
    assert caught.value.job == run.name
    gate.write_text("go\n")
    assert next(lines).endswith("more")
    del lines
    run.stop(now=True)
    with pytest.raises(pailot.JobStopped):
        run.result(SECONDS)


def test_async(where: Where) -> None:
    os.mkfifo("gate")
    gate = Path("gate").absolute()

    async def work() -> None:
        run = where.run(job("async", f"echo one; read line <{gate}; echo two"))
        seen = []
        async for line in run.logs(follow=True):
            seen.append(line)
            if line == "one":
                with pytest.raises(pailot.WaitTimeout):
                    await run.wait_async(0.05)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(run.wait_async(), 0.05)
                await asyncio.to_thread(gate.write_text, "\n")
        assert seen == ["one", "two"]
        assert (await run).state == "SUCCEEDED"
        assert [event.kind async for event in run][-1] == "ended"

    asyncio.run(work())
    assert_nobody_is_left()


def test_who_does_not_read_on_leaves_nothing_behind(where: Where) -> None:
    async def one_line(run: Run) -> str:
        async for line in run.logs(follow=True):
            return line
        raise AssertionError("no line")

    run = where.run(job("left", "echo up; sleep 1000"))
    for line in run.logs(follow=True):
        assert line == "up"
        break
    assert asyncio.run(one_line(run)) == "up"

    async def cancelled() -> None:
        waits: list[Callable[[], Any]] = [run.wait_async, run.result_async, lambda: one_line_more(run)]
        tasks = [asyncio.ensure_future(wait()) for wait in waits]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        assert all(isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*tasks, return_exceptions=True))

    async def one_line_more(run: Run) -> None:
        async for _ in run:
            await asyncio.Event().wait()

    asyncio.run(cancelled())
    assert_nobody_is_left()
    run.stop(now=True)


def assert_nobody_is_left() -> None:
    """No thread of ours goes on though nobody waits for it; each ends by itself, in no time that could be named."""
    ours = ("a wait of", "an iteration of", "log of", "runs that")
    for thread in threading.enumerate():
        if thread.name.startswith(ours):
            thread.join(SECONDS)
            assert not thread.is_alive(), thread.name


def test_what_openpai_does_not_know_is_asked_once(cluster: Genuine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connections, "POLL_SECONDS", 0.05)
    with find(cluster.url) as wire:
        wire.login("admin", PASSWORD)
        client = Client(wire.server, wire.token)
    cluster.refused.clear()
    cluster.leaked.clear()
    for number in range(2):
        assert client.run(job(f"asked-{number}", "echo x")).result(SECONDS).record["lastLines"] == []
    assert cluster.refused == ["GET /jobs/admin~asked-0/record"]
    assert cluster.leaked == []  # the token goes to the server, not to the log service
    with pytest.raises(pailot.PailotError, match="keeps every job; it cannot be deleted"):
        client.get("asked-0").delete()
    Path("code").mkdir(exist_ok=True)
    with pytest.raises(pailot.PailotError, match="takes no code folder"):
        client.run(job("coded", "true"), code="code")
