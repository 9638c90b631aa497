"""What may stand at a place of a command line that only runs can tell: names of runs, their roles, the numbers of their tasks."""

from __future__ import annotations

import re
import signal
from argparse import Namespace

from ..errors import PailotError
from .main import COMMANDS, parser_for
from .server_option import runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Action, ArgumentParser
    from collections.abc import Iterable, Iterator, Sequence

RUN, ROLE, INDEX = ("RUN", "JOB"), ("ROLE",), ("INDEX",)
WAIT_SECONDS = 2.0
"""A user who pressed the Tab key waits no longer for a server."""
MOST_INDICES = 100
_PLAIN = re.compile(r"[\w.~-]+", re.ASCII)
"""Shells expand the words that they complete: a `$(…)` in a role's name must not reach one."""


class _TimeUp(Exception):
    pass


def asks(command: str) -> bool:
    """Whether a command has a place that this module can tell something of."""
    return any(action.metavar in RUN for action in _places(parser_for(command)[0]))


def words_after(before: Sequence[str]) -> list[str] | None:
    """What may follow these words; None where that is not about runs, or an option wants a value.

    What cannot be found out, because a server is away or files are damaged, is an empty list.
    """
    if not before or before[0] not in COMMANDS:
        return None
    parser, _ = parser_for(before[0])
    found = _read(parser, before[1:])
    if found is None:
        return None
    given, server = found
    place = _place(_places(parser), len(given))
    if place is None or place.metavar not in (*RUN, *ROLE, *INDEX):
        return None
    return [word for word in _asked(str(place.metavar), given, server) if _PLAIN.fullmatch(word)]


def _places(parser: ArgumentParser) -> list[Action]:
    return [action for action in parser._actions if not action.option_strings]  # argparse offers no other way


def _place(places: Sequence[Action], position: int) -> Action | None:
    """What stands at a position; the last of them may take any number of words."""
    if position < len(places):
        return places[position]
    return places[-1] if places and places[-1].nargs in ("+", "*") else None


def _read(parser: ArgumentParser, words: Sequence[str]) -> tuple[list[str], str | None] | None:
    """The words that are no options, and the server that is named; None if the last option still wants its value."""
    options = {name: action for action in parser._actions for name in action.option_strings}
    given: list[str] = []
    server = None
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if name not in options:
            given.append(word)
            continue
        if options[name].nargs == 0:
            continue
        if not equals:
            following = next(waiting, None)
            if following is None:
                return None
            value = following
        server = value if name == "--server" else server
    return given, server


def _asked(metavar: str, given: Sequence[str], server: str | None) -> list[str]:
    def ring(*_: object) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, WAIT_SECONDS)
    try:
        return list(dict.fromkeys(_told(metavar, given, server)))
    except (PailotError, OSError, _TimeUp):
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _told(metavar: str, given: Sequence[str], server: str | None) -> Iterator[str] | Iterable[str]:
    runs = runs_of(Namespace(server=server))
    if metavar in RUN:
        return (name for name in runs.names() if name not in given)
    instances = runs.instances(given[0])
    if metavar in ROLE:
        return instances
    return map(str, range(min(MOST_INDICES, instances.get(given[1], 0))))
