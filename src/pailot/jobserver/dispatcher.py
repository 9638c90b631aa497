"""Every job that has not ended: its place in the queue, the keeper that drives it, and what becomes of it."""

from __future__ import annotations

import asyncio  # only a server loads this
import json
import logging
import os
import time

from ..engines import context_codec
from ..lifecycle.following import failure_words, waiting_words
from ..lifecycle.settling import BUSY
from ..lifecycle.states import FAILED, FINAL_JOB_STATES, RUNNING, STOPPED, STOPPING, WAITING
from ..runfolder.records import HandedOn, RunRecord, VerdictRecord
from ..runtime import defects, processes
from ..scheduling.queue import Queue
from ..scheduling.requests import Holding, Reason, Request
from ..store import StoreError
from ..userruns import settle
from ..userruns.run_folder import JobFolder
from . import following, job_history, keeper_client, server_log
from .errors import TeamError
from .following import Followers
from .signals import Growth, LatestEvents, Signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Told = TypeVar("Told", VerdictRecord, HandedOn)
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from ..engines.contract import LaunchContext
    from ..scheduling.capacity import Capacity
    from ..settings import Settings
    from ..store.server import JobRecord, ServerStore
    from .batched_writer import Writer
    from .keeper_client import Link
    from .submission import Prepared

QUEUED, DRIVEN, SETTLING = "queued", "driven", "settling"
KEPT_PLANS = 256
"""At most this many waiting jobs keep their plan in memory; others are read again when their turn comes."""
LOOK_SECONDS = 0.05
GOODBYE_SECONDS = 10.0
SUBMITTED_BY = "request"
"""The key of `JobRecord.more` with the id of the request that submitted the job."""


class Entry:
    """A job that has not ended."""

    def __init__(self, record: JobRecord) -> None:
        self.record = record
        self.phase = QUEUED
        self.prepared: Prepared | None = None
        self.link: Link | None = None
        self.signal = Signal()
        self.watchers = 0
        self.growth: dict[tuple[str, int], Growth] = {}
        """Of each task whose log is followed: a look at all tasks for each line of one would cost too much."""
        self.note = ""
        """What its engine waits for, in words."""
        self.defect = ""
        """What mistake of ours ends it, in words."""

    def ring(self) -> None:
        """Something happened to the job: wakes those who follow it or one of its logs."""
        self.signal.ring()
        for each in self.growth.values():
            each.signal.ring()

    def ring_soon(self) -> None:
        self.signal.ring_soon(self.watchers)
        for each in self.growth.values():
            each.signal.ring_soon(self.watchers)

    def grown(self, role: str, index: int) -> None:
        """The log of a task has grown."""
        growth = self.growth.get((role, index))
        if growth is not None:
            growth.signal.ring_soon(growth.followers)

    def follow(self, role: str, index: int) -> Growth:
        """Count one more follower of a task's log; `unfollow` ends that."""
        growth = self.growth.setdefault((role, index), Growth())
        growth.followers += 1
        return growth

    def unfollow(self, role: str, index: int) -> None:
        growth = self.growth[role, index]
        growth.followers -= 1
        if not growth.followers:
            del self.growth[role, index]

    @property
    def attempt(self) -> int:
        """The number of the attempt that runs, or is the next to run."""
        return int(self.record.more.get("attempt", 0))

    @property
    def request(self) -> Request:
        return request_of(self.record)


def request_of(record: JobRecord) -> Request:
    """What a job asks of the queue."""
    name, priority = f"{record.user}~{record.name}", record.priority or "test"
    amounts = (record.cpus, record.memory_mb, record.gpus)
    return Request(record.id, name, *amounts, priority, record.vc, record.submitted, user=record.user)


