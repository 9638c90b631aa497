"""A job that no keeper drives any more: how it went on, as its folder tells, and what follows from that."""

from __future__ import annotations

import os

from ..lifecycle import retry
from ..lifecycle.completion import RoleRule, Tally, TaskEnd, Verdict
from ..lifecycle.states import FAILED, STOPPED, SUCCEEDED, WAITING
from ..runfolder import journal, layout
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.records import HandedOn, Placement, RunState, TaskRecord, VerdictRecord
from ..runtime import cleanup, processes
from ..userruns import reattach
from ..userruns.queries import may_be_running
from ..userruns.run_folder import JobFolder
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ENDED, AGAIN, QUEUE, BUSY = "ended", "again", "queue", "busy"


class Found(Value):
    """What is to be done: take the verdict (`ended`), count a retry and queue (`again`), just queue, or look again later."""

    kind: str
    record: VerdictRecord | HandedOn = HandedOn()

    @property
    def verdict(self) -> VerdictRecord:
        """How it has ended."""
        assert isinstance(self.record, VerdictRecord)
        return self.record

    @property
    def again(self) -> HandedOn:
        """With what it is started again."""
        assert isinstance(self.record, HandedOn)
        return self.record


def look(
    path: str,
    plan: Mapping[str, Any],
    known: Mapping[str, Any],
    *,
    stop: bool,
    reserve: str,
    reason: str = "",
    defect: str = "",
) -> Found:
    """Settle a job whose folder nobody holds; `known` is how far it was when the server last heard of it.

    `busy` while shims of it are still ending, `stop` if it was to be stopped; a `defect` of ours is its end.
    """
    folder = JobFolder(path, durable=False, reserve=reserve)
    verdict = folder.verdict()
    if verdict is not None:
        return Found(ENDED, verdict)
    if not os.path.exists(folder.file(layout.JOB)):
        return Found(QUEUE)
    lock = folder.lock()
    if lock is None:
        return Found(BUSY)
    try:
        verdict = folder.verdict()
        if verdict is not None:
            return Found(ENDED, verdict)
        failure = folder.record(layout.KEEPER_ERROR) or {}
        if failure.get("defect"):
            defect = defect or str(failure.get("reason"))
        if defect:
            return _end_defective(folder, defect, known)
        return _settle(folder, plan, known, stop=stop, reason=reason)
    finally:
        os.close(lock)


def _settle(folder: JobFolder, plan: Mapping[str, Any], known: Mapping[str, Any], *, stop: bool, reason: str) -> Found:
    state = folder.state()
    retries = {"user": 0, "platform": 0, **(state.retries or known["retries"])}
    begun = folder.attempts()
    handed_on = HandedOn.read(folder.file(layout.HANDED_ON)) or HandedOn()
    started = state.started or known["started"] or _first_start(folder)
    if begun and handed_on.attempt != begun and reattach.goes_on(folder):
        return _go_on(folder, stop=stop, retries=retries, started=started)
    if stop:
        return _decide(folder, STOPPED, "stopped by the user", None, begun, retries, started)
    if handed_on.attempt == begun or not begun:
        return Found(QUEUE, HandedOn(attempt=begun, retries=retries, started=started))
    attempt = folder.attempt(begun - 1)
    left = _sweep(attempt)
    full = _without_space(attempt)
    if full is not None:
        return _decide(folder, FAILED, full.reason, full, begun, retries, started)
    decided = _judge(attempt, plan)
    if decided is not None and (decided.state == SUCCEEDED or retries["user"] >= plan.get("jobRetryCount", 0)):
        return _decide(folder, decided.state, decided.reason, decided, begun, retries, started)
    cause = retry.PLATFORM if decided is None else retry.USER
    words = (decided.reason if decided is not None else reason or _what_happened(attempt)) + left
    again = retry.next_attempt(cause, retries["user"], retries["platform"], plan.get("jobRetryCount", 0))
    if again is None:
        limit = retry.why_not(cause, plan.get("jobRetryCount", 0))
        return _decide(folder, FAILED, f"{words} ({limit})", None, begun, retries, started)
    retries[again.counted_as] += 1
    folder.note("job-retry", attempt=begun, seconds=0, reason=words, why=again.reason, role=None, index=None, exitCode=None)
    reason = f"tried again: {again.reason}"
    folder.set_state(RunState(state=WAITING, attempt=begun, reason=reason, started=started, retries=retries))
    record = HandedOn(counted_as=again.counted_as, attempt=begun, retries=retries, started=started, reason=words)
    try:
        folder.hand_on(record)
    except OSError as error:
        if not is_full(error):
            raise
        return _decide(folder, FAILED, f"{words}, and {DISK_FULL}", None, begun, retries, started)
    return Found(AGAIN, record)


