"""Bringing the outputs of a run that has succeeded to where the job wants them, by a process of its own."""

from __future__ import annotations

import os
import signal
import time

from ..data import upload_journal
from ..engines.preparation.background_child import News, stops_when_told
from ..engines.preparation.child_registry import CHILDREN
from ..engines.preparation.unix_owner import Owner, acting
from ..errors import PailotError
from ..runtime.atomic_json import read_record, write_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from ..progress import Progress
    from ..protocol.model import Channels

LOOK_SECONDS = 0.02
CLEANING_SECONDS = 30.0
"""What it may take, when it is to stop, to remove what it has sent."""

NEEDED = ("json", "shutil", "urllib.parse", "concurrent.futures.thread", "..progress", "..data.upload")
"""What is loaded before another user's rights are taken: he may not be able to read our Python."""


class Published:
    """How it went: what went wrong, if anything; what is worth a word; whether it was stopped."""

    def __init__(self, error: str = "", notes: list[str] | None = None, *, stopped: bool = False) -> None:
        self.error, self.notes, self.stopped = error, notes or [], stopped


def publish(
    channels: Channels,
    attempt: str,
    cwd: str,
    hear: Callable[[Progress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    run_as: str = "",
) -> Generator[float | None, None, Published]:
    """Steps of a driver. Other runs of the same driver go on meanwhile; it is done with the rights of `run_as`."""
    news = News()
    try:
        pid = _fork(lambda: _publish(channels, attempt, cwd, news), attempt, (news.writer,), run_as)
        told = None
        pause = LOOK_SECONDS
        while not _ended(pid):
            yield time.monotonic() + pause
            pause = min(0.5, pause * 1.5)
            for each in news.read():
                hear(each)
            if stopped():
                told = told or time.monotonic()
                _signal(pid, signal.SIGTERM if time.monotonic() - told < CLEANING_SECONDS else signal.SIGKILL)
        for each in news.read():
            hear(each)
    finally:
        news.close()
    found = read_record(_result(attempt))
    if found is not None:
        return Published(str(found["error"]), list(found["notes"]))
    # It did not come to its end. What it may have left is removed by another, who has nothing else to do.
    pid = _fork(lambda: _clean(attempt), attempt, (), run_as)
    while not _ended(pid):
        yield time.monotonic() + LOOK_SECONDS
    if told is not None:
        return Published(stopped=True)
    return Published("the process that brings the outputs away was killed")


def _fork(work: Callable[[], dict[str, object] | None], attempt: str, keep: tuple[int, ...], run_as: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            stops_when_told(parent)
            CHILDREN.keep_only(keep)  # locks and pipes of other runs
            _hand_over(attempt, run_as)
            with acting(run_as):
                found = work()
            if found is not None:
                write_record(_result(attempt), found)
            status = 0
        finally:
            os._exit(status)
    return pid


def _hand_over(attempt: str, run_as: str) -> None:
    """Whoever does it keeps the journal; that it is his own does no harm, for it is only read with his rights."""
    if run_as:
        from importlib import import_module

        for each in NEEDED:
            import_module(each, __package__)
        path = _journal(attempt).path
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.chown(path, *Owner(run_as).ids)


def _publish(channels: Channels, attempt: str, cwd: str, news: News) -> dict[str, object]:
    from ..data.upload import publish

    _clean_earlier(attempt)
    try:
        notes = publish(channels.targets, os.path.join(attempt, "ml", "output"), cwd, _journal(attempt), news.tell)
    except PailotError as error:
        return {"error": str(error), "notes": []}
    return {"error": "", "notes": notes}


def _clean_earlier(attempt: str) -> None:
    """What earlier attempts of the same run left, whose driver was killed."""
    parent, number = os.path.split(attempt)
    for earlier in range(int(number) if number.isdigit() else 0):
        _clean(os.path.join(parent, str(earlier)))


def _clean(attempt: str) -> None:
    from ..data.upload import undo

    try:
        undo(_journal(attempt))
    except PailotError:
        pass  # nobody is there; the journal still says what is to be removed


def _journal(attempt: str) -> upload_journal.UploadJournal:
    return upload_journal.UploadJournal(os.path.join(attempt, upload_journal.NAME))


def _result(attempt: str) -> str:
    return os.path.join(attempt, "outputs.json")


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has just ended


def _ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True  # an engine of this process has seen its end
