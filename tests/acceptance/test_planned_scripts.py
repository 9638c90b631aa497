"""The scripts of a plan do what the prerequisites extension promises, in real bash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pailot

from .task_runner import TaskResult, run_task

HEAD = """
protocolVersion: 2
name: demo
type: job
prerequisites:
  - {name: image, type: dockerimage, uri: debian}
"""
ROLE = """
    dockerImage: image
    completion: {minSucceededInstances: -1}
    resourcePerInstance: {cpu: 1, memoryMB: 100, gpu: 0}
"""


def job_text(prerequisites: str, listed: str, *commands: str) -> str:
    lines = "".join(f"      - |\n        {command}\n" for command in commands)
    return f"{HEAD}{prerequisites}\ntaskRoles:\n  main:\n    prerequisites: [{listed}]{ROLE}    commands:\n{lines}"


def run(text: str, folder: Path, role: str = "main", **environment: str) -> TaskResult:
    return run_task(pailot.plan(pailot.loads(text)).roles[role], folder, 0, environment)


def prerequisite(name: str, start: str = "", end: str = "", **keys: str) -> str:
    more = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    text = f"  - name: {name}\n    type: script\n{more}    callbacks:\n"
    for event, command in (("containerStart", start), ("containerExit", end)):
        if command:
            text += f"      - event: {event}\n        commands:\n          - |\n            {command}\n"
    return text


def test_the_proposals_example_gets_the_data_ready_for_both_roles(tmp_path: Path) -> None:
    text = f"""{HEAD}
  - name: covid_data
    type: data
    uri: [https://data.example/covid/yyy.zip]
    callbacks:
      - event: containerStart
        commands:
          - mkdir -p data/covid19
          - cd data/covid19
          - wget <% this.parameters.uri[0] %>
          - export DATA_DIR=$PAI_WORK_DIR/data/covid19
taskRoles:
  first:
    prerequisites: [covid_data]{ROLE}
    commands: [ls $DATA_DIR]
  second:
    prerequisites: [covid_data]{ROLE}
    commands: [ls $DATA_DIR]
"""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "wget").write_text('#!/bin/sh\ntouch "$(basename "$1")"\n')
    (tools / "wget").chmod(0o755)
    for role in ("first", "second"):
        result = run(text, tmp_path / role, role, PATH=f"{tools}:{os.environ['PATH']}")
        assert result.lines == ["yyy.zip"]
        assert set(result.status.values()) == {0}


def test_required_ones_start_first_and_exit_in_reverse(tmp_path: Path) -> None:
    text = job_text(
        prerequisite("top", "echo start top", "echo exit top", require="[middle]")
        + prerequisite("middle", "echo start middle", "echo exit middle", require="[bottom]")
        + prerequisite("bottom", "echo start bottom", "echo exit bottom"),
        "top, bottom",
        "echo work",
    )
    assert run(text, tmp_path).lines == [
        "start bottom",
        "start middle",
        "start top",
        "work",
        "exit top",
        "exit middle",
        "exit bottom",
    ]


def test_this_parameters_are_own_then_inherited(tmp_path: Path) -> None:
    text = job_text(
        prerequisite("child", "echo <% this.parameters.colour %> <% this.parameters.size %>", require="[parent]", colour="red")
        + prerequisite("parent", "echo <% this.parameters.colour %>", colour="blue", size="large"),
        "child",
        "true",
    )
    assert run(text, tmp_path).lines == ["blue", "red large"]


def test_each_prerequisite_and_the_commands_begin_in_the_work_dir(tmp_path: Path) -> None:
    text = job_text(
        prerequisite("one", "mkdir -p deep; cd deep; export SEEN_IN=$PWD", "pwd") + prerequisite("two", "pwd"),
        "one, two",
        "cd /; cd -; echo $PWD $SEEN_IN",
    )
    assert run(text, tmp_path).lines[-3:] == [str(tmp_path), f"{tmp_path} {tmp_path}/deep", str(tmp_path)]


def test_exports_reach_later_prerequisites_commands_and_exit_callbacks(tmp_path: Path) -> None:
    text = job_text(
        prerequisite("one", 'export WORDS="a \\"b\\" \'c\' $HOME"', 'echo "exit $WORDS"')
        + prerequisite("two", 'echo "start $WORDS"'),
        "one, two",
        'echo "main $WORDS"',
    )
    words = f"a \"b\" 'c' {tmp_path}"
    assert run(text, tmp_path).lines == [f"start {words}", f"main {words}", f"exit {words}"]


def test_a_failing_start_callback_stops_the_task_but_not_the_exit_callbacks(tmp_path: Path) -> None:
    text = job_text(prerequisite("bad", "ls /no/such/file; echo not reached", "echo cleaned"), "bad", "echo not reached either")
    result = run(text, tmp_path)
    assert result.status["start"] != 0
    assert "main" not in result.status
    assert "not reached" not in result.output
    assert result.lines[-1] == "cleaned"


LENIENT_COMMAND = 'export CUDA=/cuda:$NOT_SET_ANYWHERE; false | cat; echo "$CUDA"'


def test_callbacks_run_with_errexit_alone(tmp_path: Path) -> None:
    result = run(job_text(prerequisite("one", LENIENT_COMMAND, LENIENT_COMMAND), "one", "echo work"), tmp_path)
    assert (result.lines, set(result.status.values())) == (["/cuda:", "work", "/cuda:"], {0})


def test_commands_of_plugins_run_with_errexit_alone(tmp_path: Path) -> None:
    text = job_text("", "", "echo work")
    text += "extras:\n  com.microsoft.pai.runtimeplugin:\n    - plugin: cmd\n      parameters:\n"
    text += f"        preCommands:\n          - |\n            {LENIENT_COMMAND}\n"
    text += f"        postCommands:\n          - |\n            {LENIENT_COMMAND}\n"
    result = run(text, tmp_path)
    assert (result.lines, set(result.status.values())) == (["/cuda:", "work", "/cuda:"], {0})


@pytest.mark.parametrize("failure", ["false | cat", "echo $NOT_SET_ANYWHERE"])
def test_commands_of_role_and_deployment_keep_all_three(tmp_path: Path, failure: str) -> None:
    assert run(job_text("", "", failure, "echo never"), tmp_path / "role").status["main"] != 0
    text = job_text("", "", "echo never") + "defaults: {deployment: d}\ndeployments:\n"
    text += f"  - name: d\n    taskRoles: {{main: {{preCommands: ['{failure}']}}}}\n"
    result = run(text, tmp_path / "deployment")
    assert result.status["main"] != 0
    assert "never" not in result.lines


@pytest.mark.parametrize("failure", ["ls /no/such/file", "exit 7", "echo $NOT_SET_ANYWHERE", "kill $BASHPID"])
def test_an_ignored_failure_at_the_start_keeps_its_exports(tmp_path: Path, failure: str) -> None:
    text = job_text(
        prerequisite("weak", f"export BEFORE=kept; {failure}", failurePolicy="ignore"),
        "weak",
        "echo work ${BEFORE-lost}",
    )
    result = run(text, tmp_path)
    assert result.status == {"start": 0, "main": 0}
    kept = "lost" if failure.startswith("kill") else "kept"
    assert result.lines[-1] == f"work {kept}"


def test_an_ignored_callback_goes_on_after_a_failing_command(tmp_path: Path) -> None:
    text = job_text(prerequisite("weak", "ls /no/such/file 2>/dev/null; echo next", failurePolicy="ignore"), "weak", "true")
    assert run(text, tmp_path).lines == ["next"]


@pytest.mark.parametrize(
    "command", ["exec true", "trap 'echo mine' EXIT", "exit 0", "kill -9 $$", "false", "set +e; trap '' TERM; false"]
)
def test_nothing_in_the_commands_skips_the_exit_callbacks(tmp_path: Path, command: str) -> None:
    text = job_text(prerequisite("tidy", "", "echo tidied"), "tidy", command)
    assert run(text, tmp_path).lines[-1] == "tidied"


def test_every_exit_callback_has_its_turn_and_a_failure_is_the_result(tmp_path: Path) -> None:
    text = job_text(
        prerequisite("one", "", "echo one; ls /no/such/file 2>/dev/null; echo not reached")
        + prerequisite("two", "", "echo two; exit 5"),
        "one, two",
        "true",
    )
    result = run(text, tmp_path)
    assert result.lines == ["two", "one"]
    assert result.status["exit"] == 5


def test_an_ignored_exit_failure_is_no_result(tmp_path: Path) -> None:
    text = job_text(prerequisite("one", "", "exit 5", failurePolicy="ignore"), "one", "true")
    assert run(text, tmp_path).status["exit"] == 0


@pytest.mark.parametrize(("command", "expected"), [("true", ["succeeded", "over"]), ("false", ["failed", "over"])])
def test_events_follow_the_outcome(tmp_path: Path, command: str, expected: list[str]) -> None:
    events = (("taskSucceeds", "succeeded"), ("taskFails", "failed"), ("containerExit", "over"))
    callbacks = "".join(f"      - {{event: {event}, commands: [echo {word}]}}\n" for event, word in events)
    text = job_text(f"  - name: watch\n    type: script\n    callbacks:\n{callbacks}", "watch", command)
    assert run(text, tmp_path).lines == expected


def test_commands_are_one_strict_script(tmp_path: Path) -> None:
    strict = job_text(prerequisite("p", "true"), "p", "false | true", "echo not reached")
    assert run(strict, tmp_path).status["main"] != 0
    unset = job_text(prerequisite("p", "true"), "p", "echo $NOT_SET_ANYWHERE", "echo not reached")
    assert "not reached" not in run(unset, tmp_path).output
    carried = job_text(prerequisite("p", "true"), "p", "cd /tmp; X=1", 'echo "$PWD $X"')
    assert run(carried, tmp_path).lines == ["/tmp 1"]


def test_the_python_plugin_runs_python(tmp_path: Path) -> None:
    text = job_text(
        "  - name: code\n    type: script\n    plugin: python\n    callbacks:\n"
        "      - event: containerStart\n        commands:\n"
        "          - |\n            import os\n            if True:\n"
        '                print("END", os.environ["PAI_TASK_INDEX"])\n',
        "code",
        "true",
    )
    assert run(text, tmp_path).lines == ["END 0"]


def test_fetch_links_what_was_brought(tmp_path: Path) -> None:
    text = job_text(
        "  - name: my-set\n    type: data\n    plugin: fetch\n    target: in/put\n"
        "    uri: [s3://bucket/a.txt, 'https://x.example/b.txt?v=1']\n",
        "my-set",
        "cat in/put/a.txt in/put/b.txt",
    )
    for name in "ab":
        (tmp_path / f"cached_{name}").write_text(f"text {name}\n")
    brought = {f"PAI_FETCH_my_set_{number}": str(tmp_path / f"cached_{name}") for number, name in enumerate("ab")}
    assert run(text, tmp_path, **brought).lines == ["text a", "text b"]


def test_git_clones_with_history(tmp_path: Path) -> None:
    import subprocess

    origin = tmp_path / "origin"
    commands = ["init -q", "-c user.name=a -c user.email=a@b.example commit -q --allow-empty -m first"]
    origin.mkdir()
    for command in commands:
        subprocess.run(["git", *command.split()], cwd=origin, check=True)
    text = job_text(
        f"  - name: code\n    type: script\n    plugin: com.microsoft.pai.runtimeplugin.git\n    repo_uri: file://{origin}\n"
        "    options: [-q, --depth, '1']\n    clone_dir: $PAI_WORK_DIR/here\n",
        "code",
        "git -C here log --format=%s",
    )
    assert run(text, tmp_path / "work").lines == ["first"]


def test_deployment_commands_are_part_of_the_same_script(tmp_path: Path) -> None:
    text = job_text(prerequisite("p", "true"), "p", 'echo "main $X"') + (
        "deployments:\n  - name: d\n    taskRoles:\n      main:\n"
        "        preCommands: [export X=1]\n        postCommands: ['echo \"post $X\"']\ndefaults: {deployment: d}\n"
    )
    assert run(text, tmp_path).lines == ["main 1", "post 1"]
