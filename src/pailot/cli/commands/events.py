"""`pailot events RUN`: what happened, in order."""

from __future__ import annotations

import time

from ..main import OK
from ..server_option import add_server_option, print_json, runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

_MOMENTS = ("started", "ended", "until")
_HIDDEN = ("at", "event", "lastLines", "class", "notes")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    events = runs_of(args).find(args.run).journal()
    if args.json:
        print_json(events)
    else:
        _print_events(events)
    return OK


def _moment(seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(seconds)) + f".{int(seconds % 1 * 1000):03d}"


def _print_events(events: Sequence[Mapping[str, Any]]) -> None:
    """What happened, a line each."""
    for event in events:
        details = "  ".join(
            f"{key}={_moment(value) if key in _MOMENTS and isinstance(value, float) else value}"
            for key, value in event.items()
            if key not in _HIDDEN and value not in (None, "")
        )
        print(f"{_moment(event['at'])}  {event['event']:<12} {details}".rstrip())
