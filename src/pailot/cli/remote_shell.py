"""`pailot enter` through a server: what is typed goes there, what is printed comes here, and so does the status."""

from __future__ import annotations

import json
import os
import signal
import sys
import termios
import threading
import tty

from ..client.errors import Unreachable
from ..client.sockets import Closed
from ..errors import PailotError, suggestion
from .main import OK
from .server_option import job_name, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..client.api import Client
    from ..client.sockets import WebSocket

PIECE_BYTES = 1 << 15


def enter(args: Namespace, client: Client) -> int:
    """A shell, or a command; returns its status."""
    name = job_name(client, args.run)
    role = args.role or first_role(client, name)
    if args.json:
        roles = client.record(name)["taskRoles"]
        if roles and role not in roles:
            raise PailotError(f"'{name}' has no role '{role}'{suggestion(role, roles)}")
        found = roles.get(role, {}).get("tasks", [])
        print_json(
            {"job": name, "role": role, "index": args.index, "task": found[args.index] if args.index < len(found) else None}
        )
        return OK
    terminal = os.isatty(0)
    line = client.open_shell(name, role, args.index)
    try:
        columns, rows = os.get_terminal_size() if terminal else (80, 24)
        wanted = {"terminal": terminal, "term": os.environ.get("TERM", "dumb"), "rows": rows, "columns": columns}
        line.send(json.dumps({**wanted, "command": args.command}))
        return _talk(line, terminal=terminal)
    except Closed:
        raise Unreachable(f"the connection to {client.server} was closed; the task goes on") from None
    finally:
        line.close()


def first_role(client: Client, name: str) -> str:
    """The role that is meant where none is named."""
    return str(next(iter(client.record(name)["taskRoles"]), ""))


def _talk(line: WebSocket, *, terminal: bool) -> int:
    before = termios.tcgetattr(0) if terminal else None
    heard = signal.getsignal(signal.SIGWINCH)
    if terminal:
        signal.signal(signal.SIGWINCH, lambda *_: _resize(line))
        tty.setraw(0, termios.TCSADRAIN)  # what was typed already is not lost
    threading.Thread(target=_type, args=(line,), kwargs={"terminal": terminal}, daemon=True).start()
    try:
        return _show(line)
    finally:
        if before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, before)
            signal.signal(signal.SIGWINCH, heard)


def _show(line: WebSocket) -> int:
    """What comes, until the status does."""
    while True:
        message = line.receive()
        if isinstance(message, bytes):
            _write(1 if message[:1] == b"\1" else 2, message[1:])
            continue
        said = json.loads(message)
        if "error" in said:
            raise PailotError(str(said["error"]))
        if "exit" in said:
            return int(said["exit"])


def _write(target: int, data: bytes) -> None:
    (sys.stdout if target == 1 else sys.stderr).flush()
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]


def _type(line: WebSocket, *, terminal: bool) -> None:
    try:
        while data := os.read(0, PIECE_BYTES):
            line.send(data)
        line.send(json.dumps({"eof": True}) if not terminal else b"\4")
    except (Closed, OSError):
        pass  # it has ended


def _resize(line: WebSocket) -> None:
    columns, rows = os.get_terminal_size()
    try:
        line.send(json.dumps({"rows": rows, "columns": columns}))
    except Closed:
        pass
