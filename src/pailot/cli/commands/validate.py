"""`pailot validate FILE…`: everything that is wrong, in one go."""

from __future__ import annotations

import sys

from ...loading.shell_syntax import checked, with_what_bash_says
from ...planning import plan
from ...protocol.problems import InvalidJob
from ..job_options import add_job_options, load_job
from ..main import INVALID, OK
from ..problem_report import count_text, print_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from ...protocol import Problem


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="job file, '-' for standard input")
    parser.add_argument("--json", action="store_true", help="print the problems as JSON")
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    add_job_options(parser)


def run(args: Namespace) -> int:
    found = {file: _problems_of(args, file) for file in args.files}
    bad = [file for file, problems in found.items() if any(args.strict or problem.is_error for problem in problems)]
    if args.json:
        import json

        print(json.dumps([problem.to_json() for problems in found.values() for problem in problems], indent=2))
    else:
        for file, problems in found.items():
            print_problems(problems, sys.stdout)
            verdict = "invalid" if file in bad else "ok"
            counts = count_text(problems)
            print(f"{file}: {verdict}{f' ({counts})' if counts else ''}")
    return INVALID if bad else OK


def _problems_of(args: Namespace, file: str) -> Sequence[Problem]:
    try:
        job = load_job(args, file)
        return checked(job, plan(job), runs_here=False).warnings
    except InvalidJob as invalid:
        return with_what_bash_says(invalid)
