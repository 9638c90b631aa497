"""The table of settling: each row by an example, and every combination against how commands and server decided before."""

from __future__ import annotations

from itertools import product

import pytest

from pailot.lifecycle import retry
from pailot.lifecycle.completion import Outcome, Verdict
from pailot.lifecycle.settling import (
    Conclude,
    Follow,
    Observe,
    Pending,
    Seen,
    Standing,
    Sweep,
    Swept,
    TryAgain,
    may_be_running,
    named,
    settle,
)
from pailot.values import Value

LOCAL = Standing(can_be_driven_on=False, needs_follower=False, queued=False, begun=1, name="demo", started=True)
CLUSTER = LOCAL.replace(can_be_driven_on=True)
SERVED = LOCAL.replace(queued=True)
BY_STOP = Verdict("STOPPED", "stopped by the user")
GOOD = Outcome("user", Verdict("SUCCEEDED", "done", "a", 0, 0))
BAD = Outcome("user", Verdict("FAILED", "broken", "a", 0, 3))
HOPELESS = Outcome("stopped", Verdict("FAILED", "a:0: the disk is full", "a", 0))
AWAY = Outcome("platform", Verdict("FAILED", "a node failed"))


def ended(state: str, reason: str) -> Conclude:
    return Conclude(Verdict(state, reason))


# A user's run on this machine


@pytest.mark.parametrize(
    ("changes", "swept", "told"),
    [
        ({}, None, Sweep()),
        ({}, Swept(alive=True), Pending("busy")),
        ({}, Swept(), ended("STOPPED", "its launcher was killed, so its tasks were stopped")),
        (
            {},
            Swept(lost=("a:0",)),
            ended("STOPPED", "its launcher and the shims of a:0 were killed, so they were ended, too"),
        ),
        (
            {},
            Swept(lost=("a:0", "a:1"), all_ended=False, pids=(7,)),
            ended(
                "STOPPED",
                "its launcher and the shims of a:0, a:1 were killed, and what was found of them was ended "
                "(a process that clears its environment is not found); process 7 may still be running",
            ),
        ),
        (
            {"started": False},
            Swept(pids=(7, 8)),
            ended(
                "FAILED",
                "its launcher was killed before all tasks had started (a platform failure); processes 7, 8 may still be running",
            ),
        ),
        ({"disk_full": "full"}, Swept(), ended("FAILED", "its launcher could not write down how it ended: full")),
        (
            {"rebooted": True},
            Swept(alive=True, pids=(7,)),
            ended("FAILED", "the machine was restarted while it ran (a platform failure)"),
        ),
        (
            {"damaged": "job.json"},
            Swept(pids=(7,)),
            ended(
                "FAILED",
                "its job.json is damaged or missing, so that it cannot be followed; "
                "if it ran in a cluster it may still be running; process 7 may still be running",
            ),
        ),
        ({"stop_asked": True}, Swept(), ended("STOPPED", "its launcher was killed, so its tasks were stopped")),
        ({"needs_follower": True}, None, Follow()),
    ],
)
def test_a_users_run_ends_with_its_launcher(changes: dict[str, object], swept: Swept | None, told: Value) -> None:
    assert settle(LOCAL.replace(**changes, swept=swept)) == told


# A run that goes on elsewhere


