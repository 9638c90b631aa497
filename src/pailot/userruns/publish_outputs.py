"""Bringing the outputs of a run that has succeeded to where the job wants them, by a process of its own."""

from __future__ import annotations

import os

from ..data.ml_strays import left_behind
from ..data.upload_journal import UploadJournal
from ..engines.contract import EngineError
from ..engines.preparation.background_child import BackgroundChild, ChildDied, News, Whose, beside
from ..errors import PailotError
from ..runfolder import layout
from ..runtime import rights

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..data.rules import Rules
    from ..engines.contract import Engine, LaunchContext, Steps
    from ..job_values import Channels
    from ..progress import Progress

CLEANING_SECONDS = 30.0
"""What it may take, when it is to stop, to remove what it has sent."""


class Published:
    """How it went: what went wrong, if anything; what is worth a word; whether it was stopped."""

    def __init__(self, error: str = "", notes: list[str] | None = None, *, stopped: bool = False) -> None:
        self.error, self.notes, self.stopped = error, notes or [], stopped


def publish(
    channels: Channels,
    attempt: str,
    engine: Engine,
    context: LaunchContext,
    hear: Callable[[Progress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Steps[Published]:
    """Steps of a driver. Other runs of the same driver go on meanwhile; on a server it is done as the job's user."""
    whose = Whose(context.rules, context.run_as, tuple(channels.targets.values()))
    seen = _seen_as_ml(attempt)  # found with our own rights: the job's user may not list the folders of the tasks
    news, told = News(), False

    def asked() -> bool:
        nonlocal told
        told = told or stopped()
        return told

    def first() -> None:
        if context.run_as and channels.targets:
            _give_journal(attempt, context.run_as)

    child = BackgroundChild(
        lambda: _publish(channels, attempt, seen, context, news), engine, keep=(news.writer,), whose=whose, first=first
    )
    try:
        yield from beside(child, asked, news, hear, CLEANING_SECONDS)
        for each in news.read():
            hear(each)
        found = _read(child)
    finally:
        child.close()
        news.close()
    if found is not None:
        return found
    # It did not come to its end. What it may have left is removed by another, who has nothing else to do.
    cleaner = BackgroundChild(lambda: _clean(attempt, context.rules), engine, whose=whose, first=first)
    try:
        yield from beside(cleaner, lambda: False)
    finally:
        cleaner.close()
    return Published(stopped=True) if told else Published("the process that brings the outputs away was killed")


def _read(child: BackgroundChild) -> Published | None:
    """What the child told; None if it came to no end."""
    try:
        found = child.read()
        return Published(str(found["error"]), [str(each) for each in found["notes"]])
    except ChildDied:
        return None
    except EngineError as error:
        return Published(str(error))
    except (TypeError, KeyError):
        return None  # another user's process has written this


def _give_journal(attempt: str, run_as: str) -> None:
    """Whoever does it keeps the journal; that it is his own does no harm, for it is only read with his rights."""
    held = os.open(_journal(attempt).path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    rights.give_open(held, rights.unix_user(run_as))
    os.close(held)


def _publish(channels: Channels, attempt: str, seen: list[str], context: LaunchContext, news: News) -> dict[str, object]:
    from ..data.upload import publish

    if not channels.targets:
        return {"error": "", "notes": left_behind(channels, _seen_as_ml(attempt))}
    _clean_earlier(attempt, context.rules)
    folder = os.path.join(attempt, layout.ML, "output")
    try:
        notes = publish(channels.targets, folder, context.cwd, _journal(attempt), news.tell, context.rules)
    except PailotError as error:
        return {"error": str(error), "notes": []}
    return {"error": "", "notes": [*notes, *left_behind(channels, seen)]}


def _seen_as_ml(attempt: str) -> list[str]:
    """The folders that tasks saw as /ml; what they share first."""
    return [os.path.join(each, layout.ML) for each in (attempt, *sorted(layout.begun_tasks(attempt)))]


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
        pass  # the target cannot be reached; the journal still says what is to be removed


def _journal(attempt: str) -> UploadJournal:
    return UploadJournal(layout.outputs_ledger(attempt))
