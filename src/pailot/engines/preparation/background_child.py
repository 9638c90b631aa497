"""Work that may take long, done by a forked child while the process it is for goes on with other runs."""

from __future__ import annotations

import gc
import os
import signal
import time
from json import dumps, loads

from ...data.job_user import enter
from ...data.rules import OWN_MACHINE
from ...errors import PailotError
from ...progress import Progress
from ...runtime.processes import end_with_parent
from ...values import Value
from ..contract import EngineError, Unreachable
from .child_registry import CHILDREN, keep_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn, TypeVar

    from ...data.rules import Rules
    from ..contract import Engine, Steps

    Answer = TypeVar("Answer")

LOOK_SECONDS = 0.25
LONGEST_RESULT_BYTES = 64 * 1024 * 1024
CLEANING_SECONDS = 10.0
"""What a child that is to stop may take to remove what it has begun."""


class ToldToStop(BaseException):
    """Raised in a child that is told to stop, so that it removes what it has begun."""


class ChildDied(EngineError):
    """A child ended without having told what came of its work."""


class News:
    """The progress that a child reports; what is not read in time is not kept."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._rest = b""

    def tell(self, progress: Progress) -> None:
        try:
            os.write(self.writer, dumps(progress.to_dict()).encode() + b"\n")
        except (BlockingIOError, BrokenPipeError):
            pass  # it was not read for long

    def read(self) -> list[Progress]:
        """What was told since the last look."""
        found = self._rest
        try:
            while piece := os.read(self.reader, 1 << 16):
                found += piece
        except BlockingIOError:
            pass
        *lines, self._rest = found.split(b"\n")
        return [Progress.from_dict(loads(line)) for line in lines]

    def close(self) -> None:
        os.close(self.reader)
        os.close(self.writer)


def stops_when_told(parent: int) -> None:
    """In a child: SIGTERM, or the end of its parent, ends its work, and what it has begun is removed."""

    def stop(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise ToldToStop

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, stop)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent hears them as well, and decides
    end_with_parent(signal.SIGTERM, parent)


class Whose(Value):
    """What a child may open, as which Unix user, and where; by default as this process."""

    rules: Rules = OWN_MACHINE
    user: str = ""
    places: tuple[str, ...] = ()
    """Addresses that it will open."""


class BackgroundChild:
    """A child that does something, as the job's user on a server, and writes what came of it to a file in memory."""

    def __init__(
        self,
        work: Callable[[], object],
        engine: Engine,
        *,
        keep: Sequence[int] = (),
        whose: Whose | None = None,
        first: Callable[[], None] = lambda: None,
    ) -> None:
        """`keep` are descriptors of the run; `first` is done before the child becomes the job's user."""
        self.engine = engine
        self.result = os.memfd_create("result", os.MFD_CLOEXEC)
        self.ended = False
        self.status = 0
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work, keep, whose or Whose(), first, parent)
        CHILDREN.add(self.pid, self)

    def _run(
        self, work: Callable[[], object], keep: Sequence[int], whose: Whose, first: Callable[[], None], parent: int
    ) -> NoReturn:
        status = 1
        try:
            gc.freeze()  # or to collect would copy all the memory that we share with our parent
            gc.enable()
            stops_when_told(parent)
            os.setsid()
            if self.engine.context.many_runs:
                keep_only((self.result, *keep))

            try:
                first()
                enter(whose.rules, whose.user, whose.places)
                end_with_parent(signal.SIGTERM, parent)  # a process that changes its user is no longer told
                told = dumps((work(), "", False))
                status = 0
            except PailotError as error:
                told = dumps((None, str(error), isinstance(error, Unreachable)))
            except OSError as error:
                told = dumps((None, f"{error.strerror} ({error.filename})" if error.filename else str(error), False))
            with os.fdopen(os.dup(self.result), "w") as stream:
                stream.write(told)
        finally:
            os._exit(status)

    def child_ended(self, _pid: int, status: int) -> None:
        self.ended, self.status = True, status
        CHILDREN.touched[self.engine] = None  # its run goes on

    def signal(self, number: int) -> None:
        """To the child and all that it has started."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # it has just ended, or not yet begun its session

    def read(self) -> Any:
        """What came of it; the child's error is raised here. It may be another user's process: nothing is taken for granted."""
        try:
            result, problem, unreachable = loads(os.pread(self.result, LONGEST_RESULT_BYTES, 0))
            problem = str(problem)
        except (ValueError, TypeError):
            raise ChildDied(f"what the job needs could not be prepared: that process ended with status {self.status}") from None
        if problem:
            raise Unreachable(problem) if unreachable else EngineError(problem)
        return result

    def close(self) -> None:
        os.close(self.result)


def beside(
    child: BackgroundChild,
    stopped: Callable[[], bool],
    news: News | None = None,
    hear: Callable[[Progress], None] = lambda _: None,
    cleaning_seconds: float = CLEANING_SECONDS,
) -> Steps[None]:
    """Steps until a child has ended: by itself, or because the run is to stop; it then removes what it has begun.

    What it tells by `news` is passed on.
    """
    told: float | None = None
    while not child.ended:
        yield time.monotonic() + LOOK_SECONDS if news or told else None
        CHILDREN.reap()  # where a run is alone, no loop does
        if stopped() and not child.ended:
            now = time.monotonic()
            told = told or now
            child.signal(signal.SIGTERM if now - told < cleaning_seconds else signal.SIGKILL)
        for each in news.read() if news else ():
            hear(each)


def in_a_child(
    work: Callable[[], Answer],
    keep: Sequence[int],
    engine: Engine,
    stopped: Callable[[], bool],
    news: News | None = None,
    hear: Callable[[Progress], None] = lambda _: None,
    whose: Whose | None = None,
) -> Steps[Answer]:
    """Do that in a child, and return what came of it, which JSON can hold; ended early when the run is to stop."""
    child = BackgroundChild(work, engine, keep=(*keep, *((news.writer,) if news else ())), whose=whose)
    try:
        yield from beside(child, stopped, news, hear)
        if stopped():
            raise EngineError("stopped while it was prepared")
        return child.read()  # type: ignore[no-any-return]  # as `work` returned it
    finally:
        child.close()
        if news:
            news.close()
