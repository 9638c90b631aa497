"""Every branch of the dispatcher that a good day does not reach: lost lines, full disks, mistakes of ours.

The dispatcher is real, with its queue; the store keeps rows in memory, and a line to a keeper writes down what is ordered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pailot.engines.contract import LaunchContext
from pailot.jobserver import dispatcher as module
from pailot.jobserver import following, keeper_client
from pailot.jobserver.dispatcher import DRIVEN, QUEUED, SETTLING, Dispatcher, Entry
from pailot.jobserver.errors import TeamError, Unavailable
from pailot.lifecycle.settling import BUSY, QUEUE
from pailot.runfolder.records import HandedOn, VerdictRecord
from pailot.runtime import defects
from pailot.scheduling.capacity import Capacity
from pailot.settings import Settings
from pailot.store import StoreError
from pailot.store.server import JobRecord
from pailot.userruns import settle
from pailot.userruns.settle import AGAIN, ENDED, Settled


class Line:
    """A line to a keeper."""

    def __init__(self, pid: int = 1) -> None:
        self.pid, self.open = pid, True
        self.orders: list[tuple[str, str]] = []
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.broken: Exception | None = None

    def order(self, *_: str, do: str, id: str = "", **more: Any) -> None:
        if self.broken is not None:
            raise self.broken
        self.orders.append((do, more.get("reason") or id))

    def close(self) -> None:
        self.open = False
        if not self.gone.done():
            self.gone.set_result(None)


class Rows:
    """The table of jobs."""

    def __init__(self) -> None:
        self.jobs = self  # as `store.jobs`
        self.rows: dict[str, JobRecord] = {}
        self.fails = 0

    def update(self, id: str, **columns: Any) -> None:
        if self.fails:
            self.fails -= 1
            raise StoreError("the disk is full")
        self.rows[id] = self.rows[id].replace(**columns)

    def get(self, id: str) -> JobRecord | None:
        return self.rows.get(id)

    def plan(self, _: str) -> str:
        return "{}"

    def unfinished(self) -> list[JobRecord]:
        return list(self.rows.values())


class Writer:
    """Writes at once; `ended` is what it raises then."""

    ended: Exception | None = None

    def do(self, work: Callable[[], object]) -> asyncio.Future[object]:
        if self.ended is not None:
            raise self.ended
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        try:
            done.set_result(work())
        except Exception as error:  # as a thread hands it over
            done.set_exception(error)
        return done


class Plan:
    """What the dispatcher needs of a job that was prepared."""

    documents = ("shown", "plan")
    source = "job.yaml"


class Office:
    """A dispatcher with one keeper, and what each job's folder says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store, self.writer = Rows(), Writer()
        self.lines: list[Any] = []
        self.meets: list[Any] = []
        self.folders: list[Settled] = []
        self.prepare: Callable[[JobRecord], object] = lambda _: Plan()
        self.context: Callable[[JobRecord, object], LaunchContext] = lambda _record, _prepared: LaunchContext()

    def open(self, *rows: JobRecord, cpus: float = 4, held: Any = None) -> Awaitable[Dispatcher]:
        async def opened() -> Dispatcher:
            self.line = Line()
            self.meets.insert(0, [(self.line, {"jobs": held or {}})])
            for row in rows:
                self.store.rows[row.id] = row
            made = Dispatcher(
                Settings({"PAILOT_HOME": str(self.folder)}, folder=str(self.folder)),
                cast("Any", self.store),
                cast("Any", self.writer),
                engine="fake",
                machine=Capacity(cpus, 4000),
                prepare_again=cast("Any", lambda *given: self.prepare(*given)),  # noqa: PLW0108  # a test changes it
                context=cast("Any", lambda *given: self.context(*given)),  # noqa: PLW0108  # likewise
            )
            await made.begin()
            return made

        return opened()

    async def find_or_start(self, *_: object) -> list[tuple[Line, Any]]:
        found = self.meets.pop(0)
        if isinstance(found, Exception):
            raise found
        return cast("list[tuple[Line, Any]]", found)

    def job(self, name: str = "one", **columns: Any) -> JobRecord:
        row = JobRecord(name, "ann", name, 1.0, cpus=1, memory_mb=10, folder=str(self.folder / "jobs" / name)).replace(**columns)
        self.store.rows[row.id] = row
        return row


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    made = Office(tmp_path)
    monkeypatch.setattr(keeper_client, "find_or_start", made.find_or_start)
    monkeypatch.setattr(settle, "settle", lambda *_: made.folders.pop(0))
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(defects, "note", lambda error, _: f"defect: {error}")
    return made


