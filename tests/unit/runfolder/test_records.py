"""The records of a run as values."""

from __future__ import annotations

import pytest

from pailot.lifecycle.completion import TaskEnd
from pailot.runfolder.records import TaskRecord


@pytest.mark.parametrize(
    ("record", "end"),
    [
        ({"outcome": "succeeded", "exitCode": 0}, TaskEnd("a", 0, True, 0)),
        ({"outcome": "failed", "exitCode": 3, "reason": "exited with 3"}, TaskEnd("a", 0, False, 3, None, "exited with 3")),
        ({"outcome": "failed", "signal": 9, "reason": None}, TaskEnd("a", 0, False, None, 9)),
        ({"outcome": "stopped", "exitCode": 143, "unknown": []}, TaskEnd("a", 0, False, 143, stopped=True)),
        ({"outcome": "failed", "diskFull": True, "reason": "full"}, TaskEnd("a", 0, False, reason="full", hopeless=True)),
        ({"outcome": "failed", "giveUp": True, "diskFull": False}, TaskEnd("a", 0, False, hopeless=True)),
    ],
)
def test_an_end_is_read_from_its_record(record: dict[str, object], end: TaskEnd) -> None:
    read_back = TaskRecord.from_json(record)
    assert read_back is not None
    assert read_back.task_end("a", 0) == end
