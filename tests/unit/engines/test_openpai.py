"""The engine openpai: what a server says, and a local copy of logs that is exact after any crash."""

from __future__ import annotations

import os
import select
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pailot.engines.openpai.engine import OpenpaiEngine
from pailot.engines.openpai.job_status import read_job
from pailot.engines.openpai.local_copy import TaskLogs
from pailot.runfolder.masking import Masker
from pailot.runfolder.records import TaskRecord

SECRETS = ["hunter2hunter2", "abcdef", "defabcabc"]
pieces = st.lists(st.one_of(st.sampled_from([s.encode() for s in SECRETS]), st.text("abcdef\nx", max_size=8).map(str.encode)))


@given(pieces, st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=60), st.booleans())
def test_logs_are_whole_masked_and_not_doubled_after_any_crash(
    parts: list[bytes], course: list[tuple[int, bool]], also_all: bool
) -> None:
    """The process may die after any piece, with bytes in the file that its record does not know of yet."""
    text = b"".join(parts)
    masker = Masker(SECRETS)
    expected = masker.feed(text) + masker.flush()
    with tempfile.TemporaryDirectory() as folder:
        logs = TaskLogs(folder, Masker(SECRETS))
        for size, dies in course:
            offset = logs.offset("stdout")
            logs.add("stdout", text[offset : offset + size], also_all=also_all)
            if dies:
                if os.path.exists(os.path.join(folder, "stdout")):
                    for name in ("stdout", "all") if also_all else ("stdout",):
                        with open(os.path.join(folder, name), "ab") as file:
                            file.write(b"written, but not recorded")
                logs = TaskLogs(folder, Masker(SECRETS))
        logs.add("stdout", text[logs.offset("stdout") :], also_all=also_all)
        logs.flush(also_all=also_all)
        for name in ("stdout", "all") if also_all else ("stdout",):
            found = Path(folder, name).read_bytes() if os.path.exists(os.path.join(folder, name)) else b""
            assert found == expected


def detail(**status: Any) -> dict[str, Any]:
    return {
        "name": "demo",
        "jobStatus": {"username": "dana", "state": "RUNNING", "attemptId": 1, **status},
        "taskRoles": {
            "psserver": {
                "taskRoleStatus": {"name": "psserver"},
                "taskStatuses": [
                    {
                        "taskIndex": 0,
                        "taskState": "FAILED",
                        "containerIp": "10.0.0.7",
                        "containerPorts": {"ssh": "24117", "http": "31002,31003"},
                        "containerExitCode": 3,
                        "containerExitSpec": {"code": 3, "phrase": "Oops", "type": "USER", "reaction": "NEVER_RETRY", "more": 1},
                        "attemptId": 2,
                    }
                ],
            },
            "other": {"taskStatuses": [{"taskIndex": 0}]},
        },
    }


def test_what_openpai_says() -> None:
    seen = read_job(detail(), {"ps_server": 1})
    (task,) = seen.tasks
    assert (seen.state, seen.attempt, seen.is_final) == ("RUNNING", 1, False)
    assert (task.role, task.there, task.index, task.task_attempt, task.exit_code) == ("ps_server", "psserver", 0, 2, 3)
    assert (task.host, task.ports) == ("10.0.0.7", {"ssh": (24117,), "http": (31002, 31003)})
    assert (task.reason, task.exit_class) == ("Oops", {"code": 3, "phrase": "Oops", "type": "USER", "reaction": "NEVER_RETRY"})


def test_the_reason_of_an_end() -> None:
    ended = {"state": "FAILED", "appExitCode": 3, "appExitTriggerTaskRoleName": "psserver", "appExitTriggerTaskIndex": 0}
    seen = read_job(detail(**ended, appExitDiagnostics="one\ntwo"), {"ps_server": 1})
    assert (seen.reason, seen.exit_code, seen.role, seen.index, seen.is_final) == ("one", 3, "ps_server", 0, True)
    assert read_job(detail(**ended, appExitSpec={"phrase": "Oops"}), {"ps_server": 1}).reason == "Oops"
    assert read_job(detail(state="SUCCEEDED", appExitCode=None), {}).exit_code == 0


def test_a_job_that_was_just_stored() -> None:
    seen = read_job({"name": "demo", "jobStatus": {"state": "WAITING"}, "taskRoles": {}}, {"w": 1})
    assert (seen.state, seen.attempt, seen.tasks) == ("WAITING", 0, ())
    assert read_job({"jobStatus": {"state": "COMPLETING"}}, {}).state == "UNKNOWN"


def test_nothing_that_was_told_waits_for_the_next_to_be_told() -> None:
    """Whoever asks whether the job goes on takes in what is new; the driver must still be woken for it."""
    engine = OpenpaiEngine()
    engine._tell({"event": "state", "state": "WAITING", "reason": "it can never start"})
    engine.alive()
    assert _is_woken(engine)
    assert [event["reason"] for event in engine.events()] == ["it can never start"]
    assert not _is_woken(engine)
    engine._tell({"event": "task-ended", "role": "main", "index": 0, "final": TaskRecord("succeeded")})
    engine.alive()
    assert _is_woken(engine)


def _is_woken(engine: OpenpaiEngine) -> bool:
    descriptor = engine.changes()
    assert descriptor is not None
    return bool(select.select([descriptor], [], [], 0)[0])


def test_bytes_that_the_server_has_rotated_away_leave_a_line(tmp_path: Path) -> None:
    logs = TaskLogs(str(tmp_path), Masker(()))
    logs.add("stdout", b"one\ntw")
    logs.add("stdout", b"ee\nfour\n", missing=100)
    logs.flush()
    words = b"pailot: 103 bytes were rotated away on the server before they could be fetched"
    assert (tmp_path / "stdout").read_bytes() == b"one\ntw\n" + words + b"\nfour\n"
    assert logs.offset("stdout") == 6 + 100 + 8
