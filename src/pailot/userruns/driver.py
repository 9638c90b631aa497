"""The driver: starts the attempts of a run, watches its tasks, stops them, writes the verdict. What to do when is decided by
`lifecycle.run_machine`.

One process drives a run, the holder of the lock in its folder. `Driver.steps` is a generator that returns until when it has
nothing to do. Its caller does the waiting: `single_run_loop` for the one run of a launcher, the keeper for many.
"""

from __future__ import annotations

import os
import time

from ..engines.contract import Attempt
from ..engines.observation import LOST
from ..errors import PailotError
from ..lifecycle import retry
from ..lifecycle.attempt_machine import (
    AllGone,
    AttemptTerms,
    EngineDecided,
    StopAsked,
    StopStands,
    StopTasks,
    TaskEnded,
    TaskLost,
    TimePassed,
)
from ..lifecycle.claims import Claims
from ..lifecycle.completion import RoleRule
from ..lifecycle.run_machine import (
    AttemptPrepared,
    AttemptStarted,
    DiskFull,
    Finish,
    Follow,
    HandBack,
    KillTasks,
    LaunchTasks,
    Pause,
    PauseOver,
    PreemptAsked,
    PrepareAttempt,
    Publish,
    PublishEnded,
    RunMachine,
    RunTerms,
    ShowRetry,
    ShowStopping,
    StartFailed,
)
from ..lifecycle.states import COMPLETED, RUNNING, STOPPING, WAITING
from ..progress import Pace
from ..runfolder import journal, layout
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.careful_files import make_folders
from ..runfolder.records import HandedOn, RunState, StopRecord, VerdictRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..engines.contract import Engine, LaunchContext, Steps
    from ..engines.observation import Observed
    from ..lifecycle.completion import Verdict
    from ..planning import Plan
    from ..progress import Progress
    from ..runfolder.journal import Event
    from ..values import Value
    from .run_folder import JobFolder

LATE_TASK_SECONDS = 1.0
"""A task that begins later than this after the first one has an entry of its own for that in the journal."""
POLL_SECONDS = 1.0
"""How often an engine is looked at that has nothing to wait for."""


class Watcher:
    """Sees a run while it goes on; this one looks away. `descriptors` join the driver's wait."""

    def started(self, attempt: int, notes: list[str]) -> None: ...

    def happened(self, event: Event) -> None: ...

    def moved(self, progress: Progress) -> None:
        """Between two events of the journal that tell the same."""

    def grown(self, attempt: int, role: str, index: int, task_attempt: int) -> None: ...

    def descriptors(self) -> Mapping[int, Callable[[], None]]:
        return {}

    def timeout(self) -> float | None:
        return None

    def tick(self) -> None: ...

    def finished(self, verdict: VerdictRecord) -> None: ...


