"""How a run goes on and ends, attempt after attempt: the decisions of its driver, as a state machine without input or output.

As with `attempt_machine`, which it contains: events in, instructions out. The last instruction of a list is what the driver does
until the next event; the others are done at once. A run ends with one `Finish`, or with `HandBack` where the next attempt is not
started by this driver. After either nothing more is instructed.
"""

from __future__ import annotations

from ..values import Value
from . import retry, states
from .attempt_machine import AllGone, AttemptMachine, AttemptTerms, EngineDecided, StopAsked, StopTasks
from .completion import Outcome, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class RunTerms(Value):
    """What a run is judged by."""

    attempt: AttemptTerms
    job_retry_count: int
    retry_delay_seconds: float
    publishes: bool = False
    """It has succeeded only when its outputs are where it wants them."""


# Events, beside those of an attempt


class AttemptPrepared(Value):
    """The attempt's folder is there; `begun` by a driver that is gone, so that its tasks may run."""

    begun: bool


class StartFailed(Value):
    """The tasks could not be started."""

    reason: str
    exit_status: int | None = None
    """What a command exits with for that reason."""


class AttemptStarted(Value):
    """The tasks were started, or are followed again, from this moment on."""

    moment: float


class PreemptAsked(Value):
    """The run is to make room, and to be started again by the one who queues it."""


class PauseOver(Value):
    """The time before a retry has passed."""


class PublishEnded(Value):
    """The outputs are where they belong, or not."""

    error: str = ""
    stopped: bool = False


class DiskFull(Value):
    """The driver itself could not write what it has to."""

    reason: str


# Instructions, beside those of an attempt


class PrepareAttempt(Value):
    """Make the attempt's folder."""

    number: int


class LaunchTasks(Value):
    """Start the tasks."""


class Follow(Value):
    """Tell what happens to the tasks, until all are gone."""


class ShowStopping(Value):
    """Show the run as one that stops."""

    why: str
    now: bool


class ShowRetry(Value):
    """Show the run as one that waits, and why it is tried again, after an attempt that ended so."""

    number: int
    seconds: float
    ended: Verdict
    why: str


class Pause(Value):
    """Let this time pass before the next attempt; nothing is held meanwhile."""

    seconds: float


class Publish(Value):
    """Bring the outputs where they belong."""

    number: int


class KillTasks(Value):
    """Kill what runs, and wait until it is gone."""


class HandBack(Value):
    """Our part is over: the next attempt is started by the one who queues the run."""

    number: int
    counted_as: str
    reason: str


class Finish(Value):
    """The run has ended so."""

    verdict: Verdict
    exit_status: int | None = None


