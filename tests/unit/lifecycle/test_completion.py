"""The completion policy against a model of it that counts anew for every prefix of what happened."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle.completion import RoleRule, Tally, TaskEnd, Verdict, outcome_of_stop, waits_to_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Decision = tuple[str, str | None, int | None, int | None] | None


def model(rules: Sequence[RoleRule], ended: Sequence[TaskEnd]) -> Decision:
    """Brute force: the shortest history in which some role has enough failed or succeeded tasks decides."""
    for length in range(1, len(ended) + 1):
        history = ended[:length]
        for rule in rules:
            failed = [end for end in history if end.role == rule.name and not end.succeeded]
            succeeded = [end for end in history if end.role == rule.name and end.succeeded]
            for state, bound, ends in (("FAILED", rule.min_failed, failed), ("SUCCEEDED", rule.min_succeeded, succeeded)):
                if bound is not None and len(ends) >= bound:
                    return (state, ends[-1].role, ends[-1].index, ends[-1].exit_code)
    open_tasks = {(rule.name, index) for rule in rules for index in range(rule.instances)}
    open_tasks -= {(end.role, end.index) for end in ended}
    return None if open_tasks else ("SUCCEEDED", None, None, 0)


def judge(rules: Iterable[RoleRule], ended: Iterable[TaskEnd]) -> Verdict | None:
    """The verdict over ends in the order in which they happened; None while the job goes on."""
    tally = Tally(rules)
    for end in ended:
        tally.add(end)
    return tally.verdict


def decision(verdict: Verdict | None) -> Decision:
    return (verdict.state, verdict.role, verdict.index, verdict.exit_code) if verdict else None


def fate(role: str, index: int, succeeded: bool) -> TaskEnd:
    return TaskEnd(role, index, succeeded, 0 if succeeded else 10 + index)


def histories(sizes: dict[str, int]) -> Iterator[list[TaskEnd]]:
    """Every order and every outcome of all tasks."""
    tasks = [(role, index) for role, size in sizes.items() for index in range(size)]
    for order in permutations(tasks):
        for outcomes in product((False, True), repeat=len(tasks)):
            yield [fate(role, index, succeeded) for (role, index), succeeded in zip(order, outcomes, strict=True)]


@st.composite
def jobs(draw: st.DrawFn) -> tuple[list[RoleRule], list[TaskEnd]]:
    """Rules, and the ends of all tasks in some order."""
    rules = []
    for name in draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)):
        instances = draw(st.integers(1, 5))
        bounds = st.none() | st.integers(1, instances + 2)
        rules.append(RoleRule(name, instances, draw(bounds), draw(bounds)))
    order = draw(st.permutations([(rule.name, index) for rule in rules for index in range(rule.instances)]))
    ended = [fate(role, index, draw(st.booleans())) for role, index in order]
    return rules, ended


@pytest.mark.parametrize("instances", [1, 2, 3])
def test_one_role_every_bound_every_history(instances: int) -> None:
    for min_failed, min_succeeded in product((None, *range(1, instances + 2)), repeat=2):
        rules = [RoleRule("a", instances, min_failed, min_succeeded)]
        for ended in histories({"a": instances}):
            for length in range(instances + 1):
                assert decision(judge(rules, ended[:length])) == model(rules, ended[:length])


@pytest.mark.parametrize("bounds_of_a", list(product((None, 1, 2), repeat=2)))
def test_two_roles_every_bound_every_history(bounds_of_a: tuple[int | None, int | None]) -> None:
    for bounds_of_b in product((None, 1, 2, 3), repeat=2):
        rules = [RoleRule("a", 1, *bounds_of_a), RoleRule("b", 2, *bounds_of_b)]
        for ended in histories({"a": 1, "b": 2}):
            assert decision(judge(rules, ended)) == model(rules, ended)


@given(jobs(), st.data())
def test_it_agrees_with_the_model(job: tuple[list[RoleRule], list[TaskEnd]], data: st.DataObject) -> None:
    rules, ended = job
    ended = ended[: data.draw(st.integers(0, len(ended)))]
    assert decision(judge(rules, ended)) == model(rules, ended)


@given(jobs())
def test_a_verdict_once_given_stays(job: tuple[list[RoleRule], list[TaskEnd]]) -> None:
    rules, ended = job
    verdicts = [judge(rules, ended[:length]) for length in range(len(ended) + 1)]
    given_at = next(length for length, verdict in enumerate(verdicts) if verdict)  # when all tasks have ended there is one
    assert verdicts[:given_at] == [None] * given_at
    assert all(verdict == verdicts[given_at] for verdict in verdicts[given_at:])


@given(jobs(), st.data())
def test_the_order_of_what_did_not_decide_does_not_matter(job: tuple[list[RoleRule], list[TaskEnd]], data: st.DataObject) -> None:
    rules, ended = job
    verdict = judge(rules, ended)
    assert verdict
    if verdict.role is None:
        before, rest = ended, []
    else:
        at = next(at for at, end in enumerate(ended) if (end.role, end.index) == (verdict.role, verdict.index))
        before, rest = ended[:at], ended[at:]
    assert judge(rules, [*data.draw(st.permutations(before)), *rest]) == verdict


@given(jobs(), st.data())
def test_the_order_of_the_roles_does_not_matter(job: tuple[list[RoleRule], list[TaskEnd]], data: st.DataObject) -> None:
    rules, ended = job
    assert judge(data.draw(st.permutations(rules)), ended) == judge(rules, ended)


@given(jobs(), st.data())
def test_an_end_that_is_told_again_does_not_count(job: tuple[list[RoleRule], list[TaskEnd]], data: st.DataObject) -> None:
    rules, ended = job
    told = []
    for at, end in enumerate(ended):
        again = data.draw(st.lists(st.sampled_from(ended[: at + 1]), max_size=2))
        told += [end, *(each.replace(succeeded=data.draw(st.booleans())) for each in again)]
    assert judge(rules, told) == judge(rules, ended)


@given(jobs())
def test_counting_one_at_a_time_is_the_same(job: tuple[list[RoleRule], list[TaskEnd]]) -> None:
    rules, ended = job
    tally = Tally(rules)
    for length, end in enumerate(ended, 1):
        assert tally.add(end) == tally.verdict == judge(rules, ended[:length])


@given(jobs())
def test_without_bounds_a_job_succeeds_when_all_is_over_and_not_before(job: tuple[list[RoleRule], list[TaskEnd]]) -> None:
    rules = [RoleRule(rule.name, rule.instances, None, None) for rule in job[0]]
    assert judge(rules, job[1][:-1]) is None
    assert decision(judge(rules, job[1])) == ("SUCCEEDED", None, None, 0)


def test_the_defaults_let_the_first_role_that_is_done_end_the_job() -> None:
    rules = [RoleRule("ps", 1, 1, 1), RoleRule("worker", 2, 1, 2)]
    assert judge(rules, [fate("worker", 0, True)]) is None
    assert decision(judge(rules, [fate("worker", 0, True), fate("worker", 1, True)])) == ("SUCCEEDED", "worker", 1, 0)
    assert decision(judge(rules, [fate("worker", 0, True), fate("ps", 0, False)])) == ("FAILED", "ps", 0, 10)


@pytest.mark.parametrize(
    ("rule", "ends", "reason"),
    [
        (
            RoleRule("worker", 2, 1, 2),
            [TaskEnd("worker", 1, False, 3)],
            "worker:1 exited with 3, and 1 failed task of 'worker' fails the job (minFailedInstances: 1)",
        ),
        (
            RoleRule("worker", 3, 2, None),
            [TaskEnd("worker", 2, False, 1), TaskEnd("worker", 0, False, signal=9)],
            "worker:0 was killed by signal 9 (SIGKILL), and 2 failed tasks of 'worker' fail the job (minFailedInstances: 2)",
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, True, 0)],
            "ps:0 succeeded, and 1 succeeded task of 'ps' completes the job (minSucceededInstances: 1)",
        ),
        (
            RoleRule("ps", 2, 1, 2),
            [TaskEnd("ps", 0, True, 0), TaskEnd("ps", 1, True, 0)],
            "ps:1 succeeded, and 2 succeeded tasks of 'ps' complete the job (minSucceededInstances: 2)",
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, False, 137, reason="out of memory")],
            (
                "ps:0 exited with 137, which a shell answers for a command killed by SIGKILL (out of memory), "
                "and 1 failed task of 'ps' fails the job (minFailedInstances: 1)"
            ),
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, False, 0, reason="its exit callback exited with 2")],
            (
                "ps:0 failed although its commands exited with 0 (its exit callback exited with 2), "
                "and 1 failed task of 'ps' fails the job (minFailedInstances: 1)"
            ),
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, False, 2, reason="exited with 2 because it used more memory than it asked for")],
            (
                "ps:0 exited with 2 because it used more memory than it asked for, "
                "and 1 failed task of 'ps' fails the job (minFailedInstances: 1)"
            ),
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, False, 2, reason="its start callbacks exited with 2")],
            "ps:0 failed: its start callbacks exited with 2, and 1 failed task of 'ps' fails the job (minFailedInstances: 1)",
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, True, 0, reason="exited with 0")],
            "ps:0 succeeded, and 1 succeeded task of 'ps' completes the job (minSucceededInstances: 1)",
        ),
        (
            RoleRule("ps", 1, 1, 1),
            [TaskEnd("ps", 0, False, reason="its directory could not be made")],
            "ps:0 failed (its directory could not be made), and 1 failed task of 'ps' fails the job (minFailedInstances: 1)",
        ),
        (
            RoleRule("worker", 2, 2, None),
            [TaskEnd("worker", 0, False, 1), TaskEnd("worker", 1, True, 0)],
            (
                "all tasks have ended, 1 succeeded and 1 failed, and no role reached a bound of its completion policy, "
                "which counts as success"
            ),
        ),
    ],
)
def test_the_reason_says_which_task_how_and_by_which_rule(rule: RoleRule, ends: list[TaskEnd], reason: str) -> None:
    verdict = judge([rule], ends)
    assert verdict
    assert verdict.reason == reason


def test_the_first_end_of_a_task_counts() -> None:
    rules = [RoleRule("a", 2, 2, 2)]
    assert judge(rules, [fate("a", 0, True), fate("a", 0, True)]) is None
    assert decision(judge(rules, [fate("a", 0, True), fate("a", 0, False), fate("a", 1, True)])) == ("SUCCEEDED", "a", 1, 0)


def test_a_task_killed_by_a_signal_has_no_exit_code() -> None:
    assert decision(judge([RoleRule("a", 1, 1, 1)], [TaskEnd("a", 0, False, signal=15)])) == ("FAILED", "a", 0, None)


@pytest.mark.parametrize("stranger", [fate("b", 0, True), fate("a", 1, True), fate("a", -1, False)])
def test_an_end_of_a_task_that_the_job_does_not_have_is_refused(stranger: TaskEnd) -> None:
    with pytest.raises(ValueError, match=f"no task {stranger.role}:{stranger.index}"):
        judge([RoleRule("a", 1, 1, 1)], [stranger])


@pytest.mark.parametrize(
    ("why", "limit", "cause", "state", "reason"),
    [
        ("user", None, "stopped", "STOPPED", "stopped by the user"),
        ("launcher-lost", 5, "stopped", "STOPPED", "stopped by the user"),
        ("timeout", 5, "user", "FAILED", "it ran longer than its limit of 5 seconds (maxRunSeconds)"),
        ("timeout", None, "user", "FAILED", "it ran longer than its limit (maxRunSeconds)"),
        ("preempted", 5, "preempted", "STOPPED", "it made room for a job with more right to the machine"),
        ("", 5, "user", "FAILED", "it ended without a result"),
    ],
)
def test_the_reason_for_a_stop_is_the_outcome_of_what_no_task_decided(
    why: str, limit: float | None, cause: str, state: str, reason: str
) -> None:
    outcome = outcome_of_stop(why, limit)
    assert (outcome.cause, outcome.verdict) == (cause, Verdict(state, reason))


def test_an_end_that_nothing_explains_is_blamed_as_the_driver_says() -> None:
    assert outcome_of_stop("", None, "platform").cause == "platform"


@pytest.mark.parametrize(
    ("rules", "ends", "told"),
    [
        (
            [RoleRule("worker", 2, 1, None), RoleRule("ps", 1, 1, None)],
            [fate("worker", 0, True), fate("worker", 1, True)],
            (
                "all of worker done; ps runs;"
                " no role ends the job by success (minSucceededInstances), so it goes on until all tasks have ended"
            ),
        ),
        (
            [RoleRule("worker", 4, 1, 4), RoleRule("ps", 1, 1, None)],
            [fate("worker", 2, True)],
            "1 of 4 tasks of worker done; ps runs; the job succeeds with 3 more of worker",
        ),
        (
            [RoleRule("a", 2, None, 2), RoleRule("b", 1, None, 1), RoleRule("c", 1, None, 1)],
            [fate("a", 0, False)],  # its bound is out of reach now
            "1 of 2 tasks of a done; b runs; c runs; the job succeeds with 1 more of b or 1 more of c",
        ),
        (
            [RoleRule("a", 2, 1, 3)],
            [],
            "a runs; no role ends the job by success (minSucceededInstances), so it goes on until all tasks have ended",
        ),
    ],
)
def test_a_job_that_runs_tells_what_it_waits_for(rules: list[RoleRule], ends: list[TaskEnd], told: str) -> None:
    assert waits_to_end(rules, ends) == told


def test_a_job_of_very_many_roles_names_some_of_them() -> None:
    told = waits_to_end([RoleRule(f"r{number}", 1, 1, 1) for number in range(5000)], [])
    assert "; 4990 more roles; " in told
    assert told.endswith("1 more of r9 or of another role")
