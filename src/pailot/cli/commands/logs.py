"""`pailot logs RUN [ROLE] [INDEX]`: what tasks printed, also of earlier attempts; -f follows."""

from __future__ import annotations

import os
import sys

from ...errors import PailotError, suggestion
from ...progress import width
from ...views.base import Which
from ...views.cancellation import Quit
from ...views.log_pieces import LineAssembler
from ..main import OK
from ..server_option import add_server_option, print_json, runs_of
from ..terminal_lines import Label, has_colours, is_screen, replaced
from ..wait_reason import TellingWhy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ...views.base import View
    from ...views.log_pieces import Piece, RawLine
    from ...views.timed_lines import TimedLine, TimedLines

_ERASE = b"\r\033[K"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name or id")
    parser.add_argument("role", nargs="?", metavar="ROLE")
    parser.add_argument("index", nargs="?", type=int, metavar="INDEX")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the run is over")
    parser.add_argument("--stream", choices=("all", "stdout", "stderr"), default="all")
    parser.add_argument("--attempt", type=int, metavar="N", help="attempt of the job (default: the last)")
    parser.add_argument("--task-attempt", type=int, metavar="K", help="attempt of the task (default: all)")
    parser.add_argument("--tail", type=_number, metavar="N", help="only the last N lines of the latest attempt of each task")
    parser.add_argument(
        "--since", metavar="TIME", default="", help="only lines of the last 30m, 12h or 7d, or since 2026-11-18T10:22"
    )
    parser.add_argument("-t", "--timestamps", action="store_true", help="print when each line was begun, and on which stream")
    parser.add_argument("--grep", metavar="PATTERN", help="only lines that match a regular expression, of all attempts")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="with --grep: large and small letters are the same")
    parser.add_argument("--download", metavar="FILE", help="write all logs into a ZIP file")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print where the logs are, or what --grep found, as JSON")


def run(args: Namespace) -> int:
    view = runs_of(args).find(args.run)
    not_before = None
    if args.since:
        from ..moments import moment

        not_before = moment(args.since, "--since")
    which = Which(args.role, args.index, args.stream, args.attempt, args.task_attempt, tail=args.tail, not_before=not_before)
    if args.grep is not None or args.download is not None:
        _refuse_others(args)
        from ..log_tools import print_hits, save_logs

        return save_logs(view, which, args.download) if args.grep is None else print_hits(view, which, args)
    if not args.json:
        return print_logs(view, which, follow=args.follow, timestamps=args.timestamps)
    record = view.record()
    tasks = _tasks(view, which, record, follow=args.follow)
    number = record["attempt"] if which.attempt is None else which.attempt
    print_json([_location(view, which.replace(attempt=number), task, k) for task in tasks for k in range(task["attempts"])])
    return OK


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ValueError(text)
    return int(text)


def _refuse_others(args: Namespace) -> None:
    """Options that mean nothing together are a mistake, and not to be ignored."""
    this = "--grep" if args.grep is not None else "--download"
    given = {
        "--follow": args.follow,
        "--tail": args.tail is not None,
        "--since": bool(args.since),
        "--timestamps": args.timestamps,
        "--download": args.grep is not None and args.download is not None,
        "--json": args.grep is None and args.json,
    }
    for option in (option for option, is_given in given.items() if is_given):
        raise PailotError(f"{this} cannot be used with {option}")


def print_logs(view: View, which: Which, *, follow: bool, timestamps: bool = False) -> int:
    """Print what tasks printed, the latest attempt of the job first of all; `follow`: to the end of the run."""
    record = view.record()
    tasks = _tasks(view, which, record, follow=follow)
    timed: TimedLines | None = None
    if timestamps:
        from ...views.timed_lines import TimedLines

        timed = TimedLines(view, which.stream)
    printer = _Printer(tuple(record["taskRoles"]), single=len(tasks) == 1)
    with TellingWhy(view, quiet=not follow):
        for piece in view.pieces(which.replace(since=record["attempt"]), follow, Quit(), record):
            if timed is None:
                printer.show(piece)
            else:
                printer.show_timed(piece, timed.feed(piece))
    printer.finish()
    if timed is not None:
        printer.write_timed(timed.finish())
    return OK