class RunMachine:
    """One run, from its first attempt here to its verdict. `begin`, then `handle` for each event, return the instructions."""

    def __init__(self, terms: RunTerms, *, first: int = 0, retries: Mapping[str, int] | None = None) -> None:
        self.terms = terms
        self.number = first
        """The attempt that runs, or is the next to run."""
        self.retries = {retry.USER: 0, retry.PLATFORM: 0, **(retries or {})}
        self.attempt: AttemptMachine | None = None
        """The attempt that runs."""
        self.finished: Finish | HandBack | None = None
        self._stop_asked = self._preempted = False
        self._paused_after: Verdict | None = None
        self._succeeded: Verdict | None = None

    @property
    def stopping(self) -> str:
        """Why the tasks were told to stop; empty while they were not."""
        return self.attempt.stopping if self.attempt is not None else ""

    def begin(self) -> tuple[Value, ...]:
        return (PrepareAttempt(self.number),)

    def handle(self, event: Value) -> tuple[Value, ...]:
        if self.finished is not None and not (isinstance(event, DiskFull) and isinstance(self.finished, HandBack)):
            return ()  # only that the run is handed back may not fit on the disk: then it ends here
        handler = self._HANDLERS.get(type(event))
        if handler is not None:
            return handler(self, event)
        return self._of_attempt(event)

    def _of_attempt(self, event: Value) -> tuple[Value, ...]:
        """What the attempt that runs makes of an event, shown to those who look at the run."""
        if self.attempt is None:
            return ()
        told = self.attempt.handle(event)
        if told and isinstance(told[0], StopTasks) and told[0].why != states.COMPLETED:
            return (*told, ShowStopping(told[0].why, told[0].now))
        return told

    # Starting

    def _prepared(self, event: AttemptPrepared) -> tuple[Value, ...]:
        if self._stop_asked and not event.begun:
            return self._finish(Verdict(states.STOPPED, "stopped before it started"))
        return (LaunchTasks(),)

    def _start_failed(self, event: StartFailed) -> tuple[Value, ...]:
        if self._stop_asked:
            ended = self._finish(Verdict(states.STOPPED, "stopped before it started"))
        elif self._preempted:
            reason = "it made room for another job before it had started"
            ended = self._over(Outcome(retry.PREEMPTED, Verdict(states.STOPPED, reason)), 0.0)
        else:
            verdict = Verdict(states.FAILED, f"it could not be started: {event.reason}")
            ended = self._finish(verdict, event.exit_status)
        return (KillTasks(), *ended)

    def _started(self, event: AttemptStarted) -> tuple[Value, ...]:
        self.attempt = AttemptMachine(self.terms.attempt, event.moment)
        return (Follow(),)

    # While it runs, and between two attempts

    def _asked_to_stop(self, event: StopAsked) -> tuple[Value, ...]:
        self._stop_asked = True
        if self._paused_after is not None:
            return self._finish(Verdict(states.STOPPED, "stopped while waiting to be tried again"))
        return self._of_attempt(event)

    def _asked_for_room(self, _event: PreemptAsked) -> tuple[Value, ...]:
        self._preempted = True
        if self._paused_after is not None:
            return self._hand_back(retry.PREEMPTED, self._paused_after)
        return self._of_attempt(StopAsked(states.PREEMPTED))

    def _engine_decided(self, event: EngineDecided) -> tuple[Value, ...]:
        self.retries.update(event.outcome.retries)
        return self._of_attempt(event)

    def _all_gone(self, event: AllGone) -> tuple[Value, ...]:
        attempt, self.attempt = self.attempt, None
        if attempt is None:
            return ()
        attempt.handle(event)
        assert attempt.outcome is not None
        return self._over(attempt.outcome, event.chance)

    def _over(self, outcome: Outcome, chance: float) -> tuple[Value, ...]:
        """After an attempt: the end, or another one."""
        verdict = outcome.verdict
        if verdict.state == states.SUCCEEDED:
            self._succeeded = verdict
            return (Publish(self.number),) if self.terms.publishes else self._finish(verdict)
        used = self.retries
        again = retry.next_attempt(outcome.cause, used[retry.USER], used[retry.PLATFORM], self.terms.job_retry_count)
        if again is None:
            return self._finish(verdict)
        if again.counted_as in used:
            used[again.counted_as] += 1
        self.number += 1
        if again.counted_as == retry.PREEMPTED and self._preempted:
            if self._stop_asked:
                return self._finish(Verdict(states.STOPPED, "stopped by the user"))
            return (ShowRetry(self.number, 0.0, verdict, again.reason), *self._hand_back(again.counted_as, verdict))
        seconds = retry.delay(self.number, self.terms.retry_delay_seconds, chance)
        self._paused_after = verdict
        return (ShowRetry(self.number, seconds, verdict, again.reason), Pause(seconds))

    def _pause_over(self, _event: PauseOver) -> tuple[Value, ...]:
        if self._paused_after is None:
            return ()
        self._paused_after = None
        return (PrepareAttempt(self.number),)

    # The end

    def _published(self, event: PublishEnded) -> tuple[Value, ...]:
        if self._succeeded is None:
            return ()
        if event.stopped:
            return self._finish(Verdict(states.STOPPED, "stopped while its outputs were brought away"))
        return self._finish(Verdict(states.FAILED, event.error) if event.error else self._succeeded)

    def _disk_full(self, event: DiskFull) -> tuple[Value, ...]:
        return (KillTasks(), *self._finish(Verdict(states.FAILED, event.reason)))

    def _hand_back(self, counted_as: str, ended: Verdict) -> tuple[Value, ...]:
        self.finished = HandBack(self.number, counted_as, ended.reason)
        return (self.finished,)

    def _finish(self, verdict: Verdict, exit_status: int | None = None) -> tuple[Value, ...]:
        self.finished = Finish(verdict, exit_status)
        return (self.finished,)

    _HANDLERS: Mapping[type[Value], Callable[[RunMachine, Any], tuple[Value, ...]]] = {
        AttemptPrepared: _prepared,
        StartFailed: _start_failed,
        AttemptStarted: _started,
        StopAsked: _asked_to_stop,
        PreemptAsked: _asked_for_room,
        EngineDecided: _engine_decided,
        AllGone: _all_gone,
        PauseOver: _pause_over,
        PublishEnded: _published,
        DiskFull: _disk_full,
    }
