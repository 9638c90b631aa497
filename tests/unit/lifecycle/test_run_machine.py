"""The decisions over a run and its attempts: each by an example, all of them against how the driver decided before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle import retry
from pailot.lifecycle.attempt_machine import AllGone, AttemptTerms, EngineDecided, StopAsked, StopTasks, TaskEnded, TaskLost
from pailot.lifecycle.completion import Outcome, RoleRule, TaskEnd, Verdict
from pailot.lifecycle.run_machine import (
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
from pailot.values import Value

ATTEMPT = AttemptTerms((RoleRule("a", 1, 1, 1),), 30.0)
TERMS = RunTerms(ATTEMPT, job_retry_count=1, retry_delay_seconds=1.0)
ELSEWHERE = TERMS.replace(attempt=ATTEMPT.replace(decided_elsewhere=True, without_result="platform"))

DONE = TaskEnded(TaskEnd("a", 0, True, 0))
FAILED = TaskEnded(TaskEnd("a", 0, False, 3))
LOST = TaskLost("a", 0, "gone")
WELL = Verdict("SUCCEEDED", "a:0 succeeded, and 1 succeeded task of 'a' completes the job (minSucceededInstances: 1)", "a", 0, 0)
BADLY = Verdict("FAILED", "a:0 exited with 3, and 1 failed task of 'a' fails the job (minFailedInstances: 1)", "a", 0, 3)
AWAY = Verdict("FAILED", "a:0 was lost: gone", "a", 0)
FIRST_RETRY = "retry 1 of 1 (jobRetryCount: 1)"
RUNNING = (AttemptPrepared(False), AttemptStarted(0.0))


def run(*events: Value, terms: RunTerms = TERMS, first: int = 0, retries: dict[str, int] | None = None) -> RunMachine:
    """A run to which all that has happened."""
    machine = RunMachine(terms, first=first, retries=retries)
    machine.begin()
    for event in events:
        machine.handle(event)
    return machine


# One attempt after the other


def test_from_the_start_to_the_end() -> None:
    machine = RunMachine(TERMS)
    assert machine.begin() == (PrepareAttempt(0),)
    assert machine.handle(AttemptPrepared(False)) == (LaunchTasks(),)
    assert machine.handle(AttemptStarted(0.0)) == (Follow(),)
    assert machine.handle(DONE) == (StopTasks("completed", 30.0, False),)
    assert machine.handle(AllGone()) == (Finish(WELL),)
    assert machine.finished == Finish(WELL)


def test_what_failed_is_tried_again_at_once_then_not() -> None:
    machine = run(*RUNNING, FAILED)
    assert machine.handle(AllGone(0.5)) == (ShowRetry(1, 0.0, BADLY, FIRST_RETRY), Pause(0.0))
    assert machine.retries == {"user": 1, "platform": 0}
    assert machine.handle(PauseOver()) == (PrepareAttempt(1),)
    for event in (*RUNNING, FAILED):
        machine.handle(event)
    assert machine.handle(AllGone()) == (Finish(BADLY),)


def test_a_second_retry_waits_and_chance_spreads_it() -> None:
    machine = run(*RUNNING, LOST, first=1, retries={"platform": 1})
    shown, pause = machine.handle(AllGone(0.5))
    assert pause == Pause(0.75)
    assert isinstance(shown, ShowRetry)
    assert (shown.number, shown.ended) == (2, AWAY)
    assert machine.retries == {"user": 0, "platform": 2}


def test_a_deadline_is_that_of_the_attempt() -> None:
    machine = run(AttemptPrepared(False), AttemptStarted(10.0), terms=TERMS.replace(attempt=ATTEMPT.replace(max_run_seconds=5.0)))
    assert machine.attempt
    assert machine.attempt.moment == 15.0


def test_the_engine_counts_its_own_retries() -> None:
    machine = run(*RUNNING, terms=ELSEWHERE)
    verdict = Verdict("FAILED", "the server says so")
    assert machine.handle(EngineDecided(Outcome("stopped", verdict, {"user": 4, "preempted": 2}))) == ()
    assert machine.handle(AllGone()) == (Finish(verdict),)
    assert machine.retries == {"user": 4, "platform": 0, "preempted": 2}


# Starting


def test_a_run_that_is_to_stop_is_not_started() -> None:
    machine = run(StopAsked())
    assert machine.handle(AttemptPrepared(False)) == (Finish(Verdict("STOPPED", "stopped before it started")),)


def test_a_run_that_was_begun_is_followed_before_it_is_stopped() -> None:
    machine = run(StopAsked())
    assert machine.handle(AttemptPrepared(True)) == (LaunchTasks(),)


def test_what_cannot_be_started_has_failed_and_is_not_tried_again() -> None:
    machine = run(AttemptPrepared(False))
    finish = Finish(Verdict("FAILED", "it could not be started: no such image"), 4)
    assert machine.handle(StartFailed("no such image", 4)) == (KillTasks(), finish)


def test_a_stop_while_it_starts_is_a_stop() -> None:
    machine = run(AttemptPrepared(False), StopAsked(), PreemptAsked())
    finish = Finish(Verdict("STOPPED", "stopped before it started"))
    assert machine.handle(StartFailed("stopped while it waited", 4)) == (KillTasks(), finish)


def test_making_room_while_it_starts_is_no_failure() -> None:
    machine = run(AttemptPrepared(False), PreemptAsked())
    kill, shown, back = machine.handle(StartFailed("stopped while it waited"))
    assert kill == KillTasks()
    assert isinstance(shown, ShowRetry)
    assert back == HandBack(1, "preempted", "it made room for another job before it had started")
    assert machine.retries == {"user": 0, "platform": 0}


# Stopping


@pytest.mark.parametrize("now", [False, True])
def test_a_stop_is_shown(now: bool) -> None:
    machine = run(*RUNNING)
    asked = StopAsked(grace_seconds=5.0, now=now)
    assert machine.stopping == ""
    assert machine.handle(asked) == (StopTasks("user", 5.0, now), ShowStopping("user", now))
    assert machine.stopping == "user"
    assert machine.handle(AllGone()) == (Finish(Verdict("STOPPED", "stopped by the user")),)
    assert machine.stopping == ""


def test_a_stop_between_two_attempts() -> None:
    machine = run(*RUNNING, FAILED, AllGone())
    assert machine.handle(StopAsked()) == (Finish(Verdict("STOPPED", "stopped while waiting to be tried again")),)


def test_a_failure_while_it_is_stopped_is_not_tried_again() -> None:
    machine = run(*RUNNING, StopAsked(), FAILED)
    assert machine.handle(AllGone())[-1] == Pause(0.0)
    assert machine.handle(StopAsked()) == (Finish(Verdict("STOPPED", "stopped while waiting to be tried again")),)


# Making room


def test_what_makes_room_is_handed_back() -> None:
    machine = run(*RUNNING)
    assert machine.handle(PreemptAsked()) == (StopTasks("preempted", 30.0, False), ShowStopping("preempted", False))
    reason = "it made room for a job with more right to the machine"
    shown, back = machine.handle(AllGone())
    assert shown == ShowRetry(1, 0.0, Verdict("STOPPED", reason), retry.next_attempt("preempted", 0, 0, 1).reason)  # type: ignore[union-attr]  # always tried again
    assert back == machine.finished == HandBack(1, "preempted", reason)


def test_what_makes_room_and_is_to_stop_has_stopped() -> None:
    machine = run(*RUNNING, PreemptAsked(), StopAsked())
    assert machine.handle(AllGone()) == (Finish(Verdict("STOPPED", "stopped by the user")),)


def test_making_room_between_two_attempts() -> None:
    machine = run(*RUNNING, FAILED, AllGone())
    assert machine.handle(PreemptAsked()) == (HandBack(1, "preempted", BADLY.reason),)


def test_what_a_cluster_preempts_is_tried_again_here() -> None:
    machine = run(*RUNNING, EngineDecided(Outcome("preempted", Verdict("FAILED", "Slurm made room"))), terms=ELSEWHERE)
    assert machine.handle(AllGone())[-1] == Pause(0.0)
    assert machine.retries == {"user": 0, "platform": 0}


# Publishing, and full disks


@pytest.mark.parametrize(
    ("done", "verdict"),
    [
        (PublishEnded(), WELL),
        (PublishEnded("no room there"), Verdict("FAILED", "no room there")),
        (PublishEnded("no room there", True), Verdict("STOPPED", "stopped while its outputs were brought away")),
    ],
)
def test_a_run_has_succeeded_when_its_outputs_are_in_place(done: PublishEnded, verdict: Verdict) -> None:
    machine = run(*RUNNING, DONE, terms=TERMS.replace(publishes=True))
    assert machine.handle(AllGone()) == (Publish(0),)
    assert machine.handle(StopAsked()) == ()  # the one who publishes is told, and says so
    assert machine.handle(PreemptAsked()) == ()
    assert machine.handle(done) == (Finish(verdict),)


def test_a_failed_run_publishes_nothing() -> None:
    machine = run(*RUNNING, FAILED, terms=TERMS.replace(publishes=True, job_retry_count=0))
    assert machine.handle(AllGone()) == (Finish(BADLY),)


@pytest.mark.parametrize("before", [(), RUNNING, (*RUNNING, FAILED, AllGone()), (*RUNNING, PreemptAsked(), AllGone())])
def test_a_full_disk_ends_the_run(before: tuple[Value, ...]) -> None:
    machine = run(*before)
    assert machine.handle(DiskFull("full")) == (KillTasks(), Finish(Verdict("FAILED", "full")))


def test_a_full_disk_does_not_change_a_verdict() -> None:
    machine = run(*RUNNING, DONE, AllGone())
    assert machine.handle(DiskFull("full")) == ()
    assert machine.finished == Finish(WELL)


@pytest.mark.parametrize("event", [FAILED, AllGone(), PauseOver(), PublishEnded(), StopAsked(), PreemptAsked()])
def test_what_is_told_out_of_turn_does_no_harm(event: Value) -> None:
    assert run().handle(event) == ()


# Every history


class Script(Value):
    """What happens to a run: for each attempt how its start and its tasks go, and in which round others want something of it.

    Rounds are counted over the whole run; the driver looks once before a start, once after a failed one, at each step of an
    attempt, and between two attempts.
    """

    attempts: tuple[tuple[str, str], ...]
    stop_at: int
    preempt_at: int
    retry_count: int
    publishes: str


def old_end(script: Script) -> tuple[str, str | None, int, dict[str, int]]:
    """How the driver decided (`_attempts`, `_attempt`, `_publish`): state or `again`, reason, next attempt, retries."""
    used, number, rounds = {"user": 0, "platform": 0}, 0, 0
    while True:
        started, ending = script.attempts[number % len(script.attempts)]
        rounds += 1
        if rounds >= script.stop_at:
            return "STOPPED", "stopped before it started", number, used
        if started == "fails":
            rounds += 1
            if rounds >= script.stop_at:
                return "STOPPED", "stopped before it started", number, used
            if rounds < script.preempt_at:  # one that was to make room counted as failed: that was a fault
                return "FAILED", "it could not be started: broken", number, used
            cause, verdict = "preempted", Verdict("STOPPED", "it made room for another job before it had started")
        else:
            rounds += 1
            cause, verdict = {
                "succeeds": ("user", WELL),
                "fails": ("user", BADLY),
                "lost": ("platform", AWAY),
            }.get(ending) or (
                ("stopped", Verdict("STOPPED", "stopped by the user"))
                if rounds >= script.stop_at
                else ("preempted", Verdict("STOPPED", "it made room for a job with more right to the machine"))
                if rounds >= script.preempt_at
                else ("user", Verdict("FAILED", "it ended without a result"))
            )
        if verdict.state == "SUCCEEDED":
            if script.publishes == "fails":
                return "FAILED", "no room", number, used
            return "SUCCEEDED", WELL.reason, number, used
        again = retry.next_attempt(cause, used["user"], used["platform"], script.retry_count)
        if again is None:
            return verdict.state, verdict.reason, number, used
        if again.counted_as in used:
            used[again.counted_as] += 1
        number += 1
        if again.counted_as == "preempted" and rounds >= script.preempt_at:
            if rounds >= script.stop_at:
                return "STOPPED", "stopped by the user", number, used
            return "again", verdict.reason, number, used
        rounds += 1
        if rounds >= script.stop_at:
            return "STOPPED", "stopped while waiting to be tried again", number, used
        if rounds >= script.preempt_at:
            return "again", verdict.reason, number, used


class Play:
    """A driver without tasks: does what it is told after a script, and checks what holds of every history."""

    def __init__(self, script: Script) -> None:
        self.script, self.rounds = script, 0
        self.machine = RunMachine(TERMS.replace(publishes=script.publishes != "not", job_retry_count=script.retry_count), first=0)

    def look(self) -> tuple[Value, ...]:
        self.rounds += 1
        todo: tuple[Value, ...] = ()
        if self.rounds >= self.script.stop_at:
            todo = self.machine.handle(StopAsked())
        if self.rounds >= self.script.preempt_at:
            todo += self.machine.handle(PreemptAsked())
        return todo

    def end(self) -> tuple[str, str | None, int, dict[str, int]]:
        machine, todo = self.machine, self.machine.begin()
        while machine.finished is None:
            *before, last = todo
            assert all(isinstance(each, (KillTasks, ShowRetry)) for each in before)
            todo = self.do(last)
        assert todo[-1] is machine.finished
        assert [machine.handle(event) for event in (*RUNNING, FAILED, AllGone(), PauseOver(), StopAsked())] == [()] * 6
        if isinstance(machine.finished, HandBack):
            return "again", machine.finished.reason, machine.finished.number, machine.retries
        return machine.finished.verdict.state, machine.finished.verdict.reason, machine.number, machine.retries

    def do(self, last: Value) -> tuple[Value, ...]:
        machine = self.machine
        started, ending = self.script.attempts[machine.number % len(self.script.attempts)]
        if isinstance(last, PrepareAttempt):
            self.look()
            return machine.handle(AttemptPrepared(False))
        if isinstance(last, LaunchTasks):
            if started == "fails":
                self.look()
                return machine.handle(StartFailed("broken"))
            return machine.handle(AttemptStarted(0.0))
        if isinstance(last, Follow):
            event = {"succeeds": DONE, "fails": FAILED, "lost": LOST}.get(ending)
            if event is not None:
                machine.handle(event)
            assert all(isinstance(each, (StopTasks, ShowStopping)) for each in self.look())
            return machine.handle(AllGone())
        if isinstance(last, Pause):
            return self.look() or machine.handle(PauseOver())
        assert isinstance(last, Publish)
        return machine.handle(PublishEnded("no room" if self.script.publishes == "fails" else ""))


SCRIPTS = st.builds(
    Script,
    st.lists(
        st.tuples(st.sampled_from(["well", "well", "fails"]), st.sampled_from(["succeeds", "fails", "lost", "stopped"])),
        min_size=1,
        max_size=5,
    ).map(tuple),
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(0, 3),
    st.sampled_from(["not", "well", "fails"]),
)


@given(SCRIPTS)
def test_it_decides_as_the_driver_did(script: Script) -> None:
    assert Play(script).end() == old_end(script)
