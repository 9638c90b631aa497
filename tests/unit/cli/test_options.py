"""Options read without argparse mean what argparse says they mean."""

from __future__ import annotations

import contextlib
import io
from importlib import import_module

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pailot.cli.main import COMMANDS, main, parser_for
from pailot.cli.quick_argparse import quick_parse

WORDS = st.sampled_from(
    "a job.yaml - -- -x 1 -1 x=1 main all v1 bash 3.5 --json --quiet --set --set=a=1 --set= -e -elocal -e=local --engine "
    "--engine=local --name --index --index=2 --role --stream --stream=err --to --follow -f --json=1 --unknown --help -h "
    "--keep-days --sec".split()
)


def by_argparse(command: str, arguments: list[str]) -> dict[str, object] | None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return vars(parser_for(command)[0].parse_intermixed_args(arguments))  # as `validate a --json b` should be read
        except SystemExit:
            return None


@given(st.sampled_from([*COMMANDS]), st.lists(WORDS, max_size=5))
@example("run", ["job.yaml", "--set", "a=1", "--set", "b=2", "-e", "local"])
@example("logs", ["--stream=all", "name", "role", "1", "-f"])
@example("validate", ["a", "--json", "b"])
def test_what_is_read_without_argparse_is_what_argparse_reads(command: str, arguments: list[str]) -> None:
    quick = quick_parse(import_module(f"pailot.cli.commands.{command}"), arguments)
    if quick is not None:
        assert vars(quick) == by_argparse(command, arguments)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("run", ["job.yaml"]),
        ("run", ["--quiet", "job.yaml", "--set", "a.b=1", "--secret=k=v", "--detach", "-e", "local"]),
        ("validate", ["a", "b", "--json"]),
        ("ps", []),
        ("logs", ["name", "-f"]),
        ("plan", ["-", "--index", "2"]),
        ("wait", ["name", "--timeout", "0.5"]),
    ],
)
def test_what_is_usual_needs_no_argparse(command: str, arguments: list[str]) -> None:
    quick = quick_parse(import_module(f"pailot.cli.commands.{command}"), arguments)
    assert quick is not None
    assert vars(quick) == by_argparse(command, arguments)


@pytest.mark.parametrize("arguments", [["--help"], [], ["a", "b"], ["a", "--engine"], ["a", "--nonsense"], ["a", "--set", "-1"]])
def test_what_is_unusual_is_left_to_argparse(arguments: list[str]) -> None:
    assert quick_parse(import_module("pailot.cli.commands.run"), arguments) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--egnine", "docker", "job.yaml"], "pailot run: error: there is no option '--egnine'; did you mean '--engine'?"),
        (["run", "--egnine=docker"], "pailot run: error: there is no option '--egnine'; did you mean '--engine'?"),
        (["user", "add", "--amdin", "x"], "pailot user: error: there is no option '--amdin'; did you mean '--admin'?"),
        (["logs", "x", "--folow"], "pailot logs: error: there is no option '--folow'; did you mean '--follow'?"),
        (["ps", "--zzzzzz"], "pailot ps: error: there is no option '--zzzzzz'"),
        (["run"], "pailot run: error: the following arguments are required: FILE"),
        (["logs", "a", "b", "c"], "pailot logs: error: argument INDEX: invalid int value: 'c'"),
    ],
)
def test_a_misspelt_option_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.splitlines()[-1] == said
