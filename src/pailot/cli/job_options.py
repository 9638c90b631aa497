"""The options that every command with a job file shares."""

from __future__ import annotations

import os

from ..errors import PailotError
from ..loading import changes_from, read_job, read_text
from ..protocol.overrides import BadOverride, parse_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..protocol import Job
    from ..protocol.overrides import Override


def add_job_options(parser: ArgumentParser) -> None:
    """How a job file can be changed while it is read."""
    group = parser.add_argument_group("changes to the job")
    group.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="change a value, e.g. parameters.lr=0.1")
    group.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a secret: NAME=VALUE, NAME=@FILE or NAME=env:VARIABLE",
    )
    group.add_argument("--deployment", metavar="NAME", help="apply this deployment")
    group.add_argument("--name", metavar="NAME", help="name of the job")
    group.add_argument("--vc", metavar="NAME", help="virtual cluster")
    group.add_argument("--lenient", action="store_true", help="keep templates that cannot be resolved, as OpenPAI does")
    group.add_argument("--library", action="append", default=[], metavar="DIR|URL", help="look here for prerequisites, too")


def load_job(args: Namespace, file: str) -> Job:
    """The job in a file, with the options applied; raises InvalidJob."""
    return read_job(read_text(file), file, changes(args), lenient=args.lenient, library=args.library)


def changes(args: Namespace) -> list[Override]:
    """The options as changes of the document; a bad one is a usage error."""
    try:
        found = [parse_set(assignment) for assignment in args.set]
    except BadOverride as error:
        raise PailotError(str(error)) from None
    return found + changes_from(None, secrets_of(args), args.name, args.deployment, args.vc)


def secrets_of(args: Namespace) -> dict[str, str]:
    """What `--secret` gives, by name."""
    return dict(_secret(assignment) for assignment in args.secret)


def _secret(assignment: str) -> tuple[str, str]:
    name, equals, value = assignment.partition("=")
    if not equals or not name:
        raise PailotError("--secret: write it as NAME=VALUE, NAME=@FILE or NAME=env:VARIABLE")
    if value.startswith("@"):
        try:
            with open(value[1:], encoding="utf-8") as stream:
                return name, stream.read().rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise PailotError(
                f"--secret {name}: {value[1:]} cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None
    if value.startswith("env:"):
        variable = value[4:]
        if variable not in os.environ:
            raise PailotError(f"--secret {name}: the environment has no variable '{variable}'")
        return name, os.environ[variable]
    return name, value
