"""How one attempt goes on and ends: the decisions of its driver, as a state machine without input or output.

The driver tells what happened, an *event*, and does what it is told, *instructions*; it decides nothing by itself. All drivers
share these decisions: that of a user's or a server's runs (inside `run_machine`), and the batch script in a cluster.

An attempt is decided once, by the first event that can: a task that completes or fails the job, one that was lost or cannot run,
the engine that applies the policy itself. What still runs is then stopped, and the outcome is told when all of it is gone.
A stop that is asked for before decides if no task does; the first reason for a stop stands.
"""

from __future__ import annotations

from ..values import Value
from . import retry, states
from .completion import Outcome, Tally, Verdict, outcome_of_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from .completion import RoleRule, TaskEnd

FOREIGN = "foreign"
"""The cause of an end that the cluster brought about: the reason is known only afterwards, by asking the cluster."""


class AttemptTerms(Value):
    """What an attempt is judged by."""

    rules: tuple[RoleRule, ...]
    grace_seconds: float
    max_run_seconds: float | None = None
    decided_elsewhere: bool = False
    """The engine applies the completion policy itself: no task is counted here."""
    without_result: str = retry.USER
    """The cause of an end that nothing explains."""
    end_seconds: float | None = None
    """How long after the grace a task that has not ended is given up; None: it is waited for."""


# Events


class TaskEnded(Value):
    """A task has ended for good."""

    end: TaskEnd


class TaskLost(Value):
    """A task has gone, and nothing tells how it ended."""

    role: str
    index: int
    reason: str


class CannotRun(Value):
    """The attempt, or one task of it, cannot be run in this place."""

    reason: str
    role: str | None = None
    index: int | None = None


class StopAsked(Value):
    """Somebody wants the attempt to stop; `now` is without grace. It may be told again and again."""

    why: str = states.USER
    grace_seconds: float | None = None
    now: bool = False


class StopStands(Value):
    """The tasks were told to stop, at that moment; `why` is the reason on record, which may be an earlier one."""

    why: str
    moment: float


class LimitNear(Value):
    """The cluster will end the attempt at a limit of its own: it is to stop by itself at this moment."""

    moment: float
    reason: str


class ClusterEnds(Value):
    """The cluster ends the attempt."""

    reason: str


class TimePassed(Value):
    """It is now this moment, of the clock that all moments are of."""

    now: float


class EngineDecided(Value):
    """The engine that applies the policy has come to its outcome."""

    outcome: Outcome


class AllGone(Value):
    """Nothing of the attempt is left. `chance` in [0, 1) is random, and spreads retries."""

    chance: float = 0.0


# Instructions


class StopTasks(Value):
    """Tell every task that is left to stop, for a reason that is recorded first; then say what stands."""

    why: str
    grace_seconds: float
    now: bool


class GiveUp(Value):
    """Wait no longer for what does not end."""


class AttemptOver(Value):
    """The attempt has ended so."""

    outcome: Outcome


