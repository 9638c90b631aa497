"""What follows for a run that no process drives: a table over the traits of its engine and what its folder tells.

`settle` is called with what is known. Where that is not enough it returns what to find out (`Observe`, `Sweep`), and is called
again with what was found; otherwise it returns what to do: `Conclude`, `TryAgain`, `Follow`, or to leave it `Pending`.

A user's run ends with its launcher, unless its engine goes on without one. A server's job is *queued*: it can be started again.
"""

from __future__ import annotations

from ..values import Value
from . import retry, states
from .completion import Outcome, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BUSY, QUEUE, GOES_ON = "busy", "queue", "goes-on"
"""Why a run stays pending: its tasks are ending, it is to be queued, it goes on elsewhere."""
MAX_NAMED = 5
"""The most tasks or processes that a reason names."""


class Seen(Value):
    """What the engine says of the last attempt; without an outcome it goes on."""

    state: str
    outcome: Outcome | None = None


class Swept(Value):
    """What was left of the last attempt on this machine, after what could be ended was ended."""

    alive: bool = False
    """Whether shims are still ending their tasks."""
    outcome: Outcome | None = None
    """What the ends of its tasks have decided, if they have."""
    lost: tuple[str, ...] = ()
    """The tasks whose shims were killed, as `role:index`."""
    all_ended: bool = True
    """Whether it is certain that nothing of the lost tasks runs."""
    pids: tuple[int, ...] = ()
    """Processes of the lost tasks that could not be ended."""


class Standing(Value):
    """What is known of a run that no process drives."""

    can_be_driven_on: bool
    needs_follower: bool
    queued: bool
    """A server queues the run, and can start it again."""
    begun: int
    """How many attempts were begun."""
    name: str = ""
    damaged: str = ""
    """The file that would tell what was asked for, if it cannot be read."""
    shown: str | None = None
    """The state that the folder shows."""
    stop_asked: bool = False
    handed_on: bool = False
    """The next attempt is the queue's, as the last driver wrote."""
    started: bool = False
    """Every task of the last attempt was begun."""
    rebooted: bool = False
    disk_full: str = ""
    """In words, that the disk was full; empty if it was not."""
    defect: str = ""
    """A mistake of ours that ended the last driver."""
    lost_driver: str = ""
    """What the server heard of the end of the last driver."""
    retries: Mapping[str, int] = {}
    job_retry_count: int = 0
    seen: Seen | None = None
    swept: Swept | None = None


class Observe(Value):
    """Ask the engine what became of the last attempt."""


class Sweep(Value):
    """End what killed shims have left of the last attempt."""


class Follow(Value):
    """Have a process follow the run; what it sees is not known here."""


class Conclude(Value):
    """The run has ended so."""

    verdict: Verdict
    stop_elsewhere: bool = False
    """Tell what goes on elsewhere to stop at once."""


class TryAgain(Value):
    """Queue the run for its next attempt; `ended` says how the last one ended."""

    counted_as: str
    why: str
    ended: str


class Pending(Value):
    """Write no verdict. `show` and `reason` are what the folder is to show, if it shows something else."""

    kind: str
    attempt: int = 0
    show: str = ""
    reason: str | None = None
    stop: bool = False
    """Tell what goes on elsewhere to stop."""


def settle(known: Standing) -> Value:
    """What to find out, or to do, next."""
    if known.defect:
        return _defective(known)
    if known.can_be_driven_on and (not known.queued or (known.begun and not known.handed_on)):
        return _elsewhere(known)
    if known.queued:
        return _queued(known)
    return Follow() if known.needs_follower else _launched(known)


def _defective(known: Standing) -> Value:
    """A mistake of ours is made again by the next driver: the job has failed, and nothing of it goes on."""
    if known.begun and not known.can_be_driven_on and known.swept is None:
        return Sweep()
    return Conclude(Verdict(states.FAILED, known.defect), stop_elsewhere=bool(known.begun) and known.can_be_driven_on)


