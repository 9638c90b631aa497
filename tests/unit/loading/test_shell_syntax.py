"""What bash says of the scripts of a job, told at the command of the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import pailot
from pailot.loading import read_job, shell_syntax
from pailot.loading.shell_syntax import checked, with_what_bash_says
from pailot.planning import plan
from pailot.protocol import InvalidJob, Problem


def text_of(*commands: str, **more: Any) -> str:
    role = {"dockerImage": "i", "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}, "commands": list(commands)}
    job = {
        "protocolVersion": 2,
        "name": "demo",
        "type": "job",
        "prerequisites": [{"name": "i", "type": "dockerimage", "uri": "debian"}, *more.pop("prerequisites", [])],
        "taskRoles": {"worker": {**role, **more.pop("role", {})}},
        **more,
    }
    return json.dumps(job, indent=1)


def said(text: str, *, runs_here: bool = False) -> list[Problem]:
    job = read_job(text, "job.yaml")
    try:
        problems = checked(job, plan(job), runs_here=runs_here).warnings
    except InvalidJob as invalid:
        problems = invalid.problems
    return [each for each in problems if each.code.startswith("shell-syntax")]


@pytest.mark.parametrize(
    ("commands", "path", "words"),
    [
        (["echo a", "if true; then", "echo b"], 1, "unexpected end of file"),
        (["echo a", "echo b; fi", "echo c"], 1, "unexpected token `fi'"),
        (["echo 'a", "echo b"], 0, "matching `''"),
        (["cat <<END", "a"], 0, "here-document"),
        (["", "f() {", "echo"], 1, "unexpected end of file"),
    ],
)
def test_it_is_told_at_the_command(commands: list[str], path: int, words: str) -> None:
    (problem,) = said(text_of(*commands))
    assert problem.path == f"taskRoles.worker.commands[{path}]"
    assert words in problem.message
    assert f"command {path + 1} of worker" in problem.message
    assert problem.severity == "warning"


def test_in_a_block_of_lines_the_line_is_told() -> None:
    text = """
protocolVersion: 2
name: demo
type: job
prerequisites: [{name: i, type: dockerimage, uri: debian}]
taskRoles:
  worker:
    dockerImage: i
    resourcePerInstance: {cpu: 1, memoryMB: 1, gpu: 0}
    commands:
      - |
        echo a
        echo b )
"""
    (problem,) = said(text)
    assert (problem.line, problem.column) == (13, 9)


@pytest.mark.parametrize(
    "commands",
    [
        ["if true; then", "echo", "fi"],
        ["cat <<END", "fi fi (", "END"],
        ["shopt -s extglob", "ls !(a|b)"],
        ["shopt -s expand_aliases; alias begin='if true; then'", "begin", "fi"],
        ["echo <% $secrets.odd %>"],
        ["$(" * 2_000],
        ["echo \ud83d\ude00 ümlaut"],
    ],
)
def test_nothing_is_said_of_what_bash_reads_or_cannot_tell(commands: list[str]) -> None:
    assert said(text_of(*commands, secrets={"odd": "it's ("}), runs_here=True) == []


def test_where_it_runs_here_it_is_an_error_unless_bash_may_never_get_there() -> None:
    assert [each.code for each in said(text_of("echo )"), runs_here=True)] == ["shell-syntax-error"]
    assert [each.code for each in said(text_of("exec sleep 0", "echo )"), runs_here=True)] == ["shell-syntax"]
    assert [each.code for each in said(text_of("cat <<END"), runs_here=True)] == ["shell-syntax"]
    with pytest.raises(InvalidJob, match="shell-syntax-error"):
        pailot.run(pailot.loads(text_of("echo )")))


def test_callbacks_and_deployments_are_looked_at() -> None:
    callbacks = [{"event": "containerStart", "commands": ["true", "done"]}, {"event": "containerExit", "commands": ["esac"]}]
    prerequisite = {"name": "p", "type": "script", "callbacks": callbacks}
    plugin = {"plugin": "cmd", "parameters": {"preCommands": ["echo ("]}}
    found = said(
        text_of(
            "echo",
            prerequisites=[prerequisite],
            role={"prerequisites": ["p"]},
            deployments=[{"name": "d", "taskRoles": {"worker": {"postCommands": ["then"]}}}],
            defaults={"deployment": "d"},
        )
    )
    assert [each.path for each in found] == [
        "prerequisites[1].callbacks[0].commands[1]",
        "prerequisites[1].callbacks[1].commands[0]",
        "deployments[0].taskRoles.worker.postCommands[0]",
    ]
    (problem,) = said(text_of("echo", extras={"com.microsoft.pai.runtimeplugin": [plugin]}))
    assert problem.path == "extras.com.microsoft.pai.runtimeplugin[0].parameters.preCommands[0]"


def test_without_bash_nothing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert said(text_of("echo without bash )")) == []


def test_a_script_has_no_variables_of_ours_and_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in = tmp_path / "bash"
    stand_in.write_text(f"#!/bin/sh\n/usr/bin/env >{tmp_path}/variables\n/bin/cat >{tmp_path}/script\n")
    stand_in.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("A_SECRET_OF_OURS", "x")
    said(text_of("echo <% $secrets.token %> alone;", secrets={"token": "hunter2hunter2"}))
    assert "A_SECRET_OF_OURS" not in (tmp_path / "variables").read_text()
    assert "echo pailot alone;" in (tmp_path / "script").read_text()


def test_each_script_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    spawn = os.posix_spawnp

    def noted(*words: Any, **more: Any) -> int:
        asked.append(words)
        return spawn(*words, **more)

    monkeypatch.setattr(os, "posix_spawnp", noted)
    monkeypatch.setattr(shell_syntax, "_remembered", {})
    role = {"dockerImage": "i", "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}, "commands": ["echo once;"]}
    text = text_of("echo once;", taskRoles=dict.fromkeys(("a", "b", "c"), role))
    said(text)
    said(text)
    assert len(asked) == 1
    job = read_job(text, "job.yaml")
    assert shell_syntax.are_known_to_be_right(plan(job))


def test_it_is_told_beside_other_errors() -> None:
    text = text_of("echo <% $parameters.nope %>", "fi", role={"instances": 0, "dockerImage": "j"})
    with pytest.raises(InvalidJob) as caught:
        read_job(text, "job.yaml")
    codes = [each.code for each in with_what_bash_says(caught.value)]
    assert sorted(codes) == ["out-of-range", "shell-syntax", "template-unresolved", "unknown-prerequisite"]


def test_what_planning_finds_is_told_beside_errors_of_reading() -> None:
    plugin = {"name": "p", "type": "script", "plugin": "git"}
    text = text_of("echo", prerequisites=[plugin], role={"instances": 0, "prerequisites": ["p"]})
    with pytest.raises(InvalidJob) as caught:
        read_job(text, "job.yaml")
    assert {"out-of-range", "plugin-parameters"} <= {each.code for each in caught.value.problems}
