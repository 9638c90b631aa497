"""The team service with a real store, a real keeper and real tasks."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import pwd
import signal
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pailot.jobserver.errors import BadRequest, Conflict, Forbidden, Invalid, NoSuchCode, NoSuchJob, NoSuchTag, ShuttingDown
from pailot.jobserver.lifespan import running_team
from pailot.jobserver.models import Caller, Event, LogPiece
from pailot.jobserver.service import Team
from pailot.settings import Settings
from pailot.testing.runs import PATIENCE, job, kill_all_with, no_process_left, processes_with, role, wait_for

ANN, BOB, ROOT = Caller("ann"), Caller("bob", clusters=frozenset(("other",))), Caller("root", admin=True)
HIVED = "  hivedScheduler: {{jobPriorityClass: {}}}\n"


class Place:
    """A home for servers, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.environment = {
            "PAILOT_HOME": str(self.home),
            "PAILOT_CPUS": "4",
            "PAILOT_MEMORY_MB": "4000",
            "PAILOT_GPUS": "none",
            "XDG_CACHE_HOME": str(folder / "cache"),
        }

    def settings(self, **changes: str) -> Settings:
        return Settings(self.environment | changes, folder=str(self.folder))

    def run(self, work: Callable[[Team], Awaitable[Any]], **changes: str) -> Any:
        """A server for as long as this takes; what runs then is handed over."""

        async def serve() -> Any:
            async with running_team(self.settings(**changes)) as team:
                return await asyncio.wait_for(work(team), PATIENCE)

        return asyncio.run(serve())

    def keeper(self) -> int:
        return int((self.home / "keeper.lock").read_text())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Place(tmp_path)
    monkeypatch.setenv("PAILOT_LOCKS", str(tmp_path / "locks"))
    monkeypatch.setenv("PAILOT_GPUS", "none")
    yield made
    kill_all_with(str(tmp_path))
    no_process_left(str(tmp_path))


async def ended(team: Team, name: str) -> list[Event]:
    """All events of a job, to its end."""
    return [event async for event in team.subscribe_job(ANN, name)]


async def state(team: Team, name: str) -> str:
    await ended(team, name)
    record = await team.get(ANN, name)
    if record.state == "FAILED":
        print(await team.why(ROOT, name))
    return record.state


async def until(team: Team, name: str, *states: str) -> None:
    async for event in team.subscribe_job(ANN, name):
        if event.kind == "job" and event.data["state"] in states:
            return


async def file_there(path: Path) -> None:
    await asyncio.to_thread(wait_for, path.exists)


def test_a_job_from_submit_to_its_log(place: Place) -> None:
    async def work(team: Team) -> None:
        text = job(
            role("echo hello; echo $PAI_USER_NAME; pwd; ls -A | wc -l; env | grep PAILOT_ | grep -cv ^PAILOT_TASK_MARK= || true"),
            name="one",
        )
        record = await team.submit(ANN, text)
        assert (record.user, record.name, record.state) == ("ann", "one", "WAITING")
        events = await ended(team, "ann~one")
        states = [event.data["state"] for event in events if event.kind == "job"]
        assert states[-1] == "SUCCEEDED"
        assert [event.kind for event in events].count("end") == 1
        log = await team.log(ANN, "ann~one", "main", 0)
        lines = log.read()[0].decode().splitlines()
        assert lines[:2] == ["hello", "ann"]
        assert lines[2].endswith("/work")
        assert lines[3:] == ["0", "0"]
        assert log.ended
        shown = await team.record(ANN, "ann~one")
        assert shown["state"] == "SUCCEEDED"
        assert shown["taskRoles"]["main"]["tasks"][0]["exitCode"] == 0
        detail = await team.detail(ANN, "ann~one")
        assert (detail.attempt, detail.attempts, detail.attempt_state, detail.exit_code) == (0, 1, "SUCCEEDED", 0)
        assert detail.roles["main"][0].state == "SUCCEEDED"
        assert detail.roles["main"][0].ports["ssh"]
        assert [event.kind for event in await team.journal(ANN, "ann~one")][-1] == "ended"
        task, attempts = await team.task_attempts(ANN, "ann~one", None, "main", 0)
        assert task.exit_code == 0
        assert [each.attempt for each in attempts] == [0]
        with pytest.raises(NoSuchJob):
            await team.detail(ANN, "ann~one", 3)
        with pytest.raises(NoSuchJob):
            await team.get(ANN, "ann~two")

    place.run(work)
    no_process_left(str(place.folder))  # the keeper has ended, too


