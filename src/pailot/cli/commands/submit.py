"""`pailot submit JOB.yaml`: give a job to a server; `--code DIR` sends a folder along, in which the tasks start."""

from __future__ import annotations

import os
import sys

from ...errors import PailotError
from ...lifecycle.following import split
from ...loading import plan, read_job, read_text
from ...loading.shell_syntax import checked
from ...progress import display
from ...protocol.export import outgoing
from ...views.base import Which
from ..job_options import add_job_options, changes
from ..problem_report import print_problems
from ..server_option import add_server_option, need_client, need_server, print_submitted
from ..submission import check_followers, code_hints, library_of, send
from .logs import print_logs
from .wait import report_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ...client.api import Client
    from ...views.base import View


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="job file, '-' for standard input")
    parser.add_argument("--code", metavar="DIR", help="send this folder along; tasks start in it (.gitignore is heeded)")
    parser.add_argument("-f", "--follow", action="store_true", help="print its logs and wait; the exit status is the job's")
    parser.add_argument("--unique", action="store_true", help="append a suffix to the name")
    parser.add_argument("--replace", action="store_true", help="remove an ended job of the same name, with its logs")
    parser.add_argument(
        "--after",
        action="append",
        default=[],
        metavar="JOB[:success|:end]",
        help="start when this job has succeeded (the default), or has ended; can be repeated",
    )
    parser.add_argument("--quiet", action="store_true", help="print no warnings and no progress")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_job_options(parser)


def run(args: Namespace) -> int:
    for each in args.after:
        if split(each) is None:
            raise PailotError(f"--after: '{each}' should be JOB, JOB:success or JOB:end")
    job = read_job(
        read_text(args.file),
        args.file,
        changes(args),
        lenient=args.lenient,
        library=args.library,
        otherwise=lambda name: library_of(need_client(args), name),
    )
    if args.unique:
        job = job.replace(name=f"{job.name}-{os.urandom(3).hex()}")
    made = checked(job, plan(job), runs_here=False)
    if not args.quiet:
        print_problems(made.warnings, sys.stderr)
    runs = need_server(args)
    client = runs.connections.mine
    check_followers(client, (*made.options.after, *args.after))
    code = _send_code(args, client) if args.code else ""
    name, warnings = send(client, outgoing(job, client.server), job.name, code=code, after=args.after, replace=args.replace)
    view = runs.find(name)
    if not args.quiet:
        for line in (*warnings, *(() if code else code_hints(made))):
            print(f"pailot: {line}", file=sys.stderr)
    return _follow(args, view) if args.follow else print_submitted(view, runs.connections, json=args.json)


def _send_code(args: Namespace, client: Client) -> str:
    from ...client.code_archive import pack

    with display(quiet=args.quiet) as shown, pack(args.code, shown.show) as packed:
        if not args.quiet:
            for note in packed.notes:
                print(f"pailot: {note}", file=sys.stderr)
        return client.send_code(packed, shown.show)


def _follow(args: Namespace, view: View) -> int:
    print(f"pailot: {view.id} is submitted", file=sys.stderr)
    args.followed = view.id
    if not args.json:
        print_logs(view, Which(), follow=True)
    return report_end(view, None, json=args.json)
