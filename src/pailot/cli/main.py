"""`pailot`: hand dispatch, so that a command pays only for what it uses."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from types import ModuleType

OK, FAILED, INVALID, STOPPED, UNREACHABLE, DENIED = 0, 1, 2, 3, 4, 5

_ABOUT_A_JOB = (["run"], ["rerun"], ["wait"], ["submit"])
"""Commands whose exit status says how a job ended, whether or not it could be told."""
COMMANDS = {
    "run": "run a job here, now",
    "submit": "submit a job to a server",
    "ps": "list runs",
    "show": "show a run and its tasks",
    "logs": "print what tasks printed; -f follows",
    "top": "what tasks use now: processors, memory, GPUs",
    "wait": "wait until a run is over",
    "stop": "stop runs",
    "rerun": "run a job again",
    "events": "what happened in a run, in order",
    "why": "why a run is in the state it is in",
    "tag": "tags of a job on a server",
    "enter": "a shell in the folder of a task, with its environment",
    "cp": "copies files of a task to this machine, or back",
    "forward": "a port of a task (TensorBoard, a notebook) on this machine",
    "gc": "remove old runs",
    "validate": "check job files; every problem at once",
    "plan": "show exactly what each task of a job would run",
    "init": "write a commented starter job",
    "convert": "turn a v1 job into v2, or v2 into v1",
    "schema": "print the JSON Schema of a job file, for editors",
    "login": "log in to a server, and use it from now on",
    "logout": "forget a login, and have its token revoked",
    "user": "users of a server",
    "token": "tokens for programs that use a server",
    "vc": "virtual clusters of a server",
    "audit": "who did what on a server, for its administrators",
    "deploy": "print what a server in a Kubernetes cluster consists of",
    "doctor": "check this machine, and say what to do",
    "library": "list, search, show, add and remove shared prerequisites and data sets",
    "web": "open a server's web page, signed in",
    "serve": "serve OpenPAI's REST API to a team",
    "completion": "print a completion script for bash, zsh or fish",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status (as the program itself it leaves at once, without tidying up memory)."""
    if argv is None:
        import gc

        from . import quick_import, streams

        quick_import.install()
        gc.disable()  # a command is over before collecting pays; the driver of a run switches it on again
        streams.prepare()
        status = main(sys.argv[1:])
        os._exit(streams.finish(status, about_a_job=sys.argv[1:2] in _ABOUT_A_JOB))
    arguments = list(argv)
    first = arguments[0] if arguments else "--help"
    if first in ("--version", "-V"):
        from .. import __version__

        print(f"pailot {__version__}")
        return OK
    if first in ("--help", "-h", "help"):
        if len(arguments) > 1 and arguments[1] in COMMANDS:
            return _run(arguments[1], ["--help"])
        print(_overview())
        return OK
    if first in COMMANDS:
        return _run(first, arguments[1:])
    return _unknown(first)


def parser_for(command: str) -> tuple[ArgumentParser, ModuleType]:
    """The argument parser of a command and the module that runs it."""
    from argparse import HelpFormatter
    from importlib import import_module

    from .option_parser import OptionParser

    module = import_module(f".commands.{command}", __package__)
    parser = OptionParser(
        prog=f"pailot {command}",
        description=COMMANDS[command][0].upper() + COMMANDS[command][1:] + ".",
        allow_abbrev=False,
        # A width of our own: without one every start would load shutil, and with it four compressors.
        formatter_class=lambda prog: HelpFormatter(prog, width=_columns()),
    )
    module.configure(parser)
    return parser, module


def _columns() -> int:
    try:
        return max(40, os.get_terminal_size().columns - 2)
    except OSError:
        return 98


def _run(command: str, arguments: list[str]) -> int:
    from importlib import import_module

    from .quick_argparse import quick_parse

    values = None
    try:
        module = import_module(f".commands.{command}", __package__)
        values = quick_parse(module, arguments) or parser_for(command)[0].parse_args(arguments)
        status: int = module.run(values)
    except SystemExit as stop:  # argparse: 0 after --help, 2 after bad usage
        return stop.code if isinstance(stop.code, int) else INVALID
    except KeyboardInterrupt:
        return _interrupted(command, values)
    except BrokenPipeError:
        return OK  # the user has seen enough of a log
    except Exception as error:
        return _explain(error)
    return status


def _interrupted(command: str, values: Namespace | None) -> int:
    """Ctrl-C. A user who followed a job reads that it goes on."""
    followed = getattr(values, "followed", "") or _followed_by(command, values)
    if followed:
        from .submission import goes_on

        print(f"\npailot: {goes_on(followed)}", file=sys.stderr)
    return 130


def _followed_by(command: str, values: Namespace | None) -> str:
    """The job that `logs -f` or `wait` looks at."""
    looks = command == "wait" or (command == "logs" and getattr(values, "follow", False))
    return str(getattr(values, "run", "")) if looks else ""


def _explain(error: Exception) -> int:
    """An expected error as one line; anything else is a defect and keeps its traceback."""
    from ..errors import PailotError
    from ..protocol.problems import InvalidJob

    if isinstance(error, InvalidJob):
        from .problem_report import print_problems

        print_problems(error.problems, sys.stderr)
        return INVALID
    if isinstance(error, PailotError):
        hint = _hint(error)
        print(f"pailot: {str(error).rstrip('.') if hint else error}{hint}", file=sys.stderr)
        status: int = getattr(error, "exit_status", INVALID)
        return status
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        print(f"pailot: {where}{error.strerror or error}", file=sys.stderr)
        return FAILED
    raise error


def _hint(error: Exception) -> str:
    """What to do instead, where the server's words do not say it."""
    if getattr(error, "code", "") == "NoJobError" and "did you mean" not in str(error):  # the job is there, and lacks a task
        return "; --server none looks at the runs of this machine"
    if str(error).startswith("Applications are not allowed"):
        return "; the token in use is a program's: log in with a password (pailot login)"
    return ""


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {text}" for name, text in COMMANDS.items()]
    return "\n".join(
        [
            "usage: pailot COMMAND [OPTIONS]",
            "",
            "One job file, run anywhere.",
            "",
            *lines,
            "",
            "`pailot COMMAND --help` tells more; `pailot --version` prints the version.",
        ]
    )


def _unknown(word: str) -> int:
    from ..errors import suggestion

    kind = "option" if word.startswith("-") else "command"
    print(f"pailot: there is no {kind} '{word}'{suggestion(word, COMMANDS)}; see pailot --help", file=sys.stderr)
    return INVALID
