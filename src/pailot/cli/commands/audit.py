"""`pailot audit`: who did what on a server, for its administrators."""

from __future__ import annotations

import time

from ...printable import printable
from ..main import OK
from ..moments import seconds_ago
from ..server_option import add_server_option, need_client, print_json
from ..table import table_lines, window_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", default="", help="only what this user did")
    parser.add_argument("--action", metavar="ACTION", default="", help="only this action, such as submit or login")
    parser.add_argument("--target", metavar="TEXT", default="", help="only what was done to something with this in its name")
    parser.add_argument("--since", metavar="AGO", default="", help="only the last 30m, 12h or 7d")
    parser.add_argument("--limit", type=int, default=100, help="at most this many entries (default: 100)")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    client = need_client(args)
    since = time.time() - seconds_ago(args.since, "--since") if args.since else 0.0
    found = client.audit(user=args.user, action=args.action, target=args.target, since=since, limit=args.limit)
    if args.json:
        print_json(found)
        return OK
    rows: list[tuple[str, ...]] = [("TIME", "USER", "ADDRESS", "ACTION", "TARGET", "STATUS", "REQUEST")]
    for entry in reversed(found):
        when = time.strftime("%F %T", time.localtime(entry["at"]))
        texts = (printable(str(entry[key])) or "-" for key in ("user", "address", "action", "target", "status", "request"))
        rows.append((when, *texts))
    for line in table_lines(rows, window_columns(), ("REQUEST", "ADDRESS", "STATUS")):
        print(line)
    return OK
