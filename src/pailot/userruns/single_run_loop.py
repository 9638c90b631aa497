"""Waiting for one run: the shims, the control pipe of its folder, signals, and whatever its watcher writes to."""

from __future__ import annotations

import gc
import os
import select
import signal
import time

from ..errors import PailotError
from ..lifecycle.completion import Verdict
from ..lifecycle.states import FAILED
from ..lifecycle.waits import milliseconds
from ..runfolder import layout
from ..runfolder.records import VerdictRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .driver import Driver


def drive(driver: Driver, *, interruptible: bool = True) -> VerdictRecord:
    """Drive a run to its verdict; signals to this process are for it, unless it only looks on."""
    gc.enable()
    control = os.open(driver.folder.file(layout.CONTROL), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = _listen(driver, woken, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if interruptible else ())
    try:
        steps = driver.steps()
        while True:
            try:
                moment = next(steps)
            except StopIteration as end:
                verdict = end.value
                assert isinstance(verdict, VerdictRecord)  # only a server's run is handed on
                return verdict
            _wait(driver, moment, control, wake)
    except Exception as error:  # a run never ends without a verdict
        return _end_defective(driver, error)
    finally:
        signal.set_wakeup_fd(-1)
        if not interruptible:
            signal.signal(signal.SIGCHLD, before)
        for descriptor in (control, wake, woken):
            os.close(descriptor)
        driver.engine.close()


def _end_defective(driver: Driver, error: Exception) -> VerdictRecord:
    """The run cannot be driven on: nothing of it goes on, and its verdict says why. In a cluster it goes on without us."""
    from ..runtime import cleanup, defects

    folder = driver.folder
    known = isinstance(error, PailotError) or defects.is_of_the_machine(error)
    words = str(error) if known else _noted(driver, error)
    if driver.engine.traits.survives_launcher:
        raise error if known else PailotError(f"{words}. The job goes on: pailot wait {driver.plan.name}") from None
    verdict = folder.verdict()
    if verdict is not None:
        return verdict
    for role, index in driver.engine.abandon():
        cleanup.clean_up(folder.task(driver.number, role, index))
    return folder.conclude(Verdict(FAILED, words), retries=driver.retries, started=driver.began)


def _noted(driver: Driver, error: Exception) -> str:
    from ..runtime import defects

    return defects.note(error, driver.plan.name, hidden=driver.context.hidden, log=driver.folder.file(layout.SUPERVISOR_LOG))


def _listen(driver: Driver, woken: int, interrupts: Iterable[int]) -> Any:
    """Make every signal wake us; return the previous handler for the end of a child."""

    def interrupted(number: int, _frame: object) -> None:
        if number == signal.SIGINT or not driver.interrupts:
            driver.interrupted()

    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in interrupts:
        signal.signal(number, interrupted)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    return before


def _wait(driver: Driver, moment: float | None, control: int, wake: int) -> None:
    poller = select.poll()
    for descriptor in (driver.engine.changes(), control, wake):
        if descriptor is not None:
            poller.register(descriptor, select.POLLIN)
    watching = driver.watcher.descriptors()
    for descriptor in watching:
        poller.register(descriptor, select.POLLOUT)
    times = [
        each for each in (driver.watcher.timeout(), None if moment is None else moment - time.monotonic()) if each is not None
    ]
    for descriptor, _ in poller.poll(milliseconds(min(times) if times else None)):
        if descriptor in watching:
            watching[descriptor]()
        elif descriptor in (control, wake):
            try:
                os.read(descriptor, 4096)
            except BlockingIOError:
                pass  # nothing left to read
    driver.watcher.tick()
