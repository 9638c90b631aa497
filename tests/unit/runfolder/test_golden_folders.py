"""Folders of real runs, made by Pailot as it was before there was this room, are read as they were read then.

Each file of `golden` holds the texts of one folder (`files`) and what the Pailot that made it read from it (`read`), with the
folder's own path written as RUN. Working directories, scripts, environments and empty files that only hold a lock are left out.
They are never made anew: a folder that is lying on a user's disk does not change either.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pailot.jobserver import job_history
from pailot.runfolder import layout
from pailot.runfolder.journal import Tail
from pailot.runfolder.records import Placement, Record, RunRecord, RunState, StopRecord, TaskRecord, VerdictRecord
from pailot.store.index import JobRow
from pailot.store.server import JobRecord
from pailot.userruns import queries
from pailot.userruns.run_folder import JobFolder

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))


def unpack(golden: dict[str, Any], folder: Path) -> Path:
    for path, text in golden["files"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text.replace("RUN/", f"{folder}/"), encoding="utf-8")
    return folder


def read(folder: Path) -> dict[str, Any]:
    """All that commands and the server tell of a run from its folder alone."""
    here = JobFolder(str(folder))
    job, plan = json.loads(_text(folder / "job.json")), here.plan()
    verdict = json.loads(_text(folder / "verdict.json") or "{}")
    known = {
        "id": job["id"], "name": job["name"], "user": job["user"], "submitted": job["submitted"], "engine": job["engine"],
        "folder": str(folder), "state": verdict.get("state", "RUNNING"), "started": verdict.get("started"),
        "ended": verdict.get("ended"), "reason": verdict.get("reason", ""), "exit_code": verdict.get("exitCode"),
    }  # fmt: skip
    row, record = JobRow(**known), JobRecord(**known, attempts=here.attempts())
    details = [job_history.detail(record, plan, number) for number in range(here.attempts())]
    told = {
        "job": job,
        "show": _without_what_was_added(queries.describe(row, here), verdict),
        "why": [re.sub("^(long is RUNNING): .+", r"\1", line) for line in queries.explain(row, here)],  # the rest was added
        "held": queries.held_tasks(here),
        "events": [event.to_json() for event in job_history.events(record)],
        "lines": Tail.of_run(str(folder)).entries(),
        "details": [_plain(each.replace(record=None)) for each in details],
        "tasks": [
            _plain(job_history.task_attempts(record, plan, each.attempt, role, task.index))
            for each in details
            for role, tasks in each.roles.items()
            for task in tasks
        ],
    }
    found: dict[str, Any] = json.loads(json.dumps(told).replace(f"{folder}/", "RUN/").replace(str(folder), "RUN"))
    return found


def _without_what_was_added(shown: dict[str, Any], verdict: dict[str, Any]) -> dict[str, Any]:
    """Without what earlier versions did not tell: the task that decided, its last lines, the command that failed, usage."""
    role, index = verdict.get("role"), verdict.get("index")
    task, lines = shown.pop("task"), shown.pop("lastLines")
    assert task == (None if role is None else f"{role}:{index}")
    assert isinstance(lines, list)
    assert role or not lines
    for each in (each for tasks in shown["taskRoles"].values() for each in tasks["tasks"]):
        assert each.pop("failedCommand") is None
        usage = each.pop("usage")
        assert usage is None or usage["peakMemoryMB"] >= 0
    for node in shown["taskRoles"].values():
        assert set(node.pop("asked")) == {"cpus", "memoryMB", "gpus"}
    return shown


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "_fields"):
        return {name: _plain(getattr(value, name)) for name in value._fields if name != "node"}
    return {name: _plain(each) for name, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_folder_of_an_earlier_version_is_read_as_ever(path: Path, tmp_path: Path) -> None:
    golden = json.loads(path.read_text(encoding="utf-8"))
    assert read(unpack(golden, tmp_path / "run")) == golden["read"]


TYPES: dict[str, type[Record]] = {
    layout.JOB: RunRecord, layout.STATE: RunState, layout.STOP: StopRecord, layout.PLACEMENT: Placement,
    layout.EXIT: TaskRecord, layout.FINAL: TaskRecord, layout.HELD: TaskRecord, layout.VERDICT: VerdictRecord,
}  # fmt: skip


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_records_are_written_as_ever(path: Path) -> None:
    files = json.loads(path.read_text(encoding="utf-8"))["files"]
    records = [(TYPES[Path(name).name], json.loads(text)) for name, text in files.items() if Path(name).name in TYPES]
    assert len(records) > 2
    for kind, record in records:
        read_back = kind.from_json(record)
        assert not kind.is_damaged(record)
        assert read_back is not None
        assert read_back.to_json() == record
