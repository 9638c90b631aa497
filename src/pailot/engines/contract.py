"""The engine contract: the narrow waist between what is to run and where it runs.

An engine is handed one attempt of a job and is then observed; it is never asked to remember.
"""

from __future__ import annotations

import os

from ..data.rules import OWN_MACHINE
from ..errors import PailotError
from ..runfolder import layout
from ..values import Value
from .observation import observe_folder
from .traits import Traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import Any, TypeAlias, TypeVar

    from ..data.rules import Rules
    from ..job_values import Auth
    from ..lifecycle.completion import Outcome
    from ..planning import Plan
    from ..progress import Progress
    from .observation import Observation, Observed

    Answer = TypeVar("Answer")
    Steps: TypeAlias = Generator[float | None, None, Answer]
    """Work that pauses: it yields the moment (of the monotonic clock) at which it goes on at the latest, None for never."""

__all__ = [
    "Attempt",
    "Engine",
    "EngineContext",
    "EngineError",
    "EngineFinding",
    "LaunchContext",
    "Unreachable",
]


class LaunchContext(Value):
    """What a run takes from the process that started it."""

    cwd: str = ""
    work_dir: str = ""
    environment: Mapping[str, str] = {}
    secrets: Mapping[str, str] = {}
    """What stands in the plan for a secret, and the secret; never written."""
    logins: Mapping[str, Auth] = {}
    """The credentials for the images of roles, with secrets inserted; never written."""
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
    data_folder: str = ""
    """Where data sets of the library lie that jobs of this machine share; empty: each job's user has copies."""
    data_bytes: int = 0
    """To how much of it what no job uses is removed."""
    data_user: str = ""
    """The Unix user who fetches into it; empty for our own."""

    def __repr__(self) -> str:
        return f"LaunchContext(cwd={self.cwd!r}, home={self.home!r}, {len(self.secrets)} secrets)"


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


class EngineFinding(Value):
    """One thing that an engine finds about where its tasks run, for `pailot doctor -e`."""

    name: str
    is_fine: bool
    text: str
    advice: str = ""


class EngineError(PailotError):
    """An engine cannot do what it is asked; the message says why and what to do."""


class Unreachable(EngineError):
    """The engine itself is not there, or does not answer."""

    exit_status = 4


def _ignore(_: object) -> None:
    pass


class EngineContext(Value):
    """The process that an engine works for: the one that drives the run."""

    waiting: Callable[[str], None] = _ignore
    """Told, in words, what the run waits for."""
    many_runs: bool = False
    """Whether this process drives many runs: what takes long is then left to a child, and a child keeps nothing of the others."""
    patience_seconds: float | None = None
    """How long what the engine follows may be out of reach before `give_up` is called; None: for ever."""
    give_up: Callable[[], None] = lambda: None
    dependency: str = ""
    """What the first attempt follows, in the words of the cluster: Slurm's `afterok:12,afterany:13`."""
    never_starts: Callable[[], str] = str
    """Why a run that follows others can never start, in words; empty while it may."""