class Dispatcher:
    """Decides what starts, has it driven, and writes down how it ended."""

    def __init__(
        self,
        settings: Settings,
        store: ServerStore,
        writer: Writer,
        *,
        engine: str,
        machine: Capacity,
        prepare_again: Callable[[JobRecord], Prepared],
        context: Callable[[JobRecord, Prepared], LaunchContext],
    ) -> None:
        self.settings, self.store, self.writer, self.engine = settings, store, writer, engine
        self.home = settings.home
        self.prepare_again, self.context = prepare_again, context
        self.entries: dict[str, Entry] = {}
        self.names: dict[tuple[str, str], Entry] = {}
        self.queue = Queue(machine)
        self.row = LatestEvents()
        self.link: Link | None = None
        self.links: list[Link] = []
        self.holding_back = False
        """Set while the server ends: nothing new is started."""
        self.ending = False
        self.followers = Followers()
        self.idle = Signal()
        self.ends: dict[str, int] = {}
        """How many jobs ended, by state."""
        self.counts = {"started": 0, "platformRetries": 0, "preempted": 0, "keepers": 0}
        self.on_change: Callable[[JobRecord, JobRecord | None], Callable[[], None] | None] = lambda _after, _before: None
        """Called with each change of a job; what it returns is done in the same transaction."""
        self._due = False
        self._early: list[Mapping[str, Any]] | None = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._plans = 0

    # Beginning and end

    async def begin(self) -> None:
        """Find the keeper or start one, and take up every job that has not ended."""
        answers = await self._keepers()
        held: dict[str, tuple[Link, Mapping[str, Any]]] = {}
        for each, hello in answers:
            held.update({job: (each, standing) for job, standing in hello["jobs"].items()})
        self.link, self.links = answers[0][0], [each for each, _ in answers]
        for entry in [
            self._enter(record) for record in self.store.jobs.unfinished()
        ]:  # all are known before one looks at another
            self._for(entry, self._take_up, entry, held.get(entry.record.id))
        early, self._early = self._early or [], None
        for news in early:
            self._hear(self.link, news)
        self.decide_soon()

    async def _keepers(self) -> list[tuple[Link, dict[str, Any]]]:
        options = server_log.LogOptions.of(self.settings)
        return await keeper_client.find_or_start(self.home, self.engine, options, self._hear, self._lost)

    def _take_up(self, entry: Entry, holder: tuple[Link, Mapping[str, Any]] | None) -> None:
        """A job that was there before us."""
        if holder is not None:
            self._adopt(entry, *holder)
        elif os.path.exists(entry.record.folder):
            self._settle_soon(entry)
        elif entry.record.execution_type == "STOP":
            self._finish(entry, _stopped("stopped before it started"))
        else:
            self._enqueue(entry)

    async def end(self) -> None:
        """Let go of the keeper; what runs goes on."""
        self.ending = self.holding_back = True
        for task in list(self._tasks):
            task.cancel()
        for each in self.links:
            each.close()
        for each in self.links:
            try:
                await asyncio.wait_for(each.gone, GOODBYE_SECONDS)
            except TimeoutError:
                continue  # a keeper that hangs; the next server will see

    def add(self, record: JobRecord, prepared: Prepared) -> None:
        """A new job that is durable."""
        entry = self._enter(record)
        self._for(entry, self._add, entry, prepared)

    def _add(self, entry: Entry, prepared: Prepared) -> None:
        if self._plans < KEPT_PLANS:
            entry.prepared = prepared
            self._plans += 1
        self.row.add("job", job_history.change(entry.record, None))
        self._enqueue(entry)
        self.decide_soon()

    # The queue

    def decide_soon(self) -> None:
        """Once for all that happens in this turn of the loop."""
        if not self._due and not self.holding_back:
            self._due = True
            asyncio.get_running_loop().call_soon(self._decide_now)

    def _decide_now(self) -> None:
        self._due = False
        try:
            self._decide()
        except Exception as error:  # of no job in particular: the next turn may go better
            defects.note(error, "the queue")
            asyncio.get_running_loop().call_later(1, self.decide_soon)

    def _decide(self) -> None:
        if self.holding_back or self.link is None or not self.link.open:
            return
        decision = self.queue.decide(time.time())
        for job in decision.preempt:
            self._for(self.entries[job], self._preempt, self.entries[job])
        for job in decision.start:
            self._for(self.entries[job], self._start, self.entries[job])

    def _enter(self, record: JobRecord) -> Entry:
        entry = self.entries[record.id] = Entry(record)
        self.names[record.user, record.name] = entry
        return entry

    def _enqueue(self, entry: Entry) -> None:
        entry.phase, entry.link = QUEUED, None
        self.queue.remove(entry.record.id)
        if following.left_of(entry.record):
            self._spawn_for(entry, self._await_predecessors(entry))
        else:
            self.queue.add(entry.request)

    def wait_reason(self, entry: Entry) -> Reason:
        """What a job that has not begun waits for: the ends of others (kind `after`), then what the queue says."""
        left = following.left_of(entry.record)
        if left:
            return Reason("after", waiting_words(left), {}, tuple(each.name for each in left))
        return self.queue.why(entry.record.id)

    # Jobs that follow jobs

    async def _await_predecessors(self, entry: Entry) -> None:
        """Wait to be told of the ends of those that have not ended, and count those that have."""
        for each in following.left_of(entry.record):
            running = self.entries.get(each.id)
            if running is not None:
                self.followers.add(each.id, entry.record.id)
                continue  # told when its end is kept
            end = following.end_of(await asyncio.to_thread(self.store.jobs.get, each.id))
            if end is not None:
                self._predecessor_ended(entry, each.id, *end)

    def _tell_followers(self, ended: JobRecord) -> None:
        """The end of a job is kept: those that follow it start, or never will."""
        for job in self.followers.pop(ended.id):
            follower = self.entries.get(job)
            if follower is not None:
                self._for(follower, self._predecessor_ended, follower, ended.id, ended.state, ended.reason or "")

    def _predecessor_ended(self, entry: Entry, id: str, state: str, reason: str) -> None:
        if entry.phase != QUEUED or entry.record.state in FINAL_JOB_STATES:
            return  # it was stopped meanwhile
        self._change(entry, more=following.with_end(entry.record, id, state, reason))
        failed = next((each for each in following.predecessors_of(entry.record) if each.failed), None)
        if failed is not None:
            self._finish(entry, _stopped(failure_words(failed)))
        elif not following.left_of(entry.record):
            self.queue.remove(entry.record.id)
            self.queue.add(entry.request)
            self.decide_soon()

    def _preempt(self, entry: Entry) -> None:
        self.counts["preempted"] += 1
        if entry.link is not None:
            entry.link.order(do="preempt", id=entry.record.id)

    def _start(self, entry: Entry) -> None:
        entry.phase = DRIVEN
        prepared, entry.prepared = entry.prepared, None
        if prepared is None:
            self._spawn_for(entry, self._read_again(entry))
        else:
            self._plans -= 1
            self._order_start(entry, prepared)

    async def _read_again(self, entry: Entry) -> None:
        try:
            prepared = await asyncio.to_thread(self.prepare_again, entry.record)
        except (TeamError, StoreError) as error:
            self._finish(entry, _ended(entry.record, FAILED, f"it could not be read again: {error}"))
            return
        if entry.record.execution_type == "STOP":
            self._finish(entry, _stopped("stopped before it started"))
        elif self.link is None or not self.link.open:
            self._enqueue(entry)
        else:
            self._order_start(entry, prepared)

    def _order_start(self, entry: Entry, prepared: Prepared) -> None:
        record = entry.record
        try:
            context = self.context(record, prepared)
        except TeamError as error:
            self._finish(entry, _ended(record, FAILED, f"it could not be started: {error}"))
            return
        assert self.link is not None
        entry.link = self.link
        self.link.order(
            *prepared.documents,
            do="start",
            id=record.id,
            folder=record.folder,
            job=RunRecord(
                id=record.id,
                name=record.name,
                user=record.user,
                engine=record.engine,
                submitted=record.submitted,
                detached=True,
                server=True,
                boot=processes.boot_id(),
                virtual_cluster=record.vc,
                labels=dict(record.labels),
            ).to_json(),
            source=prepared.source,
            context=context_codec.document(context),
            attempt=entry.attempt,
            retries=_retries(record),
            began=record.started,
            request=record.more.get(SUBMITTED_BY, ""),
        )
        if entry.watchers:
            self.link.order(do="watch", id=record.id, on=True)
        self.counts["started"] += 1
        log_job("job sent to the keeper", record, attempt=entry.attempt)

    # Stopping and watching

    async def stop(self, entry: Entry, *, grace: float | None, now: bool) -> JobRecord:
        """Durable first, then done."""
        if entry.record.execution_type != "STOP":
            self._change(entry, execution_type="STOP")
            await self.writer.do(lambda: None)  # the change above is kept with it
        if entry.phase == QUEUED:
            self._finish(entry, _stopped("stopped before it started"))
        elif entry.phase == DRIVEN and entry.link is not None:
            entry.link.order(do="stop", id=entry.record.id, grace=grace, now=now, request=server_log.current_request.get())
        return entry.record

    def watch(self, entry: Entry) -> None:
        entry.watchers += 1
        if entry.watchers == 1 and entry.link is not None:
            entry.link.order(do="watch", id=entry.record.id, on=True)

    def unwatch(self, entry: Entry) -> None:
        entry.watchers -= 1
        if not entry.watchers and entry.link is not None:
            entry.link.order(do="watch", id=entry.record.id, on=False)

    # What the keeper tells

    def _hear(self, _: Link, news: Mapping[str, Any]) -> None:
        if self._early is not None:
            self._early.append(news)  # the jobs are not all known yet
            return
        entry = self.entries.get(news["id"])
        if entry is not None:
            self._for(entry, self._heard, entry, news)

    def _heard(self, entry: Entry, news: Mapping[str, Any]) -> None:
        kind = news["event"]
        if kind == "grown":
            entry.grown(news["role"], news["index"])
        elif kind == "noted":
            entry.ring_soon()
        elif kind == "started":
            entry.note = ""
            more = {**entry.record.more, "attempt": news["attempt"]}
            started = entry.record.started or news["at"]
            state = STOPPING if entry.record.execution_type == "STOP" else RUNNING
            self._change(entry, state=state, started=started, attempts=news["attempt"] + 1, more=more)
        elif kind == "retry":
            self._change(entry, **_retry_columns(entry.record, news["retries"], news["attempt"]))
        elif kind == "stopping":
            self._change(entry, state=STOPPING)
            self.queue.stopping(entry.record.id)
        elif kind == "waiting":
            entry.note = news["reason"]
        elif kind == "ended":
            self._finish(entry, _told(VerdictRecord, news))
        elif kind == "again":
            self._again(entry, _told(HandedOn, news))
        else:
            if news.get("defect"):
                entry.defect = entry.defect or news["reason"]
            self._settle_soon(entry, news.get("reason", ""))

    def _lost(self, lost: Link) -> None:
        """A keeper has gone: its shims stop their tasks, and each of its jobs is settled as its folder tells."""
        self.links = [each for each in self.links if each is not lost]
        if self.ending:
            return
        for entry in list(self.entries.values()):
            if entry.link is lost:
                self._for(entry, self._settle_soon, entry)
        if lost is self.link:
            self.link = None
            self._spawn(self._new_keeper())

    async def _new_keeper(self) -> None:
        answers: list[tuple[Link, dict[str, object]]] = []
        while not self.ending:
            try:
                answers = await self._keepers()
                self._met(answers)
                return
            except TeamError:
                pass
            except Exception as error:  # without a keeper nothing would start any more
                defects.note(error, "the search for a keeper")
                for each, _ in answers:
                    each.close()
            await asyncio.sleep(1)

    def _met(self, answers: list[tuple[Link, dict[str, Any]]]) -> None:
        """A keeper is there again, a new one or the one before."""
        found = {each.pid: each for each, _ in answers}
        twice = [each for each in self.links if each.pid in found]
        self.links = [*(each for each in self.links if each not in twice), *found.values()]
        for each in twice:
            each.close()
        for each, hello in answers:
            self._take_back(each, hello["jobs"])
        for entry in list(self.entries.values()):
            if entry.phase == DRIVEN and entry.link is not None and not entry.link.open:
                self._for(entry, self._settle_soon, entry)  # what was ordered over that line has not arrived
        self.counts["keepers"] += 1
        self.link = answers[0][0]
        self.decide_soon()

    def _take_back(self, holder: Link, jobs: Mapping[str, Any]) -> None:
        """Only the line to the keeper was lost: it drives these jobs as before."""
        for job, standing in jobs.items():
            entry = self.entries.get(job)
            if entry is None or entry.record.state in FINAL_JOB_STATES:
                holder.order(do="abort", id=job, reason="the server has ended it")
            elif entry.phase == SETTLING or (entry.link is not None and not entry.link.open):
                self._for(entry, self._adopt, entry, holder, standing)

    # Taking up again

    def _adopt(self, entry: Entry, holder: Link, state: Mapping[str, Any]) -> None:
        """A job that has gone on without us."""
        entry.phase, entry.link = DRIVEN, holder
        record = entry.record
        attempt = state.get("attempt", entry.attempt)
        columns = _retry_columns(record, state.get("retries", _retries(record)), attempt)
        if state.get("started"):
            columns |= {"state": state["state"], "started": state["started"], "attempts": attempt + 1}
        self._change(entry, **columns)
        if record.id not in self.queue.running():
            self.queue.hold(Holding(entry.request, record.started or 0, entry.record.state == STOPPING))
        if record.execution_type == "STOP":
            holder.order(do="stop", id=record.id, grace=None, now=False)
        if entry.watchers:
            holder.order(do="watch", id=record.id, on=True)
        if entry.defect:
            holder.order(do="abort", id=record.id, reason=entry.defect)

    def _settle_soon(self, entry: Entry, reason: str = "") -> None:
        if entry.phase == SETTLING:
            return
        entry.phase, entry.link = SETTLING, None
        if entry.record.id not in self.queue.running():
            self.queue.hold(Holding(entry.request, entry.record.started or 0))
        self._spawn_for(entry, self._settle(entry, reason))

    async def _settle(self, entry: Entry, reason: str) -> None:
        text: str | None = await asyncio.to_thread(self.store.jobs.plan, entry.record.id)
        plan = json.loads(text or "{}")
        pause = LOOK_SECONDS
        while True:
            stop = entry.record.execution_type == "STOP"
            folder = JobFolder(entry.record.folder, durable=False, reserve=self.home)
            queued = settle.Queued(plan, _retries(entry.record), entry.record.started, stop, reason, entry.defect)
            found = await asyncio.to_thread(settle.settle, folder, queued)
            if entry.phase != SETTLING:
                return  # a keeper has it
            if found.kind != BUSY:
                break
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        if found.kind == settle.ENDED:
            self._finish(entry, found.verdict)
        elif entry.defect:  # it had no folder yet
            self._finish(entry, _ended(entry.record, FAILED, entry.defect))
        elif found.kind == settle.AGAIN:
            self._again(entry, found.again)
        else:
            columns = _retry_columns(entry.record, found.again.retries or _retries(entry.record), found.again.attempt or 0)
            self._change(entry, state=WAITING, **columns)
            self._enqueue(entry)
            self.decide_soon()

    def _again(self, entry: Entry, record: HandedOn) -> None:
        """To be started once more, in its old place in the line."""
        if record.counted_as == "platform":
            self.counts["platformRetries"] += 1
        more = dict(entry.record.more)
        if record.counted_as == "preempted":
            more["preempted"] = more.get("preempted", 0) + 1
        self._change(entry, more=more)
        columns = _retry_columns(entry.record, record.retries, record.attempt or 0)
        if record.started:
            columns["started"] = record.started
        self._change(entry, state=WAITING, reason=record.reason or "", **columns)
        self._enqueue(entry)
        if entry.record.execution_type == "STOP":
            self._finish(entry, _stopped("stopped while waiting to be tried again"))
        self.decide_soon()

    # Writing down

    def _change(self, entry: Entry, **columns: Any) -> None:
        """Some columns of a job: in memory at once, in the store soon, told once it is kept."""
        before = entry.record
        columns = {name: value for name, value in columns.items() if getattr(before, name) != value}
        if not columns:
            return
        after = entry.record = before.replace(**columns)
        also = self._also(after, before)

        def work() -> None:
            self.store.jobs.update(before.id, **columns)
            if also is not None:
                also()

        kept = self.writer.do(work)
        if after.state != before.state:
            kept.add_done_callback(lambda done: self._for(entry, self._told, entry, after, before.state, done))
        else:
            kept.add_done_callback(_ignore)
            entry.ring()

    def _told(self, entry: Entry, record: JobRecord, before: str, done: asyncio.Future[Any]) -> None:
        if _ignore(done):
            self.row.add("job", job_history.change(record, before))
        entry.ring()

    def _finish(self, entry: Entry, verdict: VerdictRecord) -> None:
        before = entry.record
        if before.state in FINAL_JOB_STATES:
            return
        self.queue.remove(before.id)
        if entry.prepared is not None:
            entry.prepared = None
            self._plans -= 1
        attempts = before.attempts if verdict.attempts is None else verdict.attempts
        columns: dict[str, Any] = {
            **_retry_columns(before, verdict.retries or _retries(before), max(0, attempts - 1)),
            "state": verdict.state,
            "started": verdict.started or before.started,
            "ended": verdict.ended,
            "exit_code": verdict.exit_code,
            "reason": verdict.reason,
            "attempts": attempts,
        }
        after = entry.record = before.replace(**columns)
        entry.phase = SETTLING
        self.ends[after.state] = self.ends.get(after.state, 0) + 1
        log_job("job ended", after, state=after.state, exit_code=after.exit_code)
        self._spawn_finish(entry, after, before.state, columns, self._also(after, before))
        self.decide_soon()

    def _spawn_finish(
        self, entry: Entry, after: JobRecord, before: str, columns: Mapping[str, Any], also: Callable[[], None] | None
    ) -> None:
        def work() -> None:
            self.store.jobs.update(after.id, **columns)
            if also is not None:
                also()

        def kept(done: asyncio.Future[Any]) -> None:
            if not _ignore(done):
                if not self.ending:  # the disk is full, perhaps: the folder has the verdict, and we try again
                    asyncio.get_running_loop().call_later(1, self._spawn_finish, entry, after, before, columns, also)
                return
            if self.entries.get(after.id) is entry:
                del self.entries[after.id]
                del self.names[after.user, after.name]
            self._tell_followers(after)
            self.row.add("job", job_history.change(after, before))
            entry.ring()
            self.idle.ring()

        try:
            self.writer.do(work).add_done_callback(lambda done: self._for(entry, kept, done))
        except StoreError:
            return  # we are ending; the next server finds the verdict in the folder

    def _also(self, after: JobRecord, before: JobRecord) -> Callable[[], None] | None:
        """What is kept together with a change; a job does not fail because a notice cannot be sent."""
        try:
            return self.on_change(after, before)
        except Exception as error:  # as said
            defects.note(error, f"a notice about {after.user}~{after.name}")
            return None

    # Mistakes of ours

    def _for(self, entry: Entry, work: Callable[..., object], *arguments: Any) -> None:
        """Do something for one job; whatever goes wrong ends that job and no other."""
        try:
            work(*arguments)
        except Exception as error:  # one job must not take all others with it
            self._defect(entry, error)

    def _defect(self, entry: Entry, error: Exception) -> None:
        """The keeper stops the tasks of a job that it drives; where that fails, too, the job ends here.

        This is the last line of defence, so it expects that each of its own steps fails, too.
        """
        again = bool(entry.defect)
        words = defects.note(error, f"{entry.record.user}~{entry.record.name}")
        entry.defect = entry.defect or words
        try:
            if entry.phase == DRIVEN and entry.link is not None:
                entry.link.order(do="abort", id=entry.record.id, reason=entry.defect)
                if entry.link.open and not again:
                    return  # what becomes of it is heard from the keeper
            if entry.record.state not in FINAL_JOB_STATES:
                self._finish(entry, _verdict(entry))
                return
        except Exception as another:  # as above
            defects.note(another, entry.record.id)
        if entry.record.state not in FINAL_JOB_STATES:
            verdict = _verdict(entry)
            entry.record = entry.record.replace(state=verdict.state, ended=verdict.ended, reason=verdict.reason)
        after = entry.record
        columns = {name: getattr(after, name) for name in ("state", "started", "ended", "exit_code", "reason", "attempts")}
        entry.phase = SETTLING
        self.queue.remove(after.id)
        self.entries.pop(after.id, None)
        self.names.pop((after.user, after.name), None)
        try:
            self.writer.do(lambda: self.store.jobs.update(after.id, **columns)).add_done_callback(_ignore)
        except StoreError:
            return  # we are ending
        self._tell_followers(after)
        entry.ring()
        self.idle.ring()
        self.decide_soon()

    def _spawn_for(self, entry: Entry, work: Coroutine[Any, Any, None]) -> None:
        """The same for what takes longer."""

        async def guarded() -> None:
            try:
                await work
            except Exception as error:  # as above
                self._defect(entry, error)

        self._spawn(guarded())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def log_job(message: str, record: JobRecord, **fields: str | int | float | None) -> None:
    """Log something about a job, under the request that submitted it unless `fields` name another."""
    if not server_log.SERVER.isEnabledFor(logging.INFO):
        return
    fields = {"request": record.more.get(SUBMITTED_BY, ""), **fields}
    server_log.note(server_log.SERVER, logging.INFO, message, job=record.id, user=record.user, name=record.name, **fields)


