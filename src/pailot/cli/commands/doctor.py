"""`pailot doctor`: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

from ...client.errors import Denied, NotFound
from ...engines.registry import load
from ...errors import PailotError
from ...userruns.doctor import BAD, NOTE, Check, checks
from ...userruns.doctor import OK as FINE
from ..main import FAILED, OK
from ..server_option import add_server_option, print_json, runs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from ...client.api import Client

_SIGNS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def configure(parser: ArgumentParser) -> None:
    add_server_option(parser)
    parser.add_argument("-e", "--engine", metavar="ENGINE", help="look at what this engine needs, and at nothing else")
    parser.add_argument("--yaml", action="store_true", help="with -e: print the rights that it needs, for an administrator")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: Namespace) -> int:
    if args.yaml:
        if args.engine is None:
            raise PailotError("--yaml: of which engine? name it with -e")
        text = load(args.engine).needed_rights()
        if not text:
            raise PailotError(f"--yaml: the engine {args.engine} needs no rights that an administrator gives")
        print(text, end="")
        return OK
    found = []
    for check in _engine(args.engine) if args.engine is not None else (*checks(), *_server(args)):
        found.append(check)
        if not args.json:
            print(f"{_SIGNS[check.status]}  {check.name}: {check.text}", flush=True)
            if check.advice:
                print(f"      → {check.advice}", flush=True)
    if args.json:
        print_json([{key: getattr(check, key) for key in ("name", "status", "text", "advice")} for check in found])
    return FAILED if any(check.status == BAD for check in found) else OK


def _engine(name: str) -> Iterator[Check]:
    engine = load(name)
    try:
        for each in engine.examine():
            status = FINE if each.is_fine and not each.advice else NOTE if each.is_fine else BAD
            yield Check(each.name, status, each.text, each.advice)
    except PailotError as error:
        yield Check(name, BAD, str(error))


def _server(args: Namespace) -> Iterator[Check]:
    try:
        connections = runs_of(args).connections
        if connections is None:
            yield Check("server", FINE, "none is chosen; runs are local")
            return
        client = connections.mine
        client.http.retries = 0
        version = client.info().get("version") or "an unknown version"
        yield Check("server", FINE, f"{client.server} answers ({version})")
        who = client.whoami()
        yield Check("login", FINE, f"{who.get('username')}{', an administrator' if who.get('admin') else ''}")
        warnings = _warnings(client)
    except Denied as error:
        yield Check("login", BAD, str(error), "pailot login")
    except PailotError as error:
        yield Check("server", BAD, str(error), "check the address, and whether it runs (pailot serve)")
    else:
        for warning in warnings:
            text, _, advice = warning.partition("; ")
            yield Check("isolation", NOTE, text, advice)


def _warnings(client: Client) -> list[str]:
    try:
        found: list[str] = client.about().get("warnings") or []
    except NotFound:
        return []  # not one of ours
    return found
