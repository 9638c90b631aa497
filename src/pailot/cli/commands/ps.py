"""`pailot ps`: the runs of this user, newest first."""

from __future__ import annotations

import time

from ...lifecycle.states import JOB_STATES
from ..main import OK
from ..server_option import add_server_option, print_json, runs_of
from ..table import table_lines, window_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--everyone", action="store_true", help="jobs of all users of the server")
    parser.add_argument("--all", action="store_true", help="all runs, not only the latest 50")
    parser.add_argument(
        "--state", action="append", default=[], type=str.upper, choices=JOB_STATES, help="only runs in this state"
    )
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    runs = runs_of(args)
    here = runs.connections is None
    rows = runs.rows(args.state, every=args.all, everyone=args.everyone)
    if args.json:
        print_json(rows)
    elif rows:
        _print_rows(rows if here or not args.everyone else [{**row, "name": f"{row['user']}~{row['name']}"} for row in rows])
    else:
        what, way = ("runs", "pailot run JOB.yaml starts one") if here else ("jobs", "pailot submit JOB.yaml submits one")
        print(f"no {what} in this state" if args.state else f"no {what} yet; {way}")
    return OK


def _print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Runs as a table, as wide as the window allows."""
    table = [("NAME", "STATE", "TASKS", "RETRIES", "SUBMITTED", "TOOK", "ID"), *(_cells(row) for row in rows)]
    for line in table_lines(table, window_columns(), spare=("RETRIES", "TASKS", "SUBMITTED", "ID", "TOOK")):
        print(line)


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    submitted = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["submitted"]))
    took = "" if row["started"] is None else f"{(row['ended'] or time.time()) - row['started']:.1f} s"
    state = f"{row['state']} ({row['held']} held)" if row["held"] else row["state"]
    return row["name"], state, str(row["tasks"]), str(row["retries"]), submitted, took, row["id"]