def test_retries_are_counted_and_their_logs_kept(place: Place) -> None:
    async def work(team: Team) -> None:
        text = job(
            role("echo try $FC_TASK_ATTEMPT_ID of $FC_FRAMEWORK_ATTEMPT_ID; exit 3", retries=1), name="again", job_retries=1
        )
        await team.submit(ANN, text)
        assert await state(team, "ann~again") == "FAILED"
        record = await team.get(ANN, "ann~again")
        assert (record.retries, record.user_retries, record.attempts, record.exit_code) == (1, 1, 2, 3)
        first = await team.detail(ANN, "ann~again", 0)
        assert (first.attempt_state, first.exit_code, first.trigger_role, first.trigger_index) == ("FAILED", 3, "main", 0)
        assert first.roles["main"][0].attempt == 1
        _, attempts = await team.task_attempts(ANN, "ann~again", 0, "main", 0)
        assert [(each.attempt, each.exit_code) for each in attempts] == [(1, 3), (0, 3)]
        pieces = [piece async for piece in team.subscribe_log(ANN, "ann~again", "main", 0, attempt=0, task_attempt=0)]
        assert b"".join(piece.data for piece in pieces) == b"try 0 of 0\n"
        after = LogPiece(0, 0, 0).id
        everything = [piece async for piece in team.subscribe_log(ANN, "ann~again", "main", 0, after=after)]
        assert b"".join(piece.data for piece in everything) == b"try 0 of 0\ntry 1 of 0\ntry 0 of 1\ntry 1 of 1\n"
        assert everything[-1].ended
        lines = await team.why(ANN, "ann~again")
        assert any("tried again" in line for line in lines)
        assert any("exited with 3" in line for line in lines)

    place.run(work)


def test_a_log_is_followed_while_it_grows_by_many(place: Place) -> None:
    go = place.folder / "go"

    async def work(team: Team) -> None:
        text = job(role(f"for i in 1 2 3; do echo line $i; while [ ! -e {go}-$i ]; do sleep 0.01; done; done"), name="live")
        await team.submit(ANN, text)

        async def follow() -> bytes:
            data = b""
            async for piece in team.subscribe_log(ANN, "ann~live", "main", 0):
                data += piece.data
                for number in (1, 2, 3):
                    if data.endswith(b"line %d\n" % number):
                        Path(f"{go}-{number}").touch()
            return data

        for data in await asyncio.gather(*(follow() for _ in range(50))):
            assert data == b"line 1\nline 2\nline 3\n"

    place.run(work)


def test_names_and_files_are_checked(place: Place) -> None:
    async def work(team: Team) -> None:
        await team.submit(ANN, job(role("true"), name="mine"))
        with pytest.raises(Conflict):
            await team.submit(ANN, job(role("true"), name="mine"))
        await ended(team, "ann~mine")
        with pytest.raises(Conflict):
            await team.submit(ANN, job(role("true"), name="mine"))
        await team.submit(Caller("bob"), job(role("true"), name="mine"))
        with pytest.raises(Invalid) as refused:
            await team.submit(ANN, "name: [")
        assert refused.value.problems[0].code == "yaml-syntax"
        with pytest.raises(Forbidden):
            await team.submit(ANN, job(role("true"), name="x", more="defaults: {virtualCluster: other}"))
        with pytest.raises(Invalid, match="not on the server"):
            await team.submit(ANN, job(role("true"), name="x", options="code: ./src"))

    place.run(work)


