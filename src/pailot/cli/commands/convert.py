"""`pailot convert FILE`: v1 JSON to v2 YAML, or back where v1 can say it."""

from __future__ import annotations

import json
import sys

from ...loading import read_job, read_text
from ...protocol.convert import as_json, to_v1, to_v2
from ...protocol.model import Origin
from ...protocol.overrides import apply
from ...protocol.problems import InvalidJob
from ...protocol.reader import parse_text
from ...protocol.v1 import looks_like_v1
from ...protocol.yaml.writer import dump
from ..job_options import add_job_options, changes
from ..main import OK
from ..problem_report import print_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="job file, '-' for standard input")
    parser.add_argument("--to", choices=("v1", "v2"), help="what to make of it (default: the other version)")
    parser.add_argument("--json", action="store_true", help="print v2 as JSON, too")
    add_job_options(parser)


def run(args: Namespace) -> int:
    document = parse_text(read_text(args.file), args.file)
    job = read_job(document.text, args.file, changes(args), lenient=args.lenient, library=args.library)
    apply(document, changes(args))
    is_v1 = looks_like_v1(document.root)
    target = args.to or ("v2" if is_v1 else "v1")
    if target == "v2":
        root, findings = to_v2(document) if is_v1 else (document.root, [])
    else:
        root, findings = (document.root, []) if is_v1 else to_v1(job)
    if target == "v2" and args.json:
        root = as_json(root, (), findings)
    problems = Origin(args.file, document, findings).warnings()
    if any(problem.is_error for problem in problems):
        raise InvalidJob(problems)
    print_problems(problems, sys.stderr)
    if target == "v1" or args.json:
        print(json.dumps(root, indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(dump(root))
    return OK
