"""Runs that go on without a driver here, in a cluster: what became of them, and how another process drives them on.

The attempt itself needs nobody. What needs a driver is the verdict over the whole run, and the next attempt after a failed one.
"""

from __future__ import annotations

import os
import select
import time

from ..engines.registry import GO_ON
from ..engines.registry import create as create_engine
from ..lifecycle import retry
from ..lifecycle.completion import Verdict
from ..lifecycle.states import STOPPED, SUCCEEDED, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..planning import Plan
    from ..protocol import Job
    from .driver import Driver, Surroundings
    from .folder import JobFolder


def goes_on(folder: JobFolder) -> bool:
    """Whether this run needs no process here."""
    return folder.job().get("engine") in GO_ON


def settle(folder: JobFolder) -> dict[str, Any] | None:
    """The verdict of a run whose driver is gone, if its last attempt has ended and is not to be tried again."""
    attempts = folder.attempts()
    if not attempts:
        return _decide(folder, Verdict("FAILED", "its launcher was killed before it was submitted"))
    engine: Any = create_engine(folder.job()["engine"])
    try:
        state, outcome = engine.peek(folder.attempt(attempts - 1))
    finally:
        engine.close()
    if outcome is None:
        before = folder.record("state.json") or {}
        if before.get("state") != state and not (before.get("state") == "STOPPING" and state == "RUNNING"):
            folder.set_state(**{**before, "state": state, "attempt": attempts - 1})
        return None
    cause, verdict = outcome
    used = _used(folder)
    asked = os.path.exists(folder.file("stop.json"))
    again = retry.next_attempt(cause, used["user"], used["platform"], folder.plan().get("jobRetryCount", 0))
    if verdict.state == SUCCEEDED or again is None:
        return _decide(folder, verdict)
    if asked:
        return _decide(folder, Verdict(STOPPED, "stopped by the user"))
    reason = f"{verdict.reason}; it is tried again by whoever waits for it (pailot wait {folder.job()['name']})"
    before = folder.record("state.json") or {}
    folder.set_state(**{**before, "state": WAITING, "attempt": attempts - 1, "reason": reason})
    return None


def stop(folder: JobFolder, *, grace: float, now: bool) -> None:
    """Tell a run that nobody drives here to stop."""
    engine: Any = create_engine(folder.job()["engine"])
    try:
        engine.stop_alone(folder.attempt(folder.attempts() - 1), grace, now=now)
    finally:
        engine.close()


def drive_on(folder: JobFolder) -> dict[str, Any] | None:
    """Be the driver of a run from where it is, to its verdict; None if another process is. Ctrl-C leaves the run alone."""
    from .driver import Driver

    lock = folder.lock()
    if lock is None:
        return None
    try:
        verdict = folder.verdict()
        if verdict is not None:
            return verdict
        plan, surroundings = _as_it_was(folder)

        def waiting(words: str) -> None:
            folder.note("waiting", reason=words)

        driver = Driver(folder, plan, create_engine(folder.job()["engine"], waiting), surroundings)
        driver.first = max(0, folder.attempts() - 1)
        driver.retries = _used(folder)
        driver.began = (folder.record("state.json") or {}).get("started")
        return _follow(driver)
    finally:
        os.close(lock)


def _follow(driver: Driver) -> dict[str, Any]:
    import signal

    control = os.open(driver.folder.file("control"), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    steps = driver.steps()
    try:
        while True:
            try:
                moment = next(steps)
            except StopIteration as end:
                verdict: dict[str, Any] = end.value
                return verdict
            waits = [each for each in (control, reader, driver.engine.changes()) if each is not None]
            timeout = None if moment is None else max(0.0, moment - time.monotonic())
            for descriptor in select.select(waits, [], [], timeout)[0]:
                if descriptor in (control, reader):
                    os.read(descriptor, 4096)
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)
        for descriptor in (control, reader, writer):
            os.close(descriptor)
        driver.engine.close()


def _as_it_was(folder: JobFolder) -> tuple[Plan, Surroundings]:
    """The plan and the surroundings that the run began with: its job file, its secrets, its environment."""
    from ..runtime.records import read_record
    from ..settings import Settings
    from .driver import Surroundings
    from .launch import leaves, secret_values

    settings, record = Settings(), folder.job()
    job, plan = _reread(folder, settings.home)
    payload = read_record(os.path.join(folder.attempt(max(0, folder.attempts() - 1)), "payload.json")) or {}
    surroundings = Surroundings(
        cwd=record.get("cwd") or ".",
        work_dir=record.get("workDir", ""),
        environment=payload.get("environment", {}),
        secrets=secret_values(job, plan),
        hidden=tuple(leaves(job.secrets.reveal())),
        cache=settings.cache,
        home=settings.home,
        sandbox=record.get("sandbox", False),
        rotate_bytes=int(settings.log_rotate_mb * 1_000_000),
    )
    return plan, surroundings


def _reread(folder: JobFolder, home: str) -> tuple[Job, Plan]:
    """The job from its file, with the secrets that were kept for it."""
    from ..library import Library
    from ..planning import plan
    from ..planning.plugins import exists
    from ..protocol import read
    from ..protocol.overrides import Override

    record = folder.job()
    changes = []
    if os.path.exists(folder.file("secrets.sealed")):
        from ..store.secrets import SecretBox

        with open(folder.file("secrets.sealed"), "rb") as sealed:
            changes.append(Override(("secrets",), SecretBox(home).open(record["id"], sealed.read()), "the kept secrets"))
    with open(folder.file("job.yaml"), encoding="utf-8") as stream:
        text = stream.read()
    shelf = Library.from_settings(())
    job = read(text, file="job.yaml", changes=tuple(changes), lenient=True, library=shelf.find, is_plugin=exists)
    job = job.replace(name=record["name"])
    return job, plan(job, record["user"])


def _used(folder: JobFolder) -> dict[str, int]:
    """The retries so far, as what they were counted."""
    return {"user": 0, "platform": 0, **(folder.record("state.json") or {}).get("retries", {})}


def _decide(folder: JobFolder, verdict: Verdict) -> dict[str, Any]:
    record = {
        "state": verdict.state,
        "reason": verdict.reason,
        "exitCode": verdict.exit_code if verdict.state != SUCCEEDED else 0,
        "role": verdict.role,
        "index": verdict.index,
        "attempts": folder.attempts(),
        "retries": _used(folder),
        "started": (folder.record("state.json") or {}).get("started"),
        "ended": time.time(),
    }
    folder.decide(record)
    folder.note("ended", state=verdict.state, reason=verdict.reason)
    return record
