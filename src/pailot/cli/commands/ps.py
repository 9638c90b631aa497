"""`pailot ps`: the runs of this user, newest first."""

from __future__ import annotations

import time

from ...lifecycle.states import JOB_STATES
from ..main import OK
from ..server_option import add_server_option, client_of, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ...store.index import JobRow


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--everyone", action="store_true", help="jobs of all users of the server")
    parser.add_argument("--all", action="store_true", help="all runs, not only the latest 50")
    parser.add_argument(
        "--state", action="append", default=[], type=str.upper, choices=JOB_STATES, help="only runs in this state"
    )
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    client = client_of(args)
    if client is not None:
        from ..remote import jobs

        return jobs.ps(args, client)
    from ...userruns.queries import open_index, refresh

    index = open_index()
    for row in index.unfinished():
        refresh(row, index)
    rows = [refresh(row, index) for row in index.page(limit=1_000_000 if args.all or args.state else 50)]
    rows = [row for row in rows if not args.state or row.state in args.state]
    if args.json:
        print_json([_json(row) for row in rows])
        return OK
    if not rows:
        print("no runs in this state" if args.state else "no runs yet; pailot run JOB.yaml starts one")
        return OK
    print_rows([_json(row) for row in rows])
    return OK


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Runs as a table."""
    table = [("NAME", "STATE", "TASKS", "RETRIES", "SUBMITTED", "TOOK", "ID"), *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    submitted = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["submitted"]))
    took = "" if row["started"] is None else f"{(row['ended'] or time.time()) - row['started']:.1f} s"
    state = f"{row['state']} ({row['held']} held)" if row["held"] else row["state"]
    return row["name"], state, str(row["tasks"]), str(row["retries"]), submitted, took, row["id"]


def _json(row: JobRow) -> dict[str, object]:
    from ...userruns.queries import held_tasks, listed
    from ...userruns.run_folder import JobFolder

    return listed(row, held_tasks(JobFolder(row.folder)) if row.ended is None else 0)
