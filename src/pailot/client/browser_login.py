"""Logging in with a browser: it signs in at the identity provider, and its way back ends at a port of this machine (RFC 8252).

Where the browser is on another machine, its page shows the grant instead, which the user copies.
"""

from __future__ import annotations

import hmac
from http.server import BaseHTTPRequestHandler, HTTPServer
from secrets import token_urlsafe
from time import monotonic
from urllib.parse import parse_qs, urlencode, urlsplit

from ..values import Value
from .errors import Denied
from .pkce import challenge_of, new_verifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .api import Client

PATIENCE_SECONDS = 300.0
REQUEST_SECONDS = 10.0
MAX_LINE_BYTES = 8192
LOGIN = "/api/v2/authn/oidc/login"
_DONE = "You are logged in on the command line. This window can be closed."
_FAILED = "The sign-in did not succeed. The command line tells more."
_WORDS = {
    "refused": "the identity provider did not confirm the sign-in; the log of the server tells why",
    "not-allowed": "the rules of the server do not let this user in",
    "name-in-use": "another account of the server has this name; an administrator can link it",
    "unavailable": "the identity provider cannot be reached",
}


class Came(Value):
    """What the browser brought: a grant, or the word for what went wrong."""

    grant: str = ""
    error: str = ""


def with_browser(client: Client, show: Callable[[str], None]) -> dict[str, Any]:
    """Log in with a browser of this machine; `show` gets the address that it is to open. Raises Denied."""
    verifier, state = new_verifier(), token_urlsafe(24)
    came: list[Came] = []
    with HTTPServer(("127.0.0.1", 0), _handler(state, came)) as listener:
        back = f"http://127.0.0.1:{listener.server_address[1]}/"
        query = urlencode({"challenge": challenge_of(verifier), "redirect_uri": back, "state": state})
        show(f"{client.server}{LOGIN}?{query}")
        until = monotonic() + PATIENCE_SECONDS
        while not came:
            listener.timeout = until - monotonic()
            if listener.timeout <= 0:
                raise Denied("no sign-in came back from the browser in 5 minutes; try again, or use --no-browser", 401)
            listener.handle_request()
    return _redeem(client, came[0], verifier)


def with_copied_grant(client: Client, ask: Callable[[str], str]) -> dict[str, Any]:
    """Log in with a browser of any machine; `ask` shows the address, and returns the grant that the page shows then."""
    verifier = new_verifier()
    query = urlencode({"challenge": challenge_of(verifier), "show": "1"})
    return _redeem(client, Came(ask(f"{client.server}{LOGIN}?{query}").strip()), verifier)


def _redeem(client: Client, came: Came, verifier: str) -> dict[str, Any]:
    if came.error or not came.grant:
        raise Denied(_WORDS.get(came.error, "the sign-in did not succeed"), 401)
    return client.login_by_grant(came.grant, verifier)


def _handler(state: str, came: list[Came]) -> Any:
    """Takes the one request that knows the state; every other one, of another page or program, is refused."""

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_SECONDS

        def do_GET(self) -> None:
            said = {key: values[0] for key, values in parse_qs(urlsplit(self.path[:MAX_LINE_BYTES]).query).items()}
            if not hmac.compare_digest(said.get("state", "").encode(), state.encode()):
                self.send_error(404)
                return
            came.append(Came(said.get("grant", ""), said.get("error", "")))
            body = (_DONE if came[0].grant else _FAILED).encode()
            self.send_response(200)
            for name, value in (
                ("Content-Type", "text/plain; charset=utf-8"),
                ("Content-Length", str(len(body))),
                ("Cache-Control", "no-store"),
                ("Referrer-Policy", "no-referrer"),
                ("Connection", "close"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """The address holds a grant: it is not written anywhere."""

    return Handler