class _Printer:
    """Writes to standard output: as it is for one task, else in whole lines after `[role:index]`.

    On a terminal the line that is not finished yet stands below the others.
    """

    def __init__(self, roles: Sequence[str], *, single: bool) -> None:
        self._roles, self._single, self._lines = roles, single, LineAssembler()
        self._on_screen, self._colour = is_screen(1), has_colours(1)
        self._drawn = b""
        """What erases the unfinished line."""

    def show(self, piece: Piece) -> None:
        if piece.missing:
            sys.stderr.write(f"pailot: {piece.gap}\n")
        if self._single:
            _write(piece.data)
            return
        shown = self._drawn + self._labelled(self._lines.feed(piece))
        rest = self._lines.unfinished(piece) if self._on_screen else b""
        self._drawn = _ERASE if rest else b""
        if rest:
            shown += self._label(piece.role, piece.index).unfinished(rest, width() - 1).encode()
        _write(shown)

    def show_timed(self, piece: Piece, lines: Iterable[TimedLine]) -> None:
        """Lines with their times; an unfinished one waits for its end."""
        if piece.missing:
            sys.stderr.write(f"pailot: {piece.gap}\n")
        self.write_timed(lines)

    def write_timed(self, lines: Iterable[TimedLine]) -> None:
        _write(
            b"".join(
                (b"" if self._single else self._label(line.role, line.index).data)
                + line.prefix.encode()
                + (replaced(line.text) if self._on_screen else line.text)
                + b"\n"
                for line in lines
            )
        )

    def finish(self) -> None:
        _write(self._drawn + self._labelled(self._lines.finish()))
        self._drawn = b""

    def _label(self, role: str, index: int) -> Label:
        return Label(role, index, self._roles, colour=self._colour)

    def _labelled(self, lines: Iterable[RawLine]) -> bytes:
        return b"".join(
            self._label(role, index).data + (replaced(line) if self._on_screen else line) + b"\n" for role, index, line in lines
        )


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _tasks(view: View, which: Which, record: Mapping[str, Any], *, follow: bool) -> list[dict[str, Any]]:
    """The tasks that are meant, with their roles."""
    if which.attempt is not None and which.attempt != record["attempt"]:
        if not 0 <= which.attempt <= record["attempt"]:
            raise PailotError(f"--attempt: '{record['name']}' has attempts 0 to {record['attempt']}")
        record = view.record(which.attempt)
    roles = record["taskRoles"]
    if not roles:
        return []  # they are not known, or not yet: the reader of the logs says so, or waits
    if which.role is not None and which.role not in roles:
        raise PailotError(f"'{record['name']}' has no role '{which.role}'{suggestion(which.role, roles)}")
    tasks = [
        {**task, "role": name}
        for name, role in roles.items()
        for task in role["tasks"]
        if which.role in (None, name) and which.index in (None, task["index"])
    ]
    if not tasks:
        raise PailotError(f"role '{which.role}' has tasks 0 to {len(roles[which.role]['tasks']) - 1}")
    if which.task_attempt is not None and not follow:
        _check_task_attempt(which.task_attempt, tasks)
    return tasks


def _check_task_attempt(number: int, tasks: Sequence[Mapping[str, Any]]) -> None:
    most = max(task["attempts"] for task in tasks)
    if not 0 <= number < most:
        subject = "these tasks have" if len(tasks) > 1 else f"{tasks[0]['role']}:{tasks[0]['index']} has"
        raise PailotError(f"--task-attempt: {subject} {f'attempts 0 to {most - 1}' if most else 'no attempt yet'}")


def _location(view: View, which: Which, task: Mapping[str, Any], number: int) -> dict[str, object]:
    """Where a log is: the file on the machine that runs it, and its address."""
    last = (task.get("logs") or {}).get(which.stream)
    path = os.path.join(os.path.dirname(os.path.dirname(last)), str(number), which.stream) if last else None
    address = view.log_address(which.replace(role=task["role"], index=task["index"], task_attempt=number))
    return {
        "role": task["role"],
        "index": task["index"],
        "attempt": which.attempt,
        "taskAttempt": number,
        "path": path,
        "url": address,
    }
