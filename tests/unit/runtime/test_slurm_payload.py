"""What Slurm's driver is told: the plan in the codec's form, private texts apart."""

from __future__ import annotations

import json
from pathlib import Path

import pailot
from pailot.engines.contract import Attempt, LaunchContext
from pailot.engines.slurm import payload as making
from pailot.engines.slurm import private_part
from pailot.engines.slurm.sbatch_request import Component
from pailot.runfolder import layout, plan_codec
from pailot.runtime.slurm.driver import NOTHING, Driver
from pailot.runtime.slurm.payload import Payload, PrivatePart
from pailot.runtime.task_spec import Task

JOB = """\
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
secrets: {token: correct-horse}
taskRoles:
  worker:
    instances: 2
    taskRetryCount: 3
    completion: {minFailedInstances: 2, minSucceededInstances: -1}
    dockerImage: image
    resourcePerInstance: {cpu: 2, memoryMB: 100, gpu: 0, ports: {grpc: 2}}
    commands: ["curl https://ann:battery-staple@host", "echo '<% $secrets.token %>'"]
extras:
  pailot: {maxRunSeconds: 60, graceSeconds: 7, holdCommand: "sleep battery-staple"}
"""
HIDDEN = ("correct-horse", "battery-staple")


def made(folder: Path) -> tuple[Payload, Attempt]:
    plan = pailot.plan(pailot.loads(JOB))
    context = LaunchContext(
        cwd=str(folder),
        environment={"LANG": "C", "MY_TOKEN": "battery-staple", "OTHER": "x"},
        secrets={"<% $secrets.token %>": "correct-horse"},
        hidden=HIDDEN,
        home=str(folder),
    )
    attempt = Attempt(plan=plan, number=0, folder=str(folder), checkpoints=str(folder / "kept"), context=context)
    works = {("worker", index): str(folder / str(index)) for index in range(2)}
    components = [Component(("worker",), 2, 2, 100, 0)]
    return making.build(attempt, components, works, {}, {"worker": ("srun-wrapper", "--root")}), attempt


def written(payload: Payload) -> str:
    return json.dumps(payload.to_json())


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    payload, _ = made(tmp_path)
    assert Payload.from_json(json.loads(written(payload))) == payload
    away = payload.replace(away=True, fetch_seconds=30.0, node_folder="/scratch", script="#!/bin/sh\n")
    assert Payload.from_json(json.loads(written(away))) == away


def test_the_plan_in_it_is_a_plan_as_everywhere(tmp_path: Path) -> None:
    payload, attempt = made(tmp_path)
    plan = plan_codec.plan_of(json.loads(written(payload))["plan"])
    assert plan == payload.plan
    role, whole = plan.roles["worker"], attempt.plan.roles["worker"]
    assert (role.scripts, role.resources, role.completion, role.task_retry_count) == (
        whole.scripts,
        whole.resources,
        whole.completion,
        whole.task_retry_count,
    )
    assert plan.options.grace_seconds == 7


def test_no_private_text_stands_in_it_and_all_come_back(tmp_path: Path) -> None:
    payload, attempt = made(tmp_path)
    public, private = private_part.split(payload, attempt)
    for text in HIDDEN:
        assert text not in written(public)
    assert "MY_TOKEN" not in public.environment
    assert "battery-staple" not in repr(private)
    assert PrivatePart.from_bytes(private.to_bytes()) == private


def drive(folder: Path, payload: Payload, private: PrivatePart) -> Driver:
    (folder / layout.PAYLOAD).write_text(written(payload))
    (folder / layout.SECRETS_ONCE).write_bytes(private.to_bytes())
    return Driver(str(folder), {"SLURM_JOB_ID": "7"})


def test_the_driver_puts_private_texts_back_and_removes_their_file(tmp_path: Path) -> None:
    payload, attempt = made(tmp_path)
    driver = drive(tmp_path, *private_part.split(payload, attempt))
    driver._take_private()
    assert driver.payload.plan == payload.plan
    assert driver.payload.tasks == payload.tasks
    assert driver.payload.environment == payload.environment
    assert driver.private.hidden == HIDDEN
    assert not (tmp_path / layout.SECRETS_ONCE).exists()


def test_the_driver_judges_by_the_plan(tmp_path: Path) -> None:
    payload, attempt = made(tmp_path)
    terms = drive(tmp_path, *private_part.split(payload, attempt))._terms()
    (rule,) = terms.rules
    assert (rule.name, rule.instances, rule.min_failed) == ("worker", 2, 2)
    assert (terms.grace_seconds, terms.max_run_seconds) == (7, 60)


def test_a_payload_that_is_missing_or_of_a_later_pailot_is_none(tmp_path: Path) -> None:
    assert Driver(str(tmp_path), {}).payload is NOTHING
    payload, _ = made(tmp_path)
    later = payload.to_json()
    later["plan"] = [plan_codec.FORMAT + 1]
    (tmp_path / layout.PAYLOAD).write_text(json.dumps(later))
    assert Driver(str(tmp_path), {}).payload is NOTHING


def test_a_task_travels_whole() -> None:
    task = Task("worker", 1, "/f", "/w", {"A": "b"}, "true", hidden=("x",), wrapper=("a", "b"), secrets={"r": "s"})
    assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task