@pytest.mark.parametrize(
    ("changes", "seen", "told"),
    [
        ({"begun": 0}, None, ended("FAILED", "its launcher was killed before it was submitted")),
        ({}, None, Observe()),
        ({"shown": "WAITING"}, Seen("RUNNING"), Pending("goes-on", 0, "RUNNING")),
        ({"shown": "RUNNING"}, Seen("RUNNING"), Pending("goes-on", 0)),
        ({"shown": "STOPPING"}, Seen("RUNNING"), Pending("goes-on", 0)),
        ({"shown": "STOPPING", "begun": 3}, Seen("UNKNOWN"), Pending("goes-on", 2, "UNKNOWN")),
        ({}, Seen("RUNNING", GOOD), Conclude(GOOD.verdict)),
        ({}, Seen("RUNNING", BAD), Conclude(BAD.verdict)),
        ({"job_retry_count": 1, "stop_asked": True}, Seen("RUNNING", BAD), Conclude(BY_STOP)),
        (
            {"job_retry_count": 1},
            Seen("RUNNING", BAD),
            Pending(
                "goes-on",
                0,
                "WAITING",
                "broken; it is tried again by the next command that waits for it (pailot wait demo)",
            ),
        ),
        ({"retries": {"platform": 5}}, Seen("RUNNING", AWAY), Conclude(AWAY.verdict)),
        ({"queued": True}, Seen("RUNNING"), Pending("queue", 0, "RUNNING")),
        ({"queued": True, "stop_asked": True}, Seen("RUNNING"), Pending("busy", 0, "RUNNING", stop=True)),
        ({"queued": True, "stop_asked": True}, Seen("RUNNING", AWAY), Conclude(BY_STOP)),
        ({"queued": True, "handed_on": True}, None, Pending("queue", 1)),
        ({"queued": True, "begun": 0}, None, Pending("queue", 0)),
        ({"queued": True, "defect": "a mistake"}, None, Conclude(Verdict("FAILED", "a mistake"), stop_elsewhere=True)),
        ({"queued": True, "defect": "a mistake", "begun": 0}, None, ended("FAILED", "a mistake")),
    ],
)
def test_a_run_in_a_cluster_goes_on(changes: dict[str, object], seen: Seen | None, told: Value) -> None:
    assert settle(CLUSTER.replace(**changes, seen=seen)) == told


# A job of a server on its own machine


@pytest.mark.parametrize(
    ("changes", "swept", "told"),
    [
        ({}, None, Sweep()),
        ({"begun": 0}, None, Pending("queue", 0)),
        ({"begun": 2, "handed_on": True}, None, Pending("queue", 2)),
        ({"stop_asked": True}, None, Conclude(BY_STOP)),
        ({}, Swept(outcome=GOOD, pids=(7,)), Conclude(GOOD.verdict)),
        ({}, Swept(outcome=BAD), Conclude(BAD.verdict)),
        ({"job_retry_count": 9}, Swept(outcome=HOPELESS), Conclude(HOPELESS.verdict)),
        (
            {"job_retry_count": 1},
            Swept(outcome=BAD, pids=(7,)),
            TryAgain("user", "retry 1 of 1 (jobRetryCount: 1)", "broken; process 7 may still be running"),
        ),
        (
            {"retries": {"platform": 5}},
            Swept(),
            ended(
                "FAILED",
                "the process that kept it was killed (not tried again: the platform failed 6 times, and 5 retries are the limit)",
            ),
        ),
        ({"defect": "a mistake"}, None, Sweep()),
        ({"defect": "a mistake", "begun": 0}, None, ended("FAILED", "a mistake")),
        ({"defect": "a mistake", "stop_asked": True}, Swept(outcome=GOOD), ended("FAILED", "a mistake")),
    ],
)
def test_a_servers_job_is_tried_again_unless_it_is_decided(changes: dict[str, object], swept: Swept | None, told: Value) -> None:
    assert settle(SERVED.replace(**changes, swept=swept)) == told


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "the process that kept it was killed"),
        ({"rebooted": True}, "the machine was restarted while it ran"),
        ({"rebooted": True, "lost_driver": "the keeper says so"}, "the keeper says so"),
    ],
)
def test_a_retry_says_what_became_of_the_driver(changes: dict[str, object], words: str) -> None:
    told = settle(SERVED.replace(**changes, swept=Swept()))
    assert isinstance(told, TryAgain)
    assert (told.counted_as, told.ended) == ("platform", words)


def test_few_are_named() -> None:
    assert named(["a:0", "a:1"]) == "a:0, a:1"
    assert named([f"a:{index}" for index in range(7)]) == "a:0, a:1, a:2, a:3, a:4 and 2 more"
    assert may_be_running([]) == ""
    assert may_be_running(list(range(6))) == "; processes 0, 1, 2, 3, 4 and more may still be running"


# Every combination


def old_command(known: Standing, seen: Seen, swept: Swept) -> object:
    """How `queries.recover`, `reattach.settle` and `_verdict_without_driver` decided: state, or what they did."""
    if known.can_be_driven_on:
        if not known.begun:
            return "FAILED"
        if seen.outcome is None:
            return None
        used = known.retries
        cause, verdict = seen.outcome.cause, seen.outcome.verdict
        again = retry.next_attempt(cause, used.get("user", 0), used.get("platform", 0), known.job_retry_count)
        if verdict.state == "SUCCEEDED" or again is None:
            return verdict
        return BY_STOP if known.stop_asked else None
    if known.needs_follower:
        return "followed"
    if not known.rebooted and swept.alive:
        return None
    if known.damaged or known.rebooted or known.disk_full or not known.started:
        return "FAILED"
    return "STOPPED"


