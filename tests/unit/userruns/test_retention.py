"""The folders hold the truth: an index that is made anew from them knows what the old one knew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pailot
from pailot.protocol import read
from pailot.userruns import launch, queries, retention

JOB = """\
protocolVersion: 2
name: {name}
type: job
jobRetryCount: 1
prerequisites:
  - {{name: image, type: dockerimage, uri: "python:3.11"}}
extras: {{pailot: {{labels: {{team: vision}}, retryDelaySeconds: 0}}}}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["{command}"]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PAILOT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def prepared(name: str, command: str, labels: dict[str, str]) -> launch.Run:
    text = JOB.format(name=name, command=command)
    job = read(text, file="job.yaml")
    return launch.prepare(job, pailot.plan(job), text, cwd=os.getcwd(), labels=labels)


def test_an_index_made_anew_knows_what_the_old_one_knew() -> None:
    launch.drive_here(prepared("fine", "true", {"stage": "first"}))
    launch.drive_here(prepared("broken", "exit 3", {}))
    prepared("waiting", "true", {"team": "audio"})
    before = queries.open_index().page(limit=10)
    assert [row.labels for row in before] == [{"team": "audio"}, {"team": "vision"}, {"team": "vision", "stage": "first"}]
    assert [row.retries for row in before] == [0, 1, 0]
    assert retention.rebuild_index() == 3
    assert queries.open_index().page(limit=10) == before
