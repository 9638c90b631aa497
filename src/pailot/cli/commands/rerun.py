"""`pailot rerun RUN`: the same job again, with the owner's secrets."""

from __future__ import annotations

import os

from ...errors import PailotError
from ...loading import current_user, read_job
from ...runfolder import layout
from ..job_options import changes
from ..server_option import add_server_option, client_of
from . import run as run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    run_command.configure(parser)
    add_server_option(parser)
    for action in parser._actions:  # the one positional means a run here, not a file
        if action.dest == "file":
            action.metavar, action.help = "RUN", "name or id of the run to repeat"


def run(args: Namespace) -> int:
    client = client_of(args)
    if client is not None:
        from ..remote import jobs

        return jobs.rerun(args, client)
    from ...settings import Settings
    from ...userruns.launch import kept_for
    from ...userruns.queries import find

    _, folder = find(args.file, current_user())
    try:
        text = folder.read_text(layout.JOB_FILE)
    except UnicodeDecodeError:
        raise PailotError(f"{folder.file(layout.JOB_FILE)} is damaged: it cannot be run again from there") from None
    overrides = changes(args)
    given = [str(change.path[1]) for change in overrides if change.path[0] == "secrets" and len(change.path) > 1]
    overrides[:0] = kept_for(Settings().home, folder).changes(given)
    job = read_job(text, folder.file(layout.JOB_FILE), overrides, lenient=args.lenient, library=args.library)
    before = folder.job()
    if before is not None:
        os.chdir(before.cwd or ".")
        args.workdir = args.workdir or before.work_dir
        args.sandbox = args.sandbox or before.sandbox
    return run_command.start(args, job, text)
