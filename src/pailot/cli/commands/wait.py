"""`pailot wait RUN`: until it is over; the exit status is the run's."""

from __future__ import annotations

import sys

from ...loading import current_user
from ..main import UNREACHABLE
from ..quick_argparse import amount
from ..server_option import add_server_option, client_of
from .run import STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("--timeout", type=amount, metavar="SECONDS", help="give up after so long (exit status 4)")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print the run as JSON")


def run(args: Namespace) -> int:
    client = client_of(args)
    if client is not None:
        from ..remote import jobs

        return jobs.wait(args, client)
    from ...userruns.queries import describe, find, open_index, refresh, wait

    index = open_index()
    row, folder = find(args.run, current_user(), index)
    over = row.ended is not None or wait(folder, args.timeout)
    row = refresh(index.get(row.id) or row, index)
    if args.json:
        import json

        print(json.dumps(describe(row, folder), indent=2))
    if not over:
        print(f"pailot: {row.name} is still {row.state} after {args.timeout:g} s", file=sys.stderr)
        return UNREACHABLE
    if not args.json:
        print(f"{row.name} {row.state}: {row.reason}")
    return STATUSES.get(row.state, 1)