def test_who_may_do_what(place: Place) -> None:
    async def work(team: Team) -> None:
        await team.submit(ANN, job(role("sleep 100"), name="mine"))
        record = await team.get(BOB, "ann~mine")  # that it is there is no secret
        assert not team.may_read(BOB, record)
        assert team.may_read(ANN, record)
        assert team.may_read(ROOT, record)
        assert team.may_read(Caller("eve"), record)  # a member of the same virtual cluster
        for ask in (team.config, team.journal, team.why, team.plan):
            with pytest.raises(Forbidden):
                await ask(BOB, "ann~mine")
        with pytest.raises(Forbidden):
            await team.stop(Caller("eve"), "ann~mine")
        with pytest.raises(Forbidden):
            await team.delete(Caller("eve"), "ann~mine")
        with pytest.raises(Forbidden):
            await team.add_tag(BOB, "ann~mine", "x")
        with pytest.raises(Conflict):
            await team.delete(ANN, "ann~mine")
        await team.add_tag(ANN, "ann~mine", "nightly")
        await team.add_tag(ANN, "ann~mine", "nightly")
        assert (await team.get(ANN, "ann~mine")).tags == ("nightly",)
        with pytest.raises(BadRequest):
            await team.add_tag(ANN, "ann~mine", "a,b")
        await team.remove_tag(ROOT, "ann~mine", "nightly")
        with pytest.raises(NoSuchTag):
            await team.remove_tag(ANN, "ann~mine", "nightly")
        await team.stop(ROOT, "ann~mine")
        assert await state(team, "ann~mine") == "STOPPED"
        await team.delete(ANN, "ann~mine")
        with pytest.raises(NoSuchJob):
            await team.get(ANN, "ann~mine")
        assert not list((place.home / "jobs").iterdir())

    place.run(work)


def test_an_open_server_shows_all(place: Place) -> None:
    async def work(team: Team) -> None:
        await team.submit(ANN, job(role("true"), name="mine"))
        assert "name: mine" in await team.config(BOB, "ann~mine")

    place.run(work, PAILOT_OPEN="true")


def test_jobs_wait_for_room_and_are_told_why(place: Place) -> None:
    async def work(team: Team) -> None:
        await team.submit(ANN, job(role("sleep 1000", instances=3), name="big"))
        await until(team, "ann~big", "RUNNING")
        await team.submit(ANN, job(role("true", instances=2), name="waits"))
        await team.submit(ANN, job(role("true", instances=5), name="never"))
        await asyncio.sleep(0)
        (line,) = await team.why(ANN, "ann~waits")
        assert "1 CPU more" in line
        assert "ann~big holds what it needs" in line
        (line,) = await team.why(ANN, "ann~never")
        assert "can never start" in line
        report = await team.capacity()
        assert (report.total.cpus, report.used.cpus) == (4, 3)
        assert report.clusters["default"].waiting == 2
        await team.stop(ANN, "ann~never")
        assert (await team.get(ANN, "ann~never")).state == "STOPPED"
        await team.stop(ANN, "ann~big", grace=0)
        assert await state(team, "ann~waits") == "SUCCEEDED"

    place.run(work)


def test_opportunistic_jobs_make_room_and_come_back(place: Place) -> None:
    seen = place.folder / "seen"
    script = f"echo $FC_FRAMEWORK_ATTEMPT_ID >> {seen}; [ $FC_FRAMEWORK_ATTEMPT_ID = 1 ] || sleep 1000"

    async def work(team: Team) -> None:
        oppo = job(role(script, instances=4), name="oppo").replace("extras:\n", "extras:\n" + HIVED.format("oppo"))
        await team.submit(ANN, oppo)
        await until(team, "ann~oppo", "RUNNING")
        await asyncio.to_thread(wait_for, lambda: seen.exists() and len(seen.read_text().split()) == 4)
        prod = job(role("true", instances=2), name="prod").replace("extras:\n", "extras:\n" + HIVED.format("prod"))
        await team.submit(ANN, prod)
        assert await state(team, "ann~prod") == "SUCCEEDED"
        assert await state(team, "ann~oppo") == "SUCCEEDED"
        record = await team.get(ANN, "ann~oppo")
        assert (record.attempts, record.user_retries, record.platform_retries) == (2, 0, 1)
        assert sorted(seen.read_text().split()) == ["0"] * 4 + ["1"] * 4

    place.run(work)