class AttemptMachine:
    """One attempt, from the start of its tasks to its outcome. `handle` takes an event and returns the instructions."""

    def __init__(self, terms: AttemptTerms, began: float = 0.0) -> None:
        self.terms = terms
        self.outcome: Outcome | None = None
        """Set once: nothing that happens later changes it."""
        self.stopping = ""
        """The reason for which the tasks were told to stop."""
        self._tally = Tally(terms.rules)
        self._killed = False
        self._cluster: Outcome | None = None
        """How it ends if the cluster, not one of us, is why it stops."""
        self._limit: LimitNear | None = None
        self._grace = terms.grace_seconds
        self._deadline = None if not terms.max_run_seconds else began + terms.max_run_seconds
        self._give_up: float | None = None

    @property
    def moment(self) -> float | None:
        """When the time is to be told at the latest; None: there is no need."""
        moments = (self._deadline, None if self._limit is None else self._limit.moment, self._give_up)
        return min((each for each in moments if each is not None), default=None)

    def handle(self, event: Value) -> tuple[Value, ...]:
        return self._HANDLERS[type(event)](self, event)

    def _task_ended(self, event: TaskEnded) -> tuple[Value, ...]:
        end = event.end
        if self.outcome is not None or self.terms.decided_elsewhere:
            return ()
        if end.hopeless:
            verdict = Verdict(states.FAILED, f"{end.role}:{end.index}: {end.reason}", end.role, end.index)
            return self._decide(Outcome(retry.STOPPED, verdict))
        counted = None if end.stopped else self._tally.add(end)
        return () if counted is None else self._decide(Outcome(retry.USER, counted))

    def _task_lost(self, event: TaskLost) -> tuple[Value, ...]:
        if self.terms.decided_elsewhere or self._cluster is not None:
            return ()  # a cluster that ends the attempt takes its tasks along
        reason = f"{event.role}:{event.index} was lost: {event.reason}"
        return self._decide(Outcome(retry.PLATFORM, Verdict(states.FAILED, reason, event.role, event.index)))

    def _cannot_run(self, event: CannotRun) -> tuple[Value, ...]:
        return self._decide(Outcome(retry.PLATFORM, Verdict(states.FAILED, event.reason, event.role, event.index)))

    def _engine_decided(self, event: EngineDecided) -> tuple[Value, ...]:
        if self.outcome is None:
            self.outcome = event.outcome
        return ()  # it stops what is left by itself

    def _decide(self, outcome: Outcome) -> tuple[Value, ...]:
        if self.outcome is not None:
            return ()
        self.outcome = outcome
        return self._stop(states.COMPLETED)

    # Stopping

    def _stop_asked(self, event: StopAsked) -> tuple[Value, ...]:
        if self.outcome is None:
            return self._stop(event.why, event.grace_seconds, now=event.now)
        return self._stop(states.COMPLETED, now=True) if event.now else ()

    def _limit_near(self, event: LimitNear) -> tuple[Value, ...]:
        if not self.stopping:
            self._limit = event
        return ()

    def _cluster_ends(self, event: ClusterEnds) -> tuple[Value, ...]:
        self._cluster = Outcome(FOREIGN, Verdict(states.STOPPED, event.reason))
        return self._stop(states.USER)

    def _time_passed(self, event: TimePassed) -> tuple[Value, ...]:
        now, limit = event.now, self._limit
        if self._give_up is not None and now >= self._give_up:
            self._give_up = None
            return (GiveUp(),)
        if limit is not None and now >= limit.moment:
            self._limit = None
            if not self.stopping:
                self._cluster = Outcome(retry.USER, Verdict(states.FAILED, limit.reason))
                return self._stop(states.TIMEOUT)
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            if self.outcome is None:
                return self._stop(states.TIMEOUT)
        return ()

    def _stop(self, why: str, grace_seconds: float | None = None, *, now: bool = False) -> tuple[Value, ...]:
        """Once, and once more if it is to be without grace."""
        if self.stopping and (self._killed or not now):
            return ()
        self.stopping = self.stopping or why
        self._killed = now
        self._grace = self.terms.grace_seconds if grace_seconds is None else grace_seconds
        return (StopTasks(why, self._grace, now),)

    def _stop_stands(self, event: StopStands) -> tuple[Value, ...]:
        self.stopping = event.why
        if self.terms.end_seconds is not None:
            self._give_up = event.moment + (0 if self._killed else self._grace) + self.terms.end_seconds
        return ()

    # The end

    def _all_gone(self, _event: AllGone) -> tuple[Value, ...]:
        if self.outcome is None:
            self.outcome = self._undecided()
        return (AttemptOver(self.outcome),)

    def _undecided(self) -> Outcome:
        """The outcome where no task decided: the one who stopped it tells."""
        terms, cluster = self.terms, self._cluster
        if terms.decided_elsewhere:
            return outcome_of_stop("", None, terms.without_result)
        if cluster is not None and (cluster.cause == FOREIGN or self.stopping == states.TIMEOUT):
            return cluster
        return outcome_of_stop(self.stopping, terms.max_run_seconds, terms.without_result)

    _HANDLERS: Mapping[type[Value], Callable[[AttemptMachine, Any], tuple[Value, ...]]] = {
        TaskEnded: _task_ended,
        TaskLost: _task_lost,
        CannotRun: _cannot_run,
        EngineDecided: _engine_decided,
        StopAsked: _stop_asked,
        StopStands: _stop_stands,
        LimitNear: _limit_near,
        ClusterEnds: _cluster_ends,
        TimePassed: _time_passed,
        AllGone: _all_gone,
    }


def outcome_of_ends(rules: Iterable[RoleRule], ends: Iterable[TaskEnd]) -> Outcome | None:
    """What the ends of tasks decide, in the order in which they happened; None if they leave it open."""
    machine = AttemptMachine(AttemptTerms(tuple(rules), 0.0))
    for end in ends:
        machine.handle(TaskEnded(end))
    return machine.outcome
