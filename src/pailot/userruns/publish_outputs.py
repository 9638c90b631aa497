"""Bringing the outputs of a run that has succeeded to where the job wants them, by a process of its own."""

from __future__ import annotations

import json
import os
import signal
import time

from ..data.job_user import enter
from ..data.upload_journal import UploadJournal
from ..engines.preparation.background_child import News, stops_when_told
from ..engines.preparation.child_registry import CHILDREN
from ..errors import PailotError
from ..runfolder import layout
from ..runtime import rights
from ..runtime.processes import end_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from ..data.rules import Rules
    from ..engines.contract import LaunchContext
    from ..progress import Progress
    from ..protocol.model import Channels

LOOK_SECONDS = 0.02
CLEANING_SECONDS = 30.0
"""What it may take, when it is to stop, to remove what it has sent."""

LONGEST_RESULT_BYTES = 1024 * 1024


class Published:
    """How it went: what went wrong, if anything; what is worth a word; whether it was stopped."""

    def __init__(self, error: str = "", notes: list[str] | None = None, *, stopped: bool = False) -> None:
        self.error, self.notes, self.stopped = error, notes or [], stopped


def publish(
    channels: Channels,
    attempt: str,
    around: LaunchContext,
    hear: Callable[[Progress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Generator[float | None, None, Published]:
    """Steps of a driver. Other runs of the same driver go on meanwhile; on a server it is done as the job's user."""
    news = News()
    result = os.memfd_create("result", os.MFD_CLOEXEC)
    places = tuple(channels.targets.values())
    try:
        pid = _fork(lambda: _publish(channels, attempt, around, news), attempt, (news.writer, result), around, places)
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
        found = _read(result)
    finally:
        news.close()
        os.close(result)
    if found is not None:
        return found
    # It did not come to its end. What it may have left is removed by another, who has nothing else to do.
    pid = _fork(lambda: _clean(attempt, around.rules), attempt, (), around, places)
    while not _ended(pid):
        yield time.monotonic() + LOOK_SECONDS
    if told is not None:
        return Published(stopped=True)
    return Published("the process that brings the outputs away was killed")


def _fork(
    work: Callable[[], Mapping[str, object] | None],
    attempt: str,
    keep: tuple[int, ...],
    around: LaunchContext,
    places: tuple[str, ...],
) -> int:
    """A child that does something as the job's user; the last descriptor of `keep` takes what it tells."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            stops_when_told(parent)
            CHILDREN.keep_only(keep)  # locks and pipes of other runs
            if around.run_as:
                _give_journal(attempt, around.run_as)
            enter(around.rules, around.run_as, places)
            end_with_parent(signal.SIGTERM, parent)  # who changes his user is no longer told
            found = work()
            if found is not None:
                os.write(keep[-1], json.dumps(found).encode())
            status = 0
        finally:
            os._exit(status)
    return pid


def _read(result: int) -> Published | None:
    """What the child told. It is another user's process: nothing is taken for granted."""
    try:
        found = json.loads(os.pread(result, LONGEST_RESULT_BYTES, 0))
        return Published(str(found["error"]), [str(each) for each in found["notes"]])
    except (ValueError, TypeError, KeyError):
        return None


def _give_journal(attempt: str, run_as: str) -> None:
    """Whoever does it keeps the journal; that it is his own does no harm, for it is only read with his rights."""
    held = os.open(_journal(attempt).path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    rights.give_open(held, rights.unix_user(run_as))
    os.close(held)


def _publish(channels: Channels, attempt: str, around: LaunchContext, news: News) -> dict[str, object]:
    from ..data.ml_strays import left_behind
    from ..data.upload import publish

    _clean_earlier(attempt, around.rules)
    folder = os.path.join(attempt, layout.ML, "output")
    try:
        notes = publish(channels.targets, folder, around.cwd, _journal(attempt), news.tell, around.rules)
    except PailotError as error:
        return {"error": str(error), "notes": []}
    return {"error": "", "notes": [*notes, *left_behind(channels, _seen_as_ml(attempt))]}


def _seen_as_ml(attempt: str) -> list[str]:
    """The folders that tasks saw as /ml; what they share first."""
    tasks = os.path.join(attempt, layout.TASKS)
    each = sorted(os.listdir(tasks)) if os.path.isdir(tasks) else []
    return [os.path.join(attempt, layout.ML), *(os.path.join(tasks, name, layout.ML) for name in each)]


def _clean_earlier(attempt: str, rules: Rules) -> None:
    """What earlier attempts of the same run left, whose driver was killed."""
    parent, number = os.path.split(attempt)
    for earlier in range(int(number) if number.isdigit() else 0):
        _clean(os.path.join(parent, str(earlier)), rules)


def _clean(attempt: str, rules: Rules) -> None:
    from ..data.upload import undo

    try:
        undo(_journal(attempt), rules, attempt)
    except PailotError:
        pass  # nobody is there; the journal still says what is to be removed


def _journal(attempt: str) -> UploadJournal:
    return UploadJournal(layout.outputs_ledger(attempt))


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