class Driver:
    """Drives one run to its end: does what a `RunMachine` decides, and tells it what happens.

    `first` is the number of the first attempt, more than 0 for a run that was begun before; `resumes` says that it was begun by
    a driver that is gone, and that the engine goes on with it.
    """

    def __init__(
        self,
        folder: JobFolder,
        plan: Plan,
        engine: Engine,
        context: LaunchContext,
        watcher: Watcher | None = None,
        *,
        first: int = 0,
        retries: Mapping[str, int] | None = None,
        began: float | None = None,
        resumes: bool = False,
    ) -> None:
        self.folder, self.plan, self.engine, self.context = folder, plan, engine, context
        folder.hidden = context.hidden
        self.watcher = watcher or Watcher()
        self.machine = RunMachine(_terms(plan, engine), first=first, retries=retries)
        self.first, self.began, self.resumes = first, began, resumes
        self.interrupts = 0
        self.preempted = False
        """Set from outside: the run is to make room, and the queue starts it again."""
        self._attempt: Attempt | None = None
        self._request: StopAsked | None = None
        self._record: VerdictRecord | HandedOn | None = None
        self.descriptors: tuple[int, ...] = ()
        """What every shim keeps open beside its own: the lock of the run."""
        self.on_started: Callable[[], None] = lambda: None
        self.before_first: Callable[[Callable[[], bool]], Steps[Verdict | None]] | None = None
        """Waits for what has to come before the first attempt; returns a verdict if the run is never to start."""
        self.pace = Pace()
        engine.progressed = self.progressed

    @property
    def number(self) -> int:
        """The attempt that runs, or is the next to run."""
        return self.machine.number

    @property
    def retries(self) -> dict[str, int]:
        """The retries so far, by what they were counted as."""
        return self.machine.retries

    @property
    def stopping(self) -> str:
        """Why the tasks were told to stop; empty while they were not."""
        return self.machine.stopping

    def steps(self) -> Steps[VerdictRecord | HandedOn]:
        """All attempts, to the verdict, which is written before it is returned.

        A run that made room for another has none: its record has the key `again`, and says as what it is counted.
        """
        verdict = None if self.before_first is None else (yield from self.before_first(self._asked_to_stop))
        if verdict is not None:
            self._finish(Finish(verdict))
        todo: Sequence[Value] = self.machine.begin() if verdict is None else ()
        while self._record is None:
            try:
                todo = yield from self._carry_out(todo)
            except OSError as error:
                todo = self.machine.handle(DiskFull(full_disk(error, self.folder.path))) if is_full(error) else ()
                if not todo:
                    raise
        return self._record

    def _carry_out(self, todo: Sequence[Value]) -> Steps[Sequence[Value]]:
        """Do what the machine says; returns what it says next."""
        following: Sequence[Value] = ()
        for instruction in todo:
            in_steps = self._IN_STEPS.get(type(instruction))
            if in_steps is not None:
                following = yield from in_steps(self, instruction)
            else:
                following = self._AT_ONCE[type(instruction)](self, instruction) or ()
        return following

    def _tell(self, event: Value) -> None:
        """Tell the machine of something that happened to the tasks, and do at once what it says."""
        self._do(self.machine.handle(event))

    def _do(self, todo: Sequence[Value]) -> None:
        for instruction in todo:
            self._AT_ONCE[type(instruction)](self, instruction)

    # Starting

    def _prepare(self, instruction: PrepareAttempt) -> Sequence[Value]:
        path = self.folder.attempt(instruction.number)
        begun = (self.resumes or self.engine.traits.can_be_driven_on) and os.path.isdir(path)
        make_folders(path, exist_ok=begun)
        self.folder.keep_reserve(path)
        self._attempt = Attempt(
            plan=self.plan,
            number=instruction.number,
            folder=path,
            checkpoints=self.folder.file(layout.CHECKPOINTS),
            context=self.context,
            descriptors=self.descriptors,
        )
        self._requests()
        return self.machine.handle(AttemptPrepared(begun))

    def _launch(self, _instruction: LaunchTasks) -> Steps[Sequence[Value]]:
        attempt = self._attempt
        assert attempt is not None
        try:
            notes = list((yield from self.engine.start(attempt, lambda: self._asked_to_stop() or self.preempted)))
        except (PailotError, OSError) as error:
            self._requests()
            return self.machine.handle(StartFailed(self._words(error), getattr(error, "exit_status", None)))
        self.began = self.began or self.engine.first_task_began or time.time()
        if self.folder.durable or attempt.number > self.first:
            self._set_state(RUNNING, attempt.number)
        self._happened(journal.started(attempt.number, self.plan.task_count, notes, resumed=self.resumes))
        self.watcher.started(attempt.number, notes)
        return self.machine.handle(AttemptStarted(time.monotonic()))

    def _words(self, error: PailotError | OSError) -> str:
        if is_full(error):
            return full_disk(error, self.folder.path)
        if isinstance(error, PailotError):
            return str(error)
        return f"{error.strerror} ({error.filename})" if error.filename else str(error)

    # While the tasks run

    def _follow(self, _instruction: Follow) -> Steps[Sequence[Value]]:
        attempt, machine, engine = self._attempt, self.machine.attempt, self.engine
        assert attempt is not None
        assert machine is not None
        claims = Claims(machine.terms.rules)
        while engine.alive():
            yield self._until(machine.moment)
            self._listen(attempt, claims)
            self._ended(attempt, claims, engine.newly_ended(attempt))
            self._do(self._requests())
            if machine.moment is not None:
                self._tell(TimePassed(time.monotonic()))
        self._listen(attempt, claims)  # to what was said between the last look and the end
        outcome = engine.decided(attempt)
        if outcome is not None:
            self._tell(EngineDecided(outcome))
        return self.machine.handle(AllGone(int.from_bytes(os.urandom(2), "big") / 65536))

    def _ended(self, attempt: Attempt, claims: Claims, tasks: Sequence[Observed]) -> None:
        """Write down the ends that one look has found, then decide what follows from each."""
        for task in tasks:
            self._claimed(attempt, claims, task.role, task.index)
        self._happened(*[journal.task_ended(task.role, task.index, attempt.number, task.final) for task in tasks])
        for task in tasks:
            role, index, final = task.role, task.index, task.final
            if task.state == LOST:
                self._tell(TaskLost(role, index, (final.reason if final else None) or "its shim did not start"))
            else:
                assert final is not None
                self._tell(TaskEnded(final.task_end(role, index)))

    def _listen(self, attempt: Attempt, claims: Claims) -> None:
        """Take in what the engine tells. Tasks that begin late are written down together, before whatever else is."""
        late: list[Event] = []
        for event in self.engine.events():
            kind = event["event"]
            if kind == "running":
                if event["attempt"] or (self.began is not None and time.time() - self.began > LATE_TASK_SECONDS):
                    late.append(journal.task_started(event["role"], event["index"], event["attempt"]))
            elif kind == "claimed":
                self._claimed(attempt, claims, event["role"], event["index"])
            elif kind == "grown":
                self.watcher.grown(event.get("jobAttempt", attempt.number), event["role"], event["index"], event["attempt"])
            else:
                self._happened(*late)
                late.clear()
                self._seen(attempt, event)
        self._happened(*late)

    def _claimed(self, attempt: Attempt, claims: Claims, role: str, index: int) -> None:
        if claims.add(role, index):
            if self.folder.durable:
                self.folder.mark_started(attempt.number)
            self.on_started()

    def _stop_tasks(self, instruction: StopTasks) -> None:
        if self.engine.alive():
            assert self._attempt is not None
            stands = self.engine.stop(self._attempt, instruction.grace_seconds, instruction.why, now=instruction.now)
            self._tell(StopStands(stands, time.monotonic()))

    def _show_stopping(self, instruction: ShowStopping) -> None:
        self._set_state(STOPPING, self.number)
        self._happened(journal.stopping(instruction.why, now=instruction.now))

    def _kill_tasks(self, _instruction: KillTasks) -> Steps[Sequence[Value]]:
        attempt = self._attempt
        if attempt is not None and self.engine.alive():
            self.engine.stop(attempt, 0, COMPLETED, now=True)
            while self.engine.alive():
                yield self._until(None)
                self.engine.events()
                self.engine.newly_ended(attempt)
        return ()

    # Between two attempts, and at the end

    def _show_retry(self, instruction: ShowRetry) -> None:
        number, ended = instruction.number, instruction.ended
        self._set_state(WAITING, number, reason=f"tried again: {instruction.why}")
        self._happened(journal.job_retry(number, ended.reason, instruction.why, instruction.seconds, ended))

    def _pause(self, instruction: Pause) -> Steps[Sequence[Value]]:
        self.engine.release()
        moment = time.monotonic() + instruction.seconds
        while True:
            todo = self._requests() or (self.machine.handle(PauseOver()) if time.monotonic() >= moment else ())
            if todo:
                return todo
            yield moment

    def _publish(self, instruction: Publish) -> Steps[Sequence[Value]]:
        from .publish_outputs import publish

        channels = self.plan.options.channels
        assert channels is not None
        attempt = self.folder.attempt(instruction.number)
        done = yield from publish(channels, attempt, self.engine, self.context, self.progressed, self._asked_to_stop)
        for words in done.notes:
            self._happened(journal.waiting(words))
        return self.machine.handle(PublishEnded(done.error, done.stopped))

    def _hand_back(self, instruction: HandBack) -> None:
        record = HandedOn(
            counted_as=instruction.counted_as,
            attempt=instruction.number,
            retries=dict(self.retries),
            started=self.began,
            reason=instruction.reason,
        )
        self.folder.hand_on(record)
        self._record = record

    def _finish(self, instruction: Finish) -> None:
        verdict, status = instruction.verdict, instruction.exit_status or None
        record = self.folder.conclude(verdict, retries=self.retries, started=self.began, exit_status=status)
        self.watcher.finished(record)
        self._record = record

    _AT_ONCE: Mapping[type[Value], Callable[[Driver, Any], Sequence[Value] | None]] = {
        PrepareAttempt: _prepare,
        StopTasks: _stop_tasks,
        ShowStopping: _show_stopping,
        ShowRetry: _show_retry,
        HandBack: _hand_back,
        Finish: _finish,
    }
    _IN_STEPS: Mapping[type[Value], Callable[[Driver, Any], Steps[Sequence[Value]]]] = {
        LaunchTasks: _launch,
        Follow: _follow,
        KillTasks: _kill_tasks,
        Pause: _pause,
        Publish: _publish,
    }

    # Waiting

    def interrupted(self, times: int = 1) -> None:
        """Somebody at the keyboard, or the end of the session, wants the run to stop; the second time at once."""
        self.interrupts += times
        self.watcher.happened(journal.interrupted(self.interrupts))

    def _asked_to_stop(self) -> bool:
        return bool(self.interrupts) or os.path.exists(self.folder.file(layout.STOP))

    def _requests(self) -> Sequence[Value]:
        """What others want of the run, told to the machine; returns what it says."""
        todo: Sequence[Value] = ()
        if self._asked_to_stop():
            todo = self.machine.handle(self._stop_request())
        if self.preempted:
            todo = (*todo, *self.machine.handle(PreemptAsked()))
        return todo

    def _stop_request(self) -> StopAsked:
        now = self.interrupts > 1 or os.path.exists(self.folder.file(layout.KILL))
        if self._request is None or self._request.now != now:
            stop = StopRecord.read(self.folder.file(layout.STOP)) or StopRecord()
            self._request = StopAsked(grace_seconds=None if stop.grace is None else float(stop.grace), now=now)
        return self._request

    def _until(self, deadline: float | None) -> float | None:
        if self.engine.changes() is not None:
            return deadline
        soon = time.monotonic() + POLL_SECONDS
        return soon if deadline is None else min(soon, deadline)

    # Telling

    def _set_state(self, state: str, attempt: int, **more: Any) -> None:
        self.folder.set_state(RunState(state=state, attempt=attempt, started=self.began, retries=dict(self.retries), **more))

    def _seen(self, attempt: Attempt, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "retry":
            self._happened(journal.task_retry(event))
        elif kind == "held":
            self._happened(journal.task_held(event))
        elif kind == "state" and not self.stopping:
            self._set_state(event["state"], attempt.number, reason=event["reason"])
            self._happened(journal.state(event["state"], event["reason"]))
            if event["reason"]:
                self._happened(journal.waiting(event["reason"]))
        elif kind == "job-retry":
            self._happened(journal.job_retry(event["attempt"], event["reason"], "the server tries it again"))

    def progressed(self, progress: Progress) -> None:
        """Bytes of an input or an output were moved; now and then that is worth a line in the journal."""
        if self.pace.is_due(progress) or progress.ended:
            self._happened(journal.progress(progress.to_dict()))
        else:
            self.watcher.moved(progress)

    def _happened(self, *events: Event) -> None:
        if events:
            for shown in self.folder.note_all(events):
                self.watcher.happened(shown)


def full_disk(error: BaseException, folder: str) -> str:
    """Which disk is full: the one of the run's folder, unless the error names a place on another."""
    place = getattr(error, "filename", None)
    try:
        if isinstance(place, str) and os.stat(os.path.dirname(place)).st_dev != os.stat(folder).st_dev:
            return f"the disk that holds {place} is full"
    except OSError:
        pass  # it is not there any more
    return DISK_FULL


def _terms(plan: Plan, engine: Engine) -> RunTerms:
    options = plan.options
    decided_elsewhere = engine.traits.decides_outcome
    rules = tuple(
        RoleRule(role.name, role.instances, role.completion.min_failed, role.completion.min_succeeded)
        for role in plan.roles.values()
    )
    return RunTerms(
        AttemptTerms(
            rules,
            options.grace_seconds,
            options.max_run_seconds,
            decided_elsewhere,
            retry.PLATFORM if decided_elsewhere else retry.USER,
        ),
        plan.job_retry_count,
        options.retry_delay_seconds,
        publishes=options.channels is not None,
    )
