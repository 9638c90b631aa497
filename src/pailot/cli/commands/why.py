"""`pailot why RUN`: why it is in the state it is in."""

from __future__ import annotations

from ..main import OK
from ..server_option import add_server_option, print_json, runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    found = runs_of(args).find(args.run).why()
    if args.json:
        print_json({"name": found.name, "state": found.state, "why": list(found.lines)})
    else:
        print("\n".join(found.lines))
    return OK
