"""Work that may take long, done by a forked child while the process it is for goes on with other runs."""

from __future__ import annotations

import gc
import os
import signal
import time

from ...data.job_user import enter
from ...data.rules import OWN_MACHINE
from ...errors import PailotError
from ...progress import Progress
from ...runtime.processes import end_with_parent
from ...values import Value
from ..contract import EngineError, Unreachable
from .child_registry import CHILDREN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import NoReturn, TypeVar

    from ...data.rules import Rules
    from .child_registry import Parent

    Answer = TypeVar("Answer")

LOOK_SECONDS = 0.25
LONGEST_ANSWER_BYTES = 64 * 1024 * 1024
CLEANING_SECONDS = 10.0
"""What a child that is to stop may take to remove what it has begun."""


class Told(BaseException):
    """Raised in a child that is told to stop, so that it removes what it has begun."""


class News:
    """What a child tells of its progress; what nobody reads in time is not kept."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._rest = b""

    def tell(self, progress: Progress) -> None:
        from json import dumps

        try:
            os.write(self.writer, dumps(progress.to_dict()).encode() + b"\n")
        except (BlockingIOError, BrokenPipeError):
            pass  # nobody has looked for long

    def read(self) -> list[Progress]:
        """What was told since the last look."""
        from json import loads

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
        raise Told

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, stop)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent hears them as well, and decides
    end_with_parent(signal.SIGTERM, parent)


class Whose(Value):
    """For whom a child works: what it may open, as which Unix user, and where; as it stands here, for us."""

    rules: Rules = OWN_MACHINE
    user: str = ""
    places: tuple[str, ...] = ()
    """Addresses that it will open."""


def _packer(whose: Whose) -> Callable[[object], bytes]:
    """How a child tells its result; what another user's process tells is not to be unpickled."""
    if whose.user:
        import json

        return lambda told: json.dumps(told).encode()
    import pickle

    return pickle.dumps


class Preparer:
    """A child that does something and writes the answer to a file in memory."""

    def __init__(self, work: Callable[[], object], keep: Sequence[int], engine: Parent, whose: Whose | None = None) -> None:
        self.engine, self.whose = engine, whose or Whose()
        self.answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        self.ended = False
        self.status = 0
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work, keep, parent)
        CHILDREN.add(self.pid, self)

    def _run(self, work: Callable[[], object], keep: Sequence[int], parent: int) -> None:
        status = 1
        try:
            gc.disable()
            stops_when_told(parent)
            os.setsid()
            CHILDREN.keep_only((self.answer, *keep))
            pack = _packer(self.whose)
            try:
                if self.whose.rules.server:
                    enter(self.whose.rules, self.whose.user, self.whose.places)
                    end_with_parent(signal.SIGTERM, parent)  # who changes his user is no longer told
                told = pack((work(), "", False))
                status = 0
            except PailotError as error:
                told = pack((None, str(error), isinstance(error, Unreachable)))
            except OSError as error:
                told = pack((None, f"{error.strerror} ({error.filename})" if error.filename else str(error), False))
            with os.fdopen(os.dup(self.answer), "wb") as stream:
                stream.write(told)
        finally:
            os._exit(status)

    def child_ended(self, _pid: int, status: int) -> None:
        self.ended, self.status = True, status
        CHILDREN.touched[self.engine] = None  # its run goes on

    def read(self) -> object:
        """What the child answered; its error is raised here."""
        with os.fdopen(self.answer, "rb") as stream:
            stream.seek(0)
            told = stream.read(LONGEST_ANSWER_BYTES)
        if not told:
            raise EngineError(f"what the job needs could not be prepared: that process ended with status {self.status}")
        if self.whose.user:
            import json

            answer, problem, unreachable = json.loads(told)
        else:
            import pickle

            answer, problem, unreachable = pickle.loads(told)  # noqa: S301  # our own child wrote it, in memory
        if problem:
            raise Unreachable(problem) if unreachable else EngineError(problem)
        return answer


def in_a_child(
    work: Callable[[], Answer],
    keep: Sequence[int],
    engine: Parent,
    stopped: Callable[[], bool],
    news: News | None = None,
    hear: Callable[[Progress], None] = lambda _: None,
    whose: Whose | None = None,
) -> Generator[float | None, None, Answer]:
    """Do that in a child; ended early, with all it started, when the run is to stop. What it tells by `news` is passed on."""
    preparer = Preparer(work, (*keep, *((news.writer,) if news else ())), engine, whose)
    killed_at: float | None = None
    try:
        while not preparer.ended:
            yield time.monotonic() + LOOK_SECONDS if news or killed_at else None
            CHILDREN.reap()  # where a run is alone, nobody else does
            for each in news.read() if news else ():
                hear(each)
            if stopped() and not preparer.ended:
                now = time.monotonic()
                killed_at = killed_at or now
                _end(preparer.pid, signal.SIGTERM if now - killed_at < CLEANING_SECONDS else signal.SIGKILL)
    finally:
        if news:
            news.close()
    if stopped():
        os.close(preparer.answer)
        raise EngineError("stopped while it was prepared")
    return preparer.read()  # type: ignore[return-value]  # what `work` answered


def _end(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has just ended, or not yet begun its session
