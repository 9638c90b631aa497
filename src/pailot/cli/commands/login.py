"""`pailot login [SERVER]`: exchange a password for a token, and use that server from now on."""

from __future__ import annotations

import os
import sys

from ...client.api import find
from ...client.credentials import NONE, Login, chosen, normal, remember
from ...client.loopback import is_loopback
from ...errors import PailotError
from ...settings import current_user
from ..main import OK
from ..server_option import print_json, read_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ...client.api import Client


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("address", nargs="?", metavar="SERVER", help="address, e.g. http://host:9186 (default: PAILOT_SERVER)")
    parser.add_argument("--server", metavar="URL", help="the same")
    parser.add_argument("--user", metavar="NAME", help="user of the server (default: asked for)")
    parser.add_argument("--password-file", metavar="FILE", help="read the password from a file, '-' for standard input")
    parser.add_argument("--token-file", metavar="FILE", help="use this token instead of a password, '-' for standard input")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    asked = args.address or args.server or os.environ.get("PAILOT_SERVER") or ""
    if not asked or asked.lower() == NONE:
        before = chosen(None) if not asked else None
        if before is None:
            raise PailotError("which server? pailot login http://host:9186")
        asked = before.server
    client = find(normal(asked))
    _warn_of_plain_http(client)
    if args.token_file:
        client.http.token = read_password(args.token_file, "")
        user = client.user
    else:
        user = args.user or _ask_for_user()
        answer = client.login(user, read_password(args.password_file, f"Password of {user} on {client.server}: "))
        user = str(answer["user"])
    file = remember(Login(client.server, client.token, user))
    if args.json:
        print_json({"server": client.server, "user": user, "file": file})
    else:
        print(f"logged in to {client.server} as {user}; pailot logout ends it, --server none looks at local runs")
    return OK


def _ask_for_user() -> str:
    if not os.isatty(0):
        return current_user()
    print(f"User ({current_user()}): ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or current_user()


def _warn_of_plain_http(client: Client) -> None:
    if client.http.scheme == "http" and not is_loopback(client.http.host):
        print(f"pailot: {client.server} is not encrypted: whoever sees the network sees password and token", file=sys.stderr)
