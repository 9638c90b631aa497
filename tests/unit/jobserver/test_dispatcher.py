"""What becomes of jobs on a server: a real dispatcher, queue, store and keeper in one loop, with tasks that a test ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from pailot.engines import registry
from pailot.engines.fake import FakeEngine
from pailot.engines.registry import Entry
from pailot.engines.traits import Traits
from pailot.jobserver.keeper.keeper import Keeper
from pailot.jobserver.lifespan import running_team
from pailot.jobserver.models import Caller
from pailot.jobserver.service import Team
from pailot.settings import Settings
from pailot.store.server import JobRecord
from pailot.testing.runs import job, role

ANN = Caller("ann")
PATIENCE_SECONDS = 300
PRIORITY = "  hivedScheduler: {{jobPriorityClass: {}}}\n"


class Floor:
    """A home with room for two tasks, and a keeper in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir()
        self.keeper = Keeper(str(folder / "home"), "fake")
        assert self.keeper.listen()
        self.keeper.wake = -1

    @asynccontextmanager
    async def server(self) -> AsyncIterator[Team]:
        """A server, which leaves its jobs to the keeper when it ends."""
        environment = {
            "PAILOT_HOME": str(self.folder / "home"),
            "PAILOT_CPUS": "2",
            "PAILOT_MEMORY_MB": "4000",
            "PAILOT_GPUS": "none",
            "XDG_CACHE_HOME": str(self.folder / "cache"),
        }
        loop = asyncio.get_running_loop()
        loop.add_reader(self.keeper.epoll.fileno(), self.keeper._round)
        try:
            async with running_team(Settings(environment, folder=str(self.folder)), engine="fake") as team:
                yield team
        finally:
            loop.remove_reader(self.keeper.epoll.fileno())

    def serve(self, work: Callable[[Team], Awaitable[None]]) -> None:
        async def run() -> None:
            async with self.server() as team:
                await asyncio.wait_for(work(team), PATIENCE_SECONDS)

        asyncio.run(run())

    def close(self) -> None:
        for server in list(self.keeper.servers.values()):
            self.keeper._drop(server)
        for running in list(self.keeper.jobs.values()):
            self.keeper._let_go(running)
        self.keeper._leave()
        self.keeper.epoll.close()
        os.close(self.keeper.lock)

    def engine(self, record: JobRecord) -> FakeEngine:
        """The engine of a job that the keeper drives."""
        return cast("FakeEngine", self.keeper.jobs[record.id].engine)

    def end(self, record: JobRecord, exit_code: int = 0) -> None:
        self.engine(record).end("main", 0, exit_code=exit_code)


@pytest.fixture
def floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Floor]:
    monkeypatch.setitem(registry.BUILT_IN, "fake", Entry("pailot.engines.fake:FakeEngine", Traits()))
    monkeypatch.setenv("PAILOT_LOCKS", str(tmp_path / "locks"))
    made = Floor(tmp_path)
    yield made
    made.close()


async def submitted(team: Team, name: str, **options: Any) -> JobRecord:
    priority = options.pop("priority", "")
    after = options.pop("after", ())
    text = job(role("true"), name=name, **options) + (PRIORITY.format(priority) if priority else "")
    return await team.submit(ANN, text, after=after)


async def until(team: Team, record: JobRecord, *states: str) -> JobRecord:
    """The job once it is in one of these states."""
    name = f"ann~{record.name}"
    async for event in team.subscribe_job(ANN, name):
        if event.kind == "job" and event.data["state"] in states:
            break
    found = await team.get(ANN, name)
    assert found.state in states
    return found


def test_a_job_is_started_and_its_end_is_kept(floor: Floor) -> None:
    async def work(team: Team) -> None:
        one = await submitted(team, "one")
        await until(team, one, "RUNNING")
        floor.end(one)
        found = await until(team, one, "SUCCEEDED")
        assert (found.exit_code, found.attempts, found.retries) == (0, 1, 0)
        assert floor.keeper.jobs == {}

    floor.serve(work)


def test_retries_of_the_driver_are_told_and_kept(floor: Floor) -> None:
    async def work(team: Team) -> None:
        one = await submitted(team, "one", job_retries=1, options="retryDelaySeconds: 0")
        await until(team, one, "RUNNING")
        engine = floor.engine(one)
        for number in (0, 1):
            while len(engine.started) <= number:
                await asyncio.sleep(0)
            floor.end(one, exit_code=3)
        found = await until(team, one, "FAILED")
        assert (found.exit_code, found.attempts, found.user_retries) == (3, 2, 1)

    floor.serve(work)


