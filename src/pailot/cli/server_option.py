"""Which server a command asks, and the words that servers and local runs share."""

from __future__ import annotations

import os
import sys

from ..client.credentials import chosen
from ..errors import PailotError
from ..views.local import LocalRuns
from .main import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from ..client.api import Client
    from ..views.base import View
    from ..views.connections import Connections
    from ..views.server import ServerRuns


def add_server_option(parser: ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help="ask this server; 'none': the runs of this machine")


def runs_of(args: Namespace) -> LocalRuns | ServerRuns:
    """The runs of the server that the option, `PAILOT_SERVER` or the last login names; else those of this machine."""
    login = chosen(args.server)
    if login is None:
        return LocalRuns()
    from ..views.connections import Connections
    from ..views.server import ServerRuns

    return ServerRuns(Connections(login.server, login.token, login.user))


def client_of(args: Namespace) -> Client | None:
    """The API of that server; None for the runs of this machine."""
    connections = runs_of(args).connections
    return None if connections is None else connections.mine


def need_server(args: Namespace) -> ServerRuns:
    """The same, where nothing can be done without a server."""
    runs = runs_of(args)
    if runs.connections is None:
        raise PailotError("no server is chosen: pailot login ADDRESS, or name one with --server or PAILOT_SERVER")
    return runs


def need_client(args: Namespace) -> Client:
    """That server itself."""
    return need_server(args).connections.mine


def job_name(client: Client, name: str) -> str:
    """`user~name`, as servers call a job; a bare name is the caller's."""
    return name if "~" in name else f"{client.user}~{name}"


def print_submitted(view: View, connections: Connections, *, json: bool) -> int:
    """That a job is on the server now; its name is printed so that the next command can use it."""
    if json:
        shown = view.record()
        print_json({**{key: shown.get(key) for key in ("name", "id", "user", "folder")}, "server": connections.server})
    else:
        short = view.id.removeprefix(f"{connections.user}~")
        print(f"{short} is submitted; pailot logs -f {short}")
    return OK


def read_password(file: str | None, prompt: str) -> str:
    """A password from a file ('-': standard input), or asked for; never from the command line, where others see it."""
    if file == "-":
        return sys.stdin.readline().rstrip("\n")
    if file:
        try:
            with open(file, encoding="utf-8") as stream:
                return stream.readline().rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise PailotError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not os.isatty(0):
        raise PailotError("there is no terminal to ask for the password; give it with --password-file FILE ('-': standard input)")
    from getpass import getpass

    return getpass(prompt)


def print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=2))
