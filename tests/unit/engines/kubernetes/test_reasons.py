"""What the status of a pod means, in words; and the log of a pod that is over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pailot.engines.kubernetes.node_log import complete
from pailot.engines.kubernetes.reasons import PodSeen, pod_seen


def pod(status: dict[str, Any], *, deleted: bool = False) -> PodSeen:
    labels = {"pailot.dev/role": "1", "batch.kubernetes.io/job-completion-index": "2"}
    metadata: dict[str, Any] = {"name": "p", "labels": labels}
    if deleted:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    found = pod_seen({"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status})
    assert found is not None
    assert (found.role, found.index) == (1, 2)
    return found


def ended(why: str, code: int, said: str = "", **status: Any) -> dict[str, Any]:
    terminated = {"reason": why, "exitCode": code, "message": said}
    return {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": terminated}}], **status}


def test_a_pod_without_our_labels_is_none_of_ours() -> None:
    assert pod_seen({"metadata": {"name": "x"}}) is None


def test_the_record_in_the_last_message_counts() -> None:
    said = json.dumps({"final": {"outcome": "failed", "exitCode": 3, "reason": "exited with 3"}, "printed": [5, 7]})
    found = pod(ended("Error", 3, said))
    assert found.final is not None
    assert (found.final.outcome, found.final.exit_code, found.printed) == ("failed", 3, (5, 7))


@pytest.mark.parametrize(
    ("status", "outcome", "words"),
    [
        (ended("OOMKilled", 137), "failed", "more memory than it asked for"),
        (
            ended("Error", 137, reason="Evicted", message="The node was low on resource: memory."),
            "lost",
            "low on resource: memory",
        ),
        (ended("StartError", 128, "exec: /bin/sh: no such file"), "failed", "needs /bin/sh"),
        (ended("Error", 97, '{"noPython": true}'), "failed", "no Python 3.9"),
        (ended("Error", 255), "lost", "left no record"),
        (ended("Completed", 0, phase="Succeeded"), "lost", "left no record"),
        (ended("Error", 1, '{"final": [], "printed": "x"}'), "lost", "left no record"),
        ({"phase": "Failed", "reason": "NodeLost"}, "lost", "its node was lost"),
    ],
)
def test_without_a_record_the_cluster_is_asked_and_nothing_succeeds(status: dict[str, Any], outcome: str, words: str) -> None:
    found = pod(status)
    assert found.final is not None
    assert found.final.outcome == outcome
    assert words in (found.final.reason or "")


def test_why_a_pod_waits() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: no \x1b[31mGPU"}
    waits = pod({"phase": "Pending", "conditions": [scheduled]}).waits
    assert waits.startswith("no node for it: 0/3 nodes")
    assert "\x1b" not in waits
    waiting = {"reason": "ErrImagePull", "message": "not found"}
    seen = pod({"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting": waiting}}]})
    assert (seen.waits, seen.waiting_reason) == ("its image cannot be pulled to n1: not found", "ErrImagePull")


def test_who_ends_a_pod() -> None:
    assert pod({"phase": "Running"}, deleted=True).lost == "its pod was deleted"
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    assert "higher priority" in pod({"phase": "Running", "conditions": [target]}).lost
    seen = pod({"phase": "Running", "conditions": [{**target, "reason": "DeletionByTaintManager"}]}, deleted=True)
    assert (seen.is_cut_off, "node was lost" in seen.lost) == (True, True)


def logs(folder: Path, number: int) -> bytes:
    return (folder / "attempts" / str(number) / "all").read_bytes()


def have(folder: Path, number: int, data: bytes) -> None:
    place = folder / "attempts" / str(number)
    place.mkdir(parents=True)
    (place / "all").write_bytes(data)


def test_the_log_of_the_node_completes_what_was_brought(tmp_path: Path) -> None:
    have(tmp_path, 0, b"first\n")
    have(tmp_path, 1, b"sec")
    assert complete(tmp_path.as_posix(), b"first\nsecond\nthird\n", [6, 7, 6]) == 0
    assert [logs(tmp_path, number) for number in range(3)] == [b"first\n", b"second\n", b"third\n"]


def test_what_the_node_did_not_keep_is_admitted(tmp_path: Path) -> None:
    have(tmp_path, 0, b"abc")
    assert complete(tmp_path.as_posix(), b"hij", [10]) == 4
    assert logs(tmp_path, 0) == b"abc\npailot: 4 bytes of this log are missing: its node did not keep them\nhij"


def test_without_sizes_the_log_of_the_node_is_all_of_it(tmp_path: Path) -> None:
    have(tmp_path, 0, b"abc")
    assert complete(tmp_path.as_posix(), b"abcdef", []) == 0
    assert logs(tmp_path, 0) == b"abcdef"
    assert complete((tmp_path / "other").as_posix(), b"", []) == 0
