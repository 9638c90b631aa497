"""`pailot why RUN`: why it is in the state it is in."""

from __future__ import annotations

from ...loading import current_user
from ..main import OK
from ..server_option import add_server_option, client_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    client = client_of(args)
    if client is not None:
        from ..remote import jobs

        return jobs.why(args, client)
    from ...userruns.queries import explain, find

    row, folder = find(args.run, current_user())
    lines = explain(row, folder)
    if args.json:
        import json

        print(json.dumps({"name": row.name, "state": row.state, "why": lines}, indent=2))
    else:
        print("\n".join(lines))
    return OK