async def turns(count: int = 8) -> None:
    """Let what was put off happen; what works in threads has its time, too."""
    for _ in range(count):
        await asyncio.sleep(0.002)


async def until(fits: Callable[[], object]) -> None:
    for _ in range(2_000):
        if fits():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it did not happen")


async def driven(office: Office, **columns: Any) -> tuple[Dispatcher, Entry]:
    """A job that a keeper drives."""
    made = await office.open()
    row = office.job(**columns)
    made.add(row, cast("Any", Plan()))
    await turns()
    entry = made.entries[row.id]
    assert entry.phase == DRIVEN
    return made, entry


def run(work: Awaitable[None]) -> None:
    async def timed() -> None:
        await asyncio.wait_for(work, 60)

    asyncio.run(timed())


def ended(state: str = "SUCCEEDED") -> VerdictRecord:
    return VerdictRecord(state, "as its folder tells", 9.0, attempts=1)


def test_followers_of_logs_are_counted_and_woken(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        first, second = entry.follow("main", 0), entry.follow("main", 0)
        assert first is second
        before = first.signal.count
        made._heard(entry, {"event": "grown", "role": "main", "index": 0})
        entry.grown("main", 1)  # is not followed
        entry.ring()
        made._heard(entry, {"event": "noted"})
        assert first.signal.count == before + 3
        entry.unfollow("main", 0)
        assert entry.growth
        entry.unfollow("main", 0)
        assert not entry.growth

    run(work())


def test_a_keeper_is_told_while_somebody_watches(office: Office) -> None:
    async def work() -> None:
        made = await office.open(cpus=0.5)
        row = office.job()
        made.add(row, cast("Any", Plan()))
        entry = made.entries[row.id]
        made.watch(entry)  # it waits: no keeper has it
        made.unwatch(entry)
        made.watch(entry)
        made.queue = type(made.queue)(Capacity(4, 4000))
        made._enqueue(entry)
        made.decide_soon()
        await turns()
        made.watch(entry)
        made.unwatch(entry)
        made.unwatch(entry)
        assert [do for do, _ in office.line.orders] == ["start", "watch", "watch"]

    run(work())


def test_each_job_that_was_there_before_is_taken_up(office: Office, tmp_path: Path) -> None:
    async def work() -> None:
        (tmp_path / "jobs" / "settled").mkdir(parents=True)
        rows = [
            office.job("waits"),
            office.job("stopped", execution_type="STOP"),
            office.job("settled"),
            office.job("held", execution_type="STOP"),
        ]
        office.folders.append(Settled(ENDED, ended()))
        standing = {"state": "RUNNING", "attempt": 1, "started": 5.0, "retries": {"user": 1}}
        made = await office.open(*rows, held={"held": standing})
        assert (made.entries["held"].record.state, made.entries["held"].record.attempts) == ("RUNNING", 2)
        await until(lambda: "settled" not in made.entries)
        assert office.store.rows["settled"].state == "SUCCEEDED"
        assert office.store.rows["stopped"].state == "STOPPED"
        assert ("stop", "held") in office.line.orders
        assert ("start", "waits") in office.line.orders

    run(work())


def test_news_that_come_before_the_jobs_are_known_are_heard_later(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        row = office.job()
        made: list[Dispatcher] = []
        find = office.find_or_start

        async def early(*arguments: Any) -> Any:
            hear = arguments[3]
            hear(None, {"event": "started", "id": row.id, "attempt": 0, "at": 3.0})
            hear(None, {"event": "started", "id": "unknown", "attempt": 0, "at": 3.0})
            return await find()

        monkeypatch.setattr(keeper_client, "find_or_start", early)
        made.append(await office.open(row))
        assert made[0].entries[row.id].record.state == "RUNNING"

    run(work())


def test_the_end_waits_for_keepers_but_not_for_ever(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr(module, "GOODBYE_SECONDS", 0.01)
        made, _ = await driven(office)
        office.line.close = lambda: None  # type: ignore[method-assign]  # a keeper that hangs
        made._spawn(asyncio.sleep(60))
        await made.end()
        made.decide_soon()
        assert not made._due
        made._lost(cast("Any", office.line))
        assert not made.links

    run(work())


def test_a_job_beyond_the_plans_that_are_kept_is_read_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr(module, "KEPT_PLANS", 0)
        made = await office.open()
        for name in ("good", "bad", "gone"):
            made.add(office.job(name), cast("Any", Plan()))

        def prepare(record: JobRecord) -> object:
            if record.name == "bad":
                raise TeamError("its library is gone")
            if record.name == "gone":
                raise RuntimeError("a mistake of ours")
            return Plan()

        office.prepare = prepare
        await until(lambda: len(made.entries) == 1)
        assert office.store.rows["bad"].reason == "it could not be read again: its library is gone"
        assert office.store.rows["gone"].reason == "defect: a mistake of ours"
        assert ("start", "good") in office.line.orders

    run(work())


@pytest.mark.parametrize("change", ["stopped", "line lost"])
def test_what_changed_while_a_job_was_read_again_counts(office: Office, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    async def work() -> None:
        monkeypatch.setattr(module, "KEPT_PLANS", 0)
        made = await office.open()
        row = office.job()
        made.add(row, cast("Any", Plan()))
        entry = made.entries[row.id]

        def prepare(_: JobRecord) -> object:
            if change == "stopped":
                entry.record = entry.record.replace(execution_type="STOP")
            else:
                made.link = None
            return Plan()

        office.prepare = prepare
        await until(lambda: (entry.phase != DRIVEN and entry.phase != QUEUED) or made.link is None)
        await turns()
        assert entry.phase == (SETTLING if change == "stopped" else QUEUED)
        made._decide()  # without a keeper nothing starts
        assert office.line.orders == []

    run(work())


def test_a_job_whose_context_cannot_be_made_ends(office: Office) -> None:
    async def work() -> None:
        made = await office.open()

        def context(*_: object) -> LaunchContext:
            raise TeamError("its Unix user is gone")

        office.context = context
        made.add(office.job(), cast("Any", Plan()))
        await until(lambda: not made.entries)
        assert office.store.rows["one"].reason == "it could not be started: its Unix user is gone"

    run(work())


def test_a_queue_that_fails_is_asked_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        made = await office.open()
        later: list[Callable[[], object]] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda _seconds, work, *arguments: later.append(lambda: work(*arguments)))
        monkeypatch.setattr(made, "_decide", lambda: 1 / 0)
        made._decide_now()
        assert later
        made.decide_soon()
        made.decide_soon()  # once for all
        assert made._due

    run(work())


def test_an_order_to_make_room_goes_to_the_keeper_that_has_the_job(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        made._preempt(entry)
        entry.link = None
        made._preempt(entry)
        assert [do for do, _ in office.line.orders] == ["start", "preempt"]

    run(work())


def test_the_words_of_an_engine_that_waits_are_kept(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        made._heard(entry, {"event": "waiting", "reason": "Slurm has no node"})
        assert entry.note == "Slurm has no node"
        made._heard(entry, {"event": "started", "attempt": 0, "at": 2.0})
        assert entry.note == ""

    run(work())


def test_stopping_is_ordered_once_it_is_durable(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        for _ in range(2):
            await made.stop(entry, grace=1, now=False)
        entry.link = None
        await made.stop(entry, grace=1, now=False)  # no keeper has it: settling sees the order
        assert [do for do, _ in office.line.orders] == ["start", "stop", "stop"]
        assert office.store.rows["one"].execution_type == "STOP"
        made._heard(entry, {"event": "started", "attempt": 0, "at": 2.0})
        assert entry.record.state == "STOPPING"

    run(work())


def test_a_job_that_follows_one_that_is_over(office: Office) -> None:
    async def work() -> None:
        office.job("over", state="SUCCEEDED")
        office.job("runs", state="RUNNING")
        before = [
            {"id": "over", "name": "over", "on": "success"},
            {"id": "runs", "name": "runs", "on": "end"},
        ]
        rows = {**office.store.rows}
        office.store.rows.clear()
        made = await office.open()
        office.store.rows.update(rows)
        made.add(office.job("two", more={"after": before}), cast("Any", Plan()))
        entry = made.entries["two"]
        assert made.wait_reason(entry).kind == "after"
        await until(lambda: len(following.left_of(entry.record)) == 1)
        made._predecessor_ended(entry, "runs", "FAILED", "")
        await turns()
        assert entry.phase == DRIVEN
        made._predecessor_ended(entry, "runs", "FAILED", "")  # too late
        made.followers.add("runs", "never")
        made._tell_followers(office.store.rows["runs"])  # the follower is gone

    run(work())


def test_why_a_job_waits_without_others_is_what_the_queue_says(office: Office) -> None:
    async def work() -> None:
        made = await office.open(cpus=0.5)
        made.add(office.job(), cast("Any", Plan()))
        assert made.wait_reason(made.entries["one"]).kind != "after"

    run(work())


def test_of_two_keepers_the_one_in_charge_is_lost(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        other = Line(2)
        made.links.append(cast("Any", other))
        made._lost(cast("Any", other))  # it had none of our jobs
        assert entry.phase == DRIVEN
        office.folders.append(Settled(ENDED, ended("FAILED")))
        again = Line(3)
        office.meets += [Unavailable("no keeper"), RuntimeError("odd"), [(again, {"jobs": {"unknown": {}}})]]
        slept = asyncio.sleep

        async def shortly(_: float) -> None:
            await slept(0)

        asyncio.sleep = cast("Any", shortly)
        try:
            made._lost(cast("Any", office.line))
            for _ in range(2_000):
                await slept(0.001)
                if made.link is not None and not made.entries:
                    break
        finally:
            asyncio.sleep = slept
        assert again.orders == [("abort", "the server has ended it")]
        assert made.counts["keepers"] == 1

    run(work())


def test_a_search_for_a_keeper_ends_with_the_server(office: Office) -> None:
    async def work() -> None:
        made, _ = await driven(office)
        made.ending = True
        await made._new_keeper()
        assert made.counts["keepers"] == 0

    run(work())


def test_a_keeper_that_cannot_be_met_is_left(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        made, _ = await driven(office)
        odd, good = Line(5), Line(6)
        office.meets += [[(odd, {})], [(good, {"jobs": {}})]]
        slept = asyncio.sleep
        monkeypatch.setattr(asyncio, "sleep", lambda _: slept(0))
        made.link = None
        await made._new_keeper()
        assert not odd.open
        assert made.link is cast("Any", good)

    run(work())


def test_a_line_that_was_found_twice_is_closed_and_its_jobs_go_on(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        made.add(office.job("two"), cast("Any", Plan()))
        await turns()
        lost, entry.link, entry.watchers = Line(7), None, 1
        lost.open = False
        entry.link = cast("Any", lost)
        entry.defect = "a mistake of ours"
        same = Line(1)
        office.folders.append(Settled(ENDED, ended()))
        made._met([(cast("Any", same), {"jobs": {"one": {}}})])
        assert not office.line.open
        assert [do for do, _ in same.orders] == ["watch", "abort"]
        assert entry.phase == DRIVEN
        await until(lambda: "two" not in made.entries)  # its order has not arrived: its folder tells

    run(work())


def test_a_keeper_gives_back_only_what_no_other_has(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        other = Line(8)
        made._take_back(cast("Any", other), {"one": {}})
        assert entry.link is cast("Any", office.line)
        assert other.orders == []

    run(work())


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (Settled(AGAIN, HandedOn("platform", 1, {"platform": 1}, 4.0, "its node is gone")), "WAITING"),
        (Settled(AGAIN, HandedOn("preempted", 1)), "WAITING"),
        (Settled(QUEUE, HandedOn(attempt=2)), "WAITING"),
    ],
)
def test_a_job_that_is_to_be_tried_again_goes_back_into_the_queue(office: Office, found: Settled, state: str) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        office.folders += [Settled(BUSY), found]
        made.link = None  # nothing starts meanwhile
        made._heard(entry, {"event": "unknown"})
        made._settle_soon(entry)  # once is enough
        await until(lambda: entry.phase == QUEUED)
        assert entry.record.state == state
        if found.again.counted_as == "preempted":
            assert (entry.record.more["preempted"], entry.record.platform_retries) == (1, 1)

    run(work())


def test_a_job_that_was_stopped_is_not_tried_again(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        entry.record = entry.record.replace(execution_type="STOP")
        made._heard(entry, {"event": "again", "record": HandedOn("user", 1).to_json()})
        await until(lambda: not made.entries)
        assert office.store.rows["one"].reason == "stopped while waiting to be tried again"

    run(work())


def test_a_defect_that_a_keeper_tells_of_ends_a_job_without_a_folder(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        office.folders.append(Settled(QUEUE))
        made._heard(entry, {"event": "unknown", "defect": True, "reason": "a mistake of ours"})
        await until(lambda: not made.entries)
        assert office.store.rows["one"].reason == "a mistake of ours"

    run(work())


def test_a_keeper_that_comes_back_while_a_folder_is_looked_at_keeps_its_job(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        made, entry = await driven(office)

        def looked_at(*_: object) -> Settled:
            entry.phase = DRIVEN
            return Settled(ENDED, ended())

        monkeypatch.setattr(settle, "settle", looked_at)
        entry.phase = SETTLING
        await made._settle(entry, "")
        assert entry.record.state != "SUCCEEDED"

    run(work())


def test_an_end_that_cannot_be_kept_is_tried_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda _, work, *arguments: loop.call_soon(work, *arguments))
        office.store.fails = 1
        made._heard(entry, {"event": "ended", "record": ended().to_json()})
        for _ in range(100):
            await asyncio.sleep(0)
        monkeypatch.delattr(loop, "call_later")
        assert not made.entries
        assert office.store.rows["one"].state == "SUCCEEDED"
        made._finish(entry, ended())  # it has ended already

    run(work())


def test_an_end_that_cannot_be_kept_is_left_to_the_next_server(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        made.ending = True
        office.store.fails = 1
        made._finish(entry, ended())
        await turns()
        assert office.store.rows["one"].state != "SUCCEEDED"
        office.writer.ended = StoreError("closed")
        made._spawn_finish(entry, entry.record, "RUNNING", {}, None)

    run(work())


def test_an_end_that_another_entry_of_the_name_follows_removes_only_its_own(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        made.entries["one"] = Entry(entry.record)
        made._spawn_finish(entry, entry.record, "RUNNING", {}, None)
        await turns()
        assert "one" in made.entries

    run(work())


def test_what_belongs_to_a_change_is_kept_with_it(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        kept: list[str] = []
        made.on_change = lambda after, _: lambda: kept.append(after.state)
        made._heard(entry, {"event": "started", "attempt": 0, "at": 2.0})
        made._change(entry, state="RUNNING")  # no change
        made._heard(entry, {"event": "ended", "record": ended().to_json()})
        await turns()
        assert kept == ["RUNNING", "SUCCEEDED"]

    run(work())


def test_a_notice_that_cannot_be_made_ends_nothing(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)

        def fails(*_: object) -> None:
            raise RuntimeError("a mistake of ours")

        made.on_change = cast("Any", fails)
        made._heard(entry, {"event": "started", "attempt": 0, "at": 2.0})
        assert entry.record.state == "RUNNING"

    run(work())


def test_a_change_that_is_not_kept_is_told_to_no_list(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        before = entry.signal.count
        office.store.fails = 1
        made._heard(entry, {"event": "started", "attempt": 0, "at": 2.0})
        await turns()
        assert entry.signal.count == before + 1
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        done.cancel()
        assert not module._ignore(done)

    run(work())


def fails(*_: object) -> None:
    raise RuntimeError("a mistake of ours")


def test_a_defect_of_a_driven_job_is_left_to_its_keeper_once(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        made._for(entry, fails)
        assert office.line.orders[-1] == ("abort", "defect: a mistake of ours")
        assert entry.record.state == "WAITING"
        made._for(entry, fails)
        await until(lambda: not made.entries)
        assert office.store.rows["one"].reason == "defect: a mistake of ours"

    run(work())


@pytest.mark.parametrize("closed", [False, True])
def test_a_defect_whose_own_steps_fail_ends_the_job_all_the_same(office: Office, *, closed: bool) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        office.line.broken = RuntimeError("the line is odd")
        if closed:
            office.writer.ended = StoreError("closed")
        made._for(entry, fails)
        assert made.entries == {}
        assert entry.record.state == "FAILED"
        assert office.store.rows["one"].state == ("WAITING" if closed else "FAILED")

    run(work())


def test_a_defect_of_a_job_that_has_ended_lets_go_of_it(office: Office) -> None:
    async def work() -> None:
        made, entry = await driven(office)
        entry.record = entry.record.replace(state="SUCCEEDED")
        entry.phase = SETTLING
        made._for(entry, fails)
        assert made.entries == {}
        assert office.store.rows["one"].state == "SUCCEEDED"

    run(work())
