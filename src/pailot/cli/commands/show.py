"""`pailot show RUN`: one run and its tasks."""

from __future__ import annotations

from ...userruns.task_usage import words
from ..main import OK
from ..server_option import add_server_option, print_json, runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="name (then the latest of that name) or id")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    shown = runs_of(args).find(args.run).record()
    if args.json:
        print_json(shown)
    else:
        _print_record(shown)
    return OK


def _print_record(shown: Mapping[str, Any]) -> None:
    """A run and its tasks, for people."""
    print(f"{shown['user']}~{shown['name']} ({shown['id']}): {shown['state']}")
    if shown["reason"]:
        print(f"  {shown['reason']}")
    place = f"folder {shown['folder']}, " if shown.get("folder") else ""
    print(f"  {place}attempt {shown['attempt']}")
    for name, role in shown["taskRoles"].items():
        for task in role["tasks"]:
            ports = ", ".join(f"{label} {','.join(map(str, each))}" for label, each in task["ports"].items())
            place = f"ports {ports}" if ports else ""
            print(f"  {name}:{task['index']:<4} {task['state']:<10} {task.get('reason') or ''}  {place}".rstrip())
            used = words(task.get("usage"), role.get("asked") or {})
            if used:
                print(f"      {used}")
