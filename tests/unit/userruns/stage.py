"""A run that is driven step by step on the fake engine: no process, no clock, a folder in memory or on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pailot import loads, plan
from pailot.engines.contract import LaunchContext
from pailot.engines.fake import FakeEngine
from pailot.engines.traits import Traits
from pailot.progress import Progress
from pailot.runfolder import layout
from pailot.runfolder.journal import Event
from pailot.runfolder.plan import Plan
from pailot.runfolder.records import RunRecord, VerdictRecord
from pailot.testing.runs import job, role
from pailot.userruns.driver import Driver, Watcher
from pailot.userruns.run_folder import JobFolder

TWO = role("true", "worker", instances=2, failed=1, succeeded=2)
MANY_STEPS = 1000


class Witness(Watcher):
    """Remembers what a watcher is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.logs: list[tuple[int, str, int, int]] = []
        self.notes: list[str] = []
        self.moves: list[Progress] = []
        self.verdicts: list[Mapping[str, Any]] = []

    def started(self, attempt: int, notes: list[str]) -> None:
        self.notes += notes

    def happened(self, event: Event) -> None:
        self.events.append(event)

    def moved(self, progress: Progress) -> None:
        self.moves.append(progress)

    def grown(self, attempt: int, role: str, index: int, task_attempt: int) -> None:
        self.logs.append((attempt, role, index, task_attempt))

    def finished(self, verdict: VerdictRecord) -> None:
        self.verdicts.append(verdict.to_json())


class Stage:
    """One run and its driver."""

    def __init__(
        self, folder: Path, *roles: str, traits: Traits | None = None, obeys: bool = True, resumes: bool = False, **options: Any
    ) -> None:
        text = job(*(roles or (TWO,)), **options)
        self._begin(folder, plan(loads(text), "me"), text, traits, obeys=obeys, resumes=resumes)

    @classmethod
    def of_plan(cls, folder: Path, planned: Plan) -> Stage:
        """A run of a plan that no job file can say."""
        made = cls.__new__(cls)
        made._begin(folder, planned, "", None, obeys=True, resumes=False)
        return made

    def _begin(self, folder: Path, planned: Plan, text: str, traits: Traits | None, *, obeys: bool, resumes: bool) -> None:
        self.plan = planned
        record = RunRecord(id="1", name="demo", user="me", submitted=time.time(), engine="fake")
        self.folder = JobFolder.create(str(folder / "run"), record, text, self.plan.to_json())
        self.engine = FakeEngine(traits=traits, obeys=obeys)
        self.watcher = Witness()
        self.driver = Driver(self.folder, self.plan, self.engine, LaunchContext(), self.watcher, resumes=resumes)
        self._steps = self.driver.steps()
        self.record: Mapping[str, Any] | None = None
        self.moment: float | None = None

    def go(self) -> Mapping[str, Any] | None:
        """Let the driver look once more; returns its record if it has come to an end."""
        assert self.record is None, "the run is over"
        try:
            self.moment = next(self._steps)
        except StopIteration as end:
            self.record = end.value.to_json()
        return self.record

    def to_the_end(self) -> Mapping[str, Any]:
        """Let the driver look until it has come to an end; nothing has to happen any more for that."""
        for _ in range(MANY_STEPS):
            if self.record is not None:
                return self.record
            self.go()
        raise AssertionError("the driver waits for something that does not come")

    def until_attempt(self, number: int) -> None:
        """Let the driver look until an attempt has been started."""
        for _ in range(MANY_STEPS):
            if len(self.engine.started) > number:
                return
            self.go()
        raise AssertionError(f"attempt {number} was not started")

    def happened(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of some kinds in the journal."""
        lines = Path(self.folder.file(layout.JOURNAL)).read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["event"] in kinds]
