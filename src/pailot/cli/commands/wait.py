"""`pailot wait RUN`: until it is over; the exit status is the run's."""

from __future__ import annotations

import sys

from ...lifecycle.states import FINAL_JOB_STATES
from ...views.cancellation import Quit
from ..main import UNREACHABLE
from ..quick_argparse import amount
from ..server_option import add_server_option, print_json, runs_of
from ..wait_reason import TellingWhy
from .run import STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ...views.base import View


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("--timeout", type=amount, metavar="SECONDS", help="give up after so long (exit status 4)")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print the run as JSON")


def run(args: Namespace) -> int:
    return report_end(runs_of(args).find(args.run), args.timeout, json=args.json)


def report_end(view: View, timeout: float | None, *, json: bool) -> int:
    """Wait until a run is over, and tell how it ended; returns the exit status."""
    with TellingWhy(view, quiet=json):
        view.wait(timeout, Quit())
    shown = view.record() if json else view.summary()
    if json:
        print_json(shown)
    if shown["state"] not in FINAL_JOB_STATES:
        print(f"pailot: {shown['name']} is still {shown['state']} after {timeout:g} s", file=sys.stderr)
        return UNREACHABLE
    if not json:
        print(f"{shown['name']} {shown['state']}: {shown.get('reason') or ''}".rstrip(": "))
    return STATUSES.get(shown["state"], 1)