def test_running_jobs_are_handed_from_server_to_server(place: Place) -> None:
    go, seen = place.folder / "go", place.folder / "seen"

    async def first(team: Team) -> None:
        await team.submit(ANN, job(role(f"echo begun >> {seen}; while [ ! -e {go} ]; do sleep 0.01; done; echo done"), name="on"))
        await team.submit(ANN, job(role("echo later", instances=4), name="queued"))
        await team.submit(ANN, job(role("echo '<% $secrets.key %>'"), name="secret", more="secrets: {key: hush-hush}"))
        await until(team, "ann~on", "RUNNING")
        await file_there(seen)

    async def second(team: Team) -> None:
        assert (await team.get(ANN, "ann~on")).state == "RUNNING"
        follower = asyncio.create_task(_all(team.subscribe_log(ANN, "ann~on", "main", 0)))
        await asyncio.sleep(0)
        go.touch()
        assert await state(team, "ann~on") == "SUCCEEDED"
        assert b"".join(piece.data for piece in await follower) == b"done\n"
        assert await state(team, "ann~queued") == "SUCCEEDED"
        assert await state(team, "ann~secret") == "SUCCEEDED"
        log = await team.log(ANN, "ann~secret", "main", 0)
        assert b"hush" not in log.read()[0]
        assert "hush" not in await team.config(ANN, "ann~secret")

    place.run(first, PAILOT_CPUS="4")
    keeper = place.keeper()
    place.run(second)
    assert place.keeper() == keeper
    assert seen.read_text() == "begun\n"  # once
    for path in place.home.rglob("*"):
        if path.is_file():
            assert b"hush-hush" not in path.read_bytes(), path


async def _all(pieces: AsyncIterator[Any]) -> list[Any]:
    return [piece async for piece in pieces]


def test_what_ended_while_there_was_no_server_is_found(place: Place) -> None:
    go = place.folder / "go"

    async def first(team: Team) -> None:
        await team.submit(ANN, job(role(f"while [ ! -e {go} ]; do sleep 0.01; done; exit 4"), name="alone"))
        await until(team, "ann~alone", "RUNNING")

    async def second(team: Team) -> None:
        assert await state(team, "ann~alone") == "FAILED"
        assert (await team.get(ANN, "ann~alone")).exit_code == 4

    place.run(first)
    go.touch()
    wait_for(lambda: list(place.home.glob("jobs/*/verdict.json")))
    no_process_left(str(place.folder))
    place.run(second)


def test_a_killed_keeper_is_replaced_and_its_jobs_start_anew(place: Place) -> None:
    seen = place.folder / "seen"
    script = f"echo $FC_FRAMEWORK_ATTEMPT_ID >> {seen}; [ $FC_FRAMEWORK_ATTEMPT_ID = 1 ] || sleep 1000"

    async def work(team: Team) -> None:
        await team.submit(ANN, job(role(script), name="lost", options="graceSeconds: 1"))
        await file_there(seen)
        await until(team, "ann~lost", "RUNNING")
        os.kill(place.keeper(), signal.SIGKILL)
        assert await state(team, "ann~lost") == "SUCCEEDED"
        record = await team.get(ANN, "ann~lost")
        assert (record.attempts, record.user_retries, record.platform_retries) == (2, 0, 1)
        assert any("the process that kept it was killed" in line for line in await team.why(ANN, "ann~lost"))
        await team.submit(ANN, job(role("true"), name="next"))
        assert await state(team, "ann~next") == "SUCCEEDED"

    place.run(work)
    assert seen.read_text().split() == ["0", "1"]


