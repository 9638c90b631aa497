"""A job and the luigi task that waits for it: luigi is told what happens, and an end of luigi is an end of the job."""

from __future__ import annotations

import logging
import signal
import threading

from ..client.errors import Unreachable
from ..errors import PailotError
from ..settings import Settings
from ..views.cancellation import Quit
from .started import SUCCEEDED, PaiJobFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import luigi

    from .started import Started

logger = logging.getLogger("luigi-interface")
ENDED = ("SUCCEEDED", "SUCCEED", "FAILED", "STOPPED", "LOST")
LOG_SECONDS = 30.0
"""How long the rest of a log is waited for when its job is over."""


def see_through(task: luigi.Task, start: Callable[[], Started]) -> None:
    """Start a job, and wait until it has succeeded; anything else raises PaiJobFailed.

    When luigi is interrupted, the job is stopped; also where that happens while it starts.
    """
    ear = Ear()
    started = None
    try:
        with ear:
            started = start()
            record = _follow(task, started, ear.quit)
    except (KeyboardInterrupt, SystemExit):  # a handler of other code
        if started is not None:
            _stop(started)
        raise
    if ear.heard is not None:
        _stop(started)
        ear.pass_on()
    if record["state"] not in SUCCEEDED:
        raise PaiJobFailed.of({**record, "reason": record.get("reason") or ""})
    logger.info("job %s has succeeded", started.name)


def _follow(task: luigi.Task, started: Started, quit: Quit) -> dict[str, Any]:
    name = started.name
    logger.info("job %s is at %s", name, started.url)
    _tell(task.set_tracking_url, started.url)
    feeder = threading.Thread(target=_feed, args=(started, quit), name=f"log of {name}", daemon=True)
    feeder.start()
    _report(task, started)
    for lines in started.changes(quit):
        for words in lines:
            logger.warning("job %s: %s", name, words)
        _report(task, started)
    record = _report(task, started)
    feeder.join(LOG_SECONDS)
    return record or started.record()


class Ear:
    """Hears Ctrl-C and SIGTERM, by which luigi ends the processes of its tasks, and ends a wait.

    An exception from a signal handler could come anywhere, and be lost there. A handler of other code stays.
    """

    def __init__(self) -> None:
        self.quit = Quit()
        self.heard: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # signals are for that one
        for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) == usual:
                self._before[number] = signal.signal(number, self._hear)

    def _hear(self, number: int, _: object) -> None:
        if self.heard == number == signal.SIGINT:
            raise KeyboardInterrupt  # a second signal means: do not wait
        self.heard = self.heard or signal.Signals(number)
        self.quit.set()

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            # Luigi sends SIGTERM right after Ctrl-C; once is enough while the job is being stopped.
            signal.signal(number, signal.SIG_IGN if self.heard and number == signal.SIGTERM else before)

    def pass_on(self) -> None:
        """Deliver the signals that were received, as if they had not been caught."""
        for number, before in self._before.items():
            signal.signal(number, before)
        if self.heard == signal.SIGINT:
            raise KeyboardInterrupt
        if self.heard is not None:
            signal.raise_signal(self.heard)


def _stop(started: Started) -> None:
    name = started.name
    if not Settings()["luigi_stop_on_interrupt"]:
        logger.info("job %s goes on", name)
        return
    logger.info("job %s is being stopped", name)
    try:
        started.stop()
    except PailotError as problem:
        logger.error("job %s could not be stopped: %s", name, problem)


def _feed(started: Started, quit: Quit) -> None:
    try:
        for line in started.lines(quit):
            logger.info("%s: %s", started.name, line)
    except PailotError as error:
        logger.warning("the log of %s cannot be followed: %s", started.name, error)


def _report(task: luigi.Task, started: Started) -> dict[str, Any] | None:
    try:
        record = started.record()
    except Unreachable:
        return None  # the wait for changes has its own time limit
    tasks = [each["state"] for node in record["taskRoles"].values() for each in node["tasks"]]
    ended = sum(state in ENDED for state in tasks)
    words = f"{record['state']}" + (f", {ended} of {len(tasks)} tasks ended" if tasks else "")
    _tell(task.set_status_message, f"{words}: {record['reason']}" if record.get("reason") else words)
    if tasks:
        _tell(task.set_progress_percentage, int(100 * ended / len(tasks)))
    return record


def _tell(callback: Any, value: Any) -> None:
    if callback is not None:  # luigi sets it while a worker runs the task
        callback(value)
