"""`pailot vc list|add|set|remove`: the virtual clusters of a server."""

from __future__ import annotations

from ...errors import PailotError, suggestion
from ..main import OK
from ..server_option import add_server_option, need_client, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

    from ...client.api import Client

ACTIONS = ("list", "add", "set", "remove")
_NO_LIMIT = "none"
_HEADS = ("NAME", "CAPACITY", "CPUS", "MEMORY", "GPUS", "IN USE", "RUNNING", "WAITING", "EACH USER")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="add, set and remove are for administrators")
    parser.add_argument("name", nargs="?", metavar="NAME", help="virtual cluster; 'default' has what others leave")
    parser.add_argument("--capacity", metavar="PERCENT", help="add, set: percent of the machine that is kept for it")
    parser.add_argument("--cpus", metavar="N", help="add, set: CPUs that are kept for it")
    parser.add_argument("--memory-mb", metavar="N", help="add, set: MB of memory that are kept for it")
    parser.add_argument("--gpus", metavar="N", help="add, set: GPUs that are kept for it")
    parser.add_argument("--user-jobs", metavar="N", help="add, set: jobs that each user may have running in it; 'none': any")
    parser.add_argument("--user-gpus", metavar="N", help="add, set: GPUs that each user may use in it at once; 'none': any")
    parser.add_argument("--description", metavar="TEXT", help="add, set: what it is for")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    if args.action != "list" and not args.name:
        raise PailotError(f"pailot vc {args.action} needs the name of a virtual cluster")
    changes = _changes(args) if args.action in ("add", "set") else {}
    client = need_client(args)
    if args.action == "list":
        return _list(args, client)
    if args.action == "remove":
        client.remove_virtual_cluster(args.name)
        message = f"{args.name} is removed"
    else:
        _check_there(client, args.name, there=args.action == "set")
        client.put_virtual_cluster(args.name, changes)
        message = f"{args.name} is {'added' if args.action == 'add' else 'changed'}"
    if args.json:
        print_json({"name": args.name, "message": message})
        return OK
    print(message)
    if args.action == "add":
        print(f"pailot user set USER --vc {args.name} lets a user submit to it")
    return OK


def _check_there(client: Client, name: str, *, there: bool) -> None:
    """A slip in the name makes no second cluster, and an existing one is not added over."""
    known = client.virtual_clusters()
    if there and name not in known:
        raise PailotError(f"there is no virtual cluster '{name}'{suggestion(name, known)}; pailot vc add makes one")
    if not there and name in known:
        raise PailotError(f"there is a virtual cluster '{name}' already; pailot vc set changes it")


def _changes(args: Namespace) -> dict[str, object]:
    """What the API is asked for: only what was named."""
    changes: dict[str, object] = {}
    if args.capacity is not None:
        changes["vcCapacity"] = _number("--capacity", args.capacity.removesuffix("%"))
    amounts = {"cpu": ("--cpus", args.cpus), "memory": ("--memory-mb", args.memory_mb), "gpu": ("--gpus", args.gpus)}
    kept = {key: _number(option, text, whole=key == "gpu") for key, (option, text) in amounts.items() if text is not None}
    if kept:
        changes["resourcesGuaranteed"] = kept
    limits = {"jobs": ("--user-jobs", args.user_jobs), "gpus": ("--user-gpus", args.user_gpus)}
    limited = {
        key: None if text == _NO_LIMIT else _number(option, text, whole=True, otherwise=f" or '{_NO_LIMIT}'")
        for key, (option, text) in limits.items()
        if text is not None
    }
    if limited:
        changes["userLimits"] = limited
    if args.description is not None:
        changes["description"] = args.description
    if not changes and args.action == "set":
        options = "--capacity, --cpus, --memory-mb, --gpus, --user-jobs, --user-gpus or --description"
        raise PailotError(f"pailot vc set: what is to change? {options}")
    return changes


def _number(option: str, text: str, *, whole: bool = False, otherwise: str = "") -> float:
    digits = text if whole else text.replace(".", "", 1)
    if not (digits.isascii() and digits.isdecimal() and len(text) < 16):
        raise PailotError(f"{option}: should be a {'whole ' if whole else ''}number{otherwise}, is '{text}'")
    return int(text) if text.isdecimal() else float(text)


def _list(args: Namespace, client: Client) -> int:
    clusters = client.virtual_clusters()
    if args.json:
        print_json(clusters)
        return OK
    table = [_HEADS, *(_cells(name, told) for name, told in clusters.items())]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADS))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return OK


def _cells(name: str, told: Mapping[str, Any]) -> tuple[str, ...]:
    kept, used, limits = told["resourcesGuaranteed"], told["resourcesUsed"], told.get("userLimits") or {}
    return (
        name,
        f"{told['capacity']:g} %",
        f"{kept['cpu']:g}",
        f"{kept['memory']} MB",
        str(kept["gpu"]),
        f"{used['cpu']:g} CPUs, {used['gpu']} GPUs",
        str(told.get("numActiveJobs", "")),
        str(told.get("numPendingJobs", "")),
        ", ".join(f"{value} {_unit(key, value)}" for key, value in limits.items()),
    )


def _unit(key: str, value: int) -> str:
    word = {"jobs": "job", "gpus": "GPU"}.get(key, key)
    return word if value == 1 else f"{word}s"