def _elsewhere(known: Standing) -> Value:
    """The attempt needs no driver here. Its verdict does, and the next attempt."""
    if not known.begun:
        return Conclude(Verdict(states.FAILED, "its launcher was killed before it was submitted"))
    if known.seen is None:
        return Observe()
    outcome, last = known.seen.outcome, known.begun - 1
    kind = GOES_ON if not known.queued else BUSY if known.stop_asked else QUEUE
    if outcome is None:
        same = known.shown == known.seen.state or (known.shown == states.STOPPING and known.seen.state == states.RUNNING)
        return Pending(kind, last, "" if same else known.seen.state, stop=kind == BUSY)
    verdict = outcome.verdict
    if verdict.state == states.SUCCEEDED or _next_attempt(known, outcome.cause) is None:
        return Conclude(verdict)
    if known.stop_asked:
        return Conclude(Verdict(states.STOPPED, "stopped by the user"))
    reason = f"{verdict.reason}; it is tried again by the next command that waits for it (pailot wait {known.name})"
    return Pending(kind, last, states.WAITING, reason)


def _queued(known: Standing) -> Value:
    """A job of a server on its own machine: the server starts it again, unless its tasks have decided it."""
    if known.stop_asked:
        return Conclude(Verdict(states.STOPPED, "stopped by the user"))
    if known.handed_on or not known.begun:
        return Pending(QUEUE, known.begun)
    if known.swept is None:
        return Sweep()
    outcome, left = known.swept.outcome, may_be_running(known.swept.pids)
    cause = retry.PLATFORM if outcome is None else outcome.cause
    again = _next_attempt(known, cause)
    if outcome is not None and (outcome.verdict.state == states.SUCCEEDED or again is None):
        return Conclude(outcome.verdict)
    words = (known.lost_driver or _without_driver(known) if outcome is None else outcome.verdict.reason) + left
    if again is None:
        return Conclude(Verdict(states.FAILED, f"{words} ({retry.why_not(cause, known.job_retry_count)})"))
    return TryAgain(again.counted_as, again.reason, words)


def _without_driver(known: Standing) -> str:
    return "the machine was restarted while it ran" if known.rebooted else "the process that kept it was killed"


def _launched(known: Standing) -> Value:
    """A user's run on this machine: its tasks end with its launcher."""
    swept = known.swept
    if swept is None:
        return Sweep()
    if swept.alive and not known.rebooted:
        return Pending(BUSY)
    left = may_be_running(swept.pids)
    if known.damaged:
        words = f"its {known.damaged} is damaged or missing, so that it cannot be followed"
        return Conclude(Verdict(states.FAILED, f"{words}; if it ran in a cluster it may still be running{left}"))
    if known.rebooted:
        return Conclude(Verdict(states.FAILED, "the machine was restarted while it ran (a platform failure)"))
    if known.disk_full:
        return Conclude(Verdict(states.FAILED, f"its launcher could not write down how it ended: {known.disk_full}"))
    if not known.started:
        words = "its launcher was killed before all tasks had started (a platform failure)"
        return Conclude(Verdict(states.FAILED, words + left))
    if not swept.lost:
        return Conclude(Verdict(states.STOPPED, "its launcher was killed, so its tasks were stopped"))
    words = "so they were ended, too"
    if not swept.all_ended:
        words = "and what was found of them was ended (a process that clears its environment is not found)"
    return Conclude(Verdict(states.STOPPED, f"its launcher and the shims of {named(swept.lost)} were killed, {words}{left}"))


def _next_attempt(known: Standing, cause: str) -> retry.Retry | None:
    used = known.retries
    return retry.next_attempt(cause, used.get(retry.USER, 0), used.get(retry.PLATFORM, 0), known.job_retry_count)


def named(tasks: Sequence[str]) -> str:
    """The first of some tasks, and how many more there are.

    >>> named(["a:0", "a:1"]), named([f"a:{index}" for index in range(7)])
    ('a:0, a:1', 'a:0, a:1, a:2, a:3, a:4 and 2 more')
    """
    more = len(tasks) - MAX_NAMED
    return ", ".join(tasks[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def may_be_running(pids: Sequence[int]) -> str:
    """What to add to a reason about processes that could not be ended.

    >>> may_be_running([]), may_be_running([7]), may_be_running([7, 8])
    ('', '; process 7 may still be running', '; processes 7, 8 may still be running')
    """
    if not pids:
        return ""
    listed = ", ".join(map(str, pids[:MAX_NAMED])) + (" and more" if len(pids) > MAX_NAMED else "")
    return f"; process{'es' if len(pids) > 1 else ''} {listed} may still be running"
