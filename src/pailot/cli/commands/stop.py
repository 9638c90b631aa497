"""`pailot stop RUN…`: SIGTERM, grace, then everything it started is killed."""

from __future__ import annotations

from ...loading import current_user
from ..main import OK
from ..server_option import add_server_option, client_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="name or id")
    parser.add_argument("--now", action="store_true", help="kill it at once, without grace")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it has stopped")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    client = client_of(args)
    if client is not None:
        from ..remote import jobs

        return jobs.stop(args, client)
    from ...userruns.queries import find, open_index, refresh, wait

    index = open_index()
    done = []
    for name in args.runs:
        row, folder = find(name, current_user(), index)
        if row.ended is None:
            grace = (folder.plan().get("options") or {}).get("graceSeconds", 30)
            folder.ask_to_stop(grace=grace, now=args.now)
            if not args.no_wait:
                wait(folder)
                row = refresh(row, index)
        done.append({"name": row.name, "id": row.id, "state": row.state, "reason": row.reason})
    if args.json:
        import json

        print(json.dumps(done, indent=2))
    else:
        for each in done:
            print(f"{each['name']} {each['state']}")
    return OK
