"""The engine interface: the narrow waist between what is to run and where it runs.

An engine is handed one attempt of a job and is then observed; it is never asked to remember.
"""

from __future__ import annotations

from ..data.rules import OWN_MACHINE
from ..errors import PailotError
from ..values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import Any, Protocol, TypeVar

    from ..data.rules import Rules
    from ..planning import Plan

    Answer = TypeVar("Answer")

ABSENT, STARTING, RUNNING, ENDED, LOST = "absent", "starting", "running", "ended", "lost"


class LaunchContext(Value):
    """What a run takes from the process that started it."""

    cwd: str = ""
    work_dir: str = ""
    environment: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}
    """What stands in the scripts for a secret, and the secret; never written."""
    hidden: tuple[str, ...] = ()
    """Texts that no log may show."""
    cache: str = ""
    home: str = ""
    sandbox: bool = False
    rotate_bytes: int = 0
    code: str = ""
    """A folder whose content each task finds, as its own copy, in its working directory; it was sent along with the job."""
    source: str = ""
    """The job file with its secrets in clear, for an engine that hands the whole job on; never written."""
    run_as: str = ""
    """The Unix user whose processes the tasks are to be; empty for our own. An engine that cannot do so refuses."""
    rules: Rules = OWN_MACHINE
    """What the job may open: everything on a user's own machine, little on a server."""


class Attempt(Value):
    """One attempt of a job: what to run, and the folder where it is written down."""

    plan: Plan
    number: int
    folder: str
    checkpoints: str
    """A folder of the run with one for each task, which survives retries."""
    context: LaunchContext
    descriptors: tuple[int, ...] = ()
    """What every process that stands for a task keeps open beside its own: the lock of the run."""


class Observed(Value):
    """What was seen of a task: its state and, once it has ended, its final record."""

    role: str
    index: int
    state: str
    final: Mapping[str, Any] | None = None


class EngineError(PailotError):
    """An engine cannot do what it is asked; the message says why and what to do."""


class Unreachable(EngineError):
    """The engine itself is not there, or does not answer."""

    exit_status = 4


def through(steps: Generator[float | None, None, Answer], wait: Callable[[float | None], object]) -> Answer:
    """Go through steps to their end, and do nothing else; `wait` is told until when they pause at the longest."""
    while True:
        try:
            moment = next(steps)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        wait(moment)


if TYPE_CHECKING:

    class Engine(Protocol):
        """Where tasks run. One object serves one run, attempt after attempt; many of them may live in one process.

        No call may wait for long: other runs of the process would wait, too. An engine whose start has to wait can offer
        `starting(attempt, stopped)`: a generator that does what `start` does, yields the moment (of the monotonic clock, or
        None) at which it is to be resumed at the latest, and ends with an EngineError when `stopped()` is true. It is resumed
        whenever something may have happened. `start` remains for whoever has nothing else to do.
        """

        name: str
        wake: int
        """A descriptor that becomes readable when the run is to stop, for waits of its own."""

        def start(self, attempt: Attempt) -> Sequence[str]:
            """Start every task of an attempt, once; answers notes for the user."""

        def observe(self, attempt: Attempt) -> Sequence[Observed]:
            """What every task of an attempt is doing, at any time, after any crash."""

        def newly_ended(self, attempt: Attempt) -> Sequence[Observed]:
            """The tasks that ended, or were found lost, since the last call, in the order of their end."""

        def alive(self) -> bool:
            """Whether any task of the attempt may still be there."""

        def release(self) -> None:
            """Between two attempts: what the last one held is given back."""

        def changes(self) -> int | None:
            """A readable file descriptor that says 'look again', or None."""

        def events(self) -> Sequence[Mapping[str, Any]]:
            """What happened since the last call: retries, growing logs. The truth is in `observe`."""

        def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
            """Stop an attempt; the first reason is durable and wins, and is answered."""

        def close(self) -> None:
            """Leave nothing behind."""
