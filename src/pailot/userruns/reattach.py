"""Runs that go on without a driver here, in a cluster or on a server: what became of them, and how another drives them on.

The attempt itself needs no driver. What needs one is the verdict over the whole run, and the next attempt after a failed one.
A cluster is asked at each look, and a command that waits for the run drives it (`drive_on`). What a server does is known only to
its follower: a look starts a small process for that, which ends with the job, or when the server is away for long.
"""

from __future__ import annotations

import os
import select

from ..engines.contract import EngineContext, LaunchContext
from ..engines.registry import create as create_engine
from ..engines.registry import traits_of_run
from ..runfolder import journal
from ..settings import Settings
from ..store.index import Index
from ..store.network_filesystems import index_path
from .driver import Driver, Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runfolder.journal import Event
    from ..runfolder.records import RunRecord, VerdictRecord
    from .run_folder import JobFolder

PATIENCE_SECONDS = 600.0
"""How long a server may be away before the run is not followed any more."""
FIRST_LOOK = 10.0
"""How long a look at a run waits for what the server says."""


def goes_on(folder: JobFolder) -> bool:
    """Whether this run needs no process here."""
    job = folder.job()
    return job is not None and traits_of_run(job.engine).can_be_driven_on


def stop(folder: JobFolder, *, grace: float, now: bool) -> None:
    """Tell a run that has no driver here to stop."""
    engine = create_engine(_job(folder).engine)
    try:
        engine.stop_detached(folder.attempt(folder.attempts() - 1), grace, now=now)
    finally:
        engine.close()


def ask_to_stop(folder: JobFolder, *, grace: float, now: bool) -> None:
    """Leave word that a run is to stop, and wake what runs it: its driver, its cluster or its shims."""
    folder.mark_stop(grace=grace, now=now)
    if folder.is_driven():
        folder.wake_driver()
    elif folder.attempts():
        if goes_on(folder):
            stop(folder, grace=grace, now=now)
        else:
            folder.tell_shims(now=now)


def drive_on(folder: JobFolder) -> VerdictRecord | None:
    """Be the driver of a run from where it is, to its verdict; None if another process is. Ctrl-C leaves the run alone."""
    from .original_plan import as_it_was
    from .single_run_loop import drive

    lock = folder.lock()
    if lock is None:
        return None
    try:
        verdict = folder.verdict()
        if verdict is not None:
            return verdict
        plan, context = as_it_was(folder)

        def waiting(words: str) -> None:
            folder.note(journal.waiting(words))

        engine, last = create_engine(_job(folder).engine, EngineContext(waiting)), max(0, folder.attempts() - 1)
        driver = Driver(folder, plan, engine, context, first=last, retries=_used(folder), began=_began(folder))
        return drive(driver, interruptible=False)
    finally:
        os.close(lock)


def follow(folder: JobFolder) -> None:
    """Have the run followed by a process of its own; returns when the server has said something, or cannot be asked."""
    from ..runtime.daemon import apart

    reader = apart(lambda told: _follow(folder, told))
    select.select([reader], [], [], FIRST_LOOK)
    os.close(reader)


def _follow(folder: JobFolder, told: int) -> None:
    from .masked_job_file import kept_for
    from .original_plan import plan_to_follow
    from .single_run_loop import drive

    lock = folder.lock()
    if lock is None:
        return  # another process was quicker
    job, settings = _job(folder), Settings()
    engine = create_engine(job.engine, EngineContext(patience_seconds=PATIENCE_SECONDS, give_up=lambda: os._exit(0)))
    kept = kept_for(settings.home, folder)
    context = LaunchContext(hidden=kept.hidden, cache=settings.cache, home=settings.home)
    plan, watcher = plan_to_follow(folder, kept), _FirstLook(told)
    driver = Driver(folder, plan, engine, context, watcher, began=_began(folder), resumes=True)
    Index(index_path(settings.home)).record_end(job.id, drive(driver))
    os.close(lock)


class _FirstLook(Watcher):
    """Wakes the waiting process: something is known now."""

    def __init__(self, told: int) -> None:
        self._told: int | None = told

    def happened(self, event: Event) -> None:
        if event.kind != journal.RESUMED:
            self._tell()

    def finished(self, verdict: Any) -> None:
        self._tell()

    def _tell(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            os.close(told)


def _job(folder: JobFolder) -> RunRecord:
    """What was asked for: `goes_on` has seen that it is known."""
    job = folder.job()
    assert job is not None
    return job


def _used(folder: JobFolder) -> dict[str, int]:
    """The retries so far, as what they were counted."""
    return {"user": 0, "platform": 0, **folder.state().retries}


def _began(folder: JobFolder) -> float | None:
    return folder.state().started
