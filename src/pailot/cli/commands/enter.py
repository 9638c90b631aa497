"""`pailot enter RUN ROLE INDEX`: a shell beside a task, with its environment; here, or through a server."""

from __future__ import annotations

import json
import os
import sys

from ... import credentials
from ...runfolder import layout
from ...runtime.shim import read_environment
from ...settings import current_user
from ...userruns.queries import find
from ...userruns.task_access import locate, shell
from ..main import OK
from ..remote_shell import enter
from ..server_option import add_server_option, client_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("role", nargs="?", metavar="ROLE")
    parser.add_argument("index", nargs="?", type=int, default=0, metavar="INDEX")
    parser.add_argument("--command", metavar="COMMAND", help="run this instead of an interactive shell")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print folder and environment as JSON, start nothing")


def run(args: Namespace) -> int:  # noqa: RET503  # ends by becoming the shell
    client = client_of(args)
    if client is not None:
        return enter(args, client)
    row, folder = find(args.run, current_user())
    place = locate(row.name, row.engine, folder, args.role, args.index)
    if args.json:
        environment = read_environment(os.path.join(place.last, layout.ENVIRONMENT))
        told = {"folder": environment.get("PAI_WORK_DIR", place.last), "logs": place.last, "environment": environment}
        print(json.dumps(told, indent=2))
        return OK
    own = {name: value for name, value in os.environ.items() if not (name.startswith("PAILOT_") or credentials.is_harmless(name))}
    found = shell(
        place, args.command, terminal=sys.stdin.isatty(), inherited=own, term=os.environ.get("TERM", "dumb"), as_we_are=os.environ
    )
    os.chdir(found.cwd)
    os.execvpe(found.words[0], found.words, found.environment)  # noqa: S606  # the shell is the point
