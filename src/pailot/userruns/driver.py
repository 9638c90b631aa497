"""The driver: starts the attempts of a run, applies the completion policy, retries, writes the verdict.

One process drives a run, the holder of the lock in its folder. `Driver.steps` is a generator that answers until when it
has nothing to do; whoever calls it does the waiting: `alone` for the one run of a launcher, the keeper for many.
"""

from __future__ import annotations

import os
import time

from ..engines.contract import Attempt
from ..engines.observation import LOST, Outcome
from ..errors import PailotError
from ..lifecycle import retry
from ..lifecycle.completion import RoleRule, Tally, TaskEnd, Verdict
from ..lifecycle.states import FAILED, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING
from ..progress import Pace
from ..runfolder import journal, layout
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.careful_files import make_folders
from ..runfolder.journal import Event
from ..runfolder.records import RunState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..engines.contract import Engine, LaunchContext, Steps
    from ..planning import Plan
    from ..progress import Progress
    from .run_folder import JobFolder

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

    def finished(self, verdict: Mapping[str, Any]) -> None: ...


class Driver:
    """Drives one run to its end."""

    def __init__(
        self, folder: JobFolder, plan: Plan, engine: Engine, context: LaunchContext, watcher: Watcher | None = None
    ) -> None:
        self.folder, self.plan, self.engine, self.context = folder, plan, engine, context
        folder.hidden = context.hidden
        self.watcher = watcher or Watcher()
        self.rules = [
            RoleRule(role.name, role.instances, role.completion.min_failed, role.completion.min_succeeded)
            for role in plan.roles.values()
        ]
        self.interrupts = 0
        self.preempted = False
        """Set from outside: the run is to make room, and to be started anew by whoever queues it."""
        self.stop_sent = ""
        self.killed = False
        self.exit_status: int | None = None
        """What `pailot run` answers where the engine was not there, or refused us, when it was to start."""
        self.resumes = False
        """Whether the first attempt was begun by a driver that is gone; the engine goes on with it."""
        self.number = 0
        """The attempt that runs, or is the next to run."""
        self.first = 0
        """The number of the first attempt; more than 0 for a run that was begun before."""
        self._current: Attempt | None = None
        self.retries = {"user": 0, "platform": 0}
        self.began: float | None = None
        self.descriptors: tuple[int, ...] = ()
        """What every shim keeps open beside its own: the lock of the run."""
        self.on_started: Callable[[], None] = lambda: None
        self.pace = Pace()
        engine.progressed = self.progressed

    def steps(self) -> Steps[dict[str, Any]]:
        """All attempts, to the verdict, which is written before it is returned.

        A run that made room for another has none: its record has the key `again`, and says as what it is counted.
        """
        try:
            return (yield from self._attempts())
        except OSError as error:
            if not is_full(error):
                raise
            words = full_disk(error, self.folder.path)
        yield from self._end_tasks(None)
        return self._finish(Verdict(FAILED, words))

    def _end_tasks(self, attempt: Attempt | None) -> Steps[None]:
        """Kill what runs, and wait until it is gone."""
        attempt = attempt or self._current
        if attempt is None or not self.engine.alive():
            return
        self.engine.stop(attempt, 0, "completed", now=True)
        while self.engine.alive():
            yield self._until(None)
            self.engine.events()
            self.engine.newly_ended(attempt)

    def _attempts(self) -> Steps[dict[str, Any]]:
        number = self.first
        while True:
            cause, verdict = yield from self._attempt(number)
            again = retry.next_attempt(cause, self.retries["user"], self.retries["platform"], self.plan.job_retry_count)
            if verdict.state == SUCCEEDED:
                return self._finish((yield from self._publish(number, verdict)))
            if again is None:
                return self._finish(verdict)
            if again.counted_as in self.retries:
                self.retries[again.counted_as] += 1
            number += 1
            self._set_state(WAITING, number, reason=f"tried again: {again.reason}")
            decided = {"role": verdict.role, "index": verdict.index, "exitCode": verdict.exit_code}
            if again.counted_as == retry.PREEMPTED and self.preempted:
                if self._asked_to_stop():
                    return self._finish(Verdict(STOPPED, "stopped by the user"))
                self._happened("job-retry", attempt=number, seconds=0, reason=verdict.reason, why=again.reason, **decided)
                return self._give_back(number, again.counted_as, verdict.reason)
            seconds = retry.delay(number, self.plan.options.retry_delay_seconds, int.from_bytes(os.urandom(2), "big") / 65536)
            self._happened("job-retry", attempt=number, seconds=seconds, reason=verdict.reason, why=again.reason, **decided)
            self.engine.release()
            moment = time.monotonic() + seconds
            while time.monotonic() < moment and not self._asked_to_stop() and not self.preempted:
                yield moment
            if self._asked_to_stop():
                return self._finish(Verdict(STOPPED, "stopped while waiting to be tried again"))
            if self.preempted:
                return self._give_back(number, retry.PREEMPTED, verdict.reason)

    def _publish(self, number: int, verdict: Verdict) -> Steps[Verdict]:
        """A job has succeeded when its outputs are where it wants them."""
        channels = self.plan.options.channels
        if channels is None:
            return verdict
        from .publish_outputs import publish

        attempt = self.folder.attempt(number)
        done = yield from publish(channels, attempt, self.engine, self.context, self.progressed, self._asked_to_stop)
        for words in done.notes:
            self._happened("waiting", reason=words)
        if done.stopped:
            return Verdict(STOPPED, "stopped while its outputs were brought away")
        return Verdict(FAILED, done.error) if done.error else verdict

    def _give_back(self, number: int, counted_as: str, reason: str) -> dict[str, Any]:
        """The end of our part: the next attempt is another's."""
        record = {"again": counted_as, "attempt": number, "retries": dict(self.retries), "started": self.began, "reason": reason}
        self.folder.hand_on(record)
        return record

    def _attempt(self, number: int) -> Steps[tuple[str, Verdict]]:
        """One attempt; answers who is to blame for its end (user, platform, stopped) and the verdict."""
        options = self.plan.options
        self.number = number
        path = self.folder.attempt(number)
        # By another driver, who is gone.
        begun = (self.resumes or self.engine.traits.can_be_driven_on) and os.path.isdir(path)
        make_folders(path, exist_ok=begun)
        self.folder.keep_reserve(path)
        attempt = self._current = Attempt(
            plan=self.plan,
            number=number,
            folder=path,
            checkpoints=self.folder.file(layout.CHECKPOINTS),
            context=self.context,
            descriptors=self.descriptors,
        )
        self.stop_sent, self.killed = "", False
        if self._asked_to_stop() and not begun:
            return "stopped", Verdict(STOPPED, "stopped before it started")
        try:
            notes = list((yield from self.engine.start(attempt, lambda: self._asked_to_stop() or self.preempted)))
        except (PailotError, OSError) as error:
            yield from self._end_tasks(attempt)
            if self._asked_to_stop():
                return "stopped", Verdict(STOPPED, "stopped before it started")
            self.exit_status = getattr(error, "exit_status", None)
            return "stopped", Verdict(FAILED, f"it could not be started: {self._words(error)}")
        self.began = self.began or self.engine.first_task_began or time.time()
        if self.folder.durable or number > self.first:
            self._set_state(RUNNING, number)
        told = {"notes": notes} if notes else {}
        self._happened("resumed" if self.resumes else "started", attempt=number, tasks=self.plan.task_count, **told)
        self.watcher.started(number, notes)
        deadline = time.monotonic() + options.max_run_seconds if options.max_run_seconds else None
        return (yield from self._drive(attempt, deadline))

    def _words(self, error: PailotError | OSError) -> str:
        if is_full(error):
            return full_disk(error, self.folder.path)
        if isinstance(error, PailotError):
            return str(error)
        return f"{error.strerror} ({error.filename})" if error.filename else str(error)

    def _drive(self, attempt: Attempt, deadline: float | None) -> Steps[tuple[str, Verdict]]:
        tally = Tally(self.rules)
        unclaimed = {(role.name, index) for role in self.plan.roles.values() for index in range(role.instances)}
        cause, verdict = "user", None
        decides_outcome = self.engine.traits.decides_outcome
        while self.engine.alive():
            yield self._until(deadline)
            self._listen(attempt, unclaimed)
            for task in self.engine.newly_ended(attempt):
                final = task.final or {}
                self._claimed(attempt, unclaimed, task.role, task.index)
                self._happened("task-ended", role=task.role, index=task.index, attempt=attempt.number, **_brief(final))
                if verdict is not None or decides_outcome:
                    continue
                if task.state == LOST:
                    cause, verdict = (
                        "platform",
                        Verdict(
                            FAILED,
                            f"{task.role}:{task.index} was lost: {final.get('reason', 'its shim did not start')}",
                            task.role,
                            task.index,
                        ),
                    )
                elif final.get("diskFull") or final.get("giveUp"):
                    cause, verdict = (
                        "stopped",
                        Verdict(FAILED, f"{task.role}:{task.index}: {final['reason']}", task.role, task.index),
                    )
                elif final["outcome"] != "stopped":
                    verdict = tally.add(_task_end(task.role, task.index, final))
                if verdict is not None and self.engine.alive():
                    self._stop(attempt, "completed")
            if self._asked_to_stop() and (verdict is None or self._kill_now()):
                self._stop(attempt, "user" if verdict is None else "completed")
            elif verdict is None and self.preempted and not self.stop_sent:
                self._stop(attempt, "preempted")
            elif verdict is None and deadline is not None and time.monotonic() >= deadline:
                deadline = None
                self._stop(attempt, "timeout")
        self._listen(attempt, unclaimed)  # to what was said between the last look and the end
        if decides_outcome:
            outcome = self.engine.decided(attempt) or Outcome("platform", Verdict(FAILED, "it ended without a result"))
            self.retries.update(outcome.retries)
            return outcome.cause, outcome.verdict
        if verdict is None:
            return self._verdict_of_a_stop()
        return cause, verdict

    def _listen(self, attempt: Attempt, unclaimed: set[tuple[str, int]]) -> None:
        """Take in what the engine tells."""
        for event in self.engine.events():
            if event["event"] == "claimed":
                self._claimed(attempt, unclaimed, event["role"], event["index"])
            self._seen(attempt, event)

    def _claimed(self, attempt: Attempt, unclaimed: set[tuple[str, int]], role: str, index: int) -> None:
        """A task was begun; the attempt has started when all are. One that has ended was begun, whatever we heard of it."""
        if not unclaimed:
            return
        unclaimed.discard((role, index))
        if not unclaimed:
            if self.folder.durable:
                self.folder.mark_started(attempt.number)
            self.on_started()

    def _verdict_of_a_stop(self) -> tuple[str, Verdict]:
        if self.stop_sent == "timeout":
            return "user", Verdict(
                FAILED, f"it ran longer than its limit of {self.plan.options.max_run_seconds:g} seconds (maxRunSeconds)"
            )
        if self.stop_sent == "preempted":
            return "preempted", Verdict(STOPPED, "it made room for a job with more right to the machine")
        if self.stop_sent:
            return "stopped", Verdict(STOPPED, "stopped by the user")
        return "user", Verdict(FAILED, "it ended without a result")

    def _stop(self, attempt: Attempt, why: str) -> None:
        now = self._kill_now()
        if self.stop_sent and (not now or self.killed):
            return
        self.killed = now
        grace = self.plan.options.grace_seconds
        asked = self.folder.record(layout.STOP)
        if asked and why == "user":
            grace = float(asked.get("grace", grace))
        self.stop_sent = self.engine.stop(attempt, grace, why, now=now)
        if why != "completed":
            self._set_state(STOPPING, attempt.number)
            self._happened("stopping", why=why, now=now)

    def _kill_now(self) -> bool:
        return self.interrupts > 1 or os.path.exists(self.folder.file(layout.KILL))

    def _finish(self, verdict: Verdict) -> dict[str, Any]:
        more = {"exitStatus": self.exit_status} if self.exit_status else {}
        record = self.folder.conclude(verdict, retries=self.retries, started=self.began, **more)
        self.watcher.finished(record)
        return record

    # Waiting

    def interrupted(self, times: int = 1) -> None:
        """Somebody at the keyboard, or the end of the session, wants the run to stop; the second time at once."""
        self.interrupts += times
        self.watcher.happened(Event(time.time(), journal.INTERRUPT, {"times": self.interrupts}))

    def _asked_to_stop(self) -> bool:
        return bool(self.interrupts) or os.path.exists(self.folder.file(layout.STOP))

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
        if kind == "grown":
            self.watcher.grown(event.get("jobAttempt", attempt.number), event["role"], event["index"], event["attempt"])
        elif kind in ("retry", "held"):
            details = {key: value for key, value in event.items() if key != "event"}
            self._happened(f"task-{kind}", **details)
        elif kind == "state" and not self.stop_sent:
            self._set_state(event["state"], attempt.number, reason=event["reason"])
            self._happened("state", state=event["state"], reason=event["reason"])
            if event["reason"]:
                self._happened("waiting", reason=event["reason"])
        elif kind == "job-retry":
            self._happened(kind, attempt=event["attempt"], seconds=0, reason=event["reason"], why="the server tries it again")

    def progressed(self, progress: Progress) -> None:
        """Bytes of an input or an output were moved; now and then that is worth a line in the journal."""
        if self.pace.is_due(progress) or progress.ended:
            self._happened("progress", **progress.to_dict())
        else:
            self.watcher.moved(progress)

    def _happened(self, event: str, **details: Any) -> None:
        self.watcher.happened(self.folder.note(event, **details))


def full_disk(error: BaseException, folder: str) -> str:
    """Which disk is full: the one of the run's folder, unless the error names a place on another."""
    place = getattr(error, "filename", None)
    try:
        if isinstance(place, str) and os.stat(os.path.dirname(place)).st_dev != os.stat(folder).st_dev:
            return f"the disk that holds {place} is full"
    except OSError:
        pass  # it is not there any more
    return DISK_FULL


def _task_end(role: str, index: int, final: Mapping[str, Any]) -> TaskEnd:
    return TaskEnd(
        role, index, final["outcome"] == "succeeded", final.get("exitCode"), final.get("signal"), final.get("reason", "")
    )


def _brief(final: Mapping[str, Any]) -> dict[str, Any]:
    keep = ("outcome", "exitCode", "signal", "reason", "attempt", "class", "outOfMemory", "lastLines", "started", "ended")
    return {f"task{key[0].upper()}{key[1:]}" if key == "attempt" else key: final[key] for key in keep if key in final}
