"""What runs again, when, and what it is counted as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle.retry import LAUNCH_TRIES, PLATFORM_LIMIT, delay, launch_delay, next_attempt, why_not

JITTER = st.floats(0, 1, exclude_max=True)
COUNT = st.integers(0, 20)


def test_the_first_retry_comes_at_once_and_the_others_ever_later() -> None:
    assert [delay(number, 1, 0) for number in range(1, 11)] == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert [delay(number, 0.5, 0) for number in (1, 2, 3)] == [0, 0.5, 1]
    assert [delay(number, 0, 0) for number in (1, 2, 30)] == [0, 0, 0]


def test_a_base_above_the_limit_is_kept_and_not_doubled() -> None:
    assert [delay(number, 300, 0) for number in (1, 2, 3, 9)] == [0, 300, 300, 300]


@given(st.integers(2, 10**9), st.floats(0, 1000), JITTER)
def test_jitter_shortens_by_at_most_half(number: int, base: float, jitter: float) -> None:
    full = delay(number, base, 0)
    assert full / 2 <= delay(number, base, jitter) <= full <= max(60, base)


@given(st.integers(1, 100), st.floats(0, 1000), JITTER)
def test_with_the_same_jitter_delays_never_shrink(number: int, base: float, jitter: float) -> None:
    assert delay(number, base, jitter) <= delay(number + 1, base, jitter)


@pytest.mark.parametrize(
    "arguments", [(0, 1, 0), (-1, 1, 0), (1, -1, 0), (1, 1, 1), (1, 1, -0.1), (2, float("nan"), float("nan"))]
)
def test_what_makes_no_sense_is_refused(arguments: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match=r"retries count from 1|makes no sense"):
        delay(*arguments)


@given(st.lists(st.sampled_from(["user", "platform", "preempted"]), max_size=60), COUNT)
def test_counts_over_a_whole_life(causes: list[str], job_retry_count: int) -> None:
    """A job that ends for one cause after another is tried again exactly as often as each cause allows."""
    used = {"user": 0, "platform": 0, "preempted": 0}
    allowed = {"user": job_retry_count, "platform": 5, "preempted": len(causes)}
    for at, cause in enumerate(causes):
        permit = next_attempt(cause, used["user"], used["platform"], job_retry_count)
        if causes[:at].count(cause) == allowed[cause]:
            assert permit is None
            assert why_not(cause, job_retry_count).startswith("not tried again: ")
            return
        assert permit
        assert permit.counted_as == cause
        used[permit.counted_as] += 1


@given(COUNT, COUNT, COUNT)
def test_what_was_stopped_is_never_tried_again(used_user: int, used_platform: int, job_retry_count: int) -> None:
    assert next_attempt("stopped", used_user, used_platform, job_retry_count) is None


def test_what_the_platform_did_is_not_held_against_the_user() -> None:
    assert next_attempt("platform", used_user=3, used_platform=0, job_retry_count=0)
    assert next_attempt("user", used_user=0, used_platform=PLATFORM_LIMIT, job_retry_count=1)


def test_every_cause_has_its_end() -> None:
    assert next_attempt("user", used_user=1, used_platform=0, job_retry_count=1) is None
    assert next_attempt("platform", used_user=0, used_platform=PLATFORM_LIMIT, job_retry_count=9) is None
    assert next_attempt("stopped", used_user=0, used_platform=0, job_retry_count=9) is None


def test_the_words() -> None:
    def reason(cause: str, *counts: int) -> str:
        permit = next_attempt(cause, *counts)
        assert permit
        return permit.reason

    assert reason("user", 1, 4, 3) == "retry 2 of 3 (jobRetryCount: 3)"
    assert reason("platform", 0, 4, 0) == (
        "the platform failed, not the job: retry 5 of at most 5 for that reason, not counted against jobRetryCount"
    )
    assert reason("preempted", 0, 0, 0) == "the job made room for another one: it runs again, not counted against jobRetryCount"
    assert why_not("user", 3) == "not tried again: all retries are used up (jobRetryCount: 3)"
    assert why_not("user", 0) == "not tried again: no retries were asked for (jobRetryCount: 0)"
    assert why_not("platform", 0) == "not tried again: the platform failed 6 times, and 5 retries are the limit"
    assert why_not("stopped", 9) == "not tried again: it was stopped"


def test_a_cluster_is_asked_to_start_a_task_ten_times_ever_later() -> None:
    assert [launch_delay(tries) for tries in range(1, LAUNCH_TRIES + 2)] == [0, 1, 2, 4, 8, 15, 15, 15, 15, None, None]


def test_an_unknown_cause_is_refused() -> None:
    for ask in (lambda: next_attempt("weather", 0, 0, 0), lambda: why_not("weather", 0), lambda: why_not("preempted", 0)):
        with pytest.raises(ValueError, match="cause"):
            ask()