def _retries(record: JobRecord) -> dict[str, int]:
    """As the driver counts them: room made for others is not among them."""
    return {"user": record.user_retries, "platform": record.platform_retries - record.more.get("preempted", 0)}


def _retry_columns(record: JobRecord, retries: Mapping[str, int], attempt: int) -> dict[str, object]:
    user, platform = retries.get("user", 0), retries.get("platform", 0) + record.more.get("preempted", 0)
    more = {**record.more, "attempt": attempt}
    return {"user_retries": user, "platform_retries": platform, "retries": user + platform, "more": more}


def _told(kind: type[Told], news: Mapping[str, Any]) -> Told:
    """A record that a keeper has sent."""
    record = kind.from_json(news["record"])
    assert record is not None
    return record


def _ended(record: JobRecord, state: str, reason: str) -> VerdictRecord:
    return VerdictRecord(state, reason, time.time(), attempts=record.attempts)


def _verdict(entry: Entry) -> VerdictRecord:
    """The end of a job that a defect has met: how it had ended by then, else with that."""
    verdict = JobFolder(entry.record.folder).verdict()
    return _ended(entry.record, FAILED, entry.defect) if verdict is None else verdict


def _stopped(reason: str) -> VerdictRecord:
    return VerdictRecord(STOPPED, reason, time.time())


def _ignore(done: asyncio.Future[Any]) -> bool:
    """Whether it was kept; an error is said once, and the folder remains the truth."""
    if done.cancelled():
        return False
    error = done.exception()
    if error is not None:
        server_log.note(server_log.SERVER, logging.ERROR, "the store does not keep a change", error=str(error))
    return error is None
