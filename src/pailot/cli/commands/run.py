"""`pailot run JOB.yaml`: really run it, here, now."""

from __future__ import annotations

import json
import os
import sys

from ...engines.registry import check as check_engine
from ...engines.registry import traits
from ...loading import plan, read_job, read_text
from ...loading.shell_syntax import checked
from ...printable import printable
from ...userruns.launch import drive_detached, drive_here, prepare
from ..job_options import add_job_options, changes
from ..main import FAILED, OK, STOPPED
from ..problem_report import print_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ...protocol import Job
    from ...runfolder.records import VerdictRecord
    from ...userruns.launch import Run

STATUSES = {"SUCCEEDED": OK, "FAILED": FAILED, "STOPPED": STOPPED}


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="job file, '-' for standard input")
    parser.add_argument(
        "-e", "--engine", default=os.environ.get("PAILOT_ENGINE", "local"), help="where it runs: local, docker, slurm or openpai"
    )
    parser.add_argument("--detach", action="store_true", help="return once it has started; pailot logs, wait and stop find it")
    parser.add_argument("--unique", action="store_true", help="append a suffix to the name")
    parser.add_argument(
        "--after",
        action="append",
        default=[],
        metavar="RUN[:success|:end]",
        help="start when this run has succeeded (the default), or has ended; can be repeated",
    )
    parser.add_argument(
        "--workdir",
        default="",
        metavar="DIR|shared|private",
        help="where tasks work; 'shared': all here; 'private': each apart",
    )
    parser.add_argument("--sandbox", action="store_true", help="read-only root and private /tmp for each task (bubblewrap)")
    parser.add_argument("--quiet", action="store_true", help="print the job's own output only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON; logs go to standard error")
    add_job_options(parser)


def run(args: Namespace) -> int:
    text = read_text(args.file)
    job = read_job(text, args.file, changes(args), lenient=args.lenient, library=args.library)
    return start(args, job, text)


def start(args: Namespace, job: Job, text: str) -> int:
    """Run a job that was read."""
    check_engine(args.engine)
    if args.unique:
        job = job.replace(name=f"{job.name}-{os.urandom(3).hex()}")
    made = checked(job, plan(job), runs_here=traits(args.engine).runs_plain_processes)
    if getattr(args, "after", None):
        made = made.replace(options=made.options.replace(after=(*made.options.after, *args.after)))
    if not args.quiet:
        print_problems(made.warnings, sys.stderr)
    prepared = prepare(
        job,
        made,
        text,
        cwd=os.getcwd(),
        work_dir=args.workdir,
        sandbox=args.sandbox,
        detached=args.detach,
        engine=args.engine,
    )
    if args.detach:
        ended = drive_detached(prepared)
        if ended is None:
            return _print_started(args, prepared)
        _print_verdict(prepared, ended)
        return _status(ended)
    from ..foreground_view import Live

    verdict = drive_here(prepared, Live(prepared.folder, prepared.plan, quiet=args.quiet, to_stderr=args.json))
    if args.json:
        _print_description(prepared)
    elif not args.quiet or verdict.state != "SUCCEEDED":
        _print_verdict(prepared, verdict)
    return _status(verdict)


def _status(verdict: VerdictRecord) -> int:
    return verdict.exit_status or STATUSES[verdict.state]


def _print_started(args: Namespace, prepared: Run) -> int:
    if args.json:
        told = {"name": prepared.plan.name, "id": prepared.id, "user": prepared.plan.user, "folder": prepared.folder.path}
        print(json.dumps({**told, "server": None}))
    else:
        print(f"{prepared.plan.name} is running; pailot logs -f {prepared.plan.name}")
    return OK


def _print_description(prepared: Run) -> None:
    from ...userruns.queries import describe

    row = prepared.index.get(prepared.id)
    assert row is not None
    print(json.dumps(describe(row, prepared.folder), indent=2))


def _print_verdict(prepared: Run, verdict: VerdictRecord) -> None:
    from ...userruns.queries import command_that_failed

    seconds = verdict.ended - (verdict.started or verdict.ended)
    print(f"pailot: {prepared.plan.name} {verdict.state} after {seconds:.1f} s: {verdict.reason}", file=sys.stderr)
    command = command_that_failed(prepared.folder, verdict)
    if command:
        print(f"pailot: {printable(command)}", file=sys.stderr)
    if verdict.state == "FAILED" and prepared.plan.task_count > 1:
        print(f"pailot: more: pailot why {prepared.id}", file=sys.stderr)
