"""`pailot user list|show|add|set|password|remove`: the users of a server."""

from __future__ import annotations

import sys

from ...errors import PailotError
from ..main import OK
from ..server_option import add_server_option, need_client, print_json, read_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

    from ...client.api import Client

ACTIONS = ("list", "show", "add", "set", "password", "remove")


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="add, set and remove are for administrators")
    parser.add_argument("name", nargs="?", metavar="NAME", help="user (default for show and password: yourself)")
    parser.add_argument("--password-file", metavar="FILE", help="read the new password from a file, '-' for standard input")
    parser.add_argument("--old-password-file", metavar="FILE", help="password: the old one, from a file")
    parser.add_argument("--email", metavar="ADDRESS", help="add, set: where notifications go")
    parser.add_argument("--vc", action="append", metavar="NAME", help="add, set: virtual cluster; can be repeated")
    parser.add_argument("--admin", choices=("yes", "no"), help="add, set: whether an administrator")
    parser.add_argument("--unix-user", metavar="NAME", help="add, set: as whom their tasks run, with the setting unix_users")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    client = need_client(args)
    if args.action in ("add", "set", "remove") and not args.name:
        raise PailotError(f"pailot user {args.action} needs the name of the user")
    answer: dict[str, Any] = {"user": args.name}
    if args.action == "list":
        return _list(args, client)
    if args.action == "show":
        return _print_user(args, client.get_user(args.name or client.user))
    if args.action == "add":
        password = _new_password(args, args.name)
        said = client.create_user(
            args.name,
            password,
            email=args.email or "",
            admin=args.admin == "yes",
            virtual_clusters=args.vc or (),
            unix_user=args.unix_user or "",
        )
        answer |= {"message": f"{args.name} is added", "warnings": said.get("warnings") or []}
    elif args.action == "set":
        client.update_user(args.name, **_changes(args))
        answer["message"] = f"{args.name} is changed"
    elif args.action == "password":
        name = args.name or client.user
        old = read_password(args.old_password_file, "Your old password: ") if name == client.user else ""
        client.change_password(name, old, _new_password(args, name))
        answer = {"user": name, "message": f"the password of {name} is changed"}
    else:
        client.remove_user(args.name)
        answer["message"] = f"{args.name} is removed"
    if args.json:
        print_json(answer)
        return OK
    print(answer["message"])
    for warning in answer.get("warnings", ()):
        print(f"pailot: {warning}", file=sys.stderr)
    return OK


def _new_password(args: Namespace, name: str) -> str:
    password = read_password(args.password_file, f"New password of {name}: ")
    if not args.password_file and read_password(None, "Once more: ") != password:
        raise PailotError("the two passwords are not the same")
    return password


def _changes(args: Namespace) -> dict[str, object]:
    changes: dict[str, object] = {}
    if args.email is not None:
        changes["email"] = args.email
    if args.vc is not None:
        changes["virtualCluster"] = args.vc
    if args.admin is not None:
        changes["admin"] = args.admin == "yes"
    if args.unix_user is not None:
        changes["unixUser"] = args.unix_user
    if args.password_file:
        changes["password"] = read_password(args.password_file, "")
    if not changes:
        raise PailotError("pailot user set: what is to change? --email, --vc, --admin, --unix-user or --password-file")
    return changes


def _list(args: Namespace, client: Client) -> int:
    users = client.users()
    if args.json:
        print_json(users)
        return OK
    table = [("NAME", "ADMIN", "CLUSTERS", "EMAIL"), *(_cells(user) for user in users)]
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return OK


def _cells(user: Mapping[str, Any]) -> tuple[str, ...]:
    clusters = ", ".join(user.get("virtualCluster") or [])
    return user["username"], "yes" if user.get("admin") else "", clusters, user.get("email") or ""


def _print_user(args: Namespace, user: Mapping[str, Any]) -> int:
    if args.json:
        print_json(user)
        return OK
    name, admin, clusters, email = _cells(user)
    print(f"{name}{' (administrator)' if admin else ''}")
    print(f"  virtual clusters {clusters or 'none'}")
    print(f"  groups {', '.join(user.get('grouplist') or []) or 'none'}")
    if email:
        print(f"  email {email}")
    return OK