def test_a_job_that_had_ended_is_not_run_again_when_keeper_and_server_die(place: Place) -> None:
    """The keeper is killed between the end of the task and the verdict: the task's own record decides."""
    seen = place.folder / "seen"

    async def first(team: Team) -> None:
        await team.submit(ANN, job(role(f"echo x >> {seen}; sleep 1000"), name="late", options="graceSeconds: 0"))
        await file_there(seen)
        os.kill(place.keeper(), signal.SIGSTOP)  # it sees nothing any more
        shims = [pid for pid in processes_with(str(place.folder)) if _command(pid) == "sleep"]
        os.kill(shims[0], signal.SIGTERM)
        await asyncio.to_thread(wait_for, lambda: list(place.home.glob("jobs/*/attempts/0/tasks/*/final.json")))

    async def second(team: Team) -> None:
        assert await state(team, "ann~late") == "FAILED"
        assert (await team.get(ANN, "ann~late")).attempts == 1

    place.run(first)
    os.kill(place.keeper(), signal.SIGKILL)
    place.run(second)
    assert seen.read_text() == "x\n"


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_platform_failures_have_a_limit(place: Place) -> None:
    seen = place.folder / "seen"

    async def work(team: Team) -> None:
        await team.submit(ANN, job(role(f"echo x >> {seen}; sleep 1000"), name="unlucky", options="graceSeconds: 0"))
        for count in range(1, 7):
            await asyncio.to_thread(wait_for, lambda count=count: seen.exists() and len(seen.read_text().split()) == count)
            await until(team, "ann~unlucky", "RUNNING")
            os.kill(place.keeper(), signal.SIGKILL)
            await asyncio.to_thread(no_process_left, f"{place.home}/jobs")
            if count < 6:
                await until(team, "ann~unlucky", "WAITING", "RUNNING")
        assert await state(team, "ann~unlucky") == "FAILED"
        record = await team.get(ANN, "ann~unlucky")
        assert "the platform failed 6 times" in record.reason
        assert record.attempts == 6

    place.run(work)


def test_a_second_server_refuses(place: Place) -> None:
    async def work(team: Team) -> None:
        with pytest.raises(Conflict, match="another server"):
            async with running_team(place.settings()):
                pass

    place.run(work)


def test_shutting_down_drains_or_stops(place: Place) -> None:
    go = place.folder / "go"

    async def drain(team: Team) -> None:
        await team.submit(ANN, job(role(f"touch {go}-begun; while [ ! -e {go} ]; do sleep 0.01; done"), name="runs"))
        await file_there(Path(f"{go}-begun"))
        await team.submit(ANN, job(role("true", instances=4), name="waits"))
        await asyncio.sleep(0.01)
        ending = asyncio.create_task(team.shutdown("drain"))
        await asyncio.sleep(0)
        with pytest.raises(ShuttingDown):
            await team.submit(ANN, job(role("true"), name="late"))
        go.touch()
        await ending
        assert (await team.get(ANN, "ann~runs")).state == "SUCCEEDED"
        assert (await team.get(ANN, "ann~waits")).state == "WAITING"

    async def stop(team: Team) -> None:
        assert await state(team, "ann~waits") == "SUCCEEDED"
        await team.submit(ANN, job(role("sleep 1000"), name="long"))
        await until(team, "ann~long", "RUNNING")
        await team.shutdown("stop-jobs")
        assert (await team.get(ANN, "ann~long")).state == "STOPPED"

    place.run(drain)
    place.run(stop)
    no_process_left(str(place.folder))


def test_the_same_again(place: Place) -> None:
    async def work(team: Team) -> None:
        text = job(role("echo '<% $secrets.key %>' | wc -c"), name="first", more="secrets: {key: hush-hush}")
        await team.submit(ANN, text)
        assert await state(team, "ann~first") == "SUCCEEDED"
        again = await team.rerun(ANN, "ann~first")
        assert again.name.startswith("first-")
        assert await state(team, f"ann~{again.name}") == "SUCCEEDED"
        log = await team.log(ANN, f"ann~{again.name}", "main", 0)
        assert log.read()[0] == b"10\n"
        with pytest.raises(BadRequest, match="its owner's"):
            await team.rerun(Caller("eve"), "ann~first")
        theirs = await team.rerun(Caller("eve"), "ann~first", name="mine", secrets={"key": "abcd"})
        assert (theirs.user, theirs.name) == ("eve", "mine")
        assert await state(team, "eve~mine") == "SUCCEEDED"
        assert (await team.log(ROOT, "eve~mine", "main", 0)).read()[0] == b"5\n"

    place.run(work)


