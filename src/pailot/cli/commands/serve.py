"""`pailot serve`: OpenPAI's REST API for a team, on one machine."""

from __future__ import annotations

import gc
import json
import os
import sys

from ...client.loopback import is_loopback
from ...install_lines import install_line
from ...jobserver.maintenance import check, opened, rotate_keys
from ...jobserver.unix_users import UnixUsers, closed_python
from ...settings import Settings
from ...store import StoreError
from ..main import FAILED, INVALID, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=9186, help="port to listen on; 0 for any that is free (default: 9186)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all (default: 127.0.0.1)")
    parser.add_argument("-e", "--engine", default=None, help="where jobs run (default: local)")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain (PEM): connections are encrypted")
    parser.add_argument("--tls-key", metavar="FILE", help="key of that certificate (PEM)")
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument("--drain", action="store_true", help="at the end wait for running jobs (else they go on without)")
    ending.add_argument("--stop-jobs", action="store_true", help="at the end stop running jobs")
    other = parser.add_argument_group("instead of serving")
    other.add_argument("--check", action="store_true", help="look through everything that the server keeps, and end")
    other.add_argument("--rotate-keys", action="store_true", help="seal all secrets with a new key, and end")
    other.add_argument("--forget-old-keys", action="store_true", help="with --rotate-keys: drop the keys used before")
    parser.add_argument("--json", action="store_true", help="tell the address as JSON")


def run(args: Namespace) -> int:
    try:
        import argon2  # noqa: F401  # only whether it is there
        import uvicorn  # noqa: F401
        import uvloop  # noqa: F401
    except ImportError as error:
        print(f"pailot: the server needs more parts ({error.name}): {install_line('server')}", file=sys.stderr)
        return FAILED
    from ...server.tls import certificate
    from ...server.uvicorn_server import serve

    settings = Settings()
    if args.check or args.rotate_keys:
        return _look_after(args, settings)
    if args.forget_old_keys:
        print("pailot: --forget-old-keys goes with --rotate-keys", file=sys.stderr)
        return INVALID
    engine = args.engine or os.environ.get("PAILOT_ENGINE") or "local"
    if not 0 <= args.port < 65536:
        print(f"pailot: --port {args.port}: a port is a number from 0 to 65535", file=sys.stderr)
        return INVALID
    tls = certificate(args.tls_cert or settings["tls_cert"], args.tls_key or settings["tls_key"])
    if tls is None and not settings["trusted_proxies"] and not is_loopback(args.host):
        print(f"pailot: {_UNENCRYPTED}", file=sys.stderr, flush=True)
    os.makedirs(settings.home, mode=0o700, exist_ok=True)
    gc.enable()

    closed = closed_python(UnixUsers(settings["unix_users"], lambda _: None))
    if closed:
        print(f"pailot: {closed}", file=sys.stderr, flush=True)

    def ready(address: str, password: str | None) -> None:
        if args.json:
            told = {"url": address, "home": settings.home, "engine": engine, "user": "admin", "password": password}
            print(json.dumps(told), flush=True)
            return
        if password:
            print(f"pailot: made the user admin with the password {password} (shown only now)", file=sys.stderr, flush=True)
        print(f"Pailot serves {address} from {settings.home} (engine {engine})", flush=True)

    ending = "drain" if args.drain else "stop-jobs" if args.stop_jobs else "hand-over"
    serve(settings, host=args.host, port=args.port, engine=engine, ending=ending, tls=tls, ready=ready)
    return OK


_UNENCRYPTED = (
    "connections are not encrypted: everyone on the network can read passwords and tokens; "
    "use --tls-cert and --tls-key, or a proxy with TLS that trusted_proxies names"
)


def _look_after(args: Namespace, settings: Settings) -> int:
    if args.rotate_keys:
        with opened(settings) as store:
            count = rotate_keys(store, settings.home, forget=args.forget_old_keys)
        told = f"sealed the secrets of {count} jobs, users and storages with a new key"
        print(json.dumps({"sealed": count}) if args.json else told)
        if not args.check:
            return OK
    place = ""
    counted: dict[str, int | None] = {"jobs": None, "users": None}
    try:
        with opened(settings, as_it_is=True) as store:
            place, found = store.place, check(store, settings.home)
            counted = {"jobs": store.jobs.count(), "users": store.accounts.count_users()}
    except StoreError as error:  # so damaged that it cannot be looked at any further
        found = [str(error)]
    if args.json:
        print(json.dumps({"problems": found, **counted}))
    elif not found:
        print(f"all is well with {place}: {counted['jobs']} jobs, {counted['users']} users")
    for line in () if args.json else found:
        print(f"pailot: {line}", file=sys.stderr)
    return FAILED if found else OK
