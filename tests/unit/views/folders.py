"""Folders of runs as a driver and its shims write them, without any process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pailot.lifecycle.completion import Verdict
from pailot.runfolder import journal
from pailot.runfolder.logs import LogWriter
from pailot.runfolder.records import RunRecord, TaskRecord
from pailot.settings import current_user
from pailot.store.index import JobRow, new_id
from pailot.userruns.queries import open_index
from pailot.userruns.run_folder import JobFolder
from pailot.views.local import LocalView


class FolderOfARun:
    """A run whose driver is this test: `lock` is held until it is over."""

    def __init__(self, home: Path, name: str = "demo", **roles: int) -> None:
        self.id, self.name, self.roles = new_id(), name, roles or {"main": 1}
        plan = {"name": name, "taskRoles": {role: {"instances": count} for role, count in self.roles.items()}}
        job = RunRecord(id=self.id, name=name, user=current_user(), engine="local", submitted=1.0)
        self.folder = JobFolder.create(str(home / "jobs" / self.id), job, f"name: {name}\n", plan)
        self.lock = self.folder.lock()
        self.folder.note(journal.submitted(name, current_user()))
        with open_index() as index:
            row = {"state": "WAITING", "engine": "local", "submitted": 1.0, "tasks": sum(self.roles.values())}
            index.add(JobRow(id=self.id, name=name, user=current_user(), folder=self.folder.path, **row))  # type: ignore[arg-type]
        self._writers: dict[str, LogWriter] = {}

    @property
    def view(self) -> LocalView:
        return LocalView(self.id, self.name, self.folder.path)

    def prints(self, data: bytes, role: str = "main", index: int = 0, attempt: int = 0, task_attempt: int = 0) -> None:
        path = Path(self.folder.task(attempt, role, index)) / "attempts" / str(task_attempt)
        if str(path) not in self._writers:
            path.mkdir(parents=True, exist_ok=True)
            self._writers[str(path)] = LogWriter(str(path), ())
        self._writers[str(path)].write("stdout", data)

    def task_ends(self, role: str = "main", index: int = 0, attempt: int = 0, **record: Any) -> None:
        path = Path(self.folder.task(attempt, role, index))
        path.mkdir(parents=True, exist_ok=True)
        (path / "final.json").write_text(json.dumps({"outcome": "failed", "exitCode": 3, "reason": "exited with 3", **record}))
        self.folder.note(journal.task_ended(role, index, attempt, TaskRecord.final(str(path))))

    def ends(self, state: str = "SUCCEEDED", reason: str = "all tasks succeeded", **details: Any) -> None:
        for writer in self._writers.values():
            writer.close()
        self.folder.conclude(Verdict(state, reason, **details), retries={}, started=2.0)
        assert self.lock is not None
        os.close(self.lock)
