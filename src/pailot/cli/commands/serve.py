"""`pailot serve`: OpenPAI's REST API for a team, on one machine."""

from __future__ import annotations

from ..main import FAILED, INVALID, OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=9186, help="port to listen on; 0 for any that is free (default: 9186)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 for all (default: 127.0.0.1)")
    parser.add_argument("-e", "--engine", default=None, help="where jobs run (default: local)")
    ending = parser.add_mutually_exclusive_group()
    ending.add_argument("--drain", action="store_true", help="at the end wait for running jobs (else they go on without)")
    ending.add_argument("--stop-jobs", action="store_true", help="at the end stop running jobs")
    parser.add_argument("--json", action="store_true", help="tell the address as JSON")


def run(args: Namespace) -> int:
    import gc
    import os
    import sys

    from ...settings import Settings

    try:
        import argon2  # noqa: F401  # only whether it is there
        import uvicorn  # noqa: F401
        import uvloop  # noqa: F401
    except ImportError as error:
        print(f"pailot: the server needs more parts ({error.name}): pip install 'pailot[server]'", file=sys.stderr)
        return FAILED
    settings = Settings()
    engine = args.engine or os.environ.get("PAILOT_ENGINE") or "local"
    if not 0 <= args.port < 65536:
        print(f"pailot: --port {args.port}: a port is a number from 0 to 65535", file=sys.stderr)
        return INVALID
    gc.enable()
    from ...server.run import serve

    def ready(address: str, password: str | None) -> None:
        if args.json:
            import json

            told = {"url": address, "home": settings.home, "engine": engine, "user": "admin", "password": password}
            print(json.dumps(told), flush=True)
            return
        if password:
            print(f"pailot: made the user admin with the password {password} (shown only now)", file=sys.stderr, flush=True)
        print(f"Pailot serves {address} from {settings.home} (engine {engine})", flush=True)

    ending = "drain" if args.drain else "stop-jobs" if args.stop_jobs else "hand-over"
    serve(settings, host=args.host, port=args.port, engine=engine, ending=ending, ready=ready)
    return OK
