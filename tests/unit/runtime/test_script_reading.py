"""Which scripts bash may read as a file, since the command that fails is known anyway."""

from __future__ import annotations

import pytest

from pailot.planning.scripts import STRICT
from pailot.runtime.script_reading import only_command


@pytest.mark.parametrize(
    ("commands", "line"),
    [
        ("\npython train.py --rate 0.1\n", 4),
        ("\n# a comment\n\n  exit 3  \n\n", 6),
        ("false\n", 3),
        ("\ntrue\nfalse\n", None),
        ("\ntrue; false\n", None),
        ("\ntrue && false\n", None),
        ("\necho $HOME\n", None),
        ("\necho 'a b'\n", None),
        ("\ntrap cleanup EXIT\n", None),
        ("\nif true\n", None),
        ("\nsleep 1 \\\n", None),
        ("\n", None),
    ],
)
def test_only_a_script_of_one_plain_command_is_sure(commands: str, line: int | None) -> None:
    assert only_command(STRICT + commands, {"PATH": "/bin"}) == line


def test_a_script_with_another_beginning_is_not_sure() -> None:
    assert only_command("#!/bin/bash\nset -o errexit\nfalse\n", {}) is None
    assert only_command("#!/bin/bash\nfalse\n", {}) is None


@pytest.mark.parametrize("name", ["BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH"])
def test_where_bash_itself_may_fail_nothing_is_sure(name: str) -> None:
    assert only_command(STRICT + "\nfalse\n", {name: "x"}) is None
