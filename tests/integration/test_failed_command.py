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
from hypothesis import given
from hypothesis import strategies as st

import pailot

from .test_shim import ran

HARMLESS = [
    ["echo $LINENO ${0##*/} ${BASH_SOURCE[0]##*/} $-"],
    ["trap -p; set -o | sort; shopt | sort"],
    ['wc -l <"$0"; head -n 2 "$0"; test -f "$0"'],
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
    ["set +e", "false", "set -e"],
    ["x=$(echo a; exit 0); echo $x"],
    ["echo one\necho two\nif true; then\n  echo three\nfi"],
    ["<% $parameters.lines %>"],
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
]
NAMED = re.compile(r"\((?:line \d+: )?command (\d+) of main(?: to command (\d+) of main)?\b.*\)$")


def scripts_of(commands: list[str]) -> Any:
    job = {
        "protocolVersion": 2,
        "name": "demo",
        "type": "job",
        "parameters": {"lines": "echo 1\necho 2"},
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "debian"}],
        "taskRoles": {
            "main": {
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0},
                "commands": commands,
            }
        },
    }
    return pailot.plan(pailot.loads(json.dumps(job, indent=1))).roles["main"].scripts


def result(folder: Path, commands: list[str]) -> dict[str, Any]:
    """The record of a task with these commands, once it is seen that they did what they do in a bash that nobody looks at."""
    scripts = scripts_of(commands)
    end = ran(folder / "ours", main=scripts.main, items=scripts.items)
    plain = folder / "plain" / "main.sh"
    plain.parent.mkdir()
    plain.write_text(scripts.main)
    variables = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash", plain], cwd=plain.parent, env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    status = end["exitCode"] if end["signal"] is None else -end["signal"]
    logs = folder / "ours" / "tasks" / "main-0" / "attempts" / "0"
    assert (status, (logs / "stdout").read_bytes()) == (done.returncode, done.stdout)
    assert (logs / "main.sh").read_text() == scripts.main
    assert not list(logs.glob("*.whole"))
    return end


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
        end = result(Path(folder), commands)
    first = sum(len(group) for group in before) + 1
    if failing is None:
        assert (end["outcome"], end["reason"]) == ("succeeded", "exited with 0")
        return
    named = NAMED.search(end["reason"])
    assert named, end["reason"]
    low, high = int(named[1]), int(named[2] or named[1])
    assert first <= low <= first + culprit <= high < first + len(words), end["reason"]
    if len(words) == 1:
        assert low == high


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        (["echo a", "test -e /nonexistent"], "command 2 of main: 'test -e /nonexistent' exited with 1"),
        (["trap 'exit 3' EXIT", "false"], "command 2 of main: 'false'"),
        (["echo a", "kill -9 $$"], "command 2 of main: 'kill -9 $$'"),
        (["echo a\nfalse\necho b"], "command 1 of main, line 2: 'false' exited with 1"),
        (["if true; then", "false", "fi"], "command 1 of main to command 3 of main exited with 1"),
        (["<% $parameters.lines %>", "false"], "command 2 of main: 'false' exited with 1"),
    ],
)
def test_how_it_is_said(tmp_path: Path, commands: list[str], reason: str) -> None:
    found = result(tmp_path, commands)["reason"]
    assert re.sub(r"\(line \d+: ", "(", found).endswith(f"({reason})")


@pytest.mark.parametrize(
    "commands",
    [
        ["set +e", "false", "false"],
        ["trap 'exit 3' EXIT", "echo to the end"],
        ["echo never closed 'here", "echo a"],
        ["echo " + "x" * 20_000, "false"],
    ],
)
def test_where_it_is_not_known_nothing_is_named(tmp_path: Path, commands: list[str]) -> None:
    assert "command" not in result(tmp_path, commands)["reason"]