def old_server(known: Standing, seen: Seen, swept: Swept) -> object:
    """How `jobserver.settle` decided: state, verdict, or queue, again, busy with the attempt."""
    if known.defect:
        return known.defect
    if known.begun and not known.handed_on and known.can_be_driven_on:
        before = old_command(known, seen, swept)
        if before is not None:
            return before
        return ("busy", known.begun - 1) if known.stop_asked else ("queue", known.begun - 1)
    if known.stop_asked:
        return BY_STOP
    if known.handed_on or not known.begun:
        return ("queue", known.begun)
    decided = swept.outcome.verdict if swept.outcome is not None else None
    if swept.outcome is HOPELESS:
        return decided
    used = {"user": 0, "platform": 0, **known.retries}
    if decided is not None and (decided.state == "SUCCEEDED" or used["user"] >= known.job_retry_count):
        return decided
    cause = "platform" if decided is None else "user"
    again = retry.next_attempt(cause, used["user"], used["platform"], known.job_retry_count)
    return "FAILED" if again is None else ("again", again.counted_as)


def new(known: Standing, seen: Seen, swept: Swept) -> object:
    told = settle(known)
    for _ in range(2):
        if isinstance(told, Observe):
            assert known.seen is None
            known = known.replace(seen=seen)
            told = settle(known)
        elif isinstance(told, Sweep):
            assert known.swept is None
            known = known.replace(swept=swept)
            told = settle(known)
    assert not isinstance(told, (Observe, Sweep))
    if isinstance(told, Follow):
        return "followed"
    if isinstance(told, TryAgain):
        return ("again", told.counted_as)
    if isinstance(told, Pending):
        return (told.kind, told.attempt) if known.queued else None
    assert isinstance(told, Conclude)
    return told.verdict


def agrees(found: object, before: object) -> bool:
    """The same verdict, or one of that state or reason."""
    return found == before or (isinstance(found, Verdict) and before in (found.state, found.reason))


FLAGS = (False, True)
OUTCOMES = (None, GOOD, BAD, HOPELESS, AWAY)
USED: tuple[dict[str, int], ...] = ({}, {"user": 1}, {"platform": 5})


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
@pytest.mark.parametrize("traits", [(False, False), (True, False), (False, True)], ids=["local", "cluster", "followed"])
def test_commands_decide_as_they_did(traits: tuple[bool, bool], outcome: Outcome | None) -> None:
    for damaged, begun, stop, started, rebooted, full, alive, lost, count, used in product(
        ("", "job.json"), (0, 1, 3), FLAGS, FLAGS, FLAGS, ("", "full"), FLAGS, ((), ("a:0",)), (0, 1), USED
    ):
        driven_on, follower = (False, False) if damaged else traits
        known = Standing(
            driven_on, follower, False, begun, "demo", damaged, None, stop, False, started, rebooted, full,
            retries=used, job_retry_count=count,
        )  # fmt: skip
        seen, swept = Seen("RUNNING", outcome), Swept(alive=alive, lost=lost)
        assert agrees(new(known, seen, swept), old_command(known, seen, swept)), (known, seen, swept)


@pytest.mark.parametrize("outcome", OUTCOMES[:-1], ids=str)
@pytest.mark.parametrize("driven_on", FLAGS)
def test_a_server_decides_as_it_did(driven_on: bool, outcome: Outcome | None) -> None:
    for begun, stop, handed_on, rebooted, defect, count, used in product(
        (0, 1, 3), FLAGS, FLAGS, FLAGS, ("", "a mistake"), (0, 1, 2), USED
    ):
        known = Standing(
            driven_on, False, True, begun, stop_asked=stop, handed_on=handed_on, rebooted=rebooted, defect=defect,
            retries=used, job_retry_count=count,
        )  # fmt: skip
        seen, swept = Seen("RUNNING", outcome), Swept(outcome=outcome)
        assert agrees(new(known, seen, swept), old_server(known, seen, swept)), (known, seen, swept)