def _without_space(attempt: str) -> Verdict | None:
    """The verdict over an attempt that a full disk has ended: it is not tried again there."""
    for task in sorted(layout.begun_tasks(attempt)):
        final = TaskRecord.final(task)
        if final is not None and final.disk_full:
            role, index = layout.task_of(task)
            return Verdict(FAILED, f"{role}:{index}: {final.reason}", role, int(index))
    return None


def _end_defective(folder: JobFolder, defect: str, known: Mapping[str, Any]) -> Found:
    """A mistake of ours is made again by whoever tries again: the job has failed, and nothing of it goes on."""
    begun = folder.attempts()
    if begun and reattach.goes_on(folder):
        reattach.stop(folder, grace=0, now=True)
    elif begun:
        _sweep(folder.attempt(begun - 1))
    return _decide(folder, FAILED, defect, None, begun, known["retries"], known["started"] or _first_start(folder))


def _first_start(folder: JobFolder) -> float | None:
    return next((event.at for event in folder.events() if event.kind == journal.STARTED), None)


def _go_on(folder: JobFolder, *, stop: bool, retries: Mapping[str, int], started: float | None) -> Found:
    """In a cluster the attempt has gone on without its keeper: a keeper follows it again from where it is."""
    verdict = reattach.settle(folder)
    if verdict is not None:
        return Found(ENDED, verdict)
    if stop:
        reattach.stop(folder, grace=float(folder.plan().get("options", {}).get("graceSeconds", 30)), now=False)
        return Found(BUSY)
    return Found(QUEUE, HandedOn(attempt=folder.attempts() - 1, retries=retries, started=started))


def _judge(attempt: str, plan: Mapping[str, Any]) -> Any:
    """The verdict, if the tasks that have ended decide the job; what was stopped with its keeper decides nothing."""
    rules, ends = [], []
    for name, role in plan.get("taskRoles", {}).items():
        completion = role["completion"]
        bounds = [
            None if value == -1 else value for value in (completion["minFailedInstances"], completion["minSucceededInstances"])
        ]
        rules.append(RoleRule(name, role["instances"], bounds[0], bounds[1]))
        for index in range(role["instances"]):
            final = TaskRecord.final(layout.task_folder(attempt, name, index))
            if final is not None and final.outcome in ("succeeded", "failed") and not final.disk_full:
                ends.append((final.ended or 0, name, index, final))
    tally = Tally(rules)
    for _, name, index, final in sorted(ends, key=lambda each: each[0]):
        succeeded = final.outcome == "succeeded"
        tally.add(TaskEnd(name, index, succeeded, final.exit_code, final.signal, final.reason or ""))
    return tally.verdict


def _decide(
    folder: JobFolder, state: str, reason: str, by: Any, attempts: int, retries: Mapping[str, int], started: float | None
) -> Found:
    verdict = Verdict(state, reason, *(getattr(by, name, None) for name in ("role", "index", "exit_code")))
    return Found(ENDED, folder.conclude(verdict, retries=retries, started=started, attempts=attempts))


def _sweep(attempt: str) -> str:
    """End what killed shims left behind; returns words on what may be running all the same."""
    tasks = layout.begun_tasks(attempt)
    found = cleanup.clean_up_all([each for each in tasks if not os.path.exists(os.path.join(each, layout.FINAL))])
    return may_be_running(found)


def _what_happened(attempt: str) -> str:
    if Placement.of(attempt).boot not in ("", processes.boot_id()):
        return "the machine was restarted while it ran"
    return "the process that kept it was killed"
