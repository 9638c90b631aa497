"""What a command does where its streams are closed, full or read by nobody, and what it never writes to them raw."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pailot.cli.main import COMMANDS

JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{name: image, type: dockerimage, uri: debian}}]
taskRoles:
  worker:
    dockerImage: image
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["echo hello", "exit {status}"]
"""
PAILOT = f"{sys.executable} -m pailot"


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PAILOT_HOME": str(folder / "home")}
    return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True, check=False)


STREAMS = [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full", ">/dev/full 2>/dev/full", "| head -1", "2>&1 | true"]


@pytest.mark.parametrize("streams", STREAMS)
def test_the_exit_status_of_a_run_is_that_of_the_job_whatever_its_streams_are(streams: str, tmp_path: Path) -> None:
    for status, options in ((0, "--json"), (7, "")):
        (tmp_path / "job.yaml").write_text(JOB.format(name=f"ends-{status}", status=status))
        done = shell(f"{PAILOT} run {options} job.yaml {streams}", tmp_path)
        assert (done.returncode, b"Traceback" in done.stderr) == (int(status != 0), False), (options, done.stderr)


@pytest.mark.parametrize("streams", STREAMS)
def test_other_commands_end_well_and_say_that_their_output_is_lost(streams: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.format(name="fine", status=0))
    for command, expected in (
        ("validate job.yaml", 0),
        ("validate none.yaml", 2),
        ("plan job.yaml", 0),
        ("--help", 0),
        ("ps", 0),
    ):
        done = shell(f"{PAILOT} {command} {streams}", tmp_path)
        lost = ">/dev/full" in streams.split()
        assert b"Traceback" not in done.stderr, command
        assert done.returncode == (expected or int(lost)), command
        if streams == ">/dev/full":
            assert b"standard output: No space left on device" in done.stderr, command


def test_no_file_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """Else what a job prints would be written into the index of runs."""
    (tmp_path / "job.yaml").write_text(JOB.format(name="fine", status=0))
    assert shell(f"{PAILOT} run job.yaml <&- >&- 2>&-", tmp_path).returncode == 0
    assert b"SUCCEEDED" in shell(f"{PAILOT} ps", tmp_path).stdout
    assert shell(f"{PAILOT} logs fine", tmp_path).stdout == b"hello\n"


# Nothing raw

EVIL = "\\e]52;c;aGk=\\a\\e[31m\\x9b2J\\u202e\\u2066\\b\\r\\x7f"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
VALID = f"""\
protocolVersion: 2
name: evil
type: job
version: "{EVIL}"
contributor: "{EVIL}"
description: "{EVIL}"
parameters: {{"unused{EVIL}": "{EVIL}", used: "{EVIL}"}}
secrets: {{"secret{EVIL}": "{EVIL}hidden", "short{EVIL}": a}}
prerequisites:
  - {{name: image, type: dockerimage, uri: "debian{EVIL}"}}
  - {{name: set, type: data, uri: "{EVIL}", "key{EVIL}": "{EVIL}"}}
  - {{name: code, type: script, uri: "{EVIL}", callbacks: [{{event: taskStarts, commands: ["true '{EVIL}'"]}}]}}
taskRoles:
  worker:
    dockerImage: image
    data: set
    script: code
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["echo '<% $parameters.used %>'", "printf '{EVIL}' >&2", "exit 7"]
deployments: [{{name: there, taskRoles: {{nobody: {{preCommands: ["{EVIL}"]}}}}}}]
defaults: {{"more{EVIL}": 1}}
extras:
  "own{EVIL}": "{EVIL}"
  pailot: {{environment: {{A: "{EVIL}"}}, labels: {{label: "{EVIL}"}}}}
"""
INVALID = f"""\
protocolVersion: 2
name: "evil{EVIL}"
type: job
"key{EVIL}": 1
parameters: {{a: 1}}
prerequisites:
  - {{name: image, type: dockerimage, uri: debian, plugin: "{EVIL}", require: ["{EVIL}"]}}
taskRoles:
  "worker{EVIL}":
    dockerImage: "image{EVIL}"
    data: "{EVIL}"
    resourcePerInstance: {{cpu: "{EVIL}", memoryMB: 64, gpu: 0, ports: {{"{EVIL}": 1}}}}
    commands: ["<% $parameters.a{EVIL} %>", "<% # {EVIL} %>"]
extras:
  hivedScheduler: {{jobPriorityClass: "{EVIL}", taskRoles: {{"{EVIL}": {{}}}}}}
  com.microsoft.pai.runtimeplugin: [{{plugin: "{EVIL}", failurePolicy: "{EVIL}", taskroles: ["{EVIL}"]}}]
"""
UNKNOWN = f"""\
protocolVersion: 2
name: evil
type: job
parameters: {{a: 1}}
prerequisites:
  - {{name: image, type: dockerimage, uri: debian}}
  - {{name: p, type: script, plugin: "{EVIL}", require: ["{EVIL}"]}}
taskRoles:
  worker:
    dockerImage: "image{EVIL}"
    data: "{EVIL}"
    prerequisites: [p, "{EVIL}"]
    resourcePerInstance: {{cpu: 1, memoryMB: 64, gpu: 0}}
    commands: ["<% $parameters.a{EVIL} %>", "<% # {EVIL} %>"]
defaults: {{deployment: "{EVIL}"}}
extras:
  com.microsoft.pai.runtimeplugin: [{{plugin: "{EVIL}", failurePolicy: "{EVIL}", taskroles: ["{EVIL}"]}}]
"""
ARGUMENTS: dict[str, list[str]] = {
    "validate": [
        "valid.yaml",
        "invalid.yaml",
        "unknown.yaml",
        "--json valid.yaml invalid.yaml unknown.yaml",
        "$'bad\\e[31m.yaml'",
        "valid.yaml --set $'a\\e=1'",
    ],
    "plan": ["valid.yaml", "--json valid.yaml", "invalid.yaml", "--role $'\\e' valid.yaml"],
    "convert": ["valid.yaml", "invalid.yaml"],
    "ps": ["", "--json"],
    "show": ["evil", "--json evil", "$'\\e]0;x\\a'"],
    "why": ["evil", "--json evil", "$'\\e]0;x\\a'"],
    "events": ["evil", "--json evil"],
    "top": ["", "evil", "--json evil", "$'\\e]0;x\\a'"],
    "wait": ["evil", "--json evil"],
    "stop": ["evil", "$'\\e]0;x\\a'"],
    "library": ["list", "add invalid.yaml", "show $'\\e'", "search $'\\e'", "list --server http://127.0.0.1:1"],
    "gc": ["--dry-run"],
    "init": ["--name $'\\e'"],
    "schema": [""],
    "completion": ["bash"],
    "tag": ["--server none evil $'\\e'"],
    "enter": ["evil $'\\e' 0"],
    "submit": ["--server http://127.0.0.1:1 invalid.yaml"],
    "login": ["$'http://127.0.0.1:1/\\e' --user $'\\e'"],
    "logout": ["$'http://127.0.0.1:1/\\e'"],
    "user": ["list --server $'\\e'"],
    "token": ["list --server $'\\e'"],
    "audit": ["--server $'\\e'", "--user $'\\e' --server http://127.0.0.1:1"],
    "deploy": ["$'\\e' --print --image x", "kubernetes --print --image $'\\e'"],
    "vc": ["list --server $'\\e'", "add $'\\e' --server http://127.0.0.1:1"],
    "web": ["$'\\e' --server http://127.0.0.1:1", "--server $'\\e'"],
    "cp": ["$'evil:\\e:0/x' .", "$'\\e:w:0/x' ."],
    "forward": ["evil $'\\e' 0 80", "$'\\e' w 0 80"],
    "rerun": ["$'\\e'"],
    "doctor": [],
    "serve": [],  # prints through the same streams, but does not end
    "run": ["invalid.yaml"],  # what a job prints is passed on
    "logs": ["evil $'\\e' 0"],  # likewise
}


def test_nothing_of_a_job_or_of_its_names_reaches_a_terminal_raw(tmp_path: Path) -> None:
    (tmp_path / "valid.yaml").write_text(VALID)
    (tmp_path / "invalid.yaml").write_text(INVALID)
    (tmp_path / "unknown.yaml").write_text(UNKNOWN)
    assert shell(f"{PAILOT} run valid.yaml", tmp_path).returncode == 1
    assert sorted(ARGUMENTS) == sorted(COMMANDS)
    seen = b""
    for command, uses in ARGUMENTS.items():
        for arguments in uses:
            done = shell(f"{PAILOT} {command} {arguments} </dev/null", tmp_path)
            for stream in (done.stdout, done.stderr):
                assert not RAW.search(stream.decode()), (command, arguments, stream)
                assert b"Traceback" not in stream, (command, arguments, stream)
            seen += done.stdout + done.stderr
    assert seen.count(b"\\x1b]52") > 50