def test_a_job_without_room_waits_and_can_be_stopped(floor: Floor) -> None:
    async def work(team: Team) -> None:
        held = [await submitted(team, name) for name in ("one", "two")]
        for each in held:
            await until(team, each, "RUNNING")
        third = await submitted(team, "three")
        assert (await team.get(ANN, "ann~three")).state == "WAITING"
        await team.stop(ANN, "ann~three")
        assert (await until(team, third, "STOPPED")).reason == "stopped before it started"
        fourth = await submitted(team, "four")
        floor.end(held[0])
        await until(team, fourth, "RUNNING")

    floor.serve(work)


def test_a_running_job_is_stopped_by_its_driver(floor: Floor) -> None:
    async def work(team: Team) -> None:
        one = await submitted(team, "one")
        await until(team, one, "RUNNING")
        engine = floor.engine(one)
        await team.stop(ANN, "ann~one", grace=7)
        assert (await until(team, one, "STOPPED")).reason == "stopped by the user"
        assert [(stop.why, stop.grace, stop.now) for stop in engine.stops] == [("user", 7, False)]

    floor.serve(work)


def test_a_job_makes_room_and_comes_back(floor: Floor) -> None:
    async def work(team: Team) -> None:
        weak = [await submitted(team, name, priority="oppo") for name in ("weak", "weaker")]
        for each in weak:
            await until(team, each, "RUNNING")
        strong = await submitted(team, "strong", priority="prod")
        await until(team, strong, "RUNNING")
        (given,) = [each for each in weak if each.id not in floor.keeper.jobs]
        waiting = await team.get(ANN, f"ann~{given.name}")
        assert (waiting.state, waiting.user_retries, waiting.platform_retries) == ("WAITING", 0, 1)
        floor.end(strong)
        again = await until(team, given, "RUNNING")
        assert again.attempts == 2
        assert [attempt.number for attempt in floor.engine(given).started] == [1]

    floor.serve(work)


def test_a_defect_ends_its_job_and_no_other(floor: Floor) -> None:
    async def work(team: Team) -> None:
        one, two = await submitted(team, "one"), await submitted(team, "two")
        for each in (one, two):
            await until(team, each, "RUNNING")
        floor.engine(one)._ended.append(cast("Any", "no task"))
        floor.engine(one).tell("something")
        found = await until(team, one, "FAILED")
        assert found.reason
        floor.end(two)
        await until(team, two, "SUCCEEDED")

    floor.serve(work)


def test_a_broken_line_to_the_keeper_ends_nothing(floor: Floor) -> None:
    async def work(team: Team) -> None:
        one = await submitted(team, "one")
        await until(team, one, "RUNNING")
        for server in list(floor.keeper.servers.values()):
            floor.keeper._drop(server)
        while team.floor.counts["keepers"] == 0 or team.floor.entries[one.id].phase != "driven":
            await asyncio.sleep(0)
        floor.end(one)
        await until(team, one, "SUCCEEDED")

    floor.serve(work)


def test_jobs_go_on_while_the_server_is_away(floor: Floor) -> None:
    found: list[JobRecord] = []

    async def first(team: Team) -> None:
        for name in ("one", "two"):
            found.append(await submitted(team, name))
            await until(team, found[-1], "RUNNING")

    async def second(team: Team) -> None:
        await until(team, found[0], "SUCCEEDED")  # it ended meanwhile, as its folder tells
        floor.end(found[1])
        await until(team, found[1], "SUCCEEDED")

    floor.serve(first)
    floor.end(found[0])
    floor.keeper._round()
    assert found[0].id not in floor.keeper.jobs
    floor.serve(second)


@pytest.mark.parametrize(("exit_code", "state"), [(0, "RUNNING"), (3, "STOPPED")])
def test_a_job_that_follows_another_waits_for_its_end(floor: Floor, exit_code: int, state: str) -> None:
    async def work(team: Team) -> None:
        one = await submitted(team, "one")
        await until(team, one, "RUNNING")
        two = await submitted(team, "two", after=("one",))
        assert two.id not in floor.keeper.jobs
        floor.end(one, exit_code=exit_code)
        await until(team, two, state)

    floor.serve(work)
