"""What runs again, how soon, and what it is counted as.

`taskRetryCount` bounds the retries of a task, `jobRetryCount` those of the whole job. What the platform did is not held
against the user: it has a bound of its own, and preemption has none.
"""

from __future__ import annotations

from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

PLATFORM_LIMIT = 5
"""How often a job is tried again because the platform failed."""
LONGEST_DELAY = 60.0
LAUNCH_TRIES = 10
"""How often a cluster is asked to start a task."""
LONGEST_LAUNCH_DELAY = 15.0

USER = "user"
"""The job itself failed."""
PLATFORM = "platform"
"""Its surroundings failed: a node was lost, a host rebooted under a server."""
PREEMPTED = "preempted"
"""It made room for another job."""
STOPPED = "stopped"
"""Someone wanted it to end."""


class Retry(Value):
    """Permission for one more attempt: what it is counted as, and why, in words."""

    counted_as: Literal["user", "platform", "preempted"]
    reason: str


def delay(retry: int, base: float, jitter: float) -> float:
    """Seconds to wait before a retry, 1 being the first: that one at once, the second after `base`, then doubling.

    It stops growing at 60 s, or at `base` if that is more. `jitter`, a random number in [0, 1), shortens the delay by up to
    half (by `jitter / 2` of it), so that tasks which failed together do not all come back together.
    """
    if retry < 1:
        raise ValueError(f"retries count from 1, not {retry}")
    if base < 0 or not 0 <= jitter < 1:
        raise ValueError(f"a delay of {base} s with a jitter of {jitter} makes no sense")
    if retry == 1:
        return 0.0
    doubled = base * 2.0 ** min(retry - 2, 64)  # no number of retries may overflow
    return min(doubled, max(LONGEST_DELAY, base)) * (1 - jitter / 2)


def next_attempt(cause: str, used_user: int, used_platform: int, job_retry_count: int) -> Retry | None:
    """Whether the job is tried again after an attempt that ended for `cause`; None: it is not, see `why_not`.

    `used_user` and `used_platform` are the retries already counted as such.
    """
    if cause == USER:
        if used_user < job_retry_count:
            return Retry("user", f"retry {used_user + 1} of {job_retry_count} (jobRetryCount: {job_retry_count})")
        return None
    if cause == PLATFORM:
        if used_platform < PLATFORM_LIMIT:
            number = f"retry {used_platform + 1} of at most {PLATFORM_LIMIT} for that reason"
            return Retry("platform", f"the platform failed, not the job: {number}, not counted against jobRetryCount")
        return None
    if cause == PREEMPTED:
        return Retry("preempted", "the job made room for another one: it runs again, not counted against jobRetryCount")
    if cause == STOPPED:
        return None
    raise ValueError(f"unknown cause {cause!r}")


def why_not(cause: str, job_retry_count: int) -> str:
    """In words, why `next_attempt` returned None."""
    if cause == USER:
        words = "all retries are used up" if job_retry_count else "no retries were asked for"
        return f"not tried again: {words} (jobRetryCount: {job_retry_count})"
    if cause == PLATFORM:
        return f"not tried again: the platform failed {PLATFORM_LIMIT + 1} times, and {PLATFORM_LIMIT} retries are the limit"
    if cause == STOPPED:
        return "not tried again: it was stopped"
    raise ValueError(f"a job that ended for cause {cause!r} is always tried again, or the cause is unknown")


def launch_delay(tries: int) -> float | None:
    """Seconds until a cluster is asked again to start a task that it has failed to start this often; None: not again."""
    return min(delay(tries, 1, 0), LONGEST_LAUNCH_DELAY) if tries < LAUNCH_TRIES else None
