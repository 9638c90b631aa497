"""`pailot login [SERVER]`: exchange a password, or a sign-in in the browser, for a token; that server is used from now on."""

from __future__ import annotations

import os
import sys
import webbrowser

from ...client.api import find
from ...client.browser_login import with_browser, with_copied_grant
from ...client.credentials import NONE, Login, chosen, normal, remember
from ...client.errors import NotFound
from ...client.loopback import is_loopback
from ...errors import PailotError
from ...settings import current_user
from ..main import OK
from ..server_option import print_json, read_password

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from ...client.api import Client


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("address", nargs="?", metavar="SERVER", help="address, e.g. http://host:9186 (default: PAILOT_SERVER)")
    parser.add_argument("--server", metavar="URL", help="the same")
    parser.add_argument("--user", metavar="NAME", help="user of the server (default: asked for)")
    parser.add_argument("--password-file", metavar="FILE", help="read the password from a file, '-' for standard input")
    parser.add_argument("--token-file", metavar="FILE", help="use this token instead of a password, '-' for standard input")
    parser.add_argument("--no-browser", action="store_true", help="sign in with a browser of another machine, and copy a code")
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
    elif not (args.user or args.password_file) and _signs_in_elsewhere(client):
        user = str(_sign_in(client, browser=not args.no_browser)["user"])
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


def _signs_in_elsewhere(client: Client) -> bool:
    """Whether the server has an identity provider."""
    try:
        return bool(client.authn().get("signInWith"))
    except NotFound:
        return False  # an older server


def _sign_in(client: Client, *, browser: bool) -> dict[str, Any]:
    def show(address: str) -> None:
        print(f"Sign in with the browser: {address}", file=sys.stderr, flush=True)
        webbrowser.open(address)

    def ask(address: str) -> str:
        print(f"Open this address in a browser, sign in, and copy the code that it shows:\n{address}", file=sys.stderr)
        print("Code: ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()

    return with_browser(client, show) if browser else with_copied_grant(client, ask)


def _ask_for_user() -> str:
    if not os.isatty(0):
        return current_user()
    print(f"User ({current_user()}): ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or current_user()


def _warn_of_plain_http(client: Client) -> None:
    if client.http.scheme == "http" and not is_loopback(client.http.host):
        print(f"pailot: {client.server} is not encrypted: whoever sees the network sees password and token", file=sys.stderr)
