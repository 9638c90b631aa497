"""The records of a run as values."""

from __future__ import annotations

import pytest

from pailot.lifecycle.completion import TaskEnd
from pailot.runfolder.engine_records import ContainerRecord, FetchedLogsRecord, FollowedRecord, RemoteJobRecord, SlurmJobRecord
from pailot.runfolder.records import CgroupRecord, KeeperError, Record, TaskRecord


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


@pytest.mark.parametrize(
    ("record", "written"),
    [
        (
            ContainerRecord(["docker"], "c-0", "/dev/shm", "7"),
            {"command": ["docker"], "name": "c-0", "memory": "/dev/shm", "mark": "7"},
        ),
        (SlurmJobRecord("12", "c", 1.5), {"job": "12", "comment": "c", "at": 1.5}),
        (SlurmJobRecord("12", "c", 1.5, "/code"), {"job": "12", "comment": "c", "at": 1.5, "code": "/code"}),
        (FollowedRecord(9), {"offset": 9}),
        (RemoteJobRecord("j", "http://s"), {"job": "j", "server": "http://s", "submitted": False}),
        (FetchedLogsRecord([3, 4]), {"stdout": [3, 4], "stderr": [0, 0], "all": [0, 0]}),
        (KeeperError("broken", True, 1.0), {"reason": "broken", "defect": True, "at": 1.0}),
        (CgroupRecord(["/sys/x"], "7"), {"folders": ["/sys/x"], "mark": "7"}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_records_of_engines_have_the_keys_of_earlier_versions(record: Record, written: dict[str, object]) -> None:
    assert record.to_json() == written
    assert type(record).from_json({**written, "later": 1}) == record


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (ContainerRecord, {"command": "docker", "name": "c"}),
        (ContainerRecord, {"name": "c"}),
        (SlurmJobRecord, {"job": 12}),
        (RemoteJobRecord, {"job": "j"}),
        (CgroupRecord, {"folders": "/sys"}),
    ],
)
def test_a_record_of_an_engine_that_cannot_be_believed_is_none(kind: type[Record], written: dict[str, object]) -> None:
    assert kind.from_json(written) is None


def test_a_count_of_fetched_bytes_that_cannot_be_believed_is_as_none_fetched() -> None:
    assert FetchedLogsRecord.from_json({"stdout": [1], "stderr": "x", "all": [5, 6]}) == FetchedLogsRecord(all=[5, 6])
