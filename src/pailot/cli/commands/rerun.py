"""`pailot rerun RUN`: the same job again, with the owner's secrets."""

from __future__ import annotations

import os
import sys

from ...engines.registry import traits_of_run as engine_traits
from ...errors import PailotError
from ...userruns.changed_environment import changed_since
from ..job_options import changes, secrets_of
from ..server_option import add_server_option, print_submitted, runs_of
from . import run as run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_LOCAL_ONLY = ("workdir", "sandbox", "set", "deployment", "vc", "lenient", "library", "unique", "detach", "after")


def configure(parser: ArgumentParser) -> None:
    run_command.configure(parser)
    add_server_option(parser)
    for action in parser._actions:  # the one positional means a run here, not a file
        if action.dest == "file":
            action.metavar, action.help = "RUN", "name or id of the run to repeat"


def run(args: Namespace) -> int:
    runs = runs_of(args)
    if runs.connections is not None:  # it does not run here, and is not followed
        for option in _LOCAL_ONLY:
            if getattr(args, option, None):
                raise PailotError(f"--{option} does not work with a server; --name and --secret do")
        made = runs.find(args.file).rerun(args.name, secrets_of(args))
        return print_submitted(made, runs.connections, json=args.json)

    view = runs.find(args.file)
    job = view.job_again(changes(args), lenient=args.lenient, library=args.library)
    before = view.folder.job()
    if before is not None:
        os.chdir(before.cwd or ".")
        args.workdir = args.workdir or before.work_dir
        args.sandbox = args.sandbox or before.sandbox
        if not args.quiet and all(engine_traits(name).runs_plain_processes for name in {before.engine, args.engine}):
            _tell_changes(changed_since(view.folder, os.environ))
    return run_command.start(args, job, view.file())


def _tell_changes(names: list[str]) -> None:
    if names:
        verb = "differs" if len(names) == 1 else "differ"
        note = f"the tasks get the environment of this shell; {', '.join(names)} {verb} from that of the run before"
        print(f"pailot: {note}", file=sys.stderr)
