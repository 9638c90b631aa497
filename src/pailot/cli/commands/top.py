"""`pailot top [RUN]`: what tasks use now, beside what they asked for; on a terminal it goes on until the runs are over."""

from __future__ import annotations

import os
import sys

from ...lifecycle.states import FINAL_JOB_STATES, RUNNING, STOPPING
from ...printable import Styled, printable
from ...userruns.task_usage import size
from ...views.cancellation import Quit
from ..main import OK
from ..server_option import add_server_option, print_json, runs_of
from ..table import table_lines, window_columns
from ..terminal_lines import is_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...views.base import View
    from ...views.local import LocalRuns
    from ...views.server import ServerRuns

SECONDS = 5.0
"""How often tasks are measured, so how often there is something new."""
MOST_RUNS = 20
"""The number of runs shown at once: a server counts requests."""
TITLES = ("TASK", "STATE", "CPU", "CPUS ASKED", "MEMORY", "MEMORY ASKED", "PEAK", "GPU", "GPU MEMORY", "PROCESSES")
_LEFT_OUT = ("PROCESSES", "PEAK", "GPU MEMORY", "CPUS ASKED", "MEMORY ASKED", "GPU")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="name or id; without one all runs that are running")
    parser.add_argument("--once", action="store_true", help="print the table once, also on a terminal")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, once")


def run(args: Namespace) -> int:
    runs = runs_of(args)
    views = _views(runs, args.run)
    if args.json:
        print_json([row for view in views for row in _rows(view)[1]])
        return OK
    if args.once or not is_screen(1):
        for line in _table([_rows(view) for view in views], named=args.run is None):
            print(line)
        return OK
    return _live(runs, args.run, views)


def _views(runs: LocalRuns | ServerRuns, name: str | None) -> Sequence[View]:
    if name is not None:
        return [runs.find(name)]
    rows = runs.rows((RUNNING, STOPPING), every=False, everyone=False)
    if len(rows) > MOST_RUNS:
        sys.stderr.write(f"pailot: {len(rows)} runs are running; the latest {MOST_RUNS} are shown\n")
    return [runs.find(str(row["id"])) for row in rows[:MOST_RUNS]]


def _rows(view: View) -> tuple[str, list[dict[str, Any]]]:
    """The state of a run, and what each of its tasks uses."""
    record = view.record()
    used = {(each["role"], each["index"]): each for each in view.usage()}
    rows = []
    for role, node in record["taskRoles"].items():
        for task in node["tasks"]:
            known = used.get((role, task["index"]), {})
            rows.append(
                {
                    "name": record["name"],
                    "id": record["id"],
                    "role": role,
                    "index": task["index"],
                    "state": task["state"],
                    "asked": known.get("asked") or node.get("asked"),
                    "now": known.get("now"),
                    "peak": known.get("peak"),
                }
            )
    return record["state"], rows


def _table(found: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], *, named: bool, most: int | None = None) -> list[str]:
    """The lines of a table; `named`: each task after the name of its run, `most`: as many lines as there is room for."""
    cells = [_cells(row, named=named) for _, rows in found for row in rows]
    if not cells:
        return ["no task is running"]
    shown = cells if most is None or len(cells) <= most else cells[: max(1, most - 1)]
    lines = table_lines([TITLES, *shown], window_columns(), _LEFT_OUT)
    return lines if len(shown) == len(cells) else [*lines, f"and {len(cells) - len(shown)} more tasks"]


def _cells(row: Mapping[str, Any], *, named: bool) -> tuple[str, ...]:
    asked, now, peak = row["asked"] or {}, row["now"] or {}, row["peak"] or {}
    task = f"{row['name']} {row['role']}:{row['index']}" if named else f"{row['role']}:{row['index']}"
    gpus = asked.get("gpus")
    return (
        printable(task),
        row["state"],
        _shown(now.get("cpus"), "{:.2f}"),
        _shown(asked.get("cpus"), "{:g}"),
        _size(now.get("memoryMB")),
        _size(asked.get("memoryMB")),
        _size(peak.get("peakMemoryMB")),
        f"{now['gpuPercent']:.0f} % of {gpus or 1}" if now.get("gpuPercent") is not None else "-" if not gpus else f"- of {gpus}",
        _size(now.get("gpuMemoryMB")),
        _shown(now.get("processes"), "{}"),
    )


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _size(megabytes: float | None) -> str:
    return "-" if megabytes is None else size(megabytes)


def _live(runs: LocalRuns | ServerRuns, name: str | None, views: Sequence[View]) -> int:
    """Draw the table again and again in its place, until the run is over; without a run, until the user ends it."""
    drawn, quit = 0, Quit()
    while True:
        found = [_rows(view) for view in views]
        lines = _table(found, named=name is None, most=_window_lines() - 2)
        sys.stdout.write(Styled((f"\033[{drawn}F\033[J" if drawn else "") + "".join(f"{line}\n" for line in lines)))
        sys.stdout.flush()
        drawn = len(lines)
        if name is not None and found[0][0] in FINAL_JOB_STATES:
            return OK
        quit.wait(SECONDS)
        if name is None:
            views = _views(runs, None)


def _window_lines() -> int:
    try:
        return max(5, os.get_terminal_size(1).lines)
    except OSError:
        return 24
