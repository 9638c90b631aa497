"""An engine without processes, for tests: its tasks do what they are told, and it remembers what it was asked.

    engine = FakeEngine()
    steps = Driver(folder, plan, engine, LaunchContext()).steps()
    next(steps)                      # the tasks have started
    engine.end("worker", 0)
    next(steps)                      # … and the driver has seen that one of them has ended

Records and claims are written as real tasks would, so that whatever reads the folder finds them.
"""

from __future__ import annotations

import os
import time

from ..runfolder import layout
from ..runfolder.atomic_json import write_record
from ..runfolder.careful_files import make_folders
from ..runfolder.records import TaskRecord
from ..runfolder.stop_reason import claim_stop
from ..values import Value
from .contract import Engine, EngineError
from .observation import ENDED, LOST, Observation, Observed, observe_folder
from .traits import Traits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..lifecycle.completion import Outcome
    from .contract import Attempt, EngineContext, Steps

__all__ = ["FakeEngine", "Stop"]


class Stop(Value):
    """A stop that the engine was asked for."""

    attempt: int
    grace: float
    why: str
    now: bool


class FakeEngine(Engine):
    """Tasks run until a test ends them; `obeys` says whether a stop ends them, too.

    ::

        engine = FakeEngine()
        steps = Driver(folder, plan, engine, LaunchContext()).steps()
        next(steps)  # the tasks have started
        engine.end("worker", 0)
    """

    name = "fake"
    outcomes: dict[str, Outcome] = {}
    """What a driver beside the tasks has decided, by the attempt's folder: it lies elsewhere, and outlives the engine."""

    def __init__(self, context: EngineContext | None = None, traits: Traits | None = None, *, obeys: bool = True) -> None:
        super().__init__(context)
        self.traits = traits or Traits()
        self.obeys = obeys
        self.problem: Exception | None = None
        """What goes wrong at the next start; `halfway` says whether the tasks run by then."""
        self.halfway = False
        self.waits = False
        """Whether a start waits until this is changed, or the run is to stop."""
        self.notes: tuple[str, ...] = ()
        self.sign: int | None = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        """Readable when something was told; a test that makes it None has an engine that must be asked again and again."""
        self.started: list[Attempt] = []
        self.stops: list[Stop] = []
        self.released = self.closed = 0
        self.running: dict[tuple[str, int], str] = {}
        """The tasks that run, and their folders."""
        self._ended: list[Observed] = []
        self._events: list[Mapping[str, Any]] = []

    # What a test tells it

    def end(self, role: str, index: int, *, outcome: str = "", exit_code: int | None = 0, **more: Any) -> None:
        """A task has ended for good: it has succeeded with exit code 0, and else failed, unless `outcome` says more."""
        outcome = outcome or ("succeeded" if exit_code == 0 else "failed")
        final = TaskRecord(outcome, exit_code=exit_code, attempt=0, ended=time.time(), **more)
        write_record(os.path.join(self.running.pop((role, index)), layout.FINAL), final.to_json(), durable=False)
        self._ended.append(Observed(role, index, ENDED, final))
        self._wake()

    def lose(self, role: str, index: int, reason: str = "its node is gone") -> None:
        """A task is gone, and how it ended is not known."""
        del self.running[role, index]
        self._ended.append(Observed(role, index, LOST, TaskRecord(LOST, reason=reason)))
        self._wake()

    def tell(self, event: str, **details: Any) -> None:
        """Something happened that is no end: claimed, grown, retry, held, state."""
        self._events.append({"event": event, **details})
        self._wake()

    def decide(self, outcome: Outcome) -> None:
        """The driver beside the tasks has decided; nothing runs any more."""
        self.outcomes[self.started[-1].folder] = outcome
        self.running.clear()
        self._wake()

    def _wake(self) -> None:
        if self.sign is not None:
            os.eventfd_write(self.sign, 1)

    # The contract

    def start(self, attempt: Attempt, stopped: Callable[[], bool]) -> Steps[Sequence[str]]:
        self.started.append(attempt)
        while self.waits:
            yield None
            if stopped():
                raise EngineError("stopped while it waited")
        problem, self.problem = self.problem, None
        if problem is not None and not self.halfway:
            raise problem
        for role in attempt.plan.roles.values():
            for index in range(role.instances):
                folder = layout.task_folder(attempt.folder, role.name, index)
                make_folders(folder, exist_ok=True)
                os.close(os.open(os.path.join(folder, layout.CLAIM), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
                self.running[role.name, index] = folder
        if problem is not None:
            raise problem
        return self.notes

    def newly_ended(self, attempt: Attempt) -> Sequence[Observed]:
        ended, self._ended = self._ended, []
        return ended

    def alive(self) -> bool:
        return bool(self.running or self._ended)

    def stop(self, attempt: Attempt, grace: float, why: str, *, now: bool = False) -> str:
        stands = claim_stop(attempt.folder, why, grace)
        self.stops.append(Stop(attempt.number, grace, why, now))
        if self.obeys or now:
            for role, index in list(self.running):
                self.end(role, index, outcome="stopped", exit_code=None)
        return stands

    def changes(self) -> int | None:
        return self.sign

    def events(self) -> Sequence[Mapping[str, Any]]:
        if self.sign is not None:
            try:
                os.eventfd_read(self.sign)
            except BlockingIOError:
                pass  # nothing was told since
        events, self._events = self._events, []
        return events

    def decided(self, attempt: Attempt) -> Outcome | None:
        return self.outcomes.get(attempt.folder)

    def abandon(self) -> Sequence[tuple[str, int]]:
        killed = tuple(self.running)
        self.running.clear()
        return killed

    def release(self) -> None:
        self.released += 1

    def close(self) -> None:
        self.closed += 1
        sign, self.sign = self.sign, None
        if sign is not None:
            os.close(sign)

    def observe(self, folder: str) -> Observation:
        return observe_folder(folder).replace(outcome=self.outcomes.get(folder))

    def stop_detached(self, folder: str, grace: float, *, now: bool) -> None:
        claim_stop(folder, "user", grace)
