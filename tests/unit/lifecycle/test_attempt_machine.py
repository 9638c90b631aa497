"""The decisions over one attempt: each by an example, all of them against how the two drivers decided before they shared them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle.attempt_machine import (
    AllGone,
    AttemptMachine,
    AttemptOver,
    AttemptTerms,
    CannotRun,
    ClusterEnds,
    EngineDecided,
    GiveUp,
    LimitNear,
    StopAsked,
    StopStands,
    StopTasks,
    TaskEnded,
    TaskLost,
    TimePassed,
    outcome_of_ends,
)
from pailot.lifecycle.completion import Outcome, RoleRule, Tally, TaskEnd, Verdict
from pailot.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

RULES = (RoleRule("a", 2, 1, 2), RoleRule("b", 2, 2, None))
TERMS = AttemptTerms(RULES, grace_seconds=30.0, max_run_seconds=100.0)
BATCH = TERMS.replace(without_result="platform", end_seconds=30.0)
ELSEWHERE = TERMS.replace(decided_elsewhere=True, without_result="platform")

FAILED_A = TaskEnded(TaskEnd("a", 0, False, 3, None, "exited with 3"))
BY_A = Verdict("FAILED", "a:0 exited with 3, and 1 failed task of 'a' fails the job (minFailedInstances: 1)", "a", 0, 3)
LIMIT = "it ran longer than its limit of 100 seconds (maxRunSeconds)"


def outcome(machine: AttemptMachine) -> Outcome:
    (over,) = machine.handle(AllGone())
    assert isinstance(over, AttemptOver)
    return over.outcome


def after(*events: Value, terms: AttemptTerms = TERMS, began: float = 0.0) -> tuple[AttemptMachine, list[Value]]:
    """A machine to which all that was told, and what it said."""
    machine = AttemptMachine(terms, began)
    return machine, [each for event in events for each in machine.handle(event)]


# Each decision


def test_a_task_decides_and_what_runs_is_stopped() -> None:
    machine, told = after(FAILED_A)
    assert told == [StopTasks("completed", 30.0, False)]
    assert outcome(machine) == Outcome("user", BY_A)


def test_an_end_that_reaches_no_bound_decides_nothing() -> None:
    assert after(TaskEnded(TaskEnd("a", 0, True, 0)), TaskEnded(TaskEnd("b", 0, False, 1)))[1] == []


def test_what_was_stopped_decides_nothing() -> None:
    machine, told = after(TaskEnded(TaskEnd("a", 0, False, 143, stopped=True)))
    assert (told, machine.outcome) == ([], None)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_hopeless_end_is_not_tried_again(stopped: bool) -> None:
    machine, _ = after(TaskEnded(TaskEnd("b", 1, False, reason="the disk is full", stopped=stopped, hopeless=True)))
    assert outcome(machine) == Outcome("stopped", Verdict("FAILED", "b:1: the disk is full", "b", 1))


def test_a_lost_task_is_the_fault_of_the_platform() -> None:
    machine, told = after(TaskLost("b", 1, "its shim did not start"), FAILED_A)
    assert told == [StopTasks("completed", 30.0, False)]
    assert outcome(machine) == Outcome("platform", Verdict("FAILED", "b:1 was lost: its shim did not start", "b", 1))


def test_what_cannot_run_is_the_fault_of_the_platform() -> None:
    machine, _ = after(CannotRun("b:1 cannot start: no ports", "b", 1), CannotRun("another"))
    assert outcome(machine) == Outcome("platform", Verdict("FAILED", "b:1 cannot start: no ports", "b", 1))


@pytest.mark.parametrize("why", ["user", "preempted"])
def test_a_stop_decides_if_no_task_does(why: str) -> None:
    machine, told = after(StopAsked(why), StopStands(why, 1.0), TaskEnded(TaskEnd("a", 0, False, stopped=True)))
    assert told == [StopTasks(why, 30.0, False)]
    assert (outcome(machine).cause, outcome(machine).verdict.state) == ("stopped" if why == "user" else why, "STOPPED")


def test_a_task_that_fails_by_itself_while_it_is_stopped_decides() -> None:
    machine, told = after(StopAsked(), FAILED_A)
    assert told == [StopTasks("user", 30.0, False)]  # they are told already
    assert outcome(machine).verdict == BY_A


def test_the_reason_on_record_stands() -> None:
    machine, _ = after(StopAsked(), StopStands("timeout", 1.0))
    assert outcome(machine) == Outcome("user", Verdict("FAILED", LIMIT))


def test_a_stop_is_told_once_and_once_more_without_grace() -> None:
    again = StopAsked(grace_seconds=5.0, now=True)
    _, told = after(StopAsked(grace_seconds=5.0), StopAsked(), again, again, StopAsked())
    assert told == [StopTasks("user", 5.0, False), StopTasks("user", 5.0, True)]


def test_a_decided_attempt_can_be_killed_but_not_stopped() -> None:
    _, told = after(FAILED_A, StopAsked(), StopAsked(now=True))
    assert told == [StopTasks("completed", 30.0, False), StopTasks("completed", 30.0, True)]


def test_the_time_limit_stops_it_once() -> None:
    machine, told = after(TimePassed(109.0), TimePassed(110.0), TimePassed(111.0), began=10.0)
    assert told == [StopTasks("timeout", 30.0, False)]
    assert outcome(machine) == Outcome("user", Verdict("FAILED", LIMIT))


def test_the_time_limit_of_a_decided_attempt_says_nothing() -> None:
    machine, told = after(FAILED_A, TimePassed(200.0))
    assert len(told) == 1
    assert machine.moment is None


@pytest.mark.parametrize("limit", [None, 0.0])
def test_without_a_limit_there_is_no_moment(limit: float | None) -> None:
    assert AttemptMachine(TERMS.replace(max_run_seconds=limit), 10.0).moment is None


def test_nothing_stopped_it_and_nothing_decided() -> None:
    assert outcome(after()[0]) == Outcome("user", Verdict("FAILED", "it ended without a result"))
    assert outcome(after(terms=BATCH)[0]).cause == "platform"


# Decided elsewhere


def test_an_engine_that_decides_has_the_only_word() -> None:
    machine, told = after(FAILED_A, TaskLost("a", 1, "gone"), terms=ELSEWHERE)
    assert told == []
    done = Outcome("stopped", Verdict("SUCCEEDED", "the server says so"))
    assert machine.handle(EngineDecided(done)) == ()
    assert machine.handle(EngineDecided(Outcome("user", BY_A))) == ()
    assert outcome(machine) == done


def test_an_engine_that_should_decide_and_does_not_has_failed() -> None:
    machine, told = after(StopAsked(), terms=ELSEWHERE)
    assert told == [StopTasks("user", 30.0, False)]
    assert outcome(machine) == Outcome("platform", Verdict("FAILED", "it ended without a result"))


# In a cluster


def test_a_cluster_that_ends_it_is_asked_why_afterwards() -> None:
    machine, told = after(ClusterEnds("Slurm ends it"), TaskLost("a", 0, "gone"), ClusterEnds("Slurm ends it"), terms=BATCH)
    assert told == [StopTasks("user", 30.0, False)]
    assert outcome(machine) == Outcome("foreign", Verdict("STOPPED", "Slurm ends it"))


def test_a_cluster_that_ends_what_is_stopped_has_the_last_word() -> None:
    machine, _ = after(StopAsked("timeout"), ClusterEnds("Slurm ends it"), terms=BATCH)
    assert outcome(machine).cause == "foreign"


def test_before_a_limit_of_the_cluster_it_stops_by_itself() -> None:
    near = LimitNear(50.0, "Slurm's limit")
    machine, told = after(near, TimePassed(49.0), terms=BATCH)
    assert (told, machine.moment) == ([], 50.0)
    assert machine.handle(TimePassed(50.0)) == (StopTasks("timeout", 30.0, False),)
    assert outcome(machine) == Outcome("user", Verdict("FAILED", "Slurm's limit"))


def test_a_limit_of_the_cluster_does_not_matter_to_what_stops() -> None:
    late, told = after(StopAsked(), LimitNear(50.0, "Slurm's limit"), TimePassed(60.0), terms=BATCH)
    assert len(told) == 1
    assert outcome(late).verdict.reason == "stopped by the user"
    early, told = after(LimitNear(50.0, "Slurm's limit"), StopAsked(), TimePassed(60.0), terms=BATCH)
    assert len(told) == 1
    assert outcome(early).verdict.reason == "stopped by the user"
    other, _ = after(LimitNear(50.0, "Slurm's limit"), TimePassed(60.0), StopStands("user", 60.0), terms=BATCH)
    assert outcome(other).verdict.reason == "stopped by the user"


@pytest.mark.parametrize(("now", "moment"), [(False, 65.0), (True, 40.0)])
def test_what_does_not_end_is_given_up(now: bool, moment: float) -> None:
    machine, _ = after(StopAsked(grace_seconds=25.0, now=now), StopStands("user", 10.0), terms=BATCH)
    assert machine.moment == moment
    assert machine.handle(TimePassed(moment - 1)) == ()
    assert machine.handle(TimePassed(moment)) == (GiveUp(),)
    assert machine.handle(TimePassed(moment)) == ()


# Every history


class OldDriver:
    """How the driver of runs decided, condition by condition (`Driver._drive` and `_stop`), one event a round."""

    def __init__(self) -> None:
        self.tally, self.cause = Tally(RULES), "user"
        self.verdict: Verdict | None = None
        self.stop_sent, self.killed, self.asked, self.now, self.preempted = "", False, False, False, False
        self.deadline: float | None = 100.0
        self.stops: list[tuple[str, bool]] = []

    def round(self, event: Value) -> None:
        now = event.now if isinstance(event, TimePassed) else 0.0
        if isinstance(event, (TaskEnded, TaskLost)) and self.verdict is None:
            self.ended(event)
        self.asked = self.asked or (isinstance(event, StopAsked) and event.why == "user")
        self.now = self.now or (isinstance(event, StopAsked) and event.now)
        self.preempted = self.preempted or (isinstance(event, StopAsked) and event.why == "preempted")
        if self.asked and (self.verdict is None or self.now):
            self.stop("user" if self.verdict is None else "completed")
        elif self.verdict is None and self.preempted and not self.stop_sent:
            self.stop("preempted")
        elif self.verdict is None and self.deadline is not None and now >= self.deadline:
            self.deadline = None
            self.stop("timeout")

    def ended(self, event: TaskEnded | TaskLost) -> None:
        if isinstance(event, TaskLost):
            reason = f"{event.role}:{event.index} was lost: {event.reason}"
            self.cause, self.verdict = "platform", Verdict("FAILED", reason, event.role, event.index)
        elif event.end.hopeless:
            end = event.end
            self.cause = "stopped"
            self.verdict = Verdict("FAILED", f"{end.role}:{end.index}: {end.reason}", end.role, end.index)
        elif not event.end.stopped:
            self.verdict = self.tally.add(event.end)
        if self.verdict is not None:
            self.stop("completed")

    def stop(self, why: str) -> None:
        if self.stop_sent and (not self.now or self.killed):
            return
        self.killed = self.now
        self.stops.append((why, self.now))
        self.stop_sent = self.stop_sent or why

    def outcome(self) -> Outcome:
        if self.verdict is not None:
            return Outcome(self.cause, self.verdict)
        if self.stop_sent == "timeout":
            return Outcome("user", Verdict("FAILED", LIMIT))
        if self.stop_sent == "preempted":
            return Outcome("preempted", Verdict("STOPPED", "it made room for a job with more right to the machine"))
        if self.stop_sent:
            return Outcome("stopped", Verdict("STOPPED", "stopped by the user"))
        return Outcome("user", Verdict("FAILED", "it ended without a result"))


class OldBatchScript:
    """How the batch script decided (`_decide`, `ended`, `stop_all`, `_look_at_signals`), one event a round.

    Two things are new: a stop for preemption is STOPPED, as elsewhere, and every reason but these is the user's.
    """

    def __init__(self) -> None:
        self.tally, self.cause = Tally(RULES), "user"
        self.verdict: Verdict | None = None
        self.stop_why, self.killed, self.foreign = "", False, ""
        self.deadline: float | None = 100.0
        self.limit: float | None = None
        self.stops: list[tuple[str, bool]] = []

    def round(self, event: Value) -> None:
        if isinstance(event, TaskLost):
            if not self.foreign:
                reason = f"{event.role}:{event.index} was lost: {event.reason}"
                self.decide("platform", Verdict("FAILED", reason, event.role, event.index))
        elif isinstance(event, TaskEnded):
            self.ended(event.end)
        elif isinstance(event, CannotRun):
            self.decide("platform", Verdict("FAILED", event.reason, event.role, event.index))
        elif isinstance(event, StopAsked) and (self.verdict is None or event.now):
            self.stop_all(event.why if self.verdict is None else "completed", now=event.now)
        elif isinstance(event, LimitNear) and not self.stop_why:
            self.limit = event.moment
        elif isinstance(event, ClusterEnds):
            self.foreign = "ended"
            self.stop_all("user")
        now = event.now if isinstance(event, TimePassed) else 0.0
        if self.limit is not None and now >= self.limit and not self.stop_why:
            self.foreign = "timeout"
            self.stop_all("timeout")
        if self.verdict is None and self.deadline is not None and now >= self.deadline:
            self.deadline = None
            self.stop_all("timeout")

    def ended(self, end: TaskEnd) -> None:
        if self.verdict is not None or end.stopped:
            return
        if end.hopeless:
            self.decide("stopped", Verdict("FAILED", f"{end.role}:{end.index}: {end.reason}", end.role, end.index))
            return
        verdict = self.tally.add(end)
        if verdict is not None:
            self.decide("user", verdict)

    def decide(self, cause: str, verdict: Verdict) -> None:
        if self.verdict is None:
            self.cause, self.verdict = cause, verdict
            self.stop_all("completed")

    def stop_all(self, why: str, *, now: bool = False) -> None:
        if self.stop_why and (self.killed or not now):
            return
        self.stop_why, self.killed = self.stop_why or why, now
        self.stops.append((why, now))

    def outcome(self) -> Outcome:
        if self.verdict is not None:
            return Outcome(self.cause, self.verdict)
        if self.foreign == "ended":
            return Outcome("foreign", Verdict("STOPPED", "Slurm ends it"))
        if self.stop_why == "timeout":
            return Outcome("user", Verdict("FAILED", "Slurm's limit" if self.foreign else LIMIT))
        if self.stop_why == "preempted":
            return Outcome("preempted", Verdict("STOPPED", "it made room for a job with more right to the machine"))
        if self.stop_why:
            return Outcome("stopped", Verdict("STOPPED", "stopped by the user"))
        return Outcome("platform", Verdict("FAILED", "it ended without a result"))


ROLES, INDICES = st.sampled_from("ab"), st.integers(0, 1)
ENDS = st.builds(
    lambda role, index, how: TaskEnded(
        TaskEnd(role, index, how == "succeeded", 1, reason=how, stopped=how == "stopped", hopeless=how == "hopeless")
    ),
    ROLES,
    INDICES,
    st.sampled_from(["succeeded", "failed", "stopped", "hopeless"]),
)
LOSSES = st.builds(TaskLost, ROLES, INDICES, st.just("gone"))
STOPS = st.builds(StopAsked, st.sampled_from(["user", "preempted"]), st.just(None), st.booleans())
TIMES = st.builds(TimePassed, st.floats(0, 200))
COMMON = ENDS | LOSSES | TIMES
IN_A_CLUSTER = st.sampled_from([LimitNear(50.0, "Slurm's limit"), ClusterEnds("Slurm ends it"), CannotRun("unfit", "a", 1)])


def in_time(events: Sequence[Value]) -> list[Value]:
    """The same with a clock that only goes forward."""
    times = iter(sorted(event.now for event in events if isinstance(event, TimePassed)))
    return [TimePassed(next(times)) if isinstance(event, TimePassed) else event for event in events]


def replay(terms: AttemptTerms, events: Sequence[Value]) -> tuple[Outcome, list[tuple[str, bool]]]:
    """The outcome and the stops; what holds of every history is checked on the way."""
    machine = AttemptMachine(terms)
    stops: list[tuple[str, bool]] = []
    known: Outcome | None = None
    for event in events:
        for each in machine.handle(event):
            assert isinstance(each, (StopTasks, GiveUp)), "before the end tasks are only stopped"
            if isinstance(each, StopTasks):
                stops.append((each.why, each.now))
                machine.handle(StopStands(machine.stopping, 0.0))
        assert known is None or machine.outcome == known, "an outcome never changes"
        known = machine.outcome
    return outcome(machine), stops


@given(st.lists(COMMON | st.builds(StopAsked, now=st.booleans()) | st.just(StopAsked("preempted")), max_size=12).map(in_time))
def test_it_decides_as_the_driver_of_runs_did(events: list[Value]) -> None:
    old = OldDriver()
    for event in events:
        old.round(event)
    assert replay(TERMS, events) == (old.outcome(), old.stops)


@given(st.lists(COMMON | STOPS | IN_A_CLUSTER, max_size=12).map(in_time))
def test_it_decides_as_the_batch_script_did(events: list[Value]) -> None:
    old = OldBatchScript()
    for event in events:
        old.round(event)
    assert replay(BATCH, events) == (old.outcome(), old.stops)


@given(st.lists(COMMON | STOPS | IN_A_CLUSTER | st.just(StopStands("user", 1.0)), max_size=12), st.booleans())
def test_every_history_has_one_outcome(events: list[Value], elsewhere: bool) -> None:
    machine = AttemptMachine(BATCH.replace(decided_elsewhere=elsewhere))
    for event in events:
        machine.handle(event)
    first = outcome(machine)
    for event in events:
        machine.handle(event)
    assert outcome(machine) == machine.outcome == first


def test_ends_that_are_read_later_decide_in_their_order() -> None:
    ends = [TaskEnd("a", 0, True, 0), TaskEnd("b", 0, False, 1), TaskEnd("a", 1, False, 3), TaskEnd("a", 1, True, 0)]
    found = outcome_of_ends(RULES, ends)
    assert found is not None
    assert (found.cause, found.verdict.role, found.verdict.index) == ("user", "a", 1)
    assert outcome_of_ends(RULES, ends[:2]) is None
