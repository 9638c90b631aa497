"""Work that may take long, done by a forked child while the process it is for goes on with other runs."""

from __future__ import annotations

import gc
import os
import signal

from ...protocol.problems import PailotError
from ..base import EngineError, Unreachable
from .children import CHILDREN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import TypeVar

    from .children import Parent

    Answer = TypeVar("Answer")


class Preparer:
    """A child that does something and writes the answer to a file in memory."""

    def __init__(self, work: Callable[[], object], keep: Sequence[int], engine: Parent) -> None:
        self.engine = engine
        self.answer = os.memfd_create("answer", os.MFD_CLOEXEC)
        self.ended = False
        self.status = 0
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work, keep)
        CHILDREN.add(self.pid, self)

    def _run(self, work: Callable[[], object], keep: Sequence[int]) -> None:
        import pickle

        status = 1
        try:
            gc.disable()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            CHILDREN.keep_only((self.answer, *keep))
            try:
                told = pickle.dumps((work(), "", False))
                status = 0
            except PailotError as error:
                told = pickle.dumps((None, str(error), isinstance(error, Unreachable)))
            except OSError as error:
                told = pickle.dumps((None, f"{error.strerror} ({error.filename})" if error.filename else str(error), False))
            with os.fdopen(os.dup(self.answer), "wb") as stream:
                stream.write(told)
        finally:
            os._exit(status)

    def child_ended(self, _pid: int, status: int) -> None:
        self.ended, self.status = True, status
        CHILDREN.touched[self.engine] = None  # its run goes on

    def read(self) -> object:
        """What the child answered; its error is raised here."""
        import pickle

        with os.fdopen(self.answer, "rb") as stream:
            stream.seek(0)
            told = stream.read()
        if not told:
            raise EngineError(f"what the job needs could not be prepared: that process ended with status {self.status}")
        answer, problem, unreachable = pickle.loads(told)  # noqa: S301  # our own child wrote it, in memory
        if problem:
            raise Unreachable(problem) if unreachable else EngineError(problem)
        return answer


def in_a_child(
    work: Callable[[], Answer], keep: Sequence[int], engine: Parent, stopped: Callable[[], bool]
) -> Generator[float | None, None, Answer]:
    """Do that in a child; ended early, with all it started, when the run is to stop."""
    preparer = Preparer(work, keep, engine)
    while not preparer.ended:
        yield None
        CHILDREN.reap()  # where a run is alone, nobody else does
        if stopped() and not preparer.ended:
            try:
                os.killpg(preparer.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it has just ended, or not yet begun its session
    if stopped():
        os.close(preparer.answer)
        raise EngineError("stopped while it was prepared")
    return preparer.read()  # type: ignore[return-value]  # what `work` answered
