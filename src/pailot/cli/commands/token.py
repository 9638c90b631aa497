"""`pailot token list|create|revoke`: tokens for programs. A token is shown once, when it is made."""

from __future__ import annotations

import base64
import hashlib
import json
import time

from ...errors import PailotError
from ..main import OK
from ..server_option import add_server_option, need_client, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "create", "revoke"))
    parser.add_argument("id", nargs="?", metavar="ID", help="revoke: its id in the list, or the first characters of it")
    add_server_option(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    client = need_client(args)
    if args.action == "create":
        token = client.create_token()
        if args.json:
            print_json({"token": token, **described(token)})
        else:
            print(token)
        return OK
    tokens = {identity(token): token for token in client.tokens()}
    if args.action == "list":
        listed = [described(token) for token in tokens.values()]
        if args.json:
            print_json(listed)
        else:
            for each in listed:
                until = "does not expire" if each["expires"] is None else f"expires {_moment(each['expires'])}"
                kind = "application" if each["application"] else "login"
                print(f"{each['id']}  {kind:<11}  made {_moment(each['created'])}  {until}")
        return OK
    if not args.id:
        raise PailotError("pailot token revoke needs the id of a token; pailot token list shows them")
    found = [each for each in tokens if each.startswith(args.id)]
    if len(found) != 1:
        raise PailotError(f"{len(found) or 'no'} tokens have an id that begins with '{args.id}'; pailot token list shows them")
    client.revoke_token(tokens[found[0]])
    if args.json:
        print_json({"id": found[0], "revoked": True})
    else:
        print(f"{found[0]} is revoked")
    return OK


def identity(token: str) -> str:
    """What names a token without giving it away."""
    return hashlib.sha256(token.encode()).hexdigest()[:12]


def described(token: str) -> dict[str, Any]:
    """What a token says about itself, without the token."""
    try:
        body = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (IndexError, ValueError):
        said = {}
    return {
        "id": identity(token),
        "application": bool(said.get("application")),
        "created": said.get("iat"),
        "expires": said.get("exp"),
    }


def _moment(seconds: float | None) -> str:
    return "at an unknown time" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
