"""When is a job attempt over, and how did it end?

Each role has two bounds: enough failed tasks fail the job, enough succeeded tasks complete it. The first task that brings
its role to a bound decides for the whole job; if all tasks end and none does, the job has succeeded.
Only final ends count: a task that is tried again has not ended, and a lost task is no end but a failure of the platform.
"""

from __future__ import annotations

from ..values import Value
from . import exit_classes, retry, states

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class RoleRule(Value):
    """The bounds of one role; None switches a bound off, and one above `instances` is never reached."""

    name: str
    instances: int
    min_failed: int | None
    min_succeeded: int | None


class TaskEnd(Value):
    """How a task ended for good: its exit code or a signal, and in `reason` how it failed, where these do not say it all."""

    role: str
    index: int
    succeeded: bool
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    stopped: bool = False
    """It ended because it was told to, so that it decides nothing."""
    hopeless: bool = False
    """It would only end so again: the disk is full, or our own process beside the task has failed."""


class Verdict(Value):
    """How the job ended, and why; `role` and `index` name the task that decided, if one did.

    `exit_code` is that task's own: None if a signal killed it. Without a deciding task it is 0.
    """

    state: str
    reason: str
    role: str | None = None
    index: int | None = None
    exit_code: int | None = None


class Outcome(Value):
    """How an attempt ended: who is to blame, which decides on a retry (see `retry`), and what the verdict is if there is none."""

    cause: str
    verdict: Verdict
    retries: Mapping[str, int] = {}
    """How often the whole job was tried again by the one who decided, where that is done there."""


def outcome_of_stop(why: str, limit_seconds: float | None, without_stop: str = retry.USER) -> Outcome:
    """The outcome of an attempt that no task has decided, by the reason for which it was stopped.

    `limit_seconds` is its maxRunSeconds. `why` is empty where nothing stopped it: then `without_stop` is the cause.
    """
    if why == states.TIMEOUT:
        limit = f" of {limit_seconds:g} seconds" if limit_seconds is not None else ""
        return Outcome(retry.USER, Verdict(states.FAILED, f"it ran longer than its limit{limit} (maxRunSeconds)"))
    if why == states.PREEMPTED:
        return Outcome(retry.PREEMPTED, Verdict(states.STOPPED, "it made room for a job with more right to the machine"))
    if why:
        return Outcome(retry.STOPPED, Verdict(states.STOPPED, "stopped by the user"))
    return Outcome(without_stop, Verdict(states.FAILED, "it ended without a result"))


class Tally:
    """Counts the ends of tasks one by one, and knows the verdict once there is one.

    The first end of a task counts and a repeated one does not, so a journal may be replayed; nothing changes a verdict.
    """

    verdict: Verdict | None

    def __init__(self, rules: Iterable[RoleRule]) -> None:
        self._rules = {rule.name: rule for rule in rules}
        self._failed = dict.fromkeys(self._rules, 0)
        self._succeeded = dict.fromkeys(self._rules, 0)
        self._ended: set[tuple[str, int]] = set()
        self._tasks = sum(rule.instances for rule in self._rules.values())
        self.verdict = self._all_ended()

    def add(self, end: TaskEnd) -> Verdict | None:
        """Count a final end; return the verdict once there is one. Raises ValueError for a task that the job does not have."""
        rule = self._rules.get(end.role)
        if rule is None or not 0 <= end.index < rule.instances:
            raise ValueError(f"the job has no task {end.role}:{end.index}")
        task = (end.role, end.index)
        if self.verdict is None and task not in self._ended:
            self._ended.add(task)
            counts = self._succeeded if end.succeeded else self._failed
            counts[end.role] += 1
            bound = rule.min_succeeded if end.succeeded else rule.min_failed
            self.verdict = _decided(end, bound) if counts[end.role] == bound else self._all_ended()
        return self.verdict

    def _all_ended(self) -> Verdict | None:
        if len(self._ended) < self._tasks:
            return None
        failed, succeeded = sum(self._failed.values()), sum(self._succeeded.values())
        counted = f"{succeeded} succeeded and {failed} failed"
        reason = f"all tasks have ended, {counted}, and no role reached a bound of its completion policy, which counts as success"
        return Verdict(states.SUCCEEDED, reason, exit_code=0)


MOST_ROLES_NAMED = 10


def waits_to_end(rules: Iterable[RoleRule], ends: Iterable[TaskEnd]) -> str:
    """What an attempt that runs still waits for before it ends by success, by the final ends of its tasks up to now."""
    roles = list(rules)
    succeeded = dict.fromkeys((rule.name for rule in roles), 0)
    failed = dict(succeeded)
    for end in ends:
        counts = succeeded if end.succeeded else failed
        counts[end.role] += 1
    shown = [_progress(rule, succeeded[rule.name] + failed[rule.name]) for rule in roles[:MOST_ROLES_NAMED]]
    if len(roles) > MOST_ROLES_NAMED:
        shown.append(f"{len(roles) - MOST_ROLES_NAMED} more roles")
    missing = {
        rule.name: rule.min_succeeded - succeeded[rule.name]
        for rule in roles
        if rule.min_succeeded is not None and rule.min_succeeded <= rule.instances - failed[rule.name]
    }
    return "; ".join([*shown, _ends_when(missing)])


def _progress(rule: RoleRule, ended: int) -> str:
    if ended == rule.instances:
        return f"all of {rule.name} done"
    return f"{ended} of {rule.instances} tasks of {rule.name} done" if ended else f"{rule.name} runs"


def _ends_when(missing: Mapping[str, int]) -> str:
    """By the number of successes that roles with a bound within reach still lack."""
    if not missing:
        return "no role ends the job by success (minSucceededInstances), so it goes on until all tasks have ended"
    named = [f"{count} more of {name}" for name, count in list(missing.items())[:MOST_ROLES_NAMED]]
    others = " or of another role" if len(missing) > MOST_ROLES_NAMED else ""
    return f"the job succeeds with {' or '.join(named)}{others}"


def _decided(end: TaskEnd, bound: int) -> Verdict:
    """The verdict of the task that made its role reach a bound."""
    kind, state, verb, key = (
        ("succeeded", states.SUCCEEDED, "complete", "minSucceededInstances")
        if end.succeeded
        else ("failed", states.FAILED, "fail", "minFailedInstances")
    )
    counted = f"1 {kind} task of {end.role!r} {verb}s" if bound == 1 else f"{bound} {kind} tasks of {end.role!r} {verb}"
    reason = f"{end.role}:{end.index} {_how(end)}, and {counted} the job ({key}: {bound})"
    return Verdict(state, reason, end.role, end.index, end.exit_code)


def _how(end: TaskEnd) -> str:
    if end.succeeded:
        said = "succeeded"
    elif end.exit_code is None and end.signal is None:
        said = "failed"
    elif end.exit_code == 0 and end.signal is None:  # a callback failed, say
        said = "failed although its commands exited with 0"
    else:
        said = exit_classes.words(exit_classes.End(end.exit_code, end.signal))
    if end.succeeded or not end.reason:
        return said
    if said in end.reason:  # `exited with 137 because …`, `its start callbacks exited with 2`
        return end.reason if end.reason.startswith(said) else f"failed: {end.reason}"
    return f"{said} ({end.reason})"
