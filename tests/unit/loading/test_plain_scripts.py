"""A script that counts as plain is one of which bash has nothing to say."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pailot.loading.plain_scripts import is_plain
from pailot.loading.shell_syntax import _asked

HEAD = "#!/bin/bash\nset -o errexit -o nounset -o pipefail\n\n"
PIECES = [
    *"abz09_./:=,@%+-~^!?*[](){}<>|&;\\'\"`$# \t\n\r\0é",
    "$HOME",
    "${A}",
    "$(",
    "if ",
    "do",
    "done\n",
    "time",
    "[[",
    "' '",
    '" "',
    "<<E",
]


@pytest.mark.parametrize(
    "line",
    [
        "true",
        "python train.py --rate 0.1",
        'echo "Hello $NAME, ${ROLE}"',
        "echo 'a (b) & c'",
        "A=1 B=$C run",
        "# if (",
        "",
        "cd -",
    ],
)
def test_plain_lines(line: str) -> None:
    assert is_plain(HEAD + line + "\n")
    assert _asked(HEAD + line + "\n") == ""


@pytest.mark.parametrize(
    "line",
    [
        "for i in 1",
        "echo 'open",
        'echo "open',
        "echo (",
        "cat <<END",
        "a \\",
        "x | y",
        "then",
        "echo $(date)",
        "a=(1",
        "{ a",
        "a \0",
        "ü",
    ],
)
def test_all_else_is_asked(line: str) -> None:
    assert not is_plain(HEAD + line + "\n")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("A=1 if")
@example("a=b=c")
def test_bash_reads_what_is_plain(text: str) -> None:
    if is_plain(text):
        done = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
