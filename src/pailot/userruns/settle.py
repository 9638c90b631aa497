"""Runs whose driver is gone: their folder is read, `lifecycle.settling` decides, and what it decides is carried out.

Commands call `recover`. A server, whose jobs can be started again, calls `settle` with what it knows of the job.
"""

from __future__ import annotations

import os

from ..engines.observation import is_free
from ..engines.registry import create as create_engine
from ..engines.registry import traits_of_run
from ..lifecycle import settling
from ..lifecycle.attempt_machine import outcome_of_ends
from ..lifecycle.completion import RoleRule, Verdict
from ..lifecycle.settling import Conclude, Follow, Observe, Pending, Seen, Standing, Sweep, Swept, TryAgain
from ..lifecycle.states import FAILED, WAITING
from ..runfolder import journal, layout
from ..runfolder.atomic_json import DISK_FULL, is_full
from ..runfolder.records import HandedOn, KeeperError, Placement, RunState, TaskRecord, VerdictRecord
from ..runtime import cleanup, processes
from ..values import Value
from . import reattach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..lifecycle.completion import Outcome, TaskEnd
    from .run_folder import JobFolder

ENDED, AGAIN = "ended", "again"
SMALL_FILES_BYTES = 32 * 1024


class Queued(Value):
    """What a server knows of a job that it queues."""

    plan: Mapping[str, Any] = {}
    retries: Mapping[str, int] = {}
    started: float | None = None
    stop: bool = False
    """Whether it is to stop."""
    reason: str = ""
    """What the server heard of the end of its driver."""
    defect: str = ""


class Settled(Value):
    """What became of a run: it has `ended`, is to be tried `again`, or is pending (the kinds of `settling.Pending`)."""

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


def recover(folder: JobFolder) -> VerdictRecord | None:
    """Bring a user's run without a driver to its end; None while it goes on, or its tasks are still being stopped."""
    settled = settle(folder)
    return settled.verdict if settled.kind == ENDED else None


def settle(folder: JobFolder, queued: Queued | None = None) -> Settled:
    """Settle a run, unless a process drives it, or shims of it still hold its lock."""
    verdict = folder.verdict()
    if verdict is not None:
        return Settled(ENDED, verdict)
    if queued is not None and not os.path.exists(folder.file(layout.JOB)):
        return Settled(settling.QUEUE)
    lock = folder.lock()
    if lock is None:
        return _as_it_is(folder, settling.BUSY)
    try:
        verdict = folder.verdict()
        if verdict is not None:
            return Settled(ENDED, verdict)
        known = _read(folder, queued)
        while True:
            told = settling.settle(known)
            if isinstance(told, Observe):
                known = known.replace(seen=_observe(folder, known.begun - 1))
            elif isinstance(told, Sweep):
                known = known.replace(swept=_sweep(folder, known, queued))
            elif isinstance(told, Follow):
                os.close(lock)
                lock = -1
                reattach.follow(folder)
                return _as_it_is(folder, settling.GOES_ON)
            else:
                return _carry_out(folder, known, told, _first_start(folder, queued))
    finally:
        if lock >= 0:
            os.close(lock)


def _as_it_is(folder: JobFolder, kind: str) -> Settled:
    verdict = folder.verdict()
    return Settled(kind) if verdict is None else Settled(ENDED, verdict)


def tasks_of_last_attempt(folder: JobFolder) -> list[str]:
    """The folders of the tasks of the last attempt."""
    begun = folder.attempts()
    return list(layout.begun_tasks(folder.attempt(begun - 1))) if begun else []


def wait_for_shims(folder: JobFolder) -> None:
    """Until no shim of the last attempt is left."""
    for task in tasks_of_last_attempt(folder):
        is_free(os.path.join(task, layout.CLAIM), wait=True)


# What is known


def _read(folder: JobFolder, queued: Queued | None) -> Standing:
    job, state, begun = folder.job(), folder.state(), folder.attempts()
    traits = traits_of_run(job.engine) if job is not None else None
    last = folder.attempt(begun - 1) if begun else ""
    if queued is None:
        boot = job.boot if job is not None else ""
        failure, handed_on = KeeperError(), HandedOn()
    else:
        boot = Placement.of(last).boot if begun else ""
        failure = KeeperError.read(folder.file(layout.KEEPER_ERROR)) or KeeperError()
        handed_on = HandedOn.read(folder.file(layout.HANDED_ON)) or HandedOn()
    told = queued or Queued(folder.plan())
    return Standing(
        can_be_driven_on=traits is not None and traits.can_be_driven_on,
        needs_follower=traits is not None and traits.needs_follower,
        queued=queued is not None,
        begun=begun,
        name=job.name if job is not None else "",
        damaged=layout.JOB if job is None else "",
        shown=state.state,
        stop_asked=told.stop or os.path.exists(folder.file(layout.STOP)),
        handed_on=handed_on.attempt == begun,
        started=bool(begun) and os.path.exists(os.path.join(last, layout.STARTED)),
        rebooted=boot not in ("", processes.boot_id()),
        disk_full=DISK_FULL if os.path.exists(folder.file(layout.DISK_FULL_MARK)) or _is_disk_full(folder.path) else "",
        defect=told.defect or (failure.reason if failure.defect else ""),
        lost_driver=told.reason,
        retries={"user": 0, "platform": 0, **(state.retries or told.retries)},
        job_retry_count=told.plan.get("jobRetryCount", 0),
    )