def _archive(entries: dict[str, bytes], **links: str) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return made.getvalue()


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 100):
        yield data[start : start + 100]


def test_tasks_start_in_the_code_that_was_sent(place: Place) -> None:
    async def work(team: Team) -> None:
        code = _archive({"run.sh": b"#!/bin/bash\necho from code; touch mine\n", "lib/x.txt": b"x"}, link="lib/x.txt")
        digest = hashlib.sha256(code).hexdigest()
        assert not await team.has_code(ANN, digest)
        with pytest.raises(NoSuchCode):
            await team.submit(ANN, job(role("true"), name="c"), code=digest)
        assert await team.put_code(ANN, digest, _pieces(code))
        assert not await team.put_code(ANN, digest, _pieces(code))
        await team.submit(ANN, job(role("./run.sh; cat link", instances=2), name="c", options="code: ./src"), code=digest)
        assert await state(team, "ann~c") == "SUCCEEDED"
        for index in (0, 1):
            assert (await team.log(ANN, "ann~c", "main", index)).read()[0] == b"from code\nx"
        assert sorted(os.listdir(place.home / "code" / digest / "tree")) == ["lib", "link", "run.sh"]
        with pytest.raises(BadRequest, match="SHA-256"):
            await team.put_code(ANN, "0" * 64, _pieces(code))

    place.run(work)


@pytest.mark.parametrize(
    "archive",
    [
        _archive({"../out": b""}),
        _archive({"/etc/out": b""}),
        _archive({"a/../../out": b""}),
        _archive({}, link="/etc"),
        _archive({}, link="../.."),
        _archive({"link/x": b""}, link="/tmp"),
        b"no archive",
        _archive({"a": b"1" * 5000})[:-20],
    ],
)
def test_an_archive_that_leads_out_is_refused_and_leaves_nothing(place: Place, archive: bytes) -> None:
    from pailot.jobserver.code import CodeStore

    store = CodeStore(str(place.folder))
    with pytest.raises(BadRequest):
        asyncio.run(store.put(hashlib.sha256(archive).hexdigest(), "ann", _pieces(archive)))
    assert not list((place.folder / "code").iterdir())


def test_live_events_of_all_jobs_are_resumed(place: Place) -> None:
    async def work(team: Team) -> None:
        start = team.floor.row.last
        await team.submit(ANN, job(role("true"), name="a"))
        await state(team, "ann~a")
        await team.submit(ANN, job(role("true"), name="b"))
        await state(team, "ann~b")
        seen = []
        async for event in team.subscribe_jobs(ANN, start):
            seen.append((event.id, event.data["name"], event.data["state"]))
            if seen[-1][1:] == ("b", "SUCCEEDED"):
                break
        assert [each[1:] for each in seen if each[2] == "SUCCEEDED"] == [("a", "SUCCEEDED"), ("b", "SUCCEEDED")]
        half = next(each[0] for each in seen if each[1] == "b")
        async for event in team.subscribe_jobs(ANN, half - 1):
            assert event.id == half
            break
        async for event in team.subscribe_jobs(ANN, 5):
            assert event.kind == "reset"
            break
        others = team.subscribe_jobs(BOB, start)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(aiter(others)), 0.05)

    place.run(work)


def test_a_waiting_job_is_read_again_after_a_restart(place: Place) -> None:
    """Its plan is made anew from what was kept."""

    async def first(team: Team) -> None:
        team.floor.holding_back = True
        await team.submit(ANN, job(role("echo '<% $secrets.key %>' | wc -c"), name="w", more="secrets: {key: hush-hush}"))

    async def second(team: Team) -> None:
        assert await state(team, "ann~w") == "SUCCEEDED"
        assert (await team.log(ANN, "ann~w", "main", 0)).read()[0] == b"10\n"
        assert json.loads((place.home / "jobs" / (await team.get(ANN, "ann~w")).id / "job.json").read_text())["server"]

    place.run(first)
    place.run(second)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of other users")
