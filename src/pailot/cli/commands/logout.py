"""`pailot logout`: forget a login, and have its token revoked."""

from __future__ import annotations

import sys

from ...client.api import Client
from ...client.credentials import forget
from ...client.errors import Denied, WireError
from ..main import OK
from ..server_option import print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("address", nargs="?", metavar="SERVER", help="address (default: the server in use)")
    parser.add_argument("--server", metavar="URL", help="the same")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    login = forget(args.address or args.server)
    revoked = False
    if login is not None:
        try:
            Client(login.server, login.token).logout()
            revoked = True
        except Denied:
            revoked = True  # the token is worth nothing any more
        except WireError as error:
            print(f"pailot: the token was forgotten here, but not revoked: {error}", file=sys.stderr)
    if args.json:
        print_json({"server": login.server if login else None, "revoked": revoked})
    else:
        print(f"logged out of {login.server}" if login else "nobody is logged in")
    return OK