class Engine:
    """Where tasks run. One object serves one run, attempt after attempt; many of them may live in one process.

    Four methods have to be written: `start`, `newly_ended`, `alive` and `stop`. All others have a default, which is right
    for tasks that live and die with the process that drives them. No call may wait for long: other runs of the process
    would wait, too.

    Whatever the tasks write lies in the attempt's folder, in the form that docs/reference/job-folder.md describes, when
    `newly_ended` returns their end: logs, records, the outcome. Readers look only there.

    ::

        class MyEngine(Engine):
            name = "mine"
            traits = Traits(has_channels=False)

            def start(self, attempt, stopped): ...

    docs/how-to/write-an-engine.md has a complete one.
    """

    name = ""
    traits = Traits()
    first_task_began: float | None = None
    """When the first task of the last attempt was started; None: when `start` ended."""

    def __init__(self, context: EngineContext | None = None) -> None:
        self.context = context or EngineContext()
        self.progressed: Callable[[Progress], None] = _ignore
        """Told how far the inputs are on their way; the driver sets it."""

    @classmethod
    def check(cls) -> None:
        """Raise an EngineError where this engine cannot be used, and say what to do."""

    @classmethod
    def examine(cls) -> Sequence[EngineFinding]:
        """Return a finding for each thing that this engine needs, for `pailot doctor -e`.

        It may raise an EngineError, which becomes a finding, too.
        """
        cls.check()
        return (EngineFinding(cls.name, True, "it can be used here"),)

    @classmethod
    def needed_rights(cls) -> str:
        """What an administrator has to allow, as a document for a program of theirs; empty where nothing is needed."""
        return ""

    @classmethod
    def dependency(cls, ends: Sequence[tuple[str, bool]]) -> str:  # noqa: ARG003  # of those that have such a line
        """Return how a cluster with a line of its own lets a job follow others, in its own words; empty: it cannot.

        `ends` are folders of attempts of this engine, and whether each has to succeed. The text becomes the `dependency` of an
        `EngineContext`.
        """
        return ""

    # One attempt

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        """Start every task of an attempt, once; returns notes for the user.

        This is a generator. Where it has to wait it yields the moment at which it is to be resumed at the latest, or None;
        it is resumed whenever something may have happened: at that moment, when `changes` is readable, when a child has
        ended, when the run is to stop. Then `stopped()` is true, and it raises an EngineError.
        """
        raise NotImplementedError

    def newly_ended(self, attempt: Attempt) -> Sequence[Observed]:
        """The tasks that ended for good, or were found lost, since the last call, in the order of their end."""
        raise NotImplementedError

    def alive(self) -> bool:
        """Whether any task of the attempt may still be there, or its end was not returned yet."""
        raise NotImplementedError

    def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
        """Stop an attempt; the first reason is durable before any signal, wins, and is returned."""
        raise NotImplementedError

    def changes(self) -> int | None:
        """A file descriptor that is readable when it is time to look again; None: the driver looks once a second."""
        return None

    def events(self) -> Sequence[Mapping[str, Any]]:
        """What happened since the last call: claims, retries, growing logs. The truth is in the folder."""
        return ()

    def decided(self, attempt: Attempt) -> Outcome | None:
        """How the attempt ended, for an engine whose traits say that it decides that; None: it ended without a word."""
        return None

    def abandon(self) -> Sequence[tuple[str, int]]:
        """Kill without grace what runs on this machine, for the run cannot be driven on; returns the tasks that it was."""
        return ()

    def release(self) -> None:
        """Between two attempts: what the last one held is given back."""

    def close(self) -> None:
        """The driver is done: leave nothing behind, or look away from what goes on without us."""

    def child_ended(self, pid: int, status: int) -> None:
        """A process that was added to `preparation.child_registry` for this engine has ended."""

    # Without a driver

    def observe(self, folder: str) -> Observation:
        """What has become of the attempt in a folder that no process drives; level-triggered, by any process.

        By default as the folder tells. An engine whose truth lies elsewhere asks there.
        """
        return observe_folder(folder)

    def stop_detached(self, folder: str, grace: float, *, now: bool) -> None:
        """Stop an attempt that no process drives; only for engines whose runs `can_be_driven_on`."""
        raise NotImplementedError

    # For the user

    def preview(self, plan: Plan, hidden: Sequence[str] = ()) -> str:
        """What the engine asks others for, as text, for `pailot plan`; empty where it asks nothing.

        The texts in `hidden` are masked in it by the caller; an engine that packs or encodes them leaves them out itself.
        """
        return ""

    def shell_prefix(self, task_folder: str, *, terminal: bool) -> list[str]:
        """The words that bring a shell to where a task is, for `pailot enter`; none where that is here."""
        return []

    @classmethod
    def files_folder(cls, task_folder: str) -> str:
        """The working directory of a server's task, as this machine sees it, for `pailot cp`; EngineError where it does not."""
        found = os.path.join(task_folder, layout.WORK)
        if not os.path.isdir(found):
            raise EngineError("the files of this task are not on this machine")
        return found

    @classmethod
    def listening(cls, task_folder: str) -> set[int]:
        """The TCP ports on which the processes of a task that runs listen, for `pailot forward`."""
        from ..runtime.strays import marked
        from ..runtime.tcp_listeners import ports_of

        claim = os.path.join(task_folder, layout.CLAIM)
        return ports_of(marked([claim])) if os.path.exists(claim) else set()

    @classmethod
    def dial(cls, task_folder: str, host: str, port: int, seconds: float) -> socket.socket:  # noqa: ARG003  # for those who tunnel
        """A connection to a port of a task, for `pailot forward`; `host` is the machine that the task was placed on."""
        import socket

        return socket.create_connection((host, port), timeout=seconds)


def through(steps: Steps[Answer], wait: Callable[[float | None], object] = _ignore) -> Answer:
    """Go through steps to their end, and do nothing else; `wait` is told until when they pause at the longest."""
    while True:
        try:
            moment = next(steps)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
        wait(moment)