def _first_start(folder: JobFolder, queued: Queued | None) -> float | None:
    started = folder.state().started
    if queued is None or started:
        return started
    return queued.started or next((event.at for event in folder.events() if event.kind == journal.STARTED), None)


def _is_disk_full(path: str) -> bool:
    """Whether there is not even room for the small files of a run."""
    found = os.statvfs(path)
    return found.f_blocks > 0 and found.f_bavail * found.f_frsize < SMALL_FILES_BYTES


def _observe(folder: JobFolder, attempt: int) -> Seen:
    job = folder.job()
    assert job is not None  # its engine is known
    engine = create_engine(job.engine)
    try:
        seen = engine.observe(folder.attempt(attempt))
    finally:
        engine.close()
    return Seen(seen.state, seen.outcome)


def _sweep(folder: JobFolder, known: Standing, queued: Queued | None) -> Swept:
    """End what killed shims have left. Those of a server hold the lock of their run, so that none is left here."""
    tasks = tasks_of_last_attempt(folder)
    gone = known.rebooted or known.queued
    lost = [task for task in sorted(tasks) if not _has_ended(task) and (gone or _lost_its_shim(task))]
    found = cleanup.clean_up_all(lost)
    return Swept(
        alive=any(not is_free(os.path.join(task, layout.CLAIM)) for task in tasks),
        outcome=_decided(folder.attempt(known.begun - 1), queued.plan) if queued is not None else None,
        lost=tuple(":".join(layout.task_of(task)) for task in lost),
        all_ended=all(cleanup.is_closed(task) for task in lost),
        pids=(*found.left, *found.unsure),
    )


def _has_ended(task: str) -> bool:
    return os.path.exists(os.path.join(task, layout.FINAL))


def _lost_its_shim(task: str) -> bool:
    claim = os.path.join(task, layout.CLAIM)
    return os.path.exists(claim) and is_free(claim)


def _decided(attempt: str, plan: Mapping[str, Any]) -> Outcome | None:
    """What the ends of the tasks have decided, in their order; what was stopped with its keeper decides nothing."""
    return outcome_of_ends(completion_rules(plan), final_ends(attempt, plan))


def completion_rules(plan: Mapping[str, Any]) -> list[RoleRule]:
    """The bounds of the roles of a plan as it is kept, in its order."""
    return [
        RoleRule(name, role["instances"], _bound(role, "minFailedInstances"), _bound(role, "minSucceededInstances"))
        for name, role in plan.get("taskRoles", {}).items()
    ]


def _bound(role: Mapping[str, Any], key: str) -> int | None:
    """A bound of a role; None where it is switched off, or where a damaged plan does not tell it."""
    completion = role.get("completion")
    bound = completion.get(key) if isinstance(completion, dict) else None
    return bound if isinstance(bound, int) and bound != -1 else None


def final_ends(attempt: str, plan: Mapping[str, Any]) -> list[TaskEnd]:
    """The tasks of an attempt that have ended for good, in the order of their ends."""
    ends = []
    for name, role in plan.get("taskRoles", {}).items():
        for index in range(role["instances"]):
            final = TaskRecord.final(layout.task_folder(attempt, name, index))
            if final is not None and final.outcome in ("succeeded", "failed", "stopped"):
                ends.append((final.ended or 0, final.task_end(name, index)))
    return [end for _, end in sorted(ends, key=lambda each: each[0])]


# What is done


def _carry_out(folder: JobFolder, known: Standing, told: Value, started: float | None) -> Settled:
    if isinstance(told, Conclude):
        if told.stop_elsewhere:
            reattach.stop(folder, grace=0, now=True)
        return _conclude(folder, known, told.verdict, started)
    if isinstance(told, TryAgain):
        return _try_again(folder, known, told, started)
    assert isinstance(told, Pending)
    if told.show:
        state = folder.state().replace(state=told.show, attempt=told.attempt)
        folder.set_state(state if told.reason is None else state.replace(reason=told.reason))
    if told.stop:
        reattach.stop(folder, grace=float(folder.plan().get("options", {}).get("graceSeconds", 30)), now=False)
    return Settled(told.kind, HandedOn(attempt=told.attempt, retries=known.retries, started=started))


def _conclude(folder: JobFolder, known: Standing, verdict: Verdict, started: float | None) -> Settled:
    return Settled(ENDED, folder.conclude(verdict, retries=known.retries, started=started, attempts=known.begun))


def _try_again(folder: JobFolder, known: Standing, told: TryAgain, started: float | None) -> Settled:
    """The record for the queue is written last: without it the next look comes to the same."""
    attempt, ended = known.begun, told.ended
    retries = {**known.retries, told.counted_as: known.retries.get(told.counted_as, 0) + 1}
    folder.note(journal.job_retry(attempt, ended, told.why, decided=Verdict(FAILED, ended)))
    reason = f"tried again: {told.why}"
    folder.set_state(RunState(state=WAITING, attempt=attempt, reason=reason, started=started, retries=retries))
    record = HandedOn(counted_as=told.counted_as, attempt=attempt, retries=retries, started=started, reason=ended)
    try:
        folder.hand_on(record)
    except OSError as error:
        if not is_full(error):
            raise
        return _conclude(folder, known, Verdict(FAILED, f"{ended}, and {DISK_FULL}"), started)
    return Settled(AGAIN, record)
