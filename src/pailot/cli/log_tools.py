"""What `pailot logs` does with all logs of a run: search them, or save them as one file."""

from __future__ import annotations

import os
import sys

from ..errors import PailotError
from ..printable import printable
from ..runfolder.log_search import Hit, Wanted
from ..views.timed_lines import moment
from .main import OK
from .server_option import print_json
from .terminal_lines import is_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..views.base import View, Which

MAX_HITS = 10_000
_SPECIAL = frozenset(r"\.^$*+?{}[]|()")
_STOPPED = {
    "limit": f"there are more lines than {MAX_HITS}; name a role, an index or a longer pattern",
    "time": "the time for a search was up before all logs were looked at; name a role, an index or a simpler pattern",
}


def print_hits(view: View, which: Which, args: Namespace) -> int:
    """Print lines that match, each after its task, its attempt, its number and its time."""
    wanted = Wanted(
        args.grep,
        any(letter in _SPECIAL for letter in args.grep),
        not args.ignore_case,
        which.role,
        which.index,
        which.attempt,
        which.task_attempt,
        which.stream,
    )
    found: list[dict[str, object]] = []
    on_screen = is_screen(1)
    count = 0
    for hit in view.search(wanted, MAX_HITS):
        if not isinstance(hit, Hit):
            if hit.stopped:
                sys.stderr.write(f"pailot: {_STOPPED.get(hit.stopped, hit.stopped)}\n")
        elif args.json:
            found.append(hit.to_json())
        else:
            count += 1
            sys.stdout.write(f"{_place(hit)} {printable(hit.text, instead=' ') if on_screen else hit.text}\n")
    if args.json:
        print_json(found)
    elif not count:
        sys.stderr.write("pailot: no line matches\n")
    return OK


def _place(hit: Hit) -> str:
    """`[worker:0 0.1] 48211 2026-11-18T10:22:33.410`."""
    line = "-" if hit.line is None else str(hit.line)
    return f"[{hit.role}:{hit.index} {hit.attempt}.{hit.task_attempt}] {line} {moment(hit.at)}"


def save_logs(view: View, which: Which, path: str) -> int:
    """Write all logs into a file, which appears when it is whole."""
    if which.index is not None or which.attempt is not None or which.task_attempt is not None:
        raise PailotError("--download writes the logs of all tasks and attempts; name a role, or nothing")
    temporary = f"{path}.{os.getpid()}.part"
    try:
        with open(temporary, "xb") as file:
            view.save_logs(file.write, which)
        os.replace(temporary, path)
    except OSError as error:
        raise PailotError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    print(f"{path}: {os.path.getsize(path)} bytes")
    return OK
