"""`pailot stop RUN…`: SIGTERM, grace, then everything it started is killed."""

from __future__ import annotations

from ...views.cancellation import Quit
from ..main import OK
from ..server_option import add_server_option, print_json, runs_of

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
    runs = runs_of(args)
    views = [runs.find(name) for name in args.runs]
    for view in views:
        view.stop(args.now)
    done = []
    for view in views:
        if not args.no_wait:
            view.wait(None, Quit())
        shown = view.summary()
        done.append({key: shown[key] for key in ("name", "id", "state", "reason")})
    if args.json:
        print_json(done)
    else:
        for each in done:
            print(f"{each['name']} {each['state']}")
    return OK
