"""Job files that a server checks and does not keep; the file as it was written; a copy with its secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..support.http_server import Server, job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BROKEN = """\
protocolVersion: 2
name: broken
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: x}
taskRoles:
  worker:
    instances: two
    dockerImage: imgae
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    comands: [echo hello]
"""
WITH_SECRETS = """\
# Trains, and says so.
protocolVersion: 2
name: careful   # a name
type: job
secrets:
  key: hunter2secret   # mine
prerequisites:
  - {name: image, type: dockerimage, uri: x}
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}
    commands:
      - test "<% $secrets.key %>" = hunter2"secret" && echo right
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(None, "--stop-jobs") as started:
        yield started
        assert "defect" not in started.log.read_text()


def names(server: Server) -> list[str]:
    return [each["name"] for each in server.get("/jobs").json]


def test_problems_are_those_of_the_command_line(server: Server, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(BROKEN)
    command = [sys.executable, "-m", "pailot", "validate", "--json", "job.yaml"]
    printed = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).stdout)
    found = server.ask("POST", "/validate", BROKEN, kind="text/yaml").json["problems"]
    assert found
    assert [{key: each[key] for key in printed[0]} | {"file": ""} for each in found] == [{**each, "file": ""} for each in printed]
    misspelt = next(each for each in found if "comands" in each["message"])
    assert (misspelt["line"], misspelt["column"], misspelt["endColumn"], misspelt["hint"]) == (11, 5, 12, "commands")


def test_what_bash_says_of_a_script_is_among_the_problems(server: Server) -> None:
    found = server.ask("POST", "/validate", job("unclosed", "if true; then echo x"), kind="text/yaml").json["problems"]
    assert [each["code"] for each in found] == ["shell-syntax-error"]


def test_checking_submits_nothing(server: Server) -> None:
    text = job("never-there", "true")
    for path in ("/validate", "/plan"):
        assert server.ask("POST", path, text, kind="text/yaml").status == 200
    refused = server.ask("POST", "/jobs?dryRun=true", text, kind="text/yaml")
    assert (refused.status, refused.code) == (400, "InvalidParametersError")
    assert "dryRun" in refused.json["message"]
    assert "never-there" not in names(server)


def test_the_plan_is_that_of_the_command_line(server: Server, tmp_path: Path) -> None:
    text = job("planned", "echo hello")
    (tmp_path / "job.yaml").write_text(text)
    command = [sys.executable, "-m", "pailot", "plan", "--json", "job.yaml"]
    own = {**os.environ, "LOGNAME": "admin"}
    printed = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, env=own).stdout)
    answer = server.ask("POST", "/plan", text, kind="text/yaml").json
    assert answer["plan"]["taskRoles"] == printed["taskRoles"]
    assert answer["start"]["kind"] == "ready"
    assert answer["nameTaken"] is False


def test_what_a_job_would_wait_for_is_told(server: Server) -> None:
    text = job("huge", "true").replace("cpu: 1", "cpu: 100000")
    start = server.ask("POST", "/plan", text, kind="text/yaml").json["start"]
    assert start["kind"] == "never"
    assert start["missing"]["cpus"] > 0


def test_the_file_is_shown_as_it_was_written(server: Server) -> None:
    server.ask("POST", "/jobs", WITH_SECRETS, kind="text/yaml")
    shown = server.get("/jobs/admin~careful/config?format=text").text
    assert shown == WITH_SECRETS.replace("key: hunter2secret", "key: '******'")


def test_a_copy_takes_its_secrets_from_a_job_of_ones_own(server: Server) -> None:
    server.run(WITH_SECRETS.replace("careful", "original"))
    copy = server.get("/jobs/admin~original/config?format=text").text.replace("right", "right again")
    assert "hunter2" not in copy.replace('hunter2"secret"', "")
    masked = server.ask("POST", "/jobs?name=copied", copy, kind="text/yaml")
    assert masked.json["problems"][0]["code"] == "masked-secrets"
    assert server.ask("POST", "/jobs?name=copied&secretsOf=original", copy, kind="text/yaml").status == 202
    assert server.wait("copied")["jobStatus"]["state"] == "SUCCEEDED"
    other = server.user("copier")
    theirs = server.ask("POST", "/jobs?secretsOf=admin~original", copy, other, kind="text/yaml")
    assert theirs.status == 403


def test_why_has_what_the_queue_knows(server: Server) -> None:
    many = server.ask("POST", "/plan", job("asks", "true").replace("cpu: 1", "cpu: 100000"), kind="text/yaml").json
    text = job("huge-one", "true").replace("cpu: 1", "cpu: 100000")
    assert server.ask("POST", "/jobs", text, kind="text/yaml").status == 202
    why = server.get("/jobs/admin~huge-one/why").json
    assert why["reason"]["kind"] == many["start"]["kind"] == "never"
    assert why["reason"]["text"] in why["lines"][-1]