def test_tasks_are_processes_of_the_users_own_unix_user(place: Place) -> None:
    """With a job of root beside it, of which it can read nothing."""
    for folder in place.folder.parents:
        if folder.stat().st_mode & 0o001 == 0 and str(folder).startswith(tempfile.gettempdir() + os.sep):
            folder.chmod(0o711)
    place.folder.chmod(0o711)
    prerequisites = """  - name: setup
    type: script
    callbacks: [{event: taskStarts, commands: ["export GREETING=hi-$(id -un)"]}]"""
    script = (
        "id -un; id -Gn; echo $HOME; echo $GREETING; touch mine; stat -c %U . mine; echo '<% $secrets.key %>' | wc -c; "
        "touch $PAI_CHECKPOINT_DIR/x && echo kept; cat $PAI_PEERS_FILE > /dev/null && echo peers; "
        f"ls {place.home} 2>/dev/null || echo closed; cat {place.home}/server.db 2>/dev/null || echo closed"
    )

    async def work(team: Team) -> None:
        text = job(role(script, listed="setup"), name="mapped", prerequisites=prerequisites, more="secrets: {key: hush-hush}")
        await team.submit(ANN, text)
        assert await state(team, "ann~mapped") == "SUCCEEDED"
        lines = (await team.log(ANN, "ann~mapped", "main", 0)).read()[0].decode().splitlines()
        home = pwd.getpwnam("nobody").pw_dir
        wanted = ["nobody", "nogroup", home, "hi-nobody", "nobody", "nobody", "10", "kept", "peers", "closed", "closed"]
        assert lines == wanted
        with pytest.raises(Invalid, match="no Unix user"):
            await team.submit(Caller("bob"), job(role("true"), name="x"))
        folder = (await team.get(ANN, "ann~mapped")).folder
        peek = (
            f"for each in {folder} {folder}/checkpoints/main-0 {folder}/attempts/0; do ls $each 2>/dev/null || echo closed; done"
        )
        await team.submit(Caller("eve"), job(role(peek), name="curious"))
        assert await state(team, "eve~curious") == "SUCCEEDED"
        assert (await team.log(ROOT, "eve~curious", "main", 0)).read()[0] == b"closed\n" * 3
        await team.submit(Caller("eve"), job(role("sleep 1000"), name="stopped"))
        await until(team, "eve~stopped", "RUNNING")
        await team.stop(ROOT, "eve~stopped")
        assert await state(team, "eve~stopped") == "STOPPED"
        with pytest.raises(Invalid, match="does not know"):
            await team.submit(Caller("kim"), job(role("true"), name="x"))

    place.run(work, PAILOT_UNIX_USERS="ann=nobody, eve=daemon, kim=no-such-user")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of other users")
