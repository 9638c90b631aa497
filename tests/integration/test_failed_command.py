"""Which command failed: real bash, real shim. What a script sees is as if nobody looked, and no wrong command is named."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pailot
from pailot.planning import plan
from pailot.planning.private_values import secret_values
from pailot.runfolder.failed_command import failed_command
from pailot.runfolder.records import TaskRecord
from pailot.userruns.masked_job_file import recorded

from .test_shim import ran

HARMLESS = [
    ["echo $LINENO ${0##*/} ${BASH_SOURCE[0]##*/} $-"],
    ["trap -p; set -o | sort; shopt | sort"],
    ['wc -l <"$0"; head -n 2 "$0"; test -f "$0"'],
    ['bash -n "$0"'],
    ["f() {", "echo in f; return 0", "}", "f"],
    ["if true; then", "echo then", "fi"],
    ["case a in", "a) echo case ;;", "esac"],
    ["cat <<'END'", "text; false", "END"],
    ["while read -r line; do echo $line; done <<<one"],
    ["echo 'a", "b'"],
    ["echo long \\", "line"],
    ["(exit 0) | cat; false || true"],
    ["sleep 0 & wait $!"],
    ["trap 'echo on exit' EXIT"],
    ["trap 'echo on error' ERR"],
    ["trap 'echo $LINENO >/dev/null' DEBUG"],
    ["set +e", "false", "set -e"],
    ["x=$(echo a; exit 0); echo $x"],
    ["echo one\necho two\nif true; then\n  echo three\nfi"],
    ["<% $parameters.lines %>"],
    ["echo <% $secrets.token %> | wc -c"],
    ["cat <<<'<% $secrets.lines %>'"],
    ["exec 3>&1; echo three >&3; exec 3>&-"],
    ["cat; read -r nothing || echo none"],
    ['for fd in 3 4 5 6 7 8 9; do eval "exec $fd<&-"; done'],
    ["eval 'echo evaluated'; source /dev/stdin <<<'echo sourced'"],
    [""],
    ["# a comment"],
]
# What fails, and which of its commands does.
FAILING: list[tuple[list[str], int]] = [
    (["false"], 0),
    (["test -e /nonexistent"], 0),
    (["exit 7"], 0),
    (["(exit 3)"], 0),
    (["true | false | true"], 0),
    (["echo $NOT_SET_ANYWHERE"], 0),
    (["no-such-program-anywhere"], 0),
    (["x=$(false)"], 0),
    (["exec bash -c 'exit 5'"], 0),
    (["kill -9 $$"], 0),
    (["sleep 0 & (exit 6); wait"], 0),
    (["h() {", "false", "}", "h"], 3),
    (["if true; then", "false", "fi"], 1),
    (["cat <<END && false", "text", "END"], 0),
    (["false \\", "or true"], 0),
    (["trap 'exit 4' EXIT", "false"], 1),
    (["trap 'exit 4' ERR", "false"], 1),
    (["set -E; trap 'echo no' ERR", "k() { false; }", "k"], 2),
    (["echo one\nfalse\necho never"], 0),
    (["for x in 1 2; do", "test $x = 1", "done"], 1),
    (["( cd /", "false )"], 1),
    (["{ echo <% $secrets.token %>; false; }"], 0),
    (["eval 'exit 8'"], 0),
    (["source /dev/stdin <<<'exit 9'"], 0),
    (["echo )"], 0),
]
NAMED = re.compile(r"job\.yaml:\d+: command (\d+) of main(?: to command (\d+) of main)?\b")


def job_with(commands: list[str]) -> Any:
    job = {
        "protocolVersion": 2,
        "name": "demo",
        "type": "job",
        "parameters": {"lines": "echo 1\necho 2"},
        "secrets": {"token": "hunter2hunter2", "lines": "first-secret\nsecond-secret"},
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "debian"}],
        "taskRoles": {
            "main": {
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
                "commands": commands,
            }
        },
    }
    return pailot.loads(json.dumps(job, indent=1))


def result(folder: Path, commands: list[str], **details: Any) -> tuple[dict[str, Any], str]:
    """The record of a task with these commands, and the words for the one that failed.

    It is seen on the way that they did what they do in a bash that nobody looks at.
    """
    job = job_with(commands)
    made = plan(job)
    scripts, values = made.roles["main"].scripts, secret_values(job.secrets.reveal(), made)
    hidden = ("hunter2hunter2", "first-secret\nsecond-secret") if values else ()
    end = ran(folder / "ours", main=scripts.main, secrets=values, hidden=hidden, **details)
    filled = scripts.main
    for reference, value in values.items():
        filled = filled.replace(reference, value)
    plain = folder / "plain" / "main.sh"
    plain.parent.mkdir()
    plain.write_text(filled)
    variables = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", plain], cwd=plain.parent, env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    status = end["exitCode"] if end["signal"] is None else -end["signal"]
    logs = folder / "ours" / "tasks" / "main-0" / "attempts" / "0"
    assert status == done.returncode
    if not values:
        assert (logs / "stdout").read_bytes() == done.stdout
    # There are times of lines only where there are lines.
    there = {each.name for each in logs.iterdir()} - {"log-index"}
    assert sorted(there) == ["all", "environment", "exit.json", "main.sh", "stderr", "stdout"]
    assert (logs / "log-index").exists() == bool((logs / "all").stat().st_size)
    record = TaskRecord.from_json(end)
    assert record is not None
    return end, failed_command(recorded(job, job.origin.document.text, made).plan, "main", record)


@settings(deadline=None)
@given(
    before=st.lists(st.sampled_from(HARMLESS), max_size=4),
    failing=st.sampled_from(FAILING) | st.none(),
    after=st.lists(st.sampled_from(HARMLESS), max_size=2),
)
def test_no_wrong_command_is_named(
    before: list[list[str]], failing: tuple[list[str], int] | None, after: list[list[str]]
) -> None:
    words, culprit = failing or ([], 0)
    commands = [item for group in (*before, words, *after) for item in group] or ["true"]
    with tempfile.TemporaryDirectory() as folder:
        end, said = result(Path(folder), commands)
    first = sum(len(group) for group in before) + 1
    if failing is None:
        assert (end["outcome"], said) == ("succeeded", "")
        return
    named = NAMED.search(said)
    assert named, (said, end)
    low, high = int(named[1]), int(named[2] or named[1])
    assert first <= low <= first + culprit <= high < first + len(words), said
    if len(words) == 1:
        assert low == high
    assert "hunter2" not in said
    assert "-secret" not in said


@pytest.mark.parametrize(
    ("commands", "words"),
    [
        (["echo a", "test -e /nonexistent"], "command 2 of main: 'test -e /nonexistent' exited with 1"),
        (["trap 'exit 3' EXIT", "false"], "command 2 of main: 'false'"),
        (["echo a", "kill -9 $$"], "command 2 of main: 'kill -9 $$'"),
        (["echo a\nfalse\necho b"], "command 1 of main, line 2: 'false' exited with 1"),
        (["if true; then", "false", "fi"], "command 1 of main to command 3 of main exited with 1"),
        (["echo a\nif true; then\nfalse\nfi\necho b"], "command 1 of main, lines 2 to 4 exited with 1"),
        (["<% $parameters.lines %>", "false"], "command 2 of main: 'false' exited with 1"),
        (["echo <% $secrets.token %>; false"], "command 1 of main: 'echo <% $secrets.token %>; false' exited with 1"),
        (["echo '<% $secrets.lines %>'", "false"], "command 2 of main: 'false' exited with 1"),
        (["set +e", "false", "(exit 3)", "# the end"], "command 3 of main: '(exit 3)' exited with 3"),
        (["echo a", "false && true"], "command 2 of main: 'false && true' exited with 1"),
        (["echo " + "y" * 100, "false"], "command 2 of main: 'false' exited with 1"),
    ],
)
def test_how_it_is_said(tmp_path: Path, commands: list[str], words: str) -> None:
    _, said = result(tmp_path, commands)
    assert re.sub(r"^job\.yaml:\d+: ", "", said) == words


@pytest.mark.parametrize(
    "commands",
    [
        ["trap 'exit 3' EXIT", "echo to the end"],
        ["echo never closed 'here", "echo a"],
        ["echo " + "x" * 20_000, "false"],
        ["shopt -s expand_aliases; alias begin='if true; then'", "begin", "false", "fi"],
    ],
)
def test_where_it_is_not_known_nothing_is_named(tmp_path: Path, commands: list[str]) -> None:
    assert result(tmp_path, commands)[1] == ""


def test_a_script_that_cannot_have_a_fifo_runs_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "mkfifo", refuse)
    end, said = result(tmp_path, ["echo a", "false"])
    assert (end["exitCode"], said) == (1, "")


def test_a_script_longer_than_a_pipe_is_read_whole(tmp_path: Path) -> None:
    commands = [f"echo {number} {'z' * 90}" for number in range(140)] + ["exit 3"]
    end, said = result(tmp_path, commands)
    assert end["exitCode"] == 3
    assert "command 141 of main: 'exit 3'" in said
