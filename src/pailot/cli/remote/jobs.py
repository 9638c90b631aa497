"""`ps`, `show`, `wait`, `stop`, `rerun`, `events`, `why` of jobs on a server."""

from __future__ import annotations

import sys

from ...errors import PailotError
from ..main import OK, UNREACHABLE
from ..server_option import job_name, print_json
from .wait_reason import telling_why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ...client.api import Client

PAGE = 1_000
_LOCAL_ONLY = ("workdir", "sandbox", "set", "deployment", "vc", "lenient", "library", "unique", "detach")


def ps(args: Namespace, client: Client) -> int:
    from ..commands.ps import print_rows

    query: dict[str, Any] = {"state": ",".join(args.state)}
    if not args.everyone:
        query["username"] = client.user
    rows: list[dict[str, Any]] = []
    limit = PAGE if args.all or args.state else 50
    while True:
        page = client.jobs(**query, limit=limit, offset=len(rows), format="ps")
        rows += [row_of(item) for item in page]
        if len(page) < limit or not (args.all or args.state):
            break
    if args.json:
        print_json(rows)
        return OK
    if not rows:
        print("no jobs in this state" if args.state else "no jobs yet; pailot submit JOB.yaml submits one")
        return OK
    print_rows([{**row, "name": f"{row['user']}~{row['name']}"} for row in rows] if args.everyone else rows)
    return OK


def row_of(item: dict[str, Any]) -> dict[str, Any]:
    """An entry of the server's list, as `ps` shows it; OpenPAI's own servers tell it in their way only."""
    if "submitted" in item:
        return item
    return {
        "name": item["name"],
        "id": f"{item['username']}~{item['name']}",
        "user": item["username"],
        "state": item["state"],
        "submitted": seconds(item.get("submissionTime")),
        "started": seconds(item.get("launchedTime")),
        "ended": seconds(item.get("completedTime")),
        "tasks": item.get("totalTaskNumber"),
        "retries": item.get("retries"),
        "engine": item.get("engine"),
        "held": item.get("held") or 0,
    }


def seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def show(args: Namespace, client: Client) -> int:
    from ..commands.show import print_record

    shown = client.record(job_name(client, args.run))
    if args.json:
        print_json(shown)
    else:
        print_record(shown)
    return OK


def wait(args: Namespace, client: Client) -> int:
    from ..commands.run import STATUSES

    job = job_name(client, args.run)
    with telling_why(client, job, quiet=args.json):
        shown = client.wait(job, timeout=args.timeout)
    over = shown is not None
    shown = shown or client.record(job)
    if args.json:
        print_json(shown)
    if not over:
        print(f"pailot: {shown['name']} is still {shown['state']} after {args.timeout:g} s", file=sys.stderr)
        return UNREACHABLE
    if not args.json:
        print(f"{shown['name']} {shown['state']}: {shown.get('reason') or ''}".rstrip(": "))
    return STATUSES.get(shown["state"], 1)


def stop(args: Namespace, client: Client) -> int:
    done = []
    names = [job_name(client, name) for name in args.runs]
    for job in names:
        client.stop(job, now=args.now)
    for job in names:
        shown = client.record(job) if args.no_wait else client.wait(job) or {}
        done.append({"name": shown["name"], "id": shown["id"], "state": shown["state"], "reason": shown.get("reason")})
    if args.json:
        print_json(done)
    else:
        for each in done:
            print(f"{each['name']} {each['state']}")
    return OK


def rerun(args: Namespace, client: Client) -> int:
    from ..job_options import secrets_of

    for option in _LOCAL_ONLY:
        if getattr(args, option, None):
            raise PailotError(f"--{option} does not work with a server; --name and --secret do")
    name = client.rerun(job_name(client, args.file), name=args.name, secrets=secrets_of(args))
    return print_submitted(args, client, name)


def print_submitted(args: Namespace, client: Client, name: str) -> int:
    """That a job is on the server now; its name is printed so that the next command can use it."""
    full = job_name(client, name)
    if args.json:
        shown = client.record(full)
        print_json({**{key: shown.get(key) for key in ("name", "id", "user", "folder")}, "server": client.server})
    else:
        short = full.removeprefix(f"{client.user}~")
        print(f"{short} is submitted; pailot logs -f {short}")
    return OK


def events(args: Namespace, client: Client) -> int:
    from ..commands.events import print_events

    found = client.journal(job_name(client, args.run))
    if args.json:
        print_json(found)
    else:
        print_events(found)
    return OK


def why(args: Namespace, client: Client) -> int:
    job = job_name(client, args.run)
    found = client.why(job)
    if args.json:
        print_json({"name": found.get("name", job.partition("~")[2]), "state": found["state"], "why": found["lines"]})
    else:
        print("\n".join(found["lines"]))
    return OK