def test_channels_are_read_and_written_with_the_rights_of_the_tasks_unix_user(place: Place) -> None:
    for folder in (place.folder, *place.folder.parents):
        if folder.stat().st_mode & 0o001 == 0 and str(folder).startswith(tempfile.gettempdir() + os.sep):
            folder.chmod(0o711)
    for name, mode in (("open", 0o777), ("closed", 0o700)):
        (place.folder / name).mkdir()
        (place.folder / name / "data").mkdir()
        (place.folder / name / "data" / "file").write_text(name)
        (place.folder / name).chmod(mode)

    def text(name: str, source: str, target: str) -> str:
        script = (
            'cat "$PAI_INPUT_I/file"; cd "$PAI_WORKING_DIR"; cp "$PAI_CONFIG_DIR"/* .; echo x >"$PAI_CONFIG_DIR/mine"\n'
            'echo "$PAI_TASK_INDEX" >"$PAI_OUTPUT_O/$PAI_TASK_INDEX"; ln -s /etc/shadow "$PAI_OUTPUT_O/link$PAI_TASK_INDEX"'
        )
        uris = f"inputs: {{i: {place.folder}/{source}/data}}, outputs: {{o: {place.folder}/{target}/{name}}}"
        more = f"channels: {{{uris}, hyperparameters: {{a: b}}, mount: true}}"
        return job(role(script, instances=2), name=name, options=more)

    async def work(team: Team) -> None:
        await team.submit(ANN, text("fine", "open", "open"))
        assert await state(team, "ann~fine") == "SUCCEEDED"
        found = sorted((place.folder / "open" / "fine").iterdir())
        assert [path.name for path in found] == ["0", "1", "link0", "link1"]
        assert {path.lstat().st_uid for path in found} == {pwd.getpwnam("nobody").pw_uid}
        await team.submit(ANN, text("out", "open", "closed"))
        assert await state(team, "ann~out") == "FAILED"
        assert "Permission denied" in (await team.get(ANN, "ann~out")).reason
        assert not (place.folder / "closed" / "out").exists()
        await team.submit(ANN, text("in", "closed", "open"))
        assert await state(team, "ann~in") == "FAILED"
        assert "Unix user nobody may not read" in (await team.get(ANN, "ann~in")).reason
        with pytest.raises(Invalid, match="the code '/root' is not on the server"):
            await team.submit(ANN, job(role("true"), name="code", options="channels: {code: /root}"))

    folders = f"open={place.folder}/open, closed={place.folder}/closed"
    place.run(work, PAILOT_UNIX_USERS="ann=nobody", PAILOT_STORAGE_FOLDERS=folders)


def test_jobs_see_only_what_the_storages_allow(tmp_path: Path) -> None:
    from pailot import loads, plan
    from pailot.data import server_rules
    from pailot.jobserver.submission import check_places

    (tmp_path / "way-out").symlink_to("/etc")
    rules = server_rules.read(Settings({"PAILOT_STORAGE_FOLDERS": f"data={tmp_path}"}, folder=str(tmp_path)))

    def check(uri: str, kind: str = "inputs") -> None:
        found = loads(job(role("true"), options=f"channels: {{{kind}: {{c: '{uri}'}}}}"))
        check_places(found, plan(found), {}, rules)

    for uri in (str(tmp_path), f"{tmp_path}/deep/er", f"file://{tmp_path}/x", "s3://bucket/key", "https://example.com/x"):
        check(uri)
    for uri in ("/etc", "/", f"{tmp_path}/../other", f"file://{tmp_path}/way-out/x", f"{tmp_path}-more"):
        for kind in ("inputs", "outputs"):
            with pytest.raises(Invalid, match="it is in no folder of this server"):
                check(uri, kind=kind)


def test_only_the_settings_make_somebody_root() -> None:
    """Who may make accounts is not therefore root of the machine."""
    from pailot.jobserver.unix_users import UnixUsers

    with pytest.raises(Invalid, match="only the setting"):
        UnixUsers("ann=nobody", lambda _: "root").check("ann")
    with pytest.raises(Invalid, match="only the setting"):
        UnixUsers("same", lambda _: None).check("root")
    if os.geteuid() == 0:
        UnixUsers("ann=root", lambda _: None).check("ann")


def test_who_shares_a_unix_user() -> None:
    from pailot.jobserver.unix_users import UnixUsers

    assert UnixUsers("", lambda _: "nobody").owner("ann") == ""
    users = UnixUsers("ann=nobody, eve=no-such-user", lambda name: "daemon" if name == "kim" else None)
    assert [users.owner(name) for name in ("ann", "eve", "kim", "bob")] == ["nobody", None, "daemon", None]


def test_without_root_no_other_user_is_taken() -> None:
    from pailot.jobserver.unix_users import UnixUsers

    if os.geteuid() == 0:
        pytest.skip("root can")
    with pytest.raises(Invalid, match="not run as root"):
        UnixUsers("ann=root", lambda _: None).check("ann")


def test_a_home_is_its_owners_alone_and_a_keeper_without_work_ends(place: Place) -> None:
    async def nothing(team: Team) -> None:
        assert place.home.stat().st_mode & 0o777 == 0o700
        assert (place.home / "keeper.sock").stat().st_mode & 0o777 == 0o600

    place.run(nothing)
    no_process_left(str(place.folder))
